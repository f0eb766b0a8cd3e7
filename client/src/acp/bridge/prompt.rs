//! The editor's prompts: turns, and slash commands.

use super::session::{Open, Pending};
use super::{Bridge, answer, read};
use crate::acp::convert::error::{self, Error};
use crate::acp::convert::{prompt, update};
use crate::acp::peer::Responder;
use crate::error::Failure;
use crate::open::token;
use agent_client_protocol_schema::v1::{PromptRequest, PromptResponse, StopReason};
use jsonrpsee::core::client::Error as CallError;
use protocol::command::{self, CommandRpcClient};
use protocol::turn::{Started, TurnRpcClient};
use serde_json::Value;
use std::rc::Rc;

impl Bridge {
    pub(super) async fn prompt(self: &Rc<Self>, params: Value, reply: Responder) {
        let read = || {
            let asked: PromptRequest = read(params)?;
            let open = self.opened(&asked.session_id.0)?;
            Ok((open, prompt::read(asked.prompt)?))
        };
        match read() {
            Ok((open, prompt)) if is_command(&prompt) => {
                self.command(&open, prompt.text, reply).await;
            }
            Ok((open, prompt)) => self.turn(&open, prompt, reply).await,
            Err(error) => reply.send(Err::<(), Error>(error)).await,
        }
    }

    /// It waits behind a turn that runs, whoever began that.
    async fn turn(&self, open: &Rc<Open>, prompt: prompt::Prompt, reply: Responder) {
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
        let started = self.link.call(async |client| {
            // It was answered meanwhile that no daemon can be had: what is told to have failed must not run later.
            if open.with_token(&token, |_| ()).is_none() {
                return Err(CallError::Custom("nobody waits for the turn".to_owned()));
            }
            let (id, text, token) = (open.id.clone(), prompt.text.clone(), Some(token.clone()));
            let images = Some(prompt.images.clone()).filter(|images| !images.is_empty());
            TurnRpcClient::start(client, id, text, images, token, Some(true)).await
        });
        match started.await {
            Ok(started) => self.started(open, &token, started).await,
            Err(failure) => {
                if let Some(pending) = open.take(|one| one.token == token) {
                    let error = Err::<(), _>(error::from(failure));
                    pending.reply.send(error).await;
                }
            }
        }
    }

    async fn started(&self, open: &Rc<Open>, token: &str, started: Started) {
        let cancelled = open.with_token(token, |one| {
            one.turn = one.turn.take().or(started.turn);
            one.queued = one.queued.take().or(started.queued);
            one.cancelled
        });
        // The cancel came when there was nothing to cancel yet.
        if cancelled == Some(true) {
            open.cancel().await;
        }
    }

    async fn command(&self, open: &Rc<Open>, line: String, reply: Responder) {
        match self.ran(open, &line).await {
            // A command may begin a turn, whose end is then the prompt's.
            Ok((_, Some(turn))) => open.answer_turn(turn, reply).await,
            Ok((seq, None)) => match answer(PromptResponse::new(StopReason::EndTurn)) {
                Ok(result) => open.answer_after(seq, reply, result).await,
                Err(error) => reply.send(Err::<(), _>(error)).await,
            },
            Err(failure) => {
                let error = Err::<(), _>(error::from(failure));
                reply.send(error).await;
            }
        }
    }

    async fn ran(
        &self,
        open: &Rc<Open>,
        line: &str,
    ) -> Result<(u64, Option<protocol::id::TurnId>), Failure> {
        let before = self.seen(open).await?;
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

/// A picture has no place in a command.
fn is_command(prompt: &prompt::Prompt) -> bool {
    prompt.images.is_empty() && command::split(&prompt.text).is_some()
}
