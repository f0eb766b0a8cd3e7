//! `dwelld --check`: what a start would stumble over, without one. Must never make, change or lock anything.

use crate::config::{Config, Dirs};
use crate::store;
use crate::workspace::faults;
use serde_json::{Value, json};
use std::path::Path;

/// What keeps the daemon from working, or from doing what a file was written for; each for programs to read.
pub(super) fn problems(cwd: &Path) -> Vec<Value> {
    let dirs = match Dirs::find(|name| std::env::var_os(name)) {
        Ok(dirs) => dirs,
        Err(error) => return vec![wrong(&format!("{error:#}"), "name the directory in full")],
    };
    let mut found = Vec::new();
    let config = dirs.config.join("config.toml");
    if let Err(error) = Config::read(&config) {
        let hint = "mend the file or move it away; the daemon reads it when it starts";
        found.push(wrong(&format!("{error:#}"), hint));
    }
    let path = dirs.data.join("sessions.db");
    if let Err(error) = store::look(&path) {
        let hint = "`dwelld` cannot use it as it is; DWELL_DATA_DIR names another directory";
        found.push(wrong(&error.to_string(), hint));
    }
    let mut folders = vec![dirs.home.as_path()];
    folders.extend(Some(cwd).filter(|cwd| *cwd != dirs.home));
    for folder in folders {
        let faults = faults::of(folder);
        let hint = "mend the file, or move it away";
        found.extend(faults.permissions.iter().map(|fault| wrong(fault, hint)));
        found.extend(faults.servers.iter().map(|fault| warning(fault, hint)));
    }
    found
}

fn wrong(what: &str, hint: &str) -> Value {
    json!({"state": "wrong", "what": what, "hint": hint})
}

fn warning(what: &str, hint: &str) -> Value {
    json!({"state": "warning", "what": what, "hint": hint})
}
