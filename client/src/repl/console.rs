//! What belongs to the terminal and not to one session: the keyboard, the screen, the text being typed. Must never know
//! a session.

use super::editor::{Editor, KeyStyle};
use super::history::History;
use super::keys::Keys;
use crate::place::Place;
use crate::screen::Screen;
use std::io::{self, Stdout};

/// The terminal of this process.
pub(super) struct Console {
    pub(super) keys: Keys,
    pub(super) screen: Screen<Stdout>,
    pub(super) editor: Editor,
}

impl Console {
    /// Takes the terminal; it is as it was before when this is dropped.
    pub(super) fn start(place: &Place, cwd: &str) -> io::Result<Self> {
        let (columns, rows) = size();
        let history = History::load(place.history(), &place.old_history(), cwd);
        Ok(Self {
            keys: Keys::start()?,
            screen: Screen::new(io::stdout(), (columns, rows)),
            editor: Editor::new(KeyStyle::from_env(), history),
        })
    }

    /// Leaves the terminal to another program.
    pub(super) fn sleep(&mut self) -> io::Result<()> {
        self.screen.leave()?;
        self.keys.sleep()
    }

    /// Takes it back; its window may have another size by now.
    pub(super) fn wake(&mut self) -> io::Result<()> {
        self.keys.wake()?;
        let (columns, rows) = size();
        self.screen.resize(columns, rows);
        Ok(())
    }
}

fn size() -> (usize, usize) {
    crossterm::terminal::size().map_or((80, 24), |(columns, rows)| (columns.into(), rows.into()))
}
