//! Agents: a folder with an `index.yaml`, and maybe tools of its own. What is in it is read, and what of it goes to a model.
//! Must never read a document that lies outside the agent's folder.

use super::run::{Agent, Around, Script};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// An index above this is none.
const INDEX: u64 = 256 * 1024;
/// What documents may take of the prompt, in bytes.
const DOCUMENTS: usize = 64 * 1024;

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
        script: Option<&std::sync::Arc<Script>>,
        around: Around,
        tools: &[(String, String)],
    ) -> Result<String, String> {
        let (cwd, shell) = (around.cwd.clone(), around.env.get("SHELL").cloned());
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
        let facts = Facts {
            cwd: &cwd,
            shell: shell.as_deref().unwrap_or("sh"),
            tools,
        };
        let mut prompt = facts
            .filled(&instructions, &choice.variables)
            .trim_end()
            .to_owned();
        let definition = self.clone();
        let documents = tokio::task::spawn_blocking(move || definition.documents()).await;
        prompt.push_str(&documents.unwrap_or_default());
        Ok(prompt)
    }

    /// The texts of the documents, each under its name, and a line for each that is left out.
    fn documents(&self) -> String {
        let mut out = String::new();
        let mut left = DOCUMENTS;
        for name in &self.index.documents {
            let text = match self.document(name) {
                Ok(text) if text.len() <= left => text,
                Ok(text) => {
                    let cut = (0..=left)
                        .rev()
                        .find(|at| text.is_char_boundary(*at))
                        .unwrap_or(0);
                    format!(
                        "{}\n[cut: the documents are too long together]",
                        &text[..cut]
                    )
                }
                Err(why) => format!("[left out: {why}]"),
            };
            left = left.saturating_sub(text.len());
            out.push_str(&format!(
                "\n\n<document name=\"{name}\">\n{}\n</document>",
                text.trim_end()
            ));
        }
        out
    }

    fn document(&self, name: &str) -> Result<String, String> {
        let inside = || -> io::Result<Option<String>> {
            let folder = self.dir.canonicalize()?;
            let file = self.dir.join(name).canonicalize()?;
            if !file.starts_with(&folder) || !file.is_file() {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            fs::File::open(file)?
                .take(DOCUMENTS as u64 + 4)
                .read_to_end(&mut bytes)?;
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        };
        match inside() {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err("not a file in the agent's folder".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What the daemon knows by itself.
struct Facts<'a> {
    cwd: &'a Path,
    shell: &'a str,
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

/// In UTC: what a session's time zone is nobody has said.
fn now() -> String {
    httpdate::fmt_http_date(std::time::SystemTime::now())
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
