//! The bottom of the screen: what goes on, what waits, the text being typed, and a line of status. Pure; must never
//! draw.

mod status;

use super::editor::{Editor, lay_out};
use crate::approval::{ALWAYS, Question, Reply, named_pattern};
use crate::paint::{Mark, Paint, Part, spell_out, tame};
use crate::render::first_line;
use crate::render::styled::{clip, painted_width, shortened, width};
use crate::screen::Panel;
use nu_ansi_term::{Color, Style};
use protocol::approval::Scope;
pub(super) use status::Status;
use std::borrow::Cow;
use std::time::Duration;

/// How many rows a menu has at most.
const MENU: usize = 8;

/// How many waiting prompts are shown.
const QUEUE: usize = 3;

/// The state of what goes along with the next prompt.
pub(super) const TOLD: &str = "goes along";

/// The state of a prompt that waits though nothing runs.
pub(super) const HELD: &str = "held";

/// How often a frame changes, in milliseconds.
pub(super) const FRAME: u64 = 120;

/// A prompt that is not a turn yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    /// `queued`, `held`, `goes along`, or where else it is on its way.
    pub(super) state: &'static str,
    pub(super) text: String,
}

/// What runs, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    Turn(Duration),
    /// A command of the person's own.
    Command(Duration),
}

/// All that the panel shows.
pub(super) struct View<'a> {
    pub(super) paint: Paint,
    /// Columns and rows of the window.
    pub(super) size: (usize, usize),
    /// What goes on.
    pub(super) live: Vec<String>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) question: Option<&'a Question>,
    /// Which of the questions that wait it is, and how many they are.
    pub(super) questions: (usize, usize),
    pub(super) editor: &'a Editor,
    pub(super) status: &'a Status,
    /// What runs.
    pub(super) busy: Option<Busy>,
    /// A word about the last key.
    pub(super) hint: Option<&'a str>,
    /// Why there is no connection.
    pub(super) down: Option<&'a str>,
}

impl View<'_> {
    /// As rows, the newest of what goes on among them as far as there is room.
    pub(super) fn panel(&self) -> Panel {
        let (columns, rows) = self.size;
        let (input, cursor) = self.input(columns, (rows / 2).max(1));
        let mut above = self.waiting_rows(columns);
        above.extend(self.question_rows(columns));
        let mut below = self.menu_rows(columns, rows);
        below.extend(self.down_row(columns));
        below.push(self.status_row(columns));
        let taken = above.len() + input.len() + below.len();
        let left = rows.saturating_sub(taken + 1);
        let hidden = self.live.len().saturating_sub(left);
        let mut all: Vec<String> = self.live[hidden..].to_vec();
        // Some air above the text, where there is room for it.
        if rows > 20 || self.live.is_empty() && rows > 10 {
            all.push(String::new());
        }
        all.extend(above);
        let cursor = (all.len() + cursor.0, cursor.1);
        all.extend(input);
        all.extend(below);
        Panel { rows: all, cursor }
    }

    /// The text being typed, the rows around the cursor.
    fn input(&self, columns: usize, most: usize) -> (Vec<String>, (usize, usize)) {
        let prompt = self.prompt();
        let indent = width(&prompt).min(columns / 2);
        let (rows, cursor) = lay_out(self.editor.text(), self.editor.cursor(), indent, columns);
        let first = (cursor.0 + 1).saturating_sub(most);
        let shown = rows.iter().enumerate().skip(first).take(most);
        let rows = shown.map(|(at, row)| match at {
            0 => format!(
                "{}{}",
                self.dressed_prompt(&clip(&prompt, indent)),
                self.coloured(row)
            ),
            _ => format!("{}{row}", " ".repeat(indent)),
        });
        (rows.collect(), (cursor.0 - first, cursor.1))
    }

    fn prompt(&self) -> String {
        match self.editor.search() {
            Some(search) if search.missed => format!("(not in history: {}) ", search.term),
            Some(search) => format!("(history: {}) ", search.term),
            None if self.question.is_some() => "allow? ".into(),
            None => "> ".into(),
        }
    }

    fn dressed_prompt(&self, prompt: &str) -> String {
        let colour = match self.question {
            Some(_) => Color::Yellow,
            None => Color::Cyan,
        };
        match self.paint {
            Paint::Plain => prompt.to_string(),
            Paint::Colour => Style::new().fg(colour).bold().paint(prompt).to_string(),
        }
    }

    /// A command's name stands out.
    fn coloured(&self, row: &str) -> String {
        let name = match row.starts_with(['/', '!']) {
            true => row.find(char::is_whitespace).unwrap_or(row.len()),
            false => 0,
        };
        format!(
            "{}{}",
            self.paint.dress(Part::Tool, &row[..name]),
            &row[name..]
        )
    }

    fn waiting_rows(&self, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        for (at, waiting) in self.waiting.iter().enumerate() {
            if at == QUEUE {
                let more = format!("… {} more wait", self.waiting.len() - at);
                rows.push(self.paint.dress(Part::Quiet, &more));
                break;
            }
            let line = format!("{}: {}", waiting.state, first_line(&waiting.text));
            rows.push(
                self.paint
                    .dress(Part::Quiet, &shortened(&line, columns.saturating_sub(1))),
            );
        }
        rows
    }

    fn question_rows(&self, columns: usize) -> Vec<String> {
        let Some(question) = self.question else {
            return Vec::new();
        };
        let room = columns.saturating_sub(1);
        let more = match self.questions {
            (_, 0 | 1) => String::new(),
            (at, all) => format!("  ({at} of {all}, Tab: next)"),
        };
        let brief = spell_out(&question.brief().replace('\n', " "));
        let both_ends = |room: usize| crate::render::styled::clip_middle(&brief, room);
        let tool = self
            .paint
            .dress(Part::Ask, &format!("allow {}?", tame(&question.tool)));
        let head = format!("{} {tool}", self.paint.mark(Mark::Ask));
        let left = room.saturating_sub(painted_width(&head) + width(&more) + 1);
        let mut rows = vec![match left {
            0..20 => format!("{}{more}", clip(&head, room.saturating_sub(width(&more)))),
            left => format!("{head} {}{more}", both_ends(left)),
        }];
        if left < 20 {
            rows.push(format!("  {}", both_ends(room.saturating_sub(2))));
        }
        // In a narrow window the keys take several rows.
        let mut row = String::new();
        for key in self.keys(question) {
            if !row.is_empty() && width(&row) + width(&key) + 4 > room {
                rows.push(std::mem::take(&mut row));
            }
            row.push_str("  ");
            row.push_str(&key);
        }
        rows.push(row);
        rows
    }

    /// Whether Enter would answer the question, or begin to.
    fn answers(&self) -> bool {
        let typed = self.editor.text();
        Reply::parse(typed).is_some() || is_reason(typed) || named_pattern(typed).is_some()
    }

    /// What answers the question: a key, as long as nothing is typed.
    fn keys(&self, question: &Question) -> Vec<Cow<'static, str>> {
        let typed = self.editor.text();
        if let Some((scope, _)) = named_pattern(typed) {
            return pattern_keys(scope, question.patterns.len());
        }
        if typed == ALWAYS && question.patterns.is_empty() {
            let enter = "Enter: allow exactly this for good";
            return vec![enter.into(), FILE.into(), "Esc: back".into()];
        }
        let keys = match Reply::parse(typed) {
            _ if typed.is_empty() => question.keys(),
            Some(reply) if reply.reason.is_some() => {
                vec![
                    "Enter says no, with this reason,",
                    "Ctrl-C empties the line",
                ]
            }
            Some(_) => vec![
                "Enter, or the key again, answers with this,",
                "Ctrl-C empties the line",
            ],
            None if is_reason(typed) => vec!["a reason, and Enter"],
            None => vec![
                "the line is not empty: Enter sends it,",
                "Ctrl-C empties it, then a key answers",
            ],
        };
        keys.into_iter().map(Cow::from).collect()
    }

    fn menu_rows(&self, columns: usize, rows: usize) -> Vec<String> {
        let Some(menu) = self.editor.menu() else {
            return Vec::new();
        };
        let most = MENU.min(rows / 3).max(1);
        let wide = menu
            .window(most)
            .map(|(one, _)| width(&one_line(&one.text)))
            .max()
            .unwrap_or(0);
        let wide = wide.min(columns / 2);
        let mut all: Vec<String> = menu
            .window(most)
            .map(|(one, chosen)| {
                let name = shortened(&one_line(&one.text), wide);
                let gap = " ".repeat(wide.saturating_sub(width(&name)));
                let about = self.paint.dress(
                    Part::Quiet,
                    &one_line(one.description.as_deref().unwrap_or_default()),
                );
                let mark = if chosen { "▸" } else { " " };
                let part = if chosen { Part::Prompt } else { Part::Tool };
                format!("{mark} {}{gap}  {about}", self.paint.dress(part, &name))
            })
            .map(|row| clip(row.trim_end(), columns.saturating_sub(1)))
            .collect();
        let beyond = menu.beyond(most);
        let beyond = (beyond > 0).then(|| format!("… {beyond} more"));
        let more: Vec<String> = beyond.into_iter().chain(menu.more().map(tame)).collect();
        if !more.is_empty() {
            let row = clip(
                &format!("  {}", more.join(" · ")),
                columns.saturating_sub(1),
            );
            all.push(self.paint.dress(Part::Quiet, &row));
        }
        all
    }

    /// Keys still work without a connection, and nothing else does.
    fn down_row(&self, columns: usize) -> Option<String> {
        let row = match self.down? {
            "" => "no connection, trying again".to_owned(),
            why => format!("no connection, trying again: {}", tame(why)),
        };
        let row = clip(&row, columns.saturating_sub(1));
        Some(self.paint.dress(Part::Bad, &row))
    }
}

/// Where an answer for good is written.
const FILE: &str = "in .agents/permissions.json";

/// What may be done with the pattern in the line.
fn pattern_keys(scope: Scope, offered: usize) -> Vec<Cow<'static, str>> {
    let mut keys: Vec<Cow<'static, str>> = match scope {
        Scope::Session => vec!["Enter: allow it for this session".into()],
        Scope::Call | Scope::Program | Scope::Always => {
            vec!["Enter: allow it for good".into(), FILE.into()]
        }
    };
    if offered > 1 {
        keys.push(format!("Tab: another of {offered}").into());
    }
    keys.push("Esc: back".into());
    keys
}

/// A name in one row, whatever is in it.
fn one_line(text: &str) -> String {
    tame(text).replace('\n', "\\n").replace('\t', " ")
}

/// Whether a no with a reason is begun.
fn is_reason(typed: &str) -> bool {
    matches!(typed.trim(), "r" | "reason")
}

#[cfg(test)]
mod tests {
    use super::super::editor::KeyStyle;
    use super::super::history::History;
    use super::*;
    use std::path::Path;

    fn editor(text: &str) -> Editor {
        let nowhere = Path::new("/dev/null/history.jsonl");
        let mut editor = Editor::new(KeyStyle::Emacs, History::load(nowhere.into(), nowhere, "/"));
        editor.set(text);
        editor
    }

    fn status() -> Status {
        Status {
            session: "calm-otter".into(),
            model: "script".into(),
            context: Some(34),
            tokens: (12_300, 950),
            clients: 2,
        }
    }

    fn view<'a>(editor: &'a Editor, status: &'a Status, size: (usize, usize)) -> View<'a> {
        View {
            paint: Paint::Plain,
            size,
            live: Vec::new(),
            waiting: Vec::new(),
            question: None,
            questions: (0, 0),
            editor,
            status,
            busy: None,
            hint: None,
            down: None,
        }
    }

    #[test]
    fn the_status_tells_what_there_is_to_know() {
        let (editor, status) = (editor("hi"), status());
        let panel = view(&editor, &status, (80, 24)).panel();
        assert_eq!(
            panel.rows,
            [
                "",
                "> hi",
                "calm-otter · script · context 34% · ↑12.3k ↓950 · 2 clients"
            ]
        );
        assert_eq!(panel.cursor, (1, 4));
    }

    #[test]
    fn a_narrow_status_keeps_what_matters_most() {
        let (editor, status) = (editor(""), status());
        let row = |columns: usize| {
            let mut view = view(&editor, &status, (columns, 15));
            view.busy = Some(Busy::Turn(Duration::from_millis(4_500)));
            view.panel().rows.pop().unwrap()
        };
        let all = "... 4.5 s · Ctrl-C cancels · calm-otter · script · context 34% · ↑12.3k ↓950 · 2 clients";
        assert_eq!(row(120), all);
        let some = "... 4.5 s · Ctrl-C cancels · calm-otter · script · context 34% · 2 clients";
        assert_eq!(row(80), some);
        let few = "... 4.5 s · script · context 34% · 2 clients";
        assert_eq!(row(50), few);
        assert_eq!(row(40), "... 4.5 s · script · context 34%");
        assert_eq!(row(8), "... 4.…");
    }

    #[test]
    fn what_goes_on_gives_way_to_the_text_being_typed() {
        let (editor, status) = (editor(&"word ".repeat(20)), status());
        let mut view = view(&editor, &status, (20, 8));
        view.live = (0..50).map(|n| format!("row {n}")).collect();
        let panel = view.panel();
        assert!(panel.rows.len() < 8, "{:?}", panel.rows);
        assert!(
            panel.rows.contains(&"row 49".to_string()),
            "{:?}",
            panel.rows
        );
        assert_eq!(panel.cursor.0, panel.rows.len() - 2);
    }

    #[test]
    fn a_lost_connection_is_told_above_the_status() {
        let (editor, status) = (editor(""), status());
        let mut view = view(&editor, &status, (40, 15));
        view.down = Some("ssh did not reach box");
        let rows = view.panel().rows;
        assert_eq!(
            rows[rows.len() - 2],
            "no connection, trying again: ssh did no"
        );
    }

    #[test]
    fn a_question_names_its_keys_in_every_window() {
        let (editor, status) = (editor(""), status());
        let question = Question {
            approval: "s.a1".into(),
            call: "c1".into(),
            tool: "execute".into(),
            arguments: serde_json::json!({"command": "rm -r x"}),
            why: String::new(),
            patterns: Vec::new(),
            of_program: true,
            change: None,
        };
        for columns in [40, 80, 120] {
            let mut view = view(&editor, &status, (columns, 15));
            (view.question, view.questions) = (Some(&question), (2, 3));
            let text = view.panel().rows.join("\n");
            for part in [
                "allow execute?",
                "(2 of 3",
                "[y] once",
                "[p] this program",
                "[r REASON] no",
            ] {
                assert!(text.contains(part), "{part} at {columns}: {text}");
            }
        }
    }
}
