//! `dwell complete`: the words that a shell offers where it completes one that only the daemon knows. Must never start a
//! daemon, say what went wrong, or take longer than a person waits for a key.

use crate::approval::Question;
use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::place::Place;
use crate::render::first_line;
use crate::{out, select};
use protocol::approval::ApprovalRpcClient;
use protocol::document;
use protocol::provider::{AgentRpcClient, ModelRpcClient, ProviderRpcClient};
use protocol::session::SessionRpcClient;
use protocol::tool::{ToolRpcClient, ToolboxRpcClient};
use serde_json::Value;
use std::time::Duration;

/// How long everything may take.
const LIMIT: Duration = Duration::from_millis(90);

/// How many sessions are offered.
const SESSIONS: u32 = 200;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which words
    kind: Kind,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Kind {
    Sessions,
    Providers,
    Models,
    LocalModels,
    Tools,
    Agents,
    Toolboxes,
    Approvals,
    Methods,
}

/// A word, and what it is.
type Word = (String, String);

/// A word a line, with a tab and what it is behind it.
pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    // Another machine is too far for a key.
    if place.remote.is_some() {
        return Ok(());
    }
    let found = tokio::time::timeout(LIMIT, words(args.kind, place)).await;
    let words = found.ok().and_then(Result::ok).unwrap_or_default();
    words.iter().try_for_each(|(word, about)| {
        let odd = |c: char| c.is_control() || c.is_whitespace();
        match word.contains(odd) {
            true => Ok(()),
            false => out::line(&format!("{word}\t{}", first_line(about))),
        }
    })
}

async fn words(kind: Kind, place: Place) -> Result<Vec<Word>, Failure> {
    if let Kind::Methods = kind {
        return Ok(methods());
    }
    let link = Link::open(place, Start::Never, Speak::Ours).await?;
    match kind {
        Kind::Sessions => sessions(&link).await,
        Kind::Providers => providers(&link).await,
        Kind::Models => models(&link).await,
        Kind::LocalModels => local_models(&link).await,
        Kind::Tools => tools(&link).await,
        Kind::Agents => agents(&link).await,
        Kind::Toolboxes => toolboxes(&link).await,
        Kind::Approvals => approvals(&link).await,
        Kind::Methods => Ok(methods()),
    }
}

async fn sessions(link: &Link) -> Result<Vec<Word>, Failure> {
    let list = link
        .call(async |client| {
            SessionRpcClient::list(client, None, None, None, Some(SESSIONS), None).await
        })
        .await?;
    let word = |one: protocol::session::Session| {
        let about = format!("{} {}", one.state.as_str(), one.title);
        (one.id.to_string(), about)
    };
    Ok(list.sessions.into_iter().map(word).collect())
}

async fn providers(link: &Link) -> Result<Vec<Word>, Failure> {
    let here = link.place().here()?;
    let all = link
        .call(async |client| ProviderRpcClient::list(client, Some(here.clone())).await)
        .await?;
    let word =
        |one: protocol::provider::ProviderInfo| (one.name, one.default_model.unwrap_or(one.source));
    Ok(all.into_iter().map(word).collect())
}

/// Those that need no vendor to be asked: the providers' own choices, and what is on this machine.
async fn models(link: &Link) -> Result<Vec<Word>, Failure> {
    let here = link.place().here()?;
    let all = link
        .call(async |client| ProviderRpcClient::list(client, Some(here.clone())).await)
        .await?;
    let mut words: Vec<Word> = all
        .into_iter()
        .filter_map(|one| Some((one.default_model?, one.name)))
        .collect();
    words.extend(local_models(link).await.unwrap_or_default());
    Ok(words)
}

async fn local_models(link: &Link) -> Result<Vec<Word>, Failure> {
    let all = link
        .call(async |client| ModelRpcClient::model_list(client).await)
        .await?;
    let word = |one: protocol::provider::LocalModel| (one.name, one.about.unwrap_or_default());
    Ok(all.into_iter().map(word).collect())
}

/// Of this directory's newest session: none is made for this.
async fn tools(link: &Link) -> Result<Vec<Word>, Failure> {
    let Some(session) = select::last(link).await? else {
        return Ok(Vec::new());
    };
    let list = link
        .call(async |client| ToolRpcClient::list(client, session.id.clone(), None).await)
        .await?;
    let word = |one: protocol::tool::ToolInfo| {
        let function = one.definition.function;
        (function.name, function.description)
    };
    Ok(list.tools.into_iter().map(word).collect())
}

async fn agents(link: &Link) -> Result<Vec<Word>, Failure> {
    let here = link.place().here()?;
    let list = link
        .call(async |client| AgentRpcClient::agent_list(client, Some(here.clone())).await)
        .await?;
    let word = |one: protocol::provider::AgentInfo| (one.name, one.description);
    Ok(list.agents.into_iter().map(word).collect())
}

async fn toolboxes(link: &Link) -> Result<Vec<Word>, Failure> {
    let here = link.place().here()?;
    let list = link
        .call(async |client| ToolboxRpcClient::toolbox_list(client, Some(here.clone())).await)
        .await?;
    let word = |one: protocol::tool::ToolboxInfo| (one.name, one.problem.unwrap_or_default());
    Ok(list.into_iter().map(word).collect())
}

async fn approvals(link: &Link) -> Result<Vec<Word>, Failure> {
    let all = link
        .call(async |client| ApprovalRpcClient::list(client, None).await)
        .await?;
    let word = |one: &protocol::approval::Approval| {
        let about = Question::from(one).brief_line();
        (one.approval.to_string(), about)
    };
    Ok(all.iter().map(word).collect())
}

fn methods() -> Vec<Word> {
    let document: Value = serde_json::from_str(&document::text()).unwrap_or_default();
    let methods = document.get("methods").and_then(Value::as_array);
    let word = |one: &Value| {
        let text = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
        (text("name").to_owned(), text("summary").to_owned())
    };
    methods.into_iter().flatten().map(word).collect()
}
