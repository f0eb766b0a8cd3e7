//! Agents: a folder with an `index.yaml`, and maybe tools of its own. What is in it is read, and what of it goes to a model.
//! Must never read a document that lies outside the agent's folder.

mod documents;

use super::run::{Agent, Around, Script};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An index above this is none.
const INDEX: u64 = 256 * 1024;

/// What `index.yaml` says.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Index {
    pub name: String,
    pub description: String,
    #[serde(deserialize_with = "scalar")]
    pub version: String,
    pub instructions: String,
    /// Whether the function `_instructions` gives them.
    pub dynamic_instructions: bool,
    pub variables: Vec<Variable>,
    pub conversation_starters: Vec<String>,
    pub documents: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Variable {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, deserialize_with = "maybe_scalar")]
    pub default: Option<String>,
}

/// An agent as it is on the disk.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its folder's name, by which it is called.
    pub name: String,
    pub dir: PathBuf,
    pub index: Index,
}

/// Who a session is, kept with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    pub name: String,
    pub variables: BTreeMap<String, String>,
}

impl Definition {
    /// Of a folder; the error is for people.
    pub fn read(dir: &Path) -> Result<Self, String> {
        let file = dir.join("index.yaml");
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", file.display());
        let mut text = String::new();
        fs::File::open(&file)
            .and_then(|opened| opened.take(INDEX).read_to_string(&mut text))
            .map_err(|error| failed(&error))?;
        let index = serde_yaml_ng::from_str(&text).map_err(|error| failed(&error))?;
        Ok(Self {
            name: dir
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            dir: dir.to_owned(),
            index,
        })
    }

    /// The variables with their defaults; an error names those that nobody gave and those that there are not.
    pub fn choose(&self, given: &BTreeMap<String, String>) -> Result<Choice, String> {
        let known = |name: &String| self.index.variables.iter().any(|known| known.name == *name);
        if let Some(unknown) = given.keys().find(|name| !known(name)) {
            return Err(format!("the agent {} has no variable {unknown}", self.name));
        }
        let mut variables = BTreeMap::new();
        let mut missing = Vec::new();
        for variable in &self.index.variables {
            match given.get(&variable.name).or(variable.default.as_ref()) {
                Some(value) => drop(variables.insert(variable.name.clone(), value.clone())),
                None => missing.push(variable.name.as_str()),
            }
        }
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(format!(
                "the agent {} needs values for: {missing}",
                self.name
            ));
        }
        Ok(Choice {
            name: self.name.clone(),
            variables,
        })
    }

    /// For its scripts.
    pub fn with(&self, choice: &Choice) -> Agent {
        Agent {
            name: self.name.clone(),
            dir: self.dir.clone(),
            variables: choice.variables.clone().into_iter().collect(),
        }
    }

    /// What a model is told: instructions with their variables, then the documents. `tools` says which it has.
    pub async fn prompt(
        &self,
        choice: &Choice,
        script: Option<&Arc<Script>>,
        around: Around,
        tools: &[(String, String)],
    ) -> Result<String, String> {
        let (cwd, env) = (around.cwd.clone(), Arc::clone(&around.env));
        let instructions = match (self.index.dynamic_instructions, script) {
            (false, _) => self.index.instructions.clone(),
            (true, Some(script)) => script.say("_instructions", around).await?,
            (true, None) => {
                let dir = self.dir.display();
                return Err(format!(
                    "{dir} has no tools file that could give its instructions"
                ));
            }
        };
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"]
            .iter()
            .find_map(|name| env.get(*name).filter(|value| !value.is_empty()));
        let facts = Facts {
            locale: locale.map_or("", String::as_str),
            cwd: &cwd,
            shell: env.get("SHELL").map_or("sh", String::as_str),
            tools,
        };
        let mut prompt = facts
            .filled(&instructions, &choice.variables)
            .trim_end()
            .to_owned();
        let definition = self.clone();
        let read = move || documents::prompt(&definition.dir, &definition.index.documents);
        let documents = tokio::task::spawn_blocking(read).await;
        prompt.push_str(&documents.unwrap_or_default());
        Ok(prompt)
    }

    /// What of it cannot be used, for people.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = documents::problems(&self.dir, &self.index.documents);
        let file = self.dir.join("index.yaml");
        let file = file.display();
        let blank = |text: &&String| text.trim().is_empty();
        if self
            .index
            .conversation_starters
            .iter()
            .any(|text| blank(&text))
        {
            problems.push(format!("{file}: a conversation starter is empty"));
        }
        for name in self.unknown_names() {
            problems.push(format!(
                "{file}: {{{{{name}}}}} in the instructions is no variable, and stays as it is"
            ));
        }
        problems
    }

    /// What stands in braces in its instructions and means nothing.
    fn unknown_names(&self) -> Vec<&str> {
        let facts = Facts {
            cwd: &self.dir,
            shell: "",
            locale: "",
            tools: &[],
        };
        let is_known = |name: &&str| {
            let mut variables = self.index.variables.iter();
            variables.any(|variable| variable.name == *name) || facts.value(name).is_some()
        };
        let inside = self.index.instructions.split("{{").skip(1);
        let names = inside.filter_map(|rest| Some(rest.split_once("}}")?.0.trim()));
        let is_name = |name: &&str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        };
        names
            .filter(is_name)
            .filter(|name| !is_known(name))
            .collect()
    }
}

/// What the daemon knows by itself.
struct Facts<'a> {
    cwd: &'a Path,
    shell: &'a str,
    /// As the environment says it.
    locale: &'a str,
    tools: &'a [(String, String)],
}

impl Facts<'_> {
    /// With `{{name}}` replaced; a name that nobody knows stays as it is. What a value says is not looked through again.
    fn filled(&self, text: &str, variables: &BTreeMap<String, String>) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            out.push_str(before);
            let value = after.split_once("}}").and_then(|(name, rest)| {
                let name = name.trim();
                let value = variables.get(name).cloned().or_else(|| self.value(name))?;
                Some((value, rest))
            });
            match value {
                Some((value, left)) => {
                    out.push_str(&value);
                    rest = left;
                }
                None => {
                    out.push_str("{{");
                    rest = after;
                }
            }
        }
        out + rest
    }

    fn value(&self, name: &str) -> Option<String> {
        Some(match name {
            "__os__" => std::env::consts::OS.to_owned(),
            "__os_family__" => std::env::consts::FAMILY.to_owned(),
            "__locale__" => locale(self.locale),
            "__arch__" => std::env::consts::ARCH.to_owned(),
            "__shell__" => {
                let name = Path::new(self.shell).file_name();
                name.unwrap_or_default().to_string_lossy().into_owned()
            }
            "__now__" => now(),
            "__cwd__" => self.cwd.display().to_string(),
            "__tools__" => {
                let line = |(name, about): &(String, String)| {
                    format!("- {name}: {}", about.lines().next().unwrap_or_default())
                };
                self.tools.iter().map(line).collect::<Vec<_>>().join("\n")
            }
            _ => return None,
        })
    }
}

/// In UTC and to the millisecond, as ISO 8601 has it: what a session's time zone is nobody has said.
fn now() -> String {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    moment(since.as_secs(), since.subsec_millis())
}

fn moment(seconds: u64, millis: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is a year's last.
    let day = days + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year + u64::from(month <= 2);
    let date = of_year - (153 * from_march + 2) / 5 + 1;
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// `de_AT.UTF-8` is `de-AT`.
fn locale(said: &str) -> String {
    let plain = said.split(['.', '@']).next().unwrap_or_default();
    match plain {
        "" | "C" | "POSIX" => "en-US".to_owned(),
        plain => plain.replace('_', "-"),
    }
}

/// Text, or a number or truth value that somebody wrote without quotes.
fn scalar<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    maybe_scalar(from).map(Option::unwrap_or_default)
}

fn maybe_scalar<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    use serde::de::Error;
    match serde_json::Value::deserialize(from)? {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(text) => Ok(Some(text)),
        value if value.is_number() || value.is_boolean() => Ok(Some(value.to_string())),
        _ => Err(D::Error::custom("a text is wanted here")),
    }
}

/// A name that is a folder's and nothing more.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests;
