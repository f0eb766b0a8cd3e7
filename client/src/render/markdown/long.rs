//! Blocks that have grown long as they stream: where they may be cut, so that what is laid out again with every piece
//! stays short. Must never cut where what follows could still change what stands before, unless that is very far back.

use super::super::styled::{Break, Piece, cell, paint_row, wrap};
use super::table::MEASURED;
use super::write::Writer;
use super::{Block, Fence, MARGIN, Markdown, blocks, written};
use pulldown_cmark::{Event, Tag};

/// A paragraph or a line of code with more bytes than this gives its beginning for good.
pub(super) const LONG: usize = 4 << 10;

/// And one with more than this does even where something in it might still be closed: `**` further back is text.
const TOO_LONG: usize = 3 * LONG;

/// A table that goes on.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Its first two lines.
    head: String,
    /// What its columns would take.
    natural: Vec<usize>,
}

/// A source with more bytes than this, such as of an item that holds a long list, is shown by its end alone while it grows.
const ENDLESS: usize = 8 * LONG;

/// How much of it that is: more than a window holds.
const SEEN: usize = 4 * LONG;

/// The end of a source that is too long to be laid out again and again, as if it were one by itself.
pub(super) fn end_of(source: &str) -> Option<String> {
    let at_least = source.len().checked_sub(SEEN)?;
    if source.len() <= ENDLESS {
        return None;
    }
    let begin = source.bytes().skip(at_least).take(SEEN / 2);
    let line = begin.clone().position(|b| b == b'\n');
    let word = || begin.clone().position(|b| b == b' ');
    let letter = || (at_least..).find(|at| source.is_char_boundary(*at));
    let from = line.or_else(word).map(|at| at_least + at + 1);
    let end = &source[from.or_else(letter)?..];
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let lines = end.lines().filter(|line| !line.trim().is_empty());
    let least = lines.map(indent).min().unwrap_or(0);
    let lines = end.split_inclusive('\n');
    Some(lines.map(|line| &line[least.min(indent(line))..]).collect())
}

impl Markdown {
    /// The columns of a table that is long enough for its rows to be for good.
    pub(super) fn long_table(&self, block: &Block<'_>, source: &str) -> Option<Columns> {
        let Some((Event::Start(Tag::Table(_)), _)) = block.events.first() else {
            return None;
        };
        let row = |(event, _): &&(Event<'_>, _)| matches!(event, Event::Start(Tag::TableRow));
        if block.events.iter().filter(row).count() < MEASURED {
            return None;
        }
        let text = &source[block.range.clone()];
        let head: String = text.split_inclusive('\n').take(2).collect();
        let natural = Writer::new(self.paint, self.room, None).columns_of(&block.events);
        Some(Columns { head, natural })
    }

    /// Takes whole lines of a long table.
    pub(super) fn take_table_rows(&mut self, rows: &mut Vec<String>) {
        let source = std::mem::take(&mut self.source);
        let mut at = 0;
        while let Some(end) = source[at..].find('\n') {
            let (row, taken) = self.table_row(&source[at..=at + end]);
            rows.extend(row);
            at += taken;
            if self.table.is_none() {
                break;
            }
        }
        self.source = source[at..].to_string();
    }

    /// The row that a line is, and how much of it that takes: nothing of a line that ends the table.
    pub(super) fn table_row(&mut self, line: &str) -> (Vec<String>, usize) {
        let Some(table) = self.table.take() else {
            return (Vec::new(), 0);
        };
        let whole = format!("{}{line}", table.head);
        let all = blocks(&whole);
        let [block] = &all[..] else {
            return (Vec::new(), 0);
        };
        if line.trim().is_empty() {
            let nothing_yet = line.is_empty();
            self.table = nothing_yet.then_some(table);
            return (Vec::new(), 0);
        }
        let writer = Writer::new(self.paint, self.room, None).in_columns(table.natural.clone());
        self.table = Some(table);
        (written(writer, block).0, line.len())
    }

    /// Takes the beginning of one long block off the source, where that can be.
    pub(super) fn shorten(&mut self, rows: &mut Vec<String>) {
        if self.source.len() <= LONG || self.table.is_some() {
            return;
        }
        let source = std::mem::take(&mut self.source);
        let kept = match self.fence.take() {
            Some(mut fence) => {
                let kept = self.shorten_line(&mut fence, &source, rows);
                self.fence = Some(fence);
                kept
            }
            None => self.shorten_paragraph(&source, rows),
        };
        self.source = source[kept..].to_string();
    }

    fn shorten_line(&self, fence: &mut Fence, line: &str, rows: &mut Vec<String>) -> usize {
        if fence.ends_with_line(line) {
            return 0;
        }
        let line_length = line.len();
        let pieces = fence.highlighter.line(fence.clone().begin_line(line));
        fence.within_line = true;
        let mut all = wrap(&pieces, self.room - MARGIN.len(), Break::Anywhere);
        let last = all.pop().unwrap_or_default();
        let row = |row: &Vec<Piece>| format!("{MARGIN}{}", paint_row(self.paint, row));
        let given = all.iter().map(row);
        rows.extend(given.map(|row| row.trim_end().to_string()));
        line_length - last.iter().map(|piece| piece.text.len()).sum::<usize>()
    }

    fn shorten_paragraph(&mut self, source: &str, rows: &mut Vec<String>) -> usize {
        let all = blocks(source);
        let Some(at) = all.first().and_then(|block| cut(block, source)) else {
            return 0;
        };
        let head = blocks(&source[..at]);
        let [block] = &head[..] else {
            return 0;
        };
        let before = std::mem::take(&mut self.begun);
        if before.is_empty() {
            self.part(rows);
        }
        let writer = Writer::new(self.paint, self.room, None).behind(before);
        let mut all = wrap(&writer.text_of(&block.events), self.room, Break::Words);
        self.begun = all.pop().unwrap_or_default();
        if source[..at].ends_with(' ') {
            self.begun.push(Piece::plain(" "));
        }
        rows.extend(all.iter().map(|row| paint_row(self.paint, row)));
        at
    }

    /// A paragraph whose last row waits goes no further.
    pub(super) fn end_begun(&mut self, rows: &mut Vec<String>) {
        let begun = std::mem::take(&mut self.begun);
        if !begun.is_empty() {
            let last = wrap(&begun, self.room, Break::Words);
            rows.extend(last.iter().map(|row| paint_row(self.paint, row)));
        }
    }
}

/// Where a paragraph can be cut: what follows begins with a letter, so that it is a paragraph by itself.
fn cut(block: &Block<'_>, source: &str) -> Option<usize> {
    let Some((Event::Start(Tag::Paragraph), _)) = block.events.first() else {
        return None;
    };
    let far = source.len() > TOO_LONG;
    let limit = match far {
        true => source.len() - LONG,
        false => first_open(block, source),
    };
    let mut depth = 0_usize;
    let mut found = None;
    for (event, range) in &block.events {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            // Only where the text is the source's own, and not within a link or an emphasis.
            Event::Text(text) if depth == 1 || far => {
                if range.start >= limit || source.get(range.clone()) != Some(text) {
                    continue;
                }
                let fits = |at: &usize| range.start + at < limit;
                let places = text.char_indices().rev().zip(text.chars().rev().skip(1));
                let place = places
                    .filter(|((_, c), before)| begins_a_word(*c, *before))
                    .map(|((at, _), _)| at)
                    .find(fits);
                found = place.map(|at| range.start + at).or(found);
            }
            _ => {}
        }
    }
    found
}

fn begins_a_word(c: char, before: char) -> bool {
    let wide = || cell(c.encode_utf8(&mut [0; 4])) == 2;
    c.is_alphabetic() && (before == ' ' || wide())
}

/// Where the first mark stands that something further on may close; the end if there is none.
fn first_open(block: &Block<'_>, source: &str) -> usize {
    let (mut depth, mut outermost) = (0_usize, 0);
    for (event, range) in &block.events {
        match event {
            Event::Start(_) => {
                depth += 1;
                if depth == 2 {
                    outermost = range.start;
                }
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Text(_) => {
                if let Some(at) = range.clone().find(|at| opens(source, *at)) {
                    return if depth > 1 { outermost } else { at };
                }
            }
            _ => {}
        }
    }
    source.len()
}

/// Whether what stands there may begin a link, an emphasis, a word of code, or HTML.
fn opens(source: &str, at: usize) -> bool {
    let next = || source[at + 1..].chars().next();
    let touches = || next().is_none_or(|c| !c.is_whitespace());
    match source.as_bytes()[at] {
        b'`' | b'[' | b'<' => true,
        b'*' | b'~' => touches(),
        b'_' => {
            let before = source[..at].chars().next_back();
            touches() && before.is_none_or(|c| !c.is_alphanumeric())
        }
        _ => false,
    }
}
