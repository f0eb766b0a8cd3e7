//! Which of this process's variables a session's tools may see. Must never let a key or a setting of dwell through.

use protocol::daemon::authority;
use std::collections::BTreeMap;

/// The environment variable that names further variables, separated by commas.
pub(crate) const EXTRA: &str = "DWELL_ENV";

/// Names that pass as they are.
const NAMES: &[&str] = &[
    "CARGO_HOME",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "EDITOR",
    "GEM_HOME",
    "GEM_PATH",
    "GOBIN",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "MANPATH",
    "NIX_PATH",
    "NIX_PROFILES",
    "NODE_PATH",
    "NVM_BIN",
    "NVM_DIR",
    "PAGER",
    "PATH",
    "PKG_CONFIG_PATH",
    "PYENV_ROOT",
    "PYTHONPATH",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "SSH_AUTH_SOCK",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "VISUAL",
    "WAYLAND_DISPLAY",
];

/// Beginnings of names that pass.
const PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Says which model to use, of whichever provider. Ends of names, too.
const MODELS: &[&str] = &["_MODEL", "LLAMA2_TOKENIZER"];

/// Says which server to use. Ends of names, too; a value passes that names this very machine: a vendor's key that the daemon
/// has goes to no other place because of a variable of some shell.
const SERVERS: &[&str] = &["_BASE_URL", "OLLAMA_HOST"];

/// Beginnings of the addresses of this machine, behind the scheme.
const HERE: &[&str] = &["127.0.0.1", "localhost", "[::1]"];

/// What this process gives to a session it creates.
pub(crate) fn for_session() -> BTreeMap<String, String> {
    let extra = std::env::var(EXTRA).unwrap_or_default();
    select(std::env::vars_os().filter_map(utf8), &extra)
}

/// What a person is told whose shell names another server for the provider than the daemon does, and none on this machine.
pub(crate) fn left_out(provider: &str, daemon: &BTreeMap<String, String>) -> Option<String> {
    let upper = provider.to_ascii_uppercase();
    let plain = upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let name = format!("{plain}_BASE_URL");
    let value = std::env::var(&name).ok()?;
    let extra = std::env::var(EXTRA).unwrap_or_default();
    let passes = is_here(&value) || extra.split(',').any(|one| one.trim() == name);
    note(&name, &value, daemon).filter(|_| !passes)
}

fn note(name: &str, value: &str, daemon: &BTreeMap<String, String>) -> Option<String> {
    let (here, there) = (authority(value), daemon.get(name).map(String::as_str));
    if here.is_empty() || there == Some(here) {
        return None;
    }
    Some(format!(
        "{name} of this shell names {here}, which is not this machine, so it is not used: set it where dwelld starts (`dwell daemon \
         stop` and a new start has it), or as base_url in config.toml"
    ))
}

fn utf8((name, value): (std::ffi::OsString, std::ffi::OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

/// Those of `all` that pass, with those that `extra` names.
fn select(all: impl Iterator<Item = (String, String)>, extra: &str) -> BTreeMap<String, String> {
    let extra: Vec<&str> = extra.split(',').map(str::trim).collect();
    all.filter(|(name, value)| passes(name, &extra) || is_choice(name, value))
        .collect()
}

fn passes(name: &str, extra: &[&str]) -> bool {
    if name.starts_with("DWELL_") {
        return false;
    }
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || extra.contains(&name)
}

/// A choice of a model or of a server here, which is a setting and no secret.
fn is_choice(name: &str, value: &str) -> bool {
    let ends = |list: &[&str]| list.iter().any(|end| name.ends_with(end));
    !name.starts_with("DWELL_") && (ends(MODELS) || (ends(SERVERS) && is_here(value)))
}

fn is_here(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let ends = |rest: &str| rest.is_empty() || rest.starts_with([':', '/']);
    HERE.iter()
        .any(|host| rest.strip_prefix(host).is_some_and(ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str], extra: &str) -> Vec<String> {
        let pairs = all.iter().map(|name| ((*name).into(), "v".into()));
        select(pairs, extra).into_keys().collect()
    }

    #[test]
    fn keys_and_settings_of_dwell_never_pass() {
        let all = [
            "ANTHROPIC_API_KEY",
            "DWELL_SOCKET",
            "DWELL_PROVIDER",
            "GITHUB_TOKEN",
            "LC_ALL",
            "OPENAI_API_KEY",
            "PATH",
            "XDG_RUNTIME_DIR",
        ];
        assert_eq!(names(&all, ""), ["LC_ALL", "PATH", "XDG_RUNTIME_DIR"]);
    }

    #[test]
    fn choice_of_a_model_or_of_a_server_here_passes_and_a_server_elsewhere_does_not() {
        let pairs = [
            ("CANDLE_MODEL", "m.gguf"),
            ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"),
            ("OLLAMA_HOST", "localhost"),
            ("GROQ_BASE_URL", "https://127.0.0.1.example.org/v1"),
            ("MISTRAL_BASE_URL", "http://user:password@127.0.0.1/"),
            ("DWELL_MODEL", "x"),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let passed: Vec<String> = select(pairs.into_iter(), "").into_keys().collect();
        assert_eq!(passed, ["CANDLE_MODEL", "OLLAMA_HOST", "OPENAI_BASE_URL"]);
    }

    #[test]
    fn server_elsewhere_is_spoken_of_unless_the_daemon_has_it_too() {
        let name = "OPENAI_BASE_URL";
        let daemon = |value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let note = |value: &str, daemon| note(name, value, &daemon);
        let told = note(
            "https://me:pass@models.example.org/v1",
            daemon("api.example.org"),
        );
        let told = told.expect("a note");
        assert!(
            told.contains("names models.example.org,") && !told.contains("pass"),
            "{told}"
        );
        assert!(note("https://models.example.org/v1", BTreeMap::new()).is_some());
        assert_eq!(
            note("https://models.example.org", daemon("models.example.org")),
            None
        );
        assert_eq!(note("", BTreeMap::new()), None);
    }

    #[test]
    fn a_named_variable_passes_too() {
        assert_eq!(names(&["A", "B", "C"], "A, C,DWELL_X"), ["A", "C"]);
        assert!(names(&["DWELL_X"], "DWELL_X").is_empty());
    }
}
