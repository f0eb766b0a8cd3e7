//! Calls that the REPL makes while events go on, each a future of its own. Must never write to the terminal.

use crate::approval::{self, Question, Reply};
use crate::error::Failure;
use crate::link::Link;
use crate::repl::editor::Wish;
use protocol::approval::ApprovalRpcClient;
use protocol::command::{CommandResult, CommandRpcClient, Completions};
use protocol::error::ErrorKind;
use protocol::event::Image;
use protocol::id::{ApprovalId, CallId, QueuedId, SessionId, TurnId};
use protocol::session::{QueueRpcClient, Session, SessionRpcClient};
use protocol::tool::ToolRpcClient;
use protocol::turn::{Started, TurnRpcClient};
use serde_json::{Map, Value};
use std::future::Future;
use std::pin::Pin;
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
    /// A slash command made this session from the one that is shown.
    Forked(Box<Session>),
    /// What may stand at the end of what is typed.
    Completed { wish: Wish, found: Completions },
    /// The session as it is now.
    Looked(Box<Session>),
    /// What was folded.
    Unfolded(String),
    /// What waited in the queue is back.
    TookBack(String),
    /// A person's own command is over.
    Ran {
        number: u64,
        result: Result<Map<String, Value>, Failure>,
    },
    /// A pattern would not do, and its question still waits.
    Refused(Box<Refused>),
    /// The events tell.
    Quietly,
    /// It failed.
    Failed(Failure),
}

/// An answer that was not taken.
pub(super) struct Refused {
    pub(super) question: Question,
    pub(super) reply: Reply,
    pub(super) failure: Failure,
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
                TurnRpcClient::start(client, session, text, images, token, Some(true), None).await
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
            Ok(result) => {
                let made = forked(&line, &result).map(SessionId::from);
                match made {
                    Some(made) => Ok(link
                        .call_once(async |client| SessionRpcClient::get(client, made.clone()).await)
                        .await
                        .map_or(Done::Command { line, result }, |made| {
                            Done::Forked(Box::new(made))
                        })),
                    None => Ok(Done::Command { line, result }),
                }
            }
            Err(failure) if failure.is_disconnect() => Err(broken_off(&line)),
            Err(failure) => Err(failure),
        }
    })
}

/// The session that a command made, by what it printed: `forked as ID: ...`.
fn forked<'a>(line: &str, result: &'a CommandResult) -> Option<&'a str> {
    let named = line.split_whitespace().next() == Some("/fork") && result.error.is_none();
    let told = result.output.strip_prefix("forked as ")?;
    told.split_once(':').map(|(id, _)| id).filter(|_| named)
}

/// The daemon went away while a command ran; the conversation goes on when it is back.
fn broken_off(line: &str) -> Failure {
    let name = line.split_whitespace().next().unwrap_or(line);
    Failure::new(format!(
        "the connection to the daemon was lost before {name} had answered"
    ))
    .hint("it may have done its work: look before you type it again")
}

/// Stops a turn, if it still runs.
pub(super) fn cancel(link: Rc<Link>, session: SessionId, turn: TurnId) -> Job {
    job(async move {
        link.call(async |client| {
            TurnRpcClient::cancel(client, session.clone(), Some(turn.clone())).await
        })
        .await?;
        Ok(Done::Quietly)
    })
}

/// Stops a call that no turn made.
pub(super) fn cancel_call(link: Rc<Link>, session: SessionId, call: CallId) -> Job {
    job(async move {
        let stopped = link
            .call(async |client| ToolRpcClient::cancel(client, session.clone(), call.clone()).await)
            .await;
        match stopped {
            // It has ended in the meantime.
            Err(failure) if failure.kind == Some(ErrorKind::NotFound) => Ok(Done::Quietly),
            other => other.map(|_| Done::Quietly),
        }
    })
}

/// Answers a question.
pub(super) fn answer(link: Rc<Link>, question: Question, reply: Reply) -> Job {
    job(async move {
        match approval::answer(&link, &question.approval, &reply).await {
            Err(failure) if approval::is_refused(&reply, &failure) => {
                let waiting = link
                    .call(async |client| ApprovalRpcClient::list(client, None).await)
                    .await?;
                // Somebody else may have answered it meanwhile.
                Ok(
                    match waiting.iter().any(|one| one.approval == question.approval) {
                        true => Done::Refused(Box::new(Refused {
                            question,
                            reply,
                            failure,
                        })),
                        false => Done::Quietly,
                    },
                )
            }
            other => other.map(|()| Done::Quietly),
        }
    })
}

/// Answers the question about a command of the person's own.
pub(super) fn answer_own(link: Rc<Link>, approval: ApprovalId) -> Job {
    job(async move {
        approval::answer(&link, &approval, &Reply::yes()).await?;
        Ok(Done::Quietly)
    })
}

/// Prompts out of the queue. One that has begun by now is a turn, and stays one.
pub(super) fn take_back(link: Rc<Link>, session: SessionId, queue: Vec<(QueuedId, String)>) -> Job {
    job(async move {
        let mut texts = Vec::new();
        for (queued, text) in queue {
            let removed = link
                .call(async |client| {
                    QueueRpcClient::queue_remove(client, session.clone(), queued.clone()).await
                })
                .await;
            match removed {
                Ok(_) => texts.push(text),
                Err(failure) if failure.kind == Some(ErrorKind::NotFound) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(Done::TookBack(texts.join("\n")))
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
pub(super) fn shell(link: Rc<Link>, session: SessionId, number: u64, command: String) -> Job {
    job(async move {
        let result = super::shell::execute(&link, &session, &command).await;
        Ok(Done::Ran { number, result })
    })
}

/// What was folded, as rows.
pub(super) fn unfold(read: impl Future<Output = Result<String, Failure>> + 'static) -> Job {
    job(async move { Ok(Done::Unfolded(read.await?)) })
}
