//! Chat completions as OpenAI defined them and many servers speak them.

mod answer;
mod chunk;
mod request;

use super::fit::IdRule;
use super::stream::{Answer, Peer};
use super::vendor::{Call, Dialect, Post};
use protocol::provider::ModelInfo;
use serde::Deserialize;
use serde_json::Value;

/// Context windows by the begin of a model's name, the longer names first.
const WINDOWS: &[(&str, u64)] = &[
    ("gpt-5-chat", 128_000),
    ("gpt-5.4", 1_050_000),
    ("gpt-5.5", 1_050_000),
    ("gpt-5.6", 1_050_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-oss", 131_072),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
    ("gemini-", 1_048_576),
    ("deepseek-v4", 1_000_000),
    ("mistral-medium", 262_144),
];

pub(super) struct Chat {
    pub(super) quirks: Quirks,
}

/// Where a server differs from the interface's first vendor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quirks {
    /// What it takes as the id of a call.
    pub(super) ids: IdRule,
    /// Whether it may be asked for usage; those that may not tell it unasked.
    pub(super) stream_options: bool,
    /// It takes no user message right behind a tool's result.
    pub(super) assistant_after_tools: bool,
    /// It refuses an object without properties as what a tool takes.
    pub(super) bare_tools: bool,
    pub(super) reasoning: Reasoning,
    /// The path of its list of models; `..` goes one up from the base URL.
    pub(super) models: &'static [&'static str],
}

impl Quirks {
    pub(super) const NONE: Self = Self {
        ids: IdRule::Any(40),
        stream_options: true,
        assistant_after_tools: false,
        bare_tools: false,
        reasoning: Reasoning::Hidden,
        models: &["models"],
    };
}

/// What of a model's reasoning has to go back to it within the same turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reasoning {
    /// Nothing.
    Hidden,
    /// Its text, with every message that makes calls, be it empty.
    Content,
    /// The vendor's blocks as they came.
    Details,
    /// What Gemini adds to a call.
    ThoughtSignatures,
}

impl Dialect for Chat {
    fn post(&self, call: &Call<'_>) -> Result<Post, String> {
        Ok(Post {
            path: vec!["chat".to_owned(), "completions".to_owned()],
            body: request::body(call, &self.quirks)?,
        })
    }

    fn answer<'a>(&'a self, peer: &'a Peer) -> Box<dyn Answer + 'a> {
        Box::new(answer::Completion::new(peer, self.quirks.reasoning))
    }

    fn models_path(&self) -> &'static [&'static str] {
        self.quirks.models
    }

    fn read_models(&self, body: &[u8]) -> Option<Vec<ModelInfo>> {
        models(body)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Models {
    Under(Box<Under>),
    Bare(Vec<Model>),
}

/// Servers of other interfaces beside this one write the list twice.
#[derive(Deserialize)]
struct Under {
    #[serde(default)]
    data: Option<Vec<Model>>,
    #[serde(default)]
    result: Option<Vec<Model>>,
    #[serde(default)]
    models: Option<Vec<Model>>,
    #[serde(default, rename = "publisherModels")]
    publisher_models: Option<Vec<Model>>,
}

#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    /// Where servers tell it, under one of many names.
    #[serde(
        default,
        alias = "max_model_len",
        alias = "context_window",
        alias = "max_context_length"
    )]
    context_length: Option<u64>,
    #[serde(default)]
    limits: Value,
}

/// The list of models in any of the shapes that compatible servers write.
pub(super) fn models(body: &[u8]) -> Option<Vec<ModelInfo>> {
    let models = match serde_json::from_slice(body).ok()? {
        Models::Bare(models) => models,
        Models::Under(under) => {
            let Under {
                data,
                result,
                models,
                publisher_models,
            } = *under;
            data.or(result).or(models).or(publisher_models)?
        }
    };
    Some(models.into_iter().map(ModelInfo::from).collect())
}

impl From<Model> for ModelInfo {
    fn from(model: Model) -> Self {
        // One vendor's ids are numbers of its own, and its names what a request needs.
        let by_name = model.id.is_empty() || model.name.starts_with("@cf/");
        let id = if by_name { model.name } else { model.id };
        let told = model.context_length;
        let told = told.or_else(|| model.limits["max_input_tokens"].as_u64());
        let name = id.strip_prefix("models/").unwrap_or(&id).to_owned();
        Self {
            window: told.or_else(|| window(&name)),
            name,
            size: None,
        }
    }
}

/// A model's window by its name, also behind the name of its maker.
pub(super) fn window(model: &str) -> Option<u64> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let known = WINDOWS.iter().find(|(begin, _)| name.starts_with(begin));
    known.map(|(_, tokens)| *tokens)
}

#[cfg(test)]
mod tests;
