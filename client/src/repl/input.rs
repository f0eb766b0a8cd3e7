//! The keyboard, on a thread of its own: the line editor, or a watch for single keys while a turn streams. The
//! terminal is raw only in here. Must never write anything but the line being typed and what goes above it.

mod editor;

use crate::place::Place;
use crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind,
    KeyModifiers,
};
use editor::Editor;
use protocol::command::Completions;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often the thread looks up from waiting for a key.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What the thread is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// Edit a line that begins with this text.
    Edit(String),
    /// Watch for single keys.
    Watch,
}

/// What the thread came back with. It does nothing more until it is asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A line was finished.
    Line(String),
    /// Ctrl-C, on a line with text or without.
    Interrupt(Typed),
    /// Ctrl-D.
    Detach,
    /// The first of a line, typed while keys were watched.
    Began(String),
    /// It was told to stop.
    Stopped(Typed),
    /// The terminal does not work.
    Broken(String),
}

/// Whether the line being typed holds anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Nothing,
    Something,
}

/// A line whose end may be completed, and where the answer goes.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) line: String,
    pub(super) answer: blocking::SyncSender<Completions>,
}

/// Text to be written above the line being typed; whoever takes it writes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Above(Arc<Mutex<String>>);

impl Above {
    pub(super) fn push(&self, text: &str) {
        self.lock().push_str(text);
    }

    pub(super) fn take(&self) -> String {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What both sides see at once.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    typed: AtomicBool,
    asking: AtomicBool,
    above: Above,
}

/// The keyboard as the REPL uses it.
#[derive(Debug)]
pub(super) struct Input {
    /// One order at a time.
    wants: blocking::SyncSender<Want>,
    /// One answer for each order.
    heard: mpsc::Receiver<Heard>,
    unfinished: mpsc::Receiver<Unfinished>,
    shared: Arc<Shared>,
    doing: Option<Want>,
}

impl Input {
    /// Starts the thread, if the terminal answers at all.
    pub(super) fn start(place: &Place) -> Option<Self> {
        // The line editor must know where the cursor stands; a terminal that does not tell gets plain lines.
        crossterm::cursor::position().ok()?;
        let (wants, orders) = blocking::sync_channel(1);
        let (sender, heard) = mpsc::channel(1);
        let (completing, unfinished) = mpsc::channel(1);
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let history = place.history();
        // Ends with the process, or when nobody asks any more.
        std::thread::spawn(move || {
            let mut editor = Editor::new(history, Arc::clone(&theirs), completing);
            while let Ok(want) = orders.recv() {
                let heard = match want {
                    Want::Edit(text) => editor.read(&text),
                    Want::Watch => watch(&theirs),
                };
                if sender.blocking_send(heard).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            wants,
            heard,
            unfinished,
            shared,
            doing: None,
        })
    }

    /// Where text goes while a line is typed.
    pub(super) fn above(&self) -> Above {
        self.shared.above.clone()
    }

    /// What the thread does now.
    pub(super) fn doing(&self) -> Option<&Want> {
        self.doing.as_ref()
    }

    /// Whether a line with text is being typed.
    pub(super) fn is_typed(&self) -> bool {
        self.shared.typed.load(Ordering::Relaxed)
    }

    /// Whether the prompt is a question's.
    pub(super) fn set_asking(&self, asking: bool) {
        self.shared.asking.store(asking, Ordering::Relaxed);
    }

    /// Gives the idle thread its next order.
    pub(super) fn begin(&mut self, want: Want) {
        let text = matches!(&want, Want::Edit(text) if !text.is_empty());
        self.shared.typed.store(text, Ordering::Relaxed);
        self.shared.stop.store(false, Ordering::Relaxed);
        if self.wants.try_send(want.clone()).is_ok() {
            self.doing = Some(want);
        }
    }

    /// Tells the thread to come back; it answers with [`Heard::Stopped`], or with what came first.
    pub(super) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// What the thread came back with. Dropping the future loses nothing.
    pub(super) async fn heard(&mut self) -> Heard {
        let heard = self.heard.recv().await;
        self.doing = None;
        heard.unwrap_or_else(|| Heard::Broken("the keyboard's thread has ended".into()))
    }

    /// What either side of the thread wants: an answer, or a completion.
    pub(super) async fn next(&mut self) -> Next {
        tokio::select! {
            heard = self.heard.recv() => {
                self.doing = None;
                let gone = || Heard::Broken("the keyboard's thread has ended".into());
                Next::Heard(heard.unwrap_or_else(gone))
            }
            Some(unfinished) = self.unfinished.recv() => Next::Complete(unfinished),
        }
    }
}

/// See [`Input::next`].
#[derive(Debug)]
pub(super) enum Next {
    Heard(Heard),
    Complete(Unfinished),
}

/// Waits for a key that means something, with the terminal raw.
fn watch(shared: &Shared) -> Heard {
    let watched = crossterm::terminal::enable_raw_mode()
        .and_then(|()| crossterm::execute!(io::stdout(), EnableBracketedPaste))
        .and_then(|()| watch_keys(shared));
    let _ = crossterm::execute!(io::stdout(), DisableBracketedPaste);
    let _ = crossterm::terminal::disable_raw_mode();
    watched.unwrap_or_else(|error| Heard::Broken(error.to_string()))
}

fn watch_keys(shared: &Shared) -> io::Result<Heard> {
    loop {
        if shared.stop.load(Ordering::Relaxed) {
            return Ok(Heard::Stopped(Typed::Nothing));
        }
        if !event::poll(LOOK_UP)? {
            continue;
        }
        if let Some(heard) = meaning(&event::read()?) {
            return Ok(heard);
        }
    }
}

/// What a key means while no line is being typed.
fn meaning(event: &Event) -> Option<Heard> {
    match event {
        Event::Paste(text) => Some(Heard::Began(text.clone())),
        Event::Key(key) if key.kind != KeyEventKind::Release => key_meaning(key),
        _ => None,
    }
}

fn key_meaning(key: &KeyEvent) -> Option<Heard> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    match key.code {
        KeyCode::Char('c') if control => Some(Heard::Interrupt(Typed::Nothing)),
        KeyCode::Char('d') if control => Some(Heard::Detach),
        KeyCode::Char(c) if !control && !alt => Some(Heard::Began(c.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> Option<Heard> {
        meaning(&Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn a_letter_begins_a_line_and_enter_does_not() {
        assert_eq!(
            key(KeyCode::Char('x'), KeyModifiers::NONE),
            Some(Heard::Began("x".into()))
        );
        assert_eq!(key(KeyCode::Enter, KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Char('x'), KeyModifiers::ALT), None);
        let paste = Event::Paste("a\nb".into());
        assert_eq!(meaning(&paste), Some(Heard::Began("a\nb".into())));
    }

    #[test]
    fn control_keys_interrupt_and_detach() {
        assert_eq!(
            key(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(Heard::Interrupt(Typed::Nothing))
        );
        assert_eq!(
            key(KeyCode::Char('d'), KeyModifiers::CONTROL),
            Some(Heard::Detach)
        );
    }
}
