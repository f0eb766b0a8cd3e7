//! What the daemon and a program's child tell each other: frames of a length, a kind, a number and a text.
//! Must never be spoken between different builds: both ends are the same executable.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The code of a program that ended because the daemon said so, which knows why.
pub(super) const STOPPED: &str = "stopped";

/// Everything before a frame's text, the length included.
const HEAD: usize = 9;

/// What a frame is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// To the child, first and once: a `Job`.
    Job,
    /// To the child: a call of that number succeeded; its result.
    Result,
    /// To the child: a call of that number failed; its `ToolFailure`.
    Failed,
    /// To the child: end now.
    Stop,
    /// To the child: say when nothing is left to do but to wait.
    Idle,
    /// From the child, first: what guards it. A text says why there is no filter.
    Ready,
    /// From the child: a call; an array of the tool's name and its input.
    Call,
    /// From the child: a line of the log.
    Log,
    /// From the child, once: how the program ended, an `Ending`. Calls that it did not wait for may still run.
    Settled,
    /// From the child: nothing is left to do; the number is that of the question.
    Idling,
    /// From the child, last: what else is worth saying, an array of texts.
    Finished,
}

/// In the order of their numbers.
const KINDS: [Kind; 11] = [
    Kind::Job,
    Kind::Result,
    Kind::Failed,
    Kind::Stop,
    Kind::Idle,
    Kind::Ready,
    Kind::Call,
    Kind::Log,
    Kind::Settled,
    Kind::Idling,
    Kind::Finished,
];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) id: u32,
    pub(super) text: Vec<u8>,
}

/// What the other end sent is no frame, or one larger than agreed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Garbled;

impl Frame {
    pub(super) fn new(kind: Kind, id: u32, text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        Self { kind, id, text }
    }

    pub(super) fn encode_into(&self, bytes: &mut Vec<u8>) {
        let length = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        let kind = KINDS.iter().position(|kind| *kind == self.kind);
        bytes.extend(length.to_le_bytes());
        bytes.push(kind.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX));
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(&self.text);
    }
}

/// Bytes as they come, and the frames among them.
#[derive(Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend(bytes);
    }

    /// The next whole frame, whose text is at most `most` long.
    pub(super) fn next(&mut self, most: usize) -> Result<Option<Frame>, Garbled> {
        let rest = &self.bytes[self.taken..];
        let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let [l0, l1, l2, l3, kind, i0, i1, i2, i3] = *head;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let kind = *KINDS.get(usize::from(kind)).ok_or(Garbled)?;
        if length > most {
            return Err(Garbled);
        }
        let Some(text) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Frame::new(kind, u32::from_le_bytes([i0, i1, i2, i3]), text);
        self.taken += HEAD + length;
        Ok(Some(frame))
    }
}

/// A program to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) code: String,
    /// The names of the tools, as their sources name them.
    pub(super) tools: Vec<String>,
    /// Run also where no filter of system calls can be had.
    pub(super) unfiltered: bool,
    /// Processor time, in milliseconds.
    pub(super) cpu_ms: u64,
    pub(super) memory: usize,
    pub(super) stack: usize,
    pub(super) calls: usize,
    pub(super) input: usize,
    pub(super) logs: usize,
    pub(super) result: usize,
    pub(super) depth: usize,
}

/// How a program ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ending {
    Returned(Returned),
    Failed(Failed),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Returned {
    /// JSON; when it was cut, its first part as a JSON string.
    pub(super) result: Box<RawValue>,
    pub(super) truncated: bool,
    /// There was nothing to return.
    pub(super) nothing: bool,
}

impl Returned {
    /// The text is JSON that the engine made.
    pub(super) fn new(json: String, truncated: bool, nothing: bool) -> Self {
        let result = RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self {
            result,
            truncated,
            nothing,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Failed {
    pub(super) code: String,
    pub(super) message: String,
    /// Only of a failure that a tool's call gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<serde_json::Value>,
    /// `line:column`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
}

impl Failed {
    pub(super) fn new(code: &str, message: &str) -> Self {
        Self {
            code: code.to_owned(),
            message: message.to_owned(),
            tool: None,
            retryable: false,
            details: None,
            at: None,
        }
    }
}

/// The beginning of a text that fits into so many bytes.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::new(Kind::Ready, 0, ""),
            Frame::new(Kind::Call, 7, "[\"read\",{}]"),
            Frame::new(Kind::Log, 0, "ä"),
            Frame::new(Kind::Finished, u32::MAX, "[]"),
        ]
    }

    #[test]
    fn any_split_of_the_bytes_gives_the_same_frames() {
        let mut bytes = Vec::new();
        for frame in frames() {
            frame.encode_into(&mut bytes);
        }
        for split in 0..=bytes.len() {
            let (first, second) = bytes.split_at(split);
            let mut inbox = Inbox::default();
            let mut found = Vec::new();
            for part in [first, second] {
                inbox.push(part);
                while let Some(frame) = inbox.next(100).unwrap() {
                    found.push(frame);
                }
            }
            assert_eq!(found, frames(), "split at {split}");
        }
    }

    #[test]
    fn what_is_no_frame_or_too_long_is_an_error_and_takes_no_memory() {
        let mut inbox = Inbox::default();
        inbox.push(&[255; 9]);
        assert_eq!(inbox.next(100), Err(Garbled));
        let mut bytes = Vec::new();
        Frame::new(Kind::Log, 0, vec![b'x'; 101]).encode_into(&mut bytes);
        let mut inbox = Inbox::default();
        inbox.push(&bytes[..HEAD]);
        assert_eq!(inbox.next(100), Err(Garbled));
    }

    #[test]
    fn the_beginning_of_a_text_ends_between_characters() {
        assert_eq!(beginning("aäb", 2), "a");
        assert_eq!(beginning("aäb", 3), "aä");
        assert_eq!(beginning("aäb", 100), "aäb");
    }
}
