//! Chat completions as OpenAI defined them and many servers speak them.

use super::registry::{ProviderConfig, lookup};
use serde::Deserialize;

/// The table `[provider.openai]` of `config.toml`; the environment's values win.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Everything before `/chat/completions`.
    pub base_url: Option<String>,
    pub model: Option<String>,
    /// The model's context window in tokens, for models that are not known here.
    pub window: Option<u64>,
}

/// Whether there is anything to talk to: a key, or a server that may do without.
pub(super) fn is_set_up(config: &ProviderConfig) -> bool {
    ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
        .iter()
        .any(|name| lookup(&config.env, name).is_some())
        || config.settings.openai.base_url.is_some()
}
