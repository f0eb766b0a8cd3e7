//! The vendors that are known by name: where each is, which variable holds its key, its model where none is named.
//! The only place where any of that is written. Must never hold a key.

use super::anthropic::Messages;
use super::failure::Hints;
use super::fit::IdRule;
use super::key;
use super::ollama::Ollama;
use super::openai::{Chat, Quirks, Reasoning};
use super::registry::{Build, Env, ProviderConfig, lookup};
use super::responses::Responses;
use super::settings::{Api, Named, Settings};
use super::stream::Peer;
use super::vendor::{Auth, Dialect, Vendor, base_url};
use super::{Provider, ollama};
use reqwest::Url;
use secrecy::SecretString;
use std::borrow::Cow;
use std::sync::Arc;

/// A vendor, or a server that people run themselves. Its variables are NAME_API_KEY, NAME_BASE_URL and NAME_MODEL, beside
/// those that it names itself.
#[derive(Clone, Debug)]
pub(super) struct Preset {
    pub(super) name: Cow<'static, str>,
    api: Api,
    /// `{VARIABLE}` in it stands for that variable.
    base: &'static str,
    /// Where its key may be, besides NAME_API_KEY. A variable of another use does not choose a provider by itself.
    keys: &'static [&'static str],
    key: Key,
    /// Empty where the server's own first model is meant.
    model: &'static str,
    quirks: Quirks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Needed,
    Optional,
}

const PLAIN: Preset = Preset {
    name: Cow::Borrowed(""),
    api: Api::Chat,
    base: "",
    keys: &[],
    key: Key::Needed,
    model: "",
    quirks: Quirks::NONE,
};

/// In the order in which one is chosen by its key. Another one: a line here.
pub(super) const PRESETS: &[Preset] = &[
    Preset {
        name: Cow::Borrowed("anthropic"),
        api: Api::Messages,
        base: "https://api.anthropic.com/v1",
        model: "claude-opus-5-5",
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("openai"),
        base: "https://api.openai.com/v1",
        model: "gpt-5.6",
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("gemini"),
        base: "https://generativelanguage.googleapis.com/v1beta/openai",
        keys: &["GOOGLE_API_KEY"],
        model: "gemini-3.8-flash",
        quirks: Quirks {
            bare_tools: true,
            reasoning: Reasoning::ThoughtSignatures,
            ..Quirks::NONE
        },
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("groq"),
        base: "https://api.groq.com/openai/v1",
        model: "openai/gpt-oss-120b",
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("mistral"),
        base: "https://api.mistral.ai/v1",
        model: "mistral-medium-latest",
        quirks: Quirks {
            ids: IdRule::Exact(9),
            stream_options: false,
            assistant_after_tools: true,
            ..Quirks::NONE
        },
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("openrouter"),
        base: "https://openrouter.ai/api/v1",
        model: "openrouter/auto",
        quirks: Quirks {
            reasoning: Reasoning::Details,
            ..Quirks::NONE
        },
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("cerebras"),
        base: "https://api.cerebras.ai/v1",
        model: "gpt-oss-120b",
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("github"),
        base: "https://models.github.ai/inference",
        keys: &["GITHUB_MODELS_TOKEN", "GITHUB_TOKEN"],
        model: "openai/gpt-5",
        quirks: Quirks {
            models: &["..", "catalog", "models"],
            ..Quirks::NONE
        },
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("cloudflare"),
        base: "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1",
        keys: &["CLOUDFLARE_API_TOKEN"],
        model: "@cf/openai/gpt-oss-120b",
        quirks: Quirks {
            models: &["..", "models", "search"],
            ..Quirks::NONE
        },
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("deepseek"),
        base: "https://api.deepseek.com",
        model: "deepseek-v4-pro",
        quirks: Quirks {
            reasoning: Reasoning::Content,
            ..Quirks::NONE
        },
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("ollama"),
        api: Api::Ollama,
        base: ollama::BASE,
        key: Key::Optional,
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("lmstudio"),
        base: "http://127.0.0.1:1234/v1",
        key: Key::Optional,
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("vllm"),
        base: "http://127.0.0.1:8000/v1",
        key: Key::Optional,
        ..PLAIN
    },
    Preset {
        name: Cow::Borrowed("llama-server"),
        base: "http://127.0.0.1:8080/v1",
        key: Key::Optional,
        ..PLAIN
    },
];

/// A key that stands in a variable of some other use: it is left to tools, and chooses no provider.
const OTHER_USES: &[&str] = &["GITHUB_TOKEN"];

impl Preset {
    /// One of people's own: a table of `config.toml` under a name that is not known here.
    pub(super) fn own(name: &str, named: &Named) -> Self {
        Self {
            name: name.to_owned().into(),
            api: named.api.unwrap_or(Api::Chat),
            key: Key::Optional,
            ..PLAIN
        }
    }

    /// `NAME_` of its variables.
    fn variable(&self, end: &str) -> String {
        let upper = self.name.to_ascii_uppercase();
        let plain = upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        format!("{plain}_{end}")
    }

    /// The variables that may hold its key, the first first.
    pub(super) fn key_variables(&self, named: &Named) -> Vec<String> {
        let own = named.api_key_variable.clone();
        let usual = self.variable("API_KEY");
        let more = self.keys.iter().map(|key| (*key).to_owned());
        own.into_iter().chain([usual]).chain(more).collect()
    }

    /// Whether there is anything to talk to, by what people set.
    pub(super) fn is_set_up(&self, env: &Env, settings: &Settings) -> bool {
        let named = settings.of(&self.name);
        let keys = self.key_variables(&named);
        let mut names = keys.iter().map(String::as_str);
        let is_set = |name: &str| lookup(env, name).is_some();
        names.any(|name| !OTHER_USES.contains(&name) && is_set(name))
            || is_set(&self.variable("BASE_URL"))
            || (self.api == Api::Ollama && is_set(ollama::HOST))
            || named.api_key.is_some()
            || named.api_key_command.is_some()
            || named.base_url.is_some()
    }

    /// The model that a build without one gets, where that is known before.
    pub(super) fn default_model(&self, config: &ProviderConfig) -> Option<String> {
        let set = lookup(&config.env, &self.variable("MODEL"));
        let set = set.or_else(|| config.settings.of(&self.name).model);
        let set = set.or_else(|| Some(self.model.to_owned()));
        set.filter(|model| !model.is_empty())
    }

    pub(super) async fn build(&self, build: &Build) -> Result<Arc<dyn Provider>, String> {
        let named = build.settings.of(&self.name);
        let keys = self.key_variables(&named);
        let key = key::find(&self.name, &keys, &named, build).await?;
        let hints = self.hints(&keys);
        let base = self.base(&named, build)?;
        let Some((base, is_own)) = base else {
            return Err(format!("{} has no server: set {}", self.name, hints.base));
        };
        let api = self.api(&named, build)?;
        let base = base_url(&self.variable("BASE_URL"), &base)?;
        let auth = self.auth(api, key, build);
        if matches!(auth, Auth::None) && self.key == Key::Needed && !is_own {
            return Err(format!(
                "{} has no key: set {}, or {} for a server that needs none, where dwelld starts, or in config.toml: it \
                     takes no keys from a shell's environment, and `dwell daemon stop` and a new start has it look anew",
                self.name,
                keys[0],
                self.variable("BASE_URL")
            ));
        }
        let mut vendor = Vendor {
            name: self.name.to_string(),
            http: build.http.clone(),
            peer: Peer::new(&base, build.idle_timeout()),
            base: versioned(api, base),
            auth,
            hints,
            model: String::new(),
            window: None,
            set_window: named.window,
            dialect: self.dialect(api, &named),
        };
        let model = build.model.clone();
        let model = model.or_else(|| build.variable(&self.variable("MODEL")));
        let model = model.or_else(|| named.model.clone());
        let model = model.unwrap_or_else(|| self.model.to_owned());
        vendor.model = match model.is_empty() {
            true => self.first_model(&vendor).await?,
            false => model,
        };
        vendor.window = named.window.or_else(|| window(api, &vendor.model));
        Ok(Arc::new(vendor))
    }

    fn api(&self, named: &Named, build: &Build) -> Result<Api, String> {
        let variable = self.variable("WIRE_API");
        let Some(set) = build.variable(&variable) else {
            return Ok(named.api.unwrap_or(self.api));
        };
        // What somebody put there by mistake may be anything.
        Api::of(&set)
            .ok_or_else(|| format!("{variable} can be chat, responses, messages or ollama"))
    }

    /// The base URL, and whether people set it.
    fn base(&self, named: &Named, build: &Build) -> Result<Option<(String, bool)>, String> {
        let set = build.variable(&self.variable("BASE_URL"));
        let set = match self.api {
            Api::Ollama => set.or_else(|| build.variable(ollama::HOST).map(|h| ollama::url(&h))),
            Api::Chat | Api::Responses | Api::Messages => set,
        };
        if let Some(base) = set.or_else(|| named.base_url.clone()) {
            return Ok(Some((base, true)));
        }
        if self.base.is_empty() {
            return Ok(None);
        }
        let (Some((before, rest)), name) = (self.base.split_once('{'), &self.name) else {
            return Ok(Some((self.base.to_owned(), false)));
        };
        let (variable, after) = rest.split_once('}').unwrap_or((rest, ""));
        let value = build.variable(variable);
        let value = value.ok_or_else(|| format!("{name} has no account: set {variable}"))?;
        Ok(Some((format!("{before}{value}{after}"), false)))
    }

    fn hints(&self, keys: &[String]) -> Hints {
        let base = match self.api {
            Api::Ollama => ollama::HOST.to_owned(),
            Api::Messages => self.variable("BASE_URL"),
            Api::Chat | Api::Responses => {
                format!("{} (most end with /v1)", self.variable("BASE_URL"))
            }
        };
        Hints {
            key: keys[0].clone(),
            base,
        }
    }

    fn dialect(&self, api: Api, named: &Named) -> Box<dyn Dialect> {
        match api {
            Api::Chat => Box::new(Chat {
                quirks: self.quirks,
            }),
            Api::Responses => Box::new(Responses {
                thinking: named.thinking,
            }),
            Api::Messages => Box::new(Messages::new(named)),
            Api::Ollama => Box::new(Ollama {
                thinking: named.thinking,
            }),
        }
    }

    fn auth(&self, api: Api, key: Option<SecretString>, build: &Build) -> Auth {
        // Anthropic's token is for Anthropic's own, whoever else speaks its interface.
        let token = match self.name == "anthropic" {
            true => build.variable("ANTHROPIC_AUTH_TOKEN"),
            false => None,
        };
        match (api, key, token) {
            (_, None, Some(token)) => Auth::Bearer(token.into()),
            (_, None, None) => Auth::None,
            (Api::Messages, Some(key), _) => Auth::Header("x-api-key", key),
            (Api::Chat | Api::Responses | Api::Ollama, Some(key), _) => Auth::Bearer(key),
        }
    }

    /// What a server of people's own has loaded.
    async fn first_model(&self, vendor: &Vendor) -> Result<String, String> {
        let models = vendor.models().await.map_err(|error| error.message)?;
        let first = models.into_iter().next();
        first.map(|model| model.name).ok_or_else(|| {
            let (name, variable) = (&self.name, self.variable("MODEL"));
            format!("{name} has no model loaded: load one, or set {variable}")
        })
    }
}

/// The default model of a vendor in the table.
pub(super) fn model_of(name: &str) -> &'static str {
    let preset = PRESETS.iter().find(|preset| preset.name == name);
    preset.map_or("", |preset| preset.model)
}

/// Whether a variable holds a key of a vendor, which no tool may see.
pub(super) fn is_key_variable(name: &str) -> bool {
    /// Of vendors and services that are not in the table by name.
    const MORE: &[&str] = &[
        "ANTHROPIC_AUTH_TOKEN",
        "AZURE_OPENAI_API_KEY",
        "XAI_API_KEY",
    ];
    MORE.contains(&name)
        || PRESETS.iter().any(|preset| {
            let keys = preset.key_variables(&Named::default());
            keys.iter().any(|key| key == name)
        }) && !OTHER_USES.contains(&name)
}

/// Anthropic's own variable holds a base without the version, other people's often one with it.
fn versioned(api: Api, mut base: Url) -> Url {
    let has = base.path().trim_end_matches('/').ends_with("/v1");
    if api == Api::Messages
        && !has
        && let Ok(mut segments) = base.path_segments_mut()
    {
        segments.pop_if_empty().push("v1");
    }
    base
}

fn window(api: Api, model: &str) -> Option<u64> {
    match api {
        Api::Chat | Api::Responses => super::openai::window(model),
        Api::Messages => super::anthropic::window(model),
        Api::Ollama => None,
    }
}

#[cfg(test)]
mod tests;
