//! The line editor: reedline, set up. Must never talk to the daemon itself: completions are asked for.

use super::{Heard, LOOK_UP, Shared, Typed, Unfinished};
use crate::paint::no_color;
use crate::repl::line::{OWN, goes_on};
use nu_ansi_term::{Color, Style};
use protocol::command::{Candidate, Completions};
use reedline::{
    ColumnarMenu, Completer, CompletionResult, DefaultHinter, EditCommand, Emacs, ExternalPrinter,
    FileBackedHistory, Highlighter, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode,
    PromptHistorySearch, PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, Signal,
    Span, StyledText, Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::time::Duration;
use tokio::sync::mpsc;

/// How many typed lines are remembered.
const HISTORY: usize = 2_000;

/// How long a completion may take: a key was pressed, and nothing is shown until it is there.
const COMPLETION: Duration = Duration::from_millis(500);

const MENU: &str = "completions";

/// reedline and what this program hears from it.
pub(super) struct Editor {
    /// None before the first line, and after one that was broken off.
    reedline: Option<Reedline>,
    history: PathBuf,
    completing: mpsc::Sender<Unfinished>,
    prompt: Asking,
    shared: Arc<Shared>,
}

impl Editor {
    pub(super) fn new(
        history: PathBuf,
        shared: Arc<Shared>,
        completing: mpsc::Sender<Unfinished>,
    ) -> Self {
        Self {
            reedline: None,
            history,
            completing,
            prompt: Asking {
                shared: Arc::clone(&shared),
            },
            shared,
        }
    }

    /// Reads a line that begins with a text.
    pub(super) fn read(&mut self, text: &str) -> Heard {
        let mut reedline = match self.reedline.take() {
            Some(reedline) => reedline,
            None => self.make(),
        };
        if !text.is_empty() {
            let insert = EditCommand::InsertString(text.to_string());
            reedline.run_edit_commands(&[insert]);
        }
        let signal = reedline.read_line(&self.prompt);
        let typed = match self.shared.typed.swap(false, Ordering::Relaxed) {
            true => Typed::Something,
            false => Typed::Nothing,
        };
        let heard = match signal {
            Ok(Signal::Success(line)) => Heard::Line(line),
            Ok(Signal::CtrlC) => Heard::Interrupt(typed),
            Ok(Signal::CtrlD) => Heard::Detach,
            Ok(Signal::ExternalBreak(line)) if line.is_empty() => Heard::Stopped(Typed::Nothing),
            Ok(Signal::ExternalBreak(_)) => Heard::Stopped(Typed::Something),
            Ok(_) => Heard::Stopped(Typed::Nothing),
            Err(error) => Heard::Broken(error.to_string()),
        };
        // A broken-off reedline draws its next prompt where the last one stood, over what was written meanwhile.
        if heard != Heard::Stopped(Typed::Nothing) {
            self.reedline = Some(reedline);
        }
        heard
    }

    fn make(&self) -> Reedline {
        let colours = !no_color();
        let broken = Arc::new(AtomicBool::new(false));
        // Emptied in the same turn of reedline's loop in which it is filled, so it holds one text at most.
        let printer = ExternalPrinter::new(2);
        let lines = printer.sender();
        let menu = ColumnarMenu::default().with_name(MENU);
        let mut reedline = Reedline::create()
            .with_ansi_colors(colours)
            .use_bracketed_paste(true)
            .with_poll_interval(LOOK_UP)
            .with_break_signal(Arc::clone(&broken))
            .with_external_printer(printer)
            .with_completer(Box::new(FromDaemon {
                completing: self.completing.clone(),
            }))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Emacs::new(keys())))
            .with_validator(Box::new(Continued))
            .with_highlighter(Box::new(Seen {
                shared: Arc::clone(&self.shared),
            }));
        if colours {
            let hinter = DefaultHinter::default().with_style(Style::new().dimmed());
            reedline = reedline.with_hinter(Box::new(hinter));
        }
        if let Ok(history) = FileBackedHistory::with_file(HISTORY, self.history.clone()) {
            reedline = reedline.with_history(Box::new(history));
        }
        let repaint = reedline.repaint_signal();
        let shared = Arc::clone(&self.shared);
        let mut asked = shared.asking.load(Ordering::Relaxed);
        // Runs before reedline looks at its break signal and its printer: text that is handed over here is on the
        // screen before the line can be finished.
        reedline.with_idle_callback(Box::new(move || {
            if shared.stop.swap(false, Ordering::Relaxed) {
                broken.store(true, Ordering::Relaxed);
                return;
            }
            let asking = shared.asking.load(Ordering::Relaxed);
            if asking != asked {
                asked = asking;
                repaint.request_repaint();
            }
            let text = shared.above.take();
            if !text.is_empty() && lines.try_send(text.clone()).is_err() {
                shared.above.push(&text);
            }
        }))
    }
}

fn keys() -> reedline::Keybindings {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_string()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys.add_binding(
        KeyModifiers::SHIFT,
        KeyCode::BackTab,
        ReedlineEvent::MenuPrevious,
    );
    keys
}

/// The prompt: for text, or for the answer to a question.
struct Asking {
    shared: Arc<Shared>,
}

impl Prompt for Asking {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        match self.shared.asking.load(Ordering::Relaxed) {
            true => Cow::Borrowed("allow? y/s/a/n/r > "),
            false => Cow::Borrowed("> "),
        }
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing like ",
        };
        Cow::Owned(format!("({failing}history: {}) ", search.term))
    }

    fn get_indicator_color(&self) -> Color {
        match self.shared.asking.load(Ordering::Relaxed) {
            true => Color::Yellow,
            false => Color::Cyan,
        }
    }

    fn get_prompt_multiline_color(&self) -> Color {
        Color::Cyan
    }
}

/// Enter ends a line unless a backslash stands before it.
struct Continued;

impl Validator for Continued {
    fn validate(&self, line: &str) -> ValidationResult {
        match goes_on(line) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Complete,
        }
    }
}

/// Notes whether the line holds anything, and colours a command's name.
struct Seen {
    shared: Arc<Shared>,
}

impl Highlighter for Seen {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        self.shared.typed.store(!line.is_empty(), Ordering::Relaxed);
        let mut text = StyledText::new();
        let name = match line.starts_with('/') {
            true => line.find(char::is_whitespace).unwrap_or(line.len()),
            false => 0,
        };
        if name > 0 {
            text.push((Style::new().fg(Color::Cyan), line[..name].to_string()));
        }
        text.push((Style::new(), line[name..].to_string()));
        text
    }
}

/// Completions from the daemon, with the client's own commands among them.
struct FromDaemon {
    completing: mpsc::Sender<Unfinished>,
}

impl Completer for FromDaemon {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let head = &line[..position.min(line.len())];
        let found = self.ask(head).unwrap_or_default();
        let found = with_own(head, found);
        let span = Span::new(found.start.min(position), position);
        let suggest = |candidate: Candidate| Suggestion {
            append_whitespace: !candidate.text.ends_with('/'),
            value: candidate.text,
            description: candidate.description,
            span,
            ..Suggestion::default()
        };
        let all: Vec<Suggestion> = found.candidates.into_iter().map(suggest).collect();
        CompletionResult::fresh(all)
    }
}

impl FromDaemon {
    fn ask(&self, line: &str) -> Option<Completions> {
        let (answer, answered) = blocking::sync_channel(1);
        let unfinished = Unfinished {
            line: line.to_string(),
            answer,
        };
        self.completing.try_send(unfinished).ok()?;
        answered.recv_timeout(COMPLETION).ok()
    }
}

/// Adds the client's own commands where a command's name is typed.
fn with_own(line: &str, mut found: Completions) -> Completions {
    if !line.starts_with('/') || line.contains(char::is_whitespace) {
        return found;
    }
    let known: Vec<String> = found
        .candidates
        .iter()
        .map(|one| one.text.clone())
        .collect();
    let own = OWN
        .iter()
        .filter(|(name, _)| name.starts_with(line) && !known.iter().any(|one| one == name));
    found.candidates.extend(own.map(|(name, about)| Candidate {
        text: (*name).to_string(),
        description: Some((*about).to_string()),
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_commands_stand_among_the_daemons() {
        let found = Completions {
            start: 0,
            candidates: vec![Candidate {
                text: "/export".into(),
                description: None,
            }],
        };
        let all = with_own("/ex", found);
        let names: Vec<&str> = all.candidates.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(names, ["/export", "/exit"]);
        assert!(
            with_own("/exit x", Completions::default())
                .candidates
                .is_empty()
        );
        assert!(with_own("ex", Completions::default()).candidates.is_empty());
    }
}
