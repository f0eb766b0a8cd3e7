//! One block as rows. Must never look at more than its events.

use super::super::code::Highlighter;
use super::super::styled::{Break, Piece, paint_row, width, wrap};
use super::table::Table;
use super::{code_rows, language};
use crate::paint::{Paint, tame};
use nu_ansi_term::{Color, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};
use std::ops::Range;

/// Where the text of an item or a quotation begins.
#[derive(Debug)]
struct Margin {
    /// On its first row: a bullet.
    first: String,
    /// On the others.
    rest: String,
    used: bool,
}

/// Rows under way.
pub(super) struct Writer {
    paint: Paint,
    room: usize,
    rows: Vec<String>,
    inline: Vec<Piece>,
    styles: Vec<Style>,
    margins: Vec<Margin>,
    /// The numbers of the lists that are open.
    lists: Vec<Option<u64>>,
    /// The number of the first item, where it is not the source's.
    number: Option<u64>,
    /// The number after the last item of the outermost list.
    next: Option<u64>,
    code: Option<(Highlighter, String)>,
    table: Option<Table>,
    /// The columns of a table whose first rows stand above.
    columns: Option<Vec<usize>>,
    /// What stands before the first paragraph in its first row.
    before: Vec<Piece>,
    links: Vec<(String, usize)>,
}

impl Writer {
    pub(super) fn new(paint: Paint, room: usize, number: Option<u64>) -> Self {
        Self {
            paint,
            room,
            rows: Vec::new(),
            inline: Vec::new(),
            styles: Vec::new(),
            margins: Vec::new(),
            lists: Vec::new(),
            number,
            next: None,
            code: None,
            table: None,
            columns: None,
            before: Vec::new(),
            links: Vec::new(),
        }
    }

    /// The first paragraph goes on behind this.
    pub(super) fn behind(mut self, before: Vec<Piece>) -> Self {
        self.before = before;
        self
    }

    /// The table has further rows alone, in columns that were measured.
    pub(super) fn in_columns(mut self, natural: Vec<usize>) -> Self {
        self.columns = Some(natural);
        self
    }

    /// The text of a paragraph's events, not broken into rows.
    pub(super) fn text_of(mut self, events: &[(Event<'_>, Range<usize>)]) -> Vec<Piece> {
        let end = events.len().saturating_sub(1);
        events[..end]
            .iter()
            .for_each(|(event, _)| self.event(event));
        self.inline
    }

    /// What the columns of a table's events would take.
    pub(super) fn columns_of(mut self, events: &[(Event<'_>, Range<usize>)]) -> Vec<usize> {
        let end = events.len().saturating_sub(1);
        events[..end]
            .iter()
            .for_each(|(event, _)| self.event(event));
        self.table.map_or_else(Vec::new, |table| table.natural())
    }

    pub(super) fn finish(mut self) -> (Vec<String>, Option<u64>) {
        self.flush();
        (self.rows, self.next)
    }

    pub(super) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(*end),
            Event::Text(text) => self.text(&tame(text)),
            Event::Code(text) => self.code_word(&tame(text)),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&tame(text)),
            Event::Html(html) | Event::InlineHtml(html) => {
                self.push(tame(html).trim_end_matches('\n'), Style::new().dimmed());
            }
            Event::FootnoteReference(name) => self.text(&format!("[{}]", tame(name))),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => {
                let line = "─".repeat(self.inner().min(40));
                self.push(&line, Style::new().dimmed());
                self.flush();
            }
            Event::TaskListMarker(done) => {
                self.text(if *done { "[x] " } else { "[ ] " });
            }
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                self.part();
                self.inline.append(&mut self.before);
            }
            Tag::HtmlBlock => self.part(),
            Tag::Heading { level, .. } => self.heading(*level),
            Tag::BlockQuote(_) => {
                self.flush();
                let bar = paint_row(self.paint, &[Piece::new("│ ", Style::new().dimmed())]);
                self.margins.push(Margin {
                    first: bar.clone(),
                    rest: bar,
                    used: false,
                });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let name = match kind {
                    CodeBlockKind::Fenced(info) => language(info),
                    CodeBlockKind::Indented => "",
                };
                self.code = Some((Highlighter::new(name), String::new()));
            }
            Tag::List(first) => {
                self.flush();
                let outermost = self.lists.is_empty();
                let first = first.map(|first| match self.number.take().filter(|_| outermost) {
                    Some(number) => number,
                    None => first,
                });
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => self.table = Some(Table::new(alignments.clone())),
            Tag::TableCell => self.inline.clear(),
            Tag::Emphasis => self.emphasis("*", |style| style.italic()),
            Tag::Strong => self.emphasis("**", |style| style.bold()),
            Tag::Strikethrough => self.emphasis("~~", |style| style.strikethrough()),
            Tag::Link { dest_url, .. } => {
                self.links.push((tame(dest_url), self.inline_length()));
                self.style(|style| style.underline());
            }
            Tag::Image { dest_url, .. } => {
                self.links.push((tame(dest_url), self.inline_length()));
                self.style(|style| style.italic());
            }
            _ => {}
        }
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.flush();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                // An item without a text still has its bullet.
                if self.margins.last().is_some_and(|margin| !margin.used) {
                    self.rows_of(vec![Vec::new()]);
                }
                self.margins.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                if let Some(number) = self.lists.pop().filter(|_| self.lists.is_empty()) {
                    self.next = number;
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Emphasis => self.end_emphasis("*"),
            TagEnd::Strong => self.end_emphasis("**"),
            TagEnd::Strikethrough => self.end_emphasis("~~"),
            _ => {}
        }
    }

    fn heading(&mut self, level: HeadingLevel) {
        self.part();
        let style = Style::new().bold().fg(Color::Cyan);
        if level > HeadingLevel::H2 || self.paint == Paint::Plain {
            let marks = "#".repeat(level as usize);
            self.push(&format!("{marks} "), style.dimmed());
        }
        self.styles.push(style);
    }

    fn item(&mut self) {
        self.flush();
        let bullet = match self.lists.last_mut() {
            Some(Some(number)) => {
                let bullet = format!("{number}. ");
                *number += 1;
                bullet
            }
            _ => "• ".to_string(),
        };
        let rest = " ".repeat(width(&bullet));
        self.margins.push(Margin {
            first: bullet,
            rest,
            used: false,
        });
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None => self.push(text, self.current()),
        }
    }

    fn code_word(&mut self, text: &str) {
        match self.paint {
            Paint::Colour => self.push(text, self.current().fg(Color::Cyan)),
            Paint::Plain => self.push(&format!("`{text}`"), Style::new()),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        self.inline.push(Piece::new(text, style));
    }

    fn current(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn style(&mut self, change: impl Fn(Style) -> Style) {
        self.styles.push(change(self.current()));
    }

    /// Without styles its mark tells of it: what is struck out means the contrary.
    fn emphasis(&mut self, mark: &str, change: impl Fn(Style) -> Style) {
        if self.paint == Paint::Plain {
            self.push(mark, Style::new());
        }
        self.style(change);
    }

    fn end_emphasis(&mut self, mark: &str) {
        self.styles.pop();
        if self.paint == Paint::Plain {
            self.push(mark, Style::new());
        }
    }

    fn inline_length(&self) -> usize {
        self.inline.len()
    }

    /// A link's address stands behind its text, unless it is its text.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some((address, from)) = self.links.pop() else {
            return;
        };
        let texts = self.inline.get(from..).unwrap_or_default();
        let text: String = texts.iter().map(|piece| piece.text.as_str()).collect();
        let shown = address.strip_prefix("mailto:").unwrap_or(&address);
        if text != shown && !address.is_empty() {
            let gap = if text.is_empty() { "" } else { " " };
            self.push(&format!("{gap}({address})"), Style::new().dimmed());
        }
    }

    /// A blank row between two paragraphs of an item or a quotation.
    fn part(&mut self) {
        self.flush();
        if self.margins.last().is_some_and(|margin| margin.used) {
            self.rows_of(vec![Vec::new()]);
        }
    }

    fn flush(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        if inline.iter().all(|piece| piece.text.is_empty()) {
            return;
        }
        let rows = wrap(&inline, self.inner(), Break::Words);
        self.rows_of(rows);
    }

    /// Columns beside the margins.
    fn inner(&self) -> usize {
        let taken: usize = self.margins.iter().map(|margin| margin.columns()).sum();
        self.room.saturating_sub(taken).max(8)
    }

    fn rows_of(&mut self, rows: Vec<Vec<Piece>>) {
        let paint = self.paint;
        let painted = rows.iter().map(|row| paint_row(paint, row)).collect();
        self.painted(painted);
    }

    fn painted(&mut self, rows: Vec<String>) {
        for row in rows {
            let mut line = String::new();
            for margin in &mut self.margins {
                let used = std::mem::replace(&mut margin.used, true);
                line.push_str(if used { &margin.rest } else { &margin.first });
            }
            line.push_str(&row);
            self.rows.push(line.trim_end().to_string());
        }
    }

    fn end_code(&mut self) {
        let Some((mut highlighter, code)) = self.code.take() else {
            return;
        };
        let room = self.inner();
        for line in code.lines() {
            let rows = code_rows(self.paint, room, super::MARGIN, highlighter.line(line));
            self.painted(rows);
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        let room = self.inner();
        let rows = match self.columns.take() {
            Some(natural) => table.more(self.paint, room, &natural),
            None => table.rows(self.paint, room),
        };
        self.painted(rows);
    }
}

impl Margin {
    fn columns(&self) -> usize {
        super::super::styled::painted_width(&self.rest)
    }
}
