//! The last row: what runs, what helps, and what there is to know of the session. Must never be wider than the window.

use super::{Busy, FRAME, HELD, View};
use crate::paint::{Paint, Part};
use crate::render::duration;
use crate::render::styled::{painted_width, shortened, width};
use std::time::Duration;

const FRAMES: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠟"];

/// What is known of the session besides its events' text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::repl) struct Status {
    pub(in crate::repl) session: String,
    pub(in crate::repl) model: String,
    /// Fill of the model's window in percent.
    pub(in crate::repl) context: Option<u8>,
    /// Tokens sent and received since this terminal attached.
    pub(in crate::repl) tokens: (u64, u64),
    pub(in crate::repl) clients: u32,
}

impl View<'_> {
    /// What runs comes first, then what helps, then what there is to know. Of what has no room the least goes first.
    pub(super) fn status_row(&self, columns: usize) -> String {
        let room = columns.saturating_sub(1);
        let mut parts = self.status_parts();
        let fits = |parts: &[(Rank, String)]| {
            let between = 3 * parts.len().saturating_sub(1);
            parts.iter().map(|(_, part)| width(part)).sum::<usize>() + between <= room
        };
        while !fits(&parts) {
            let ranks = parts.iter().map(|(rank, _)| *rank);
            let Some(least) = ranks.max().filter(|rank| *rank > Rank::Hint) else {
                break;
            };
            parts.retain(|(rank, _)| *rank != least);
        }
        let texts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
        let row = shortened(&texts.join(" · "), room);
        self.paint.dress(Part::Quiet, &row)
    }

    fn status_parts(&self) -> Vec<(Rank, String)> {
        let mut parts = Vec::new();
        if let Some(Busy::Turn(time) | Busy::Command(time)) = self.busy {
            parts.push((Rank::Runs, self.running_part(time)));
        }
        let typed = !self.editor.is_empty();
        let mut tip = |text: &str| parts.push((Rank::Tip, text.to_string()));
        match (self.hint, self.busy) {
            (Some(hint), _) => parts.push((Rank::Hint, hint.to_string())),
            (None, Some(Busy::Turn(_))) if self.question.is_some() && self.answers() => {}
            (None, Some(Busy::Turn(_))) if typed => tip("Enter queues, Alt-S steers"),
            (None, Some(Busy::Turn(_))) => tip("Ctrl-C cancels"),
            (None, Some(Busy::Command(_))) => tip("Ctrl-C stops the command"),
            (None, None) if self.waiting.iter().any(|one| one.state == HELD) => {
                let held = "held until your next prompt, Ctrl-C takes it back";
                parts.push((Rank::Hint, held.into()));
            }
            (None, None) => {}
        }
        if !self.editor.mode().is_empty() {
            parts.push((Rank::Mode, self.editor.mode().to_string()));
        }
        parts.extend(self.status.parts());
        parts
    }

    fn running_part(&self, running: Duration) -> String {
        let ms = running.as_millis() as u64;
        let frame = match self.paint {
            Paint::Colour => FRAMES[(ms / FRAME) as usize % FRAMES.len()],
            Paint::Plain => "...",
        };
        // Whole tenths, so that the line does not flicker.
        format!("{frame} {}", duration(ms / 100 * 100))
    }
}

/// How much a part of the status matters: what matters least goes first where there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Runs,
    Hint,
    Mode,
    Context,
    Model,
    Clients,
    Tip,
    Session,
    Tokens,
}

impl Status {
    fn parts(&self) -> Vec<(Rank, String)> {
        let mut parts = vec![
            (Rank::Session, self.session.clone()),
            (Rank::Model, self.model.clone()),
        ];
        let context = self.context.map(|percent| format!("context {percent}%"));
        parts.extend(context.map(|text| (Rank::Context, text)));
        let (sent, received) = self.tokens;
        if sent + received > 0 {
            let tokens = format!("↑{} ↓{}", short(sent), short(received));
            parts.push((Rank::Tokens, tokens));
        }
        if self.clients > 1 {
            parts.push((Rank::Clients, format!("{} clients", self.clients)));
        }
        parts.retain(|(_, part)| painted_width(part) > 0);
        parts
    }
}

/// A count for a narrow place.
fn short(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        1_000_000.. => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}
