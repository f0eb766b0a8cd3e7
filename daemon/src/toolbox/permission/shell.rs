//! Splits a line for a shell into the commands it runs, as far as that can be known without running it.
//! Must never claim to know: whatever it does not fully understand is a `doubt`, and then nothing may run unasked.
//!
//! Known: simple commands of plain, quoted and escaped words, joined by `&&`, `||`, `;`, `|`, `&` and newlines, with
//! standard streams joined to each other or to `/dev/null`. A doubt: substitution of commands and processes, here
//! documents, files as streams, subshells, groups, functions, reserved words, comments, `$'..'`, expansion in the place
//! of the command, unbalanced quotes, control characters, and commands that run others (`sudo`, `env`, `xargs`,
//! `sh -c`, `eval`, ...), also by an option (`find -exec`, `tar --to-command`, `git -c`, a script of `sed` or `awk`).
//! Commands inside a doubt are still listed where they can be found, so that a rule that forbids them does.
//!
//! Options that destroy or write without running anything (`find -delete`, `sed -i`, `git push --force`) are no doubt, but
//! a rule with a `*` allows them only when it names them. Interpreters and build tools (`python x.py`, `make`) run what
//! they are given by their nature: who allows them allows that.

mod awk;
mod compiler;
mod git;
mod known;
mod lex;
mod options;
mod sed;

#[cfg(test)]
pub(super) use known::has as is_known;
use lex::{Lexed, Word};

/// A longer line is a doubt: no person reads it before saying yes.
const LONGEST: usize = 16 * 1024;
/// How many of a wrapper's words are looked at as the beginning of a command that a rule may forbid.
const WRAPPED: usize = 32;

/// What a line runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    pub commands: Vec<Command>,
    /// Why the commands may not be all that runs.
    pub doubt: Option<&'static str>,
}

/// A simple command.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Its words as written, one space between.
    pub written: String,
    /// Its words as the command gets them.
    pub plain: Face,
    /// What it runs by itself, when it is a plain wrapper (`timeout 5 X`): judged in its stead.
    pub inner: Option<Box<Command>>,
    /// Other commands that it is or may turn out to be, for rules that forbid or ask: without assignments, without the
    /// command's directory, what a wrapper may run.
    pub also: Vec<Face>,
    /// Words that make it destroy or write, where what it is called does not say so: a rule that allows has to name them.
    pub changes: Vec<String>,
}

/// Words with one space between; expansions as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Face {
    pub text: String,
    /// How many bytes are certain: where an expansion begins, anything may stand.
    pub certain: usize,
}

impl Face {
    /// Whether what it turns out to be may begin like this.
    pub fn may_begin(&self, prefix: &str) -> bool {
        let known = &self.text[..self.certain];
        self.certain < self.text.len() && (known.starts_with(prefix) || prefix.starts_with(known))
    }
}

/// The commands of a line.
pub fn split(line: &str) -> Line {
    if line.len() > LONGEST {
        return Line {
            commands: Vec::new(),
            doubt: Some("it is too long to judge"),
        };
    }
    let Lexed {
        commands,
        mut doubt,
    } = lex::lex(line);
    let mut all = Vec::new();
    for words in &commands {
        let (command, why) = command(words);
        doubt = doubt.or(why);
        all.push(command);
    }
    Line {
        commands: all,
        doubt,
    }
}

fn command(words: &[Word]) -> (Command, Option<&'static str>) {
    let assigned = words.iter().take_while(|word| word.is_assignment()).count();
    let run = &words[assigned..];
    let doubt = match run.first() {
        Some(name) if name.uncertain.is_some() => {
            Some("what stands in the place of a command is expanded")
        }
        Some(name) => doubtful(name.base(), run),
        None => None,
    };
    let found = match run.first() {
        Some(name) if name.uncertain.is_none() => options::look(run),
        Some(_) | None => options::Found::default(),
    };
    let doubt = doubt.or(found
        .runs
        .then_some("its arguments may run another command"));
    let command = Command {
        changes: found.changes,
        written: join(words, |word| &word.written),
        plain: face(words),
        inner: if assigned == 0 && doubt.is_none() {
            inner(run).map(Box::new)
        } else {
            None
        },
        also: match doubt {
            None if run.len() > 2 && run[1].plain.starts_with('-') => {
                let mut all = faces(run, 1);
                all.extend(past_options(run));
                all
            }
            // A wrapper's own arguments end where the command begins, which only the wrapper knows: any word may be it.
            Some(_) => faces(run, run.len().min(WRAPPED)),
            None => faces(run, run.len().min(1)),
        },
    };
    (command, doubt)
}

/// A command without the options before its first word, which may be the command's own command (`git --no-pager push`):
/// each of them with no value and, as nobody knows, with the next word for one.
fn past_options(run: &[Word]) -> Vec<Face> {
    let (name, words) = (&run[0], &run[1..]);
    let is_option = |word: &&Word| word.plain.starts_with('-');
    let options = words.iter().take_while(is_option).count();
    let mut valued = 0;
    while words.get(valued).is_some_and(|word| is_option(&word)) {
        valued += if words[valued].plain.contains('=') {
            1
        } else {
            2
        };
    }
    let mut all = Vec::new();
    for from in [options, valued.min(words.len())] {
        let mut rest = vec![name.clone()];
        rest.extend_from_slice(&words[from..]);
        all.extend(faces(&rest, 1));
    }
    all
}

/// The command from each of its first words on, as it is and by its bare name.
fn faces(run: &[Word], starts: usize) -> Vec<Face> {
    let mut all = Vec::new();
    for from in 0..starts {
        let rest = &run[from..];
        let whole = face(rest);
        let directory = rest[0].plain.len() - rest[0].base().len();
        if directory > 0 {
            let text = whole.text[directory..].to_owned();
            all.push(Face {
                text,
                certain: whole.certain.saturating_sub(directory),
            });
        }
        all.push(whole);
        // A line in one word: `sh -c 'rm x'`, `env -S 'rm x'`.
        if from > 0 && rest[0].plain.contains(char::is_whitespace) {
            all.extend(inside(&rest[0].plain));
        }
    }
    all
}

/// One level only: what is quoted once more stays a doubt.
fn inside(line: &str) -> Vec<Face> {
    let mut all = Vec::new();
    for words in lex::lex(line).commands {
        let run: Vec<Word> = words.into_iter().skip_while(Word::is_assignment).collect();
        all.extend((0..run.len().min(WRAPPED)).map(|from| face(&run[from..])));
    }
    all
}

fn face(words: &[Word]) -> Face {
    Face {
        text: join(words, |word| &word.plain),
        certain: certain(words),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Runs its arguments as a command, in ways of its own.
    Wrapper,
    /// Runs text as commands.
    Shell,
    /// Runs what is typed into it, or stands in an option or a file's last line.
    Editor,
    /// Runs the words after it (and after one number for `timeout`), and nothing else.
    Plain,
    /// A word of the shell's grammar.
    Reserved,
    Other,
}

fn kind(name: &str) -> Kind {
    match name {
        "sudo"
        | "doas"
        | "su"
        | "runuser"
        | "pkexec"
        | "env"
        | "xargs"
        | "parallel"
        | "command"
        | "builtin"
        | "exec"
        | "setsid"
        | "stdbuf"
        | "ionice"
        | "chrt"
        | "taskset"
        | "chroot"
        | "flock"
        | "watch"
        | "entr"
        | "strace"
        | "ltrace"
        | "script"
        | "unshare"
        | "nsenter"
        | "systemd-run"
        | "busybox"
        | "toybox"
        | "ssh"
        | "unbuffer"
        | "prlimit"
        | "setpriv"
        | "daemonize"
        | "start-stop-daemon"
        | "rlwrap"
        | "faketime"
        | "coproc"
        | "fakeroot"
        | "proxychains"
        | "torsocks"
        | "dbus-run-session"
        | "xvfb-run"
        | "sg"
        | "newgrp"
        | "runcon"
        | "firejail"
        | "bwrap"
        | "perf"
        | "valgrind"
        | "gdb"
        | "hyperfine"
        | "screen"
        | "tmux"
        | "chpst"
        | "cgexec"
        | "numactl"
        | "dtach"
        | "ssh-agent"
        | "dbus-launch"
        | "ccache"
        | "sccache"
        | "distcc"
        | "icecc"
        | "setarch"
        | "linux32"
        | "linux64"
        | "i386"
        | "x86_64"
        | "npx"
        | "bunx"
        | "pnpx"
        | "choom"
        | "eatmydata"
        | "chronic"
        | "sshpass"
        | "ld.so"
        | "ld-linux-x86-64.so.2"
        | "ld-linux-aarch64.so.1"
        | "pseudo"
        | "nsjail"
        | "caffeinate"
        | "direnv"
        | "dotenv" => Kind::Wrapper,
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "fish" | "csh" | "tcsh"
        | "rbash" | "pwsh" | "eval" | "source" | "." | "trap" | "alias" | "unalias" | "enable"
        | "bind" | "complete" | "mapfile" | "readarray" | "hash" | "at" | "batch" | "crontab"
        | "expect" => Kind::Shell,
        "vi" | "vim" | "nvim" | "gvim" | "view" | "rvim" | "rview" | "vimdiff" | "nvi" | "ex"
        | "ed" | "red" | "emacs" | "emacsclient" | "nano" | "pico" | "kak" | "hx" | "helix"
        | "micro" | "joe" | "jed" | "mcedit" | "mc" | "ranger" | "nnn" | "vifm" => Kind::Editor,
        "timeout" | "time" | "nice" | "nohup" => Kind::Plain,
        "if" | "then" | "else" | "elif" | "fi" | "for" | "while" | "until" | "do" | "done"
        | "case" | "esac" | "select" | "function" | "in" | "!" | "{" | "}" | "[[" => Kind::Reserved,
        _ => Kind::Other,
    }
}

fn doubtful(name: &str, run: &[Word]) -> Option<&'static str> {
    match kind(name) {
        Kind::Wrapper => Some("it runs another command"),
        Kind::Shell => Some("it runs text as commands"),
        Kind::Editor => Some("an editor runs what its options or input say"),
        Kind::Reserved => Some("it is more than a list of commands"),
        Kind::Plain if inner(run).is_none() => Some("it runs another command"),
        Kind::Plain => None,
        // What its options say, see `options`.
        Kind::Other => None,
    }
}

/// What a plain wrapper runs, when nothing but that follows its name.
fn inner(run: &[Word]) -> Option<Command> {
    let name = run[0].plain.as_str();
    if kind(name) != Kind::Plain {
        return None;
    }
    let rest = match name {
        "timeout" => {
            let seconds = run.get(1)?;
            let digits = seconds.plain.trim_end_matches(['s', 'm', 'h']);
            let number =
                !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
            (number && seconds.uncertain.is_none()).then(|| &run[2..])?
        }
        _ => &run[1..],
    };
    let first = rest.first()?;
    // One level: two calls for each further one would double the work each time.
    if first.plain.starts_with('-') || first.is_assignment() || kind(first.base()) == Kind::Plain {
        return None;
    }
    let (inner, doubt) = command(rest);
    doubt.is_none().then_some(inner)
}

fn join<'a>(words: &'a [Word], part: impl Fn(&'a Word) -> &'a String) -> String {
    let parts: Vec<&str> = words.iter().map(|word| part(word).as_str()).collect();
    parts.join(" ")
}

fn certain(words: &[Word]) -> usize {
    let mut length = 0;
    for word in words {
        if let Some(at) = word.uncertain {
            return length + at;
        }
        length += word.plain.len() + 1;
    }
    length.saturating_sub(1)
}

#[cfg(test)]
mod tests;
