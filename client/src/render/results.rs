//! How much of what calls print a person wants to see: `DWELL_RESULTS`. Must never fail for what somebody wrote there.

/// How many lines of a call's output stay on the screen, where nobody says it.
const TAIL: usize = 5;

const VARIABLE: &str = "DWELL_RESULTS";

/// By the names of tools; what comes later wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    said: Vec<(String, usize)>,
}

/// Of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) most: usize,
    /// Also where all went well, and one line would say enough.
    pub(super) always: bool,
}

impl Results {
    pub(super) fn from_env() -> Self {
        Self::read(&std::env::var(VARIABLE).unwrap_or_default())
    }

    /// Whether a value means something, all of it.
    pub(crate) fn understands(text: &str) -> bool {
        Self::read(text).said.len() == text.split(',').count()
    }

    /// `8` for all tools, `execute=20` or `fs_*=off` for some.
    fn read(text: &str) -> Self {
        let one = |part: &str| {
            let (name, number) = part.split_once('=').unwrap_or(("*", part));
            let number = match number.trim() {
                "off" | "no" => Some(0),
                number => number.parse().ok(),
            };
            Some((name.trim().to_owned(), number?))
        };
        Self {
            said: text.split(',').filter_map(one).collect(),
        }
    }

    pub(super) fn of(&self, tool: &str) -> Lines {
        let names = |pattern: &str| match pattern.strip_suffix('*') {
            Some(begin) => tool.starts_with(begin),
            None => tool == pattern,
        };
        let said = self.said.iter().rev().find(|(pattern, _)| names(pattern));
        Lines {
            most: said.map_or(TAIL, |(_, most)| *most),
            always: said.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_said_for_all_tools_or_by_their_names() {
        let lines = |said: &str, tool: &str| {
            let Lines { most, always } = Results::read(said).of(tool);
            (most, always)
        };
        assert_eq!(lines("", "execute"), (TAIL, false));
        assert_eq!(lines("nonsense, =, x=many", "execute"), (TAIL, false));
        assert_eq!(lines("off", "execute"), (0, true));
        let mixed = "2, execute=20, fs_*=off";
        assert_eq!(lines(mixed, "read"), (2, true));
        assert_eq!(lines(mixed, "execute"), (20, true));
        assert_eq!(lines(mixed, "fs_cat"), (0, true));
    }
}
