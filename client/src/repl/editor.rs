//! The text being typed: reedline's editing and keys, without its drawing; history, search, folded pastes and the menu
//! of completions. Must never draw, wait or ask anybody: what a key asks for is its answer.

mod keymap;
mod layout;
mod menu;
mod paste;
mod search;

use super::history::History;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use keymap::Keymap;
pub(super) use keymap::Style as KeyStyle;
pub(super) use layout::lay_out;
pub(super) use menu::Menu;
use protocol::command::Completions;
use reedline::{EditCommand, Reedline, ReedlineEvent};
use search::Search;

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing but another look.
    Nothing,
    /// The text is done.
    Line(String),
    /// Ctrl-C with nothing typed.
    Interrupt,
    /// Ctrl-D with nothing typed.
    Detach,
    /// The screen is to be emptied.
    Clear,
    /// The text is to be written in the person's editor.
    Compose,
    /// The key is the program's.
    Program(KeyEvent),
}

/// The text being typed.
pub(super) struct Editor {
    reedline: Reedline,
    keymap: Keymap,
    history: History,
    /// Where Up has led, and what was typed before.
    browsing: Option<Browsing>,
    search: Option<Search>,
    menu: Option<Menu>,
    /// Folded pastes: what stands for them, and what they are.
    pastes: Vec<(String, String)>,
    /// Texts in which a mark was broken, and what was made of each: no step of taking changes back ends in one.
    broken: Vec<(String, String)>,
    /// What completion the text as it is wants, until somebody takes the wish.
    wish: Option<Wish>,
    /// Whether the last key was the first of two.
    prefixed: bool,
}

/// A completion that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// Up to the cursor.
    pub(super) line: String,
    /// Whether a person asked: a lone candidate is taken at once.
    pub(super) by_key: bool,
}

#[derive(Debug)]
struct Browsing {
    at: usize,
    typed: String,
}

impl Editor {
    pub(super) fn new(style: KeyStyle, history: History) -> Self {
        let keymap = Keymap::new(style);
        Self {
            reedline: Reedline::create().with_edit_mode(keymap.for_reedline()),
            keymap,
            history,
            browsing: None,
            search: None,
            menu: None,
            pastes: Vec::new(),
            broken: Vec::new(),
            wish: None,
            prefixed: false,
        }
    }

    /// What is typed, as it is shown.
    pub(super) fn text(&self) -> &str {
        self.reedline.current_buffer_contents()
    }

    /// Where the cursor stands in it, in bytes.
    pub(super) fn cursor(&self) -> usize {
        self.reedline.current_insertion_point()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// The word for the state of the keys, where there is one: vi's.
    pub(super) fn mode(&self) -> &'static str {
        self.keymap.mode()
    }

    pub(super) fn search(&self) -> Option<&Search> {
        self.search.as_ref()
    }

    pub(super) fn menu(&self) -> Option<&Menu> {
        self.menu.as_ref()
    }

    pub(super) fn history(&mut self) -> &mut History {
        &mut self.history
    }

    /// What is typed, with its pastes.
    pub(super) fn whole(&self) -> String {
        unfold(self.text(), &self.pastes)
    }

    /// The completion that the newest change wants.
    pub(super) fn take_wish(&mut self) -> Option<Wish> {
        self.wish.take()
    }

    /// Replaces what is typed.
    pub(super) fn set(&mut self, text: &str) {
        self.run(&[
            EditCommand::Clear,
            EditCommand::InsertString(crate::paint::tame(text)),
        ]);
        self.changed();
    }

    /// Empties it.
    pub(super) fn clear(&mut self) {
        self.run(&[EditCommand::Clear]);
        self.pastes.clear();
        self.broken.clear();
        self.browsing = None;
        self.search = None;
        self.menu = None;
        self.wish = None;
    }

    pub(super) fn event(&mut self, event: Event) -> Asked {
        match event {
            Event::Paste(text) => {
                self.paste(&text);
                Asked::Nothing
            }
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            _ => Asked::Nothing,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Asked {
        if self.search.is_some() && self.search_key(key) {
            return Asked::Nothing;
        }
        let prefixed = std::mem::replace(&mut self.prefixed, keymap::is_prefix(key));
        if self.prefixed {
            return Asked::Nothing;
        }
        if keymap::is_compose(key) || prefixed && keymap::is_compose_after_prefix(key) {
            return Asked::Compose;
        }
        if keymap::is_programs(key) {
            return Asked::Program(key);
        }
        if keymap::is_undo(key) {
            self.undo();
            self.changed();
            return Asked::Nothing;
        }
        if key.code == KeyCode::Tab && key.modifiers.is_empty() {
            self.tab();
            return Asked::Nothing;
        }
        if key.code == KeyCode::BackTab && self.menu.is_some() {
            self.choose(Menu::up);
            return Asked::Nothing;
        }
        let before = self.text().to_string();
        let key = match keymap::is_newline(key) {
            true => KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT),
            false => key,
        };
        let meaning = self.keymap.meaning(key);
        let asked = self.obey(meaning).unwrap_or(Asked::Nothing);
        if self.text() != before {
            self.mend_pastes(&before);
            self.changed();
        }
        asked
    }

    /// What a key means; none if it means nothing here.
    fn obey(&mut self, meaning: ReedlineEvent) -> Option<Asked> {
        match meaning {
            ReedlineEvent::Edit(commands) if commands == [EditCommand::Undo] => {
                self.undo();
                Some(Asked::Nothing)
            }
            ReedlineEvent::Edit(commands) => {
                let (text, cursor) = (self.text().to_string(), self.cursor());
                self.run(&commands);
                let changed = text != self.text();
                if changed {
                    self.browsing = None;
                }
                (changed || cursor != self.cursor()).then_some(Asked::Nothing)
            }
            ReedlineEvent::UntilFound(all) => all.into_iter().find_map(|one| self.obey(one)),
            ReedlineEvent::Multiple(all) => all
                .into_iter()
                .filter_map(|one| self.obey(one))
                .reduce(|first, next| if next == Asked::Nothing { first } else { next }),
            ReedlineEvent::Enter | ReedlineEvent::Submit | ReedlineEvent::SubmitOrNewline => {
                Some(self.enter())
            }
            ReedlineEvent::CtrlC => Some(self.interrupt()),
            ReedlineEvent::CtrlD if self.is_empty() => Some(Asked::Detach),
            ReedlineEvent::CtrlD => self.obey(ReedlineEvent::Edit(vec![EditCommand::Delete])),
            ReedlineEvent::ClearScreen | ReedlineEvent::ClearScrollback => Some(Asked::Clear),
            ReedlineEvent::OpenEditor => Some(Asked::Compose),
            ReedlineEvent::SearchHistory => {
                self.begin_search();
                Some(Asked::Nothing)
            }
            ReedlineEvent::Esc => self.menu.take().map(|_| Asked::Nothing),
            ReedlineEvent::MenuUp | ReedlineEvent::MenuPrevious => self.in_menu(Menu::up),
            ReedlineEvent::MenuDown | ReedlineEvent::MenuNext => self.in_menu(Menu::down),
            ReedlineEvent::Up => self.up(),
            ReedlineEvent::Down => self.down(),
            ReedlineEvent::PreviousHistory => self.older(),
            ReedlineEvent::NextHistory => self.newer(),
            ReedlineEvent::Left => self.edit(EditCommand::MoveLeft { select: false }),
            ReedlineEvent::Right => self.edit(EditCommand::MoveRight { select: false }),
            ReedlineEvent::ToStart => self.edit(EditCommand::MoveToStart { select: false }),
            ReedlineEvent::ToEnd => self.edit(EditCommand::MoveToEnd { select: false }),
            ReedlineEvent::SwitchMode(_) => {
                self.keymap.switch(meaning);
                Some(Asked::Nothing)
            }
            ReedlineEvent::Repaint => Some(Asked::Nothing),
            _ => None,
        }
    }

    fn run(&mut self, commands: &[EditCommand]) {
        self.reedline.run_edit_commands(commands);
    }

    fn edit(&mut self, command: EditCommand) -> Option<Asked> {
        self.obey(ReedlineEvent::Edit(vec![command]))
    }

    /// A backslash at the end goes on in the next line; a chosen completion is taken; else the text is done.
    fn enter(&mut self) -> Asked {
        if let Some(text) = self
            .menu
            .as_ref()
            .and_then(Menu::chosen)
            .map(str::to_string)
        {
            self.accept(&text);
            return Asked::Nothing;
        }
        let (text, cursor) = (self.text().to_string(), self.cursor());
        if cursor == text.len() && super::line::goes_on(&text) {
            self.run(&[EditCommand::Backspace, EditCommand::InsertNewline]);
            return Asked::Nothing;
        }
        let whole = self.whole();
        self.history.add(whole.trim_end());
        self.clear();
        Asked::Line(whole)
    }

    fn interrupt(&mut self) -> Asked {
        match self.is_empty() {
            true => Asked::Interrupt,
            false => {
                self.clear();
                Asked::Nothing
            }
        }
    }

    fn up(&mut self) -> Option<Asked> {
        let first = !self.text()[..self.cursor()].contains('\n');
        match first {
            true => self.older(),
            false => self.edit(EditCommand::MoveLineUp { select: false }),
        }
    }

    fn down(&mut self) -> Option<Asked> {
        let last = !self.text()[self.cursor()..].contains('\n');
        match last {
            true => self.newer(),
            false => self.edit(EditCommand::MoveLineDown { select: false }),
        }
    }

    /// The line of this directory before: it begins as what was typed.
    fn older(&mut self) -> Option<Asked> {
        let (at, typed) = match &self.browsing {
            Some(browsing) => (Some(browsing.at), browsing.typed.clone()),
            None => (None, self.text().to_string()),
        };
        let (at, line) = self.history.previous(at, &typed)?;
        let line = line.to_string();
        self.run(&[EditCommand::Clear, EditCommand::InsertString(line)]);
        self.browsing = Some(Browsing { at, typed });
        Some(Asked::Nothing)
    }

    fn newer(&mut self) -> Option<Asked> {
        let browsing = self.browsing.take()?;
        let (line, next) = match self.history.next(browsing.at, &browsing.typed) {
            Some((at, line)) => (line.to_string(), Some(at)),
            None => (browsing.typed.clone(), None),
        };
        self.run(&[EditCommand::Clear, EditCommand::InsertString(line)]);
        self.browsing = next.map(|at| Browsing { at, ..browsing });
        Some(Asked::Nothing)
    }

    /// What is typed has changed: a menu may open by itself.
    fn changed(&mut self) {
        self.menu = None;
        let line = self.text()[..self.cursor()].to_string();
        self.wish = menu::opens(&line).then_some(Wish {
            line,
            by_key: false,
        });
    }

    fn tab(&mut self) {
        if self.menu.as_ref().is_some_and(|menu| menu.len() == 1) {
            self.choose(Menu::down);
            let text = self
                .menu
                .as_ref()
                .and_then(Menu::chosen)
                .map(str::to_string);
            return text.iter().for_each(|text| self.accept(text));
        }
        if self.menu.is_some() {
            return self.choose(Menu::down);
        }
        let line = self.text()[..self.cursor()].to_string();
        self.wish = Some(Wish { line, by_key: true });
    }

    fn choose(&mut self, step: fn(&mut Menu)) {
        if let Some(menu) = &mut self.menu {
            step(menu);
        }
    }

    fn in_menu(&mut self, step: fn(&mut Menu)) -> Option<Asked> {
        // A menu that opened by itself does not take the keys of the history, until somebody chooses in it.
        let menu = self
            .menu
            .as_mut()
            .filter(|menu| menu.chosen().is_some() || self.browsing.is_none())?;
        step(menu);
        Some(Asked::Nothing)
    }

    /// What may stand at the end of the text that a wish named.
    pub(super) fn complete(&mut self, wish: &Wish, found: Completions) {
        if self.text()[..self.cursor()] != wish.line {
            return;
        }
        let Some(menu) = Menu::of(&wish.line, found) else {
            return;
        };
        if wish.by_key {
            let common = menu.common().to_string();
            if menu.len() == 1 {
                return self.accept_from(&menu, &common);
            }
            if common.len() > wish.line.len() - menu.start() {
                self.replace(menu.start(), &common);
            }
        }
        self.menu = Some(menu);
        self.wish = None;
    }

    fn accept(&mut self, text: &str) {
        if let Some(menu) = self.menu.take() {
            self.accept_from(&menu, text);
        }
    }

    fn accept_from(&mut self, menu: &Menu, text: &str) {
        // A folder goes on, everything else is done.
        let gap = if text.ends_with('/') { "" } else { " " };
        self.replace(menu.start(), &format!("{text}{gap}"));
        self.menu = None;
        match gap {
            "" => self.changed(),
            _ => self.wish = None,
        }
    }

    /// Puts a text in place of what stands between `start` and the cursor.
    fn replace(&mut self, start: usize, text: &str) {
        let count = self.text()[start..self.cursor()].chars().count();
        let mut commands = vec![EditCommand::Backspace; count];
        commands.push(EditCommand::InsertString(text.to_string()));
        self.run(&commands);
    }
}

/// A text with its pastes.
fn unfold(text: &str, pastes: &[(String, String)]) -> String {
    let mut whole = text.to_string();
    for (mark, paste) in pastes {
        whole = whole.replacen(mark, paste, 1);
    }
    whole
}

#[cfg(test)]
mod tests;
