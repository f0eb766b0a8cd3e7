//! Which of this process's variables a session's tools may see. Must never let a key or a setting of dwell through.

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

/// What this process gives to a session it creates.
pub(crate) fn for_session() -> BTreeMap<String, String> {
    let extra = std::env::var(EXTRA).unwrap_or_default();
    select(std::env::vars_os().filter_map(utf8), &extra)
}

fn utf8((name, value): (std::ffi::OsString, std::ffi::OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

/// Those of `all` that pass, with those that `extra` names.
fn select(all: impl Iterator<Item = (String, String)>, extra: &str) -> BTreeMap<String, String> {
    let extra: Vec<&str> = extra.split(',').map(str::trim).collect();
    all.filter(|(name, _)| passes(name, &extra)).collect()
}

fn passes(name: &str, extra: &[&str]) -> bool {
    if name.starts_with("DWELL_") {
        return false;
    }
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || extra.contains(&name)
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
    fn a_named_variable_passes_too() {
        assert_eq!(names(&["A", "B", "C"], "A, C,DWELL_X"), ["A", "C"]);
        assert!(names(&["DWELL_X"], "DWELL_X").is_empty());
    }
}
