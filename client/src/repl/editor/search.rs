//! Searching what was typed before. Must never change the history.

use super::Editor;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use reedline::EditCommand;

/// A search through what was typed.
#[derive(Debug)]
pub(in crate::repl) struct Search {
    pub(in crate::repl) term: String,
    /// Whether nothing (older) holds the term.
    pub(in crate::repl) missed: bool,
    found: Option<usize>,
    before: String,
}

impl Editor {
    pub(super) fn begin_search(&mut self) {
        self.menu = None;
        self.search = Some(Search {
            term: String::new(),
            missed: false,
            found: None,
            before: self.text().to_string(),
        });
    }

    /// A key while searching; says whether that was all it meant.
    pub(super) fn search_key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => self.seek_older(),
            KeyCode::Char('g' | 'c') if control => self.end_search(false),
            KeyCode::Esc => self.end_search(false),
            KeyCode::Enter => self.end_search(true),
            KeyCode::Backspace => self.seek(|term| {
                term.pop();
            }),
            KeyCode::Char(c) if !control => self.seek(|term| term.push(c)),
            _ => {
                self.end_search(true);
                return false;
            }
        }
        true
    }

    fn seek(&mut self, change: impl Fn(&mut String)) {
        if let Some(search) = &mut self.search {
            change(&mut search.term);
            search.found = None;
        }
        self.seek_older();
    }

    fn seek_older(&mut self) {
        let Some(search) = &mut self.search else {
            return;
        };
        if search.term.is_empty() {
            search.missed = false;
            return;
        }
        // The same line may have been typed more than once.
        let mut before = search.found;
        let shown = self.reedline.current_buffer_contents().to_string();
        let line = loop {
            match self.history.search(before, &search.term) {
                Some((at, line)) if before.is_some() && line == shown => before = Some(at),
                Some((at, line)) => {
                    search.found = Some(at);
                    search.missed = false;
                    break line.to_string();
                }
                None => {
                    search.missed = true;
                    return;
                }
            }
        };
        self.run(&[EditCommand::Clear, EditCommand::InsertString(line)]);
    }

    fn end_search(&mut self, keep: bool) {
        if let Some(search) = self.search.take().filter(|_| !keep) {
            self.run(&[EditCommand::Clear, EditCommand::InsertString(search.before)]);
        }
    }
}
