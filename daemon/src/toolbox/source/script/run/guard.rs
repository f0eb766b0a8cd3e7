//! Guards of a folder of tools: scripts that ask a person before something happens. They ask through approvals, and only an
//! explicit yes is one. Must never take a call's end, an odd question or a failure for a yes.

mod unseen;

use super::folder::Folder;
use super::{Script, text};
use crate::toolbox::permission::place::Ground;
use crate::toolbox::source::script::standin::quote::quote;
use crate::toolbox::tool::Call;
use crate::toolbox::{CallPort, Question, Via};
use protocol::approval::Answer;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

/// A question above this is none.
const LONGEST: usize = 256 * 1024;

/// Whether a root has guards at all; a tool of one that has none pays nothing for them.
pub(super) fn has_guards(root: &Path) -> bool {
    let files = fs::read_dir(root.join("utils")).into_iter().flatten();
    files.flatten().any(|file| {
        let name = file.file_name();
        unseen::is_guard(&name.to_string_lossy())
    })
}

/// Where a script may start a guard in a way that nobody sees, if it does so at all; blocks on the disk.
pub(super) fn unseen(script: &Script) -> Option<String> {
    let source = String::from_utf8_lossy(&script.source);
    unseen::find(&script.root.dir, &script.file, script.language, &source)
}

/// Asks before a script that may start guards unseen: whoever says yes says it to them too.
pub(super) async fn allows(call: &Call, script: &Script, place: &str) -> Result<(), String> {
    let why = format!(
        "{} may go past its guards ({place}), and do what they ask about unasked",
        script.name
    );
    match ask(
        call,
        "guard",
        &json!({"script": script.file, "place": place}),
        &why,
    )
    .await
    {
        true => Ok(()),
        false => Err(format!("nobody allowed it: {why}")),
    }
}

/// Makes the pipes that a guard asks through. What is given back bash reads before every script: it starts ours in a
/// guard's place, and asks before a guard is sourced.
pub(super) fn prepare(
    root: &Path,
    bin: &Path,
    folder: &Folder,
    env: &mut BTreeMap<String, String>,
) -> io::Result<String> {
    for name in [ASK, ANSWER] {
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, folder.path().join(name), FileType::Fifo, mode, 0)?;
    }
    super::folder::link(bin, super::super::standin::GUARD_NAME)?;
    let guard = bin.join(super::super::standin::GUARD_NAME);
    env.insert("DWELL_TOOL_GUARD".to_owned(), text(&guard)?);
    env.insert(
        super::super::standin::GUARD.to_owned(),
        text(folder.path())?,
    );
    let sourcing = folder.path().join("source.bash");
    let utils = quote(&text(&root.join("utils"))?);
    fs::write(&sourcing, SOURCING.replace("UTILS", &utils))?;
    Ok(BEFORE
        .replace("UTILS", &utils)
        .replace("SOURCING", &quote(&text(&sourcing)?)))
}

/// An alias leaves what is sourced in the place where it is sourced; a function would make its variables its own.
const BEFORE: &str = r#"case "$0" in
*/utils/guard_*.sh|utils/guard_*.sh) exec "$DWELL_TOOL_GUARD" "$0" "$@" ;;
*/guard_*.sh|guard_*.sh) [ "$0" -ef UTILS/"${0##*/}" ] && exec "$DWELL_TOOL_GUARD" "$0" "$@" ;;
esac
readonly BASH_ENV DWELL_TOOL_GUARD DWELL_TOOL_GUARD_DIR
shopt -s expand_aliases
alias source='builtin source SOURCING "$#" "$@"' .='builtin source SOURCING "$#" "$@"'
"#;

/// Its words are the number of the words around it, those words, the file, and its own words if there are any. Whoever said
/// yes has said it to the guard's own question too.
const SOURCING: &str = r#"__dwell_around=("${@:2:$1}")
shift "$(($1 + 1))"
if [ "${1-}" = -- ]; then shift; fi
__dwell_guard=
case "${1-}" in
*/utils/guard_*.sh|utils/guard_*.sh) __dwell_guard=1 ;;
*/guard_*.sh|guard_*.sh) if [ "$1" -ef UTILS/"${1##*/}" ]; then __dwell_guard=1; fi ;;
esac
if [ -n "$__dwell_guard" ]; then
"$DWELL_TOOL_GUARD" "$@" || exit 1
builtin source "$@" <<<y
elif [ "$#" -gt 1 ]; then
builtin source "$@"
else
__dwell_file=${1-}
set -- "${__dwell_around[@]}"
builtin source "$__dwell_file"
fi
"#;

/// The pipes in a call's folder.
pub(in super::super) const ASK: &str = "ask";
pub(in super::super) const ANSWER: &str = "answer";

/// Answers the guards of one call.
pub(super) struct Guard {
    ask: BufReader<pipe::Receiver>,
    answer: pipe::Sender,
}

impl Guard {
    /// Both ends of both pipes are held, so that neither ends while the call runs.
    pub(super) fn open(folder: &Folder) -> io::Result<Self> {
        let mut options = pipe::OpenOptions::new();
        options.read_write(true);
        Ok(Self {
            ask: BufReader::new(options.open_receiver(folder.path().join(ASK))?),
            answer: options.open_sender(folder.path().join(ANSWER))?,
        })
    }

    /// Goes on until nothing can be read any more. `asking` says while a person is asked.
    pub(super) async fn serve(mut self, call: &Call, asking: &AtomicBool) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match self.ask.read_until(b'\n', &mut line).await {
                Ok(1..) if line.len() <= LONGEST => {}
                _ => return,
            }
            let Ok(question) = serde_json::from_slice::<Value>(&line) else {
                continue;
            };
            let yes = decide(call, &question, asking).await;
            let answer = format!("{} {}\n", question["id"], if yes { "yes" } else { "no" });
            if self.answer.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn decide(call: &Call, question: &Value, asking: &AtomicBool) -> bool {
    let script = PathBuf::from(question["script"].as_str().unwrap_or_default());
    let name = script
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let words: Vec<_> = question["arguments"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_path = name == "guard_path";
    if let (true, Some(path)) = (is_path, words.first())
        && is_inside(call, question["cwd"].as_str().unwrap_or_default(), path).await
    {
        return true;
    }
    let said = if is_path { words.get(1) } else { words.first() };
    let why = said.filter(|said| !said.trim().is_empty());
    let why = why.map_or_else(
        || format!("{name} asks whether to go on"),
        |why| (*why).to_owned(),
    );
    asking.store(true, Ordering::Relaxed);
    let yes = ask(call, &name, &json!({"arguments": words}), &why).await;
    asking.store(false, Ordering::Relaxed);
    yes
}

/// As a call of its own, so that it is another question than the one whether the tool may run.
async fn ask(call: &Call, name: &str, arguments: &Value, why: &str) -> bool {
    let port: &dyn CallPort = &*call.port;
    let Ok(child) = port.child(&call.call, Via::Tool, name, arguments).await else {
        return false;
    };
    let question = Question {
        call: &child,
        tool: name,
        arguments,
        why,
        // No rule speaks of what a script asks in its midst.
        patterns: Vec::new(),
    };
    let verdict = port.ask(question).await;
    let yes = verdict.is_ok_and(|verdict| verdict.answer == Answer::Allow);
    let result = Map::from_iter([
        ("allowed".to_owned(), yes.into()),
        ("ok".to_owned(), true.into()),
    ]);
    let recorded = port.child_done(&child, &result, 0).await;
    yes && recorded.is_ok()
}

/// Where a path leads is decided by its components, with links followed.
async fn is_inside(call: &Call, cwd: &str, path: &str) -> bool {
    let ground = Ground {
        cwd: call.cwd.clone(),
        spill_dir: call.spill_dir.clone(),
        home: call.env.get("HOME").map(PathBuf::from),
    };
    // What begins with a tilde is the home directory's; all else is where the guard itself was started.
    let path = match path.starts_with('~') {
        true => path.to_owned(),
        false => Path::new(cwd).join(path).to_string_lossy().into_owned(),
    };
    let inside = tokio::task::spawn_blocking(move || ground.place(&path).inside).await;
    inside.unwrap_or(false)
}
