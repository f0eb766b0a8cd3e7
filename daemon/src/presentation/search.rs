//! Tool search: two tools in the place of many, one that finds and one that calls. What a model is shown has the same bytes
//! whatever it looks for. The two never ask: the tool that is called does, by its own name.

mod answer;
pub mod index;
pub mod words;

use super::{Failure, Shown, Toolkit, failure, forbidden, real_name, unknown, within};
use crate::toolbox::gate::{Ran, Run, coerce, distance};
use crate::toolbox::tool::{Access, Tool};
use crate::toolbox::{BoxFuture, Via};
use answer::Wanted;
use index::Index;
use protocol::expression::HITS;
use protocol::tool::{Definition, Shadowed};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

pub const FIND: &str = "search_tools";
pub const CALL: &str = "call_tool";

/// The longest question, in characters.
const QUESTION: usize = 500;
/// How much of a description the list of sources takes, in bytes.
const SOURCES: usize = 2_000;
/// How many names that are like one that is wrong are told.
const NEAR: usize = 3;
/// Up to how many names all are told to whoever asks for a wrong one.
const FEW: usize = 10;

/// What is found by, kept with the toolbox so that it is made once: when somebody first looks for something.
pub type Cell = Arc<OnceLock<Index>>;

/// A toolkit behind search.
pub struct Search {
    of: Arc<dyn Toolkit>,
    /// Hits when the model does not say how many.
    limit: u64,
    index: Cell,
    shown: Shown,
}

impl Search {
    pub fn new(of: Arc<dyn Toolkit>, limit: u64, index: Cell) -> Self {
        let called = format!("to be called with {CALL}");
        Self::with(
            [find_tool(&*of, limit, &called), call_tool()],
            of,
            limit,
            index,
        )
    }

    /// For programs, which call what they find by its name.
    pub fn in_programs(of: Arc<dyn Toolkit>, limit: u64, index: Cell) -> Self {
        let called = "to be called in a program as tools[\"NAME\"]({...})";
        Self::with(
            [find_tool(&*of, limit, called), call_tool()],
            of,
            limit,
            index,
        )
    }

    fn with(tools: [Tool; 2], of: Arc<dyn Toolkit>, limit: u64, index: Cell) -> Self {
        Self {
            shown: Shown::new(tools.map(Arc::new).into(), Vec::new()),
            of,
            limit,
            index,
        }
    }

    /// The answer of `search_tools`, also for programs that look for tools.
    pub async fn find(&self, run: &Run) -> Result<Map<String, Value>, Failure> {
        let mut arguments = coerce(&run.arguments);
        if let Some(object) = arguments.as_object_mut() {
            object.retain(|_, value| !value.is_null());
        }
        let fits = self.shown.tools[0].validate(&arguments);
        fits.map_err(Failure::parameters)?;
        let index = self.index().await;
        let wanted = Wanted::of(&arguments, self.limit);
        Ok(answer::to(&wanted, index, &*self.of, &run.permissions))
    }

    async fn index(&self) -> &Index {
        if self.index.get().is_none() {
            // Thousands of tools take a while, which other sessions need not wait for.
            let (of, cell) = (Arc::clone(&self.of), Arc::clone(&self.index));
            let making = tokio::task::spawn_blocking(move || {
                cell.get_or_init(|| index_of(&*of));
            });
            // What could not be made there is made here.
            let _ = making.await;
        }
        self.index.get_or_init(|| index_of(&*self.of))
    }

    async fn call(&self, run: Run) -> Ran {
        let (name, input) = match self.called(&run.arguments) {
            Ok(called) => called,
            Err(failure) => return failure.ran(),
        };
        let known = real_name(&*self.of, &name).filter(|name| ![FIND, CALL].contains(name));
        match known.map(str::to_owned) {
            Some(_) => within(Arc::clone(&self.of), &run, Via::Search, &name, input).await,
            None => self.no_such(&name).await.ran(),
        }
    }

    /// The name and input of a call; an input may be written as a string, and absent.
    fn called(&self, arguments: &Value) -> Result<(String, Value), Failure> {
        let mut arguments = coerce(arguments);
        let object = arguments.as_object_mut();
        let input = object.and_then(|object| object.remove("input"));
        let input = coerce(&input.unwrap_or(Value::Null));
        if let Some(object) = arguments.as_object_mut() {
            object.insert("input".to_owned(), input.clone());
        }
        let fits = self.shown.tools[1].validate(&arguments);
        fits.map_err(Failure::parameters)?;
        Ok((
            arguments["name"].as_str().unwrap_or_default().to_owned(),
            input,
        ))
    }

    async fn no_such(&self, name: &str) -> Failure {
        let tools = self.of.tools().len();
        let names = match tools {
            0 => "nothing".to_owned(),
            1..=FEW => self.index().await.names().join(", "),
            _ => {
                let near = near(name, self.index().await);
                match near.len() {
                    0 => format!("{tools} tools, which {FIND} finds"),
                    some => format!(
                        "{} and {} more, which {FIND} finds",
                        near.join(", "),
                        tools - some
                    ),
                }
            }
        };
        let way = self.of.way_to(name).map(|way| format!(" {way}"));
        let way = way.unwrap_or_default();
        failure(
            "unknown_tool",
            format!("unknown tool: {name:?}. Available: {names}.{way}"),
        )
    }
}

impl Toolkit for Search {
    fn tools(&self) -> &[Arc<Tool>] {
        &self.shown.tools
    }

    fn aliases(&self) -> &[(String, String)] {
        &self.shown.aliases
    }

    fn definitions(&self) -> Arc<[Definition]> {
        self.shown.definitions()
    }

    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Ran> {
        Box::pin(async move {
            if let Some(forbidden) = forbidden(&run, &run.name) {
                return forbidden;
            }
            match run.name.as_str() {
                FIND => match self.find(&run).await {
                    Ok(result) => Ran {
                        result,
                        ms: 0,
                        cause: None,
                    },
                    Err(failure) => failure.ran(),
                },
                CALL => self.call(run).await,
                name => unknown(&*self, name),
            }
        })
    }

    fn way_to(&self, name: &str) -> Option<String> {
        let name = real_name(&*self.of, name)?;
        Some(format!(
            "{name:?} is reached by {CALL} with {{\"name\":{name:?},\"input\":{{...}}}}."
        ))
    }

    fn reached(&self) -> usize {
        self.of.tools().len() + self.of.reached()
    }

    fn shadowed(&self) -> Vec<Shadowed> {
        self.of.shadowed()
    }

    fn unknown_names(&self) -> Vec<String> {
        self.of.unknown_names()
    }
}

fn index_of(of: &dyn Toolkit) -> Index {
    let tools = of.tools().iter();
    Index::new(tools.map(|tool| (tool.name(), tool.description())))
}

fn find_tool(of: &dyn Toolkit, limit: u64, called: &str) -> Tool {
    let about = format!(
        "Finds tools that are not listed here. Say in plain words what should be done, such as \"open an issue\": the answer \
         has the names, descriptions and input schemas of tools that fit, {called}. The exact name of a tool \
         finds it first; with limit 1 its schema is never left out. An empty query lists all by name. There are {} tools, \
         from: {}.",
        of.tools().len(),
        list_of_sources(of)
    );
    let query = format!("What the tool should do, or its name; at most {QUESTION} characters.");
    let hits = format!("How many tools to give; {limit} if not given.");
    Tool::new(FIND, &about)
        .source(super::SOURCE)
        .access(Access::Nothing)
        .param("query", json!({"type": "string", "maxLength": QUESTION, "description": query}))
        .param("limit", json!({"type": "integer", "minimum": 1, "maximum": HITS, "description": hits}))
        .param("offset", json!({"type": "integer", "minimum": 0, "description": "How many of the first to pass over."}))
        .param("source", json!({"type": "string", "description": "Only tools from there."}))
        .required("query")
}

fn call_tool() -> Tool {
    let about = format!(
        "Calls a tool that {FIND} has found, and gives that tool's own result. It is checked, and asked for, as if it had \
         been called directly."
    );
    Tool::new(CALL, &about)
        .source(super::SOURCE)
        .access(Access::Nothing)
        .param(
            "name",
            json!({"type": "string", "description": "The tool's name."}),
        )
        .param(
            "input",
            json!({"type": "object", "description": "Its arguments, as its input_schema says."}),
        )
        .required("name")
}

/// Sources by name, with the number of tools of each.
fn sources(of: &dyn Toolkit) -> BTreeMap<&str, usize> {
    let mut sources = BTreeMap::new();
    for tool in of.tools() {
        *sources.entry(tool.origin()).or_insert(0) += 1;
    }
    sources
}

fn list_of_sources(of: &dyn Toolkit) -> String {
    let sources = sources(of);
    let (mut list, mut told) = (String::new(), 0);
    for (name, count) in &sources {
        let one = format!("{name} ({count})");
        if list.len() + one.len() > SOURCES {
            break;
        }
        if told > 0 {
            list.push_str(", ");
        }
        list.push_str(&one);
        told += 1;
    }
    match sources.len() - told {
        0 if told == 0 => "nowhere".to_owned(),
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

/// Names that a wrong one may have meant, the nearest first.
fn near(name: &str, index: &Index) -> Vec<String> {
    let plain = |name: &str| {
        name.to_lowercase()
            .replace(|c: char| !c.is_alphanumeric(), "")
    };
    let wanted = plain(name);
    let limit = (wanted.chars().count() / 3).clamp(1, 3);
    let how_far = |known: &String| {
        let part = known
            .split_once("__")
            .map_or(known.as_str(), |(_, part)| part);
        let whole = distance(&wanted, &plain(known));
        whole.min(distance(&wanted, &plain(part)))
    };
    let mut slips: Vec<(usize, &String)> = Vec::new();
    if !wanted.is_empty() {
        let all = index.names().iter().map(|known| (how_far(known), known));
        slips.extend(all.filter(|(far, known)| *far <= limit && *far < known.chars().count()));
    }
    slips.sort_unstable();
    let mut near: Vec<String> = slips.into_iter().map(|(_, name)| name.clone()).collect();
    for hit in index.find(name) {
        let hit = &index.names()[hit];
        if near.len() < NEAR && !near.contains(hit) {
            near.push(hit.clone());
        }
    }
    near.truncate(NEAR);
    near
}

#[cfg(test)]
mod tests;
