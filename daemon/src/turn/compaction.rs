//! Compaction: when a conversation gives way to a summary of itself, and how the model is asked for that.
//! Must never lose the conversation: without a summary it goes on as it is.

use super::{Context, Stop, retry};
use crate::provider::{Message, Provider, ProviderError, ProviderEvent, Request};
use protocol::event::Level;
use protocol::tool::Definition;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// What the model is asked for a summary with, here and by `/compact`.
/// Who a turn is of that a person asked for a summary; its prompt is no part of the conversation unless it gave one.
pub const BY: &str = "/compact";
pub const ASK: &str = "Sum up this conversation for yourself: what follows is all that you will remember of it. Say what is \
                       wanted, what was decided and why, which files matter and what was changed in them, what was tried and \
                       failed, and what is to be done next. Call no tool, and answer with the summary alone.";

/// What stands where the oldest messages had to go.
const CUT: &str = "[The beginning of the conversation is left out here.]";
/// Bytes of a token: few languages and no code take fewer.
const BYTES: u64 = 4;
/// Tokens of a picture.
const IMAGE: u64 = 1_500;
/// A part of the window: by so much a conversation grows before it is summed up again.
const GROWTH: u64 = 10;
/// A part of the window that is left for the summary.
const ANSWER: u64 = 8;
/// The shortest that a text in the conversation is cut to.
const SHORTEST: usize = 250;

/// How full the model's window is, as far as the log tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Tokens of the last round trip, both ways.
    pub used: Option<u64>,
    /// What was left after the last summary.
    pub floor: Option<u64>,
}

/// What one turn remembers of its tries.
#[derive(Debug, Default)]
pub struct Tried {
    failed: bool,
    /// The server refused the conversation once, and what was left after the summary may be refused again.
    refused: bool,
}

/// What a summary may be asked with.
pub(super) struct Asked<'a> {
    pub(super) provider: &'a Arc<dyn Provider>,
    pub(super) messages: &'a [Message],
    pub(super) tools: &'a [Definition],
}

impl<'a> Asked<'a> {
    pub(super) fn new(
        provider: &'a Arc<dyn Provider>,
        messages: &'a [Message],
        tools: &'a [Definition],
    ) -> Self {
        Self {
            provider,
            messages,
            tools,
        }
    }
}

/// Sums the conversation up when it fills so much of the window as the settings allow; gives what the model sees then.
pub(super) async fn when_full(
    context: &Context,
    fill: Fill,
    asked: &Asked<'_>,
    tried: &mut Tried,
) -> Result<Option<Vec<Message>>, Stop> {
    let Some(window) = asked.provider.window().filter(|window| *window > 0) else {
        return Ok(None);
    };
    let limit = window.saturating_mul(u64::from(context.compact_at_percent)) / 100;
    if tried.failed || limit == 0 || is_asking(asked.messages) {
        return Ok(None);
    }
    let filled = filled(fill, asked, limit);
    if !is_due(filled, fill.floor, limit, window) || !has_past(asked.messages) {
        return Ok(None);
    }
    let percent = filled.saturating_mul(100) / window;
    let why =
        format!("the conversation fills about {percent}% of the model's window: summing it up");
    let room = window - window / ANSWER;
    let room = room.saturating_sub(weight(asked.tools)).max(window / 4);
    sum_up(context, asked, &why, room, tried).await
}

/// Sums the conversation up because the model's server refused it as too long.
pub(super) async fn when_refused(
    context: &Context,
    asked: &Asked<'_>,
    error: &ProviderError,
    tried: &mut Tried,
) -> Result<Option<Vec<Message>>, Stop> {
    let off = context.compact_at_percent == 0;
    let again = std::mem::replace(&mut tried.refused, true);
    if off || again || tried.failed || is_asking(asked.messages) || !has_past(asked.messages) {
        return Ok(None);
    }
    let half = estimate(asked.messages) / 2;
    let room = asked
        .provider
        .window()
        .map_or(half, |window| half.min(window / 2));
    let why = format!(
        "the conversation is too long for the model: summing it up ({})",
        error.message
    );
    sum_up(context, asked, &why, room, tried).await
}

async fn sum_up(
    context: &Context,
    asked: &Asked<'_>,
    why: &str,
    room: u64,
    tried: &mut Tried,
) -> Result<Option<Vec<Message>>, Stop> {
    context.port.notice(Level::Info, why);
    let mut messages = fitted(before_prompt(asked.messages), room);
    messages.push(user(ASK));
    let request = Asked {
        messages: &messages,
        ..*asked
    };
    let summary = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return Err(Stop::Cancelled),
        summary = summary(context, &request) => summary,
    };
    match summary {
        Ok(summary) => {
            let recorded = context.port.compacted(summary.text, summary.usage).await;
            let system = asked.messages.iter().take(1).cloned();
            let rest = recorded.map_err(Stop::Failed)?;
            Ok(Some(system.chain(rest).collect()))
        }
        Err(why) => {
            tried.failed = true;
            let text = format!("the conversation could not be summed up and stays as it is: {why}");
            context.port.notice(Level::Warning, &text);
            Ok(None)
        }
    }
}

#[derive(Default)]
struct Summary {
    text: String,
    usage: Option<(u64, u64, u64)>,
}

async fn summary(context: &Context, asked: &Asked<'_>) -> Result<Summary, String> {
    for attempt in 1.. {
        let mut summary = Summary::default();
        let request = Request {
            messages: asked.messages,
            tools: asked.tools,
        };
        let most = usize::try_from(context.max_reply_bytes).unwrap_or(usize::MAX);
        let mut emit = |event| match event {
            ProviderEvent::Saying(text) if summary.text.len() + text.len() <= most => {
                summary.text.push_str(&text);
            }
            ProviderEvent::Usage {
                input,
                output,
                cached,
            } => {
                summary.usage = Some((input, output, cached));
            }
            _ => {}
        };
        match asked.provider.fetch(request, &mut emit).await {
            Ok(()) if summary.text.trim().is_empty() => {
                return Err("the model gave no summary".to_owned());
            }
            Ok(()) => return Ok(summary),
            Err(error) => match retry::decide(&error, attempt, retry::Emitted::Nothing, 0.5) {
                retry::Retry::After { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
                retry::Retry::GiveUp => return Err(error.message),
            },
        }
    }
    unreachable!("the policy gives up before the numbers end")
}

/// A summary that left as much as there is now would not help the next time either.
fn is_due(filled: u64, floor: Option<u64>, limit: u64, window: u64) -> bool {
    filled >= limit && filled.saturating_sub(floor.unwrap_or(0)) >= window / GROWTH
}

/// Tokens of the next round trip: what the last one had, and an estimate of what came since.
fn filled(fill: Fill, asked: &Asked<'_>, limit: u64) -> u64 {
    let said = |message: &Message| matches!(message, Message::Assistant { .. });
    if let Some(used) = fill.used.filter(|used| *used > 0) {
        let since = asked.messages.iter().rposition(said).map_or(0, |at| at + 1);
        return used + estimate(&asked.messages[since..]);
    }
    let words = estimate(asked.messages);
    // Definitions are no small part of a short conversation, but a short one is not near the limit.
    match words >= limit / 2 {
        true => words + weight(asked.tools),
        false => words,
    }
}

/// Whether anything but the system prompt and one prompt is there to be summed up.
fn has_past(messages: &[Message]) -> bool {
    messages.len() > 2
}

/// Whether this is the round trip that asks for a summary already.
fn is_asking(messages: &[Message]) -> bool {
    matches!(messages.last(), Some(Message::User { content, .. }) if content == ASK)
}

/// Without a prompt that nothing was done for yet: it stays as it is.
fn before_prompt(messages: &[Message]) -> &[Message] {
    match messages {
        [rest @ .., Message::User { .. }]
            if !matches!(rest.last(), Some(Message::User { .. }) | None) =>
        {
            rest
        }
        all => all,
    }
}

/// The same conversation in at most so many tokens: long texts lose their middle, then the oldest messages go. A call
/// and its result stay together.
fn fitted(messages: &[Message], room: u64) -> Vec<Message> {
    let mut most = 64 * 1024;
    let mut fitted = messages.to_vec();
    while estimate(&fitted) > room && most >= SHORTEST {
        fitted = messages
            .iter()
            .map(|message| shorter(message, most))
            .collect();
        most /= 2;
    }
    let mut dropped = false;
    while estimate(&fitted) > room {
        let begins = |message: &Message| !matches!(message, Message::Tool { .. });
        let Some(next) = fitted.iter().skip(2).position(begins) else {
            break;
        };
        fitted.drain(1..next + 2);
        dropped = true;
    }
    if dropped {
        fitted.insert(1, user(CUT));
    }
    fitted
}

fn shorter(message: &Message, most: usize) -> Message {
    let mut message = message.clone();
    match &mut message {
        Message::System { .. } => {}
        Message::User { content, images } => {
            *content = cut(content, most);
            images.clear();
        }
        Message::Tool { content, .. } => *content = cut(content, most),
        Message::Assistant {
            content,
            tool_calls,
            ..
        } => {
            *content = cut(content, most);
            for call in tool_calls {
                call.arguments = cut_values(&call.arguments, most);
            }
        }
    }
    message
}

fn cut_values(arguments: &Map<String, Value>, most: usize) -> Map<String, Value> {
    let cut = |(name, value): (&String, &Value)| match value {
        Value::String(text) => (name.clone(), Value::String(cut(text, most))),
        other => (name.clone(), other.clone()),
    };
    arguments.iter().map(cut).collect()
}

/// Head and tail of a text that is longer than so many bytes.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=most / 2).rev().find(boundary).unwrap_or(0);
    let from = text.len() - most / 2;
    let tail = (from..text.len()).find(boundary).unwrap_or(text.len());
    let left_out = tail - head;
    format!(
        "{}\n[... {left_out} bytes left out ...]\n{}",
        &text[..head],
        &text[tail..]
    )
}

/// Tokens of a conversation, from the size of its texts.
pub fn estimate(messages: &[Message]) -> u64 {
    messages.iter().map(size).sum()
}

fn size(message: &Message) -> u64 {
    let (bytes, images) = match message {
        Message::System { content } => (content.len(), 0),
        Message::User { content, images } => (content.len(), images.len()),
        Message::Tool { content, .. } => (content.len(), 0),
        Message::Assistant {
            content,
            tool_calls,
            ..
        } => {
            let calls = tool_calls
                .iter()
                .map(|call| call.name.len() + call.arguments.values().map(length).sum::<usize>());
            (content.len() + calls.sum::<usize>(), 0)
        }
    };
    bytes as u64 / BYTES + images as u64 * IMAGE
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    }
}

/// Tokens of the tools' definitions.
fn weight(tools: &[Definition]) -> u64 {
    let size = |tool: &Definition| {
        tool.function.description.len() + tool.function.parameters.to_string().len()
    };
    tools.iter().map(size).sum::<usize>() as u64 / BYTES
}

fn user(text: &str) -> Message {
    Message::User {
        content: text.to_owned(),
        images: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(value: Value) -> Vec<Message> {
        serde_json::from_value(value).unwrap()
    }

    fn long(of: usize) -> Vec<Message> {
        let mut all = vec![json!({"role": "system", "content": "s"})];
        for n in 0..of {
            let id = format!("c{n}");
            all.push(json!({"role": "user", "content": "x".repeat(4_000)}));
            all.push(json!({"role": "assistant", "content": "", "tool_calls": [
                {"id": id, "name": "write", "arguments": {"content": "y".repeat(4_000)}}]}));
            all.push(json!({"role": "tool", "tool_call_id": id, "content": "z".repeat(4_000)}));
        }
        messages(all.into())
    }

    #[test]
    fn summary_is_due_at_the_limit_and_again_only_when_it_has_grown_since() {
        let due = |filled, floor| is_due(filled, floor, 800, 1_000);
        assert!(!due(799, None));
        assert!(due(800, None));
        assert!(due(800, Some(300)));
        assert!(
            !due(820, Some(800)),
            "a summary that does not help is not tried again"
        );
        assert!(due(900, Some(800)));
    }

    #[test]
    fn what_came_since_the_last_round_trip_is_added_to_what_that_one_had() {
        let all = long(1);
        let provider = crate::turn::compaction::tests::Silent::shared();
        let asked = Asked {
            provider: &provider,
            messages: &all,
            tools: &[],
        };
        let fill = |used| Fill { used, floor: None };
        assert_eq!(filled(fill(Some(500)), &asked, 800), 500 + 1_000);
        assert_eq!(filled(fill(None), &asked, 800), estimate(&all));
        assert_eq!(filled(fill(Some(0)), &asked, 800), estimate(&all));
    }

    #[test]
    fn prompt_that_nothing_was_done_for_is_not_summed_up() {
        let mut all = long(1);
        assert_eq!(before_prompt(&all), all);
        all.push(user("new"));
        assert_eq!(before_prompt(&all), &all[..4]);
        all.push(user("and a word more"));
        assert_eq!(before_prompt(&all), all, "both words would have to stay");
    }

    #[test]
    fn conversation_that_is_too_long_for_its_summary_loses_middles_then_its_beginning() {
        let all = long(8);
        assert_eq!(fitted(&all, 1 << 20), all);
        let cut = fitted(&all, 8_000);
        assert_eq!(cut.len(), all.len());
        assert!(estimate(&cut) <= 8_000 && format!("{cut:?}").contains("bytes left out"));
        let tiny = fitted(&all, 400);
        assert!(tiny.len() < all.len() && estimate(&tiny) <= 400);
        assert_eq!(tiny[1], user(CUT));
        let mut calls = 0_i32;
        for message in &tiny {
            match message {
                Message::Assistant { tool_calls, .. } => calls += tool_calls.len() as i32,
                Message::Tool { .. } => calls -= 1,
                _ => {}
            }
            assert!(calls >= 0, "a result without its call");
        }
        assert_eq!(calls, 0, "a call without its result");
        assert_eq!(fitted(&all[..1], 0), all[..1], "nothing is left to cut");
    }

    #[test]
    fn cut_keeps_whole_characters() {
        for most in 0..12 {
            assert!(cut("grüße 😀 für alle", most).contains("bytes left out"));
        }
    }

    pub(super) struct Silent;

    impl Silent {
        fn shared() -> Arc<dyn Provider> {
            Arc::new(Self)
        }
    }

    impl Provider for Silent {
        fn fetch<'a>(
            &'a self,
            _: Request<'a>,
            _: &'a mut (dyn FnMut(ProviderEvent) + Send),
        ) -> crate::provider::BoxFuture<'a, Result<(), ProviderError>> {
            Box::pin(async { Ok(()) })
        }
    }
}
