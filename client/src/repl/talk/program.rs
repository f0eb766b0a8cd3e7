//! Programs of the person's own that take the terminal for a while: the editor for a prompt, the pager for what is long.
//! Must never be called while the keyboard is being read, nor throw away what somebody wrote.

use crate::error::Failure;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};

/// The signal of Ctrl-C.
const INTERRUPT: i32 = rustix::process::Signal::INT.as_raw();

/// Where a person names an editor, the first that is set.
const EDITORS: [&str; 2] = ["VISUAL", "EDITOR"];

/// How a pager ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paged {
    Well,
    /// By Ctrl-C, which may have ended it before it put the terminal right.
    Interrupted,
}

/// Shows a text in the person's pager, on a thread that may wait.
pub(super) async fn page(text: String) -> Result<Paged, Failure> {
    let shown = tokio::task::spawn_blocking(move || in_pager(&text)).await;
    shown.unwrap_or_else(|_| Err(Failure::new("the pager's thread has ended")))
}

fn in_pager(text: &str) -> Result<Paged, Failure> {
    let named = std::env::var("PAGER")
        .ok()
        .filter(|pager| !pager.trim().is_empty());
    let pager = named.unwrap_or_else(|| "less -R".into());
    #[expect(
        clippy::disallowed_methods,
        reason = "a person's own pager, waited for"
    )]
    let child = Command::new("sh")
        .arg("-c")
        .arg(&pager)
        // Colours stay colours in the usual pager.
        .env("LESS", std::env::var("LESS").unwrap_or_else(|_| "R".into()))
        .stdin(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| Failure::new(format!("cannot run {pager}: {error}")))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A pager that is left early reads no further.
        let _ = pipe.write_all(text.as_bytes());
    }
    match child.wait()? {
        status if status.success() => Ok(Paged::Well),
        // Ctrl-C in a pager stops its search; the shell around it ends by that when the pager has ended well.
        status if status.signal() == Some(INTERRUPT) || status.code() == Some(128 + INTERRUPT) => {
            Ok(Paged::Interrupted)
        }
        status => Err(ended(&pager, &["PAGER"], status)),
    }
}

/// A program that did not end well; a shell has codes for one that it could not run.
fn ended(program: &str, variables: &[&str], status: ExitStatus) -> Failure {
    let why = match status.code() {
        Some(127) => "there is no such program",
        Some(126) => "it is no program that can be run",
        _ => return Failure::new(format!("{program} ended with {status}")),
    };
    let names = |name: &&&str| std::env::var(name).is_ok_and(|value| value == program);
    let hint = match variables.iter().find(names) {
        Some(name) => format!("{name} names it"),
        None => format!("{} can name another", variables.join(" or ")),
    };
    Failure::new(format!("cannot run {program}: {why}")).hint(hint)
}

/// An editor that failed, and what it had saved by then.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) failure: Failure,
    pub(super) saved: Option<String>,
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            saved: None,
        }
    }
}

/// Has a text written in the person's editor, on a thread that may wait.
pub(super) async fn compose(text: String) -> Result<String, Broken> {
    let written = tokio::task::spawn_blocking(move || in_editor(&editor(), &text)).await;
    written.unwrap_or_else(|_| Err(Failure::new("the editor's thread has ended").into()))
}

fn editor() -> String {
    let named = |name: &str| std::env::var(name).ok();
    EDITORS
        .iter()
        .filter_map(|name| named(name))
        .find(|value| !value.trim().is_empty())
        .unwrap_or_else(|| "vi".into())
}

fn in_editor(editor: &str, text: &str) -> Result<String, Broken> {
    let path = std::env::temp_dir().join(format!("dwell-{}.md", crate::open::token()));
    let unwritten = |error| Failure::new(format!("cannot write {}: {error}", path.display()));
    // Nobody else's file, and for nobody else's eyes.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(unwritten)?;
    file.write_all(text.as_bytes()).map_err(unwritten)?;
    drop(file);
    // The variable may hold arguments, which a shell knows to take apart.
    #[expect(
        clippy::disallowed_methods,
        reason = "a person's own editor, waited for"
    )]
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .status();
    let written = std::fs::read_to_string(&path);
    let failure = match (status, written) {
        (Ok(status), Ok(written)) if status.success() => {
            let _ = std::fs::remove_file(&path);
            return Ok(written);
        }
        (Ok(status), Ok(written)) => {
            let failure = ended(editor, &EDITORS, status);
            if written.trim_end() == text.trim_end() {
                let _ = std::fs::remove_file(&path);
                return Err(failure.into());
            }
            Broken {
                failure,
                saved: Some(written),
            }
        }
        (Err(error), _) => Failure::new(format!("cannot run {editor}: {error}")).into(),
        (_, Err(error)) => Failure::new(format!("cannot read what {editor} wrote: {error}")).into(),
    };
    if !path.exists() {
        return Err(failure);
    }
    let hint = format!("what was written is in {}", path.display());
    Err(Broken {
        failure: failure.failure.hint(hint),
        ..failure
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_editor_wrote_comes_back_and_its_file_goes() {
        let written = in_editor("f() { echo \"$1\" > \"$1\"; }; f", "").unwrap();
        let path = std::path::Path::new(written.trim());
        assert!(path.is_absolute() && !path.exists(), "{written}");
    }

    #[test]
    fn an_editor_that_is_killed_leaves_what_it_had_saved() {
        let broken =
            in_editor("f() { echo kept >> \"$1\"; kill -9 $$; }; f", "typed ").unwrap_err();
        assert_eq!(broken.saved.as_deref(), Some("typed kept\n"));
        let failure = broken.failure;
        assert!(failure.message.contains("signal: 9"), "{failure}");
        let hint = failure.hint.unwrap();
        let path = hint.strip_prefix("what was written is in ").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "typed kept\n");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_editor_that_changed_nothing_leaves_no_file() {
        let broken = in_editor("echo \"$1\" >&2; false", "typed").unwrap_err();
        assert_eq!((broken.failure.hint, broken.saved), (None, None));
        let none = in_editor("no-such-editor-anywhere 2>/dev/null", "typed").unwrap_err();
        let none = none.failure;
        assert!(
            none.message.ends_with(": there is no such program"),
            "{none}"
        );
        assert_eq!(
            none.hint.as_deref(),
            Some("VISUAL or EDITOR can name another")
        );
    }
}
