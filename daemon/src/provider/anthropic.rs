//! Anthropic's Messages: thinking with signatures, prompt caching marks. Also as Google's cloud serves them.

mod answer;
mod request;

use super::settings::{Named, Thinking};
use super::stream::{Answer, Peer};
use super::vendor::{Call, Dialect, Post};
use protocol::provider::ModelInfo;

/// The version of the interface.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");
/// The most tokens of an answer from a model that is not known.
const MAX_TOKENS: u64 = 8_192;

/// What is known of models.
struct Model {
    /// The begin of its name.
    begin: &'static str,
    window: u64,
    /// The most tokens that are asked for in one answer.
    max_tokens: u64,
    mode: Mode,
}

/// How a model is asked to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It cannot.
    Never,
    /// With a budget of tokens.
    Budget,
    /// It decides itself.
    Adaptive,
}

/// The longer names first. A name with a date stands behind its own begin.
const MODELS: &[Model] = &[
    row("claude-3-7", 200_000, 32_000, Mode::Budget),
    row("claude-3-5", 200_000, 8_192, Mode::Never),
    row("claude-3", 200_000, 4_096, Mode::Never),
    row("claude-haiku-4", 200_000, 32_000, Mode::Budget),
    row("claude-opus-4-6", 1_000_000, 64_000, Mode::Adaptive),
    row("claude-opus-4-7", 1_000_000, 64_000, Mode::Adaptive),
    row("claude-opus-4-8", 1_000_000, 64_000, Mode::Adaptive),
    row("claude-opus-4", 200_000, 32_000, Mode::Budget),
    row("claude-sonnet-4-6", 1_000_000, 64_000, Mode::Adaptive),
    row("claude-sonnet-4", 200_000, 32_000, Mode::Budget),
    row("claude-", 1_000_000, 64_000, Mode::Adaptive),
];

const fn row(begin: &'static str, window: u64, max_tokens: u64, mode: Mode) -> Model {
    Model {
        begin,
        window,
        max_tokens,
        mode,
    }
}

fn known(model: &str) -> Option<&'static Model> {
    MODELS.iter().find(|row| model.starts_with(row.begin))
}

pub(super) fn window(model: &str) -> Option<u64> {
    known(model).map(|model| model.window)
}

/// The dialect.
pub(super) struct Messages {
    pub(super) thinking: Option<Thinking>,
    pub(super) max_tokens: Option<u64>,
    pub(super) host: Host,
}

/// Who serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Anthropic,
    /// The model's name is in the path there, and the version in the body.
    Vertex,
}

impl Messages {
    pub(super) fn new(named: &Named) -> Self {
        Self {
            thinking: named.thinking,
            max_tokens: named.max_tokens,
            host: Host::Anthropic,
        }
    }
}

impl Dialect for Messages {
    fn post(&self, call: &Call<'_>) -> Result<Post, String> {
        let path = match self.host {
            Host::Anthropic => vec!["messages".to_owned()],
            Host::Vertex => vec![
                "models".to_owned(),
                format!("{}:streamRawPredict", call.model),
            ],
        };
        let body = request::body(call, self)?;
        Ok(Post { path, body })
    }

    fn answer<'a>(&'a self, peer: &'a Peer) -> Box<dyn Answer + 'a> {
        Box::new(answer::Message::new(peer))
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        match self.host {
            Host::Anthropic => &[VERSION],
            Host::Vertex => &[],
        }
    }

    fn models_path(&self) -> &'static [&'static str] {
        match self.host {
            Host::Anthropic => &["models"],
            // Up from the project's region to the root of another version, which has the list.
            Host::Vertex => &[
                "..",
                "..",
                "..",
                "..",
                "..",
                "..",
                "..",
                "v1beta1",
                "publishers",
                "anthropic",
                "models",
            ],
        }
    }

    fn read_models(&self, body: &[u8]) -> Option<Vec<ModelInfo>> {
        let mut models = super::openai::models(body)?;
        for model in &mut models {
            // Google's names are paths.
            if let Some((_, name)) = model.name.rsplit_once('/') {
                model.name = name.to_owned();
            }
            model.window = model.window.or_else(|| window(&model.name));
        }
        Some(models)
    }
}
