//! The properties of a function's one argument: from its own block, or from the typedef that its `@param` names.

use super::jsdoc::{Block, Tag};
use super::jstype::{Known, Type, closing, read_argument, read_type};
use super::literal;
use super::{Declaration, Problem};
use crate::toolbox::source::script::{is_whole as is_whole_number, trimmed};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::collections::HashMap;

/// What the schemas of typedefs may take, where they stand in others: each time that one is named it is there again.
const TYPEDEFS: usize = 64 * 1024;

/// What a look at one counts for beside that.
const LOOK: usize = 64;

/// Typedefs of a whole file by name; the first of a name.
pub(super) struct Typedefs<'b> {
    by_name: HashMap<&'b str, &'b Block>,
    /// Blocks that say what functions of a name take.
    callbacks: HashMap<&'b str, &'b Block>,
    /// Bytes.
    left: Cell<usize>,
}

impl<'b> Typedefs<'b> {
    pub(super) fn of(blocks: &'b [Block]) -> Self {
        let (mut by_name, mut callbacks) = (HashMap::new(), HashMap::new());
        for block in blocks {
            if let Some(name) = callback(block) {
                callbacks.entry(name).or_insert(block);
            }
            if let Some(name) = typedef(block) {
                by_name.entry(name).or_insert(block);
            }
        }
        Self {
            by_name,
            callbacks,
            left: Cell::new(TYPEDEFS),
        }
    }

    /// What a name stands for; `inside` are the names on the way here, so that a ring of them ends.
    fn kind(&self, name: &str, inside: &[&str]) -> Option<Type> {
        let block = self.by_name.get(name)?;
        if inside.contains(&name) || inside.len() > 8 {
            return None;
        }
        // Paid before, as most of a ring's cost is looking.
        self.left.set(self.left.get().checked_sub(LOOK)?);
        let inside = [inside, &[name]].concat();
        let known = |name: &str| self.kind(name, &inside);
        let properties = entries(block, PROPERTY, &known).ok()?;
        let kind = match properties.is_empty() {
            true => read_type(meant(block)?.0, &known).ok()?,
            false => Type::of(object(nested(properties).ok()?)),
        };
        let weight = kind.schema.to_string().len();
        self.left.set(self.left.get().checked_sub(weight)?);
        Some(kind)
    }
}

fn object(entries: Vec<Entry>) -> Value {
    let required = entries.iter().filter(|one| one.required);
    let required: Vec<_> = required.map(|one| Value::from(one.path.as_str())).collect();
    let properties: Map<_, _> = entries
        .into_iter()
        .map(|one| (one.path, one.schema))
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

const PROPERTY: &[&str] = &["property", "prop"];
const PARAM: &[&str] = &["param", "arg", "argument"];

/// `@typedef {type} Name`, or the name alone: then its type or its properties stand in tags of their own.
fn typedef(block: &Block) -> Option<&str> {
    let tag = block.tags.iter().find(|tag| tag.name == "typedef")?;
    let rest = match tag.body.starts_with('{') {
        true => braces(&tag.body)?.1,
        false => &tag.body,
    };
    rest.split_whitespace().next()
}

/// The type that a typedef's block says it is, and the line that does.
fn meant(block: &Block) -> Option<(&str, usize)> {
    let mut tags = block.tags.iter();
    tags.find_map(|tag| match tag.name.as_str() {
        "typedef" | "type" => Some((braces(&tag.body)?.0, tag.line)),
        _ => None,
    })
}

fn callback(block: &Block) -> Option<&str> {
    let tag = block.tags.iter().find(|tag| tag.name == "callback")?;
    tag.body.split_whitespace().next()
}

/// Puts what the block says about the argument into the declaration; `parameters` are the function's own names.
pub(super) fn fill(
    declaration: &mut Declaration,
    doc: &Block,
    parameters: &[&str],
    typedefs: &Typedefs<'_>,
) -> Result<(), Problem> {
    let known = |name: &str| typedefs.kind(name, &[]);
    let mut params = entries(doc, PARAM, &known)?;
    if params.is_empty() {
        params = of_type(doc, typedefs, &known)?;
    }
    let own = entries(doc, PROPERTY, &known)?;
    let named = params
        .first()
        .and_then(|param| typedefs.by_name.get(param.kind.name()?));
    let named = named.map(|block| entries(block, PROPERTY, &known));
    let entries = match (own.is_empty(), named.transpose()?) {
        (false, _) => own,
        (true, Some(named)) if !named.is_empty() => named,
        (true, _) => {
            by_name(&declaration.function, &params, parameters)?;
            is_told(&params, parameters, typedefs, &known)?;
            of_params(params, parameters)
        }
    };
    for entry in nested(entries)? {
        declaration.property(&entry.path, entry.schema, entry.required);
    }
    Ok(())
}

/// The argument of the function that `@type` says it is: there, or where the name stands that it says.
fn of_type(doc: &Block, typedefs: &Typedefs<'_>, known: Known<'_>) -> Result<Vec<Entry>, Problem> {
    let says = |tag: &&Tag| ["type", "satisfies"].contains(&tag.name.as_str());
    let Some(tag) = doc.tags.iter().find(says) else {
        return Ok(Vec::new());
    };
    let mut text = braces(&tag.body).map_or("", |(text, _)| text).trim();
    // A name may stand for another one.
    for _ in 0..8 {
        if let Some(block) = typedefs.callbacks.get(text) {
            return entries(block, PARAM, known);
        }
        match typedefs.by_name.get(text).and_then(|block| meant(block)) {
            Some((meant, _)) => text = meant.trim(),
            None => break,
        }
    }
    let argument = read_argument(text, known).map(|kind| Entry {
        path: "args".to_owned(),
        schema: kind.schema.clone(),
        required: true,
        kind,
        line: tag.line,
    });
    let is_record = |entry: &Entry| entry.schema["properties"].is_object();
    Ok(argument.into_iter().filter(is_record).collect())
}

/// A function gets one object: a parameter of its own that is told to be a simple value would be that object.
fn by_name(function: &str, params: &[Entry], parameters: &[&str]) -> Result<(), Problem> {
    const SIMPLE: &[&str] = &["string", "number", "integer", "boolean", "array"];
    let is_simple = |param: &&Entry| {
        let kind = param.schema["type"].as_str();
        kind.is_some_and(|kind| SIMPLE.contains(&kind)) || param.schema["enum"].is_array()
    };
    let by_position = |param: &&Entry| parameters.contains(&param.path.as_str());
    let Some(param) = params.iter().filter(is_simple).find(by_position) else {
        return Ok(());
    };
    let names: Vec<_> = params.iter().map(|param| param.path.as_str()).collect();
    let message = format!(
        "{function} is called with one object, so its parameter {} would not be what @param says; take them by name: {function}({{ {} }})",
        param.path,
        names.join(", ")
    );
    Err(Problem::new(param.line, message))
}

/// Of an argument whose type is only a name everything is lost where that name says nothing.
fn is_told(
    params: &[Entry],
    parameters: &[&str],
    typedefs: &Typedefs<'_>,
    known: Known<'_>,
) -> Result<(), Problem> {
    let Some(first) = params
        .first()
        .filter(|first| is_whole(first, params, parameters))
    else {
        return Ok(());
    };
    let Some(name) = first.kind.name() else {
        return Ok(());
    };
    let prefix = format!("{}.", first.path);
    let is_record = first.schema["type"] == "object";
    if is_record || params.iter().any(|param| param.path.starts_with(&prefix)) {
        return Ok(());
    }
    let block = typedefs.by_name.get(name);
    if let Some((text, line)) = block.and_then(|block| meant(block)) {
        read_type(text, known).map_err(|why| Problem::new(line, why))?;
    }
    let why = match (block, name) {
        (Some(_), _) => format!("the typedef {name} names no property"),
        (None, "import") => "its type is another file's".to_owned(),
        (None, _) => format!("no typedef in this file is called {name}"),
    };
    let message = format!(
        "what {} holds is not told: {why}; describe it by a @typedef with @property here, or by @param {{type}} {0}.name",
        first.path
    );
    Err(Problem::new(first.line, message))
}

/// Whether the first parameter stands for the function's one argument, not for a property of it.
fn is_whole(first: &Entry, params: &[Entry], parameters: &[&str]) -> bool {
    params.len() == 1 || parameters.contains(&first.path.as_str())
}

/// `args.a` is the property a, where args is the first parameter; without dots the parameters themselves are meant.
fn of_params(params: Vec<Entry>, parameters: &[&str]) -> Vec<Entry> {
    let Some(first) = params.first().map(|first| first.path.clone()) else {
        return params;
    };
    let prefix = format!("{first}.");
    let is_inside = |param: &Entry| param.path.starts_with(&prefix);
    if !params.iter().any(is_inside) {
        let is_object =
            |param: &Entry| param.schema["type"] == "object" || param.kind.name().is_some();
        let is_only = params.len() == 1;
        let is_one = |param: &Entry| is_only || parameters.contains(&param.path.as_str());
        return match params.first() {
            Some(first) if is_one(first) && first.schema["properties"].is_object() => {
                members(first)
            }
            _ => params
                .into_iter()
                .filter(|param| !(is_object(param) && is_one(param)))
                .collect(),
        };
    }
    let inside = params.into_iter().filter(is_inside);
    inside
        .map(|mut param| {
            param.path = param.path[prefix.len()..].to_owned();
            param
        })
        .collect()
}

/// The properties of a record that stands in the place of the whole argument.
fn members(whole: &Entry) -> Vec<Entry> {
    let properties = whole.schema["properties"].as_object();
    let is_required = |name: &String| {
        let required = whole.schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|known| known == name))
    };
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Entry {
            path: name.clone(),
            schema: schema.clone(),
            required: is_required(name),
            kind: whole.kind.clone(),
            line: whole.line,
        })
        .collect()
}

/// One `@property` or `@param`.
struct Entry {
    path: String,
    schema: Value,
    required: bool,
    kind: Type,
    line: usize,
}

fn entries(block: &Block, tags: &[&str], known: Known<'_>) -> Result<Vec<Entry>, Problem> {
    let tags = block
        .tags
        .iter()
        .filter(|tag| tags.contains(&tag.name.as_str()));
    tags.map(|tag| entry(tag, known)).collect()
}

fn entry(tag: &Tag, known: Known<'_>) -> Result<Entry, Problem> {
    let without = || Problem::new(tag.line, format!("@{} without {{type}}", tag.name));
    let (kind, rest) = braces(&tag.body).ok_or_else(without)?;
    let rest = rest.trim_start();
    let (name, text) = name(rest)
        .ok_or_else(|| Problem::new(tag.line, format!("@{} without a name", tag.name)))?;
    let mut kind = read_type(kind, known).map_err(|why| Problem::new(tag.line, why))?;
    let (name, default) = match name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
    {
        Some(inner) => {
            kind.optional = true;
            match inner.split_once('=') {
                Some((name, default)) => (name, Some(default.trim())),
                None => (inner, None),
            }
        }
        None => (name, None),
    };
    let bare = name.trim().trim_end_matches('?');
    let required = !kind.optional && bare == name.trim();
    let mut schema = kind.schema.clone();
    let default = default.filter(|default| !default.is_empty());
    if let Some(default) = default.and_then(|default| default_of(default, &kind.schema)) {
        insert(&mut schema, "default", default);
    }
    let description = described(text);
    if !description.is_empty() {
        insert(&mut schema, "description", description.into());
    }
    Ok(Entry {
        path: bare.to_owned(),
        schema,
        required,
        kind,
        line: tag.line,
    })
}

fn insert(schema: &mut Value, key: &str, value: Value) {
    if let Value::Object(schema) = schema {
        schema.insert(key.to_owned(), value);
    }
}

/// The text in the braces that a tag begins with, and what follows them.
fn braces(body: &str) -> Option<(&str, &str)> {
    let inner = body.trim_start().strip_prefix('{')?;
    let end = closing(inner)?;
    inner[end..]
        .starts_with('}')
        .then(|| (&inner[..end], &inner[end + 1..]))
}

/// The name, in brackets where it is optional, and what follows it.
fn name(rest: &str) -> Option<(&str, &str)> {
    let end = if let Some(inner) = rest.strip_prefix('[') {
        closing(inner)? + 2
    } else {
        rest.find(char::is_whitespace).unwrap_or(rest.len())
    };
    (end > 0).then(|| rest.split_at(end))
}

/// Without the dash that sets a description off.
fn described(text: &str) -> String {
    let text = trimmed(text.lines());
    match text.strip_prefix('-') {
        Some("") => String::new(),
        Some(rest) if rest.starts_with(char::is_whitespace) => rest.trim().to_owned(),
        _ => text,
    }
}

/// The value that a default is, where the type allows it; none for what is only known when the script runs.
fn default_of(default: &str, schema: &Value) -> Option<Value> {
    const NOTHING: &[&str] = &["undefined", "null", "NaN", "Infinity", "-Infinity"];
    if NOTHING.contains(&default) {
        return None;
    }
    if let Some(value) = literal::read(default)
        && allows(schema, &value)
    {
        return Some(value);
    }
    // A text needs no quotes here.
    let is_quoted = default.starts_with(['"', '\'', '`']);
    let is_text = !is_quoted && !is_expression(default);
    let text = Value::from(default);
    (is_text && allows(schema, &text)).then_some(text)
}

/// A call, a function, or something new.
fn is_expression(text: &str) -> bool {
    let called = text.split('(').next().unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || "_$.".contains(c);
    let is_call = text.ends_with(')') && !called.is_empty() && called.chars().all(is_name);
    is_call || text.starts_with("new ") || text.contains("=>")
}

/// Whether a value is of the type, as far as that is told.
fn allows(schema: &Value, value: &Value) -> bool {
    if let Some(all) = schema["anyOf"].as_array() {
        return all.iter().any(|one| allows(one, value));
    }
    if let Some(choices) = schema["enum"].as_array() {
        return choices.contains(value);
    }
    match (schema["type"].as_str(), value) {
        (Some("string"), value) => value.is_string(),
        (Some("boolean"), value) => value.is_boolean(),
        (Some("integer"), value) => is_whole_number(value),
        (Some("number"), value) => value.is_number(),
        (Some("object"), Value::Object(members)) => members.iter().all(|(name, member)| {
            let inner = &schema["properties"][name];
            inner.is_null() || allows(inner, member)
        }),
        (Some("object"), _) => false,
        (Some("array"), Value::Array(items)) => {
            items.iter().all(|item| allows(&schema["items"], item))
        }
        (Some("array"), _) => false,
        _ => true,
    }
}

/// Puts `o.name` into `o` and `list[].name` into the items of `list`.
fn nested(entries: Vec<Entry>) -> Result<Vec<Entry>, Problem> {
    let mut top: Vec<Entry> = Vec::new();
    for entry in entries {
        if top.iter().any(|known| known.path == entry.path) {
            let message = format!("the property {} is declared twice", entry.path);
            return Err(Problem::new(entry.line, message));
        }
        let parent = entry.path.split_once('.').and_then(|(parent, path)| {
            let name = parent.trim_end_matches("[]");
            let parent = top.iter_mut().find(|known| known.path == name)?;
            Some((&mut parent.schema, path.to_owned()))
        });
        match parent {
            Some((schema, path)) => put(schema, &path, entry)?,
            None => top.push(entry),
        }
    }
    Ok(top)
}

fn put(schema: &mut Value, path: &str, entry: Entry) -> Result<(), Problem> {
    let schema = match schema["type"] == "array" {
        true => &mut schema["items"],
        false => schema,
    };
    if !schema.is_object() {
        *schema = Value::Object(Map::new());
    }
    if schema["properties"].is_null() {
        schema["type"] = "object".into();
        schema["properties"] = json!({});
        schema["required"] = json!([]);
    }
    if let Some((parent, rest)) = path.split_once('.') {
        let parent = parent.trim_end_matches("[]");
        return put(&mut schema["properties"][parent], rest, entry);
    }
    if !schema["properties"][path].is_null() {
        let message = format!("the property {path} is declared twice");
        return Err(Problem::new(entry.line, message));
    }
    schema["properties"][path] = entry.schema;
    if entry.required
        && let Some(required) = schema["required"].as_array_mut()
    {
        required.push(path.into());
    }
    Ok(())
}
