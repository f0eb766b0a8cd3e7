//! Names that a module gives to types: enumerations, records and aliases.

use super::super::tree::{field, named, slice};
use super::expression::{Expression, read as expression};
use super::literal;
use serde_json::Value;
use std::collections::HashMap;
use tree_sitter::Node;

#[derive(Default)]
pub(super) struct Names {
    choices: HashMap<String, Vec<(String, Value)>>,
    records: HashMap<String, Vec<Field>>,
    aliases: HashMap<String, String>,
}

/// One of a record's.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) hint: String,
    pub(super) default: Option<Value>,
    pub(super) required: bool,
}

impl Names {
    pub(super) fn of(statements: &[Node<'_>], text: &str) -> Self {
        let mut names = Self::default();
        for statement in statements {
            names.import(*statement, text);
        }
        for statement in statements {
            match statement.kind() {
                "class_definition" => names.class(*statement, text, false),
                "decorated_definition" => {
                    if let Some(class) = statement
                        .child_by_field_name("definition")
                        .filter(|node| node.kind() == "class_definition")
                    {
                        let above = &text[statement.start_byte()..class.start_byte()];
                        let is_data = names.meant(above).contains("dataclass");
                        names.class(class, text, is_data);
                    }
                }
                "expression_statement" => {
                    if let Some((name, value)) = assignment(*statement, text) {
                        names.aliases.insert(name.to_owned(), value.to_owned());
                    }
                }
                _ => {}
            }
        }
        names
    }

    /// What an enumeration's members stand for.
    pub(super) fn choices(&self, name: &str) -> Option<Vec<Value>> {
        let members = self.choices.get(name)?;
        Some(members.iter().map(|(_, value)| value.clone()).collect())
    }

    /// What `Class.MEMBER` stands for, also with a module before it or `.value` behind it.
    pub(super) fn member(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        let (class, member) = text
            .strip_suffix(".value")
            .unwrap_or(text)
            .rsplit_once('.')?;
        let class = class.rsplit('.').next()?;
        let members = self.choices.get(class)?;
        let found = members.iter().find(|(name, _)| name == member)?;
        Some(found.1.clone())
    }

    /// The fields of a typed dictionary, a data class or a named tuple.
    pub(super) fn record(&self, name: &str) -> Option<&[Field]> {
        self.records.get(name).map(Vec::as_slice)
    }

    /// What a name was given for.
    pub(super) fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.get(name).map(String::as_str)
    }

    /// The name that another one was imported or given for.
    pub(super) fn original<'n>(&'n self, name: &'n str) -> &'n str {
        let mut name = name;
        // Names may be given in a ring.
        for _ in 0..8 {
            let is_name = |text: &&str| {
                text.chars()
                    .all(|c| c.is_alphanumeric() || "_.".contains(c))
            };
            match self.alias(name).filter(is_name) {
                Some(meant) => name = meant.rsplit('.').next().unwrap_or(meant),
                None => break,
            }
        }
        name
    }

    fn class(&mut self, class: Node<'_>, text: &str, is_data: bool) {
        let Some(name) = field(class, "name", text) else {
            return;
        };
        let bases = field(class, "superclasses", text).unwrap_or_default();
        let bases = self.meant(bases);
        let words = bases.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let above: Vec<_> = words
            .filter_map(|base| self.records.get(base))
            .flatten()
            .cloned()
            .collect();
        let body = class
            .child_by_field_name("body")
            .map(named)
            .unwrap_or_default();
        let is_record = ["TypedDict", "NamedTuple", "BaseModel"]
            .iter()
            .any(|base| bases.contains(base));
        if is_data || is_record || !above.is_empty() {
            let total = !bases.replace(' ', "").contains("total=False");
            let own = body
                .into_iter()
                .filter_map(|member| record_field(member, text, total));
            self.records
                .insert(name.to_owned(), above.into_iter().chain(own).collect());
            return;
        }
        if !bases.contains("Enum") {
            return;
        }
        let automatic = Automatic::of(&bases, &body, text);
        let mut values: Vec<(String, Value)> = Vec::new();
        for member in body {
            let Some((member, value)) = assignment(member, text) else {
                continue;
            };
            if member.starts_with('_') {
                continue;
            }
            let value = literal::value(value).or_else(|| match expression(value)? {
                Expression::Call(call, _) if call == "auto" => automatic.next(member, &values),
                _ => None,
            });
            let Some(value) = value else {
                return;
            };
            values.push((member.to_owned(), value));
        }
        self.choices.insert(name.to_owned(), values);
    }

    /// `from typing import Optional as Opt`
    fn import(&mut self, statement: Node<'_>, text: &str) {
        if statement.kind() != "import_from_statement" {
            return;
        }
        for part in named(statement) {
            if part.kind() == "aliased_import"
                && let (Some(name), Some(alias)) =
                    (field(part, "name", text), field(part, "alias", text))
            {
                self.aliases.insert(alias.to_owned(), name.to_owned());
            }
        }
    }

    /// A text with the names that its words were imported by.
    fn meant(&self, text: &str) -> String {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut whole = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            whole.push_str(self.alias(word).unwrap_or(word));
            let next = after.find(is_part).unwrap_or(after.len());
            whole.push_str(&after[..next]);
            rest = &after[next..];
        }
        whole
    }
}

/// What `auto()` stands for in an enumeration.
enum Automatic {
    Counted,
    Named,
    /// Only the class itself knows.
    Unknown,
}

impl Automatic {
    fn of(bases: &str, body: &[Node<'_>], text: &str) -> Self {
        let words: Vec<_> = bases
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .collect();
        let is_own = body
            .iter()
            .any(|member| slice(*member, text).contains("_generate_next_value_"));
        if is_own || bases.contains("Flag") {
            Self::Unknown
        } else if words.contains(&"StrEnum") {
            Self::Named
        } else if words.contains(&"str") {
            Self::Unknown
        } else {
            Self::Counted
        }
    }

    fn next(&self, member: &str, before: &[(String, Value)]) -> Option<Value> {
        match self {
            Self::Unknown => None,
            Self::Named => Some(member.to_lowercase().into()),
            Self::Counted => {
                let numbers = before.iter().map(|(_, value)| value.as_i64());
                let numbers: Vec<i64> = numbers.collect::<Option<_>>()?;
                let highest = numbers.into_iter().max().unwrap_or(0);
                Some(highest.checked_add(1)?.into())
            }
        }
    }
}

/// `name: hint = default`
fn record_field(statement: Node<'_>, text: &str, total: bool) -> Option<Field> {
    let is_assignment = |node: &Node<'_>| node.kind() == "assignment";
    let assignment = named(statement).into_iter().find(is_assignment)?;
    let left = assignment.child_by_field_name("left")?;
    let hint = field(assignment, "type", text)?;
    let right = field(assignment, "right", text);
    let told = Told::of(right);
    let is_one = left.kind() == "identifier"
        && !told.is_left_out
        && !hint.contains("ClassVar")
        && !hint.contains("KW_ONLY");
    let may_lack = hint.contains("NotRequired") || told.may_lack;
    is_one.then(|| Field {
        name: slice(left, text).to_owned(),
        hint: hint.to_owned(),
        default: told.default,
        required: !may_lack && (total || hint.starts_with("Required")),
    })
}

/// What stands behind a field's `=`.
#[derive(Default)]
struct Told {
    default: Option<Value>,
    may_lack: bool,
    /// The constructor does not take it.
    is_left_out: bool,
}

impl Told {
    fn of(right: Option<&str>) -> Self {
        let Some(right) = right else {
            return Self::default();
        };
        let plain = Self {
            default: literal::value(right),
            may_lack: true,
            is_left_out: false,
        };
        let called = right.split('(').next().unwrap_or_default().trim();
        let called = called.rsplit('.').next().unwrap_or_default();
        if !called.eq_ignore_ascii_case("field") {
            return plain;
        }
        let bare: String = right.split_whitespace().collect();
        let Some(Expression::Call(_, arguments)) = expression(right) else {
            // A function is made in it, or the like.
            return Self {
                is_left_out: bare.contains("init=False"),
                may_lack: bare.contains("default"),
                ..plain
            };
        };
        let given = |wanted: &str| {
            let found = arguments.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value)
        };
        // The first may be the default without a name; dots say that there is none.
        let first =
            given("").filter(|value| !matches!(value, Expression::Name(name) if name == "..."));
        let default = given("default").or(first);
        Self {
            default: default.and_then(literal::of),
            may_lack: default.is_some() || given("default_factory").is_some(),
            is_left_out: given("init").and_then(literal::of) == Some(Value::Bool(false)),
        }
    }
}

fn assignment<'t>(statement: Node<'_>, text: &'t str) -> Option<(&'t str, &'t str)> {
    let assignment = named(statement)
        .into_iter()
        .find(|node| node.kind() == "assignment")?;
    let left = assignment.child_by_field_name("left")?;
    let right = assignment.child_by_field_name("right")?;
    (left.kind() == "identifier").then(|| (slice(left, text), slice(right, text)))
}
