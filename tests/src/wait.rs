//! Waiting with a deadline, and skipping loudly. Must never wait for a fixed time in place of a condition.

use std::time::{Duration, Instant};

/// How long anything that should happen at once may take on a loaded machine.
pub const SOON: Duration = Duration::from_secs(20);

/// Asks again and again until there is an answer; past the deadline it stops with `what` and the last thing seen.
pub fn until<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + limit;
    loop {
        match ask() {
            Ok(value) => return value,
            Err(last) if Instant::now() >= end => {
                panic!("waited {limit:?} for {what}; last seen: {last}")
            }
            Err(_) => pause(),
        }
    }
}

/// `until` for a yes or no.
pub fn until_true(what: &str, limit: Duration, mut ask: impl FnMut() -> bool) {
    until(what, limit, || {
        ask().then_some(()).ok_or_else(|| "not yet".into())
    });
}

/// The pause between two looks.
pub fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

/// Lets time pass that is itself what is tested (a stall, an idle process). Not for waiting for something.
pub fn elapse(time: Duration) {
    std::thread::sleep(time);
}

/// Says that a test cannot run here and why. Where everything is meant to be installed (`CI=true`) that is a failure.
pub fn skip(test: &str, why: &str) {
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(!ci, "{test}: would be skipped, but CI has to run it: {why}");
    say_skipped(test, why);
}

/// Says that a test cannot run here for want of a privilege: no package would bring it, so it is no failure anywhere.
pub fn skip_unprivileged(test: &str, why: &str) {
    say_skipped(test, why);
}

fn say_skipped(test: &str, why: &str) {
    let line = format!("SKIPPED {test}: {why}\n");
    // Not through print!: the test runner would swallow it.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
}
