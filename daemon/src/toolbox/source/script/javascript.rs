//! JavaScript: exported functions and the JSDoc before them, turned into declarations.
//! Must never evaluate the file, nor take a comment for one of a function that it does not stand before.

mod exports;
mod jsdoc;
mod jstype;
mod literal;
mod properties;

use super::tree::{children, line, parse, slice};
use super::{Declaration, Declared, Kind, Problem};
use exports::Export;
use jsdoc::Block;
use properties::Typedefs;
use tree_sitter::Node;

pub(super) fn declare(kind: Kind, stem: &str, text: &str) -> Result<Declared, Problem> {
    let tree = parse(&tree_sitter_javascript::LANGUAGE.into(), text)?;
    let exports = exports::find(tree.root_node(), text);
    let comments = comments(tree.root_node());
    let blocks: Vec<_> = comments
        .iter()
        .filter_map(|comment| Block::read(slice(*comment, text), line(*comment)))
        .collect();
    let typedefs = Typedefs::of(&blocks);
    match kind {
        Kind::Tool => tool(&exports, stem, text, &typedefs),
        Kind::Agent => agent(&exports, text, &typedefs),
    }
}

pub(super) fn has_export(text: &str, name: &str) -> bool {
    let tree = parse(&tree_sitter_javascript::LANGUAGE.into(), text);
    tree.is_ok_and(|tree| {
        let exports = exports::find(tree.root_node(), text);
        exports.named.iter().any(|export| export.name == name)
    })
}

fn tool(
    exports: &exports::Exports<'_>,
    stem: &str,
    text: &str,
    typedefs: &Typedefs<'_>,
) -> Result<Declared, Problem> {
    let Some(run) = exports.named.iter().find(|export| export.name == "run") else {
        let problem = |line| Problem::new(line, "no exported function run");
        let Some(line) = exports.default else {
            return Err(problem(1));
        };
        // The file is a module that works; it only has nothing to offer under a name.
        return Ok(Declared {
            declarations: Vec::new(),
            warnings: vec![problem(line)],
        });
    };
    let doc = doc(run, text).ok_or_else(|| no_doc(run, text))?;
    let mut declaration = declaration(run, &doc, text, typedefs)?;
    if declaration.description.is_empty() {
        return Err(Problem::new(doc.line, "run has no description"));
    }
    stem.clone_into(&mut declaration.name);
    Ok(Declared {
        declarations: vec![declaration],
        warnings: Vec::new(),
    })
}

fn agent(
    exports: &exports::Exports<'_>,
    text: &str,
    typedefs: &Typedefs<'_>,
) -> Result<Declared, Problem> {
    let mut declared = Declared::default();
    let is_public = |export: &&Export<'_>| !export.name.starts_with('_');
    for export in exports.named.iter().filter(is_public) {
        let declaration = doc(export, text).map(|doc| declaration(export, &doc, text, typedefs));
        match declaration.transpose()? {
            Some(declaration) if !declaration.description.is_empty() => {
                declared.declarations.push(declaration);
            }
            _ => {
                let message = format!("{} has no description, so it is not offered", export.name);
                let warning = Problem::new(line(export.statement), message);
                declared.warnings.push(warning);
            }
        }
    }
    Ok(declared)
}

fn declaration(
    export: &Export<'_>,
    doc: &Block,
    text: &str,
    typedefs: &Typedefs<'_>,
) -> Result<Declaration, Problem> {
    let mut declaration = Declaration {
        name: export.name.clone(),
        description: doc.description(),
        function: export.name.clone(),
        ..Declaration::default()
    };
    let parameters = export.parameters(text);
    properties::fill(&mut declaration, doc, &parameters, typedefs)?;
    Ok(declaration)
}

/// The JSDoc block that belongs to an export: the nearest one before it, or before the function that it names.
fn doc(export: &Export<'_>, text: &str) -> Option<Block> {
    let places = [Some(export.statement), export.function];
    places.into_iter().flatten().find_map(|node| {
        let comment = before(node, text)
            .into_iter()
            .find(|comment| slice(*comment, text).starts_with("/**"))?;
        Block::read(slice(comment, text), line(comment))
    })
}

fn no_doc(export: &Export<'_>, text: &str) -> Problem {
    let is_block = |node: &Node<'_>| slice(*node, text).starts_with("/*");
    match before(export.statement, text).into_iter().find(is_block) {
        Some(block) => Problem::new(
            line(block),
            "not a JSDoc block: it begins with /* instead of /**",
        ),
        None => Problem::new(line(export.statement), "no JSDoc block before run"),
    }
}

/// The comments right before a statement, nearest first. Where the statement is the first in a block, what stands before
/// the block's own statement counts too.
fn before<'t>(node: Node<'t>, text: &str) -> Vec<Node<'t>> {
    let mut comments = Vec::new();
    let mut node = node;
    loop {
        match node.prev_sibling() {
            Some(sibling) if sibling.kind() == "comment" => {
                comments.push(sibling);
                node = sibling;
            }
            Some(sibling) if sibling.is_named() && !slice(sibling, text).trim().is_empty() => {
                let opens = ["parenthesized_expression", "identifier"].contains(&sibling.kind());
                match node.parent() {
                    Some(parent) if opens && parent.kind() != "program" => node = parent,
                    _ => return comments,
                }
            }
            _ => match node.parent() {
                Some(parent) if parent.kind() != "program" => node = parent,
                _ => return comments,
            },
        }
    }
}

/// All comments, in order.
fn comments(root: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if node.kind() == "comment" {
            found.push(node);
        }
        open.extend(children(node).into_iter().rev());
    }
    found
}
