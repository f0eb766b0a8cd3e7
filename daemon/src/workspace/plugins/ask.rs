//! Asking a plugin something: with a deadline, told to it when nobody waits any more, and with its name in what fails.
//! Must never let a plugin that says nothing at all live on.

use super::plugin::Plugin;
use crate::stdio_rpc::{CallError, Host, Live};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The longest error that is handed on, in characters.
const REASON: usize = 8 * 1024;

/// What becomes of a plugin that says nothing at all until a deadline.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Silence {
    Kills,
    Passes,
}

impl Plugin {
    /// Waits as long as it takes.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, String> {
        let live = self.live().await?;
        let _works = self.works();
        ask(&live, method, params).await
    }

    /// Waits no longer than `limit`, its start included.
    pub(super) async fn ask_within(
        &self,
        limit: Duration,
        silence: Silence,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, String> {
        let mut asked: Option<(Arc<Live>, u64)> = None;
        let asking = async {
            let live = self.live().await?;
            asked = Some((Arc::clone(&live), live.peer.said()));
            ask(&live, method, params).await
        };
        if let Ok(answer) = timeout(limit, asking).await {
            return answer;
        }
        let seconds = limit.as_secs_f64();
        let why = format!("{} did not answer within {seconds} s", self.label());
        match asked.filter(|(live, said)| live.peer.said() == *said) {
            // It may be slow with this one alone and serve others; but one that has not said a word hangs.
            Some(_) if self.is_at_work() => Err(format!("{why}; it works on something else")),
            Some((live, _)) if silence == Silence::Kills => {
                tracing::warn!(plugin = self.name, method, "it hangs and is killed");
                live.peer.stop();
                Err(format!("{why}, nor anything else; it is started anew"))
            }
            _ => Err(why),
        }
    }
}

async fn ask(live: &Arc<Live>, method: &str, params: &RawValue) -> Result<Box<RawValue>, String> {
    let _use = live.using();
    let pending = live.peer.prepare().map_err(words)?;
    let cancel = live.cancel_on_drop("plugin/cancel", pending.id());
    pending.send(method, params).await;
    let answer = pending.answer().await;
    cancel.answered();
    answer.map_err(words)
}

/// A reason, not an output: a model reads it in every round trip from then on.
fn short(text: String) -> String {
    match text.char_indices().nth(REASON) {
        Some((at, _)) => format!("{} [{} bytes more]", &text[..at], text.len() - at),
        None => text,
    }
}

fn words(error: CallError) -> String {
    match error {
        CallError::Gone(how) => how,
        CallError::Refused(refusal) => short(refusal.message),
    }
}
