//! Lines of single events, in words. Pure.

use crate::paint::{Paint, Part, tame};
use protocol::approval::{Answer, Scope};
use protocol::event::{Level, TurnStatus};

pub(super) fn answered(answer: Answer, scope: Scope, by: &str, reason: Option<&str>) -> String {
    let by = tame(by);
    match (answer, scope) {
        (Answer::Allow, Scope::Call) => format!("  allowed by {by}"),
        (Answer::Allow, Scope::Program) => format!("  allowed for this program by {by}"),
        (Answer::Allow, Scope::Session) => format!("  allowed for this session by {by}"),
        (Answer::Allow, Scope::Always) => format!("  allowed for good by {by}"),
        (Answer::Deny, _) => match reason {
            Some(reason) => format!("  denied by {by}: {}", tame(reason)),
            None => format!("  denied by {by}"),
        },
    }
}

pub(super) fn notice(paint: Paint, level: Level, text: &str) -> String {
    let text = tame(text);
    match level {
        Level::Info => paint.dress(Part::Quiet, &text),
        Level::Warning => paint.dress(Part::Ask, &format!("warning: {text}")),
        Level::Error => paint.dress(Part::Bad, &format!("error: {text}")),
    }
}

/// How a turn ended, where its reply did not say it already.
pub(super) fn ended(
    paint: Paint,
    status: TurnStatus,
    reply: &str,
    replied: bool,
) -> Option<String> {
    let reply = tame(reply);
    let reply = reply.trim_end();
    match status {
        TurnStatus::Completed if replied || reply.is_empty() => None,
        TurnStatus::Completed => Some(reply.into()),
        TurnStatus::Cancelled => Some(paint.dress(Part::Bad, "cancelled")),
        TurnStatus::Failed
        | TurnStatus::MaxRounds
        | TurnStatus::Refused
        | TurnStatus::Interrupted => {
            let said = if reply.is_empty() {
                status.as_str()
            } else {
                reply
            };
            Some(paint.dress(Part::Bad, said))
        }
    }
}
