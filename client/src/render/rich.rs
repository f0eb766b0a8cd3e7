//! How a session looks on a terminal that is drawn on: replies and thoughts as rows. Must never know the terminal.

use super::fold::{Folds, Thought, What};
use super::markdown::Markdown;
use super::styled::{Break, Piece, paint_row, wrap};
use super::{Channel, Chunk, Tail, prompt_line};
use crate::paint::{Paint, Part, tame};
use protocol::event::Event;
use std::time::{Duration, Instant};

/// How many rows of a prompt are shown where there is room to draw.
const PROMPT_ROWS: usize = 20;

/// How text becomes rows of a terminal that is drawn on.
#[derive(Debug)]
pub(super) struct Rich {
    pub(super) room: usize,
    reply: Markdown,
    thought: Option<Thought>,
    /// Whether thoughts stay on the screen when they are done.
    pub(super) thoughts: Thoughts,
    pub(super) folds: Folds,
    grown: Grown,
}

/// The rows of what grows, as they were laid out last.
#[derive(Debug, Default)]
struct Grown {
    rows: Vec<String>,
    /// When that was done, and how long it took; none if nothing can be taken from it.
    laid: Option<(Instant, Duration)>,
    /// Whether it has grown since.
    behind: bool,
}

/// Of the time that passes, the laying out of what grows takes one part in so many: keys need the rest.
const SHARE: u32 = 8;

/// What becomes of thoughts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thoughts {
    /// One line says that there was one.
    Folded,
    /// They stay, dimmed.
    Shown,
}

impl Rich {
    pub(super) fn new(paint: Paint, room: usize) -> Self {
        Self {
            room,
            reply: Markdown::new(paint, room),
            thought: None,
            thoughts: Thoughts::Folded,
            folds: Folds::default(),
            grown: Grown::default(),
        }
    }

    /// Rows have another width from here on.
    pub(super) fn set_room(&mut self, room: usize) {
        if room != self.room {
            self.room = room;
            self.reply.set_room(room);
            self.grown.laid = None;
        }
    }

    /// The rows that may still change. Of a block that takes long to lay out, those of a moment ago.
    pub(super) fn live(&mut self, paint: Paint) -> &[String] {
        let rests = |(at, took): (Instant, Duration)| at.elapsed() < took * SHARE;
        if self
            .grown
            .laid
            .is_none_or(|laid| self.grown.behind && !rests(laid))
        {
            let began = Instant::now();
            self.grown.rows = match &self.thought {
                Some(thought) => thought.rows(paint, self.room),
                None => self.reply.live(),
            };
            self.grown.laid = Some((began, began.elapsed()));
            self.grown.behind = false;
        }
        &self.grown.rows
    }

    pub(super) fn flow(&mut self, tail: Tail, text: &str, event: &Event) -> Vec<String> {
        let rows = match tail {
            Tail::Thought => {
                let began = || Thought::new(event.first(), event.at);
                self.thought.get_or_insert_with(began).push(text, event);
                Vec::new()
            }
            Tail::Reply | Tail::Line => self.reply.push(text),
        };
        self.grown.behind = true;
        // What stands above now must not stand below as well.
        if !rows.is_empty() {
            self.grown.laid = None;
        }
        rows
    }

    /// What is left of the text at the tail.
    pub(super) fn end(&mut self, paint: Paint) -> Vec<String> {
        self.grown = Grown::default();
        let Some(thought) = self.thought.take() else {
            return self.reply.finish();
        };
        let (first, last) = thought.span();
        self.folds.push(What::Thought, first, last);
        match self.thoughts {
            Thoughts::Folded => vec![thought.summary(paint)],
            Thoughts::Shown => thought.whole(paint, self.room),
        }
    }
}

pub(super) fn whole_rows(channel: Channel, rows: Vec<String>) -> Option<Chunk> {
    (!rows.is_empty()).then(|| Chunk {
        channel,
        text: rows.join("\n") + "\n",
    })
}

/// A prompt in rows; a long one shows how it begins.
pub(super) fn prompt_rows(paint: Paint, room: usize, text: &str, client: Option<&str>) -> String {
    let line = prompt_line(Paint::Plain, text, client);
    let pieces = [Piece::plain(line.trim_start_matches("> "))];
    let mut rows = wrap(&pieces, room.saturating_sub(2), Break::Words);
    let beyond = rows.len().saturating_sub(PROMPT_ROWS);
    rows.truncate(PROMPT_ROWS);
    let texts = rows.iter().map(|row| paint_row(Paint::Plain, row));
    let mut out: Vec<String> = texts
        .enumerate()
        .map(|(at, row)| match at {
            0 => paint.dress(Part::Prompt, &format!("> {row}")),
            _ => paint.dress(Part::Prompt, &format!("  {}", row.trim_start())),
        })
        .collect();
    if beyond > 0 {
        out.push(paint.dress(Part::Quiet, &format!("  … {beyond} more rows")));
    }
    out.join("\n")
}

/// A picture by its kind and size: what is in it, a terminal cannot tell.
pub(super) fn quiet_image(paint: Paint, image: &protocol::event::Image) -> String {
    let bytes = image.data.len() / 4 * 3;
    let text = format!(
        "  [{}, {} KB]",
        tame(&image.mime_type),
        bytes.div_ceil(1000)
    );
    paint.dress(Part::Quiet, &text)
}
