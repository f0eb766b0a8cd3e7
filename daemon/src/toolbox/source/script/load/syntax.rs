//! What the languages' own readers say of scripts. Nothing of a script is run, only taken apart.
//! Only for a person who asks, and for an edit of a file that was good: each costs a process.

use super::Language;
use crate::process::{self, Exit, Spawn};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Far more than any file takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Processes at once.
const AT_ONCE: usize = 4;
/// What is kept of what one of them says.
const LONGEST: usize = 64 * 1024;

/// Compiles and drops it. A byte order mark and a declared encoding are its own matter.
const PYTHON: &str = "import sys
try:
    compile(sys.stdin.buffer.read(), sys.argv[1], 'exec', dont_inherit=True)
except (SyntaxError, ValueError) as error:
    print(f'line {getattr(error, \"lineno\", None) or 1}: {getattr(error, \"msg\", error)}')
    sys.exit(1)
";

/// Variables that make an interpreter read more than the script.
const READS_MORE: &[&str] = &[
    "BASH_ENV",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
];

/// A script to be looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub(super) file: PathBuf,
    pub(super) language: Language,
    pub(super) text: Arc<[u8]>,
}

/// What is wrong with them, in their order.
pub async fn faults(sources: Vec<Source>, env: &BTreeMap<String, String>) -> Vec<String> {
    let mut env = env.clone();
    env.retain(|name, _| !READS_MORE.contains(&name.as_str()));
    let env = Arc::new(env);
    let mut found = BTreeMap::new();
    let mut running = JoinSet::new();
    for (at, source) in sources.into_iter().enumerate() {
        if running.len() >= AT_ONCE
            && let Some(Ok((at, Some(fault)))) = running.join_next().await
        {
            found.insert(at, fault);
        }
        let env = Arc::clone(&env);
        running.spawn(async move { (at, fault(&source, &env).await) });
    }
    while let Some(ended) = running.join_next().await {
        if let Ok((at, Some(fault))) = ended {
            found.insert(at, fault);
        }
    }
    found.into_values().collect()
}

/// What is wrong with a text that takes the place of a good one, as the programs say that the daemon itself would start.
/// Blocks, on a thread of its own, so that it does not matter who asks.
pub(super) fn fault_of_edit(edited: Source, good: Arc<[u8]>) -> Option<String> {
    let utf8 = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let mut env: BTreeMap<_, _> = std::env::vars_os().filter_map(utf8).collect();
    env.retain(|name, _| !READS_MORE.contains(&name.as_str()));
    let looking = std::thread::spawn(move || {
        let mut building = tokio::runtime::Builder::new_current_thread();
        let runtime = building.enable_all().build().ok()?;
        runtime.block_on(async {
            let said = fault(&edited, &env).await?;
            // Where the good one is not taken either, another program runs them.
            let good = Source {
                text: good,
                ..edited.clone()
            };
            fault(&good, &env).await.is_none().then_some(said)
        })
    });
    looking.join().ok().flatten()
}

async fn fault(source: &Source, env: &BTreeMap<String, String>) -> Option<String> {
    let said = match source.language {
        Language::Bash => {
            // As it runs: without what another system ends its lines with.
            let text = String::from_utf8_lossy(&source.text).replace("\r\n", "\n");
            let source = Source {
                text: text.into_bytes().into(),
                ..source.clone()
            };
            let said = read(&source, env, "bash", &["-n"]).await?;
            // The script may switch its patterns on, which nobody does where nothing is run.
            let more = read(&source, env, "bash", &["-n", "-O", "extglob"]).await;
            more.map(|_| of_bash(&said))
        }
        Language::Python => {
            let name = source.file.to_string_lossy();
            let said = read(source, env, "python3", &["-I", "-S", "-c", PYTHON, &name]).await;
            said.map(|said| said.trim().to_owned())
        }
        Language::JavaScript => of_node(source, env).await,
    };
    said.map(|said| format!("{}: {said}", source.file.display()))
}

/// What is said of a text that is not taken; none also where nobody can say.
async fn read(
    source: &Source,
    env: &BTreeMap<String, String>,
    program: &str,
    args: &[&str],
) -> Option<String> {
    let spawn = Spawn {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        cwd: source.file.parent().unwrap_or(Path::new("/")).to_owned(),
        env: env.clone(),
        stdin: Some(source.text.to_vec()),
        timeout: Some(PATIENCE),
    };
    let mut said = Vec::new();
    let mut keep = |bytes: &[u8]| {
        let room = LONGEST.saturating_sub(said.len());
        said.extend_from_slice(&bytes[..bytes.len().min(room)]);
    };
    match process::run(spawn, &CancellationToken::new(), &mut keep).await {
        Exit::Code(0) | Exit::NotStarted(_) | Exit::Cancelled => None,
        Exit::Code(_) => Some(String::from_utf8_lossy(&said).into_owned()),
        Exit::Signal(_) | Exit::TimedOut => Some(format!("line 1: {program} cannot read it")),
    }
}

/// `bash: line 3: what it is`
fn of_bash(said: &str) -> String {
    let line = said.lines().find_map(|line| line.strip_prefix("bash: "));
    line.unwrap_or(said.trim()).to_owned()
}

/// A file may be of the older kind of module or of the newer; it is as one of them that it has to be right.
async fn of_node(source: &Source, env: &BTreeMap<String, String>) -> Option<String> {
    let older = ["--check", "--input-type=commonjs", "-"];
    let newer = ["--check", "--input-type=module", "-"];
    let text = String::from_utf8_lossy(&source.text);
    let says_new = text.lines().map(str::trim_start).any(|line| {
        [
            "import ", "import{", "import\"", "import'", "export ", "export{",
        ]
        .iter()
        .any(|word| line.starts_with(word))
    });
    let is_new = source.file.extension().is_some_and(|end| end == "mjs") || says_new;
    let first = read(source, env, "node", if is_new { &newer } else { &older }).await?;
    if !is_new && read(source, env, "node", &newer).await.is_none() {
        return None;
    }
    Some(node_told(&first))
}

/// `[stdin]:2`, the line itself, and `SyntaxError: what it is`.
fn node_told(said: &str) -> String {
    let line = said.lines().find_map(|line| line.strip_prefix("[stdin]:"));
    let what = said
        .lines()
        .find_map(|line| line.strip_prefix("SyntaxError: "));
    format!(
        "line {}: {}",
        line.map_or("1", str::trim),
        what.unwrap_or("node cannot read it").trim()
    )
}
