//! The editor's MCP servers as the daemon takes them. Must never hand on one of a kind that is not spoken.

use agent_client_protocol_schema::v1::McpServer;
use serde_json::{Map, Value, json};

/// Those that can be joined, by name, and what to tell of the others.
pub(in crate::acp) fn of(servers: &[McpServer]) -> (Map<String, Value>, Vec<String>) {
    let (mut all, mut others, mut doubled) = (Map::new(), Vec::new(), Vec::new());
    for server in servers {
        let (name, entry) = match server {
            McpServer::Stdio(server) => {
                let env = server.env.iter();
                let env = env.map(|one| (one.name.clone(), one.value.clone().into()));
                let entry = json!({
                    "command": server.command,
                    "args": server.args,
                    "env": env.collect::<Map<_, _>>(),
                });
                (server.name.clone(), entry)
            }
            McpServer::Http(server) => {
                let headers = server.headers.iter();
                let headers = headers.map(|one| (one.name.clone(), one.value.clone().into()));
                let headers: Map<_, _> = headers.collect();
                let entry = json!({"url": server.url, "headers": headers});
                (server.name.clone(), entry)
            }
            McpServer::Sse(server) => {
                others.push(server.name.clone());
                continue;
            }
            _ => {
                others.push("one of an unknown kind".to_owned());
                continue;
            }
        };
        if all.insert(name.clone(), entry).is_some() && !doubled.contains(&name) {
            doubled.push(name);
        }
    }
    (all, notes(&others, &doubled))
}

fn notes(others: &[String], doubled: &[String]) -> Vec<String> {
    let unspoken = (!others.is_empty()).then(|| {
        format!(
            "MCP servers of the editor that are not joined to the session, as only stdio and streamable HTTP are spoken: {}",
            others.join(", ")
        )
    });
    let doubled = doubled.iter().map(|name| {
        format!("several MCP servers of the editor are called \"{name}\": only the last of them is joined to the session")
    });
    unspoken.into_iter().chain(doubled).collect()
}
