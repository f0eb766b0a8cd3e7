//! What people set in the environment for the terminal, and what of it nobody here understands. Must never fail for it.

use super::editor::KeyStyle;
use super::past;
use super::talk::notice::Notices;
use crate::render::results::Results;

/// A variable, whether a value of it means something, and what does.
type Known = (&'static str, fn(&str) -> bool, &'static str);

/// Variables with a value that means nothing, each in a line that says what would.
pub(crate) fn misread() -> Vec<String> {
    let said = |name: &str| std::env::var(name).ok();
    read(said)
}

fn read(said: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let known: [Known; 4] = [
        ("DWELL_KEYS", KeyStyle::understands, "`vi` or `emacs`"),
        (
            "DWELL_NOTIFY",
            Notices::understands,
            "`off`, `unfocused`, a number of seconds",
        ),
        (
            "DWELL_PAST",
            past::understands,
            "a number of exchanges, or `off`",
        ),
        (
            "DWELL_RESULTS",
            Results::understands,
            "a number of lines, `off`, or `TOOL=20`, with commas between them",
        ),
    ];
    let wrong = known.into_iter().filter_map(|(name, understands, what)| {
        let value = said(name).filter(|value| !value.is_empty() && !understands(value))?;
        let value = crate::paint::spell_out(&value);
        Some(format!("{name}={value} is not understood: it takes {what}"))
    });
    wrong.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_is_told_and_what_means_something_is_not() {
        let all = |value: &str| read(|_| Some(value.to_owned())).len();
        assert_eq!(all("bogus"), 4);
        assert_eq!(all(""), 0);
        for (name, values) in [
            ("DWELL_KEYS", &["vi", "vim", "emacs"][..]),
            ("DWELL_NOTIFY", &["off", "60", "unfocused", "unfocused, 60"]),
            ("DWELL_PAST", &["off", "10"]),
            ("DWELL_RESULTS", &["off", "20", "2,execute=20,fs_*=off"]),
        ] {
            for value in values {
                let one = |asked: &str| (asked == name).then(|| (*value).to_owned());
                assert_eq!(read(one), Vec::<String>::new());
            }
        }
        let one = read(|asked| (asked == "DWELL_RESULTS").then(|| "2,execute=many".into()));
        assert!(
            one[0].starts_with("DWELL_RESULTS=2,execute=many is not understood"),
            "{one:?}"
        );
    }
}
