//! Where keys, addresses and models come from, and whom a key reaches.

use super::super::registry::{BuildOptions, Providers};
use super::super::testing::{plain, serve};
use super::*;
use std::collections::BTreeMap;

fn config(variables: &[(&str, &str)], toml: &str) -> ProviderConfig {
    let variables: BTreeMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let settings: Settings = toml::from_str(toml).unwrap();
    ProviderConfig {
        env: Arc::new(move |name| variables.get(name).cloned()),
        settings,
        child_env: Arc::new([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into()),
        ..ProviderConfig::default()
    }
}

async fn built(config: ProviderConfig, name: &str) -> Result<Arc<dyn Provider>, String> {
    let built = Providers::new(config)
        .build(name, BuildOptions::default())
        .await;
    built.map_err(|error| error.to_string())
}

/// The head of the request for the list of models, which every provider sends with its key.
async fn head_sent(variables: &[(&str, &str)], toml: &str, name: &str) -> String {
    let list = plain("200 OK", "", "{\"data\": [{\"id\": \"m\"}]}");
    let server = serve(vec![list]).await;
    let toml = toml.replace("SERVER", &server.url);
    let own: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| {
            (
                *name,
                if *value == "SERVER" {
                    server.url.as_str()
                } else {
                    value
                },
            )
        })
        .collect();
    let provider = built(config(&own, &toml), name).await.unwrap();
    provider.models().await.unwrap();
    server.seen().pop().unwrap()
}

#[tokio::test]
async fn key_is_the_variables_then_the_files_then_the_commands() {
    let all = "[mistral]\nbase_url = 'SERVER'\nmodel = 'm'\napi_key = 'of-file'\napi_key_command = 'echo of-command'";
    let head = head_sent(&[("MISTRAL_API_KEY", " of-env \n")], all, "mistral").await;
    assert!(head.contains("authorization: Bearer of-env\r\n"), "{head}");
    let head = head_sent(&[], all, "mistral").await;
    assert!(head.contains("authorization: Bearer of-file\r\n"), "{head}");
    let command = "[mistral]\nbase_url = 'SERVER'\nmodel = 'm'\napi_key_command = 'echo oh >&2; echo of-command; echo more'";
    let head = head_sent(&[], command, "mistral").await;
    assert!(
        head.contains("authorization: Bearer of-command\r\n"),
        "{head}"
    );
    let own = "[house]\nbase_url = 'SERVER'\nmodel = 'm'\napi_key_variable = 'MY_KEY'";
    let head = head_sent(&[("MY_KEY", "mine")], own, "house").await;
    assert!(head.contains("authorization: Bearer mine\r\n"), "{head}");
}

#[tokio::test]
async fn vendors_key_reaches_nobody_else_who_speaks_its_interface() {
    let house = "[house]\nbase_url = 'SERVER'\nmodel = 'm'\napi = 'messages'";
    let keys = [
        ("ANTHROPIC_API_KEY", "k"),
        ("ANTHROPIC_AUTH_TOKEN", "t"),
        ("OPENAI_API_KEY", "o"),
    ];
    let head = head_sent(&keys, house, "house").await;
    assert!(
        !head.contains("authorization") && !head.contains("x-api-key"),
        "{head}"
    );
    let local = [keys[0], keys[1], keys[2], ("LMSTUDIO_BASE_URL", "SERVER")];
    let head = head_sent(&local, "", "lmstudio").await;
    assert!(!head.contains("authorization"), "{head}");
    let anthropic = [
        ("ANTHROPIC_AUTH_TOKEN", "t"),
        ("ANTHROPIC_BASE_URL", "SERVER"),
    ];
    let head = head_sent(&anthropic, "", "anthropic").await;
    assert!(
        head.starts_with("GET /v1/models ") && head.contains("Bearer t\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn command_that_gives_no_key_is_told_without_what_it_said() {
    for (command, end) in [
        ("echo half-a-key; exit 3", "failed with exit status 3"),
        ("echo half-a-key >&2", "printed no key"),
    ] {
        let toml = format!("[groq]\napi_key_command = '{command}'");
        let fate = built(config(&[], &toml), "groq").await.err().unwrap();
        assert_eq!(fate, format!("the api_key_command of groq {end}"));
    }
}

#[tokio::test]
async fn what_is_missing_or_wrong_is_told_by_its_name() {
    for (variables, name, expected) in [
        (
            &[][..],
            "groq",
            "groq has no key: set GROQ_API_KEY, or GROQ_BASE_URL for a server that needs none, where dwelld starts, or in config.toml: it takes no keys from a shell's environment, and `dwell daemon stop` and a new start has it look anew",
        ),
        (
            &[("CLOUDFLARE_API_KEY", "k")][..],
            "cloudflare",
            "cloudflare has no account: set CLOUDFLARE_ACCOUNT_ID",
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("OPENAI_WIRE_API", "sk-slip")][..],
            "openai",
            "OPENAI_WIRE_API can be chat, responses, messages or ollama",
        ),
        (
            &[("OPENAI_BASE_URL", "ftp://user:secret@x/")][..],
            "openai",
            "OPENAI_BASE_URL must begin with http:// or https://, not ftp:",
        ),
    ] {
        let fate = built(config(variables, ""), name).await.err().unwrap();
        assert_eq!(fate, expected);
    }
}

#[test]
fn every_vendor_has_an_address_and_those_with_a_key_a_model() {
    for preset in PRESETS {
        let base = preset.base.replace("{CLOUDFLARE_ACCOUNT_ID}", "a");
        let url = base_url("base", &base).unwrap();
        let loopback = url.host_str() == Some("127.0.0.1");
        assert_eq!(url.scheme() == "https", !loopback, "{}", preset.name);
        assert_eq!(preset.key == Key::Optional, loopback, "{}", preset.name);
        assert_eq!(preset.model.is_empty(), loopback, "{}", preset.name);
    }
}
