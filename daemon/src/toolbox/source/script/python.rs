//! Python: functions of a module, their hints and docstrings, turned into declarations.
//! Must never import the file; methods and functions inside functions are none of its business.

mod classes;
mod docstring;
mod expression;
mod hint;
mod literal;

use super::tree::{children, field, line, named, parse, slice};
use super::{Declaration, Declared, Kind, Problem};
use classes::Names;
use docstring::Doc;
use hint::Hint;
use serde_json::{Value, json};
use std::collections::VecDeque;
use tree_sitter::Node;

pub(super) fn declare(kind: Kind, stem: &str, text: &str) -> Result<Declared, Problem> {
    let tree = parse(&tree_sitter_python::LANGUAGE.into(), text)?;
    let statements = statements(tree.root_node());
    let names = Names::of(&statements, text);
    let functions = functions(&statements, text);
    match kind {
        Kind::Tool => tool(&functions, stem, text, &names),
        Kind::Agent => agent(&functions, text, &names),
    }
}

pub(super) fn has_function(text: &str, name: &str) -> bool {
    let tree = parse(&tree_sitter_python::LANGUAGE.into(), text);
    tree.is_ok_and(|tree| {
        let functions = functions(&statements(tree.root_node()), text);
        functions
            .iter()
            .any(|function| field(*function, "name", text) == Some(name))
    })
}

fn tool(
    functions: &[Node<'_>],
    stem: &str,
    text: &str,
    names: &Names,
) -> Result<Declared, Problem> {
    let is_run = |node: &&Node<'_>| field(**node, "name", text) == Some("run");
    let run = functions.iter().find(is_run).copied();
    let run = run.ok_or_else(|| Problem::new(1, "no function run"))?;
    let doc = doc(run, text);
    if doc.description.is_empty() {
        return Err(Problem::new(line(run), "run has no description"));
    }
    let mut declaration = declaration(run, doc, text, names)?;
    stem.clone_into(&mut declaration.name);
    Ok(Declared {
        declarations: vec![declaration],
        warnings: Vec::new(),
    })
}

fn agent(functions: &[Node<'_>], text: &str, names: &Names) -> Result<Declared, Problem> {
    let mut declared = Declared::default();
    for function in functions {
        let name = field(*function, "name", text).unwrap_or_default();
        if name.starts_with('_') {
            continue;
        }
        let doc = doc(*function, text);
        if doc.description.is_empty() {
            let message = format!("{name} has no description, so it is not offered");
            declared
                .warnings
                .push(Problem::new(line(*function), message));
            continue;
        }
        let declaration = declaration(*function, doc, text, names)?;
        declared.declarations.push(declaration);
    }
    Ok(declared)
}

/// What a module does when it is loaded: its statements, and then those inside its `if`, `try` and `with`.
fn statements(root: Node<'_>) -> Vec<Node<'_>> {
    const INSIDE: &[&str] = &[
        "module",
        "block",
        "if_statement",
        "elif_clause",
        "else_clause",
        "try_statement",
        "except_clause",
        "finally_clause",
        "with_statement",
    ];
    let mut found = Vec::new();
    let mut open = VecDeque::from([root]);
    while let Some(node) = open.pop_front() {
        if INSIDE.contains(&node.kind()) {
            open.extend(named(node));
        } else {
            found.push(node);
        }
    }
    found
}

/// Of two with one name the later is the one that Python keeps; it stays in the place of the first.
fn functions<'t>(statements: &[Node<'t>], text: &str) -> Vec<Node<'t>> {
    let mut found: Vec<Node<'t>> = Vec::new();
    for statement in statements {
        let definition = match statement.kind() {
            "decorated_definition" => statement.child_by_field_name("definition"),
            _ => Some(*statement),
        };
        let Some(function) = definition.filter(|node| node.kind() == "function_definition") else {
            continue;
        };
        let name = field(function, "name", text);
        match found
            .iter_mut()
            .find(|known| field(**known, "name", text) == name)
        {
            Some(known) => *known = function,
            None => found.push(function),
        }
    }
    found
}

fn doc(function: Node<'_>, text: &str) -> Doc {
    let body = function.child_by_field_name("body");
    let statements = body.map(named).unwrap_or_default();
    let first = statements.iter().find(|node| node.kind() != "comment");
    let string = first
        .filter(|node| node.kind() == "expression_statement")
        .and_then(|node| named(*node).first().copied())
        .map(within)
        .filter(|node| ["string", "concatenated_string"].contains(&node.kind()));
    let string = string.and_then(|node| literal::string(slice(node, text)));
    docstring::read(&string.unwrap_or_default())
}

/// What stands in parentheses, where there is one thing in them.
fn within(mut node: Node<'_>) -> Node<'_> {
    while node.kind() == "parenthesized_expression" {
        let inner = named(node)
            .into_iter()
            .find(|node| node.kind() != "comment");
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node
}

fn declaration(
    function: Node<'_>,
    doc: Doc,
    text: &str,
    names: &Names,
) -> Result<Declaration, Problem> {
    let name = field(function, "name", text).unwrap_or_default();
    let mut declaration = Declaration {
        name: name.to_owned(),
        description: doc.description.clone(),
        function: name.to_owned(),
        ..Declaration::default()
    };
    let parameters = function.child_by_field_name("parameters");
    for node in parameters.map(children).unwrap_or_default() {
        if node.kind() == "positional_separator" {
            let first = declaration.properties.keys().next();
            let first = first.map_or("the first", String::as_str);
            let message = format!("the positional-only parameter {first} cannot be passed by name");
            return Err(Problem::new(line(node), message));
        }
        if let Some(parameter) = Parameter::of(node, text) {
            let (schema, required) = parameter.schema(&doc, names);
            declaration.property(parameter.name, schema, required);
        }
    }
    Ok(declaration)
}

/// One that can be passed by name.
struct Parameter<'t> {
    name: &'t str,
    hint: Option<&'t str>,
    default: Option<&'t str>,
}

impl<'t> Parameter<'t> {
    fn of(node: Node<'_>, text: &'t str) -> Option<Self> {
        let name = match node.kind() {
            "identifier" => slice(node, text),
            "typed_parameter" => {
                let name = node.named_child(0)?;
                (name.kind() == "identifier").then(|| slice(name, text))?
            }
            "default_parameter" | "typed_default_parameter" => field(node, "name", text)?,
            _ => return None,
        };
        Some(Self {
            name,
            hint: field(node, "type", text),
            default: field(node, "value", text),
        })
    }

    fn schema(&self, doc: &Doc, names: &Names) -> (Value, bool) {
        let told = doc.parameter(self.name);
        let default = self
            .default
            .and_then(|text| literal::value(text).or_else(|| names.member(text)));
        let hint = match (self.hint, told.and_then(|told| told.kind.as_deref())) {
            (Some(hint), _) => hint::read(hint, names),
            (None, Some(kind)) => hint::read_told(kind, names),
            (None, None) => Hint::of(default.as_ref().map_or(json!({"type": "string"}), like)),
        };
        // `None` alone leaves nothing to choose from; what a caller gives is not refused.
        let mut schema = match hint.schema {
            Value::Null => json!({}),
            schema => schema,
        };
        let text = told
            .map(|told| told.text.as_str())
            .filter(|text| !text.is_empty());
        if let (Some(text), Value::Object(schema)) =
            (text.or(hint.description.as_deref()), &mut schema)
        {
            schema.insert("description".to_owned(), text.into());
        }
        if let (Some(default), Value::Object(schema)) = (default, &mut schema)
            && !default.is_null()
        {
            schema.insert("default".to_owned(), default);
        }
        let optional = hint.optional || told.is_some_and(|told| told.optional);
        (schema, self.default.is_none() && !optional)
    }
}

/// The type of a value that stands for one.
fn like(value: &Value) -> Value {
    match value {
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(_) if super::is_whole(value) => json!({"type": "integer"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::Array(_) => json!({"type": "array", "items": {}}),
        Value::Object(_) => json!({"type": "object"}),
        Value::Null => json!({}),
        Value::String(_) => json!({"type": "string"}),
    }
}
