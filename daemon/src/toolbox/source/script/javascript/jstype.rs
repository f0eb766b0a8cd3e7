//! Types as JSDoc writes them, as JSON Schemas. A type that nobody here knows allows everything.

use super::literal;
use crate::toolbox::source::script::{is_whole, of_parts};
use serde_json::{Map, Value, json};

/// Types inside types beyond this are no types that somebody wrote.
const DEPTH: usize = 32;

/// A type, and whether it may be left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Type {
    pub(super) schema: Value,
    pub(super) optional: bool,
    /// Of a type that is only named here.
    named: Option<String>,
}

impl Type {
    pub(super) fn of(schema: Value) -> Self {
        Self {
            schema,
            optional: false,
            named: None,
        }
    }

    /// Many of it.
    fn listed(self) -> Self {
        let items = match self.schema {
            Value::Null => json!({}),
            schema => schema,
        };
        Self::of(json!({"type": "array", "items": items}))
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.named.as_deref()
    }
}

/// What a name stands for that is no type of the language.
pub(super) type Known<'k> = &'k dyn Fn(&str) -> Option<Type>;

pub(super) fn read_type(text: &str, known: Known<'_>) -> Result<Type, String> {
    let text = &uncommented(text);
    let mut reader = Reader {
        rest: text,
        depth: 0,
        conditions: 0,
        known,
    };
    let kind = reader.union()?;
    match reader.rest.trim() {
        "" => Ok(kind),
        rest => Err(format!(
            "the type {{{text}}} cannot be read from {rest:?} on"
        )),
    }
}

/// The first argument of a function's type, `(args: T) => R` or `function(T): R`; None when it is another type.
pub(super) fn read_argument(text: &str, known: Known<'_>) -> Option<Type> {
    let text = uncommented(text);
    let text = text.trim();
    let bare = text.strip_prefix("function").map(str::trim_start);
    let inner = bare.unwrap_or(text).strip_prefix('(')?;
    let end = closing(inner)?;
    if bare.is_none() && !inner[end + 1..].trim_start().starts_with("=>") {
        return None;
    }
    let mut reader = Reader {
        rest: &inner[..end],
        depth: 0,
        conditions: 0,
        known,
    };
    reader.label();
    reader.union().ok()
}

/// Where what was opened before the text is closed. Texts in quotes and comments hold no brackets; a quote that does not
/// end within its line is none.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut skipped = 0;
    for (at, c) in text.char_indices() {
        if at < skipped {
            continue;
        }
        let rest = &text[at..];
        match c {
            '\'' | '"' | '`' => skipped = at + quoted(rest).unwrap_or(1),
            '/' if rest.starts_with("//") => skipped = at + rest.find('\n').unwrap_or(rest.len()),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return Some(at),
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// How long the text in quotes is that begins here.
fn quoted(text: &str) -> Option<usize> {
    let (_, rest) = literal::string(text)?;
    let length = text.len() - rest.len();
    let is_one_line = text.starts_with('`') || !text[..length].contains('\n');
    is_one_line.then_some(length)
}

/// Without the comments, each of which goes on to the end of its line.
fn uncommented(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        let length = quoted(rest).unwrap_or(c.len_utf8());
        bare.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    bare
}

/// What stands before a part of a tuple.
#[derive(Default)]
struct Label {
    rest: bool,
    optional: bool,
}

struct Reader<'t, 'k> {
    rest: &'t str,
    depth: usize,
    /// How many conditions are being read, in which a question mark is no part of a type.
    conditions: usize,
    known: Known<'k>,
}

impl<'t> Reader<'t, '_> {
    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.take(token) {
            true => Ok(()),
            false => Err(format!("a type lacks {token:?} before {:?}", self.rest)),
        }
    }

    fn union(&mut self) -> Result<Type, String> {
        self.parts().map(joined)
    }

    fn parts(&mut self) -> Result<Vec<Type>, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("a type is nested too deeply".to_owned());
        }
        self.take("|");
        let mut parts = vec![self.all_of()?];
        while self.take("|") {
            parts.push(self.all_of()?);
        }
        if self.extends() {
            parts = self.both_ends()?;
        }
        self.depth -= 1;
        Ok(parts)
    }

    /// `A & B`
    fn all_of(&mut self) -> Result<Type, String> {
        self.take("&");
        let mut parts = vec![self.one()?];
        while self.take("&") {
            parts.push(self.one()?);
        }
        Ok(match parts.len() {
            1 => parts.swap_remove(0),
            _ => merged(parts),
        })
    }

    fn extends(&mut self) -> bool {
        let before = self.rest;
        let found = self.word() == "extends";
        if !found {
            self.rest = before;
        }
        found
    }

    /// Goes on behind what closes the bracket that was just taken.
    fn skip(&mut self) -> Result<(), String> {
        let end = closing(self.rest).ok_or("a type has a bracket that is not closed")?;
        self.rest = &self.rest[end + 1..];
        Ok(())
    }

    /// The name before the type of a parameter or of a part of a tuple.
    fn label(&mut self) -> Label {
        let before = self.rest;
        let rest = self.take("...");
        let is_named = !self.word().is_empty();
        let optional = self.take("?");
        if is_named && self.take(":") {
            return Label { rest, optional };
        }
        self.rest = before;
        Label::default()
    }

    /// `[A, B]`, whose first bracket is taken.
    fn tuple(&mut self) -> Result<Type, String> {
        let (mut parts, mut least, mut open) = (Vec::new(), 0, false);
        while !self.take("]") {
            let label = self.label();
            let rest = self.take("...") || label.rest;
            let part = self.union()?;
            if rest {
                open = true;
                let items = part.schema.get("items").cloned();
                parts.push(Type::of(items.unwrap_or_else(|| json!({}))));
            } else {
                if !label.optional && !part.optional {
                    least = parts.len() + 1;
                }
                parts.push(part);
            }
            if !self.take(",") {
                self.expect("]")?;
                break;
            }
        }
        let schemas: Vec<_> = parts.iter().map(|part| part.schema.clone()).collect();
        let items = joined(parts).schema;
        Ok(Type::of(of_parts(items, schemas, least, open)))
    }

    /// What follows `A extends`: a condition that nobody here decides, so that both of its ends are meant.
    fn both_ends(&mut self) -> Result<Vec<Type>, String> {
        self.conditions += 1;
        let condition = self.all_of();
        self.conditions -= 1;
        condition?;
        self.expect("?")?;
        let mut ends = self.parts()?;
        self.expect(":")?;
        ends.extend(self.parts()?);
        Ok(ends)
    }

    fn is_function(&self) -> bool {
        let after = closing(self.rest).map(|end| self.rest[end + 1..].trim_start());
        after.is_some_and(|after| after.starts_with("=>"))
    }

    /// One that JSON cannot hold; a script that takes it takes anything.
    fn function(&mut self, returns: &str) -> Result<Type, String> {
        self.skip()?;
        if self.take(returns) {
            self.union()?;
        }
        Ok(Type::of(json!({})))
    }

    /// One behind a word or dots that say something of it.
    fn inner(&mut self) -> Result<Type, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("a type is nested too deeply".to_owned());
        }
        let kind = self.one();
        self.depth -= 1;
        kind
    }

    fn one(&mut self) -> Result<Type, String> {
        let nullable = self.take("?");
        self.rest = self.rest.trim_start();
        // Alone it stands for a type that nobody knows.
        if nullable
            && (self.rest.is_empty()
                || self
                    .rest
                    .starts_with(['|', '&', ',', ';', ')', ']', '}', '>']))
        {
            return Ok(Type::of(json!({})));
        }
        self.take("!");
        let mut kind = self.atom()?;
        loop {
            let is_index = self.rest.starts_with('[');
            if self.take("[]") {
                kind = kind.listed();
            } else if self.take("=") || (self.conditions == 0 && self.take("?")) {
                kind.optional = true;
            } else if is_index && self.take("[") {
                self.skip()?;
                kind = Type::of(json!({}));
            } else {
                break;
            }
        }
        kind.optional |= nullable;
        Ok(kind)
    }

    fn atom(&mut self) -> Result<Type, String> {
        if self.take("...") {
            let inner = self.inner()?;
            return Ok(inner.listed());
        }
        if self.take("[") {
            return self.tuple();
        }
        if self.take("(") {
            if self.is_function() {
                return self.function("=>");
            }
            let conditions = std::mem::take(&mut self.conditions);
            let inner = self.union()?;
            self.conditions = conditions;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("{") {
            return self.record();
        }
        if self.take("*") {
            return Ok(Type::of(json!({})));
        }
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(['"', '\'', '`']) {
            return self.literal();
        }
        self.name()
    }

    fn literal(&mut self) -> Result<Type, String> {
        let (text, rest) =
            literal::string(self.rest).ok_or("a type has a string that does not end")?;
        self.rest = rest;
        Ok(Type::of(json!({"enum": [text]})))
    }

    fn word(&mut self) -> &'t str {
        self.rest = self.rest.trim_start();
        let is_part = |c: char| c.is_alphanumeric() || "_$.-".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        // `Array.<T>`: the dot belongs to the bracket.
        let dotted = word.ends_with('.') && rest.starts_with('<');
        self.rest = rest;
        if dotted {
            &word[..word.len() - 1]
        } else {
            word
        }
    }

    fn name(&mut self) -> Result<Type, String> {
        let word = self.word();
        if word.is_empty() {
            return Err(format!("a type is missing before {:?}", self.rest));
        }
        match word {
            // What follows says only that nobody writes to it, or makes one.
            "readonly" | "unique" | "new" | "infer" if self.goes_on() => return self.inner(),
            "typeof" | "keyof" if self.goes_on() => {
                let of = self.inner()?;
                return Ok(Type {
                    named: Some(of.named.unwrap_or_else(|| word.to_owned())),
                    ..Type::of(json!({}))
                });
            }
            "function" | "Function" if self.take("(") => return self.function(":"),
            "import" if self.take("(") => {
                self.skip()?;
                self.word();
            }
            _ => {}
        }
        let arguments = if self.take("<") {
            self.arguments()?
        } else {
            Vec::new()
        };
        let kind = named(word, &arguments);
        let meant = kind.name().and_then(self.known);
        Ok(meant.map_or(kind, |meant| Type {
            named: Some(word.to_owned()),
            ..meant
        }))
    }

    /// Whether another type begins here.
    fn goes_on(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        let begins = |c: char| c.is_alphanumeric() || "_$([{'\"".contains(c);
        self.rest.starts_with(begins) && !self.rest.starts_with("[]")
    }

    fn arguments(&mut self) -> Result<Vec<Value>, String> {
        let mut arguments = vec![self.union()?.schema];
        while self.take(",") {
            arguments.push(self.union()?.schema);
        }
        self.expect(">")?;
        Ok(arguments)
    }

    fn record(&mut self) -> Result<Type, String> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let mut others = None;
        while !self.take("}") {
            self.rest = self.rest.trim_start();
            // `[key: string]: T`
            if self.take("[") {
                self.skip()?;
                self.expect(":")?;
                others = Some(self.union()?.schema);
                if !self.take(",") {
                    self.take(";");
                }
                continue;
            }
            let quoted = self.rest.starts_with(['"', '\'']);
            let name = if quoted {
                let (name, rest) =
                    literal::string(self.rest).ok_or("a type has a name that does not end")?;
                self.rest = rest;
                name
            } else {
                match self.word() {
                    "readonly" if self.goes_on() => self.word().to_owned(),
                    word => word.to_owned(),
                }
            };
            if name.is_empty() {
                return Err(format!("a type has no name before {:?}", self.rest));
            }
            let optional = self.take("?");
            let kind = if self.take("(") {
                self.function(":")?
            } else if self.take(":") {
                self.union()?
            } else {
                Type::of(json!({}))
            };
            if !optional && !kind.optional {
                required.push(Value::from(name.as_str()));
            }
            properties.insert(name, kind.schema);
            if !self.take(",") {
                self.take(";");
            }
        }
        let mut schema = match (properties.is_empty(), &others) {
            (true, Some(_)) => json!({"type": "object"}),
            _ => json!({"type": "object", "properties": properties, "required": required}),
        };
        if let Some(others) = others.filter(|others| !others.is_null()) {
            schema["additionalProperties"] = others;
        }
        Ok(Type::of(schema))
    }
}

/// What is all of several: records become one; of others the first that says something.
fn merged(parts: Vec<Type>) -> Type {
    let optional = parts.iter().all(|part| part.optional);
    // A record beside a text or a number is a mark that only the checker of types sees.
    let is_simple = |part: &Type| {
        let kind = part.schema["type"].as_str();
        kind.is_some_and(|kind| ["string", "number", "integer", "boolean"].contains(&kind))
    };
    if let Some(simple) = parts.iter().find(|part| is_simple(part)) {
        return Type {
            optional,
            ..Type::of(simple.schema.clone())
        };
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in &parts {
        let members = part.schema["properties"].as_object();
        for (name, schema) in members.into_iter().flatten() {
            properties.insert(name.clone(), schema.clone());
        }
        for name in part.schema["required"].as_array().into_iter().flatten() {
            if !required.contains(name) {
                required.push(name.clone());
            }
        }
    }
    let schema = match properties.is_empty() {
        false => json!({"type": "object", "properties": properties, "required": required}),
        true => {
            let says = |part: &Type| part.schema.as_object().is_some_and(|all| !all.is_empty());
            let first = parts.into_iter().find(says);
            first.map_or(json!({}), |part| part.schema)
        }
    };
    Type {
        optional,
        ..Type::of(schema)
    }
}

fn named(word: &str, arguments: &[Value]) -> Type {
    let schema = match (word.to_lowercase().as_str(), arguments) {
        ("string", []) => json!({"type": "string"}),
        ("boolean" | "bool", []) => json!({"type": "boolean"}),
        ("integer" | "int" | "bigint", []) => json!({"type": "integer"}),
        ("number" | "float" | "double", []) => json!({"type": "number"}),
        ("array" | "set" | "iterable", []) => json!({"type": "array", "items": {}}),
        ("array" | "readonlyarray" | "set" | "iterable", [items]) => {
            json!({"type": "array", "items": items})
        }
        ("object" | "map" | "record", []) => json!({"type": "object"}),
        ("object" | "map" | "record", [.., values]) => {
            json!({"type": "object", "additionalProperties": values})
        }
        ("date", []) => json!({"type": "string", "format": "date-time"}),
        ("true" | "false", []) => json!({"enum": [word.eq_ignore_ascii_case("true")]}),
        ("null" | "undefined" | "void", []) => {
            return Type {
                optional: true,
                ..Type::of(Value::Null)
            };
        }
        ("any" | "unknown" | "mixed", _) => json!({}),
        ("readonly" | "required" | "nonnullable" | "noinfer", [inner]) => inner.clone(),
        ("partial", [inner]) => {
            let mut inner = inner.clone();
            if inner["required"].is_array() {
                inner["required"] = json!([]);
            }
            inner
        }
        _ => match word
            .parse::<f64>()
            .ok()
            .and_then(|_| serde_json::from_str(word).ok())
        {
            Some(Value::Number(number)) => json!({"enum": [number]}),
            _ => {
                return Type {
                    named: Some(word.to_owned()),
                    ..Type::of(json!({}))
                };
            }
        },
    };
    Type::of(schema)
}

/// A union: nothing makes it optional, literals are choices, and what is left is one of several.
fn joined(parts: Vec<Type>) -> Type {
    let optional = parts.iter().any(|part| part.optional);
    let named = match parts.as_slice() {
        [only] => only.named.clone(),
        _ => None,
    };
    let mut choices = Vec::new();
    let mut schemas: Vec<Value> = Vec::new();
    for part in parts {
        match part.schema {
            Value::Null => {}
            Value::Object(mut schema) if is_choice(&schema) => {
                if let Some(Value::Array(values)) = schema.get_mut("enum") {
                    choices.append(values);
                }
            }
            schema => {
                for schema in alternatives(schema) {
                    if !schemas.contains(&schema) {
                        schemas.push(schema);
                    }
                }
            }
        }
    }
    if !choices.is_empty() {
        schemas.insert(0, choice(choices));
    }
    let schema = match schemas.len() {
        0 => json!({}),
        1 => schemas.swap_remove(0),
        _ => json!({"anyOf": schemas}),
    };
    Type {
        schema,
        optional,
        named,
    }
}

/// A union within a union is as if its parts stood there.
fn alternatives(mut schema: Value) -> Vec<Value> {
    match schema.get_mut("anyOf").map(Value::take) {
        Some(Value::Array(all)) => all,
        _ => vec![schema],
    }
}

/// Whether there is nothing in it but the values that there are.
fn is_choice(schema: &Map<String, Value>) -> bool {
    schema.contains_key("enum") && schema.keys().all(|key| key == "enum" || key == "type")
}

/// Values of one type say so.
fn choice(values: Vec<Value>) -> Value {
    let kind = if values.iter().all(Value::is_string) {
        "string"
    } else if values.iter().all(is_whole) {
        "integer"
    } else if values.iter().all(Value::is_number) {
        "number"
    } else if values.iter().all(Value::is_boolean) {
        "boolean"
    } else {
        return json!({"enum": values});
    };
    json!({"type": kind, "enum": values})
}
