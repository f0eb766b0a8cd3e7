//! A server's tools as a toolbox has them. Must never let what a server says of a tool (that it only reads, say) count
//! for what it may do unasked.

use super::config::Config;
use super::connection::{Connection, label};
use super::inventory::Inventory;
use super::{name, outcome, schema};
use crate::toolbox::BoxFuture;
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The longest description that models are shown, in characters.
const DESCRIPTION: usize = 4096;
/// The longest declaration of parameters, as JSON.
const SCHEMA: usize = 128 * 1024;
/// What is shown of one call's progress at most.
const PROGRESS: usize = 64 * 1024;

/// Whoever owns a server and starts it anew.
pub trait Server: Send + Sync {
    /// The connection, made if there is none; the message says why there cannot be one.
    fn live(&self) -> BoxFuture<'_, Result<Arc<Connection>, String>>;
}

/// The tools of an inventory, as far as they can be used, and what is wrong with others. Made once for an inventory, as
/// their schemas are compiled once then.
#[derive(Default)]
pub struct Declared {
    /// Each with the server's own name for it.
    tools: Vec<(String, Tool)>,
    pub problems: Vec<String>,
}

impl Declared {
    pub fn new(config: &Config, inventory: &Inventory) -> Self {
        let mut declared = Self::default();
        let named = declared.named(config, &inventory.tools);
        let names: Vec<&str> = named.iter().map(|(own, _)| *own).collect();
        let shown = name::shown(&config.prefix, &names);
        for ((own, entry), shown) in named.iter().zip(shown) {
            match tool(config, &shown, entry) {
                Ok(tool) => declared.tools.push(((*own).to_owned(), tool)),
                Err(why) => {
                    let label = label(&config.name);
                    declared
                        .problems
                        .push(format!("the tool {own:?} of {label}: {why}"));
                }
            }
        }
        declared
    }

    /// Those that the entry chooses.
    fn named<'a>(&mut self, config: &Config, tools: &'a [Value]) -> Vec<(&'a str, &'a Value)> {
        let label = label(&config.name);
        let mut named: Vec<(&str, &Value)> = Vec::new();
        let (mut seen, mut nameless, mut twice) = (BTreeSet::new(), 0, BTreeSet::new());
        for entry in tools {
            match entry["name"].as_str().filter(|own| !own.is_empty()) {
                Some(own) if seen.insert(own) => named.push((own, entry)),
                Some(own) => drop(twice.insert(own)),
                None => nameless += 1,
            }
        }
        if nameless > 0 {
            self.problems
                .push(format!("{label} has a tool without a name"));
        }
        if let Some(own) = twice.first() {
            self.problems.push(format!(
                "{label} has more than one tool {own:?}; its first counts"
            ));
        }
        if let Some(wanted) = &config.tools {
            let missing = wanted.iter().filter(|name| !seen.contains(name.as_str()));
            let missing: Vec<_> = missing.map(String::as_str).collect();
            if !missing.is_empty() {
                let missing = missing.join(", ");
                self.problems.push(format!(
                    "{label} has no tool {missing}, which its entry names"
                ));
            }
            named.retain(|(own, _)| wanted.iter().any(|name| name == own));
        }
        named
    }

    /// As models call them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|(_, tool)| tool.name())
    }

    /// The tools with what runs them.
    pub fn tools(&self, server: &Arc<dyn Server>) -> impl Iterator<Item = Tool> {
        self.tools.iter().map(move |(own, tool)| {
            let (server, own) = (Arc::clone(server), own.clone());
            let handler = move |call: Call, arguments: Map<String, Value>| {
                run(Arc::clone(&server), own.clone(), call, arguments)
            };
            tool.clone().handler(handler)
        })
    }
}

fn tool(config: &Config, shown: &str, entry: &Value) -> Result<Tool, String> {
    let declared = entry.get("inputSchema");
    let length = declared.map_or(0, |schema| schema.to_string().len());
    if length > SCHEMA {
        return Err(format!("its inputSchema is longer than {SCHEMA} bytes"));
    }
    let shape = schema::shape(declared)?;
    let about = entry["description"].as_str().or(entry["title"].as_str());
    let about: String = about
        .unwrap_or_default()
        .chars()
        .take(DESCRIPTION)
        .collect();
    let mut tool = Tool::new(shown, &about)
        .params(shape.properties)
        .beside(shape.beside)
        .access(Access::Unknown)
        .source(&format!("mcp {}", config.name));
    for name in &shape.required {
        tool = tool.required(name);
    }
    // Whoever hands it on puts what runs it in this one's place.
    let tool = tool.handler(|_: Call, _| async { Err("nothing runs this".to_owned()) });
    tool.check()?;
    Ok(tool)
}

async fn run(
    server: Arc<dyn Server>,
    name: String,
    call: Call,
    arguments: Map<String, Value>,
) -> Outcome {
    let working = async {
        let live = server.live().await?;
        live.call(&name, arguments, Arc::new(shower(&call))).await
    };
    // What is given up is told to the server.
    let result = tokio::select! {
        biased;
        () = call.cancel.cancelled() => return Err("cancelled".to_owned()),
        result = working => result?,
    };
    outcome::of(&call, result).await
}

/// Shows progress to people, as much of it as they can use.
fn shower(call: &Call) -> impl Fn(&str) + Send + Sync + use<> {
    let (port, id) = (Arc::clone(&call.port), call.call.clone());
    let shown = AtomicUsize::new(0);
    move |line: &str| {
        if shown.fetch_add(line.len(), Ordering::Relaxed) < PROGRESS {
            let end = line
                .char_indices()
                .nth(1000)
                .map_or(line.len(), |(at, _)| at);
            port.output(&id, &line[..end]);
        }
    }
}
