//! What `search_tools` answers. Pure, and the same bytes for the same question and tools, in whatever order they came.

use super::index::Index;
use super::{near, sources};
use crate::presentation::{Toolkit, input_schema_of};
use crate::toolbox::permission::Permissions;
use crate::toolbox::result::finish;
use crate::toolbox::tool::{Access, Tool};
use protocol::tool::Policy;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How long an answer may be, in bytes; one tool alone may be longer.
const ANSWER: usize = 32 * 1024;
/// How much of a description is shown where many are, in characters.
const LINE: usize = 120;

/// A question that fits.
pub(super) struct Wanted<'a> {
    query: &'a str,
    limit: usize,
    offset: usize,
    source: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(arguments: &'a Value, limit: u64) -> Self {
        let number = |name: &str| arguments[name].as_u64();
        Self {
            query: arguments["query"].as_str().unwrap_or_default().trim(),
            limit: usize::try_from(number("limit").unwrap_or(limit)).unwrap_or(usize::MAX),
            offset: usize::try_from(number("offset").unwrap_or(0)).unwrap_or(usize::MAX),
            source: arguments["source"]
                .as_str()
                .filter(|source| !source.is_empty()),
        }
    }

    /// `mcp github` is asked for as `github` too.
    fn is_from(&self, tool: &Tool) -> bool {
        let Some(wanted) = self.source else {
            return true;
        };
        let origin = tool.origin();
        let short = origin.split_once(' ').map(|(_, name)| name);
        origin == wanted || short == Some(wanted)
    }
}

pub(super) fn to(
    wanted: &Wanted<'_>,
    index: &Index,
    of: &dyn Toolkit,
    permissions: &Permissions,
) -> Map<String, Value> {
    let found = match wanted.query {
        "" => (0..index.names().len()).collect(),
        query => index.find(query),
    };
    let tools = found
        .into_iter()
        .filter_map(|at| of.tools().get(index.place(at)));
    let fitting: Vec<&Arc<Tool>> = tools.filter(|tool| wanted.is_from(tool)).collect();
    let total = fitting.len();
    let page = fitting.into_iter().skip(wanted.offset).take(wanted.limit);
    let page: Vec<&Arc<Tool>> = page.collect();
    let more = wanted.offset.saturating_add(page.len()) < total && !page.is_empty();
    let tools = match wanted.query {
        "" => page.iter().map(|tool| Value::Object(line(tool))).collect(),
        _ => entries(&page, permissions),
    };
    let mut answer = Map::from_iter([
        ("tools".to_owned(), Value::Array(tools)),
        ("total".to_owned(), json!(total)),
        ("more".to_owned(), json!(more)),
    ]);
    if total == 0 {
        let sources = sources(of).into_iter();
        let sources = sources.map(|(name, tools)| json!({"name": name, "tools": tools}));
        answer.insert("sources".to_owned(), sources.collect());
        answer.insert("near".to_owned(), json!(near(wanted.query, index)));
    }
    finish(answer)
}

/// As much of each as there is room for.
fn entries(page: &[&Arc<Tool>], permissions: &Permissions) -> Vec<Value> {
    let mut left = match page {
        [_] => usize::MAX,
        _ => ANSWER,
    };
    let entry = |tool: &&Arc<Tool>| {
        let whole = whole(tool, permissions);
        let entry = [whole.clone(), without_schema(whole), line(tool)]
            .into_iter()
            .map(Value::Object)
            .map(|entry| (entry.to_string().len(), entry));
        // The shortest is taken also where there is no room.
        let entries: Vec<(usize, Value)> = entry.collect();
        let fits = entries.iter().position(|(size, _)| *size <= left);
        let (size, entry) = entries
            .into_iter()
            .nth(fits.unwrap_or(2))
            .unwrap_or_default();
        left = left.saturating_sub(size);
        entry
    };
    page.iter().map(entry).collect()
}

fn whole(tool: &Tool, permissions: &Permissions) -> Map<String, Value> {
    let mut entry = Map::from_iter([
        ("name".to_owned(), json!(tool.name())),
        ("description".to_owned(), json!(tool.description())),
        ("input_schema".to_owned(), input_schema_of(tool)),
    ]);
    if matches!(tool.access_of(&Map::new()), Access::Nothing | Access::Read) {
        entry.insert("read_only".to_owned(), json!(true));
    }
    if permissions.shown(tool) == Policy::Ask {
        entry.insert("needs_approval".to_owned(), json!(true));
    }
    entry
}

fn without_schema(mut entry: Map<String, Value>) -> Map<String, Value> {
    entry.remove("input_schema");
    entry.insert("schema_omitted".to_owned(), json!(true));
    entry
}

/// A name and the beginning of what it does.
fn line(tool: &Tool) -> Map<String, Value> {
    let first = tool
        .description()
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty());
    let first = first.unwrap_or_default();
    let mut line: String = first.chars().take(LINE).collect();
    if line.len() < first.len() {
        line.push('…');
    }
    Map::from_iter([
        ("name".to_owned(), json!(tool.name())),
        ("description".to_owned(), json!(line)),
    ])
}
