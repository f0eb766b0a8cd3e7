//! What `config.toml` says of providers: the table `[provider]` and one table `[provider.NAME]` for each.
//! Must never show a key.

use secrecy::SecretString;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The table `[provider]`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Settings {
    /// Which one to use without `-p`.
    #[serde(default)]
    pub default: Option<String>,
    /// How long a stream may bring no data before it counts as stalled.
    #[serde(default)]
    pub idle_timeout_ms: Option<u64>,
    /// How long an executable that serves providers is kept when nobody uses it; ten minutes where it is not said.
    #[serde(default)]
    pub child_stop_after_ms: Option<u64>,
    /// How long it may say nothing in a round trip; ten minutes where it is not said, since a local model may read long.
    #[serde(default)]
    pub child_silence_ms: Option<u64>,
    /// Those by name: the built in ones, and people's own.
    #[serde(flatten)]
    pub named: BTreeMap<String, Named>,
}

/// The table `[provider.NAME]`; the environment's values win.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Named {
    /// The interface that the server speaks.
    pub api: Option<Api>,
    /// Everything before the interface's own path.
    pub base_url: Option<String>,
    pub model: Option<String>,
    /// The model's context window in tokens, for models that are not known here.
    pub window: Option<u64>,
    /// The most tokens of one answer, where the interface wants to know.
    pub max_tokens: Option<u64>,
    pub thinking: Option<Thinking>,
    pub api_key: Option<SecretString>,
    /// A shell command that prints the key.
    pub api_key_command: Option<String>,
    /// The variable with the key, for a provider of one's own.
    pub api_key_variable: Option<String>,
    /// For `vertex`.
    pub project: Option<String>,
    /// For `vertex`.
    pub region: Option<String>,
}

/// An interface that servers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Chat completions as OpenAI defined them.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Ollama's own.
    Ollama,
}

/// Whether the model is asked to think, where the interface has a word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Thinking {
    /// `true` is what the model does best, `false` none.
    Asked(bool),
    /// At most so many tokens of it.
    Budget(u64),
}

impl Settings {
    /// Which table of a file is wrong: the parser knows no place for tables of any name.
    pub fn fault(file: &str) -> Option<String> {
        let mut all: toml::Table = toml::from_str(file).ok()?;
        let toml::Value::Table(providers) = all.remove("provider")? else {
            return None;
        };
        let tables = providers.into_iter().filter(|(_, table)| table.is_table());
        tables.into_iter().find_map(|(name, table)| {
            let read: Result<Named, _> = table.try_into();
            let error = read.err()?;
            Some(format!("[provider.{name}]: {}", error.message().trim()))
        })
    }

    pub(super) fn of(&self, name: &str) -> Named {
        self.named.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn child_stop_after(&self) -> Duration {
        Duration::from_millis(self.child_stop_after_ms.unwrap_or(600_000))
    }

    pub(super) fn child_silence(&self) -> Duration {
        Duration::from_millis(self.child_silence_ms.unwrap_or(600_000))
    }

    /// Whether the file is one that others may not read.
    pub fn holds_a_key(&self) -> bool {
        self.named.values().any(|named| named.api_key.is_some())
    }
}

impl Api {
    pub(super) fn of(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "chat" => Some(Self::Chat),
            "responses" => Some(Self::Responses),
            "messages" => Some(Self::Messages),
            "ollama" => Some(Self::Ollama),
            _ => None,
        }
    }
}
