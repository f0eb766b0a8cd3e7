//! JSON Schemas as types of TypeScript. Pure, and total: what has no type there is `any`, which is never wrong.

use serde_json::{Map, Value};

/// How deep types may stand in each other; what is deeper is `any`.
const DEEPEST: usize = 10;
/// How wide an object may be on one line.
const LINE: usize = 80;
/// The description of a member beyond this is cut.
const LONGEST: usize = 300;
/// How many members of a union are told.
const UNION: usize = 60;

/// The type of what a schema takes; `indent` is how far the line is in that it begins on.
pub(super) fn of(schema: &Value, indent: usize) -> String {
    let types = Types { root: schema };
    types
        .of(
            schema,
            &Place {
                indent,
                depth: 0,
                within: &[],
            },
        )
        .text
}

/// A name as a member has it.
pub(super) fn property(name: &str) -> String {
    let mut letters = name.chars();
    let starts = |c: char| c.is_ascii_alphabetic() || "_$".contains(c);
    let plain =
        letters.next().is_some_and(starts) && letters.all(|c| starts(c) || c.is_ascii_digit());
    if plain {
        name.to_owned()
    } else {
        literal(name)
    }
}

/// A line of comment, if there is anything to say.
pub(super) fn comment(text: &str, longest: usize, indent: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return String::new();
    }
    let mut end = words
        .char_indices()
        .nth(longest)
        .map_or(words.len(), |(at, _)| at);
    let more = if end < words.len() { "..." } else { "" };
    end = words[..end].trim_end().len();
    let words = words[..end].replace("*/", "*\\/");
    format!("{}/** {words}{more} */\n", pad(indent))
}

fn literal(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn pad(indent: usize) -> String {
    "  ".repeat(indent)
}

/// What binds how tightly, so that what needs parentheses has some.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binds {
    Union,
    Both,
    Tight,
}

struct Type {
    text: String,
    binds: Binds,
}

impl Type {
    fn tight(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            binds: Binds::Tight,
        }
    }

    fn any() -> Self {
        Self::tight("any")
    }

    fn at_least(self, binds: Binds) -> String {
        match self.binds >= binds {
            true => self.text,
            false => format!("({})", self.text),
        }
    }

    /// Any of these. `any` takes in all others, which are dropped then.
    fn union(all: Vec<Self>) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for one in all {
            let text = one.at_least(Binds::Both);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        match texts.as_slice() {
            [] => Self::tight("never"),
            _ if texts.iter().any(|text| text == "any") => Self::any(),
            [_] => Self {
                text: texts.remove(0),
                binds: Binds::Both,
            },
            _ => Self {
                text: texts.join(" | "),
                binds: Binds::Union,
            },
        }
    }

    /// All of these at once. `any` says nothing beside others.
    fn both(mut all: Vec<Self>) -> Self {
        all.retain(|one| one.text != "any");
        if all.len() < 2 {
            return all.pop().unwrap_or_else(Self::any);
        }
        let mut texts: Vec<String> = Vec::new();
        for one in all {
            let text = one.at_least(Binds::Tight);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        Self {
            text: texts.join(" & "),
            binds: Binds::Both,
        }
    }
}

/// Where in a type we are.
struct Place<'a> {
    indent: usize,
    depth: usize,
    /// References that are being followed.
    within: &'a [&'a str],
}

impl Place<'_> {
    fn deeper(&self) -> Self {
        Self {
            depth: self.depth + 1,
            ..*self
        }
    }

    fn inside(&self) -> Self {
        Self {
            indent: self.indent + 1,
            depth: self.depth + 1,
            ..*self
        }
    }
}

struct Types<'s> {
    /// What references point into.
    root: &'s Value,
}

impl Types<'_> {
    fn of(&self, schema: &Value, place: &Place<'_>) -> Type {
        let schema = match schema {
            Value::Bool(false) => return Type::tight("never"),
            Value::Object(schema) if place.depth <= DEEPEST => schema,
            _ => return Type::any(),
        };
        let mut parts = Vec::new();
        if let Some(Value::String(reference)) = schema.get("$ref") {
            parts.push(self.referred(reference, place));
        }
        if let Some(value) = schema.get("const") {
            parts.push(constant(value));
        } else if let Some(Value::Array(values)) = schema.get("enum") {
            parts.push(values_of(values));
        } else {
            parts.push(self.typed(schema, place));
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(Value::Array(all)) = schema.get(union) {
                let each = all.iter().map(|one| self.of(one, &place.deeper()));
                parts.push(Type::union(each.collect()));
            }
        }
        if let Some(Value::Array(all)) = schema.get("allOf") {
            parts.extend(all.iter().map(|one| self.of(one, &place.deeper())));
        }
        let whole = Type::both(parts);
        match schema.get("nullable") {
            Some(Value::Bool(true)) => Type::union(vec![whole, Type::tight("null")]),
            _ => whole,
        }
    }

    fn referred(&self, reference: &str, place: &Place<'_>) -> Type {
        let pointer = reference
            .strip_prefix('#')
            .map(|pointer| pointer.replace("%25", "%"));
        let schema = pointer.and_then(|pointer| self.root.pointer(&pointer));
        match schema {
            Some(schema) if !place.within.contains(&reference) => {
                let within: Vec<&str> = place.within.iter().copied().chain([reference]).collect();
                let depth = place.depth + 1;
                self.of(
                    schema,
                    &Place {
                        within: &within,
                        depth,
                        ..*place
                    },
                )
            }
            // It contains itself, or is elsewhere.
            Some(_) | None => Type::any(),
        }
    }

    fn typed(&self, schema: &Map<String, Value>, place: &Place<'_>) -> Type {
        let has = |names: &[&str]| names.iter().any(|name| schema.contains_key(*name));
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, schema, place),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                Type::union(names.map(|name| self.named(name, schema, place)).collect())
            }
            _ if has(&[
                "properties",
                "required",
                "additionalProperties",
                "patternProperties",
            ]) =>
            {
                self.object(schema, place)
            }
            _ if has(&["items", "prefixItems"]) => self.array(schema, place),
            _ => Type::any(),
        }
    }

    fn named(&self, name: &str, schema: &Map<String, Value>, place: &Place<'_>) -> Type {
        match name {
            "string" | "boolean" | "null" => Type::tight(name),
            "number" | "integer" => Type::tight("number"),
            "array" => self.array(schema, place),
            "object" => self.object(schema, place),
            _ => Type::any(),
        }
    }

    fn array(&self, schema: &Map<String, Value>, place: &Place<'_>) -> Type {
        let list = |items: &Value| {
            format!(
                "{}[]",
                self.of(items, &place.deeper()).at_least(Binds::Tight)
            )
        };
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), rest) => (first, rest),
            // As older schemas have it.
            (_, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
            (_, Some(items)) => return Type::tight(list(items)),
            (_, None) => return Type::tight("any[]"),
        };
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let item = |(at, item): (usize, &Value)| {
            let item = self.of(item, &place.deeper()).at_least(Binds::Tight);
            if (at as u64) < least {
                item
            } else {
                format!("{item}?")
            }
        };
        let mut items: Vec<String> = first.iter().enumerate().map(item).collect();
        match rest {
            Some(Value::Bool(false)) => {}
            Some(rest) => items.push(format!("...{}", list(rest))),
            None => items.push("...any[]".to_owned()),
        }
        Type::tight(format!("[{}]", items.join(", ")))
    }

    fn object(&self, schema: &Map<String, Value>, place: &Place<'_>) -> Type {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let none = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let mut members: Vec<Member> = Vec::new();
        for (name, property_schema) in properties {
            let optional = if required.contains(&name.as_str()) {
                ""
            } else {
                "?"
            };
            let inner = self.of(property_schema, &place.inside()).text;
            members.push(Member {
                comment: described(property_schema, place.indent + 1),
                text: format!("{}{optional}: {inner}", property(name)),
            });
        }
        let undescribed = required
            .iter()
            .filter(|name| !properties.contains_key(**name));
        let plain = |text: String| Member {
            comment: String::new(),
            text,
        };
        members.extend(undescribed.map(|name| plain(format!("{}: any", property(name)))));
        members.extend(self.others(schema, members.is_empty(), place).map(plain));
        Type::tight(laid_out(&members, place.indent))
    }

    /// Members of any name.
    fn others(
        &self,
        schema: &Map<String, Value>,
        alone: bool,
        place: &Place<'_>,
    ) -> Option<String> {
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let of_names = match (schema.get("additionalProperties"), patterns) {
            (Some(Value::Bool(false)) | None, None) => return None,
            (Some(others @ Value::Object(_)), None) => self.of(others, &place.inside()).text,
            (Some(Value::Bool(false)) | None, Some(patterns)) => {
                let each = patterns.values().map(|one| self.of(one, &place.inside()));
                Type::union(each.collect()).text
            }
            _ => "any".to_owned(),
        };
        // Beside members of their own types this one would have to take in all of them.
        let of_names = if alone { of_names } else { "any".to_owned() };
        Some(format!("[key: string]: {of_names}"))
    }
}

struct Member {
    comment: String,
    text: String,
}

fn laid_out(members: &[Member], indent: usize) -> String {
    if members.is_empty() {
        return "{}".to_owned();
    }
    let texts: Vec<&str> = members.iter().map(|member| member.text.as_str()).collect();
    let line = format!("{{ {} }}", texts.join("; "));
    let is_short = line.len() <= LINE && !line.contains('\n');
    if is_short && members.iter().all(|member| member.comment.is_empty()) {
        return line;
    }
    let inner = pad(indent + 1);
    let each = members
        .iter()
        .map(|Member { comment, text }| format!("{comment}{inner}{text};\n"));
    format!("{{\n{}{}}}", each.collect::<String>(), pad(indent))
}

fn described(schema: &Value, indent: usize) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    match schema.get("default") {
        Some(default) if !default.is_null() => {
            comment(&format!("{text} Default: {default}"), LONGEST, indent)
        }
        _ => comment(text, LONGEST, indent),
    }
}

fn values_of(values: &[Value]) -> Type {
    let mut all: Vec<Type> = values.iter().take(UNION).map(constant).collect();
    if values.len() > UNION {
        let kind = |value: &Value| match value {
            Value::String(_) => "string",
            Value::Number(_) => "number",
            _ => "any",
        };
        all.extend(
            values
                .iter()
                .skip(UNION)
                .map(|value| Type::tight(kind(value))),
        );
    }
    Type::union(all)
}

fn constant(value: &Value) -> Type {
    Type::tight(match value {
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(_) => number.to_string(),
            None => "number".to_owned(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| constant(item).text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{}: {}", property(name), constant(value).text)
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{ {} }}", members.join("; "))
        }
    })
}
