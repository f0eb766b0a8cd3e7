//! The reply on a terminal that can be drawn on: rows of Markdown, and what still grows below them. Must never read keys.

use crate::error::Failure;
use crate::paint::dumb;
use crate::render::styled::painted_width;
use crate::render::{Chunk, Renderer};
use crate::screen::{Panel, Screen, size};
use std::io::{IsTerminal, Stdout};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The least time between two frames.
pub(super) const PAUSE: Duration = Duration::from_millis(40);

/// Frames of one turn.
#[derive(Debug)]
pub(super) struct Drawn {
    screen: Screen<Stdout>,
    /// When the last frame was drawn.
    at: Option<Instant>,
}

impl Drawn {
    /// None where reply and progress go different ways, or the terminal understands nothing but text.
    pub(super) fn find() -> Option<Self> {
        let stdout = std::io::stdout();
        let capable = stdout.is_terminal() && std::io::stderr().is_terminal() && !dumb();
        let size = size().filter(|_| capable)?;
        Some(Self {
            screen: Screen::new(stdout, size),
            at: None,
        })
    }

    /// Columns for text.
    pub(super) fn room(&self) -> usize {
        self.screen.size().0.saturating_sub(1)
    }

    pub(super) fn write(&mut self, chunks: &[Chunk]) {
        chunks
            .iter()
            .for_each(|chunk| self.screen.write(&chunk.text));
    }

    /// Draws, unless a frame was drawn just now.
    pub(super) fn draw(&mut self, renderer: &mut Renderer) -> Result<(), Failure> {
        if self.at.is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(());
        }
        if let Some((columns, rows)) = size().filter(|size| *size != self.screen.size()) {
            self.screen.resize(columns, rows);
            renderer.set_room(self.room());
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let rows = renderer.live(now.as_millis() as u64);
        let column = rows.last().map_or(0, |row| painted_width(row));
        let cursor = (rows.len().saturating_sub(1), column);
        self.screen.draw(Panel { rows, cursor })?;
        self.at = Some(Instant::now());
        Ok(())
    }

    /// Leaves the cursor at the start of an empty line, with all that stands for good above it.
    pub(super) fn leave(&mut self) -> Result<(), Failure> {
        self.at = None;
        Ok(self.screen.leave()?)
    }
}
