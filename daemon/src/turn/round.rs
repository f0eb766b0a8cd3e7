//! One round trip: prompt, provider stream, retries. Must never run a tool.

use super::compaction::{self, Asked, Tried};
use super::{Context, Round, Stop, Work, prompt, retry};
use crate::provider::{Provider, ProviderError, ProviderEvent, Request};
use protocol::id::MessageId;
use protocol::tool::Definition;
use serde_json::Value;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How a round trip ended well.
#[derive(Debug, Default)]
pub struct RoundEnd {
    pub text: String,
    pub calls: u32,
    pub usage: Option<(u64, u64, u64)>,
    pub window: Option<u64>,
    pub signed: Vec<Value>,
    /// Whose the signed blocks are: the session may talk to another by the time they are recorded.
    pub provider: String,
}

/// Asks the model until it answers or trying again makes no sense.
pub async fn run(context: &Context, round: Round, tried: &mut Tried) -> Result<Work, Stop> {
    let provider = match round.provider {
        Some(provider) => provider,
        None => tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(Stop::Cancelled),
            built = context.port.build() => built.map_err(Stop::Failed)?,
        },
    };
    let mut messages = prompt::with_system(round.prompt.await, round.messages);
    let tools = context.toolkit.definitions();
    let asked = Asked::new(&provider, &messages, &tools);
    if let Some(fewer) = compaction::when_full(context, round.fill, &asked, tried).await? {
        messages = fewer;
    }
    let mut message = round.message;
    for attempt in 1.. {
        let full = Notify::new();
        let mut stream = Stream {
            context,
            message: &message,
            left: context.max_reply_bytes.saturating_add(1),
            full: &full,
            end: RoundEnd::default(),
        };
        let result = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(Stop::Cancelled),
            () = full.notified() => return Err(too_long(context)),
            result = fetch(&provider, &messages, &tools, &mut stream) => result,
        };
        // It may have ended in the same breath.
        if stream.left == 0 {
            return Err(too_long(context));
        }
        let mut end = stream.end;
        match result {
            Ok(()) => {
                end.window = provider.window();
                end.provider = provider.name().to_owned();
                return context.port.round_done(end).await.map_err(Stop::Failed);
            }
            Err(error) => {
                if emitted(&end) == retry::Emitted::Nothing && error.is_too_long() {
                    let asked = Asked::new(&provider, &messages, &tools);
                    let fewer = compaction::when_refused(context, &asked, &error, tried).await?;
                    if let Some(fewer) = fewer {
                        messages = fewer;
                        continue;
                    }
                }
                message = again(context, &error, attempt, &end).await?;
            }
        }
    }
    unreachable!("the policy gives up before the numbers end")
}

/// What was said till then stays.
fn too_long(context: &Context) -> Stop {
    let limit = context.max_reply_bytes;
    Stop::Failed(format!(
        "the model's reply is longer than {limit} bytes and was broken off there (turn.max_reply_bytes in config.toml sets the limit)"
    ))
}

async fn fetch(
    provider: &Arc<dyn Provider>,
    messages: &[crate::provider::Message],
    tools: &[Definition],
    stream: &mut Stream<'_>,
) -> Result<(), ProviderError> {
    let request = Request { messages, tools };
    provider
        .fetch(request, &mut |event| stream.take(event))
        .await
}

/// Waits as the policy says and begins anew, or gives up.
async fn again(
    context: &Context,
    error: &ProviderError,
    attempt: u32,
    end: &RoundEnd,
) -> Result<MessageId, Stop> {
    let after_ms = match retry::decide(error, attempt, emitted(end), jitter()) {
        retry::Retry::After { ms } => ms,
        retry::Retry::GiveUp => return Err(Stop::Failed(error.message.clone())),
    };
    let message = context
        .port
        .again(attempt + 1, after_ms, error.message.clone())
        .await
        .map_err(Stop::Failed)?;
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(Stop::Cancelled),
        () = tokio::time::sleep(Duration::from_millis(after_ms)) => Ok(message),
    }
}

/// A number between 0 and 1.
fn jitter() -> f64 {
    f64::from(RandomState::new().hash_one(0_u8) as u32) / f64::from(u32::MAX)
}

fn emitted(end: &RoundEnd) -> retry::Emitted {
    match (end.calls, end.text.is_empty()) {
        (0, true) => retry::Emitted::Nothing,
        (0, false) => retry::Emitted::Text,
        (_, _) => retry::Emitted::Call,
    }
}

/// Passes what is streamed on and keeps what the end needs.
struct Stream<'a> {
    context: &'a Context,
    message: &'a MessageId,
    /// Bytes that may still come, and one more; none when there were too many.
    left: u64,
    /// Told when there were.
    full: &'a Notify,
    end: RoundEnd,
}

impl Stream<'_> {
    fn take(&mut self, event: ProviderEvent) {
        if !self.fits(&event) {
            return;
        }
        match event {
            ProviderEvent::Saying(ref text) | ProviderEvent::Thinking(ref text)
                if text.is_empty() =>
            {
                return;
            }
            ProviderEvent::Usage {
                input,
                output,
                cached,
            } => {
                self.end.usage = Some((input, output, cached));
                return;
            }
            ProviderEvent::Signed(block) => {
                self.end.signed.push(block);
                return;
            }
            ProviderEvent::Saying(ref text) => self.end.text.push_str(text),
            ProviderEvent::Doing { .. } => self.end.calls += 1,
            ProviderEvent::Thinking(_) => {}
        }
        self.context.port.emit(self.message, event);
    }

    /// Whether there is room for it. Behind the first for which there is none there is room for nothing.
    fn fits(&mut self, event: &ProviderEvent) -> bool {
        let size = size(event);
        if size < self.left {
            self.left -= size;
            return true;
        }
        self.left = 0;
        self.full.notify_one();
        false
    }
}

/// Bytes of what a model said.
fn size(event: &ProviderEvent) -> u64 {
    let size = match event {
        ProviderEvent::Saying(text) | ProviderEvent::Thinking(text) => text.len(),
        ProviderEvent::Doing {
            name, arguments, ..
        } => name.len() + arguments.to_string().len(),
        ProviderEvent::Signed(block) => block.to_string().len(),
        ProviderEvent::Usage { .. } => 0,
    };
    size as u64
}
