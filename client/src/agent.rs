//! Which agent a new session is, and what that agent needs to know. Must never guess a value.

use crate::ask_tty::Tty;
use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::trust;
use protocol::provider::{AgentInfo, AgentRpcClient};
use std::collections::BTreeMap;

/// An agent as the command line names it.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The agent that the session is: a folder in ~/.agents/agents or .agents/agents
    #[arg(short, long, value_name = "NAME")]
    agent: Option<String>,

    /// A value that the agent needs; may be given several times
    #[arg(long, value_name = "NAME=VALUE", requires = "agent")]
    var: Vec<String>,
}

impl Asked {
    /// Whether one was named.
    pub(crate) fn is_given(&self) -> bool {
        self.agent.is_some()
    }
}

/// An agent with all it needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) vars: BTreeMap<String, String>,
}

/// The agent that was asked for; what it needs and nobody said is asked on the terminal.
pub(crate) async fn settle(
    link: &Link,
    cwd: &str,
    asked: &Asked,
    mut tty: Option<Tty>,
) -> Result<Option<Agent>, Failure> {
    let Some(name) = &asked.agent else {
        return Ok(None);
    };
    let mut vars = given(&asked.var)?;
    // It may lie in the directory itself.
    let waiting = trust::waiting(link, cwd).await?;
    trust::settle(link, cwd, waiting, tty.as_mut()).await?;
    let listed = link
        .call(async |client| AgentRpcClient::agent_list(client, Some(cwd.to_owned())).await)
        .await?;
    let Some(agent) = listed.agents.iter().find(|agent| agent.name == *name) else {
        let index = format!("agents/{name}/index.yaml");
        if let Some(why) = listed.problems.iter().find(|why| why.contains(&index)) {
            return Err(
                Failure::new(format!("the agent {name} cannot be read: {why}"))
                    .exit(Exit::NotFound),
            );
        }
        let names: Vec<_> = listed
            .agents
            .iter()
            .map(|agent| agent.name.as_str())
            .collect();
        let hint = match names.as_slice() {
            [] => "there are none".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        return Err(Failure::new(format!("no agent is called \"{name}\""))
            .hint(hint)
            .exit(Exit::NotFound));
    };
    complete(agent, &mut vars, tty.as_mut()).await?;
    Ok(Some(Agent {
        name: name.clone(),
        vars,
    }))
}

fn given(words: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let read = |word: &String| match word.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(format!(
            "--var {word}: a name, `=` and a value are wanted"
        ))),
    };
    words.iter().map(read).collect()
}

async fn complete(
    agent: &AgentInfo,
    vars: &mut BTreeMap<String, String>,
    mut tty: Option<&mut Tty>,
) -> Result<(), Failure> {
    for variable in &agent.variables {
        if variable.default.is_some() || vars.contains_key(&variable.name) {
            continue;
        }
        let missing = || {
            Failure::new(format!(
                "the agent {} needs a value for {}",
                agent.name, variable.name
            ))
            .hint(format!("--var {}=VALUE", variable.name))
        };
        let tty = tty.as_deref_mut().ok_or_else(missing)?;
        let about = match variable.description.as_str() {
            "" => variable.name.clone(),
            about => format!("{} ({about})", variable.name),
        };
        let value = tty.ask(&format!("{about}: ")).await?;
        let value = value
            .filter(|value| !value.trim().is_empty())
            .ok_or_else(missing)?;
        vars.insert(
            variable.name.clone(),
            value.trim_end_matches('\n').to_owned(),
        );
    }
    Ok(())
}
