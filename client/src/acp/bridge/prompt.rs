//! The editor's prompts: turns, and slash commands.

use super::commands::Running;
use super::session::{Open, Pending};
use super::{Bridge, answer, read};
use crate::acp::convert::error::{self, Error};
use crate::acp::convert::{prompt, update};
use crate::acp::lane::Ticket;
use crate::acp::peer::Responder;
use crate::error::Failure;
use crate::open::token;
use agent_client_protocol_schema::v1::{PromptResponse, StopReason};
use protocol::command::{self, CommandRpcClient};
use protocol::event::Level;
use serde::Deserialize;
use serde_json::Value;
use std::rc::Rc;
use std::time::Duration;

/// How long a cancelled command is waited for; it may go on in the daemon.
const ENDING: Duration = Duration::from_secs(1);

/// `session/prompt`'s parameters. Blocks are read one by one: one of a kind that nobody knows yet spoils no other.
#[derive(Deserialize)]
#[serde(rename = "PromptRequest", rename_all = "camelCase")]
struct Asked {
    session_id: String,
    prompt: Vec<Value>,
}

impl Bridge {
    pub(super) async fn prompt(
        self: &Rc<Self>,
        params: Value,
        reply: Responder,
        ticket: Option<Ticket>,
    ) {
        let read = || {
            let asked: Asked = read(params)?;
            let open = self.opened(&asked.session_id)?;
            Ok((open, prompt::read(asked.prompt)?))
        };
        match read() {
            Ok((open, (prompt, _))) if is_command(&prompt) => {
                self.command(&open, prompt.text, reply, ticket).await;
            }
            Ok((open, (prompt, left_out))) => {
                self.turn(&open, prompt, &left_out, reply, ticket).await;
            }
            Err(error) => reply.send(Err::<(), Error>(error)).await,
        }
    }

    /// It waits behind a turn that runs, whoever began that.
    async fn turn(
        &self,
        open: &Rc<Open>,
        prompt: prompt::Prompt,
        left_out: &[String],
        reply: Responder,
        ticket: Option<Ticket>,
    ) {
        let token = token();
        // Before anything is waited for: a cancel that comes right behind must find it.
        open.add(Pending {
            token: token.clone(),
            turn: None,
            queued: None,
            cancelled: false,
            reply,
        })
        .await;
        if !left_out.is_empty() {
            let note = format!(
                "the model is not given, but told of: {}",
                left_out.join(", ")
            );
            open.tell(Level::Warning, &note).await;
        }
        self.turn_of(&ticket).await;
        // It may have been opened anew meanwhile, and its prompts be there; or closed, and they be answered.
        let Ok(open) = self.opened(open.id.as_str()) else {
            return;
        };
        match open.take(|one| one.token == token && one.cancelled) {
            Some(pending) => {
                let stop = PromptResponse::new(StopReason::Cancelled);
                pending.reply.send(Ok::<_, Error>(stop)).await;
            }
            None => open.begin(&token, &prompt).await,
        }
    }

    async fn command(
        &self,
        open: &Rc<Open>,
        line: String,
        reply: Responder,
        ticket: Option<Ticket>,
    ) {
        let running = open.commands.begin(reply.id());
        let ran = async {
            self.turn_of(&ticket).await;
            self.ran(open, &line, &running).await
        };
        let ran = tokio::select! {
            biased;
            ran = ran => Some(ran),
            () = overdue(&running) => None,
        };
        drop(ticket);
        open.commands.end(&running);
        // It may have been opened anew meanwhile.
        let open = &self
            .opened(open.id.as_str())
            .unwrap_or_else(|_| Rc::clone(open));
        let reason = match running.is_cancelled() {
            true => StopReason::Cancelled,
            false => StopReason::EndTurn,
        };
        let stop = answer(PromptResponse::new(reason));
        match (ran, stop) {
            // A command may begin a turn, whose end is then the prompt's.
            (Some(Ok((_, Some(turn)))), _) => open.answer_turn(turn, reply).await,
            (Some(Ok((seq, None))), Ok(stop)) => open.answer_after(seq, reply, stop).await,
            (Some(Err(failure)), _) if !running.is_cancelled() => {
                let error = Err::<(), _>(error::from(failure));
                reply.send(error).await;
            }
            (_, stop) => reply.send(stop).await,
        }
    }

    async fn ran(
        &self,
        open: &Rc<Open>,
        line: &str,
        running: &Running,
    ) -> Result<(u64, Option<protocol::id::TurnId>), Failure> {
        let before = self.seen(open).await?;
        running.alone.set(before.turn.is_none());
        if running.is_cancelled() {
            return Ok((before.seq, None));
        }
        let result = self
            .link
            .call_once(async |client| {
                CommandRpcClient::run(client, open.id.clone(), line.to_owned()).await
            })
            .await?;
        let words = result.output + &result.error.unwrap_or_default();
        for update in update::said("command", &words) {
            open.send(update).await;
        }
        let after = self.seen(open).await?;
        let begun = after.turn.filter(|turn| before.turn.as_ref() != Some(turn));
        Ok((after.seq, begun))
    }

    async fn seen(&self, open: &Rc<Open>) -> Result<protocol::session::Session, Failure> {
        let call = self.link.call(async |client| {
            protocol::session::SessionRpcClient::get(client, open.id.clone()).await
        });
        call.await
    }
}

/// Resolves when a command has been cancelled, and has had the time to end by that.
async fn overdue(running: &Running) {
    running.cancelled().await;
    tokio::time::sleep(ENDING).await;
}

/// A picture has no place in a command.
fn is_command(prompt: &prompt::Prompt) -> bool {
    prompt.images.is_empty() && command::split(&prompt.text).is_some()
}
