//! Keys and what they mean: emacs's or vi's, as reedline has them, and the few that are this program's. Must never act.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use reedline::{
    EditMode, Emacs, PromptEditMode, PromptViMode, ReedlineEvent, ReedlineRawEvent, Vi,
};
use std::sync::{Arc, Mutex, PoisonError};

/// Whose keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::repl) enum Style {
    Emacs,
    Vi,
}

impl Style {
    /// Whether a value of `DWELL_KEYS` means something.
    pub(in crate::repl) fn understands(value: &str) -> bool {
        matches!(value, "vi" | "vim" | "emacs")
    }

    /// As the person set it, for this program or for all that read lines.
    pub(in crate::repl) fn from_env() -> Self {
        let named = std::env::var("DWELL_KEYS").unwrap_or_default();
        match named.as_str() {
            "vi" | "vim" => Self::Vi,
            _ => Self::Emacs,
        }
    }
}

/// The state of the keys. reedline looks at it while it edits, this program while it reads: never at the same time.
pub(super) struct Keymap(Arc<Mutex<Box<dyn EditMode>>>);

impl Keymap {
    pub(super) fn new(style: Style) -> Self {
        let mode: Box<dyn EditMode> = match style {
            Style::Emacs => Box::new(Emacs::default()),
            Style::Vi => Box::new(Vi::default()),
        };
        Self(Arc::new(Mutex::new(mode)))
    }

    /// The same state, for reedline.
    pub(super) fn for_reedline(&self) -> Box<dyn EditMode> {
        Box::new(Shared(Arc::clone(&self.0)))
    }

    pub(super) fn meaning(&self, key: KeyEvent) -> ReedlineEvent {
        match ReedlineRawEvent::try_from(Event::Key(key)) {
            Ok(raw) => self.lock().parse_event(raw),
            Err(()) => ReedlineEvent::None,
        }
    }

    /// A key that only changes the state.
    pub(super) fn switch(&self, event: ReedlineEvent) {
        self.lock().handle_mode_specific_event(event);
    }

    pub(super) fn mode(&self) -> &'static str {
        match self.lock().edit_mode() {
            PromptEditMode::Vi(PromptViMode::Normal) => "normal",
            PromptEditMode::Vi(PromptViMode::Insert) => "insert",
            PromptEditMode::Vi(_) => "visual",
            _ => "",
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Box<dyn EditMode>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Shared(Arc<Mutex<Box<dyn EditMode>>>);

impl EditMode for Shared {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let mut mode = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mode.parse_event(event)
    }

    fn edit_mode(&self) -> PromptEditMode {
        let mode = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mode.edit_mode()
    }
}

/// Keys for what is shown, not for the text: see `client/docs/terminal.md`.
pub(super) fn is_programs(key: KeyEvent) -> bool {
    let control = key.modifiers == KeyModifiers::CONTROL;
    let alt = key.modifiers == KeyModifiers::ALT;
    match key.code {
        KeyCode::Char('o') => control || alt,
        KeyCode::Char('t' | 'z') => control,
        KeyCode::Char('s' | 'n') | KeyCode::Up => alt,
        _ => false,
    }
}

/// Ctrl-G opens the person's editor.
pub(super) fn is_compose(key: KeyEvent) -> bool {
    is_control(key, 'g')
}

/// Ctrl-J begins another line, as a line feed is one: Enter is the other one.
pub(super) fn is_newline(key: KeyEvent) -> bool {
    is_control(key, 'j')
}

/// The first key of Ctrl-X Ctrl-E, which is the shells' for the same.
pub(super) fn is_prefix(key: KeyEvent) -> bool {
    is_control(key, 'x')
}

/// And its second.
pub(super) fn is_compose_after_prefix(key: KeyEvent) -> bool {
    is_control(key, 'e')
}

/// Ctrl-_ takes back the last change; terminals send the same for Ctrl-/ and Ctrl-7.
pub(super) fn is_undo(key: KeyEvent) -> bool {
    ['_', '/', '7'].iter().any(|c| is_control(key, *c))
}

fn is_control(key: KeyEvent, c: char) -> bool {
    key.modifiers == KeyModifiers::CONTROL && key.code == KeyCode::Char(c)
}
