//! Syntax trees of scripts: parsed within a time, with the place of the first fault.
//! Must never panic on what it is given, nor go on for ever.

use super::Problem;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree};

/// Far longer than any real file takes; error recovery on noise can be slow.
const PATIENCE: Duration = Duration::from_secs(2);

/// The tree of a text that has no fault.
pub(super) fn parse(language: &Language, text: &str) -> Result<Tree, Problem> {
    let mut parser = Parser::new();
    parser
        .set_language(language)
        .map_err(|error| Problem::new(1, error.to_string()))?;
    let began = Instant::now();
    let mut watch = |_: &ParseState| match began.elapsed() > PATIENCE {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let options = ParseOptions::new().progress_callback(&mut watch);
    let mut rest = |at: usize, _| &text.as_bytes()[at.min(text.len())..];
    let tree = parser
        .parse_with_options(&mut rest, None, Some(options))
        .ok_or_else(|| Problem::new(1, "too tangled to be read"))?;
    match fault(tree.root_node()) {
        Some(node) => Err(Problem::new(line(node), "syntax error")),
        None => Ok(tree),
    }
}

/// The first node that should not be there, or that is missing.
fn fault(root: Node<'_>) -> Option<Node<'_>> {
    let mut node = root;
    while node.has_error() && !node.is_error() && !node.is_missing() {
        let inner = children(node).into_iter().find(Node::has_error);
        match inner {
            Some(inner) => node = inner,
            None => return Some(node),
        }
    }
    (node.is_error() || node.is_missing()).then_some(node)
}

/// Counted from 1.
pub(super) fn line(node: Node<'_>) -> usize {
    node.start_position().row + 1
}

pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// Without punctuation; comments are among them.
pub(super) fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

pub(super) fn slice<'t>(node: Node<'_>, text: &'t str) -> &'t str {
    text.get(node.byte_range()).unwrap_or_default()
}

/// The text of a field's node.
pub(super) fn field<'t>(node: Node<'_>, name: &str, text: &'t str) -> Option<&'t str> {
    Some(slice(node.child_by_field_name(name)?, text))
}
