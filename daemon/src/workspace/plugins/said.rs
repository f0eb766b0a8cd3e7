//! What a plugin says that it adds, taken apart entry by entry: one that cannot be used is told and the rest is kept. Pure.
//! Must never drop a hook without a word: what it would have guarded is not guarded.

use protocol::plugin::{Hook, PluginCommand, PluginProvider, Setup};
use protocol::tool::ProvidedTool;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The longest name that vendors take.
const LONGEST: usize = 64;

/// What can be used of it, and what is wrong with the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    pub(super) setup: Setup,
    pub(super) faults: Vec<String>,
    /// The fault of a hook that is not there because of it.
    pub(super) lost_hook: Option<String>,
}

/// Reads an answer to `plugin/setup`; `null` adds nothing.
pub(super) fn read(text: &str) -> Result<Said, String> {
    let value: Option<Map<String, Value>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let value = value.unwrap_or_default();
    let mut said = Said::default();
    let faults = &mut said.faults;
    said.setup = Setup {
        tools: entries(&value, "tools", faults, check_tool),
        hooks: Vec::new(),
        commands: entries(&value, "commands", faults, check_command),
        providers: entries(&value, "providers", faults, check_provider),
    };
    let before = faults.len();
    said.setup.hooks = entries(&value, "hooks", faults, check_hook);
    said.lost_hook = faults.get(before).cloned();
    Ok(said)
}

fn entries<T: DeserializeOwned>(
    value: &Map<String, Value>,
    list: &str,
    faults: &mut Vec<String>,
    check: fn(&T) -> Result<(), String>,
) -> Vec<T> {
    let entries = match value.get(list) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(entries)) => entries,
        Some(_) => {
            faults.push(format!("its {list} are no list"));
            return Vec::new();
        }
    };
    let mut all = Vec::new();
    for (entry, number) in entries.iter().zip(1..) {
        let read = serde_json::from_value::<T>(entry.clone()).map_err(|error| error.to_string());
        match read.and_then(|entry| check(&entry).map(|()| entry)) {
            Ok(entry) => all.push(entry),
            Err(why) => {
                let known = ["name", "id"].iter().find_map(|key| entry[*key].as_str());
                let one = list.trim_end_matches('s');
                faults.push(match known {
                    Some(name) => format!("its {one} {name:?} cannot be used: {why}"),
                    None => format!("its {one} number {number} cannot be used: {why}"),
                });
            }
        }
    }
    all
}

fn check_tool(tool: &ProvidedTool) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    check_name(&tool.name, letter, "letters, digits, _ and -")?;
    for alias in &tool.aliases {
        check_name(alias, |c| !c.is_control(), "characters that can be shown")
            .map_err(|why| format!("alias {alias:?}: {why}"))?;
    }
    Ok(())
}

fn check_command(command: &PluginCommand) -> Result<(), String> {
    let name = command.name.strip_prefix('/').unwrap_or(&command.name);
    let letter = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
    check_name(name, letter, "characters without spaces and slashes")
}

fn check_provider(provider: &PluginProvider) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    check_name(&provider.name, letter, "letters, digits, _, - and .")
}

fn check_hook(hook: &Hook) -> Result<(), String> {
    match hook.id.is_empty() {
        true => Err("it has no id".to_owned()),
        false => Ok(()),
    }
}

fn check_name(name: &str, fits: fn(char) -> bool, of: &str) -> Result<(), String> {
    let length = name.chars().count();
    match (1..=LONGEST).contains(&length) && name.chars().all(fits) {
        true => Ok(()),
        false => Err(format!("a name is 1 to {LONGEST} {of}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(value: &Value) -> Said {
        read(&value.to_string()).unwrap()
    }

    #[test]
    fn entry_that_cannot_be_used_is_told_by_name_and_the_rest_is_kept() {
        let said = said(&json!({
            "tools": [{"name": "wc", "aliases": ["count words"]}, {"name": "a b"}, {"name": ""}, {"params": {}},
                      {"name": "x".repeat(65)}, {"name": "z", "params": 3}],
            "commands": [{"name": "/wc"}, {"name": "a b"}, {"name": "a/b"}, {"name": "/"}],
            "providers": [{"name": "echo-2.1"}, {"name": "no good"}, {"name": "caf\u{e9}"}],
            "hooks": [{"id": "h", "point": "after"}],
        }));
        let setup = &said.setup;
        let counts = (
            setup.tools.len(),
            setup.commands.len(),
            setup.providers.len(),
            setup.hooks.len(),
        );
        assert_eq!(counts, (1, 1, 1, 1));
        assert_eq!(said.faults.len(), 10, "{:#?}", said.faults);
        let all = said.faults.join("\n");
        for part in [
            "its tool \"a b\" cannot be used: a name is 1 to 64 letters, digits, _ and -",
            "its tool number 4 cannot be used: missing field",
            "its command \"a/b\" cannot be used",
            "its provider \"no good\" cannot be used",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert_eq!(said.lost_hook, None);
    }

    #[test]
    fn hook_that_cannot_be_read_is_known_to_be_lost() {
        let said =
            said(&json!({"hooks": [{"id": "h", "point": "befor"}, {"id": "", "point": "before"}]}));
        assert_eq!((said.setup.hooks.len(), said.faults.len()), (0, 2));
        assert!(said.lost_hook.unwrap().contains("befor"));
        assert!(super::read("{\"hooks\": {}}").unwrap().lost_hook.is_some());
    }

    #[test]
    fn nothing_is_added_by_null_and_what_is_no_object_is_an_error() {
        assert_eq!(read("null").unwrap(), Said::default());
        assert_eq!(said(&json!({})), Said::default());
        assert!(read("[1]").is_err() && read("\"x\"").is_err());
    }
}
