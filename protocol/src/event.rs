//! Events: what happened in a session, one variant each. They are the session; everything else is derived from them.
//! Names are never reused, and a reader ignores what it does not know.

use crate::approval::{Answer, Scope};
use crate::id::{ApprovalId, CallId, MessageId, QueuedId, SessionId, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing that happened: an envelope and what happened, flat in one JSON object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The session it happened in.
    pub session: SessionId,
    /// The event's number: starts at 1, consecutive in its session, over restarts too.
    pub seq: u64,
    /// Only on the folded pieces of a finished message (call): the number of the first piece. `seq` is the last's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_seq: Option<u64>,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The turn it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// The number of the first event that this one stands for: its own, but for folded pieces.
    pub fn first(&self) -> u64 {
        self.first_seq.unwrap_or(self.seq)
    }
}

/// What happened. `type` on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// A person's (or script's) prompt began a turn.
    TurnStarted {
        /// The prompt.
        text: String,
        /// Pictures that go with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// The caller's token: the same token is the same turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        /// Who sent it, as named in `initialize`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
    },
    /// The model is asked: what it says, thinks and does from here on belongs to this message. Words of people before
    /// this event are what it sees.
    RoundStarted {
        /// Which round trip of the turn; a retry keeps the number.
        round: u32,
        /// The message that `saying`, `said` and `doing` of this round trip name.
        message: MessageId,
    },
    /// A piece of the model's reply.
    Saying {
        /// The message it belongs to.
        message: MessageId,
        /// Where it belongs: Unicode scalar values of the message before it.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// A piece of the model's thinking: shown, never part of the conversation.
    Thinking {
        /// The thought it belongs to.
        message: MessageId,
        /// Where it belongs: Unicode scalar values of the thought before it.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// The model asks for a tool.
    Doing {
        /// The call.
        call: CallId,
        /// The message (round trip) it belongs to; none for a call that no model made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        /// The name as the model wrote it; an alias stays an alias.
        name: String,
        /// The arguments as the model wrote them.
        arguments: Value,
        /// The provider's own id of the call, given back to it in the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The call that made this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// How it was made, when not by the model: `run`, `tool`, `search`, `code`, `plugin`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
        /// Whether its result goes to the model with the next prompt or steering word: a person's own command.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tell: bool,
    },
    /// A call waits for a person.
    ApprovalAsked {
        /// The question, answered by `approval/answer`.
        approval: ApprovalId,
        /// The call that waits.
        call: CallId,
        /// The tool's real name.
        tool: String,
        /// Exactly what would run.
        arguments: Value,
        /// Which rule asks.
        why: String,
        /// Patterns that an answer for the session or for good may give, the likeliest first: each allows this call, and
        /// none more than it says. Empty where there is none to offer.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        patterns: Vec<String>,
    },
    /// The first answer, which is the one that counts.
    ApprovalAnswered {
        /// The question.
        approval: ApprovalId,
        /// Yes or no.
        answer: Answer,
        /// How far it reaches.
        scope: Scope,
        /// Who answered.
        by: String,
        /// The reason that the model reads with a no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The pattern that it allows from now on, where the answer named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
    /// What a call that writes a file makes of the one that is there: before its question, or before it runs unasked. Not for
    /// a file that is new.
    Changing {
        /// The call.
        call: CallId,
        /// Bytes of the file as it is.
        size: u64,
        /// The hunks of a unified diff, without a head; none where a side is no text or is large, or the diff is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        /// In how many places, of a call that replaces a piece of the file by another (`edit`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        places: Option<u64>,
    },
    /// A question that nobody can answer any more.
    ApprovalWithdrawn {
        /// The question.
        approval: ApprovalId,
        /// Why.
        why: String,
    },
    /// A call's handler begins. On the disk before the handler runs.
    CallStarted {
        /// The call.
        call: CallId,
    },
    /// A piece of what a running tool prints.
    ToolOutput {
        /// The call.
        call: CallId,
        /// Where it belongs: Unicode scalar values of the call's output before it.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// A call ended, also when it never started.
    Done {
        /// The call.
        call: CallId,
        /// The result object, with `ok`.
        result: Map<String, Value>,
        /// How long the handler took, in milliseconds.
        ms: u64,
    },
    /// A message is whole.
    Said {
        /// The message.
        message: MessageId,
        /// All of it.
        text: String,
    },
    /// A signed block that only the provider which made it may see again, unchanged.
    Signed {
        /// The message (round trip) it belongs to.
        message: MessageId,
        /// The provider that made it.
        provider: String,
        /// The block as the vendor wrote it.
        block: Value,
    },
    /// Something people (not the model) should know.
    Notice {
        /// How grave.
        level: Level,
        /// What.
        text: String,
    },
    /// Tokens of one round trip.
    Usage {
        /// Tokens sent.
        input: u64,
        /// Tokens received.
        output: u64,
        /// Of those sent, how many came from the vendor's cache.
        #[serde(default)]
        cached: u64,
        /// The model's context window in tokens, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u64>,
    },
    /// A round trip failed and will be tried again.
    Retrying {
        /// Which try comes next; the first retry is 2.
        attempt: u32,
        /// The pause before it, in milliseconds.
        after_ms: u64,
        /// What failed.
        why: String,
    },
    /// A draft is withdrawn: what was shown of this message does not count.
    Unsaid {
        /// The message or thought.
        message: MessageId,
    },
    /// The session talks to another provider or model from here on.
    ProviderSwitched {
        /// The provider.
        name: String,
        /// The model, where the provider has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// The session has another title.
    Renamed {
        /// The title.
        title: String,
    },
    /// The conversation so far is represented by a summary; the log keeps the original.
    Compacted {
        /// What the model sees instead.
        summary: String,
    },
    /// The model sees nothing of what came before; the log keeps it.
    Cleared,
    /// The model sees these messages instead of what came before; the log keeps it.
    Replaced {
        /// Messages in the provider interface's form (`role`, `content`, `tool_calls`, `tool_call_id`).
        messages: Vec<Value>,
    },
    /// Text from a command or plugin, for people.
    CommandOutput {
        /// The text.
        text: String,
    },
    /// A prompt waits behind the running turn.
    Queued {
        /// Its id, for `queue/remove`.
        queued: QueuedId,
        /// The prompt.
        text: String,
        /// Pictures that go with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// The caller's token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
    },
    /// A waiting prompt left the queue: it became a turn (the next event) or was removed.
    Dequeued {
        /// Which.
        queued: QueuedId,
    },
    /// A person's word into the running turn; the model sees it at its next round trip.
    Steered {
        /// The text.
        text: String,
    },
    /// A tool's approval rule for the rest of this session.
    Granted {
        /// The tool's real name.
        tool: String,
        /// Patterns on the tool's subject (command or path) that the grant covers; `*` is all.
        pattern: String,
    },
    /// The turn ended; nothing more of it follows.
    TurnEnded {
        /// How.
        status: TurnStatus,
        /// The reply, or why there is none.
        reply: String,
    },
    /// An event of a newer release: readers skip it.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// A picture of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Image {
    /// `image/png`, `image/jpeg`, ...
    pub mime_type: String,
    /// The bytes in Base64.
    pub data: String,
}

/// Pictures that every vendor takes.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

impl Image {
    /// Why it is no picture that every vendor takes. One that none takes spoils the request it stands in, and every later
    /// one of the conversation.
    pub fn fault(&self) -> Option<String> {
        let kind = self.mime_type.as_str();
        match PICTURES.contains(&kind) {
            false => Some(format!(
                "a picture is one of {}, not {kind:?}",
                PICTURES.join(", ")
            )),
            true if !is_base64(&self.data) => {
                Some("a picture's data is Base64, and not empty".to_owned())
            }
            true => None,
        }
    }
}

/// The usual alphabet, filled up to a multiple of four.
fn is_base64(text: &str) -> bool {
    let filled = text.trim_end_matches('=');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !filled.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - filled.len() <= 2
        && filled.bytes().all(plain)
}

/// How grave a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Good to know.
    Info,
    /// Something does not work as meant, and the session goes on.
    Warning,
    /// Something failed.
    Error,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model made no further call.
    Completed,
    /// A person stopped it.
    Cancelled,
    /// The provider failed; the reply says how.
    Failed,
    /// The daemon stopped or died in the middle.
    Interrupted,
    /// It may not run (trust, limits).
    Refused,
    /// It took more round trips than allowed.
    MaxRounds,
}

impl TurnStatus {
    /// The status as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Refused => "refused",
            Self::MaxRounds => "max_rounds",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Image;

    #[test]
    fn only_a_kind_that_every_vendor_takes_in_base64_is_a_picture() {
        let fault = |kind: &str, data: &str| {
            let image = Image {
                mime_type: kind.to_owned(),
                data: data.to_owned(),
            };
            image.fault()
        };
        for data in ["aGk=", "aA==", "aGkh", "+/+/"] {
            assert_eq!(fault("image/png", data), None, "{data}");
        }
        let wrong = [
            "",
            "====",
            "aGk",
            "a===",
            "!!!!",
            "aG k",
            "a=k=",
            "data:image/png;base64,aGk=",
        ];
        for data in wrong {
            assert!(fault("image/png", data).is_some(), "{data}");
        }
        assert!(fault("image/svg+xml", "aGk=").is_some());
    }
}
