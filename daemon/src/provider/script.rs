//! A player for tests and demos: the prompt's lines say what the "model" does (`daemon/docs/script-provider.md`).
//! What it does is a function of the conversation and the script alone; it must never keep a place of its own.

mod demo;
mod parse;

use super::registry::{Build, Builtin, Make};
use super::{BoxFuture, ErrorClass, Message, Provider, ProviderError, ProviderEvent, Request};
use parse::{Parsed, Step};
use std::sync::Arc;
use std::time::Duration;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "script",
    make: Make::Here(|build: Build| {
        Ok(Arc::new(Script {
            file: build.variable("DWELL_SCRIPT"),
        }))
    }),
    has_settings: false,
    default_model: |_| None,
};

struct Script {
    /// Played for every prompt, in place of the prompt.
    file: Option<String>,
}

impl Provider for Script {
    fn fetch<'a>(
        &'a self,
        request: Request<'a>,
        emit: &'a mut (dyn FnMut(ProviderEvent) + Send),
    ) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let file = match &self.file {
                Some(path) => Some(read(path).await?),
                None => None,
            };
            let steps = steps(&request, file.as_deref()).map_err(fatal)?;
            play(steps, emit).await
        })
    }
}

async fn play(
    steps: impl Iterator<Item = Step>,
    emit: &mut (dyn FnMut(ProviderEvent) + Send),
) -> Result<(), ProviderError> {
    for step in steps {
        match step {
            Step::Emit { event, times } => {
                for _ in 0..times {
                    emit(event.clone());
                    // As a stream would: whoever reads the events gets a turn between them.
                    tokio::task::yield_now().await;
                }
            }
            Step::Call(event) | Step::Also(event) => emit(event),
            Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Fail(message) => return Err(fatal(message)),
            Step::Drop(message) => {
                let class = ErrorClass::Dropped;
                return Err(ProviderError { class, message });
            }
        }
    }
    Ok(())
}

/// Steps as they are played.
type Steps<'a> = Box<dyn Iterator<Item = Step> + Send + 'a>;

/// What this round trip plays.
fn steps<'a>(request: &Request<'a>, file: Option<&'a str>) -> Result<Steps<'a>, String> {
    let (prompt, results) = prompt(request.messages, file);
    match parse::parse(file.unwrap_or(prompt)) {
        Parsed::Script(script) => Ok(Box::new(script.round_trip(results.len()))),
        Parsed::Wrong(message) => Err(message),
        Parsed::Prose => Ok(Box::new(
            demo::steps(prompt, results, request.tools).into_iter(),
        )),
    }
}

/// The user message that is played, and the results of tools since.
fn prompt<'a>(messages: &'a [Message], file: Option<&str>) -> (&'a str, Vec<&'a str>) {
    let mut results = Vec::new();
    for (index, message) in messages.iter().enumerate().rev() {
        match message {
            Message::Tool { content, .. } => results.push(content.as_str()),
            Message::User { content, .. } if !is_steer(messages, index, file) => {
                results.reverse();
                return (own(content), results);
            }
            Message::User { .. } | Message::Assistant { .. } | Message::System { .. } => {}
        }
    }
    ("", Vec::new())
}

/// A user's word that follows a tool's result and is no script itself: it changes nothing of what is played.
fn is_steer(messages: &[Message], index: usize, file: Option<&str>) -> bool {
    let Message::User { content, .. } = &messages[index] else {
        return false;
    };
    let mut others = messages[..index].iter().rev();
    let before = others.find(|message| !matches!(message, Message::User { .. }));
    matches!(before, Some(Message::Tool { .. }))
        && (file.is_some() || !matches!(parse::parse(own(content)), Parsed::Script(_)))
}

/// A prompt without what goes along with it: what its person's own commands gave.
fn own(prompt: &str) -> &str {
    let mut rest = prompt;
    while let Some(behind) = behind_output(rest) {
        rest = behind;
    }
    rest
}

fn behind_output(prompt: &str) -> Option<&str> {
    let told = prompt.strip_prefix("I ran `")?;
    let fenced = &told[told.find(":\n```")? + 2..];
    let fence = fenced.len() - fenced.trim_start_matches('`').len();
    let end = format!("\n{}\n\n", &fenced[..fence]);
    fenced.split_once(&end).map(|(_, behind)| behind)
}

async fn read(path: &str) -> Result<String, ProviderError> {
    let owned = path.to_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(owned)).await;
    let text = read.map_err(|error| error.to_string());
    let text = text.and_then(|text| text.map_err(|error| error.to_string()));
    text.map_err(|error| {
        fatal(format!(
            "cannot read the script {path} (DWELL_SCRIPT): {error}"
        ))
    })
}

fn fatal(message: String) -> ProviderError {
    let class = ErrorClass::Fatal;
    ProviderError { class, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(value: serde_json::Value) -> Vec<Message> {
        serde_json::from_value(value).unwrap()
    }

    async fn fetch(script: &Script, messages: &[Message]) -> Result<Vec<ProviderEvent>, String> {
        let mut events = Vec::new();
        let request = Request {
            messages,
            tools: &[],
        };
        let ended = script.fetch(request, &mut |event| events.push(event)).await;
        ended.map(|()| events).map_err(|error| error.message)
    }

    async fn played(value: serde_json::Value) -> Result<Vec<ProviderEvent>, String> {
        fetch(&Script { file: None }, &messages(value)).await
    }

    fn saying(text: &str) -> ProviderEvent {
        ProviderEvent::Saying(text.to_owned())
    }

    fn doing(name: &str, arguments: serde_json::Value) -> ProviderEvent {
        ProviderEvent::Doing {
            id: None,
            name: name.to_owned(),
            arguments,
        }
    }

    const SCRIPT: &str = "think hm\nsay one \ndo a {\"n\":1}\nalso b\nsay two\ndo c\nsay three\n";

    fn with_results(results: usize) -> serde_json::Value {
        let mut messages = vec![
            json!({"role": "system", "content": "s"}),
            json!({"role": "user", "content": SCRIPT}),
        ];
        for n in 0..results {
            messages.push(json!({"role": "assistant", "content": ""}));
            messages.push(json!({"role": "tool", "tool_call_id": n.to_string(), "content": "{}"}));
        }
        messages.into()
    }

    #[tokio::test]
    async fn each_round_trip_ends_with_its_calls_and_the_next_goes_on_behind_them() {
        let first = [
            ProviderEvent::Thinking("hm".to_owned()),
            saying("one "),
            doing("a", json!({"n": 1})),
            doing("b", json!({})),
        ];
        assert_eq!(played(with_results(0)).await.unwrap(), first);
        let second = [saying("two"), doing("c", json!({}))];
        assert_eq!(played(with_results(2)).await.unwrap(), second);
        assert_eq!(played(with_results(3)).await.unwrap(), [saying("three")]);
    }

    #[tokio::test]
    async fn steered_word_changes_nothing_and_a_steered_script_takes_over() {
        let steered = |text: &str| {
            let mut value = with_results(2);
            let list = value.as_array_mut().unwrap();
            list.push(json!({"role": "user", "content": "do it faster"}));
            list.push(json!({"role": "user", "content": text}));
            value
        };
        let second = [saying("two"), doing("c", json!({}))];
        assert_eq!(played(steered("and mind the gap")).await.unwrap(), second);
        assert_eq!(played(steered("say new")).await.unwrap(), [saying("new")]);
    }

    #[tokio::test]
    async fn what_a_persons_own_commands_gave_is_passed_over() {
        let along = "I ran `ls`:\n```\nsay no\n```\n\nI ran `make` (exit status 2):\n````\n```\n````\n\nsay yes";
        let prompt = json!([{"role": "user", "content": along}]);
        assert_eq!(played(prompt).await.unwrap(), [saying("yes")]);
    }

    #[tokio::test]
    async fn later_prompt_is_played_from_its_own_start() {
        let mut value = with_results(3);
        let list = value.as_array_mut().unwrap();
        list.push(json!({"role": "assistant", "content": "three"}));
        list.push(json!({"role": "user", "content": "say again"}));
        assert_eq!(played(value).await.unwrap(), [saying("again")]);
    }

    #[tokio::test]
    async fn failure_ends_the_round_trip_with_its_text() {
        let value = json!([{"role": "user", "content": "say a\nfail no more\nsay b"}]);
        assert_eq!(played(value).await.unwrap_err(), "no more");
        let value = json!([{"role": "user", "content": "say a\nsya b"}]);
        let message = played(value).await.unwrap_err();
        assert!(message.starts_with("script line 2: "), "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn wait_takes_its_time() {
        let before = tokio::time::Instant::now();
        let value = json!([{"role": "user", "content": "wait 1500"}]);
        played(value).await.unwrap();
        assert_eq!(before.elapsed(), Duration::from_millis(1500));
    }

    #[tokio::test]
    async fn file_is_played_whatever_the_prompt_says() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), SCRIPT).unwrap();
        let path = file.path().to_str().map(str::to_owned);
        let script = Script { file: path };
        let mut value = with_results(2);
        value[1]["content"] = "say ignored".into();
        value
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": "say ignored too"}));
        let events = fetch(&script, &messages(value)).await.unwrap();
        assert_eq!(events[0], saying("two"));

        let missing = Script {
            file: Some("/nonexistent/script".to_owned()),
        };
        let message = fetch(&missing, &[]).await.unwrap_err();
        assert!(message.contains("/nonexistent/script"), "{message}");
    }
}
