//! `mcp.json`: which servers a person named, and how each is reached. Must never start one, nor let one entry that
//! cannot be used take the others along.

use super::name::plain;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A server as it is to be used.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// As the file names it.
    pub name: String,
    /// The file, for messages.
    pub file: PathBuf,
    pub how: How,
    /// What stands before the names of its tools.
    pub prefix: String,
    /// Its tools that are offered; none is all.
    pub tools: Option<Vec<String>>,
    /// How long a call may take without a sign of progress, where the file says so.
    pub call: Option<Duration>,
    /// What its `${NAME}` stand for.
    pub variables: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq)]
pub enum How {
    Child {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: PathBuf,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        oauth: Client,
    },
}

/// An OAuth client that somebody registered by hand.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Client {
    #[serde(alias = "client_id")]
    pub client_id: Option<String>,
    #[serde(alias = "client_secret")]
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
}

/// Arguments, variables and headers hold keys.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("name", &self.name)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

/// A file that was read.
pub struct Text<'a> {
    pub path: &'a Path,
    pub text: &'a str,
    /// What a relative `cwd` is relative to.
    pub folder: &'a Path,
    /// Where a child starts that has no `cwd`.
    pub start: &'a Path,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub servers: Vec<Config>,
    /// Names that are switched off, or cannot be used: an earlier file's server of that name does not count either.
    pub without: Vec<String>,
    pub problems: Vec<String>,
}

impl Listing {
    /// This one with a later file's over it.
    pub fn then(&mut self, later: Self) {
        let replaced = |server: &Config| {
            let names = later.servers.iter().map(|other| &other.name);
            names.chain(&later.without).any(|name| *name == server.name)
        };
        self.servers.retain(|server| !replaced(server));
        self.servers.extend(later.servers);
        self.problems.extend(later.problems);
    }
}

impl Listing {
    /// Gives each server a prefix of its own, by the files alone: whose a name is must not depend on who is there first.
    pub fn part(&mut self) {
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        for server in &mut self.servers {
            let name = &server.name;
            if let Some(other) = known.get(&plain(&server.prefix)) {
                let numbered = (2..).map(|number| format!("{name}_{number}__"));
                let mut all = std::iter::once(format!("{name}__")).chain(numbered);
                let free = all.find(|prefix| !known.contains_key(&plain(prefix)));
                server.prefix = free.unwrap_or_default();
                self.problems.push(format!(
                    "the MCP servers {other} and {name} would have the same names for their tools: those of {name} begin with {} instead",
                    server.prefix
                ));
            }
            known.insert(plain(&server.prefix), name.clone());
        }
    }
}

/// What a client names for one session: entries as in a file, but that nothing in them stands for anything else. Those that
/// are switched off are left out.
pub fn given(servers: &Map<String, Value>, cwd: &Path, home: &Path) -> Result<Vec<Config>, String> {
    let file = Text {
        path: Path::new("the session"),
        text: "",
        folder: cwd,
        start: home,
    };
    let literal = |name: &str| Some(format!("${{{name}}}"));
    let one = |(name, entry): (&String, &Value)| {
        let wrong = |why: String| format!("the MCP server {name:?}: {why}");
        let entry = to_raw_value(entry).map_err(|error| wrong(error.to_string()))?;
        server(&file, name, &entry, &literal).map_err(|fault| wrong(fault.why))
    };
    let all: Result<Vec<_>, String> = servers.iter().map(one).collect();
    Ok(all?.into_iter().flatten().collect())
}

/// Reads a file. `variable` gives what `${NAME}` stands for.
pub fn read(file: &Text<'_>, variable: &dyn Fn(&str) -> Option<String>) -> Listing {
    let mut listing = Listing::default();
    let text = file.text.trim_start_matches('\u{feff}');
    let entries = match serde_json::from_str::<File<'_>>(text) {
        Ok(File { servers }) => servers.unwrap_or_default().0,
        Err(error) => {
            let (path, line) = (file.path.display(), error.line());
            let why = told(&error);
            listing.problems.push(format!("{path}:{line}: {why}"));
            return listing;
        }
    };
    for (name, entry) in &entries {
        let line = line_of(text, entry);
        match server(file, name, entry, variable) {
            Ok(Some(server)) => listing.servers.push(server),
            Ok(None) => listing.without.push(name.to_string()),
            Err(fault) => {
                let (path, line) = (file.path.display(), line + fault.line);
                let problem = format!("{path}:{line}: the MCP server {name:?}: {}", fault.why);
                listing.problems.push(problem);
                listing.without.push(name.to_string());
            }
        }
    }
    listing
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, default, rename = "mcpServers")]
    servers: Option<Entries<'a>>,
}

/// In the file's order, each as it is written.
#[derive(Default)]
struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of servers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
                while let Some((Name(name), entry)) = map.next_entry()? {
                    // The last of a name counts, as wherever JSON is read.
                    all.retain(|(known, _)| *known != name);
                    all.push((name, entry));
                }
                Ok(Entries(all))
            }
        }
        deserializer.deserialize_map(All)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// What one entry may say. Other members are other programs'.
#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Scalar>,
    cwd: Option<String>,
    #[serde(alias = "httpUrl", alias = "serverUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    prefix: Prefix,
    tools: Option<Vec<String>>,
    /// Milliseconds.
    timeout: Option<u64>,
    #[serde(default)]
    oauth: Client,
}

/// People write numbers where a variable's text belongs.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Number(serde_json::Number),
    Flag(bool),
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Prefix {
    Text(String),
    Flag(bool),
}

impl Default for Prefix {
    fn default() -> Self {
        Self::Flag(true)
    }
}

/// What is wrong with an entry, and how many lines below its beginning.
struct Fault {
    line: usize,
    why: String,
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self { line: 0, why }
    }
}

/// None when it is switched off.
fn server(
    file: &Text<'_>,
    name: &str,
    entry: &RawValue,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Config>, Fault> {
    let entry: Entry = serde_json::from_str(entry.get()).map_err(|error| Fault {
        line: error.line().saturating_sub(1),
        why: told(&error),
    })?;
    if entry.disabled {
        return Ok(None);
    }
    if name.trim().is_empty() {
        return Err("it needs a name".to_owned().into());
    }
    let prefix = match &entry.prefix {
        Prefix::Flag(true) => format!("{name}__"),
        Prefix::Text(text) if !text.is_empty() => format!("{text}__"),
        Prefix::Flag(false) | Prefix::Text(_) => String::new(),
    };
    let (tools, call) = (
        entry.tools.clone(),
        entry.timeout.map(Duration::from_millis),
    );
    let variables = RefCell::new(BTreeMap::new());
    let noting = |name: &str| {
        let value = variable(name)?;
        variables
            .borrow_mut()
            .insert(name.to_owned(), value.clone());
        Some(value)
    };
    let how = how(file, entry, &|text| expand(text, &noting))?;
    Ok(Some(Config {
        name: name.to_owned(),
        file: file.path.to_owned(),
        how,
        prefix,
        tools,
        call,
        variables: variables.into_inner(),
    }))
}

fn how(
    file: &Text<'_>,
    entry: Entry,
    expand: &dyn Fn(&str) -> Result<String, String>,
) -> Result<How, String> {
    let all = |values: BTreeMap<String, String>| {
        let each = values
            .into_iter()
            .map(|(name, value)| Ok((name, expand(&value)?)));
        each.collect::<Result<BTreeMap<_, _>, String>>()
    };
    match (entry.command, entry.url) {
        (Some(_), Some(_)) => Err("it has a command and a url: one of them".to_owned()),
        (None, None) => Err("it needs a command, or a url".to_owned()),
        (Some(command), None) => {
            let kind = entry.kind.as_deref().unwrap_or("stdio");
            if kind != "stdio" {
                return Err(format!("its type is {kind:?}, and it has a command: stdio"));
            }
            let cwd = match &entry.cwd {
                Some(cwd) => file.folder.join(expand(cwd)?),
                None => file.start.to_owned(),
            };
            let env = entry
                .env
                .into_iter()
                .map(|(name, value)| (name, value.text()));
            let command = expand(&command)?;
            if command.trim().is_empty() {
                return Err("its command is empty".to_owned());
            }
            let args = entry.args.iter().map(|arg| expand(arg));
            Ok(How::Child {
                command,
                args: args.collect::<Result<_, _>>()?,
                env: all(env.collect())?,
                cwd,
            })
        }
        (None, Some(url)) => {
            match entry.kind.as_deref() {
                None | Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => {}
                Some(kind) => {
                    return Err(format!(
                        "its type is {kind:?}; a url is reached by \"http\" (streamable HTTP) alone"
                    ));
                }
            }
            let (written, url) = (url.clone(), expand(&url)?);
            if !(url.starts_with("https://") || url.starts_with("http://")) {
                return Err(format!(
                    "its url {written:?} begins with neither https:// nor http://"
                ));
            }
            let oauth = Client {
                client_id: entry.oauth.client_id.map(|id| expand(&id)).transpose()?,
                client_secret: entry
                    .oauth
                    .client_secret
                    .map(|secret| expand(&secret))
                    .transpose()?,
                scopes: entry.oauth.scopes,
            };
            Ok(How::Http {
                url,
                headers: all(entry.headers)?,
                oauth,
            })
        }
    }
}

/// `${NAME}`, `${NAME:-what to take where it is not set}`. A `${` that is never closed is text.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
        match value.or_else(|| default.map(str::to_owned)) {
            Some(value) => out.push_str(&value),
            None => {
                return Err(format!(
                    "${{{name}}} is not set where the daemon was started; ${{{name}:-}} would be empty then"
                ));
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// The line in which an entry begins.
fn line_of(text: &str, entry: &RawValue) -> usize {
    let at = (entry.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.as_bytes().get(..at).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// The parser's words without its place, which is that of a part of the file.
fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests;
