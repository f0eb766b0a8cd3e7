//! How sessions come and go: made for a directory, forked, deleted. Must never write events of a loaded session.

use super::Sessions;
use crate::presentation::{FIELD, Means, toolkit};
use crate::provider::Provider;
use crate::provider::registry::Providers;
use crate::session::actor::now_ms;
use crate::session::fork;
use crate::session::message::Msg;
use crate::session::state::State;
use crate::session::task::Task;
use crate::session::{NewSession, SessionError, SessionResult, name};
use crate::store::{Durability, Entry, Pace, SessionRow, StoreError};
use crate::toolbox::source::script::agent::Choice;
use crate::workspace::Workspace;
use protocol::daemon::Change;
use protocol::expression::Expression;
use protocol::id::SessionId;
use protocol::session::{Session, SessionState};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Under which the settings have them.
const SERVERS: &str = "mcp_servers";

impl Sessions {
    /// Puts these MCP servers in the place of those that were named for the session before. They are kept with it.
    pub async fn name_servers(
        &self,
        session: &SessionId,
        servers: Map<String, Value>,
    ) -> SessionResult<()> {
        let handle = self.open(session).await?;
        handle
            .shared
            .name_servers(&servers)
            .map_err(SessionError::Invalid)?;
        let row = self.services().store.row(session).await?;
        let mut settings: Value = serde_json::from_str(&row.settings).unwrap_or_default();
        settings[SERVERS] = Value::Object(servers);
        handle
            .ask(|reply| Msg::Settings(settings.to_string(), reply))
            .await
    }

    pub async fn create(&self, new: NewSession) -> SessionResult<Session> {
        self.create_as(new, None).await
    }

    /// A session that works for a call of another.
    pub async fn create_for(&self, new: NewSession, task: Task) -> SessionResult<Session> {
        self.create_as(new, Some(task)).await
    }

    async fn create_as(&self, new: NewSession, task: Option<Task>) -> SessionResult<Session> {
        if self.services().stopping.load(Ordering::Relaxed) {
            return Err(SessionError::Stopping);
        }
        let cwd = directory(&new.cwd).await?;
        let providers = &self.services().providers;
        check_env(new.env.as_ref())?;
        let env = tool_env(new.env.clone(), providers);
        let provider_name = match new.provider.clone() {
            Some(name) => name,
            None => providers.default_name(Some(&env)).await,
        };
        let mut new = new;
        self.choose_agent(&cwd, &mut new).await?;
        let id = name::fresh();
        // Held until the session itself holds it, so that what a plugin was started for does not end in between.
        let workspace = self.services().workspaces.get(&cwd);
        workspace.needed_by(&id);
        let own = workspace.own_servers(&new.mcp_servers, &env);
        own.map_err(SessionError::Invalid)?;
        self.check_toolbox(&workspace, &new).await?;
        let provider = self
            .build(&workspace, &provider_name, new.model.clone(), &env)
            .await?;
        let row = row_of(&id, &cwd, &new, provider_name, &env, task);
        self.services().store.create(row.clone()).await?;
        let handle = self.put(row, State::default(), Some(provider));
        let session = handle.ask(Msg::View).await?;
        self.tell(&session);
        Ok(session)
    }

    /// The agent has to be there, and to have what it needs.
    async fn choose_agent(&self, cwd: &Path, new: &mut NewSession) -> SessionResult<()> {
        let vars = new.vars.take().unwrap_or_default();
        let Some(name) = &new.agent else {
            return match vars.is_empty() {
                true => Ok(()),
                false => Err(SessionError::Invalid(
                    "vars are an agent's: name the agent too".to_owned(),
                )),
            };
        };
        let workspace = self.services().workspaces.get(cwd);
        let choice = workspace.choose(name, &vars).await;
        new.vars = Some(choice.map_err(SessionError::Invalid)?.variables);
        Ok(())
    }

    /// What a session is made with has to be there now; later it goes on without what is not any more.
    async fn check_toolbox(
        &self,
        workspace: &Arc<Workspace>,
        new: &NewSession,
    ) -> SessionResult<()> {
        let Some(expression) = &new.toolbox else {
            return Ok(());
        };
        let agent = new.agent.clone().map(|name| Choice {
            name,
            variables: new.vars.clone().unwrap_or_default(),
        });
        let toolbox = workspace.tools_for(agent.as_ref()).await;
        let settings = Arc::clone(&self.services().shown);
        toolkit(Some(expression), FIELD, &Means { toolbox, settings })?;
        Ok(())
    }

    pub(super) async fn build(
        &self,
        workspace: &Workspace,
        name: &str,
        model: Option<String>,
        env: &BTreeMap<String, String>,
    ) -> SessionResult<Arc<dyn Provider>> {
        let env = Arc::new(env.clone());
        let built = self.services().build(workspace, name, model, env).await;
        built.map_err(|error| SessionError::Provider(error.to_string()))
    }

    /// A new session with the events up to and including `at`.
    pub async fn fork(&self, session: &SessionId, at: Option<u64>) -> SessionResult<Session> {
        let source = self.services().store.row(session).await?;
        let at = at.unwrap_or(source.seq);
        if at > source.seq {
            return Err(SessionError::CursorBeyond {
                after: at,
                newest: source.seq,
            });
        }
        let id = name::fresh();
        let copies = fork::copy(&self.events(session).await?, at, &id);
        let state = State::fold(&copies);
        let now = now_ms();
        let title = if state.title.is_empty() {
            source.title.clone()
        } else {
            state.title.clone()
        };
        let (status, reason) = state.status();
        let row = SessionRow {
            id: id.clone(),
            title,
            state: status,
            reason,
            created_at: now,
            updated_at: now,
            seq: 0,
            archived: false,
            parent: Some(session.clone()),
            task: None,
            ..source
        };
        self.services().store.create(row.clone()).await?;
        let row = SessionRow {
            seq: state.seq,
            ..row
        };
        let entries: Vec<Entry> = copies.into_iter().map(Entry::new).collect();
        if !entries.is_empty() {
            let store = &self.services().store;
            store
                .append(
                    &id,
                    entries,
                    Some(row.clone()),
                    Pace::Now,
                    Durability::Synced,
                )
                .await?;
        }
        let view = self.put(row, state, None).ask(Msg::View).await?;
        self.tell(&view);
        Ok(view)
    }

    /// Deletes a session with all its events; its turn is stopped. An unknown one is no error.
    pub async fn delete(&self, session: &SessionId) -> SessionResult<()> {
        match self.services().store.lease(session).await {
            Err(StoreError::NotFound(_)) => return Ok(()),
            other => other?,
        }
        let slot = self.map().remove(session);
        if let Some(handle) = slot.as_ref().and_then(|slot| slot.get()) {
            handle.tell(Msg::Vanish).await;
        }
        self.services().store.delete(session).await?;
        let spill = self.services().spill_dir.join(session.as_str());
        // Only there when a tool printed too much.
        let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(spill)).await;
        let _ = self.services().changes.send(Change::Deleted {
            session: session.clone(),
        });
        Ok(())
    }

    pub(super) fn tell(&self, session: &Session) {
        let mut session = session.clone();
        session.env.clear();
        let _ = self.services().changes.send(Change::Session {
            session: Box::new(session),
        });
    }
}

/// The directory of a session: absolute, there, and a directory.
pub(super) async fn directory(cwd: &str) -> SessionResult<PathBuf> {
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(SessionError::Invalid(format!(
            "cwd {cwd:?} is not an absolute path"
        )));
    }
    match tokio::fs::metadata(path).await {
        Ok(found) if found.is_dir() => Ok(path.components().collect()),
        Ok(_) => Err(SessionError::Invalid(format!(
            "cwd {cwd:?} is not a directory"
        ))),
        Err(error) => Err(SessionError::Invalid(format!(
            "cwd {cwd:?} cannot be used: {error}"
        ))),
    }
}

fn row_of(
    id: &SessionId,
    cwd: &Path,
    new: &NewSession,
    provider: String,
    env: &BTreeMap<String, String>,
    task: Option<Task>,
) -> SessionRow {
    let now = now_ms();
    let mut settings =
        json!({"env": env, "toolbox": new.toolbox, "agent": new.agent, "vars": new.vars});
    if !new.mcp_servers.is_empty() {
        settings[SERVERS] = Value::Object(new.mcp_servers.clone());
    }
    if let Some(task) = &task {
        settings["depth"] = task.depth.into();
    }
    SessionRow {
        id: id.clone(),
        title: new.title.clone().unwrap_or_default().trim().to_owned(),
        cwd: cwd.display().to_string(),
        state: SessionState::Idle,
        reason: None,
        provider,
        model: new.model.clone(),
        created_at: now,
        updated_at: now,
        seq: 0,
        archived: false,
        parent: task.as_ref().map(|task| task.parent.clone()),
        task: task.map(|task| task.call),
        settings: settings.to_string(),
    }
}

pub(super) fn env_of(settings: &str) -> BTreeMap<String, String> {
    let parsed: Option<Value> = serde_json::from_str(settings).ok();
    parsed
        .and_then(|v| serde_json::from_value(v.get("env")?.clone()).ok())
        .unwrap_or_default()
}

/// What a session works for.
pub(super) fn task_of(row: &SessionRow) -> Option<Task> {
    let settings: Value = serde_json::from_str(&row.settings).unwrap_or_default();
    let depth = settings["depth"]
        .as_u64()
        .and_then(|depth| u32::try_from(depth).ok());
    Some(Task {
        parent: row.parent.clone()?,
        call: row.task.clone()?,
        depth: depth.unwrap_or(1),
    })
}

pub(super) fn agent_of(settings: &str) -> Option<Choice> {
    let settings: Value = serde_json::from_str(settings).ok()?;
    Some(Choice {
        name: settings["agent"].as_str()?.to_owned(),
        variables: serde_json::from_value(settings["vars"].clone()).unwrap_or_default(),
    })
}

/// The MCP servers that were named for it.
pub(super) fn servers_of(settings: &str) -> Map<String, Value> {
    let mut settings: Value = serde_json::from_str(settings).unwrap_or_default();
    match settings[SERVERS].take() {
        Value::Object(servers) => servers,
        _ => Map::new(),
    }
}

pub(super) fn toolbox_of(settings: &str) -> Option<Expression> {
    let settings: Value = serde_json::from_str(settings).ok()?;
    serde_json::from_value(settings.get("toolbox")?.clone()).ok()
}

/// Names and values that no process can be given are refused here, where it can still be said whose they are.
fn check_env(env: Option<&BTreeMap<String, String>>) -> SessionResult<()> {
    let bad = |(name, value): &(&String, &String)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    match env.and_then(|env| env.iter().find(bad)) {
        None => Ok(()),
        Some((name, _)) => Err(SessionError::Invalid(format!(
            "env {name:?}: a name is not empty and has no `=`, and neither it nor its value has a NUL"
        ))),
    }
}

/// What tools see: the client's environment, or the plainest of the daemon's own; never a secret of dwell's.
pub(super) fn tool_env(
    given: Option<BTreeMap<String, String>>,
    providers: &Providers,
) -> BTreeMap<String, String> {
    const PLAIN: [&str; 9] = [
        "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME", "SHELL", "TZ",
    ];
    let own = || {
        PLAIN
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
            .collect()
    };
    let mut env: BTreeMap<String, String> = given.unwrap_or_else(own);
    env.retain(|name, _| !name.starts_with("DWELL_") && !providers.is_key_variable(name));
    env
}
