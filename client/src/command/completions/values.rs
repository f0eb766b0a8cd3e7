//! What only the daemon knows (sessions, providers, tools, ...) in the scripts that clap writes for shells, which know only
//! words that do not change: each such place asks `dwell complete KIND`.

use clap::Command;

/// Options whose values are of a kind, by their long and short names, which mean the same in all commands.
const OPTIONS: [(&str, &str, &str); 7] = [
    ("session", "s", "sessions"),
    ("provider", "p", "providers"),
    ("agent", "a", "agents"),
    ("model", "", "models"),
    ("pull", "", "local-models"),
    ("toolbox", "", "toolboxes"),
    ("allow", "", "tools"),
];

/// Arguments that are no options: the command (an empty one: any), the argument's name in the table, and the kind.
const ARGUMENTS: [(&str, &str, &str); 9] = [
    ("", "session", "sessions"),
    ("", "sessions", "sessions"),
    ("answer", "question", "approvals"),
    ("providers", "name", "providers"),
    ("tools", "name", "tools"),
    ("run", "tool", "tools"),
    ("pull", "name", "local-models"),
    ("rm", "names", "local-models"),
    ("rpc", "method", "methods"),
];

const BASH: &str = r#"_dwell_values() {
    command dwell complete "$1" 2>/dev/null | cut -f 1
}

"#;

const ZSH: &str = r#"
_dwell_values() {
    local -a values
    values=( ${(f)"$(command dwell complete $1 2>/dev/null | awk -F '\t' '{ gsub(/:/, "\\:", $1); print $1 ":" $2 }')"} )
    _describe -V $1 values
}
"#;

const FISH: &str = "\
function __dwell_values
    command dwell complete $argv[1] 2>/dev/null
end
";

fn option(name: &str) -> Option<&'static str> {
    let (long, short) = match name.strip_prefix("--") {
        Some(long) => (long, "-"),
        None => ("", name.strip_prefix('-')?),
    };
    let of = |(one, letter, _): &&(&str, &str, &str)| *one == long || *letter == short;
    OPTIONS.iter().find(of).map(|(.., kind)| *kind)
}

fn argument(command: &str, id: &str) -> Option<&'static str> {
    let of =
        |(name, one, _): &&(&str, &str, &str)| (name.is_empty() || *name == command) && *one == id;
    ARGUMENTS.iter().find(of).map(|(.., kind)| *kind)
}

/// The kind of the first argument that is no option.
fn first(command: &Command) -> Option<&'static str> {
    let mut arguments = command.get_positionals();
    argument(command.get_name(), arguments.next()?.get_id().as_str())
}

pub(super) fn in_bash(script: &str, command: &Command) -> String {
    const FILES: &str = r#"COMPREPLY=($(compgen -f "${cur}"))"#;
    let words =
        |kind| format!(r#"COMPREPLY=($(compgen -W "$(_dwell_values {kind})" -- "${{cur}}"))"#);
    // Which command the lines are about, and which of its options.
    let (mut about, mut of) = (None, None);
    let line = |line: &str| {
        let text = line.trim();
        if let Some(path) = text.strip_prefix("dwell__subcmd__") {
            let mut names = path.trim_end_matches(')').split("__subcmd__");
            let found = names.try_fold(command, |parent, name| parent.find_subcommand(name));
            about = found.and_then(first);
        }
        if text.starts_with('-') && text.ends_with(')') {
            of = option(text.trim_end_matches(')'));
        }
        match (about, of) {
            (Some(kind), _) if text.starts_with("opts=\"") => {
                line.replacen('"', &format!("\"$(_dwell_values {kind}) "), 1)
            }
            (_, Some(kind)) if text == FILES => line.replace(FILES, &words(kind)),
            _ => line.to_owned(),
        }
    };
    let lines: Vec<String> = script.lines().map(line).collect();
    format!("{BASH}{}\n", lines.join("\n"))
}

pub(super) fn in_zsh(script: &str) -> String {
    let mut command = "";
    let kind = |line: &str, command: &str| {
        // `'*--allow=[...]:TOOL:_default'`, perhaps with what it excludes in brackets; `':session -- ...:_default'`.
        let text = line.trim_start_matches(['\'', '*']);
        let text = match text.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1,
            None => text,
        };
        let text = text.trim_start_matches('*');
        if text.starts_with('-') {
            let end = text.find(['=', '+', '['])?;
            return option(&text[..end]);
        }
        let text = text.trim_start_matches(':');
        argument(command, &text[..text.find([':', ' '])?])
    };
    let mut lines = Vec::new();
    for line in script.lines() {
        let label = line.trim().strip_prefix('(');
        if let Some(name) = label.and_then(|name| name.strip_suffix(')')) {
            command = name;
        }
        let begins = line.starts_with('\'') && line.contains(":_default'");
        lines.push(match kind(line, command).filter(|_| begins) {
            // With a space, or zsh puts words of its own before the kind.
            Some(kind) => line.replace(":_default'", &format!(": _dwell_values {kind}'")),
            None => line.to_owned(),
        });
    }
    // The first line says whose script it is, and has to stay the first.
    let (first, rest) = lines
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first, rest));
    format!("{first}\n{ZSH}\n{}\n", rest.join("\n"))
}

pub(super) fn in_fish(script: &str, command: &Command) -> String {
    let with_values = |line: &str| {
        let (_, rest) = line.split_once(" -l ")?;
        let kind = option(&format!("--{}", rest.split(' ').next()?))?;
        line.ends_with(" -r")
            .then(|| format!("{line} -f -k -a \"(__dwell_values {kind})\""))
    };
    let lines = script
        .lines()
        .map(|line| with_values(line).unwrap_or_else(|| line.to_owned()));
    let lines: Vec<String> = lines.collect();
    let mut out = format!("{FISH}\n{}\n", lines.join("\n"));
    let mut offer = |when: &str, kind: &str| {
        out.push_str(&format!(
            "complete -c dwell -n \"{when}\" -f -k -a \"(__dwell_values {kind})\"\n"
        ));
    };
    for one in command.get_subcommands() {
        let name = one.get_name();
        if let Some(kind) = first(one) {
            offer(&format!("__fish_dwell_using_subcommand {name}"), kind);
        }
        for below in one.get_subcommands() {
            if let Some(kind) = first(below) {
                let below = below.get_name();
                offer(
                    &format!(
                        "__fish_dwell_using_subcommand {name}; and __fish_seen_subcommand_from {below}"
                    ),
                    kind,
                );
            }
        }
    }
    out
}
