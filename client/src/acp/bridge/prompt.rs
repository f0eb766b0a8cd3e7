//! The editor's prompts: turns, and slash commands.

use super::session::{Open, Pending};
use super::{Bridge, answer, read};
use crate::acp::convert::error::{self, Error};
use crate::acp::convert::{prompt, update};
use crate::acp::peer::Responder;
use crate::error::Failure;
use crate::open::token;
use agent_client_protocol_schema::v1::{PromptResponse, StopReason};
use protocol::command::{self, CommandRpcClient};
use protocol::event::Level;
use serde::Deserialize;
use serde_json::Value;
use std::rc::Rc;

/// `session/prompt`'s parameters. Blocks are read one by one: one of a kind that nobody knows yet spoils no other.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    session_id: String,
    prompt: Vec<Value>,
}

impl Bridge {
    pub(super) async fn prompt(self: &Rc<Self>, params: Value, reply: Responder) {
        let read = || {
            let asked: Asked = read(params)?;
            let open = self.opened(&asked.session_id)?;
            Ok((open, prompt::read(asked.prompt)?))
        };
        match read() {
            Ok((open, (prompt, _))) if is_command(&prompt) => {
                self.command(&open, prompt.text, reply).await;
            }
            Ok((open, (prompt, left_out))) => self.turn(&open, prompt, &left_out, reply).await,
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
    ) {
        let token = token();
        // Before anything is waited for: a cancel that comes right behind must find it.
        open.add(Pending {
            token: token.clone(),
            turn: None,
            queued: None,
            cancelled: false,
            prompt: Some(prompt.clone()),
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
        open.begin(&token, &prompt).await;
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
