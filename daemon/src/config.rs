//! `config.toml` and the directories: what people set, read once at start. Must never create or change a file.

use crate::model::Settings as ModelSettings;
use crate::presentation::code_mode::Settings as CodeSettings;
use crate::presentation::usual::Settings as PresentationSettings;
use crate::provider::settings::Settings as ProviderSettings;
use crate::session::conversation::History;
use crate::toolbox::source::script::load::Settings as ScriptSettings;
use crate::workspace::hooks::ShellHook;
use crate::workspace::plugins::Settings as PluginSettings;
use crate::workspace::servers::Settings as McpSettings;
use protocol::expression::Expression;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The longest reply where nothing is said of it: several times what any model writes at once.
pub const REPLY: u64 = 8 << 20;
/// The share of a model's window at which a conversation is summed up, in percent: what is left takes a long reply.
pub const COMPACT_AT: u8 = 80;

/// The whole file. A name that is not among these is an error, since it is most likely a slip.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub provider: ProviderSettings,
    pub model: ModelSettings,
    pub turn: Turn,
    pub history: HistorySettings,
    pub session: Session,
    pub script_tools: ScriptSettings,
    pub plugin: PluginSettings,
    pub mcp: McpSettings,
    /// Toolboxes by name.
    pub toolbox: BTreeMap<String, Expression>,
    pub presentation: PresentationSettings,
    pub code: CodeSettings,
    pub hooks: Vec<ShellHook>,
    pub limits: Limits,
    pub shutdown: Shutdown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// Round trips in a turn before it is stopped.
    pub max_rounds: u32,
    /// Bytes of text, thinking and arguments in one reply of a model; what comes beyond is not waited for.
    pub max_reply_bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistorySettings {
    /// Which calls the model still sees: those of the `session`, or only those of the running `turn`.
    pub tools: History,
    /// How full a model's window gets before the conversation is summed up, in percent; 0 is never.
    #[serde(deserialize_with = "percent")]
    pub compact_at_percent: u8,
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self {
            tools: History::default(),
            compact_at_percent: COMPACT_AT,
        }
    }
}

fn percent<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let percent = u8::deserialize(from)?;
    match percent {
        0..=100 => Ok(percent),
        _ => Err(serde::de::Error::custom(format!(
            "{percent} is no percentage: 1 to 100, or 0 for never"
        ))),
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// How long a session with nobody attached stays in memory, in milliseconds.
    pub unload_after_ms: u64,
    /// How tools are shown in a session that does not say it.
    pub toolbox: Option<Expression>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The largest frame in bytes.
    pub frame: usize,
    /// Calls in flight per connection.
    pub calls: u32,
    /// Connections.
    pub connections: u32,
    /// How long a client may leave output unread before it is dropped, in milliseconds.
    pub unread_ms: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shutdown {
    /// How long running turns may go on after the word to stop, in milliseconds.
    pub grace_ms: u64,
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            max_rounds: 100,
            max_reply_bytes: REPLY,
        }
    }
}

impl Default for Session {
    fn default() -> Self {
        Self {
            unload_after_ms: 60_000,
            toolbox: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let transport = crate::transport::Limits::default();
        Self {
            frame: transport.frame,
            calls: transport.calls,
            connections: transport.connections,
            unread_ms: u64::try_from(transport.unread.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { grace_ms: 5_000 }
    }
}

impl Config {
    /// The file's settings, or the defaults where there is no file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => anyhow::bail!("cannot read {}: {error}", path.display()),
        };
        let config: Self = toml::from_str(&text).map_err(|error| {
            // The parser shows the line, which may hold a key.
            let shown = match (ProviderSettings::fault(&text), text.contains("api_key")) {
                (Some(fault), _) => fault,
                (None, true) => error.message().to_owned(),
                (None, false) => error.to_string(),
            };
            anyhow::anyhow!("cannot use {}: {shown}", path.display())
        })?;
        if config.toolbox.keys().any(|name| name.trim().is_empty()) {
            let path = path.display();
            anyhow::bail!(
                "cannot use {path}: a toolbox has an empty name, by which nobody can choose it"
            );
        }
        if config.provider.holds_a_key() {
            private(path)?;
        }
        Ok(config)
    }
}

/// A file with a key is for its owner alone.
fn private(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        let path = path.display();
        anyhow::bail!("{path} holds an api_key and others may read it: run chmod 600 {path}");
    }
    Ok(())
}

/// Where everything is.
#[derive(Clone, Debug, PartialEq)]
pub struct Dirs {
    pub home: PathBuf,
    pub config: PathBuf,
    pub data: PathBuf,
    pub state: PathBuf,
    pub runtime: Option<PathBuf>,
}

impl Dirs {
    /// The platform's directories; `DWELL_CONFIG_DIR`, `DWELL_DATA_DIR`, `DWELL_STATE_DIR` and `DWELL_RUNTIME_DIR` go
    /// before them.
    pub fn find(env: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<Self> {
        let own = directories::ProjectDirs::from("", "", "dwell");
        let base = directories::BaseDirs::new();
        let (Some(own), Some(base)) = (own, base) else {
            anyhow::bail!(
                "no home directory: neither HOME nor the user database names one; set HOME"
            );
        };
        let named = |name: &str| env(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let state = named("DWELL_STATE_DIR");
        let state = state.unwrap_or_else(|| {
            own.state_dir()
                .unwrap_or_else(|| own.data_local_dir())
                .to_path_buf()
        });
        let dirs = Self {
            home: base.home_dir().to_path_buf(),
            config: named("DWELL_CONFIG_DIR").unwrap_or_else(|| own.config_dir().to_path_buf()),
            data: named("DWELL_DATA_DIR").unwrap_or_else(|| own.data_local_dir().to_path_buf()),
            runtime: named("DWELL_RUNTIME_DIR")
                .or_else(|| own.runtime_dir().map(Path::to_path_buf)),
            state,
        };
        dirs.check_absolute()?;
        Ok(dirs)
    }

    /// What is relative means another place for the daemon than for the clients that look for it.
    fn check_absolute(&self) -> anyhow::Result<()> {
        let named = [
            ("HOME", Some(&self.home)),
            ("DWELL_CONFIG_DIR", Some(&self.config)),
            ("DWELL_DATA_DIR", Some(&self.data)),
            ("DWELL_STATE_DIR", Some(&self.state)),
            ("DWELL_RUNTIME_DIR", self.runtime.as_ref()),
        ];
        for (name, path) in named {
            if let Some(path) = path.filter(|path| path.is_relative()) {
                anyhow::bail!(
                    "{} is not an absolute path: set {name} to one",
                    path.display()
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_known_is_an_error_with_its_line() {
        let error = toml::from_str::<Config>("[turn]\nmax_round = 3\n").expect_err("a slip");
        assert!(error.to_string().contains("line 2"), "{error}");
    }

    #[test]
    fn a_relative_directory_is_refused_by_its_variables_name() {
        for name in [
            "DWELL_CONFIG_DIR",
            "DWELL_DATA_DIR",
            "DWELL_STATE_DIR",
            "DWELL_RUNTIME_DIR",
        ] {
            let env = |asked: &str| (asked == name).then(|| "some/where".into());
            let why = Dirs::find(env).expect_err(name).to_string();
            assert!(why.contains(name) && why.contains("some/where"), "{why}");
        }
        let home = Dirs {
            home: "a".into(),
            config: "/c".into(),
            data: "/d".into(),
            state: "/s".into(),
            runtime: None,
        };
        let why = home.check_absolute().expect_err("HOME").to_string();
        assert!(why.contains("set HOME"), "{why}");
    }

    #[test]
    fn a_toolbox_without_a_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        for name in ["", "  "] {
            std::fs::write(&path, format!("[toolbox]\n\"{name}\" = \"builtin\"\n")).unwrap();
            let why = Config::read(&path).expect_err(name).to_string();
            assert!(why.contains("empty name"), "{why}");
        }
    }

    #[test]
    fn an_empty_file_is_the_defaults() {
        let config: Config = toml::from_str("").expect("empty");
        assert_eq!(
            (config.turn.max_rounds, config.history.tools),
            (100, History::Session)
        );
    }

    #[test]
    fn providers_are_tables_by_name_and_slips_in_them_are_errors() {
        let text = "[provider]\ndefault = 'house'\n[provider.house]\napi = 'messages'\nbase_url = 'http://x'\nthinking = 2000\n";
        let config: Config = toml::from_str(text).expect("a provider of one's own");
        assert_eq!(config.provider.default.as_deref(), Some("house"));
        assert!(config.provider.named.contains_key("house") && !config.provider.holds_a_key());
        for slip in [
            "[provider]\ndefualt = 'house'\n",
            "[provider.house]\nbase = 'http://x'\n",
            "[provider.house]\napi = 'grpc'\n",
        ] {
            assert!(toml::from_str::<Config>(slip).is_err(), "{slip}");
        }
        let fault =
            ProviderSettings::fault("[provider]\ndefault = 'x'\n[provider.house]\napi = 'grpc'\n");
        let fault = fault.expect("a fault");
        assert!(
            fault.starts_with("[provider.house]: ") && fault.contains("grpc"),
            "{fault}"
        );
        let keyed: Config = toml::from_str("[provider.x]\napi_key = 'k3y-of-x'\n").expect("a key");
        assert!(keyed.provider.holds_a_key());
        assert!(!format!("{keyed:?}").contains("k3y-of-x"));
    }
}
