//! Whether a pattern that a person names with a yes would have allowed the call that they said it to. Must never record
//! anything.

use crate::session::message::{Answering, Handle, Msg};
use crate::session::port::Port;
use crate::session::{SessionError, SessionResult};
use crate::toolbox::permission::Lasting;
use protocol::approval::{Answer, Approval, Scope};
use protocol::tool::Policy;
use std::path::Path;

/// Refuses a pattern that does not fit the answer it comes with, or the call. A question that does not wait is left to
/// the actor to tell about.
pub(super) async fn check(
    handle: &Handle,
    answering: &Answering,
    pattern: &str,
    spill_dir: &Path,
) -> SessionResult<()> {
    let waiting = handle.ask(Msg::Approvals).await?;
    let Some(asked) = waiting.iter().find(|a| a.approval == answering.approval) else {
        return Ok(());
    };
    let lasting = lasting(answering.answer, answering.scope)?;
    if pattern.trim().is_empty() {
        return Err(invalid(
            "the pattern is empty: say what is to be allowed, or leave it out for this very call",
        ));
    }
    let judged = judge(handle, asked, (pattern, lasting), spill_dir).await?;
    match judged {
        Ok(()) => Ok(()),
        Err(why) => Err(invalid(&format!(
            "the pattern {pattern:?} would not allow this call of {}: {why}; change the pattern{}, or answer for this call alone",
            asked.tool,
            offered(asked)
        ))),
    }
}

fn lasting(answer: Answer, scope: Scope) -> SessionResult<Lasting> {
    match (answer, scope) {
        (Answer::Allow, Scope::Session) => Ok(Lasting::Session),
        (Answer::Allow, Scope::Always) => Ok(Lasting::Always),
        (Answer::Allow, Scope::Call | Scope::Program) => Err(invalid(
            "a pattern reaches beyond this call: give it with the scope session or always, or leave it out",
        )),
        (Answer::Deny, _) => Err(invalid(
            "a pattern goes with the answer allow: leave it out, or write what is denied into permissions.json",
        )),
    }
}

async fn judge(
    handle: &Handle,
    asked: &Approval,
    reach: (&str, Lasting),
    spill_dir: &Path,
) -> SessionResult<Result<(), String>> {
    let toolbox = handle.shared.tools().await;
    let Some(tool) = toolbox
        .get(&asked.tool)
        .filter(|tool| tool.name() == asked.tool)
    else {
        return Ok(Err("that tool is not there any more".to_owned()));
    };
    let arguments = asked.arguments.as_object().cloned().unwrap_or_default();
    let rules = Port::new(handle.clone()).rules().await;
    let judged = rules
        .judge_with(reach, tool, &arguments, &handle.shared.cwd, spill_dir)
        .await;
    Ok(match judged.policy {
        Policy::Allow => Ok(()),
        Policy::Ask | Policy::Deny => Err(judged.why),
    })
}

/// The first one that would do, for whoever has to mend theirs.
fn offered(asked: &Approval) -> String {
    let first = asked.patterns.first();
    first.map_or_else(String::new, |pattern| format!(" (such as {pattern:?})"))
}

fn invalid(why: &str) -> SessionError {
    SessionError::Invalid(why.to_owned())
}
