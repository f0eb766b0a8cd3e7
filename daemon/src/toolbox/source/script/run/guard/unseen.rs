//! Where a script may start a guard so that nobody sees it: its environment emptied, or another program in bash's place.
//! Must rather ask once too often than let a guard pass unasked.

use crate::toolbox::source::script::Language;
use std::fs;
use std::path::Path;

/// More than these in one folder are no helpers of a tool.
const FILES: usize = 200;
/// What is longer is taken for a risk.
const LONGEST: u64 = 1024 * 1024;

/// Words that stand before what is started without the environment of bash, or by another than it.
const LOSING: &[&str] = &[
    "BASH_ENV",
    "env",
    "sudo",
    "doas",
    "su",
    "sh",
    "dash",
    "zsh",
    "ksh",
    "busybox",
    "chroot",
    "nsenter",
    "unshare",
    "systemd-run",
    "ssh",
    "docker",
    "podman",
    "flatpak-spawn",
    "setpriv",
    "runuser",
    "execve",
    "execle",
    "execvpe",
    "spawnve",
    "clearenv",
    "unsetenv",
    "DWELL_TOOL_GUARD",
    "DWELL_TOOL_GUARD_DIR",
];

/// What may stand before a guard on a line of bash and starts it in the open.
const OPEN: &[&str] = &[
    "bash", "source", ".", "exec", "if", "!", "then", "else", "elif", "do", "while", "until",
    "time", "{", "local", "readonly", "declare", "export", "[", "[[", "test", "-f", "-r", "-x",
    "-e",
];

/// The place, as a person would look for it; none where each guard is started in the open.
pub(super) fn find(root: &Path, file: &Path, language: Language, source: &str) -> Option<String> {
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    let mut rest = helpers(root);
    let mut open = vec![(name(file), language, source.to_owned())];
    let mut guarded = false;
    let mut suspect = None;
    while let Some((name, language, text)) = open.pop() {
        guarded |= mentions_guard(&text);
        suspect = suspect.or_else(|| {
            let line = hidden(language, &text)?;
            Some(format!("line {line} of {name}"))
        });
        let (used, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|(name, ..)| text.contains(name.as_str()));
        rest = others;
        open.extend(used);
    }
    suspect.filter(|_| guarded)
}

/// The folder's own files that a tool may start or source, which may start guards for it.
fn helpers(root: &Path) -> Vec<(String, Language, String)> {
    let folders = ["utils", "scripts", "lib"].map(|folder| fs::read_dir(root.join(folder)));
    let entries = folders.into_iter().flatten().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let path = entry.path();
        let name = entry.file_name().to_str()?.to_owned();
        let language = Language::of(&path)?;
        let small = path
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
        (small && !is_guard(&name))
            .then(|| fs::read_to_string(&path).ok())
            .flatten()
            .map(|text| (name, language, text))
    };
    entries.take(FILES).filter_map(read).collect()
}

pub(super) fn is_guard(name: &str) -> bool {
    name.starts_with("guard_") && name.ends_with(".sh")
}

fn mentions_guard(text: &str) -> bool {
    text.lines()
        .any(|line| !is_comment(line) && line.contains("guard_"))
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') || line.starts_with("//")
}

/// The first line that a guard may be started from unseen, counted from 1.
fn hidden(language: Language, text: &str) -> Option<usize> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !is_comment(line));
    let is_hidden = |line: &str| match language {
        Language::Bash => loses(line) || bash_flags(line) || !starts_in_the_open(line),
        Language::JavaScript => loses(&line.replace("process.env", "")),
        Language::Python => loses(&line.replace("os.environ", "")),
    };
    lines
        .into_iter()
        .find(|(_, line)| is_hidden(line))
        .map(|(at, _)| at + 1)
}

fn loses(line: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let words = line.split(|c: char| !is_part(c));
    let mut at = 0;
    for word in words {
        // The end of a file's name is none of them.
        let is_end = line[..at].ends_with('.');
        if !is_end && LOSING.contains(&word) {
            return true;
        }
        at += word.len();
        at += line[at..].chars().next().map_or(0, char::len_utf8);
    }
    false
}

/// Options with which bash reads nothing before the script, and `exec` hands nothing on.
fn bash_flags(line: &str) -> bool {
    let words: Vec<_> = line.split_whitespace().collect();
    words.windows(2).any(|pair| match pair {
        ["bash", flag] => {
            flag.starts_with('-') && !flag.starts_with("--") && flag.contains(['p', 's'])
        }
        ["exec", flag] => flag.starts_with('-') && flag.contains('c'),
        _ => false,
    })
}

/// Whether what stands before each guard on a line of bash is a beginning of a command that bash starts as it is.
fn starts_in_the_open(line: &str) -> bool {
    let mut at = 0;
    while let Some(found) = line[at..].find("guard_") {
        let end = at + found;
        at = end + "guard_".len();
        let name = &line[end..];
        let name = &name[..name
            .find(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)))
            .unwrap_or(name.len())];
        if is_guard(name) && !is_open(&line[..end]) {
            return false;
        }
    }
    true
}

/// `before` is what stands before a guard's name: the words of its command, and the path that the name ends.
fn is_open(before: &str) -> bool {
    let before = without_substitutions(before);
    let command = before
        .rsplit([';', '&', '|', '(', ')'])
        .next()
        .unwrap_or_default();
    let (words, path) = command.split_at(command.rfind(char::is_whitespace).map_or(0, |at| at + 1));
    !path.contains(['<', '>']) && words.split_whitespace().all(|word| OPEN.contains(&word))
}

/// A path may begin with what a command says: `$(dirname "$0")/../utils/`.
fn without_substitutions(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text.rfind("$(")
        && let Some(end) = text[start..].find(')')
    {
        text.replace_range(start..=start + end, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_bash_starts_in_the_open_is_seen() {
        for line in [
            r#""$ROOT_DIR/utils/guard_operation.sh" "Sure?""#,
            r#"bash "$ROOT_DIR/utils/guard_path.sh" "$argc_path" "Remove?""#,
            r#"if ! "$LLM_ROOT_DIR"/utils/guard_operation.sh; then exit 1; fi"#,
            r#"cd x && ./guard_operation.sh || exit 1"#,
            r#". "$(dirname "$0")/../utils/guard_operation.sh""#,
            r#"    main() { "$ROOT_DIR/utils/guard_operation.sh"; }"#,
            r#"local guard="$ROOT_DIR/utils/guard_operation.sh""#,
            r#"(cd "$x"; source guard_operation.sh)"#,
            r#"# env -i guard_operation.sh"#,
            r#"docs.env --env=x guard_of_nothing"#,
        ] {
            assert_eq!(hidden(Language::Bash, line), None, "{line}");
        }
        let node =
            r#"execFileSync(`${process.env.LLM_ROOT_DIR}/utils/guard_operation.sh`, ["Sure?"])"#;
        assert_eq!(hidden(Language::JavaScript, node), None);
        let python = r#"subprocess.run([os.environ["LLM_ROOT_DIR"] + "/utils/guard_operation.sh"], check=True)"#;
        assert_eq!(hidden(Language::Python, python), None);
    }

    #[test]
    fn ways_past_bash_and_its_environment_are_named_by_their_line() {
        for line in [
            r#"env -i "$ROOT_DIR/utils/guard_operation.sh""#,
            r#"unset BASH_ENV"#,
            r#"BASH_ENV= "$ROOT_DIR/utils/guard_operation.sh""#,
            r#"/usr/bin/env - utils/guard_operation.sh"#,
            r#"sh utils/guard_operation.sh"#,
            r#"bash -p utils/guard_operation.sh"#,
            r#"bash -s < utils/guard_operation.sh"#,
            r#"cat utils/guard_operation.sh | bash"#,
            r#"exec -c utils/guard_operation.sh"#,
            r#"sudo -E "$guard""#,
            r#"builtin source utils/guard_operation.sh"#,
            r#"true; nohup utils/guard_operation.sh"#,
            r#"eval "$(<utils/guard_operation.sh)""#,
        ] {
            let text = format!("# one\n\n{line}\n");
            assert_eq!(hidden(Language::Bash, &text), Some(3), "{line}");
        }
        let node = "const { execFileSync } = require('child_process');\nexecFileSync(guard, [], { env: {} });";
        assert_eq!(hidden(Language::JavaScript, node), Some(2));
        assert_eq!(
            hidden(Language::Python, "subprocess.run([guard], env={})"),
            Some(1)
        );
    }

    #[test]
    fn what_a_tool_borrows_is_looked_at_too() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("utils")).unwrap();
        fs::write(
            root.path().join("utils/ask.sh"),
            "env -i utils/guard_operation.sh\n",
        )
        .unwrap();
        let file = root.path().join("tools/t.sh");
        let find = |text: &str| find(root.path(), &file, Language::Bash, text);
        assert_eq!(
            find("source utils/ask.sh\n").as_deref(),
            Some("line 1 of ask.sh")
        );
        assert_eq!(find("env -i ls\n"), None);
        assert_eq!(
            find("env -i ls\nutils/guard_operation.sh\n").as_deref(),
            Some("line 1 of t.sh")
        );
    }
}
