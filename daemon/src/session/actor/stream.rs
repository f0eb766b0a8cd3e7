//! What a running turn and its calls stream, as the actor stores it: pieces in their order, joined when they are whole.
//! Must never place a piece of what is over.

use super::held::begun;
use super::{Actor, Draft};
use crate::session::live::Piece;
use crate::session::state::thought_of;
use crate::toolbox::result::{DEEPEST, flatten};
use crate::toolbox::tool::Change;
use protocol::event::EventKind;
use protocol::id::{CallId, TurnId};

impl Actor {
    /// What is held and what was streamed, as events in their order: the next commit begins with them.
    pub(super) fn drain(&mut self) -> Vec<Draft> {
        let mut drafts = self.held.take();
        let pieces = self.live.take();
        if pieces.is_empty() {
            return drafts;
        }
        let mut calls = self.state.counters.calls;
        for piece in pieces {
            let placed = self.place(piece, &mut calls, &drafts);
            drafts.extend(placed);
        }
        drafts
    }

    /// A piece as an event; none when what it belongs to is over.
    fn place(&mut self, piece: Piece, calls: &mut u64, before: &[Draft]) -> Option<Draft> {
        let turn = self.state.turn.as_ref();
        let current = turn.and_then(|t| t.round.as_ref()).map(|r| &r.message);
        let id = turn.map(|t| t.id.clone());
        match piece {
            Piece::Saying { message, text } if Some(&message) == current => {
                let offset = self.advance(message.as_str(), &text);
                Some((
                    id,
                    EventKind::Saying {
                        message,
                        offset,
                        text,
                    },
                ))
            }
            Piece::Thinking { message, text } if Some(&message) == current => {
                let message = thought_of(&message);
                let offset = self.advance(message.as_str(), &text);
                Some((
                    id,
                    EventKind::Thinking {
                        message,
                        offset,
                        text,
                    },
                ))
            }
            Piece::Doing {
                message,
                id: own,
                name,
                mut arguments,
            } if Some(&message) == current => {
                *calls += 1;
                flatten(&mut arguments, DEEPEST);
                let (call, message) = (format!("c{calls}").into(), Some(message));
                let doing = EventKind::Doing {
                    call,
                    message,
                    name,
                    arguments,
                    id: own,
                    parent: None,
                    via: None,
                    tell: false,
                };
                Some((id, doing))
            }
            Piece::ToolOutput { call, text } => {
                let turn = self.turn_of_call(&call, before)?;
                let offset = self.advance(call.as_str(), &text);
                Some((turn, EventKind::ToolOutput { call, offset, text }))
            }
            Piece::Changing { call, change } => {
                let turn = self.turn_of_call(&call, before)?;
                let Change {
                    size, diff, places, ..
                } = change;
                let kind = EventKind::Changing {
                    call,
                    size,
                    diff,
                    places,
                };
                Some((turn, kind))
            }
            Piece::Notice { level, text } => Some((id, EventKind::Notice { level, text })),
            Piece::Saying { .. } | Piece::Thinking { .. } | Piece::Doing { .. } => None,
        }
    }

    /// The turn of a call that is not over, if it has one.
    fn turn_of_call(&self, call: &CallId, before: &[Draft]) -> Option<Option<TurnId>> {
        let open = self.state.open_calls.iter().find(|c| c.call == *call);
        match open {
            Some(open) => Some(open.turn.clone()),
            None => begun(before, call),
        }
    }

    fn advance(&mut self, key: &str, text: &str) -> u64 {
        let count = text.chars().count() as u64;
        match self.streaming.get_mut(key) {
            Some(chars) => {
                *chars += count;
                *chars - count
            }
            None => {
                self.streaming.insert(key.to_owned(), count);
                0
            }
        }
    }

    /// Joins the pieces of what is whole.
    pub(super) fn fold(&mut self, kind: &EventKind) {
        match kind {
            EventKind::Said { message, .. } => {
                self.fold_key(message.as_str());
                self.fold_key(thought_of(message).as_str());
            }
            EventKind::Unsaid { message } => self.fold_key(message.as_str()),
            EventKind::Done { call, .. } => self.fold_key(call.as_str()),
            EventKind::TurnEnded { .. } => {
                for key in self.streaming.keys().cloned().collect::<Vec<_>>() {
                    self.fold_key(&key);
                }
            }
            _ => {}
        }
    }

    fn fold_key(&mut self, key: &str) {
        if self.streaming.remove(key).is_some() {
            self.shared.services.store.fold(&self.id, key);
        }
    }
}
