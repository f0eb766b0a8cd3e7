//! What may stand at the end of the text, as a menu below it. Must never change the text itself.

use crate::repl::line::OWN;
use protocol::command::{Candidate, Completions, last_word};

/// Candidates, and which of them is chosen.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::repl) struct Menu {
    start: usize,
    candidates: Vec<Candidate>,
    chosen: Option<usize>,
    more: Option<String>,
}

impl Menu {
    /// What was found for a line, and this program's own commands among it; none if that is nothing.
    pub(super) fn of(line: &str, found: Completions) -> Option<Self> {
        let found = with_own(line, found);
        let fits = found.start <= line.len() && line.is_char_boundary(found.start);
        (fits && !found.candidates.is_empty()).then_some(Self {
            start: found.start,
            candidates: found.candidates,
            chosen: None,
            more: found.more,
        })
    }

    /// Where the completed word begins.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    pub(super) fn len(&self) -> usize {
        self.candidates.len()
    }

    pub(super) fn chosen(&self) -> Option<&str> {
        let chosen = self.candidates.get(self.chosen?)?;
        Some(&chosen.text)
    }

    pub(super) fn down(&mut self) {
        let next = self.chosen.map_or(0, |at| at + 1);
        self.chosen = Some(next % self.len());
    }

    pub(super) fn up(&mut self) {
        let last = self.len() - 1;
        self.chosen = Some(match self.chosen {
            None | Some(0) => last,
            Some(at) => at - 1,
        });
    }

    /// How all of them begin.
    pub(super) fn common(&self) -> &str {
        let mut common = self.candidates[0].text.as_str();
        for candidate in &self.candidates {
            let same = common.char_indices().zip(candidate.text.chars());
            let differs = same
                .clone()
                .find(|((_, a), b)| a != b)
                .map(|((at, _), _)| at);
            let shorter = candidate.text.len().min(common.len());
            common = &common[..differs.unwrap_or(shorter)];
        }
        common
    }

    /// Those that fit into so many rows around the chosen one, and whether each is it.
    pub(in crate::repl) fn window(&self, rows: usize) -> impl Iterator<Item = (&Candidate, bool)> {
        let chosen = self.chosen.unwrap_or(0);
        let first = chosen.saturating_sub(rows.saturating_sub(1));
        let shown = self.candidates.iter().enumerate().skip(first).take(rows);
        shown.map(|(at, candidate)| (candidate, Some(at) == self.chosen))
    }

    /// Why there may be more than these.
    pub(in crate::repl) fn more(&self) -> Option<&str> {
        self.more.as_deref()
    }

    /// How many do not fit.
    pub(in crate::repl) fn beyond(&self, rows: usize) -> usize {
        self.len().saturating_sub(rows)
    }
}

/// Whether a menu opens by itself: for a command's name, or a file's behind an `@`.
pub(super) fn opens(line: &str) -> bool {
    let word = last_word(line);
    let command = line.starts_with('/') && word.len() == line.len() && !line[1..].contains('/');
    command || word.starts_with('@')
}

/// Adds the client's own commands where a command's name is typed.
fn with_own(line: &str, mut found: Completions) -> Completions {
    if !line.starts_with('/') || line.contains(char::is_whitespace) {
        return found;
    }
    let known =
        |name: &str, found: &Completions| found.candidates.iter().any(|one| one.text == name);
    // What begins as it was typed comes alone; else a few letters of a name are enough.
    let begins = |name: &str| name.starts_with(line);
    let any = OWN.iter().any(|(name, _)| begins(name))
        || found.candidates.iter().any(|one| begins(&one.text));
    for (name, about) in OWN {
        let fits = begins(name) || !any && protocol::command::holds_letters(name, line);
        if fits && !known(name, &found) {
            found.candidates.push(Candidate {
                text: (*name).to_string(),
                description: Some((*about).to_string()),
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(line: &str, start: usize, names: &[&str]) -> Option<Menu> {
        let candidate = |name: &&str| Candidate {
            text: (*name).to_string(),
            description: None,
        };
        let candidates = names.iter().map(candidate).collect();
        let more = None;
        Menu::of(
            line,
            Completions {
                start,
                candidates,
                more,
            },
        )
    }

    #[test]
    fn the_clients_commands_stand_among_the_daemons() {
        let all = menu("/ex", 0, &["/export"]).unwrap();
        let names: Vec<&str> = all.candidates.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(names, ["/export", "/exit"]);
        assert_eq!(menu("/exit x", 6, &[]), None);
        assert_eq!(menu("ex", 0, &[]), None);
        let all = menu("/xt", 0, &[]).unwrap();
        assert_eq!(all.candidates[0].text, "/exit");
        assert_eq!(menu("/tx", 0, &[]), None);
    }

    #[test]
    fn what_all_have_in_common_ends_on_a_character() {
        assert_eq!(
            menu("@s", 0, &["@src/grün", "@src/grüße"])
                .unwrap()
                .common(),
            "@src/grü"
        );
        assert_eq!(menu("@s", 0, &["@src", "@src/x"]).unwrap().common(), "@src");
    }

    #[test]
    fn a_menu_opens_for_commands_and_files_only() {
        for (line, opened) in [
            ("/", true),
            ("/mo", true),
            ("/model ", false),
            ("/usr/bin", false),
            ("see @sr", true),
            ("a@b", false),
            ("see @\"my no", true),
            ("see @\"my notes\" no", false),
            ("@", true),
        ] {
            assert_eq!(opens(line), opened, "{line}");
        }
    }

    #[test]
    fn the_window_follows_the_chosen_one() {
        let mut menu = menu("x", 0, &["a", "b", "c"]).unwrap();
        menu.up();
        let shown: Vec<(&str, bool)> = menu
            .window(2)
            .map(|(one, chosen)| (one.text.as_str(), chosen))
            .collect();
        assert_eq!(shown, [("b", false), ("c", true)]);
        assert_eq!(menu.beyond(2), 1);
    }
}
