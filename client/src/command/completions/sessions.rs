//! Names of sessions in the scripts that clap writes for shells, which know only words that do not change.

use clap::Command;

/// What arguments that name sessions are called in the table of commands.
const NAMES: [&str; 2] = ["session", "sessions"];

const BASH: &str = "\
_dwell_sessions() {
    command dwell ls --tsv --no-start -n 200 2>/dev/null | cut -f 1
}

";

const ZSH: &str = r#"
_dwell_sessions() {
    local -a sessions
    sessions=( ${(f)"$(command dwell ls --tsv --no-start -n 200 2>/dev/null | awk -F '\t' '{ print $1 ":" $2 " " $4 }')"} )
    _describe -V session sessions
}
"#;

const FISH: &str = "\
function __dwell_sessions
    command dwell ls --tsv --no-start -n 200 2>/dev/null | cut -f 1,4
end
";

/// Commands with an argument, not an option, that names sessions.
fn takers(command: &Command) -> Vec<&str> {
    let takes = |one: &&Command| {
        one.get_positionals()
            .any(|argument| NAMES.contains(&argument.get_id().as_str()))
    };
    let commands = command.get_subcommands().filter(takes);
    commands.map(Command::get_name).collect()
}

pub(super) fn in_bash(script: &str, command: &Command) -> String {
    let takers = takers(command);
    let files = r#"COMPREPLY=($(compgen -f "${cur}"))"#;
    let words = r#"COMPREPLY=($(compgen -W "$(_dwell_sessions)" -- "${cur}"))"#;
    // Which command the lines are about, and whether they are about the value of its option for a session.
    let (mut taker, mut option) = (false, false);
    let line = |line: &str| {
        let text = line.trim();
        if let Some(name) = text.strip_prefix("dwell__subcmd__") {
            let name = name.trim_end_matches(')');
            taker = takers.contains(&name);
        }
        if text.starts_with('-') && text.ends_with(')') {
            option = matches!(text, "--session)" | "-s)");
        }
        match text {
            _ if taker && text.starts_with("opts=\"") => {
                line.replacen('"', "\"$(_dwell_sessions) ", 1)
            }
            text if option && text == files => line.replace(files, words),
            _ => line.to_owned(),
        }
    };
    let lines: Vec<String> = script.lines().map(line).collect();
    format!("{BASH}{}\n", lines.join("\n"))
}

pub(super) fn in_zsh(script: &str) -> String {
    let ours = |line: &str| {
        let names = NAMES.iter().any(|name| {
            let at = line.find(&format!(":{name} -- "));
            at.is_some_and(|at| at < 4)
        });
        names || line.contains(":SESSION:_default")
    };
    let lines = script.lines().map(|line| match ours(line) {
        true => line.replace(":_default'", ":_dwell_sessions'"),
        false => line.to_owned(),
    });
    let lines: Vec<String> = lines.collect();
    // The first line says whose script it is, and has to stay the first.
    let (first, rest) = lines
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first, rest));
    format!("{first}\n{ZSH}\n{}\n", rest.join("\n"))
}

pub(super) fn in_fish(script: &str, command: &Command) -> String {
    let lines = script
        .lines()
        .map(|line| match line.contains(" -l session ") {
            true => line.to_owned() + " -f -a \"(__dwell_sessions)\"",
            false => line.to_owned(),
        });
    let lines: Vec<String> = lines.collect();
    let mut out = format!("{FISH}\n{}\n", lines.join("\n"));
    for name in takers(command) {
        out.push_str(&format!(
            "complete -c dwell -n \"__fish_dwell_using_subcommand {name}\" -f -k -a \"(__dwell_sessions)\"\n"
        ));
    }
    out
}
