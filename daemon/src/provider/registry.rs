//! Names and the factories behind them: how `-p NAME` becomes a provider. Factories are called on every build.
//! Must never know what a provider says to its vendor.

use super::pace::{Pace, Paced};
use super::{BUILTIN, BoxFuture, Provider};
use protocol::provider::ProviderInfo;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Looks up a variable; unset and empty are the same.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Makes a new provider. The message of an `Err` is shown as it is.
pub type Factory =
    Arc<dyn Fn(Build) -> BoxFuture<'static, Result<Arc<dyn Provider>, String>> + Send + Sync>;

/// All providers of this daemon; a cheap handle.
#[derive(Clone)]
pub struct Providers {
    inner: Arc<Inner>,
}

struct Inner {
    config: ProviderConfig,
    http: super::http::Http,
    /// In the order of first registration. Held for look-ups only, never across a build.
    registered: Mutex<Vec<Registered>>,
    /// By name. Held for look-ups only; it grows with the names that were built, which are few.
    paces: Mutex<BTreeMap<String, Arc<Pace>>>,
}

struct Registered {
    info: ProviderInfo,
    factory: Factory,
}

/// What providers are told from outside.
#[derive(Clone)]
pub struct ProviderConfig {
    /// The daemon's environment, or a test's.
    pub env: Env,
    /// `[provider]` of `config.toml`.
    pub settings: Settings,
    /// Where `dwell-provider-NAME` is looked for, in order.
    pub search: Vec<PathBuf>,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            env: Arc::new(|_| None),
            settings: Settings::default(),
            search: Vec::new(),
        }
    }
}

/// The table `[provider]` of `config.toml`. Keys are not among it: they come from the environment only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Which one to use without `-p`.
    pub default: Option<String>,
    /// How long a stream may bring no data before it counts as stalled.
    pub idle_timeout_ms: Option<u64>,
    pub openai: super::openai::Settings,
}

/// What a caller chooses for one build.
#[derive(Clone, Default)]
pub struct BuildOptions {
    pub model: Option<String>,
    /// The session's environment; the daemon's stands behind it.
    pub env: Option<Arc<BTreeMap<String, String>>>,
}

/// What a factory gets.
#[derive(Clone)]
pub struct Build {
    pub model: Option<String>,
    pub env: Env,
    pub settings: Settings,
    pub(super) http: super::http::Http,
}

/// Why there is no provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error(
        "unknown provider: {name:?}. Available: {}. Install dwell-provider-{name} on PATH.",
        .available.join(", ")
    )]
    Unknown {
        name: String,
        available: Vec<String>,
    },
    #[error(
        "provider {name:?} is the executable {}, which this release of dwelld cannot speak to yet: choose another with -p",
        .path.display()
    )]
    Executable { name: String, path: PathBuf },
    #[error("{0}")]
    Failed(String),
}

/// A line of the table of those built in.
pub(super) struct Builtin {
    pub(super) name: &'static str,
    pub(super) build: fn(Build) -> Result<Arc<dyn Provider>, String>,
    pub(super) default_model: fn(&ProviderConfig) -> Option<String>,
}

/// Variables with keys of model vendors: no tool may see them.
const KEY_VARIABLES: &[&str] = &[
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "OPENROUTER_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
    "OLLAMA_API_KEY",
];

impl Providers {
    /// With those built in.
    pub fn new(config: ProviderConfig) -> Self {
        let registered = BUILTIN.iter().map(|builtin| built_in(builtin, &config));
        Self {
            inner: Arc::new(Inner {
                registered: Mutex::new(registered.collect()),
                http: super::http::Http::default(),
                paces: Mutex::default(),
                config,
            }),
        }
    }

    /// The names for `-p`, in the order of their registration.
    pub fn names(&self) -> Vec<String> {
        let registered = self.registered();
        registered.iter().map(|one| one.info.name.clone()).collect()
    }

    pub fn list(&self) -> Vec<ProviderInfo> {
        let registered = self.registered();
        registered.iter().map(|one| one.info.clone()).collect()
    }

    /// Whoever registers a name last has it; the name keeps its place.
    pub fn register(&self, info: ProviderInfo, factory: Factory) {
        let mut registered = self.registered();
        let new = Registered { info, factory };
        match registered
            .iter_mut()
            .find(|one| one.info.name == new.info.name)
        {
            Some(one) => *one = new,
            None => registered.push(new),
        }
    }

    /// A new provider, never a cached one.
    pub async fn build(
        &self,
        name: &str,
        options: BuildOptions,
    ) -> Result<Arc<dyn Provider>, BuildError> {
        let factory = self.factory(name)?;
        let build = Build {
            model: options.model.filter(|model| !model.is_empty()),
            env: layered(options.env, self.inner.config.env.clone()),
            settings: self.inner.config.settings.clone(),
            http: self.inner.http.clone(),
        };
        let provider = factory(build).await.map_err(BuildError::Failed)?;
        let pace = self.pace(name);
        Ok(Arc::new(Paced { provider, pace }))
    }

    /// Until when the provider's vendor wants no further request, in milliseconds since the Unix epoch.
    pub fn back_off_until(&self, name: &str) -> Option<u64> {
        self.pace(name).until()
    }

    /// Which one to use without `-p`. The stub, where nothing is set up, says so itself.
    pub fn default_name(&self) -> String {
        let config = &self.inner.config;
        let chosen = lookup(&config.env, "DWELL_PROVIDER");
        let chosen = chosen.or_else(|| config.settings.default.clone());
        let chosen = chosen.filter(|name| !name.is_empty());
        let set_up = || super::openai::is_set_up(config).then_some("openai");
        chosen.unwrap_or_else(|| set_up().unwrap_or("stub").to_owned())
    }

    /// Variables that hold keys, to be kept out of the environment of tools.
    pub fn key_variables() -> &'static [&'static str] {
        KEY_VARIABLES
    }

    fn factory(&self, name: &str) -> Result<Factory, BuildError> {
        if let Some(one) = self.registered().iter().find(|one| one.info.name == name) {
            return Ok(one.factory.clone());
        }
        match executable(&self.inner.config.search, name) {
            Some(path) => Err(BuildError::Executable {
                name: name.to_owned(),
                path,
            }),
            None => Err(BuildError::Unknown {
                name: name.to_owned(),
                available: self.names(),
            }),
        }
    }

    /// A vendor's limit met by one session is a limit for all that talk to it.
    fn pace(&self, name: &str) -> Arc<Pace> {
        let paces = self.inner.paces.lock();
        let mut paces = paces.unwrap_or_else(PoisonError::into_inner);
        paces.entry(name.to_owned()).or_default().clone()
    }

    fn registered(&self) -> MutexGuard<'_, Vec<Registered>> {
        self.inner
            .registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Build {
    /// A variable of the session, else of the daemon.
    pub fn variable(&self, name: &str) -> Option<String> {
        lookup(&self.env, name)
    }

    /// How long a stream may bring no data.
    pub fn idle_timeout(&self) -> Duration {
        let set = self.variable("DWELL_IDLE_TIMEOUT_MS");
        let set = set.and_then(|ms| ms.trim().parse().ok());
        let ms = set.or(self.settings.idle_timeout_ms).filter(|ms| *ms > 0);
        ms.map_or(super::http::IDLE_TIMEOUT, Duration::from_millis)
    }
}

/// A variable's value, unless it is empty.
pub(super) fn lookup(env: &Env, name: &str) -> Option<String> {
    env(name).filter(|value| !value.is_empty())
}

fn built_in(builtin: &Builtin, config: &ProviderConfig) -> Registered {
    let build = builtin.build;
    Registered {
        info: ProviderInfo {
            name: builtin.name.to_owned(),
            source: "builtin".to_owned(),
            default_model: (builtin.default_model)(config),
        },
        factory: Arc::new(move |options| Box::pin(std::future::ready(build(options)))),
    }
}

fn layered(session: Option<Arc<BTreeMap<String, String>>>, daemon: Env) -> Env {
    match session {
        None => daemon,
        Some(session) => Arc::new(move |name| {
            let own = session.get(name).filter(|value| !value.is_empty());
            own.cloned().or_else(|| daemon(name))
        }),
    }
}

/// `dwell-provider-NAME` in the first directory that has it.
fn executable(search: &[PathBuf], name: &str) -> Option<PathBuf> {
    if name.is_empty() || name.contains(['/', '\0']) {
        return None;
    }
    let file = format!("dwell-provider-{name}");
    let found = search.iter().map(|directory| directory.join(&file));
    found.into_iter().find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> ProviderConfig {
        let variables: BTreeMap<String, String> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        ProviderConfig {
            env: Arc::new(move |name| variables.get(name).cloned()),
            ..ProviderConfig::default()
        }
    }

    fn named(name: &str) -> ProviderInfo {
        ProviderInfo {
            name: name.to_owned(),
            source: "plugin x".to_owned(),
            default_model: None,
        }
    }

    fn failing(message: &'static str) -> Factory {
        Arc::new(move |_| Box::pin(std::future::ready(Err(message.to_owned()))))
    }

    async fn failure(providers: &Providers, name: &str) -> String {
        match providers.build(name, BuildOptions::default()).await {
            Ok(_) => panic!("{name} was built"),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn unknown_name_is_told_with_all_names_and_what_to_install() {
        let providers = Providers::new(with(&[]));
        providers.register(named("echo"), failing("no"));
        let names = providers.names().join(", ");
        assert!(names.starts_with("stub, ") && names.ends_with(", echo"));
        assert_eq!(
            failure(&providers, "nope").await,
            format!(
                "unknown provider: \"nope\". Available: {names}. Install dwell-provider-nope on PATH."
            )
        );
    }

    #[tokio::test]
    async fn last_to_register_a_name_has_it() {
        let providers = Providers::new(with(&[]));
        let before = providers.names();
        providers.register(named("stub"), failing("another stub"));
        assert_eq!(providers.names(), before);
        assert_eq!(failure(&providers, "stub").await, "another stub");
    }

    #[tokio::test]
    async fn factory_is_called_on_every_build() {
        let providers = Providers::new(with(&[]));
        let build = || providers.build("stub", BuildOptions::default());
        let (first, second) = (build().await.unwrap(), build().await.unwrap());
        assert!(!Arc::ptr_eq(&first, &second));
    }

    #[tokio::test]
    async fn executable_on_the_search_path_is_named_as_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dwell-provider-far");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        let mut config = with(&[]);
        config.search = vec!["/nonexistent".into(), directory.path().into()];
        let message = failure(&Providers::new(config), "far").await;
        assert!(message.contains(path.to_str().unwrap()), "{message}");
    }

    #[test]
    fn default_is_the_variable_then_config_then_a_key_then_stub() {
        let mut config = with(&[("DWELL_PROVIDER", "a"), ("OPENAI_API_KEY", "k")]);
        config.settings.default = Some("b".to_owned());
        assert_eq!(Providers::new(config).default_name(), "a");

        let mut config = with(&[("OPENAI_API_KEY", "k")]);
        config.settings.default = Some("b".to_owned());
        assert_eq!(Providers::new(config).default_name(), "b");

        let server = with(&[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]);
        assert_eq!(Providers::new(server).default_name(), "openai");

        let nothing = Providers::new(with(&[("OPENAI_API_KEY", "")]));
        assert_eq!(nothing.default_name(), "stub");
    }

    #[test]
    fn session_variable_hides_the_daemons() {
        let session = BTreeMap::from([("A".to_owned(), "session".to_owned())]);
        let config = with(&[("A", "daemon"), ("B", "daemon")]);
        let env = layered(Some(Arc::new(session)), config.env);
        assert_eq!(lookup(&env, "A").as_deref(), Some("session"));
        assert_eq!(lookup(&env, "B").as_deref(), Some("daemon"));
    }
}
