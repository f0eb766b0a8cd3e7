//! Words to a person who looks elsewhere: a bell, and a message of the desktop where the terminal can show one. Must never
//! ring for somebody who looks, where the terminal tells that.

use std::time::Duration;

/// The end of a turn that took longer is told, unless the person has set another time.
const LONG: Duration = Duration::from_secs(10);

/// What a person wants to be told, and whether they look.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::repl) struct Notices {
    quiet: bool,
    /// Whether the terminal is asked to tell when it has the focus.
    pub(in crate::repl) asks_focus: bool,
    long: Duration,
    has_focus: bool,
}

impl Notices {
    /// As `DWELL_NOTIFY` has it: `off`, or `unfocused` and a number of seconds, with a comma between them.
    pub(in crate::repl) fn from_env() -> Self {
        Self::parse(&std::env::var("DWELL_NOTIFY").unwrap_or_default())
    }

    /// Whether a value of `DWELL_NOTIFY` means something, all of it.
    pub(in crate::repl) fn understands(words: &str) -> bool {
        words
            .split(',')
            .map(str::trim)
            .all(|word| matches!(word, "off" | "no" | "unfocused") || word.parse::<u64>().is_ok())
    }

    fn parse(words: &str) -> Self {
        let words: Vec<&str> = words.split(',').map(str::trim).collect();
        let seconds = words.iter().find_map(|word| word.parse().ok());
        Self {
            quiet: words.iter().any(|word| matches!(*word, "0" | "off" | "no")),
            asks_focus: words.contains(&"unfocused"),
            long: seconds.map_or(LONG, Duration::from_secs),
            has_focus: false,
        }
    }

    /// The terminal has told who has the focus.
    pub(super) fn set_focus(&mut self, has_focus: bool) {
        self.has_focus = has_focus;
    }

    /// Whether a question that comes is told.
    pub(super) fn tell_question(&self) -> bool {
        !self.quiet && !self.has_focus
    }

    /// Whether the end of a turn is.
    pub(super) fn tell_end(&self, took: Duration) -> bool {
        self.tell_question() && took >= self.long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_unless_they_look_or_want_quiet() {
        let usual = Notices::parse("");
        assert!(usual.tell_question() && !usual.asks_focus);
        assert!(usual.tell_end(LONG) && !usual.tell_end(LONG / 2));
        assert!(!Notices::parse("off").tell_question());
        let mut set = Notices::parse("unfocused, 2");
        assert!(set.asks_focus && set.tell_end(Duration::from_secs(2)));
        assert!(set.tell_question(), "a terminal that tells nothing is told");
        set.set_focus(true);
        assert!(!set.tell_question() && !set.tell_end(LONG));
    }
}
