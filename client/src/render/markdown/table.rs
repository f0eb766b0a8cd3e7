//! Tables: columns as wide as they need, narrower where there is no room, and one line per cell where there is none at
//! all. Must never be wider than its room.

use super::super::styled::{Break, Piece, paint_row, width_of, wrap};
use crate::paint::Paint;
use nu_ansi_term::Style;
use pulldown_cmark::Alignment;

/// The narrowest column.
const LEAST: usize = 4;

/// What stands between two columns.
const BETWEEN: usize = 3;

/// Rows under way; the first is the head.
#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Piece>>>,
    row: Vec<Vec<Piece>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(super) fn cell(&mut self, cell: Vec<Piece>) {
        let bold = |mut piece: Piece| {
            piece.style = piece.style.bold();
            piece
        };
        self.row.push(match self.rows.is_empty() {
            true => cell.into_iter().map(bold).collect(),
            false => cell,
        });
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub(super) fn rows(&self, paint: Paint, room: usize) -> Vec<String> {
        match self.widths(room) {
            Some(widths) => self.grid(paint, &widths),
            None => self.list(paint, room),
        }
    }

    /// What each column gets; none if there is no room for all.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let columns = self.alignments.len();
        let room = room.checked_sub(BETWEEN * columns.saturating_sub(1))?;
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width_of(cell)).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..columns).map(widest).collect();
        if widths
            .iter()
            .map(|width| (*width).min(LEAST))
            .sum::<usize>()
            > room
        {
            return None;
        }
        // The widest gives way first, a column at a time: the sum shrinks with every round.
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max()?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn grid(&self, paint: Paint, widths: &[usize]) -> Vec<String> {
        let bar = paint_row(paint, &[Piece::new(" │ ", Style::new().dimmed())]);
        let mut out = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let cell = |column: usize| row.get(column).map_or(&[][..], Vec::as_slice);
            let cells: Vec<Vec<Vec<Piece>>> = (0..widths.len())
                .map(|column| wrap(cell(column), widths[column], Break::Words))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let parts: Vec<String> = (0..widths.len())
                    .map(|column| self.padded(paint, cells[column].get(line), column, widths))
                    .collect();
                out.push(parts.join(&bar));
            }
            if at == 0 {
                let lines: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                out.push(paint_row(
                    paint,
                    &[Piece::new(lines.join("─┼─"), Style::new().dimmed())],
                ));
            }
        }
        out
    }

    fn padded(
        &self,
        paint: Paint,
        line: Option<&Vec<Piece>>,
        column: usize,
        widths: &[usize],
    ) -> String {
        let empty = Vec::new();
        let line = line.unwrap_or(&empty);
        let text = paint_row(paint, line);
        let gap = widths[column].saturating_sub(width_of(line));
        match self.alignments.get(column) {
            Some(Alignment::Right) => format!("{}{text}", " ".repeat(gap)),
            Some(Alignment::Center) => {
                let left = gap / 2;
                format!("{}{text}{}", " ".repeat(left), " ".repeat(gap - left))
            }
            _ => format!("{text}{}", " ".repeat(gap)),
        }
    }

    /// Each cell on lines of its own, behind its column's name.
    fn list(&self, paint: Paint, room: usize) -> Vec<String> {
        let mut out = Vec::new();
        let Some((head, body)) = self.rows.split_first() else {
            return out;
        };
        for (at, row) in body.iter().enumerate() {
            if at > 0 {
                out.push(String::new());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut line = head.get(column).cloned().unwrap_or_default();
                line.push(Piece::plain(": "));
                line.extend(cell.iter().cloned());
                let rows = wrap(&line, room, Break::Words);
                out.extend(rows.iter().map(|row| paint_row(paint, row)));
            }
        }
        out
    }
}
