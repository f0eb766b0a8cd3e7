//! The properties of a function's one argument: from its own block, or from the typedef that its `@param` names.

use super::jsdoc::{Block, Tag};
use super::jstype::{Known, Type, read_argument, read_type};
use super::{Declaration, Problem};
use crate::toolbox::source::script::trimmed;
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
            true => {
                let tag = block.tags.iter().find(|tag| tag.name == "typedef")?;
                read_type(braces(&tag.body)?.0, &known).ok()?
            }
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

fn typedef(block: &Block) -> Option<&str> {
    let tag = block.tags.iter().find(|tag| tag.name == "typedef")?;
    let (_, rest) = braces(&tag.body)?;
    rest.split_whitespace().next()
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
            of_params(params)
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
        let meant = typedefs.by_name.get(text).and_then(|block| {
            let tag = block.tags.iter().find(|tag| tag.name == "typedef")?;
            Some(braces(&tag.body)?.0.trim())
        });
        match meant {
            Some(meant) => text = meant,
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

/// `args.a` is the property a, where args is the first parameter; without dots the parameters themselves are meant.
fn of_params(params: Vec<Entry>) -> Vec<Entry> {
    let Some(first) = params.first().map(|first| first.path.clone()) else {
        return params;
    };
    let prefix = format!("{first}.");
    let is_inside = |param: &Entry| param.path.starts_with(&prefix);
    if !params.iter().any(is_inside) {
        let is_whole =
            |param: &Entry| param.schema["type"] == "object" || param.kind.name().is_some();
        return match params.as_slice() {
            [only] if only.schema["properties"].is_object() => members(only),
            _ => params
                .into_iter()
                .filter(|param| !is_whole(param))
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
    if let Some(default) = default.filter(|default| !default.is_empty()) {
        insert(&mut schema, "default", default_of(default, &kind.schema));
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
    let body = body.trim_start();
    let mut depth = 0_usize;
    for (at, c) in body.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
        if depth == 0 {
            return Some((&body[1..at], &body[at + 1..]));
        }
    }
    None
}

/// The name, in brackets where it is optional, and what follows it.
fn name(rest: &str) -> Option<(&str, &str)> {
    let end = if rest.starts_with('[') {
        let mut depth = 0_usize;
        let close = rest.char_indices().find(|(_, c)| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        close?.0 + 1
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

/// As JSON where it is some and the type is no string, else as text.
fn default_of(default: &str, schema: &Value) -> Value {
    let quoted = ['"', '\''].into_iter().find_map(|quote| {
        default
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    });
    match (quoted, serde_json::from_str(default)) {
        (Some(inner), _) => inner.into(),
        (None, Ok(value)) if schema["type"] != "string" => value,
        _ => default.into(),
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
