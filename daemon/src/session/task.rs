//! Sub-sessions: each works on one prompt for one call of its parent, with a log of its own, and ends with that call.
//! Must never keep a question to itself: whatever it asks is asked in its parent too.

use super::manager::Sessions;
use super::message::{Handle, Msg};
use super::{NewSession, Prompt, SessionResult, Subscriber};
use crate::toolbox::tool::Outcome;
use protocol::event::{Event, EventKind, Level, TurnStatus};
use protocol::id::{CallId, SessionId};
use protocol::session::Session;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;

/// How deep tasks may start tasks.
pub const DEPTH: u32 = 3;
/// The longest line that tells of a call, in characters.
const LINE: usize = 160;

/// What a sub-session works for.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub parent: SessionId,
    pub call: CallId,
    /// 1 for the task of a session that is none itself.
    pub depth: u32,
}

/// Has a new session work on the prompt; the result has its last reply. Dropping the future cancels it.
pub(super) async fn run(
    sessions: Sessions,
    parent: Handle,
    call: CallId,
    prompt: String,
    cancel: CancellationToken,
) -> Outcome {
    let depth = parent.shared.task.as_ref().map_or(0, |task| task.depth) + 1;
    if depth > DEPTH {
        return Err(format!(
            "tasks may start tasks {DEPTH} deep, and this one is: do it here"
        ));
    }
    if prompt.trim().is_empty() {
        return Err("prompt is empty: say what is to be done".to_owned());
    }
    let task = Task {
        parent: parent.id.clone(),
        call,
        depth,
    };
    let cannot = |why: super::SessionError| format!("no session for the task: {why}");
    let child = create(&sessions, &parent, &task).await.map_err(cannot)?;
    let mut watch = Watch {
        parent,
        call: task.call,
        child: child.id.clone(),
        changes: HashMap::new(),
        ended: false,
        sessions,
    };
    watch
        .parent
        .output(&watch.call, &format!("session {}\n", watch.child));
    watch.run(prompt, cancel).await.map_err(cannot)
}

async fn create(sessions: &Sessions, parent: &Handle, task: &Task) -> SessionResult<Session> {
    let Session {
        cwd,
        provider,
        model,
        ..
    } = parent.ask(Msg::View).await?;
    let new = NewSession {
        cwd,
        env: Some((*parent.shared.env).clone()),
        provider: Some(provider),
        model,
        // What is handed on is done with no more than one has oneself.
        toolbox: parent.shared.toolbox.clone(),
        ..NewSession::default()
    };
    sessions.create_for(new, task.clone()).await
}

/// Looks after a sub-session until its turn has ended.
struct Watch {
    sessions: Sessions,
    parent: Handle,
    call: CallId,
    child: SessionId,
    /// What calls make of files, until they ask.
    changes: HashMap<CallId, EventKind>,
    ended: bool,
}

impl Watch {
    async fn run(
        &mut self,
        prompt: String,
        cancel: CancellationToken,
    ) -> SessionResult<Map<String, Value>> {
        let mut events = self.sessions.attach(&self.child, Some(0)).await?;
        let prompt = Prompt {
            text: prompt,
            client: Some(format!("task of {}", self.parent.id)),
            ..Prompt::default()
        };
        self.sessions.start(&self.child, prompt).await?;
        let mut cancelled = false;
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.sessions.cancel(&self.child, None).await?;
                    continue;
                }
                event = next(&mut events) => event?,
            };
            if let EventKind::TurnEnded { status, reply } = &event.kind {
                self.ended = true;
                return Ok(result(&self.child, *status, reply));
            }
            self.pass_on(&event).await?;
        }
    }

    /// Questions, their answers and what else people should see, as the parent's own.
    async fn pass_on(&mut self, event: &Event) -> SessionResult<()> {
        match &event.kind {
            EventKind::Doing {
                name, arguments, ..
            } => self.parent.output(&self.call, &line(name, arguments)),
            EventKind::Notice { level, text } if *level != Level::Info => {
                let text = format!("task {}: {text}", self.child);
                self.parent.notice(*level, &text);
            }
            // Of a call that asks nobody it would be taken for that of the next one that does.
            EventKind::Changing { call, .. } => {
                self.changes.insert(call.clone(), event.kind.clone());
            }
            EventKind::Done { call, .. } => {
                self.changes.remove(call);
            }
            kind => {
                if let EventKind::ApprovalAsked { call, .. } = kind
                    && let Some(change) = self.changes.remove(call)
                {
                    self.relay(&change).await?;
                }
                self.relay(kind).await?;
            }
        }
        Ok(())
    }

    async fn relay(&self, kind: &EventKind) -> SessionResult<()> {
        match for_parent(kind, &self.child, &self.call) {
            Some(kind) => {
                let call = self.call.clone();
                let told = self.parent.ask(|reply| Msg::Relay(call, kind, reply));
                told.await
            }
            None => Ok(()),
        }
    }
}

/// Nobody waits for it any more.
impl Drop for Watch {
    fn drop(&mut self) {
        if !self.ended {
            let (sessions, child) = (self.sessions.clone(), self.child.clone());
            tokio::spawn(async move {
                // A session that is gone has nothing to cancel.
                let _ = sessions.cancel(&child, None).await;
            });
        }
    }
}

async fn next(events: &mut Subscriber) -> SessionResult<Event> {
    events.next().await.map(|entry| (*entry.event).clone())
}

/// What of a sub-session is asked of its parent's people. The id stays: who answers it answers the sub-session.
fn for_parent(kind: &EventKind, child: &SessionId, by: &CallId) -> Option<EventKind> {
    match kind {
        EventKind::ApprovalAsked {
            approval,
            tool,
            arguments,
            why,
            patterns,
            ..
        } => Some(EventKind::ApprovalAsked {
            approval: approval.clone(),
            call: by.clone(),
            tool: tool.clone(),
            arguments: arguments.clone(),
            why: format!("the task {child} asks: {why}"),
            patterns: patterns.clone(),
        }),
        EventKind::Changing {
            size, diff, places, ..
        } => Some(EventKind::Changing {
            call: by.clone(),
            size: *size,
            diff: diff.clone(),
            places: *places,
        }),
        // What is allowed for the session is so for the one that the person saw.
        EventKind::ApprovalAnswered { .. }
        | EventKind::ApprovalWithdrawn { .. }
        | EventKind::Granted { .. } => Some(kind.clone()),
        _ => None,
    }
}

fn result(child: &SessionId, status: TurnStatus, reply: &str) -> Map<String, Value> {
    let key = match status {
        TurnStatus::Completed => "content",
        TurnStatus::Cancelled
        | TurnStatus::Failed
        | TurnStatus::Interrupted
        | TurnStatus::Refused
        | TurnStatus::MaxRounds => "error",
    };
    let reply = match reply.trim() {
        "" => "it ended without a reply",
        reply => reply.strip_prefix("Error: ").unwrap_or(reply),
    };
    let content = [(key, json!(reply)), ("session", json!(child))];
    Map::from_iter(content.map(|(name, value)| (name.to_owned(), value)))
}

fn line(name: &str, arguments: &Value) -> String {
    let arguments = match arguments {
        Value::Object(map) if map.is_empty() => String::new(),
        other => format!(" {other}"),
    };
    let line: String = format!("{name}{arguments}").chars().take(LINE).collect();
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_is_the_result_and_any_other_end_is_a_failure_that_names_the_session() {
        let child = "calm-otter-1".into();
        let of = |status, reply| Value::Object(result(&child, status, reply));
        assert_eq!(
            of(TurnStatus::Completed, "done\n"),
            json!({"content": "done", "session": "calm-otter-1"})
        );
        assert_eq!(
            of(TurnStatus::Failed, "Error: no model"),
            json!({"error": "no model", "session": "calm-otter-1"})
        );
        assert_eq!(
            of(TurnStatus::Completed, " ")["content"],
            "it ended without a reply"
        );
    }

    #[test]
    fn question_is_asked_for_the_parents_call_under_its_own_id() {
        let asked = EventKind::ApprovalAsked {
            approval: "child-1.a1".into(),
            call: "c7".into(),
            tool: "write".into(),
            arguments: json!({}),
            why: "the default".into(),
            patterns: vec!["a".into()],
        };
        let Some(EventKind::ApprovalAsked {
            approval,
            call,
            why,
            patterns,
            ..
        }) = for_parent(&asked, &"child-1".into(), &"c2".into())
        else {
            panic!("it is asked");
        };
        assert_eq!((approval.as_str(), call.as_str()), ("child-1.a1", "c2"));
        assert_eq!(why, "the task child-1 asks: the default");
        assert_eq!(patterns, ["a"]);
    }

    #[test]
    fn line_of_a_call_is_short() {
        assert_eq!(line("list", &json!({})), "list\n");
        assert_eq!(
            line("read", &json!({"path": "a"})),
            "read {\"path\":\"a\"}\n"
        );
        assert_eq!(
            line("x", &json!({"a": "é".repeat(999)})).chars().count(),
            LINE + 1
        );
    }
}
