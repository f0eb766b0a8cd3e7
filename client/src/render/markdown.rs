//! A message as it streams, as rows of a terminal: those that stand for good, and those that the next piece may still
//! change. Must never give a row for good that a later piece would have made otherwise.

mod long;
mod table;
mod write;

use super::code::Highlighter;
use super::styled::{Break, Piece, paint_row, wrap};
use crate::paint::Paint;
use long::{Columns, LONG};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use std::ops::Range;
use write::Writer;

/// The margin of code.
const MARGIN: &str = "  ";

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Markdown {
    paint: Paint,
    room: usize,
    /// What has not been given for good.
    source: String,
    fence: Option<Fence>,
    /// Whether a block stands above, so that a blank row comes before the next.
    below: bool,
    /// The number of the next item, where the first items of a list stand above.
    list: Option<Option<u64>>,
    /// The last row of a long paragraph, whose other rows stand above.
    begun: Vec<Piece>,
    /// A long table, whose first rows stand above.
    table: Option<Columns>,
    /// How long the source is when it is worth another look: of a long block nothing may be for good yet.
    look_at: usize,
}

/// A block of code that goes on.
#[derive(Clone, Debug)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    highlighter: Highlighter,
    /// Whether the beginning of the line stands above.
    within_line: bool,
}

/// A block at the outermost level, with its events.
struct Block<'a> {
    range: Range<usize>,
    events: Vec<(Event<'a>, Range<usize>)>,
}

impl Markdown {
    /// An empty message, for rows of so many columns.
    pub(crate) fn new(paint: Paint, room: usize) -> Self {
        Self {
            paint,
            room: room.max(10),
            source: String::new(),
            fence: None,
            below: false,
            list: None,
            begun: Vec::new(),
            table: None,
            look_at: 0,
        }
    }

    /// For rows of another width from here on.
    pub(crate) fn set_room(&mut self, room: usize) {
        self.room = room.max(10);
    }

    /// Takes a piece, and gives the rows that stand for good now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<String> {
        self.source.push_str(text);
        let mut rows = Vec::new();
        let length = self.source.len();
        if length < self.look_at || !(text.contains('\n') || length > LONG) {
            return rows;
        }
        // Each round takes something off the source, or ends.
        loop {
            let before = (self.source.len(), self.table.is_some());
            match (self.fence.is_some(), self.table.is_some()) {
                (true, _) => self.take_code(&mut rows),
                (_, true) => self.take_table_rows(&mut rows),
                _ => self.take_blocks(&mut rows),
            }
            let now = |message: &Self| (message.source.len(), message.table.is_some());
            if now(self) == before {
                self.shorten(&mut rows);
            }
            if now(self) == before || self.source.is_empty() {
                break;
            }
        }
        let length = self.source.len();
        self.look_at = if length > LONG {
            length + length / 8
        } else {
            0
        };
        rows
    }

    /// The rows that may still change.
    pub(crate) fn live(&self) -> Vec<String> {
        let mut copy = match long::end_of(&self.source) {
            Some(source) if self.fence.is_none() && self.table.is_none() => Self {
                source,
                ..Self::new(self.paint, self.room)
            },
            _ => self.clone(),
        };
        copy.rest()
    }

    /// The rows that are left when the message is whole.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let rows = self.rest();
        *self = Self::new(self.paint, self.room);
        rows
    }

    fn rest(&mut self) -> Vec<String> {
        let mut rows = Vec::new();
        let source = std::mem::take(&mut self.source);
        if self.table.is_some() {
            let (row, after) = self.table_row(&source);
            rows.extend(row);
            if after == source.len() {
                return rows;
            }
        }
        if let Some(mut fence) = self.fence.take() {
            let line = source.trim_end_matches('\n');
            if !source.is_empty() && !fence.ends_with_line(line) {
                rows.extend(self.code_rows(&mut fence, line));
            }
            self.fence = Some(fence);
            return rows;
        }
        for block in blocks(&source) {
            self.write(&block, &mut rows);
        }
        self.end_begun(&mut rows);
        rows
    }

    /// Takes whole lines of code.
    fn take_code(&mut self, rows: &mut Vec<String>) {
        let Some(mut fence) = self.fence.take() else {
            return;
        };
        while let Some(end) = self.source.find('\n') {
            let line: String = self.source.drain(..=end).collect();
            let line = line.trim_end_matches(['\n', '\r']);
            if fence.ends_with_line(line) {
                return;
            }
            rows.extend(self.code_rows(&mut fence, line));
        }
        self.fence = Some(fence);
    }

    fn code_rows(&self, fence: &mut Fence, line: &str) -> Vec<String> {
        let line = fence.begin_line(line);
        fence.within_line = false;
        code_rows(self.paint, self.room, MARGIN, fence.highlighter.line(line))
    }

    /// Takes blocks that no later line can change.
    fn take_blocks(&mut self, rows: &mut Vec<String>) {
        let Some(end) = self.source.rfind('\n') else {
            return;
        };
        let rest = self.source.split_off(end + 1);
        let source = std::mem::take(&mut self.source);
        let kept = self.settle(&source, rows);
        self.source = source[kept..].to_string() + &rest;
    }

    /// Writes what is settled of whole lines, and says how much that is.
    fn settle(&mut self, source: &str, rows: &mut Vec<String>) -> usize {
        let mut all = blocks(source);
        let Some(last) = all.pop() else {
            return source.len();
        };
        for block in &all {
            self.write(block, rows);
        }
        let text = &source[last.range.clone()];
        if let Some(fence) = Fence::begun_by(&last, source) {
            self.part(rows);
            let first_line = text.find('\n').map_or(text.len(), |at| at + 1);
            self.fence = Some(fence);
            return last.range.start + first_line;
        }
        if is_settled(&last, source) {
            self.write(&last, rows);
            return source.len();
        }
        if let Some(columns) = self.long_table(&last, source) {
            self.write(&last, rows);
            self.table = Some(columns);
            return source.len();
        }
        self.take_items(last, rows)
    }

    /// Writes all items of a list but the last, and says where that begins.
    fn take_items(&mut self, block: Block<'_>, rows: &mut Vec<String>) -> usize {
        let start = block.range.start;
        let Some((Event::Start(Tag::List(_)), _)) = block.events.first() else {
            return start;
        };
        let items: Vec<usize> = items(&block.events);
        let Some(&last) = items.last().filter(|_| items.len() > 1) else {
            return start;
        };
        let at = block.events[last].1.start;
        let mut events = block.events;
        let end = events.pop();
        events.truncate(last);
        events.extend(end);
        let part = Block {
            range: start..at,
            events,
        };
        let next = self.write(&part, rows);
        self.list = Some(next);
        at
    }

    /// Writes a block; gives the number of the item after it, if it is a list of numbers.
    fn write(&mut self, block: &Block<'_>, rows: &mut Vec<String>) -> Option<u64> {
        let list = matches!(block.events.first(), Some((Event::Start(Tag::List(_)), _)));
        let paragraph = matches!(
            block.events.first(),
            Some((Event::Start(Tag::Paragraph), _))
        );
        let goes_on = self.list.take().filter(|_| list);
        if !paragraph {
            self.end_begun(rows);
        }
        let before = std::mem::take(&mut self.begun);
        if goes_on.is_none() && before.is_empty() {
            self.part(rows);
        }
        let writer = Writer::new(self.paint, self.room, goes_on.flatten()).behind(before);
        let (written, next) = written(writer, block);
        rows.extend(written);
        next
    }

    /// A blank row between blocks.
    fn part(&mut self, rows: &mut Vec<String>) {
        self.list = None;
        if std::mem::replace(&mut self.below, true) {
            rows.push(String::new());
        }
    }
}

/// A block's rows, and the number of the item after it, if it is a list of numbers.
fn written(mut writer: Writer, block: &Block<'_>) -> (Vec<String>, Option<u64>) {
    block
        .events
        .iter()
        .for_each(|(event, _)| writer.event(event));
    writer.finish()
}

/// Rows of a line of code: spaces count, so it breaks anywhere.
fn code_rows(paint: Paint, room: usize, margin: &str, pieces: Vec<Piece>) -> Vec<String> {
    let wrapped = wrap(&pieces, room.saturating_sub(margin.len()), Break::Anywhere);
    let row = |row: &Vec<Piece>| format!("{margin}{}", paint_row(paint, row));
    let rows = wrapped.iter().map(row);
    rows.map(|row| row.trim_end().to_string()).collect()
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

fn blocks(source: &str) -> Vec<Block<'_>> {
    let mut all: Vec<Block<'_>> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(source, options()).into_offset_iter() {
        if depth == 0 {
            let range = range.clone();
            all.push(Block {
                range,
                events: Vec::new(),
            });
        }
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(block) = all.last_mut() {
            block.events.push((event, range));
        }
    }
    all
}

/// Whether no line that follows can change a block.
fn is_settled(block: &Block<'_>, source: &str) -> bool {
    match block.events.first() {
        Some((Event::Start(Tag::Heading { .. }) | Event::Rule, _)) => true,
        Some((Event::Start(Tag::Paragraph | Tag::Table(_)), _)) => {
            let below = &source[block.range.end.min(source.len())..];
            below.contains('\n') || source[block.range.clone()].ends_with("\n\n")
        }
        _ => false,
    }
}

/// Where the items of the outermost list begin among its events.
fn items(events: &[(Event<'_>, Range<usize>)]) -> Vec<usize> {
    let (mut depth, mut found) = (0_usize, Vec::new());
    for (at, (event, _)) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Item) if depth == 1 => {
                found.push(at);
                depth += 1;
            }
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

impl Fence {
    /// The fence that a block begins with.
    fn begun_by(block: &Block<'_>, source: &str) -> Option<Self> {
        let Some((Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))), _)) =
            block.events.first()
        else {
            return None;
        };
        let line_start = source[..block.range.start]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let line = source[line_start..].lines().next()?;
        let trimmed = line.trim_start_matches(' ');
        let mark = trimmed.chars().next()?;
        Some(Self {
            mark,
            length: trimmed.chars().take_while(|c| *c == mark).count(),
            indent: line.len() - trimmed.len(),
            highlighter: Highlighter::new(language(info)),
            within_line: false,
        })
    }

    /// A line without the fence's indentation.
    fn begin_line<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        match self.within_line {
            true => line,
            false => &line[spaces.min(self.indent)..],
        }
    }

    fn ends_with_line(&self, line: &str) -> bool {
        if self.within_line {
            return false;
        }
        let trimmed = line.trim_start_matches(' ');
        let marks = trimmed.chars().take_while(|c| *c == self.mark).count();
        let indent = line.len() - trimmed.len();
        indent < 4 && marks >= self.length && trimmed[marks..].trim().is_empty()
    }
}

/// The language that the words behind a fence name.
fn language(info: &str) -> &str {
    let end = info.find([' ', ',', '{', ':']).unwrap_or(info.len());
    &info[..end]
}

#[cfg(test)]
mod tests;
