//! What a typed line means to the REPL. Pure; must never act.

/// The commands that the client has besides the daemon's.
pub(super) const OWN: &[(&str, &str)] = &[
    ("/exit", "leave; the session lives on"),
    ("/detach", "the same"),
    (
        "/attach",
        "go to another session: /attach SESSION, or choose one",
    ),
    ("/edit", "write the prompt in $VISUAL or $EDITOR"),
];

/// The client's own commands, in the columns of the daemon's list above them.
pub(super) fn own_help(above: &str) -> String {
    let names = above
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names = names.chain(OWN.iter().map(|(name, _)| *name));
    let width = names.map(str::len).max().unwrap_or(0);
    let lines = OWN
        .iter()
        .map(|(name, about)| format!("{name:width$}  {about}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Those commands behind the daemon's list, where a line named none of them.
pub(super) fn with_own(error: &str) -> String {
    let own: Vec<&str> = OWN.iter().map(|(name, _)| *name).collect();
    match error.strip_suffix('.') {
        Some(listed) if error.starts_with("unknown command: ") => {
            format!("{listed}, {}.", own.join(", "))
        }
        _ => error.to_string(),
    }
}

/// A line by what is to be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Nothing.
    Blank,
    /// Leave.
    Leave,
    /// Go to another session; without a word it is a slip.
    Attach(Option<String>),
    /// Write the prompt in an editor, starting with this text.
    Edit(String),
    /// One of the daemon's commands.
    Command(String),
    /// A command for the session's directory, of the person's own.
    Shell(String),
    /// A prompt.
    Text(String),
}

impl Line {
    /// By its first word. A pasted absolute path is text: its first word has a second slash.
    pub(super) fn parse(typed: &str) -> Self {
        let text = typed.replace("\\\n", "\n");
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Self::Blank;
        }
        let (word, rest) = trimmed
            .split_once(char::is_whitespace)
            .unwrap_or((trimmed, ""));
        let rest = rest.trim();
        if let Some(command) = trimmed
            .strip_prefix('!')
            .filter(|command| !command.trim().is_empty())
        {
            return Self::Shell(command.trim().to_string());
        }
        match word {
            "/exit" | "/quit" | "/detach" => Self::Leave,
            "/attach" => Self::Attach((!rest.is_empty()).then(|| rest.to_string())),
            "/edit" => Self::Edit(rest.to_string()),
            _ if is_command(word) => Self::Command(trimmed.to_string()),
            _ => Self::Text(text.trim_end().to_string()),
        }
    }
}

/// Whether a first word is a command's name.
fn is_command(word: &str) -> bool {
    word.strip_prefix('/')
        .is_some_and(|name| !name.contains('/'))
}

/// Whether more lines follow: the last one ends with a backslash.
pub(super) fn goes_on(typed: &str) -> bool {
    let backslashes = typed.chars().rev().take_while(|c| *c == '\\').count();
    backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_path_is_text() {
        let path = "/usr/bin/env is what?";
        assert_eq!(Line::parse(path), Line::Text(path.into()));
        assert_eq!(Line::parse("/help"), Line::Command("/help".into()));
        assert_eq!(
            Line::parse(" /tools read "),
            Line::Command("/tools read".into())
        );
        assert_eq!(Line::parse("/"), Line::Command("/".into()));
    }

    #[test]
    fn the_clients_own_commands_stay_here() {
        assert_eq!(Line::parse("/exit"), Line::Leave);
        assert_eq!(Line::parse("/detach"), Line::Leave);
        assert_eq!(
            Line::parse("/attach calm"),
            Line::Attach(Some("calm".into()))
        );
        assert_eq!(Line::parse("/attach"), Line::Attach(None));
        assert_eq!(Line::parse("/edit a b"), Line::Edit("a b".into()));
        assert_eq!(Line::parse(" \n"), Line::Blank);
        assert_eq!(Line::parse("!ls -l"), Line::Shell("ls -l".into()));
        assert_eq!(Line::parse("!"), Line::Text("!".into()));
    }

    #[test]
    fn a_backslash_at_the_end_joins_lines() {
        assert!(goes_on("say a\\"));
        assert!(!goes_on("a path\\\\"));
        assert!(!goes_on("plain"));
        assert_eq!(
            Line::parse("say a\\\nsay b"),
            Line::Text("say a\nsay b".into())
        );
    }

    #[test]
    fn the_clients_commands_stand_in_the_daemons_columns() {
        let help = own_help("/permissions  show\n/x            y");
        assert_eq!(
            help.lines().next(),
            Some("/exit         leave; the session lives on")
        );
    }

    #[test]
    fn list_of_all_names_has_the_clients_too() {
        let told = with_own("unknown command: \"/x\". Available: /help, /tools.");
        assert_eq!(
            told,
            "unknown command: \"/x\". Available: /help, /tools, /exit, /detach, /attach, /edit."
        );
        assert_eq!(with_own("no such file."), "no such file.");
    }

    #[test]
    fn indented_text_keeps_its_indent() {
        assert_eq!(Line::parse("  a\n b \n"), Line::Text("  a\n b".into()));
    }
}
