//! A session as its turns and calls see it: each method is one message to the actor. Must never decide anything.

use super::live::Piece;
use super::message::{Again, Asking, Begins, ByHand, Handle, Msg};
use super::task;
use crate::provider::{Message, Provider, ProviderEvent};
use crate::toolbox::permission::Permissions;
use crate::toolbox::tool::{Access, Change, Outcome};
use crate::toolbox::{BoxFuture, CallPort, Question, Verdict, Via};
use crate::turn::round::RoundEnd;
use crate::turn::{TurnPort, Work};
use protocol::event::{Level, TurnStatus};
use protocol::id::{CallId, MessageId};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub struct Port {
    handle: Handle,
}

impl Port {
    pub fn new(handle: Handle) -> Self {
        Self { handle }
    }

    async fn ask<T>(
        &self,
        message: impl FnOnce(super::message::Reply<T>) -> Msg,
    ) -> Result<T, String> {
        self.handle
            .ask(message)
            .await
            .map_err(|error| error.to_string())
    }

    /// The rules of the files and the grants of the session.
    pub async fn rules(&self) -> Arc<Permissions> {
        let rules = self.handle.shared.workspace.permissions().await;
        let mut grants = self.handle.ask(Msg::Grants).await.unwrap_or_default();
        grants.extend(self.granted_above().await);
        if grants.is_empty() {
            return rules;
        }
        Arc::new(
            grants
                .iter()
                .fold((*rules).clone(), |rules, (tool, pattern)| {
                    rules.with_grant(tool, pattern)
                }),
        )
    }
}

impl Port {
    /// What was allowed for the rest of the sessions that this one works for.
    async fn granted_above(&self) -> Vec<(String, String)> {
        let mut granted = Vec::new();
        let mut above = self.handle.shared.task.clone();
        while let (Some(task), Some(sessions)) = (above, self.handle.shared.sessions.upgrade()) {
            let Ok(parent) = sessions.open(&task.parent).await else {
                break;
            };
            granted.extend(parent.ask(Msg::Grants).await.unwrap_or_default());
            above = parent.shared.task.clone();
        }
        granted
    }
}

impl CallPort for Port {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        let asking = Asking {
            call: question.call.clone(),
            tool: question.tool.to_owned(),
            arguments: question.arguments.clone(),
            why: question.why.to_owned(),
            patterns: question.patterns,
        };
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let gone = || "the session is gone".to_owned();
            self.handle
                .mailbox
                .send(Box::new(Msg::Ask(asking, reply)))
                .await
                .map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn recorded(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.ask(Msg::Recorded))
    }

    fn started<'a>(
        &'a self,
        call: &'a CallId,
        access: Access,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let started = |reply| Msg::Started(call.clone(), access, reply);
            if self.ask(started).await? == Begins::Now {
                return Ok(());
            }
            let store = &self.handle.shared.services.store;
            store.synced().await.map_err(|error| error.to_string())
        })
    }

    fn changing(&self, call: &CallId, change: Change) {
        self.handle.changing(call, change);
    }

    fn output(&self, call: &CallId, text: &str) {
        self.handle.output(call, text);
    }

    fn child<'a>(
        &'a self,
        parent: &'a CallId,
        via: Via,
        name: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<CallId, String>> {
        let by_hand = ByHand {
            name: name.to_owned(),
            arguments: arguments.clone(),
            parent: Some(parent.clone()),
            via: via.as_str(),
            tell: false,
            cancel: CancellationToken::new(),
        };
        Box::pin(self.ask(|reply| Msg::ByHand(by_hand, reply)))
    }

    fn child_done<'a>(
        &'a self,
        call: &'a CallId,
        result: &'a Map<String, Value>,
        ms: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        let (call, result) = (call.clone(), result.clone());
        Box::pin(self.ask(move |reply| Msg::ByHandDone {
            call,
            result,
            ms,
            reply,
        }))
    }

    fn task<'a>(
        &'a self,
        call: &'a CallId,
        prompt: String,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        let (call, handle) = (call.clone(), self.handle.clone());
        match handle.shared.sessions.upgrade() {
            Some(sessions) => Box::pin(async move {
                // The sub-session says whose it is.
                self.recorded().await?;
                task::run(sessions, handle, call, prompt, cancel).await
            }),
            None => Box::pin(async { Err("the daemon is stopping".to_owned()) }),
        }
    }

    fn warn(&self, text: &str) {
        self.notice(Level::Warning, text);
    }
}

impl TurnPort for Port {
    fn next(&self) -> BoxFuture<'_, Result<Work, String>> {
        Box::pin(self.ask(Msg::Next))
    }

    fn build(&self) -> BoxFuture<'_, Result<Arc<dyn Provider>, String>> {
        Box::pin(async move {
            let session = self
                .handle
                .ask(Msg::View)
                .await
                .map_err(|e| e.to_string())?;
            let shared = &self.handle.shared;
            let env = Arc::clone(&shared.env);
            let built = shared
                .services
                .build(&shared.workspace, &session.provider, session.model, env)
                .await;
            let provider = built.map_err(|error| error.to_string())?;
            // A closed mailbox shows itself at the next message.
            let _ = self
                .handle
                .mailbox
                .send(Box::new(Msg::Built(Arc::clone(&provider))))
                .await;
            Ok(provider)
        })
    }

    fn permissions(&self) -> BoxFuture<'_, Arc<Permissions>> {
        Box::pin(self.rules())
    }

    fn emit(&self, message: &MessageId, event: ProviderEvent) {
        let message = message.clone();
        let piece = match event {
            ProviderEvent::Saying(text) => Piece::Saying { message, text },
            ProviderEvent::Thinking(text) => Piece::Thinking { message, text },
            ProviderEvent::Doing {
                id,
                name,
                arguments,
            } => Piece::Doing {
                message,
                id,
                name,
                arguments,
            },
            ProviderEvent::Usage { .. } | ProviderEvent::Signed(_) => return,
        };
        self.handle.live.push(piece);
    }

    fn round_done(&self, end: RoundEnd) -> BoxFuture<'_, Result<Work, String>> {
        Box::pin(self.ask(|reply| Msg::RoundDone(end, reply)))
    }

    fn again(
        &self,
        attempt: u32,
        after_ms: u64,
        why: String,
    ) -> BoxFuture<'_, Result<MessageId, String>> {
        Box::pin(self.ask(move |reply| {
            Msg::Again(
                Again {
                    attempt,
                    after_ms,
                    why,
                },
                reply,
            )
        }))
    }

    fn compacted(
        &self,
        summary: String,
        usage: Option<(u64, u64, u64)>,
    ) -> BoxFuture<'_, Result<Vec<Message>, String>> {
        Box::pin(self.ask(move |reply| Msg::Compacted {
            summary,
            usage,
            reply,
        }))
    }

    fn notice(&self, level: Level, text: &str) {
        self.handle.notice(level, text);
    }

    fn call_done(
        &self,
        call: CallId,
        result: Map<String, Value>,
        ms: u64,
    ) -> BoxFuture<'_, Result<Work, String>> {
        Box::pin(self.ask(move |reply| Msg::CallDone {
            call,
            result,
            ms,
            reply,
        }))
    }

    fn end(&self, status: TurnStatus, reply: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // An actor that is gone has ended the turn itself.
            let _ = self
                .handle
                .ask(|answer| Msg::End(status, reply, answer))
                .await;
        })
    }
}
