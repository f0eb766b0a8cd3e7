//! What of a session this client has shown: the cursor, and how much of each text. The only place that folds events
//! into view state; must never decide how anything looks.

use protocol::event::{Event, EventKind};
use std::collections::HashMap;

/// How far a session's events have been shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    cursor: u64,
    /// Unicode scalar values shown of each text that still grows, by message or call.
    shown: HashMap<String, u64>,
}

impl View {
    /// A view whose first event is the one after `cursor`.
    pub(crate) fn after(cursor: u64) -> Self {
        Self {
            cursor,
            shown: HashMap::new(),
        }
    }

    /// The newest event shown: where to attach again.
    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// What of an event is new here: nothing of one that was shown, and only the rest of a text that was shown in part.
    /// A folded event repeats its text from the beginning, so texts are cut by their offset.
    pub(crate) fn take(&mut self, mut event: Event) -> Option<Event> {
        if event.seq <= self.cursor {
            return None;
        }
        self.cursor = event.seq;
        let fresh = match &mut event.kind {
            EventKind::Saying {
                message,
                offset,
                text,
            }
            | EventKind::Thinking {
                message,
                offset,
                text,
            } => self.cut(message.as_str(), offset, text),
            EventKind::ToolOutput { call, offset, text } => self.cut(call.as_str(), offset, text),
            EventKind::Said { message, text } => {
                let shown = self.shown.remove(message.as_str()).unwrap_or(0);
                *text = skip(text, shown).to_string();
                true
            }
            EventKind::Unsaid { message } => {
                self.shown.remove(message.as_str());
                true
            }
            EventKind::Done { call, .. } => {
                self.shown.remove(call.as_str());
                true
            }
            EventKind::TurnEnded { .. } => {
                self.shown.clear();
                true
            }
            _ => true,
        };
        fresh.then_some(event)
    }

    /// Cuts off what was shown, and says whether anything is left.
    fn cut(&mut self, source: &str, offset: &mut u64, text: &mut String) -> bool {
        let shown = self.shown.get(source).copied().unwrap_or(0);
        let length = text.chars().count() as u64;
        let end = *offset + length;
        if end <= shown {
            return false;
        }
        if *offset < shown {
            *text = skip(text, shown - *offset).to_string();
            *offset = shown;
        }
        self.shown.insert(source.to_string(), end);
        true
    }
}

fn skip(text: &str, scalars: u64) -> &str {
    let scalars = usize::try_from(scalars).unwrap_or(usize::MAX);
    match text.char_indices().nth(scalars) {
        Some((at, _)) => &text[at..],
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;
    use serde_json::json;

    fn saying(seq: u64, offset: u64, text: &str) -> Event {
        event(
            seq,
            json!({"type": "saying", "message": "m1", "offset": offset, "text": text}),
        )
    }

    fn folded(first: u64, seq: u64, text: &str) -> Event {
        event(
            seq,
            json!({"type": "saying", "message": "m1", "offset": 0, "text": text, "first_seq": first}),
        )
    }

    fn texts(view: &mut View, events: Vec<Event>) -> String {
        let text_of = |event: Event| match event.kind {
            EventKind::Saying { text, .. } | EventKind::Said { text, .. } => text,
            _ => String::new(),
        };
        events
            .into_iter()
            .filter_map(|event| view.take(event))
            .map(text_of)
            .collect()
    }

    #[test]
    fn a_repeated_event_is_not_shown_again() {
        let mut view = View::after(0);
        let events = vec![saying(1, 0, "a"), saying(1, 0, "a"), saying(2, 1, "b")];
        assert_eq!(texts(&mut view, events), "ab");
        assert_eq!(view.cursor(), 2);
    }

    #[test]
    fn a_folded_message_adds_only_what_lies_beyond() {
        let mut view = View::after(0);
        let events = vec![
            saying(1, 0, "grün"),
            saying(2, 4, "e 😀"),
            folded(1, 5, "grüne 😀 Au"),
        ];
        assert_eq!(texts(&mut view, events), "grüne 😀 Au");
    }

    #[test]
    fn every_cursor_gives_the_same_text_when_the_log_was_folded_meanwhile() {
        let whole = "dämmrig: 😀😀 und fort";
        let pieces: Vec<char> = whole.chars().collect();
        for seen in 0..=pieces.len() {
            let mut view = View::after(0);
            let mut events: Vec<Event> = (0..seen)
                .map(|at| saying(at as u64 + 1, at as u64, &pieces[at].to_string()))
                .collect();
            events.push(folded(1, pieces.len() as u64 + 1, whole));
            events.push(event(
                pieces.len() as u64 + 2,
                json!({"type": "said", "message": "m1", "text": whole}),
            ));
            assert_eq!(texts(&mut view, events), whole, "seen {seen}");
        }
    }

    #[test]
    fn a_withdrawn_draft_begins_anew() {
        let mut view = View::after(0);
        let events = vec![
            saying(1, 0, "tok"),
            event(2, json!({"type": "unsaid", "message": "m1"})),
            saying(3, 0, "tok"),
            event(4, json!({"type": "said", "message": "m1", "text": "tok"})),
        ];
        assert_eq!(texts(&mut view, events), "toktok");
    }

    #[test]
    fn a_text_that_began_before_the_view_is_shown_from_where_it_stands() {
        let mut view = View::after(7);
        assert_eq!(
            texts(&mut view, vec![saying(8, 3, "d"), saying(9, 4, "e")]),
            "de"
        );
    }
}
