//! Reading `config.toml` anew while the daemon runs: what can change at once does, and of the rest it is said that it waits.
//! Must never take a file half: one with a slip changes nothing.

use crate::config::Config;
use crate::session::services::{Limits, Live};
use crate::workspace::hooks::ShellHook;
use crate::workspace::plugins::Means;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Tables that count at once.
const AT_ONCE: [&str; 5] = ["history", "hooks", "plugin", "session", "turn"];

/// Whatever the file sets that can be set anew.
pub(super) struct Reread {
    path: PathBuf,
    limits: Live<Limits>,
    plugins: Means,
    /// The file as it was at the start. Held for a look only.
    was: Mutex<toml::Table>,
}

impl Reread {
    pub(super) fn new(path: PathBuf, limits: Live<Limits>, plugins: Means) -> Self {
        let was = Mutex::new(table(&path));
        Self {
            path,
            limits,
            plugins,
            was,
        }
    }

    /// Blocks on the disk. Gives the hooks, and what waits for the next start.
    pub(super) fn run(&self) -> Result<(Vec<ShellHook>, Vec<String>), String> {
        let config = Config::read(&self.path).map_err(|error| format!("{error:#}"))?;
        self.limits.set(super::limits(&config));
        self.plugins.set(config.plugin.clone());
        let was = self.was.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = waiting(&was, &table(&self.path)).into_iter();
        let told = waiting.map(|name| {
            format!(
                "[{name}] of config.toml has changed, which counts from the daemon's next start on"
            )
        });
        Ok((config.hooks, told.collect()))
    }
}

fn table(path: &std::path::Path) -> toml::Table {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Names of tables that differ and are read at the start alone.
fn waiting(was: &toml::Table, is: &toml::Table) -> Vec<String> {
    let names = was
        .keys()
        .chain(is.keys().filter(|name| !was.contains_key(*name)));
    let differs = names.filter(|name| was.get(*name) != is.get(*name));
    let keys = |table: &toml::Table| {
        table
            .get("plugin")
            .and_then(|plugin| plugin.get("keys"))
            .cloned()
    };
    let late = differs
        .filter(|name| !AT_ONCE.contains(&name.as_str()))
        .cloned();
    let mut late: Vec<String> = late.collect();
    if keys(was) != keys(is) {
        late.push("plugin.keys".to_owned());
    }
    late
}

#[cfg(test)]
mod tests {
    use super::waiting;

    #[test]
    fn tables_that_are_read_at_the_start_alone_are_named_when_they_differ() {
        let of = |was: &str, is: &str| waiting(&was.parse().unwrap(), &is.parse().unwrap());
        let none: [&str; 0] = [];
        assert_eq!(
            of(
                "[turn]\nmax_rounds = 1",
                "[turn]\nmax_rounds = 2\n[history]\n"
            ),
            none
        );
        assert_eq!(of("", "[limits]\ncalls = 2"), ["limits"]);
        assert_eq!(
            of("[provider.x]\nmodel = 'a'", "[provider.x]\nmodel = 'b'"),
            ["provider"]
        );
        assert_eq!(of("[mcp]\n[model]", "[model]"), ["mcp"]);
        assert_eq!(
            of(
                "[plugin]\nhook_ms = 1",
                "[plugin]\nhook_ms = 2\nkeys = ['A']"
            ),
            ["plugin.keys"]
        );
    }
}
