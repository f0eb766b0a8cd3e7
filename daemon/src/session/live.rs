//! What a running turn streams and nobody has stored yet: pieces that join while the previous commit runs.
//! Must never wait, and never be shown to anybody.

use crate::toolbox::tool::Change;
use protocol::event::Level;
use protocol::id::{CallId, MessageId};
use serde_json::Value;
use std::sync::Mutex;
use tokio::sync::Notify;

/// Something streamed, without the place that the actor gives it in the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Saying {
        message: MessageId,
        text: String,
    },
    Thinking {
        message: MessageId,
        text: String,
    },
    ToolOutput {
        call: CallId,
        text: String,
    },
    Changing {
        call: CallId,
        change: Change,
    },
    Doing {
        message: MessageId,
        id: Option<String>,
        name: String,
        arguments: Value,
    },
    Notice {
        level: Level,
        text: String,
    },
}

/// The pieces of one session. Unbounded by itself: what fills it (a model, a tool under its output cap) is bounded.
#[derive(Default)]
pub struct Live {
    pieces: Mutex<Vec<Piece>>,
    filled: Notify,
}

impl Live {
    /// Adds a piece; text of the same message or call as the last one joins it.
    pub fn push(&self, piece: Piece) {
        let mut pieces = self
            .pieces
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let first = pieces.is_empty();
        if let Some(last) = pieces.last_mut()
            && last.join(&piece)
        {
            return;
        }
        pieces.push(piece);
        drop(pieces);
        if first {
            self.filled.notify_one();
        }
    }

    pub fn take(&self) -> Vec<Piece> {
        std::mem::take(
            &mut *self
                .pieces
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    pub fn is_empty(&self) -> bool {
        self.pieces
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .is_empty()
    }

    /// Calls among the pieces, which get their numbers when they are stored.
    pub fn count_calls(&self) -> usize {
        let pieces = self
            .pieces
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        pieces
            .iter()
            .filter(|piece| matches!(piece, Piece::Doing { .. }))
            .count()
    }

    /// Returns when there may be something to take.
    pub async fn filled(&self) {
        self.filled.notified().await;
    }
}

impl Piece {
    fn join(&mut self, more: &Self) -> bool {
        match (self, more) {
            (
                Self::Saying { message: a, text },
                Self::Saying {
                    message: b,
                    text: more,
                },
            )
            | (
                Self::Thinking { message: a, text },
                Self::Thinking {
                    message: b,
                    text: more,
                },
            ) if a == b => {
                text.push_str(more);
                true
            }
            (
                Self::ToolOutput { call: a, text },
                Self::ToolOutput {
                    call: b,
                    text: more,
                },
            ) if a == b => {
                text.push_str(more);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(message: &str, text: &str) -> Piece {
        Piece::Saying {
            message: message.into(),
            text: text.into(),
        }
    }

    #[test]
    fn text_of_one_message_joins_and_others_keep_their_order() {
        let live = Live::default();
        for piece in [
            say("m1", "a"),
            say("m1", "b"),
            say("m2", "c"),
            say("m1", "d"),
        ] {
            live.push(piece);
        }
        assert_eq!(
            live.take(),
            [say("m1", "ab"), say("m2", "c"), say("m1", "d")]
        );
        assert_eq!(live.take(), []);
    }
}
