//! The environment of what tools run: the session's, without anything that belongs to the daemon or a model's vendor.
//! The one place that decides it.

use crate::toolbox::tool::Call;
use std::collections::BTreeMap;

/// For a session whose client gave none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whose keys are for asking models; a tool has no use for them that its user meant.
const VENDORS: &[&str] = &[
    "ANTHROPIC",
    "AZURE_OPENAI",
    "CEREBRAS",
    "COHERE",
    "DEEPSEEK",
    "FIREWORKS",
    "GEMINI",
    "GOOGLE",
    "GROQ",
    "MISTRAL",
    "OLLAMA",
    "OPENAI",
    "OPENROUTER",
    "PERPLEXITY",
    "TOGETHER",
    "XAI",
];

/// What a child of this call sees.
pub(in crate::toolbox) fn of(call: &Call) -> BTreeMap<String, String> {
    from(&call.env)
}

/// What a child of a session with this environment sees.
pub(in crate::toolbox) fn from(session: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env: BTreeMap<_, _> = session
        .iter()
        .filter(|(name, _)| !is_secret(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    env.entry("PATH".to_owned())
        .or_insert_with(|| DEFAULT_PATH.to_owned());
    env.remove("OLDPWD");
    env.remove("PWD");
    env
}

/// The daemon's own variables and the keys of model vendors.
fn is_secret(name: &str) -> bool {
    let is_key = |rest: &str| ["_API_KEY", "_AUTH_TOKEN", "_API_TOKEN"].contains(&rest);
    name.starts_with("DWELL_")
        || VENDORS
            .iter()
            .any(|vendor| name.strip_prefix(vendor).is_some_and(is_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_vendors_and_the_daemon_are_secret_and_nothing_else() {
        let secret = [
            "OPENAI_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "AZURE_OPENAI_API_KEY",
            "DWELL_PROVIDER",
        ];
        let open = [
            "PATH",
            "GITHUB_TOKEN",
            "OPENAI_BASE_URL",
            "STRIPE_API_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ];
        assert!(secret.iter().all(|name| is_secret(name)));
        assert!(!open.iter().any(|name| is_secret(name)));
    }
}
