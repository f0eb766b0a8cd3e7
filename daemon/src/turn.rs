//! A turn: round trips to the model and the calls it makes, until it makes none. Decides nothing that the log does not
//! say, and reaches the session only through `TurnPort`.

pub mod compaction;
pub mod prompt;
pub mod retry;
pub mod round;
pub mod step;

use crate::presentation::Toolkit;
use crate::provider::{BoxFuture, Message, Provider, ProviderEvent};
use crate::toolbox::gate::Run;
use crate::toolbox::{CallPort, permission::Permissions};
use compaction::{Fill, Tried};
use futures_util::FutureExt;
use protocol::event::{Level, TurnStatus};
use protocol::id::{CallId, MessageId, SessionId, TurnId};
use round::RoundEnd;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What is to be done next, with all it takes.
pub enum Work {
    Model(Box<Round>),
    Call {
        call: CallId,
        name: String,
        arguments: Value,
    },
    /// The turn has ended and that is recorded.
    Over,
}

/// A round trip that has begun.
pub struct Round {
    pub message: MessageId,
    /// The conversation without its system prompt.
    pub messages: Vec<Message>,
    /// None when it must be built first.
    pub provider: Option<Arc<dyn Provider>>,
    /// The system prompt as the files were when the round trip began.
    pub prompt: BoxFuture<'static, String>,
    pub fill: Fill,
}

/// What a turn needs of its session. Each method records what it says before it returns.
pub trait TurnPort: CallPort {
    fn next(&self) -> BoxFuture<'_, Result<Work, String>>;
    /// The session's provider, built anew.
    fn build(&self) -> BoxFuture<'_, Result<Arc<dyn Provider>, String>>;
    fn permissions(&self) -> BoxFuture<'_, Arc<Permissions>>;
    /// Something streamed; never waits.
    fn emit(&self, message: &MessageId, event: ProviderEvent);
    fn round_done(&self, end: RoundEnd) -> BoxFuture<'_, Result<Work, String>>;
    /// The draft is withdrawn and the round trip begins again; returns its new message.
    fn again(
        &self,
        attempt: u32,
        after_ms: u64,
        why: String,
    ) -> BoxFuture<'_, Result<MessageId, String>>;
    /// The model goes on with this summary of the conversation, which it now has instead; `usage` is the summary's.
    fn compacted(
        &self,
        summary: String,
        usage: Option<(u64, u64, u64)>,
    ) -> BoxFuture<'_, Result<Vec<Message>, String>>;
    /// Something people should know; never waits.
    fn notice(&self, level: Level, text: &str);
    fn call_done(
        &self,
        call: CallId,
        result: Map<String, Value>,
        ms: u64,
    ) -> BoxFuture<'_, Result<Work, String>>;
    fn end(&self, status: TurnStatus, reply: String) -> BoxFuture<'_, ()>;
}

/// What does not change while the turn runs.
#[derive(Clone)]
pub struct Context {
    pub session: SessionId,
    pub turn: TurnId,
    pub cwd: PathBuf,
    pub env: Arc<BTreeMap<String, String>>,
    pub spill_dir: PathBuf,
    /// The tools as its model has them.
    pub toolkit: Arc<dyn Toolkit>,
    /// What a model may say at most in one round trip.
    pub max_reply_bytes: u64,
    /// How full the model's window gets before the conversation is summed up; 0 is never.
    pub compact_at_percent: u8,
    pub cancel: CancellationToken,
    pub port: Arc<dyn TurnPort>,
}

/// Why a turn cannot go on.
pub enum Stop {
    Cancelled,
    /// The reply says why.
    Failed(String),
}

/// Runs a turn to its end, from `work` on where it is known. A panic inside ends the turn, not the daemon.
pub async fn run(context: Context, work: Option<Work>) {
    let outcome = AssertUnwindSafe(steps(&context, work)).catch_unwind().await;
    let (status, reply) = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(Stop::Cancelled)) => (TurnStatus::Cancelled, "cancelled".to_owned()),
        Ok(Err(Stop::Failed(why))) => (TurnStatus::Failed, format!("Error: {why}")),
        Err(_) => (
            TurnStatus::Failed,
            "Error: internal error in the turn; the daemon's log has it".to_owned(),
        ),
    };
    context.port.end(status, reply).await;
}

async fn steps(context: &Context, work: Option<Work>) -> Result<(), Stop> {
    let mut work = match work {
        Some(work) => work,
        None => context.port.next().await.map_err(Stop::Failed)?,
    };
    let mut tried = Tried::default();
    loop {
        work = match work {
            Work::Over => return Ok(()),
            _ if context.cancel.is_cancelled() => return Err(Stop::Cancelled),
            Work::Model(round) => round::run(context, *round, &mut tried).await?,
            Work::Call {
                call,
                name,
                arguments,
            } => run_call(context, call, name, arguments).await?,
        };
    }
}

async fn run_call(
    context: &Context,
    call: CallId,
    name: String,
    arguments: Value,
) -> Result<Work, Stop> {
    let port: Arc<dyn CallPort> = Arc::clone(&context.port) as Arc<dyn CallPort>;
    let run = Run {
        session: context.session.clone(),
        call: call.clone(),
        name,
        arguments,
        cwd: context.cwd.clone(),
        env: Arc::clone(&context.env),
        cancel: context.cancel.clone(),
        spill_dir: context.spill_dir.clone(),
        port,
        permissions: context.port.permissions().await,
    };
    let ran = Arc::clone(&context.toolkit).run(run).await;
    context
        .port
        .call_done(call, ran.result, ran.ms)
        .await
        .map_err(Stop::Failed)
}
