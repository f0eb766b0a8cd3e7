//! Names that a module gives to types: enumerations, records and aliases.

use super::super::tree::{field, named, slice};
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
            match statement.kind() {
                "class_definition" => names.class(*statement, text, false),
                "decorated_definition" => {
                    if let Some(class) = statement
                        .child_by_field_name("definition")
                        .filter(|node| node.kind() == "class_definition")
                    {
                        let above = &text[statement.start_byte()..class.start_byte()];
                        names.class(class, text, above.contains("dataclass"));
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

    fn class(&mut self, class: Node<'_>, text: &str, is_data: bool) {
        let Some(name) = field(class, "name", text) else {
            return;
        };
        let bases = field(class, "superclasses", text).unwrap_or_default();
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
        let members = body.into_iter().filter_map(|member| {
            let (name, value) = assignment(member, text)?;
            (!name.starts_with('_'))
                .then(|| literal::value(value).map(|value| (name.to_owned(), value)))
        });
        if let Some(values) = members.collect() {
            self.choices.insert(name.to_owned(), values);
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
    let is_one = left.kind() == "identifier" && !hint.contains("ClassVar");
    let may_lack = hint.contains("NotRequired") || right.is_some();
    is_one.then(|| Field {
        name: slice(left, text).to_owned(),
        hint: hint.to_owned(),
        default: right.and_then(literal::value),
        required: !may_lack && (total || hint.starts_with("Required")),
    })
}

fn assignment<'t>(statement: Node<'_>, text: &'t str) -> Option<(&'t str, &'t str)> {
    let assignment = named(statement)
        .into_iter()
        .find(|node| node.kind() == "assignment")?;
    let left = assignment.child_by_field_name("left")?;
    let right = assignment.child_by_field_name("right")?;
    (left.kind() == "identifier").then(|| (slice(left, text), slice(right, text)))
}
