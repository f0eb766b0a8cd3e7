//! Whether a daemon that is gone is brought back by clients that happen to be there: one that died is, one that was told to
//! stop is not. Must never look at another machine, which sees to this itself.

use super::{not_running, reach, start};
use crate::error::{Exit, Failure};
use crate::place::Place;
use std::time::Duration;
use tokio::net::UnixStream;

/// Pauses between looks, before a daemon is started: whoever looks after it may bring it back by himself.
const WAITING: [Duration; 3] = pauses([50, 100, 200]);

/// And where it was stopped: a restart has a gap.
const STOPPED: [Duration; 3] = pauses([400, 800, 1000]);

const fn pauses(ms: [u64; 3]) -> [Duration; 3] {
    let [a, b, c] = ms;
    [
        Duration::from_millis(a),
        Duration::from_millis(b),
        Duration::from_millis(c),
    ]
}

/// A stream to the daemon that comes back, or that is started where the last one died.
pub(super) async fn stream(place: &Place) -> Result<UnixStream, Failure> {
    for pause in WAITING.into_iter().chain(STOPPED) {
        tokio::time::sleep(pause).await;
        if let Some(stream) = reach(place).await? {
            return Ok(stream);
        }
        if pause >= WAITING[2] && !was_stopped(place) {
            return start::start(place).await;
        }
    }
    match place.holder() {
        Some(_) => Err(not_running(place)),
        None => Err(stopped()),
    }
}

/// A daemon that was told to stop takes its socket away; one that died leaves it.
pub(crate) fn was_stopped(place: &Place) -> bool {
    !place.candidates().iter().any(|path| path.exists())
}

pub(crate) fn stopped() -> Failure {
    Failure::new("the daemon was stopped")
        .hint("`dwell` starts it again and goes on")
        .exit(Exit::Unreachable)
}
