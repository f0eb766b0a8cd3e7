//! Names that a module gives to types: enumerations and aliases.

use super::super::tree::{field, named, slice};
use super::literal;
use serde_json::Value;
use std::collections::HashMap;
use tree_sitter::Node;

#[derive(Default)]
pub(super) struct Names {
    choices: HashMap<String, Vec<(String, Value)>>,
    aliases: HashMap<String, String>,
}

impl Names {
    pub(super) fn of(statements: &[Node<'_>], text: &str) -> Self {
        let mut names = Self::default();
        for statement in statements {
            match statement.kind() {
                "class_definition" => names.class(*statement, text),
                "decorated_definition" => {
                    if let Some(class) = statement
                        .child_by_field_name("definition")
                        .filter(|node| node.kind() == "class_definition")
                    {
                        names.class(class, text);
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

    /// What a name was given for.
    pub(super) fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.get(name).map(String::as_str)
    }

    fn class(&mut self, class: Node<'_>, text: &str) {
        let (Some(name), Some(bases)) = (
            field(class, "name", text),
            field(class, "superclasses", text),
        ) else {
            return;
        };
        if bases.contains("TypedDict") {
            self.aliases.insert(name.to_owned(), "dict".to_owned());
            return;
        }
        if !bases.contains("Enum") {
            return;
        }
        let body = class.child_by_field_name("body").map(named);
        let members = body.unwrap_or_default().into_iter().filter_map(|member| {
            let (name, value) = assignment(member, text)?;
            (!name.starts_with('_'))
                .then(|| literal::value(value).map(|value| (name.to_owned(), value)))
        });
        if let Some(values) = members.collect() {
            self.choices.insert(name.to_owned(), values);
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
