//! The last that a child complained of. Never more than a few lines.

use std::collections::VecDeque;

/// How many lines are kept.
const LINES: usize = 5;
/// How much of a line is kept.
const LENGTH: usize = 400;

#[derive(Default)]
pub(super) struct Tail(VecDeque<String>);

impl Tail {
    pub(super) fn push(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if self.0.len() == LINES {
            self.0.pop_front();
        }
        self.0.push_back(line.chars().take(LENGTH).collect());
    }

    /// `: ` and the lines, or nothing.
    pub(super) fn text(&self) -> String {
        let lines: Vec<&str> = self.0.iter().map(|line| line.trim_end()).collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!(": {}", lines.join("\n")),
        }
    }
}
