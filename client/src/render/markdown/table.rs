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

/// By how many rows, the head among them, columns are measured: those of a longer table scroll up as they come, and what
/// comes later breaks within its column.
pub(super) const MEASURED: usize = 100;

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
        match fitted(self.natural(), room) {
            Some(widths) => self.grid(paint, &widths),
            None => self.list(paint, room),
        }
    }

    /// All rows but the head, in columns that were measured before.
    pub(super) fn more(&self, paint: Paint, room: usize, natural: &[usize]) -> Vec<String> {
        match fitted(natural.to_vec(), room) {
            Some(widths) => {
                let body = self.rows.iter().skip(1);
                body.flat_map(|row| self.grid_row(paint, row, &widths))
                    .collect()
            }
            None => {
                let list = self.list(paint, room);
                let blank = (!list.is_empty()).then(String::new);
                blank.into_iter().chain(list).collect()
            }
        }
    }

    /// What each column would take.
    pub(super) fn natural(&self) -> Vec<usize> {
        let widest = |column: usize| {
            let measured = self.rows.iter().take(MEASURED);
            let cells = measured.filter_map(|row| row.get(column));
            cells.map(|cell| width_of(cell)).max().unwrap_or(0).max(1)
        };
        (0..self.alignments.len()).map(widest).collect()
    }

    fn grid(&self, paint: Paint, widths: &[usize]) -> Vec<String> {
        let mut out = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            out.extend(self.grid_row(paint, row, widths));
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

    fn grid_row(&self, paint: Paint, row: &[Vec<Piece>], widths: &[usize]) -> Vec<String> {
        let bar = paint_row(paint, &[Piece::new(" │ ", Style::new().dimmed())]);
        let cell = |column: usize| row.get(column).map_or(&[][..], Vec::as_slice);
        let cells: Vec<Vec<Vec<Piece>>> = (0..widths.len())
            .map(|column| wrap(cell(column), widths[column], Break::Words))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |line: usize| {
            let parts: Vec<String> = (0..widths.len())
                .map(|column| self.padded(paint, cells[column].get(line), column, widths))
                .collect();
            parts.join(&bar)
        };
        (0..height).map(line).collect()
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

/// What each column gets of so many; none if there is no room for all.
fn fitted(natural: Vec<usize>, room: usize) -> Option<Vec<usize>> {
    let mut widths = natural;
    let room = room.checked_sub(BETWEEN * widths.len().saturating_sub(1))?;
    let least = widths.iter().map(|width| (*width).min(LEAST));
    if least.sum::<usize>() > room {
        return None;
    }
    // The widest gives way first, a column at a time: the sum shrinks with every round.
    while widths.iter().sum::<usize>() > room {
        let widest = widths.iter_mut().max()?;
        *widest -= 1;
    }
    Some(widths)
}
