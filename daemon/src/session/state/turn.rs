//! What the events of a turn and of its messages do to the state. As the fold itself: pure, and never refuses one.

use super::{Round, State, Token, Turn, number, title_of};
use crate::session::told::prompt_with;
use crate::turn::compaction::BY;
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::MessageId;

impl State {
    pub(super) fn apply_turn(&mut self, event: &Event) {
        match &event.kind {
            EventKind::TurnStarted {
                text,
                images,
                token,
                client,
            } => {
                self.begin_turn(event, token.as_deref());
                self.sums_up = client.as_deref() == Some(BY);
                // A summary that the daemon asks for is no word to the model about what people did.
                let told = match self.sums_up {
                    true => Vec::new(),
                    false => std::mem::take(&mut self.told),
                };
                let content = prompt_with(told, text.clone());
                self.conversation.prompt(content, images.clone());
                if self.title.is_empty() {
                    self.title = title_of(text);
                }
            }
            EventKind::RoundStarted { round, message } => self.begin_round(event, *round, message),
            EventKind::TurnEnded { status, reply } => self.end_turn(event, *status, reply),
            _ => {}
        }
    }

    pub(super) fn apply_message(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Saying {
                message,
                offset,
                text,
            } => {
                self.saw_message(message);
                self.conversation.saying(message, *offset, text);
            }
            EventKind::Said { message, text } => self.said(message, text),
            EventKind::Signed {
                message,
                provider,
                block,
            } => self.conversation.signed(message, provider, block),
            EventKind::Unsaid { message } => self.conversation.unsaid(message),
            EventKind::Thinking { message, .. } => self.saw_message(message),
            _ => {}
        }
    }

    fn begin_turn(&mut self, event: &Event, token: Option<&str>) {
        let Some(id) = event.turn.clone() else { return };
        self.counters.turns = self.counters.turns.max(number(id.as_str()));
        if let Some(token) = token {
            self.tokens
                .insert(token.to_owned(), Token::Turn(id.clone(), event.seq));
        }
        self.last = None;
        self.turn = Some(Turn {
            id,
            started_seq: event.seq,
            rounds: 0,
            round: None,
            repeat: None,
        });
    }

    fn begin_round(&mut self, event: &Event, round: u32, message: &MessageId) {
        self.saw_message(message);
        self.conversation.begin(message, event.seq);
        if let Some(turn) = &mut self.turn {
            turn.rounds = turn.rounds.max(round);
            let message = message.clone();
            turn.round = Some(Round {
                message,
                started_seq: event.seq,
                whole: false,
                calls: 0,
            });
        }
    }

    fn end_turn(&mut self, event: &Event, status: TurnStatus, reply: &str) {
        let gave = status == TurnStatus::Completed && !reply.trim().is_empty();
        if std::mem::take(&mut self.sums_up) && !gave {
            self.conversation.withdraw();
        }
        self.conversation.end();
        if let Some(id) = &event.turn {
            self.ended.insert(id.clone(), event.seq);
            self.open_calls.retain(|c| c.turn.as_ref() != Some(id));
        }
        let open = &self.open_calls;
        self.approvals
            .retain(|_, a| open.iter().any(|c| c.call == a.call));
        self.turn = None;
        self.last = Some((status, reply.to_owned()));
    }

    fn said(&mut self, message: &MessageId, text: &str) {
        self.saw_message(message);
        self.conversation.said(message, text);
        if let Some(round) = self.turn.as_mut().and_then(|t| t.round.as_mut())
            && round.message == *message
        {
            round.whole = true;
        }
    }

    fn saw_message(&mut self, message: &MessageId) {
        self.counters.messages = self.counters.messages.max(number(message.as_str()));
    }
}
