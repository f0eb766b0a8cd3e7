//! A session's events as the updates that an editor is sent. Holds what the protocol wants repeated: a running call's
//! output is sent whole each time, so only its end is kept.

use super::call::{self, Old};
use super::plan;
use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, ImageContent, Notice, NoticeSeverity, SessionInfoUpdate,
    SessionUpdate, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    UsageUpdate,
};
use protocol::event::{Event, EventKind, Image, Level, TurnStatus};
use std::collections::HashMap;
use std::path::PathBuf;

/// Bytes of a running call's output that are shown; its result has what the model is given.
const OUTPUT: usize = 8 << 10;

/// Whose prompt began a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::acp) enum Prompted {
    /// This editor's, which shows it already.
    Here,
    /// Somebody else's.
    Elsewhere,
}

/// What of a session's running calls has been shown.
#[derive(Debug)]
pub(in crate::acp) struct Updates {
    cwd: PathBuf,
    /// Whether the editor shows notices apart from what the model says.
    notices: bool,
    calls: HashMap<String, Shown>,
    /// What the file holds that the next call writes.
    old: Old,
}

/// A call that has not ended.
#[derive(Debug, Default)]
struct Shown {
    tool: String,
    changes: Vec<ToolCallContent>,
    output: String,
}

impl Updates {
    pub(in crate::acp) fn new(cwd: PathBuf, notices: bool) -> Self {
        Self {
            cwd,
            notices,
            calls: HashMap::new(),
            old: Old::Unknown,
        }
    }

    /// Says what the file holds that the call of the next event writes.
    pub(in crate::acp) fn before(&mut self, old: Old) {
        self.old = old;
    }

    /// What an event tells an editor.
    pub(in crate::acp) fn of(&mut self, event: &Event, prompted: Prompted) -> Vec<SessionUpdate> {
        match &event.kind {
            EventKind::TurnStarted { text, images, .. } if prompted == Prompted::Elsewhere => {
                asked(text, images)
            }
            EventKind::Steered { text } => asked(text, &[]),
            EventKind::Saying { message, text, .. } | EventKind::Said { message, text } => {
                said(message.as_str(), text)
            }
            EventKind::Thinking { message, text, .. } => vec![SessionUpdate::AgentThoughtChunk(
                chunk(text.as_str()).message_id(message.as_str()),
            )],
            EventKind::Unsaid { message } => said(
                message.as_str(),
                "\n\n[withdrawn: the connection to the model broke, and it is asked again]\n\n",
            ),
            EventKind::Doing {
                call,
                name,
                arguments,
                ..
            } => self.doing(call.as_str(), name, arguments),
            EventKind::CallStarted { call } => {
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                vec![changed(call.as_str(), fields)]
            }
            EventKind::ToolOutput { call, text, .. } => self.output(call.as_str(), text),
            EventKind::Done { call, result, .. } => self.done(call.as_str(), result),
            EventKind::Usage {
                input,
                output,
                window: Some(window),
                ..
            } => vec![SessionUpdate::UsageUpdate(UsageUpdate::new(
                input + output,
                *window,
            ))],
            EventKind::Renamed { title } => {
                let info = SessionInfoUpdate::new().title(title.clone());
                vec![SessionUpdate::SessionInfoUpdate(info)]
            }
            EventKind::CommandOutput { text } => said(&format!("e{}", event.seq), text),
            EventKind::Notice { level, text } => self.notice(*level, text),
            EventKind::Retrying { why, .. } => {
                self.notice(Level::Info, &format!("the model is asked again: {why}"))
            }
            EventKind::Compacted { .. } => self.notice(
                Level::Info,
                "the model goes on with a summary of what came before",
            ),
            EventKind::Cleared => {
                self.notice(Level::Info, "the model sees nothing of what came before")
            }
            EventKind::TurnEnded { status, reply } => self.ended(*status, reply, prompted),
            EventKind::TurnStarted { .. }
            | EventKind::RoundStarted { .. }
            | EventKind::Changing { .. }
            | EventKind::ApprovalAsked { .. }
            | EventKind::ApprovalAnswered { .. }
            | EventKind::ApprovalWithdrawn { .. }
            | EventKind::Signed { .. }
            | EventKind::Usage { .. }
            | EventKind::ProviderSwitched { .. }
            | EventKind::Replaced { .. }
            | EventKind::Queued { .. }
            | EventKind::Dequeued { .. }
            | EventKind::Granted { .. }
            | EventKind::Unknown => Vec::new(),
        }
    }

    /// Something people should know: apart from the model's words where the editor can, else as a thought.
    pub(in crate::acp) fn notice(&self, level: Level, text: &str) -> Vec<SessionUpdate> {
        if !self.notices {
            return vec![SessionUpdate::AgentThoughtChunk(chunk(format!("{text}\n")))];
        }
        let severity = match level {
            Level::Info => NoticeSeverity::Info,
            Level::Warning => NoticeSeverity::Warning,
            Level::Error => NoticeSeverity::Error,
        };
        vec![SessionUpdate::Notice(Notice::new(severity, text))]
    }

    fn doing(&mut self, id: &str, tool: &str, arguments: &serde_json::Value) -> Vec<SessionUpdate> {
        let begun = call::begun(
            id,
            tool,
            arguments,
            &self.cwd,
            &std::mem::take(&mut self.old),
        );
        let shown = Shown {
            tool: tool.to_owned(),
            changes: begun.content.clone(),
            output: String::new(),
        };
        self.calls.insert(id.to_owned(), shown);
        vec![SessionUpdate::ToolCall(begun)]
    }

    fn output(&mut self, id: &str, text: &str) -> Vec<SessionUpdate> {
        let shown = self.calls.entry(id.to_owned()).or_default();
        shown.output.push_str(text);
        keep_end(&mut shown.output);
        let mut content = shown.changes.clone();
        content.push(shown.output.as_str().into());
        vec![changed(id, ToolCallUpdateFields::new().content(content))]
    }

    fn done(
        &mut self,
        id: &str,
        result: &serde_json::Map<String, serde_json::Value>,
    ) -> Vec<SessionUpdate> {
        let shown = self.calls.remove(id).unwrap_or_default();
        let plan = plan::of(&shown.tool, result).map(SessionUpdate::Plan);
        let ended = changed(id, call::ended(result, shown.changes));
        [ended].into_iter().chain(plan).collect()
    }

    /// A turn that this editor asked for is answered with how it ended; of others it is told.
    fn ended(&mut self, status: TurnStatus, reply: &str, prompted: Prompted) -> Vec<SessionUpdate> {
        self.calls.clear();
        match (status, prompted) {
            (TurnStatus::Completed | TurnStatus::Cancelled, _) | (_, Prompted::Here) => Vec::new(),
            (_, Prompted::Elsewhere) => self.notice(Level::Error, reply),
        }
    }
}

fn asked(text: &str, images: &[Image]) -> Vec<SessionUpdate> {
    let picture = |image: &Image| {
        ContentBlock::Image(ImageContent::new(
            image.data.clone(),
            image.mime_type.clone(),
        ))
    };
    let words = Some(ContentBlock::from(text)).filter(|_| !text.is_empty());
    let blocks = words.into_iter().chain(images.iter().map(picture));
    blocks
        .map(|block| SessionUpdate::UserMessageChunk(ContentChunk::new(block)))
        .collect()
}

/// Words of the model; none where there are none, such as of a message that has been shown whole.
pub(in crate::acp) fn said(message: &str, text: &str) -> Vec<SessionUpdate> {
    if text.is_empty() {
        return Vec::new();
    }
    let chunk = chunk(text).message_id(message);
    vec![SessionUpdate::AgentMessageChunk(chunk)]
}

fn chunk(text: impl Into<String>) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text.into()))
}

fn changed(id: &str, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields))
}

fn keep_end(text: &mut String) {
    if text.len() > OUTPUT {
        let mut cut = text.len() - OUTPUT;
        while !text.is_char_boundary(cut) {
            cut += 1;
        }
        text.drain(..cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;
    use serde_json::{Value, json};

    fn check(updates: &mut Updates, kind: Value) -> Value {
        let updates = updates.of(&event(1, kind), Prompted::Elsewhere);
        serde_json::to_value(updates).unwrap()
    }

    #[test]
    fn output_of_a_long_call_is_shown_by_its_end_beside_its_change() {
        let mut updates = Updates::new("/w".into(), false);
        let doing = json!({"type": "doing", "call": "c1", "name": "write",
                           "arguments": {"path": "a", "content": "x"}});
        updates.before(Old::None);
        check(&mut updates, doing);
        for piece in 0..5 {
            let text = format!("{}ü", "x".repeat(4000));
            let output =
                json!({"type": "tool_output", "call": "c1", "offset": piece * 4001, "text": text});
            let shown = check(&mut updates, output);
            let content = &shown[0]["content"];
            assert_eq!(content[0]["type"], "diff");
            let text = content[1]["content"]["text"].as_str().unwrap();
            assert!(
                text.len() <= OUTPUT && text.ends_with("xü"),
                "{}",
                text.len()
            );
        }
    }

    #[test]
    fn a_list_of_things_to_do_is_a_plan() {
        let mut updates = Updates::new("/w".into(), false);
        check(
            &mut updates,
            json!({"type": "doing", "call": "c1", "name": "todo", "arguments": {}}),
        );
        let items = json!([{"text": "a", "status": "done"}, {"text": "b", "status": "pending"}]);
        let done =
            json!({"type": "done", "call": "c1", "result": {"items": items, "ok": true}, "ms": 1});
        let shown = check(&mut updates, done);
        assert_eq!(shown[1]["sessionUpdate"], "plan");
        let statuses: Vec<&Value> = (0..2)
            .map(|at| &shown[1]["entries"][at]["status"])
            .collect();
        assert_eq!(statuses, ["completed", "pending"]);
    }

    #[test]
    fn own_prompt_is_not_repeated_and_that_of_another_is() {
        let mut updates = Updates::new("/w".into(), false);
        let started = event(1, json!({"type": "turn_started", "text": "hi"}));
        assert_eq!(updates.of(&started, Prompted::Here), []);
        assert_eq!(updates.of(&started, Prompted::Elsewhere).len(), 1);
    }

    #[test]
    fn notices_stand_apart_only_where_the_editor_says_it_shows_them() {
        for (notices, kind) in [(false, "agent_thought_chunk"), (true, "notice")] {
            let mut updates = Updates::new("/w".into(), notices);
            let notice = json!({"type": "notice", "level": "warning", "text": "x"});
            assert_eq!(check(&mut updates, notice)[0]["sessionUpdate"], kind);
        }
    }
}
