//! What a module exports by name, in CommonJS and in ESM.
//! Must never look into functions: only what the module does when it is loaded counts.

use super::super::tree::{field, line, named, slice};
use super::literal;
use tree_sitter::Node;

/// A function that can be called by name.
pub(super) struct Export<'t> {
    pub(super) name: String,
    /// The statement that exports it.
    pub(super) statement: Node<'t>,
    /// The statement that makes the function, where that is another one.
    pub(super) function: Option<Node<'t>>,
    /// The function itself.
    pub(super) callable: Node<'t>,
}

impl Export<'_> {
    /// The names of its parameters that are plain ones, not taken apart.
    pub(super) fn parameters<'s>(&self, text: &'s str) -> Vec<&'s str> {
        let one = self.callable.child_by_field_name("parameter");
        let list = self.callable.child_by_field_name("parameters").map(named);
        let plain = |node: Node<'_>| match node.kind() {
            "identifier" => Some(slice(node, text)),
            "assignment_pattern" => {
                let left = node.child_by_field_name("left")?;
                (left.kind() == "identifier").then(|| slice(left, text))
            }
            _ => None,
        };
        let all = one.into_iter().chain(list.into_iter().flatten());
        all.filter_map(plain).collect()
    }
}

#[derive(Default)]
pub(super) struct Exports<'t> {
    pub(super) named: Vec<Export<'t>>,
    /// The line of `export default`.
    pub(super) default: Option<usize>,
}

pub(super) fn find<'t>(root: Node<'t>, text: &str) -> Exports<'t> {
    let mut finder = Finder {
        text,
        locals: Vec::new(),
        exports: Exports::default(),
    };
    let statements = statements(root);
    for statement in &statements {
        finder.local(*statement);
    }
    for statement in statements {
        finder.statement(statement);
    }
    finder.exports
}

/// Those that run when the module is loaded, also inside `if`, `try` and plain blocks.
fn statements(root: Node<'_>) -> Vec<Node<'_>> {
    const INSIDE: &[&str] = &[
        "program",
        "statement_block",
        "if_statement",
        "else_clause",
        "try_statement",
        "catch_clause",
        "finally_clause",
    ];
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if INSIDE.contains(&node.kind()) {
            open.extend(named(node).into_iter().rev());
        } else {
            found.push(node);
        }
    }
    found
}

struct Finder<'t, 's> {
    text: &'s str,
    /// Functions that the module names for itself: the statement, and the function itself.
    locals: Vec<(String, Node<'t>, Node<'t>)>,
    exports: Exports<'t>,
}

impl<'t> Finder<'t, '_> {
    fn local(&mut self, statement: Node<'t>) {
        for (name, callable) in self.functions_of(statement) {
            self.locals.push((name, statement, callable));
        }
    }

    /// The functions that a declaration makes.
    fn functions_of(&self, declaration: Node<'t>) -> Vec<(String, Node<'t>)> {
        let name = |node| field(node, "name", self.text).map(str::to_owned);
        match declaration.kind() {
            "function_declaration" | "generator_function_declaration" => name(declaration)
                .map(|name| (name, declaration))
                .into_iter()
                .collect(),
            "lexical_declaration" | "variable_declaration" => named(declaration)
                .into_iter()
                .filter(|part| part.kind() == "variable_declarator")
                .filter_map(|part| {
                    let value = part.child_by_field_name("value").map(assigned);
                    Some((name(part)?, value.filter(|value| is_function(*value))?))
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    fn statement(&mut self, statement: Node<'t>) {
        match statement.kind() {
            "export_statement" => self.export(statement),
            "expression_statement" => {
                for expression in named(statement) {
                    self.assignment(expression, statement);
                }
            }
            // `const run = exports.run = ...`
            "lexical_declaration" | "variable_declaration" => {
                let values = named(statement).into_iter();
                for value in values.filter_map(|part| part.child_by_field_name("value")) {
                    self.assignment(value, statement);
                }
            }
            _ => {}
        }
    }

    fn export(&mut self, statement: Node<'t>) {
        if let Some(declaration) = statement.child_by_field_name("declaration") {
            let is_default = slice(statement, self.text)
                .trim_start_matches("export")
                .trim_start()
                .starts_with("default");
            if is_default {
                self.exports.default = Some(line(statement));
                return;
            }
            for (name, callable) in self.functions_of(declaration) {
                self.add(name, statement, None, callable);
            }
            return;
        }
        let clauses = named(statement);
        if statement.child_by_field_name("value").is_some() {
            self.exports.default = Some(line(statement));
        }
        for clause in clauses.iter().filter(|node| node.kind() == "export_clause") {
            for specifier in named(*clause) {
                let Some(own) = field(specifier, "name", self.text) else {
                    continue;
                };
                let name = field(specifier, "alias", self.text).unwrap_or(own);
                let local = self.find_local(own);
                let callable = local.map_or(specifier, |(_, callable)| callable);
                let function = local.map(|(function, _)| function);
                self.add(name.to_owned(), statement, function, callable);
            }
        }
    }

    /// `exports.NAME = `, `module.exports.NAME = `, `module.exports = { }`, and several at once.
    fn assignment(&mut self, expression: Node<'t>, statement: Node<'t>) {
        if expression.kind() != "assignment_expression" {
            return;
        }
        let (Some(left), Some(right)) = (
            expression.child_by_field_name("left"),
            expression.child_by_field_name("right"),
        ) else {
            return;
        };
        if right.kind() == "assignment_expression" {
            self.assignment(right, statement);
        }
        let Some(path) = self.path(left) else {
            return;
        };
        let right = assigned(right);
        match path
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            ["exports"] | ["module", "exports"] => self.object(right, statement),
            ["exports", name] | ["module", "exports", name] => self.value(name, right, statement),
            _ => {}
        }
    }

    /// The names that lead to what is assigned to, `a.b` and `a["b"]`.
    fn path(&self, node: Node<'t>) -> Option<Vec<String>> {
        let mut names = Vec::new();
        let mut node = node;
        loop {
            match node.kind() {
                "identifier" => {
                    names.push(slice(node, self.text).to_owned());
                    names.reverse();
                    return Some(names);
                }
                "member_expression" => {
                    names.push(field(node, "property", self.text)?.to_owned());
                }
                "subscript_expression" => {
                    let index = field(node, "index", self.text)?;
                    let (name, rest) = literal::string(index)?;
                    rest.is_empty().then_some(())?;
                    names.push(name);
                }
                _ => return None,
            }
            node = node.child_by_field_name("object")?;
        }
    }

    fn object(&mut self, object: Node<'t>, statement: Node<'t>) {
        if object.kind() != "object" {
            return;
        }
        for part in named(object) {
            match part.kind() {
                "shorthand_property_identifier" => {
                    let name = slice(part, self.text);
                    if let Some((function, callable)) = self.find_local(name) {
                        self.add(name.to_owned(), statement, Some(function), callable);
                    }
                }
                "pair" => {
                    let key = field(part, "key", self.text).unwrap_or_default();
                    let key = match literal::string(key) {
                        Some((name, _)) => name,
                        None => key.to_owned(),
                    };
                    if let Some(value) = part.child_by_field_name("value") {
                        self.value(&key, value, part);
                    }
                }
                "method_definition" => {
                    if let Some(name) = field(part, "name", self.text) {
                        self.add(name.to_owned(), part, None, part);
                    }
                }
                _ => {}
            }
        }
    }

    fn value(&mut self, name: &str, value: Node<'t>, statement: Node<'t>) {
        if is_function(value) {
            self.add(name.to_owned(), statement, None, value);
        } else if value.kind() == "identifier"
            && let Some((function, callable)) = self.find_local(slice(value, self.text))
        {
            self.add(name.to_owned(), statement, Some(function), callable);
        }
    }

    fn find_local(&self, name: &str) -> Option<(Node<'t>, Node<'t>)> {
        let found = self.locals.iter().find(|(known, ..)| known == name);
        found.map(|(_, statement, callable)| (*statement, *callable))
    }

    /// The first of a name is the one that counts.
    fn add(
        &mut self,
        name: String,
        statement: Node<'t>,
        function: Option<Node<'t>>,
        callable: Node<'t>,
    ) {
        let export = Export {
            name,
            statement,
            function,
            callable,
        };
        if !self
            .exports
            .named
            .iter()
            .any(|known| known.name == export.name)
        {
            self.exports.named.push(export);
        }
    }
}

/// What a chain of assignments assigns in the end.
fn assigned(mut value: Node<'_>) -> Node<'_> {
    while value.kind() == "assignment_expression"
        && let Some(right) = value.child_by_field_name("right")
    {
        value = right;
    }
    value
}

fn is_function(node: Node<'_>) -> bool {
    [
        "function_expression",
        "arrow_function",
        "generator_function",
        "function",
    ]
    .contains(&node.kind())
}
