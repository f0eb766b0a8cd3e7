//! The editor's MCP servers as the daemon takes them. Must never hand on one of a kind that is not spoken.

use agent_client_protocol_schema::v1::McpServer;
use serde_json::{Map, Value, json};

/// Those that can be joined, by name, and the names of the others.
pub(in crate::acp) fn of(servers: &[McpServer]) -> (Map<String, Value>, Vec<String>) {
    let (mut all, mut others) = (Map::new(), Vec::new());
    for server in servers {
        match server {
            McpServer::Stdio(server) => {
                let env = server.env.iter();
                let env = env.map(|one| (one.name.clone(), one.value.clone().into()));
                let entry = json!({
                    "command": server.command,
                    "args": server.args,
                    "env": env.collect::<Map<_, _>>(),
                });
                all.insert(server.name.clone(), entry);
            }
            McpServer::Http(server) => {
                let headers = server.headers.iter();
                let headers = headers.map(|one| (one.name.clone(), one.value.clone().into()));
                let headers: Map<_, _> = headers.collect();
                all.insert(
                    server.name.clone(),
                    json!({"url": server.url, "headers": headers}),
                );
            }
            McpServer::Sse(server) => others.push(server.name.clone()),
            _ => others.push("one of an unknown kind".to_owned()),
        }
    }
    (all, others)
}
