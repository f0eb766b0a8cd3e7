//! What a server offers: its tools, prompts and resources, page by page. Must never ask without end, nor keep more than
//! anybody could use.

use super::Connection;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams,
};
use serde_json::Value;
use std::time::Duration;

/// Pages of one list.
const PAGES: usize = 100;
/// Entries of one list.
const MOST: usize = 1000;
/// Bytes of one list, as JSON.
const BYTES: usize = 4 * 1024 * 1024;
/// How long one page may take.
const PAGE: Duration = Duration::from_secs(30);

/// All that a server offered when it was last asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// As the server declared them.
    pub(super) tools: Vec<Value>,
    pub prompts: Vec<Prompt>,
    pub resources: Vec<Resource>,
    /// What of it is left out, and why.
    pub problems: Vec<String>,
    /// What the server is and speaks.
    pub about: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    pub name: String,
    pub description: String,
    pub arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    pub name: String,
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
}

impl Inventory {
    pub fn tools(&self) -> usize {
        self.tools.len()
    }
}

impl Connection {
    /// Asks for all of it. Only a list of tools that cannot be had is a failure.
    pub async fn inventory(&self) -> Result<Inventory, String> {
        let mut problems = Vec::new();
        let tools = match self.offers("tools") {
            true => self.list(List::Tools, &mut problems).await?,
            false => Vec::new(),
        };
        let prompts = self.optional(List::Prompts, &mut problems).await;
        let resources = self.optional(List::Resources, &mut problems).await;
        Ok(Inventory {
            tools,
            prompts: prompts.iter().filter_map(prompt).collect(),
            resources: resources.iter().filter_map(resource).collect(),
            problems,
            about: self.about(),
        })
    }

    async fn optional(&self, list: List, problems: &mut Vec<String>) -> Vec<Value> {
        let what = list.name();
        if !self.offers(what) {
            return Vec::new();
        }
        match self.list(list, problems).await {
            Ok(listed) => listed,
            Err(why) => {
                problems.push(format!(
                    "the {what} of {} are not known: {why}",
                    self.label()
                ));
                Vec::new()
            }
        }
    }

    async fn list(&self, list: List, problems: &mut Vec<String>) -> Result<Vec<Value>, String> {
        let (what, label) = (list.name(), self.label());
        let mut all: Vec<Value> = Vec::new();
        let (mut cursor, mut bytes) = (None, 0);
        for _ in 0..PAGES {
            let mut page = self.ask(list.request(cursor.clone()), PAGE).await?;
            let Value::Array(entries) = page[what].take() else {
                return Err(format!("{label} gave no list of {what}"));
            };
            for entry in entries {
                bytes += entry.to_string().len();
                if all.len() >= MOST || bytes > BYTES {
                    problems.push(format!(
                        "{label} has more {what} than the first {}, which count",
                        all.len()
                    ));
                    return Ok(all);
                }
                all.push(entry);
            }
            match page["nextCursor"].as_str().map(str::to_owned) {
                None => return Ok(all),
                next if next == cursor => break,
                next => cursor = next,
            }
        }
        problems.push(format!(
            "the list of {what} of {label} does not end; its first {} count",
            all.len()
        ));
        Ok(all)
    }
}

#[derive(Clone, Copy)]
enum List {
    Tools,
    Prompts,
    Resources,
}

impl List {
    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params)),
            Self::Prompts => {
                ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params))
            }
            Self::Resources => {
                ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(params))
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// One without a name cannot be asked for.
fn prompt(entry: &Value) -> Option<Prompt> {
    let arguments = entry["arguments"].as_array().into_iter().flatten();
    let arguments = arguments.filter_map(|argument| {
        Some(Argument {
            name: argument["name"].as_str()?.to_owned(),
            required: argument["required"].as_bool() == Some(true),
        })
    });
    Some(Prompt {
        name: entry["name"].as_str()?.to_owned(),
        description: text(&entry["description"]),
        arguments: arguments.collect(),
    })
}

fn resource(entry: &Value) -> Option<Resource> {
    Some(Resource {
        uri: entry["uri"].as_str()?.to_owned(),
        name: text(&entry["name"]),
    })
}
