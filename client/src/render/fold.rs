//! What does not stay on the screen in full, and where in the log it is. Must never keep the text of what is over.

use super::duration;
use super::styled::{Break, Piece, paint_row, wrap};
use crate::paint::{Paint, Part};
use nu_ansi_term::Style;
use protocol::event::Event;
use protocol::id::CallId;
use std::collections::VecDeque;

/// How much of the end of a thought is kept to be shown while it goes on, in bytes.
const KEPT: usize = 16 << 10;

/// How many rows of it are shown meanwhile.
const ROWS: usize = 4;

/// How many folded things are remembered.
const MOST: usize = 100;

/// Something that can be unfolded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    pub(crate) what: What,
    /// Its first event.
    pub(crate) first: u64,
    /// And its last.
    pub(crate) last: u64,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Thought,
    Call(CallId),
}

/// Folded things, oldest first.
#[derive(Debug, Default)]
pub(super) struct Folds(VecDeque<Folded>);

impl Folds {
    pub(super) fn push(&mut self, what: What, first: u64, last: u64) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(Folded { what, first, last });
    }

    pub(super) fn get(&self, back: usize) -> Option<&Folded> {
        self.0.iter().rev().nth(back)
    }
}

/// A thought that goes on.
#[derive(Debug)]
pub(super) struct Thought {
    text: String,
    lines: usize,
    first: u64,
    last: u64,
    began_at: u64,
    at: u64,
}

impl Thought {
    pub(super) fn new(first: u64, at: u64) -> Self {
        Self {
            text: String::new(),
            lines: 1,
            first,
            last: first,
            began_at: at,
            at,
        }
    }

    pub(super) fn push(&mut self, text: &str, event: &Event) {
        self.lines += text.matches('\n').count();
        self.text.push_str(text);
        self.last = event.seq;
        self.at = event.at;
        if self.text.len() > KEPT * 2 {
            let mut from = self.text.len() - KEPT;
            while !self.text.is_char_boundary(from) {
                from += 1;
            }
            self.text.drain(..from);
        }
    }

    pub(super) fn span(&self) -> (u64, u64) {
        (self.first, self.last)
    }

    /// Its end, while it goes on.
    pub(super) fn rows(&self, paint: Paint, room: usize) -> Vec<String> {
        let mut rows: Vec<String> = Vec::new();
        for line in self.text.trim_end().rsplit('\n') {
            rows.splice(..0, thought_rows(paint, room, line));
            if rows.len() >= ROWS {
                break;
            }
        }
        rows.split_off(rows.len().saturating_sub(ROWS))
    }

    pub(super) fn whole(&self, paint: Paint, room: usize) -> Vec<String> {
        thought_rows(paint, room, &self.text)
    }

    /// One line in its place.
    pub(super) fn summary(&self, paint: Paint) -> String {
        let time = duration(self.at.saturating_sub(self.began_at));
        let lines = match self.lines {
            1 => String::new(),
            lines => format!(" · {lines} lines"),
        };
        paint.dress(Part::Quiet, &format!("∴ thought for {time}{lines}"))
    }
}

/// A thought in full.
pub(crate) fn thought_rows(paint: Paint, room: usize, text: &str) -> Vec<String> {
    let style = Style::new().dimmed().italic();
    let rows = wrap(
        &[Piece::new(text.trim_end(), style)],
        room.saturating_sub(2),
        Break::Words,
    );
    rows.iter()
        .map(|row| format!("  {}", paint_row(paint, row)))
        .collect()
}
