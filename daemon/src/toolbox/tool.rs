//! A tool: what models read of it, what permissions need to know of it, and the handler that only the gate may call.
//! Must never run anything itself.

use super::gate::{Pass, Sealed};
use super::schema::Schema;
use super::{BoxFuture, CallPort};
use protocol::id::{CallId, SessionId};
use protocol::tool::{Definition, Function, FunctionTag, ProvidedTool};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The longest name of a parameter that vendors take.
const PARAMETER: usize = 64;
/// The longest name of a tool that vendors take.
const NAME: usize = 64;
/// The longest description, in bytes: it goes along with every request.
const DESCRIPTION: usize = 64 << 10;

/// A handler's object, or the message of what it raised. An object with `error` is a failure too.
pub type Outcome = Result<Map<String, Value>, String>;

/// Runs a tool. Dropping the future stops it; `Call::cancel` asks first.
pub trait Handler: Send + Sync {
    fn run<'a>(&'a self, call: Call, arguments: Map<String, Value>) -> BoxFuture<'a, Outcome>;
}

impl<F, Fut> Handler for F
where
    F: Fn(Call, Map<String, Value>) -> Fut + Send + Sync,
    Fut: Future<Output = Outcome> + Send + 'static,
{
    fn run<'a>(&'a self, call: Call, arguments: Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(self(call, arguments))
    }
}

/// What a handler gets beside its arguments; only the gate can make one.
#[derive(Clone)]
pub struct Call {
    pub session: SessionId,
    pub call: CallId,
    /// The session's directory.
    pub cwd: PathBuf,
    /// The session's environment (the client's, through the allow-list): all that a child may see.
    pub env: Arc<BTreeMap<String, String>>,
    pub cancel: CancellationToken,
    /// Where output beyond the cap is kept whole, for the model to `read`.
    pub spill_dir: PathBuf,
    pub port: Arc<dyn CallPort>,
    pub(super) pass: Pass,
}

/// What a tool does to the world, for the default permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing outside the session.
    Nothing,
    /// Reads files.
    Read,
    /// Changes files.
    Write,
    /// Runs programs.
    Execute,
    /// Talks to other hosts.
    Network,
    /// Nobody knows.
    Unknown,
}

/// What a call makes of a file that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Bytes of the file as it is.
    pub size: u64,
    /// The hunks of a unified diff; none where it cannot be told.
    pub diff: Option<String>,
    /// In how many places the same is done, of a call that replaces a piece.
    pub places: Option<u64>,
    /// The same as long as nothing has changed that a person who agreed to this would have to know.
    pub stamp: u64,
}

impl Change {
    /// Of a file of which nothing more is told, and what the call does depends on.
    pub fn of(size: u64, depends_on: impl Hash) -> Self {
        let mut stamp = DefaultHasher::new();
        depends_on.hash(&mut stamp);
        Self {
            size,
            diff: None,
            places: None,
            stamp: stamp.finish(),
        }
    }
}

/// Tells what a call would change, and changes nothing.
pub type Preview = fn(Call, Map<String, Value>) -> BoxFuture<'static, Option<Change>>;

/// Decides a call's access by its arguments.
pub type AccessOf = fn(&Map<String, Value>) -> Access;

/// Which parameters say what a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A line for a shell.
    Shell(&'static str),
    /// Words that are joined by spaces; arrays are joined too.
    Words(&'static [&'static str]),
    /// The whole arguments, as JSON.
    Arguments,
}

/// Built step by step, then added to a toolbox.
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    params: Map<String, Value>,
    required: Vec<String>,
    /// What else the root of its schema says.
    beside: Map<String, Value>,
    /// Parameters that models are shown by another name, as theirs would be refused: that name, and the real one.
    renamed: BTreeMap<String, String>,
    /// What an argument that is null means.
    null: Null,
    aliases: Vec<String>,
    source: String,
    root: Option<String>,
    access: AccessBy,
    pub(super) about: About,
    pub(super) paths: Vec<&'static str>,
    pub(super) handler: Option<Sealed>,
    pub(super) preview: Option<Preview>,
    schema: Schema,
}

#[derive(Clone, Copy, PartialEq)]
enum Null {
    Value,
    Nothing,
}

#[derive(Clone, Copy)]
enum AccessBy {
    Always(Access),
    Arguments(AccessOf),
}

impl Tool {
    pub fn new(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            params: Map::new(),
            required: Vec::new(),
            beside: Map::new(),
            renamed: BTreeMap::new(),
            null: Null::Value,
            aliases: Vec::new(),
            source: "builtin".to_owned(),
            root: None,
            access: AccessBy::Always(Access::Unknown),
            about: About::Arguments,
            paths: Vec::new(),
            handler: None,
            preview: None,
            schema: Schema::default(),
        }
    }

    /// As somebody outside the daemon describes one.
    pub fn provided(tool: &ProvidedTool) -> Self {
        let new = Self::new(&tool.name, &tool.description).params(tool.params.clone());
        let new = tool
            .required
            .iter()
            .fold(new, |new, name| new.required(name));
        tool.aliases.iter().fold(new, |new, name| new.alias(name))
    }

    /// A parameter with its JSON Schema.
    #[must_use]
    pub fn param(mut self, name: &str, schema: Value) -> Self {
        self.params.insert(name.to_owned(), schema);
        self.rename(name);
        self
    }

    #[must_use]
    pub fn params(mut self, params: Map<String, Value>) -> Self {
        let names: Vec<String> = params.keys().cloned().collect();
        self.params.extend(params);
        for name in names {
            self.rename(&name);
        }
        self
    }

    fn rename(&mut self, name: &str) {
        let fits = |name: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            (1..=PARAMETER).contains(&name.len()) && name.chars().all(is_plain)
        };
        if fits(name) {
            return;
        }
        let plain: String = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let plain = &plain[..plain.len().min(PARAMETER - 4)];
        let free = |shown: &String| {
            fits(shown) && !self.params.contains_key(shown) && !self.renamed.contains_key(shown)
        };
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let shown = std::iter::once(plain.to_owned()).chain(numbered).find(free);
        if let Some(shown) = shown {
            self.renamed.insert(shown, name.to_owned());
        }
    }

    #[must_use]
    pub fn required(mut self, name: &str) -> Self {
        self.required.push(name.to_owned());
        self
    }

    /// Members of the schema's root beside `type`, `properties` and `required`.
    #[must_use]
    pub fn beside(mut self, members: Map<String, Value>) -> Self {
        self.beside = members;
        self
    }

    /// An argument that is null counts as one that was not given.
    #[must_use]
    pub fn null_is_nothing(mut self) -> Self {
        self.null = Null::Nothing;
        self
    }

    #[must_use]
    pub fn alias(mut self, name: &str) -> Self {
        self.aliases.push(name.to_owned());
        self
    }

    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = AccessBy::Always(access);
        self
    }

    /// For a tool whose access depends on what it is asked.
    #[must_use]
    pub fn access_by(mut self, access: AccessOf) -> Self {
        self.access = AccessBy::Arguments(access);
        self
    }

    /// This parameter is a line for a shell: rules are matched against each of its commands.
    #[must_use]
    pub fn shell(mut self, param: &'static str) -> Self {
        self.about = About::Shell(param);
        self
    }

    /// These parameters, joined by spaces, are what rules are matched against (`git`: command and args; `fetch`: url).
    #[must_use]
    pub fn words(mut self, params: &'static [&'static str]) -> Self {
        self.about = About::Words(params);
        self
    }

    /// This parameter is a path (or a glob of paths), relative to the session's directory; absent it is that directory.
    /// Rules are matched against it, and a call that leaves the directory asks. May be given several times.
    #[must_use]
    pub fn path(mut self, param: &'static str) -> Self {
        self.paths.push(param);
        self
    }

    /// What is told of a call to people before it runs, where its arguments alone do not say it.
    #[must_use]
    pub fn preview(mut self, preview: Preview) -> Self {
        self.preview = Some(preview);
        self
    }

    /// The folder that it comes from, where its source has several.
    #[must_use]
    pub fn root(mut self, root: &Path) -> Self {
        self.root = Some(root.display().to_string());
        self
    }

    /// `builtin`, `script`, `plugin NAME`, `mcp NAME`, `client`.
    #[must_use]
    pub fn source(mut self, source: &str) -> Self {
        source.clone_into(&mut self.source);
        self
    }

    #[must_use]
    pub fn handler(mut self, handler: impl Handler + 'static) -> Self {
        self.handler = Some(Sealed::new(handler));
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// JSON Schema properties.
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.params
    }

    pub fn required_parameters(&self) -> &[String] {
        &self.required
    }

    /// As declared; a toolbox may have given one to a later tool.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    pub fn origin(&self) -> &str {
        &self.source
    }

    /// As a toolbox, the part of its source that lies in one folder: `script FOLDER`.
    pub fn part(&self) -> Option<String> {
        let root = self.root.as_ref()?;
        Some(format!("{} {root}", self.source))
    }

    /// What a call with these arguments does to the world.
    pub fn access_of(&self, arguments: &Map<String, Value>) -> Access {
        match self.access {
            AccessBy::Always(access) => access,
            AccessBy::Arguments(of) => of(arguments),
        }
    }

    pub fn definition(&self) -> Definition {
        Definition {
            kind: FunctionTag::Function,
            function: Function {
                name: self.name.clone(),
                description: self.description.clone(),
                parameters: self.schema_value(),
            },
        }
    }

    /// As `definition`, with names of parameters that every vendor takes.
    pub fn presented(&self) -> Definition {
        let mut definition = self.definition();
        let parameters = &mut definition.function.parameters;
        for (shown, own) in &self.renamed {
            if let Some(properties) = parameters["properties"].as_object_mut() {
                let renamed = |(name, schema)| match name == *own {
                    true => (shown.clone(), schema),
                    false => (name, schema),
                };
                *properties = std::mem::take(properties)
                    .into_iter()
                    .map(renamed)
                    .collect();
            }
            let required = parameters.get_mut("required");
            for name in required.and_then(Value::as_array_mut).into_iter().flatten() {
                if name == own {
                    *name = shown.as_str().into();
                }
            }
        }
        definition
    }

    /// Arguments by the names that the tool knows them by.
    pub(super) fn own_names(&self, arguments: Value) -> Value {
        match arguments {
            Value::Object(arguments) => {
                let own = |name: String| self.renamed.get(&name).cloned().unwrap_or(name);
                let given =
                    |(_, value): &(String, Value)| self.null == Null::Value || !value.is_null();
                let arguments = arguments.into_iter().filter(given);
                Value::Object(arguments.map(|(name, value)| (own(name), value)).collect())
            }
            other => other,
        }
    }

    /// What is wrong with the arguments, in one line.
    pub fn validate(&self, arguments: &Value) -> Result<(), String> {
        let validated = self.schema.validate(|| self.schema_value(), arguments);
        validated.map_err(|why| self.told(arguments).unwrap_or(why))
    }

    /// The same by the names that a model knows, where those are others.
    fn told(&self, arguments: &Value) -> Option<String> {
        if self.renamed.is_empty() {
            return None;
        }
        let given = arguments.as_object()?.iter();
        let given: Map<_, _> = given
            .map(|(name, value)| (self.shown(name).to_owned(), value.clone()))
            .collect();
        let schema = || self.presented().function.parameters;
        Schema::default()
            .validate(schema, &Value::Object(given))
            .err()
    }

    /// What models call a parameter.
    pub fn shown<'n>(&'n self, own: &'n str) -> &'n str {
        let mut renamed = self.renamed.iter();
        let found = renamed.find(|(_, known)| *known == own);
        found.map_or(own, |(shown, _)| shown)
    }

    /// Why it cannot be called at all.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("a tool needs a name".to_owned());
        }
        // Vendors refuse a whole request for one name, and then no turn of the session works.
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.name.len() > NAME || !self.name.chars().all(fits) {
            let shown: String = self.name.chars().take(2 * NAME).collect();
            return Err(format!(
                "the tool {shown:?} cannot be called that: a name has at most {NAME} of the letters a to z and A to Z, digits, _ and -"
            ));
        }
        if self.description.len() > DESCRIPTION {
            return Err(format!(
                "the tool {:?} has a description of {} bytes: it may have {DESCRIPTION}",
                self.name,
                self.description.len()
            ));
        }
        if self.handler.is_none() {
            return Err(format!("the tool {:?} has no handler", self.name));
        }
        self.schema.check(|| self.schema_value()).map_err(|why| {
            format!(
                "the tool {:?} has a schema that cannot be used: {why}",
                self.name
            )
        })
    }

    fn schema_value(&self) -> Value {
        let mut schema =
            json!({"type": "object", "properties": self.params, "required": self.required});
        if let Some(root) = schema.as_object_mut() {
            for (name, value) in &self.beside {
                root.entry(name.clone()).or_insert_with(|| value.clone());
            }
            // Where nothing is required, the draft 4 has that said by nothing.
            let is_old = root
                .get("$schema")
                .and_then(Value::as_str)
                .is_some_and(|draft| draft.contains("draft-04"));
            if is_old && self.required.is_empty() {
                root.remove("required");
            }
        }
        schema
    }
}
