//! Names and the factories behind them: how `-p NAME` becomes a provider. Factories are called on every build.
//! Must never know what a provider says to its vendor.

use super::pace::{Pace, Paced};
use super::plugin::{self, Children, Executable};
use super::preset::{self, PRESETS, Preset};
use super::settings::Settings;
use super::{BUILTIN, BoxFuture, Provider, key, local, ollama};
use crate::stdio_rpc::Host;
use protocol::provider::ProviderInfo;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Looks up a variable; unset and empty are the same.
pub type Env = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Makes a new provider. The message of an `Err` is shown as it is.
pub type Factory = Arc<dyn Fn(Build) -> Building + Send + Sync>;

/// A provider that is being made.
pub(super) type Building = BoxFuture<'static, Result<Arc<dyn Provider>, String>>;

/// All providers of this daemon; a cheap handle.
#[derive(Clone)]
pub struct Providers {
    inner: Arc<Inner>,
}

struct Inner {
    config: ProviderConfig,
    settings: Arc<Settings>,
    http: super::http::Http,
    children: Children,
    /// In the order of first registration. Held for look-ups only, never across a build.
    registered: Mutex<Vec<Registered>>,
    /// By name. Held for look-ups only; it grows with the names that were built, which are few.
    paces: Mutex<BTreeMap<String, Arc<Pace>>>,
}

struct Registered {
    info: ProviderInfo,
    maker: Maker,
}

#[derive(Clone)]
enum Maker {
    Factory(Factory),
    Executable(Executable),
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
    /// The executable with the local models, if `DWELL_LOCAL` names no other.
    pub local: Option<PathBuf>,
    /// Whether a model lies on this machine that the local providers would take.
    pub has_local_model: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The environment of executables that serve providers: the daemon's whole own, since a provider may need a key.
    pub child_env: Arc<BTreeMap<String, String>>,
}

impl Default for ProviderConfig {
    fn default() -> Self {
        Self {
            env: Arc::new(|_| None),
            settings: Settings::default(),
            search: Vec::new(),
            local: None,
            has_local_model: Arc::new(|| false),
            child_env: Arc::default(),
        }
    }
}

/// What a caller chooses for one build.
#[derive(Clone, Default)]
pub struct BuildOptions {
    pub model: Option<String>,
    /// Has the provider, before whoever registered the name.
    pub host: Option<Arc<dyn Host>>,
    /// The session's environment; the daemon's stands behind it.
    pub env: Option<Arc<BTreeMap<String, String>>>,
}

/// What a factory gets.
#[derive(Clone)]
pub struct Build {
    pub model: Option<String>,
    pub env: Env,
    /// The session's own variables, without the daemon's.
    pub session: Option<Arc<BTreeMap<String, String>>>,
    pub settings: Arc<Settings>,
    pub(super) child_env: Arc<BTreeMap<String, String>>,
    pub(super) http: super::http::Http,
}

/// Why there is no provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error(
        "unknown provider: {name:?}. Available: {}. Install dwell-provider-{} on PATH.",
        .available.join(", "), .name.escape_debug()
    )]
    Unknown {
        name: String,
        available: Vec<String>,
    },
    #[error("{0}")]
    Failed(String),
}

/// A line of the table of those built in.
pub(super) struct Builtin {
    pub(super) name: &'static str,
    pub(super) make: Make,
    /// Whether a table of `config.toml` is read for it.
    pub(super) has_settings: bool,
    pub(super) default_model: fn(&ProviderConfig) -> Option<String>,
}

/// Where a built-in provider runs.
#[derive(Clone, Copy)]
pub(super) enum Make {
    /// In the daemon.
    Here(fn(Build) -> Result<Arc<dyn Provider>, String>),
    /// In the daemon, after a look at the world.
    Later(fn(Build) -> Building),
    /// In the executable with the local models.
    Local,
}

impl Providers {
    /// With those built in.
    pub fn new(config: ProviderConfig) -> Self {
        let is_known = |name: &str| {
            PRESETS.iter().any(|preset| preset.name == name)
                || BUILTIN.iter().any(|builtin| builtin.name == name)
        };
        let own = config.settings.named.iter();
        let own = own.filter(|(name, _)| !is_known(name));
        let own = own.map(|(name, named)| vendor(Preset::own(name, named), "config", &config));
        let vendors = PRESETS.iter().cloned();
        let vendors = vendors.map(|preset| vendor(preset, "builtin", &config));
        let builtin = BUILTIN.iter().map(|builtin| built_in(builtin, &config));
        let registered = builtin.chain(vendors).chain(own);
        let mask = key::known(&config.settings, &config.child_env);
        Self {
            inner: Arc::new(Inner {
                registered: Mutex::new(registered.collect()),
                http: super::http::Http::default(),
                children: Children::new(config.settings.child_stop_after(), mask),
                paces: Mutex::default(),
                settings: Arc::new(config.settings.clone()),
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
        let maker = Maker::Factory(factory);
        self.put(Registered { info, maker });
    }

    /// A new provider, never a cached one.
    pub async fn build(
        &self,
        name: &str,
        options: BuildOptions,
    ) -> Result<Arc<dyn Provider>, BuildError> {
        let build = Build {
            model: options.model.filter(|model| !model.is_empty()),
            env: layered(options.env.clone(), self.inner.config.env.clone()),
            session: options.env,
            settings: self.inner.settings.clone(),
            child_env: self.inner.config.child_env.clone(),
            http: self.inner.http.clone(),
        };
        if let Some(host) = options.host {
            let built = plugin::build_at(host, name, build).await;
            return Ok(self.paced(name, built.map_err(BuildError::Failed)?));
        }
        let provider = match self.maker(name) {
            Some(Maker::Factory(factory)) => factory(build).await.map_err(BuildError::Failed)?,
            Some(Maker::Executable(executable)) => self.serve(executable, name, build).await?,
            None => return Err(self.unknown(name)),
        };
        Ok(self.paced(name, provider))
    }

    fn paced(&self, name: &str, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(Paced {
            name: name.to_owned(),
            provider,
            pace: self.pace(name),
        })
    }

    /// Until when the provider's vendor wants no further request, in milliseconds since the Unix epoch.
    pub fn back_off_until(&self, name: &str) -> Option<u64> {
        self.pace(name).until()
    }

    /// Which one to use without `-p`. The stub, where nothing is set up, says so itself.
    /// `session` is the environment of the session that asks.
    pub async fn default_name(&self, session: Option<&BTreeMap<String, String>>) -> String {
        let config = &self.inner.config;
        let session = session.map(|session| Arc::new(session.clone()));
        let env = layered(session, config.env.clone());
        let chosen = lookup(&config.env, "DWELL_PROVIDER");
        let chosen = chosen.or_else(|| config.settings.default.clone());
        if let Some(name) = chosen.filter(|name| !name.is_empty()) {
            return name;
        }
        if let Some(preset) = PRESETS
            .iter()
            .find(|preset| preset.is_set_up(&env, &self.inner.settings))
        {
            return preset.name.to_string();
        }
        let name = if ollama::runs(&self.inner.http).await {
            "ollama"
        } else if (config.has_local_model)() {
            local::DEFAULT
        } else {
            "stub"
        };
        name.to_owned()
    }

    /// Whether a variable holds a key, to be kept out of the environment of tools.
    pub fn is_key_variable(&self, name: &str) -> bool {
        let named = self.inner.settings.named.values();
        let mut own = named.filter_map(|named| named.api_key_variable.as_deref());
        own.any(|own| own == name) || preset::is_key_variable(name)
    }

    /// Whoever registered the name, else its executable.
    fn maker(&self, name: &str) -> Option<Maker> {
        if let Some(one) = self.registered().iter().find(|one| one.info.name == name) {
            return Some(one.maker.clone());
        }
        let path = executable(&self.inner.config.search, name)?;
        Some(Maker::Executable(Executable {
            name: format!("dwell-provider-{name}"),
            path,
            env: self.inner.config.child_env.clone(),
            hint: "it was there before; install it again",
        }))
    }

    /// Builds a provider of an executable. All names that it has are registered from then on.
    async fn serve(
        &self,
        executable: Executable,
        name: &str,
        build: Build,
    ) -> Result<Arc<dyn Provider>, BuildError> {
        let built = plugin::build(&self.inner.children, executable.clone(), name, build).await;
        let (provider, names) = built.map_err(BuildError::Failed)?;
        let is_new = !self.registered().iter().any(|one| one.info.name == name);
        for name in names.into_iter().filter(|_| is_new) {
            let source = match self.replaced(&name) {
                None => "executable".to_owned(),
                Some(source) => {
                    let label = &executable.name;
                    tracing::warn!("{label} registered {name}, in the place of the {source} one");
                    format!("{label}, replaces {source}")
                }
            };
            self.put(Registered {
                info: ProviderInfo {
                    name,
                    source,
                    default_model: None,
                },
                maker: Maker::Executable(executable.clone()),
            });
        }
        Ok(provider)
    }

    fn unknown(&self, name: &str) -> BuildError {
        BuildError::Unknown {
            name: name.to_owned(),
            available: self.names(),
        }
    }

    /// Whose a name is that an executable takes.
    fn replaced(&self, name: &str) -> Option<String> {
        let registered = self.registered();
        let one = registered.iter().find(|one| one.info.name == name)?;
        Some(one.info.source.clone()).filter(|source| source == "builtin" || source == "config")
    }

    fn put(&self, new: Registered) {
        let mut registered = self.registered();
        match registered
            .iter_mut()
            .find(|one| one.info.name == new.info.name)
        {
            Some(one) => *one = new,
            None => registered.push(new),
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

/// Those of `config.toml` that nothing reads.
pub fn without_settings(settings: &Settings) -> Vec<&str> {
    let names = settings.named.keys().map(String::as_str);
    let idle = |name: &&str| {
        BUILTIN
            .iter()
            .any(|one| one.name == *name && !one.has_settings)
    };
    names.filter(idle).collect()
}

fn built_in(builtin: &Builtin, config: &ProviderConfig) -> Registered {
    let maker = match builtin.make {
        Make::Here(build) => Maker::Factory(Arc::new(move |options| {
            Box::pin(std::future::ready(build(options)))
        })),
        Make::Later(build) => Maker::Factory(Arc::new(build)),
        Make::Local => Maker::Executable(local::executable(config)),
    };
    Registered {
        info: ProviderInfo {
            name: builtin.name.to_owned(),
            source: "builtin".to_owned(),
            default_model: (builtin.default_model)(config),
        },
        maker,
    }
}

fn vendor(preset: Preset, source: &str, config: &ProviderConfig) -> Registered {
    let info = ProviderInfo {
        name: preset.name.to_string(),
        source: source.to_owned(),
        default_model: preset.default_model(config),
    };
    let preset = Arc::new(preset);
    let build = move |build: Build| -> BoxFuture<'static, _> {
        let preset = preset.clone();
        Box::pin(async move { preset.build(&build).await })
    };
    Registered {
        info,
        maker: Maker::Factory(Arc::new(build)),
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

pub(super) fn is_executable(path: &Path) -> bool {
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
    async fn default_is_the_variable_then_config_then_the_first_that_is_set_up() {
        async fn chosen(config: ProviderConfig) -> String {
            Providers::new(config).default_name(None).await
        }
        let mut config = with(&[("DWELL_PROVIDER", "a"), ("OPENAI_API_KEY", "k")]);
        config.settings.default = Some("b".to_owned());
        assert_eq!(chosen(config).await, "a");

        let mut config = with(&[("OPENAI_API_KEY", "k")]);
        config.settings.default = Some("b".to_owned());
        assert_eq!(chosen(config).await, "b");

        let server = with(&[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]);
        assert_eq!(chosen(server).await, "openai");
        let two = with(&[("GEMINI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]);
        assert_eq!(chosen(two).await, "anthropic");
        let other = with(&[("MISTRAL_API_KEY", "k"), ("GITHUB_TOKEN", "k")]);
        assert_eq!(chosen(other).await, "mistral");
        assert_eq!(chosen(with(&[("OLLAMA_HOST", "box")])).await, "ollama");
        let shell = BTreeMap::from([("VLLM_BASE_URL".to_owned(), "http://127.0.0.1:1".to_owned())]);
        let nothing = Providers::new(with(&[]));
        assert_eq!(nothing.default_name(Some(&shell)).await, "vllm");
    }

    #[test]
    fn variables_with_keys_are_known_and_one_of_another_use_is_left_to_tools() {
        let mut config = with(&[]);
        let named: super::super::settings::Named =
            toml::from_str("base_url = 'http://127.0.0.1:1'\napi_key_variable = 'MINE'").unwrap();
        config.settings.named.insert("mine".to_owned(), named);
        let providers = Providers::new(config);
        for name in [
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "MINE",
            "LLAMA_SERVER_API_KEY",
        ] {
            assert!(providers.is_key_variable(name), "{name}");
        }
        assert!(!providers.is_key_variable("GITHUB_TOKEN"));
        assert!(!providers.is_key_variable("PATH"));
        assert!(providers.names().contains(&"mine".to_owned()));
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
