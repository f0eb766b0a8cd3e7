//! `/mcp`: the MCP servers of the directory, how they are, a fresh start for one, and logins.

use super::registry::{Candidates, Command, Failure, Invocation, Ran};
use super::table::table;
use crate::workspace::servers::{Health, ServerInfo};

const USAGE: &str =
    "usage: /mcp, /mcp NAME, /mcp restart [NAME], /mcp login NAME, /mcp logout NAME";

pub(super) fn command() -> Command {
    let about = "list MCP servers, show one, or start it anew";
    Command::new("mcp", about, run).completing(Candidates::asked(words))
}

async fn run(invocation: Invocation) -> Ran {
    let words: Vec<&str> = invocation
        .argument()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    match words[..] {
        [] => list(&invocation).await,
        ["restart"] => restart(&invocation, None).await,
        ["restart", name] => restart(&invocation, Some(name)).await,
        ["login", name] => {
            let url = invocation
                .sessions
                .login_mcp(&invocation.session, name)
                .await?;
            Ok(format!(
                "to log in to the MCP server {name}, open this within ten minutes in a browser on the daemon's machine:\n{url}"
            ))
        }
        ["logout", name] => match invocation
            .sessions
            .logout_mcp(&invocation.session, name)
            .await?
        {
            true => Ok(format!("the token of the MCP server {name} is forgotten")),
            false => Err(Failure(format!(
                "there is no token of the MCP server {name}"
            ))),
        },
        [name] => show(&invocation, name).await,
        _ => Err(Failure(USAGE.to_owned())),
    }
}

async fn list(invocation: &Invocation) -> Ran {
    let (servers, problems) = invocation.sessions.mcp_servers(&invocation.session).await?;
    if servers.is_empty() && problems.is_empty() {
        return Ok(
            "no MCP servers: they are named in ~/.agents/mcp.json and .agents/mcp.json".to_owned(),
        );
    }
    let rows: Vec<_> = servers.iter().map(row).collect();
    let own = servers.iter().flat_map(|server| &server.problems);
    let lines = problems.iter().chain(own).cloned();
    let all = Some(table(&rows)).filter(|rows| !rows.is_empty());
    Ok(all.into_iter().chain(lines).collect::<Vec<_>>().join("\n"))
}

fn row(server: &ServerInfo) -> [String; 4] {
    let counted = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    let mut offers = vec![counted(server.tools.len(), "tool")];
    if !server.prompts.is_empty() {
        offers.push(counted(server.prompts.len(), "prompt"));
    }
    if !server.resources.is_empty() {
        offers.push(counted(server.resources.len(), "resource"));
    }
    let offers = match server.health {
        Health::Idle => "starts when it is needed".to_owned(),
        Health::Starting | Health::Ready | Health::Failed => offers.join(", "),
    };
    let health = server.health.name().to_owned();
    [server.name.clone(), health, offers, server.about.clone()]
}

async fn show(invocation: &Invocation, name: &str) -> Ran {
    let (servers, _) = invocation.sessions.mcp_servers(&invocation.session).await?;
    let Some(server) = servers.iter().find(|server| server.name == name) else {
        let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        return Err(Failure(format!(
            "no MCP server is called {name:?}; there are: {names}\n{USAGE}"
        )));
    };
    let mut lines = vec![table(&[row(server)])];
    lines.extend(server.tools.iter().map(|tool| format!("tool      {tool}")));
    lines.extend(server.prompts.iter().map(|prompt| {
        format!(
            "prompt    /{}:{} {}",
            server.name, prompt.name, prompt.description
        )
    }));
    lines.extend(server.resources.iter().map(|resource| {
        format!(
            "resource  @{}:{} {}",
            server.name, resource.uri, resource.name
        )
    }));
    lines.extend(server.problems.iter().cloned());
    let trimmed = lines.iter().map(|line| line.trim_end());
    Ok(trimmed.collect::<Vec<_>>().join("\n"))
}

async fn restart(invocation: &Invocation, name: Option<&str>) -> Ran {
    invocation
        .sessions
        .restart_mcp(&invocation.session, name)
        .await?;
    match name {
        Some(name) => show(invocation, name).await,
        None => list(invocation).await,
    }
}

async fn words(invocation: Invocation) -> Vec<String> {
    let found = invocation.sessions.mcp_servers(&invocation.session).await;
    let names = found.map(|(servers, _)| servers).unwrap_or_default();
    let names = names.into_iter().map(|server| server.name);
    let each = names.flat_map(|name| {
        let verbs = ["restart", "login", "logout"].map(|verb| format!("{verb} {name}"));
        verbs.into_iter().chain([name])
    });
    ["restart".to_owned()].into_iter().chain(each).collect()
}
