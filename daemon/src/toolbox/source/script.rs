//! Scripts as tools: what a bash, JavaScript or Python file declares, found without running it.
//! Must never execute anything to learn what a file offers, and never take one file's fault for another's.

pub mod agent;
mod bash;
mod content;
mod deep;
mod javascript;
pub mod load;
mod python;
pub mod run;
pub mod standin;
mod tree;

use bash::Passed;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files above this are no scripts that somebody wrote.
const LARGEST: usize = 1024 * 1024;

/// Which of the languages, by the end of the file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    Bash,
    JavaScript,
    Python,
}

/// Whether a file is one tool, or holds an agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Tool,
    Agent,
}

/// One tool of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declaration {
    pub name: String,
    pub description: String,
    /// JSON Schema properties in the order written.
    pub properties: Map<String, Value>,
    pub required: Vec<String>,
    /// What the script calls it: a function, or a command of argc's; empty for the whole of a bash tool.
    pub function: String,
    /// How a bash script is given each property.
    pub passed: BTreeMap<String, Passed>,
    /// Those of the required that a variable of the environment may say instead.
    pub bound: BTreeSet<String>,
}

/// What a file offers, and what its author should know about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declared {
    pub declarations: Vec<Declaration>,
    pub warnings: Vec<Problem>,
}

/// Something in a file, with the line it is about, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub line: usize,
    pub message: String,
}

impl Problem {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line: line.max(1),
            message: message.into(),
        }
    }

    /// For people, who know the file by its path.
    pub fn told(&self, file: &Path) -> String {
        format!("{}: line {}: {}", file.display(), self.line, self.message)
    }
}

impl Language {
    pub fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "sh" => Some(Self::Bash),
            "js" | "mjs" | "cjs" => Some(Self::JavaScript),
            "py" => Some(Self::Python),
            _ => None,
        }
    }
}

impl Declaration {
    /// In the form that models are given.
    pub fn to_value(&self) -> Value {
        let parameters = json!({
            "type": "object",
            "properties": self.properties,
            "required": self.required,
        });
        json!({"name": self.name, "description": self.description, "parameters": parameters})
    }

    fn property(&mut self, name: &str, schema: Value, required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if required {
            self.required.push(name.to_owned());
        }
    }
}

/// Reads a file's bytes. `stem` is its name without the end, which a tool is called by.
pub fn declare(
    language: Language,
    kind: Kind,
    stem: &str,
    bytes: &[u8],
) -> Result<Declared, Problem> {
    if bytes.len() > LARGEST {
        return Err(Problem::new(
            1,
            format!("larger than {} KiB", LARGEST >> 10),
        ));
    }
    let text = text(bytes)?;
    let read = || {
        let declared = match language {
            Language::Bash => bash::declare(kind, stem, text),
            Language::JavaScript => javascript::declare(kind, stem, text),
            Language::Python => python::declare(kind, stem, text),
        };
        declared.and_then(deep::checked)
    };
    let too_odd = || Err(Problem::new(1, "too odd to be read"));
    deep::on_own_stack(read).unwrap_or_else(too_odd)
}

/// Whether a file has a function of this name that can be called, be it no tool.
fn has_function(language: Language, bytes: &[u8], name: &str) -> bool {
    let Ok(text) = text(bytes) else {
        return false;
    };
    let look = || match language {
        Language::Bash => bash::has_command(text, name),
        Language::JavaScript => javascript::has_export(text, name),
        Language::Python => python::has_function(text, name),
    };
    deep::on_own_stack(look).unwrap_or(false)
}

/// Without the mark that some editors put first.
fn text(bytes: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Problem::new(line, "not UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// A list of parts that each have a schema of their own; `items` is what any of them is, for whoever reads no more of it.
fn of_parts(items: Value, parts: Vec<Value>, least: usize, open: bool) -> Value {
    let mut schema = json!({"type": "array", "items": items, "minItems": least});
    let fixed = parts.len() - usize::from(open);
    if !open {
        schema["maxItems"] = parts.len().into();
    }
    // In the newer drafts `items` is of what comes behind these, which is no narrower than it should be.
    let differ = parts.windows(2).any(|pair| pair[0] != pair[1]);
    if differ && !parts[..fixed].iter().any(Value::is_null) {
        schema["prefixItems"] = parts[..fixed].into();
    }
    schema
}

/// Whether a number has neither a fraction nor an exponent, however long it is.
fn is_whole(value: &Value) -> bool {
    match value {
        Value::Number(number) => !number.to_string().contains(['.', 'e']),
        _ => false,
    }
}

/// A description's lines without their blanks at the ends and without empty lines around.
fn trimmed<'l>(lines: impl IntoIterator<Item = &'l str>) -> String {
    let lines: Vec<_> = lines.into_iter().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests;
