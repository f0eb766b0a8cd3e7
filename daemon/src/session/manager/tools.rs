//! What is asked of sessions about tools and providers, and tools run by hand.

use super::Sessions;
use super::create::{directory, tool_env};
use crate::presentation::{Means, Toolkit};
use crate::provider::Provider;
use crate::provider::registry::BuildOptions;
use crate::session::message::{ByHand, Handle, Msg};
use crate::session::port::Port;
use crate::session::{Audience, SessionError, SessionResult, shown};
use crate::toolbox::gate::Run;
use crate::toolbox::source::client::Offerer;
use crate::toolbox::source::script::agent::{Choice, Definition};
use crate::workspace::Workspace;
use crate::workspace::plugins::Slash;
use crate::workspace::servers::{ServerInfo, ServerPrompt};
use crate::workspace::skills::{Existing, Offer, Skill, Taken};
use protocol::expression::Expression;
use protocol::id::{CallId, SessionId};
use protocol::provider::{ModelInfo, ProviderInfo, ProviderInstance};
use protocol::session::Session;
use protocol::tool::{Answered, ProvidedTool, SourceInfo, ToolCheck, ToolList, ToolboxInfo};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Sessions {
    /// What the model is shown, or would be with this expression.
    pub async fn tools(
        &self,
        session: &SessionId,
        toolbox: Option<&Expression>,
    ) -> SessionResult<ToolList> {
        let handle = self.open(session).await?;
        let rules = Port::new(handle.clone()).rules().await;
        let mut list = handle.shared.describe(toolbox, &rules).await?;
        for problem in handle.shared.workspace.problems().await {
            if !list.problems.contains(&problem) {
                list.problems.push(problem);
            }
        }
        Ok(list)
    }

    /// All tools that a session's model has or reaches.
    pub async fn all_tools(&self, session: &SessionId) -> SessionResult<ToolList> {
        let handle = self.open(session).await?;
        let rules = Port::new(handle.clone()).rules().await;
        Ok(handle.shared.describe_all(&rules).await)
    }

    /// Tools that a client offers for a session and runs itself.
    pub async fn provide(
        &self,
        session: &SessionId,
        connection: u64,
        of: &Arc<dyn Offerer>,
        tools: Vec<ProvidedTool>,
    ) -> SessionResult<()> {
        self.open(session).await?;
        let offered = self
            .services()
            .provided
            .offer(session, connection, of, tools);
        offered.map_err(SessionError::Invalid)
    }

    /// A client's answer to a call of a tool that it offered; false when nobody waits for it.
    pub fn answer_tool(&self, connection: u64, call: &CallId, answered: Answered) -> bool {
        self.services().provided.answer(connection, call, answered)
    }

    /// Runs a tool through the gate, as a model's call would. It goes on when the caller goes away; `cancel` stops it.
    pub async fn run_tool(
        &self,
        session: &SessionId,
        name: &str,
        arguments: Value,
        toolbox: Option<Expression>,
        audience: Audience,
        cancel: CancellationToken,
    ) -> SessionResult<Map<String, Value>> {
        let handle = self.open(session).await?;
        let toolkit = handle.shared.by_hand(toolbox.as_ref()).await?;
        let spill_dir = self.services().spill_dir.join(session.as_str());
        let by_hand = ByHand {
            name: name.to_owned(),
            arguments,
            parent: None,
            via: "run",
            tell: audience == Audience::Model,
            cancel,
        };
        let running = run_by_hand(handle, toolkit, by_hand, spill_dir);
        let running = self.inner.actors.spawn(running);
        running.await.map_err(|_| SessionError::Stopping)?
    }

    pub async fn toolboxes(&self, cwd: Option<&str>) -> SessionResult<Vec<ToolboxInfo>> {
        let mut dirs: Vec<PathBuf> = match cwd {
            Some(cwd) => vec![directory(cwd).await?],
            None => self
                .handles()
                .iter()
                .map(|h| h.shared.cwd.clone())
                .collect(),
        };
        dirs.sort();
        dirs.dedup();
        let mut all = Vec::new();
        for dir in dirs {
            let workspace = self.services().workspaces.get(&dir);
            let whole = toolbox_info(&workspace).await;
            let settings = Arc::clone(&self.services().shown);
            let toolbox = workspace.current().await;
            all.extend(shown::named(whole, &Means { toolbox, settings }));
        }
        Ok(all)
    }

    /// As `toolboxes`, with what runs beside the daemon started anew.
    pub async fn reload_toolboxes(&self, cwd: Option<&str>) -> SessionResult<Vec<ToolboxInfo>> {
        match cwd {
            Some(cwd) => {
                let cwd = directory(cwd).await?;
                self.services().workspaces.get(&cwd).reload().await;
            }
            None => drop(self.reload_all().await?),
        }
        self.toolboxes(cwd).await
    }

    /// The agents of a directory, and what is wrong with others.
    pub async fn agents(&self, cwd: &str) -> SessionResult<(Vec<Definition>, Vec<String>)> {
        let cwd = directory(cwd).await?;
        Ok(self.services().workspaces.get(&cwd).agents().await)
    }

    /// Who a session is, with the agent as it is now.
    pub async fn agent_of(
        &self,
        session: &SessionId,
    ) -> SessionResult<Option<(Choice, Definition)>> {
        let handle = self.open(session).await?;
        let Some(choice) = handle.shared.agent.clone() else {
            return Ok(None);
        };
        let found = handle.shared.workspace.agent(&choice.name).await;
        let (definition, _) = found.map_err(SessionError::Invalid)?;
        Ok(Some((choice, definition)))
    }

    /// What is wrong with the scripts of a directory, where they would see `env`.
    pub async fn check_scripts(
        &self,
        cwd: &str,
        env: Option<BTreeMap<String, String>>,
    ) -> SessionResult<ToolCheck> {
        let cwd = directory(cwd).await?;
        let env = tool_env(env, &self.services().providers);
        let workspace = self.services().workspaces.get(&cwd);
        let checked = workspace.check(env).await.map_err(SessionError::Invalid)?;
        Ok(ToolCheck {
            files: checked.files,
            tools: checked.tools,
            problems: checked.problems,
            warnings: checked.warnings,
        })
    }

    /// Those of the daemon, and those of the plugins that count in a directory.
    pub async fn providers(&self, cwd: Option<&str>) -> SessionResult<Vec<ProviderInfo>> {
        let mut all = self.services().providers.list();
        if let Some(cwd) = cwd {
            let cwd = directory(cwd).await?;
            let workspace = self.services().workspaces.get(&cwd);
            over(&mut all, workspace.settled_providers().await);
        }
        Ok(all)
    }

    /// Those that a session can switch to.
    pub async fn providers_of(&self, session: &SessionId) -> SessionResult<Vec<ProviderInfo>> {
        let handle = self.open(session).await?;
        let mut all = self.services().providers.list();
        over(&mut all, handle.shared.workspace.providers());
        Ok(all)
    }

    /// What the plugins of a session's directory add to the slash commands.
    pub async fn commands(&self, session: &SessionId) -> SessionResult<Vec<Slash>> {
        let handle = self.open(session).await?;
        Ok(handle.shared.workspace.commands().await)
    }

    /// The skills of a session's directory.
    pub async fn skills(&self, session: &SessionId) -> SessionResult<Vec<Skill>> {
        let handle = self.open(session).await?;
        Ok(handle.shared.workspace.skills().await)
    }

    /// The MCP servers of a session's directory, and what is wrong with the files that name them.
    pub async fn mcp_servers(
        &self,
        session: &SessionId,
    ) -> SessionResult<(Vec<ServerInfo>, Vec<String>)> {
        let handle = self.open(session).await?;
        let own = handle.shared.own_servers();
        Ok(handle.shared.workspace.mcp_servers(own.as_deref()).await)
    }

    /// The prompts of the MCP servers of a session's directory, as far as they have run.
    pub async fn prompts(&self, session: &SessionId) -> SessionResult<Vec<ServerPrompt>> {
        let handle = self.open(session).await?;
        let own = handle.shared.own_servers();
        Ok(handle.shared.workspace.prompts(own.as_deref()))
    }

    /// The resources of those servers that may stand for what begins so.
    pub async fn resources(
        &self,
        session: &SessionId,
        partial: &str,
    ) -> SessionResult<Vec<String>> {
        let handle = self.open(session).await?;
        let own = handle.shared.own_servers();
        Ok(handle.shared.workspace.resources(partial, own.as_deref()))
    }

    /// Starts those of them that do not run, and waits a while.
    pub async fn wake_servers(&self, session: &SessionId) -> SessionResult<()> {
        let handle = self.open(session).await?;
        let own = handle.shared.own_servers();
        handle.shared.workspace.wake_servers(own.as_deref()).await;
        Ok(())
    }

    /// Begins a login at an MCP server, whose end the session is told. Gives the URL for a person's browser.
    pub async fn login_mcp(&self, session: &SessionId, name: &str) -> SessionResult<String> {
        let handle = self.open(session).await?;
        let (workspace, own) = (
            Arc::clone(&handle.shared.workspace),
            handle.shared.own_servers(),
        );
        let begun = workspace.login_mcp(name, own.as_deref()).await;
        let login = begun.map_err(|why| {
            SessionError::Invalid(format!("cannot log in to the MCP server {name}: {why}"))
        })?;
        let url = login.url.clone();
        let (sessions, session, name) = (self.clone(), session.clone(), name.to_owned());
        // It ends when nobody logs in for a while; the daemon's end ends it too.
        tokio::spawn(async move {
            let said = match workspace.finish_login(&name, login, own.as_deref()).await {
                Ok(()) => format!("logged in to the MCP server {name}"),
                Err(why) => format!("not logged in to the MCP server {name}: {why}"),
            };
            let _ = sessions.say(&session, said).await;
        });
        Ok(url)
    }

    /// Forgets the token of an MCP server. Whether there was one.
    pub async fn logout_mcp(&self, session: &SessionId, name: &str) -> SessionResult<bool> {
        let handle = self.open(session).await?;
        let own = handle.shared.own_servers();
        let gone = handle
            .shared
            .workspace
            .logout_mcp(name, own.as_deref())
            .await;
        gone.map_err(SessionError::Invalid)
    }

    /// Starts an MCP server anew; none is all of them.
    pub async fn restart_mcp(&self, session: &SessionId, name: Option<&str>) -> SessionResult<()> {
        let handle = self.open(session).await?;
        let own = handle.shared.own_servers();
        let restarted = handle
            .shared
            .workspace
            .restart_mcp(name, own.as_deref())
            .await;
        restarted.map_err(SessionError::Invalid)
    }

    /// What a site publishes; all of it has to be shown before any of it can be taken.
    pub async fn offered_skills(&self, session: &SessionId, site: &str) -> SessionResult<Offer> {
        let workspace = Arc::clone(&self.open(session).await?.shared.workspace);
        let offer = workspace.offer(site).await;
        offer.map_err(SessionError::Refused)
    }

    /// People saw all of it.
    pub async fn skills_were_shown(&self, session: &SessionId, offer: &Offer) -> SessionResult<()> {
        let handle = self.open(session).await?;
        handle.shared.workspace.was_shown(offer);
        Ok(())
    }

    /// Puts skills that were shown into the user's home.
    pub async fn take_skills(
        &self,
        session: &SessionId,
        site: &str,
        names: &[String],
        existing: Existing,
    ) -> SessionResult<Vec<Taken>> {
        let workspace = Arc::clone(&self.open(session).await?.shared.workspace);
        let taken = workspace.take(site, names, existing).await;
        taken.map_err(SessionError::Refused)
    }

    /// Starts the plugins of a session's directory anew and reads `config.toml`; tells what is wrong, and what waits.
    pub async fn reload(&self, session: &SessionId) -> SessionResult<Vec<String>> {
        let handle = self.open(session).await?;
        let reread = self.services().workspaces.reread().await;
        handle.shared.workspace.reload().await;
        let toolbox = handle.shared.workspace.current().await;
        let problems = reread.unwrap_or_else(|why| vec![why]).into_iter();
        Ok(problems.chain(toolbox.problems().iter().cloned()).collect())
    }

    /// As `reload`, in every directory where somebody works; gives what waits for the next start. An error is about
    /// `config.toml`; the rest is done then too.
    pub async fn reload_all(&self) -> SessionResult<Vec<String>> {
        let workspaces = &self.services().workspaces;
        let reread = workspaces.reread().await;
        let open = workspaces.open();
        futures_util::future::join_all(open.iter().map(|workspace| workspace.reload())).await;
        reread.map_err(SessionError::Refused)
    }

    /// The conversation is kept. A provider that cannot be built leaves the session on its old one.
    pub async fn switch_provider(
        &self,
        session: &SessionId,
        name: &str,
        model: Option<String>,
    ) -> SessionResult<u64> {
        let handle = self.open(session).await?;
        let shared = &handle.shared;
        let provider = self
            .build(&shared.workspace, name, model.clone(), &shared.env)
            .await?;
        let name = name.to_owned();
        handle
            .ask(|reply| Msg::Switch {
                name,
                model,
                provider,
                reply,
            })
            .await
    }

    /// Those of a provider; in a directory, also of its plugins' providers.
    pub async fn models(&self, provider: &str, cwd: Option<&str>) -> SessionResult<Vec<ModelInfo>> {
        let mut options = BuildOptions::default();
        if let Some(cwd) = cwd {
            let workspace = self.services().workspaces.get(&directory(cwd).await?);
            let _ = workspace.settled_providers().await;
            options.host = workspace.provider(provider).await;
        }
        let built = self.services().providers.build(provider, options).await;
        models(built.map_err(|error| SessionError::Provider(error.to_string()))?).await
    }

    /// Those of a session's provider, at the server that the session talks to.
    pub async fn models_of(&self, session: &Session) -> SessionResult<Vec<ModelInfo>> {
        let handle = self.open(&session.id).await?;
        let shared = &handle.shared;
        let provider = self
            .build(&shared.workspace, &session.provider, None, &shared.env)
            .await?;
        models(provider).await
    }

    pub async fn instances(&self) -> Vec<ProviderInstance> {
        let mut all = Vec::new();
        for handle in self.handles() {
            all.extend(handle.ask(Msg::Instance).await.ok().flatten());
        }
        all
    }
}

async fn models(provider: Arc<dyn Provider>) -> SessionResult<Vec<ModelInfo>> {
    let models = provider.models().await;
    models.map_err(|error| SessionError::Provider(error.to_string()))
}

/// Puts these over those of the same name.
fn over(all: &mut Vec<ProviderInfo>, more: Vec<ProviderInfo>) {
    for info in more {
        match all.iter_mut().find(|known| known.name == info.name) {
            Some(known) => *known = info,
            None => all.push(info),
        }
    }
}

async fn run_by_hand(
    handle: Handle,
    toolkit: Arc<dyn Toolkit>,
    by_hand: ByHand,
    spill_dir: PathBuf,
) -> SessionResult<Map<String, Value>> {
    let (name, arguments) = (by_hand.name.clone(), by_hand.arguments.clone());
    let cancel = by_hand.cancel.clone();
    let call = handle.ask(|reply| Msg::ByHand(by_hand, reply)).await?;
    let port = Arc::new(Port::new(handle.clone()));
    let run = Run {
        session: handle.id.clone(),
        call: call.clone(),
        name,
        arguments,
        cwd: handle.shared.cwd.clone(),
        env: Arc::clone(&handle.shared.env),
        cancel,
        spill_dir,
        permissions: port.rules().await,
        port,
    };
    let ran = toolkit.run(run).await;
    let (result, ms) = (ran.result.clone(), ran.ms);
    handle
        .ask(move |reply| Msg::ByHandDone {
            call,
            result,
            ms,
            reply,
        })
        .await?;
    Ok(ran.result)
}

async fn toolbox_info(workspace: &Arc<Workspace>) -> ToolboxInfo {
    let mut by_source: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let toolbox = workspace.current().await;
    for tool in toolbox.tools() {
        by_source
            .entry(tool.origin().to_owned())
            .or_default()
            .push(tool.name().to_owned());
    }
    let mut problems = workspace.problems().await;
    problems.extend(toolbox.problems().iter().cloned());
    let (servers, _) = workspace.mcp_servers(None).await;
    for server in &servers {
        by_source.remove(&format!("mcp {}", server.name));
        problems.retain(|problem| !server.problems.contains(problem));
    }
    let source = |(name, tools): (String, Vec<String>)| SourceInfo {
        name,
        tools,
        health: "ready".to_owned(),
        problems: problems.clone(),
    };
    let served = servers.into_iter().map(|server| SourceInfo {
        name: format!("mcp {}", server.name),
        tools: server.tools,
        health: server.health.name().to_owned(),
        problems: server.problems,
    });
    let sources = by_source.into_iter().map(source).chain(served).collect();
    ToolboxInfo {
        name: "default".to_owned(),
        cwd: workspace.cwd().display().to_string(),
        sources,
        expression: None,
        problem: None,
    }
}
