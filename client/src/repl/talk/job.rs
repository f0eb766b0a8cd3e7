//! Calls that the REPL makes while events go on, each a future of its own. Must never write to the terminal.

use crate::approval::{self, Reply};
use crate::error::Failure;
use crate::link::Link;
use crate::repl::editor::Wish;
use protocol::command::{CommandResult, CommandRpcClient, Completions};
use protocol::event::Image;
use protocol::id::{ApprovalId, SessionId};
use protocol::session::{Session, SessionRpcClient};
use protocol::tool::ToolRpcClient;
use protocol::turn::{Started, TurnRpcClient};
use serde_json::{Map, Value};
use std::fs::OpenOptions;
use std::future::Future;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::pin::Pin;
use std::process::Command;
use std::rc::Rc;

/// A call under way.
pub(super) type Job = Pin<Box<dyn Future<Output = Done>>>;

/// What became of it.
pub(super) enum Done {
    /// A prompt was taken, at once or into the queue, or not.
    Started {
        token: String,
        started: Result<Started, Failure>,
    },
    /// A slash command ran.
    Command { line: String, result: CommandResult },
    /// What may stand at the end of what is typed.
    Completed { wish: Wish, found: Completions },
    /// The session as it is now.
    Looked(Box<Session>),
    /// What was folded.
    Unfolded(String),
    /// A person's own command is over.
    Ran {
        command: String,
        result: Result<Map<String, Value>, Failure>,
    },
    /// The events tell.
    Quietly,
    /// It failed.
    Failed(Failure),
}

fn job(future: impl Future<Output = Result<Done, Failure>> + 'static) -> Job {
    Box::pin(async move { future.await.unwrap_or_else(Done::Failed) })
}

/// A prompt; behind the running turn if there is one.
pub(super) fn start(
    link: Rc<Link>,
    session: SessionId,
    text: String,
    images: Vec<Image>,
    token: String,
) -> Job {
    job(async move {
        let started = link
            .call(async |client| {
                let (session, text, token) = (session.clone(), text.clone(), Some(token.clone()));
                let images = (!images.is_empty()).then(|| images.clone());
                TurnRpcClient::start(client, session, text, images, token, Some(true)).await
            })
            .await;
        Ok(Done::Started { token, started })
    })
}

/// A slash command.
pub(super) fn command(link: Rc<Link>, session: SessionId, line: String) -> Job {
    job(async move {
        let result = link
            .call_once(async |client| {
                CommandRpcClient::run(client, session.clone(), line.clone()).await
            })
            .await;
        match result {
            Ok(result) => Ok(Done::Command { line, result }),
            Err(failure) if failure.is_disconnect() => Err(broken_off(&line)),
            Err(failure) => Err(failure),
        }
    })
}

/// The daemon went away while a command ran; the conversation goes on when it is back.
fn broken_off(line: &str) -> Failure {
    let name = line.split_whitespace().next().unwrap_or(line);
    Failure::new(format!(
        "the connection to the daemon was lost before {name} had answered"
    ))
    .hint("it may have done its work: look before you type it again")
}

/// Stops the running turn.
pub(super) fn cancel(link: Rc<Link>, session: SessionId) -> Job {
    job(async move {
        link.call(async |client| TurnRpcClient::cancel(client, session.clone()).await)
            .await?;
        Ok(Done::Quietly)
    })
}

/// Answers a question.
pub(super) fn answer(link: Rc<Link>, approval: ApprovalId, reply: Reply) -> Job {
    job(async move {
        approval::answer(&link, &approval, &reply).await?;
        Ok(Done::Quietly)
    })
}

/// A word into the running turn.
pub(super) fn steer(link: Rc<Link>, session: SessionId, text: String) -> Job {
    job(async move {
        link.call_once(async |client| {
            TurnRpcClient::steer(client, session.clone(), text.clone()).await
        })
        .await?;
        Ok(Done::Quietly)
    })
}

/// What may stand at the end of a line. Nobody waits for a daemon to come back for that, and nobody is told.
pub(super) fn complete(link: Rc<Link>, session: SessionId, wish: Wish) -> Job {
    job(async move {
        let found = link
            .call_once(async |client| {
                CommandRpcClient::complete(client, session.clone(), wish.line.clone()).await
            })
            .await
            .unwrap_or_default();
        Ok(Done::Completed { wish, found })
    })
}

/// The session as it is now; a failure would be told by the next call.
pub(super) fn look(link: Rc<Link>, session: SessionId) -> Job {
    job(async move {
        let seen = link
            .call_once(async |client| SessionRpcClient::get(client, session.clone()).await)
            .await;
        Ok(seen.map_or(Done::Quietly, |session| Done::Looked(Box::new(session))))
    })
}

/// A person's own command.
pub(super) fn shell(link: Rc<Link>, session: SessionId, command: String) -> Job {
    job(async move {
        let arguments = Some(serde_json::json!({"command": command}));
        let result = link
            .call_once(async |client| {
                let (session, arguments) = (session.clone(), arguments.clone());
                ToolRpcClient::run(client, session, "execute".into(), arguments, None).await
            })
            .await;
        Ok(Done::Ran { command, result })
    })
}

/// What was folded, as rows.
pub(super) fn unfold(read: impl Future<Output = Result<String, Failure>> + 'static) -> Job {
    job(async move { Ok(Done::Unfolded(read.await?)) })
}

/// Shows a text in the person's pager, on a thread that may wait.
pub(super) async fn page(text: String) -> Result<(), Failure> {
    let shown = tokio::task::spawn_blocking(move || in_pager(&text)).await;
    shown.unwrap_or_else(|_| Err(Failure::new("the pager's thread has ended")))
}

fn in_pager(text: &str) -> Result<(), Failure> {
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
        .stdin(std::process::Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| Failure::new(format!("cannot run {pager}: {error}")))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A pager that is left early reads no further.
        let _ = pipe.write_all(text.as_bytes());
    }
    match child.wait()? {
        status if status.success() => Ok(()),
        status => Err(Failure::new(format!("{pager} ended with {status}"))),
    }
}

/// Has a text written in the person's editor, on a thread that may wait.
pub(super) async fn compose(text: String) -> Result<String, Failure> {
    let written = tokio::task::spawn_blocking(move || in_editor(&text)).await;
    written.unwrap_or_else(|_| Err(Failure::new("the editor's thread has ended")))
}

fn in_editor(text: &str) -> Result<String, Failure> {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let editor = named("VISUAL")
        .or_else(|| named("EDITOR"))
        .unwrap_or_else(|| "vi".into());
    let path = std::env::temp_dir().join(format!("dwell-{}.md", crate::open::token()));
    // Nobody else's file, and for nobody else's eyes.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(text.as_bytes())?;
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
    let _ = std::fs::remove_file(&path);
    match status {
        Ok(status) if status.success() => Ok(written?),
        Ok(status) => Err(Failure::new(format!("{editor} ended with {status}"))),
        Err(error) => Err(Failure::new(format!("cannot run {editor}: {error}"))),
    }
}
