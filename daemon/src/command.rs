//! Slash commands: the table of those built in, running a line and completing one.
//! They work through the handles that every client's methods work through; must never touch a session's state.

mod agent;
mod clear;
mod compact;
mod complete;
mod context;
mod export;
mod fork;
mod help;
mod init;
mod mcp;
mod model;
mod permissions;
mod plugin;
mod prompt;
mod provider;
pub mod registry;
mod reload;
mod rename;
mod sessions;
mod skills;
mod starter;
mod table;
mod tools;
mod usage;

use crate::session::{SessionResult, Sessions};
use protocol::command::{Candidate, CommandInfo, CommandResult, Completions};
use protocol::id::SessionId;
use registry::{Candidates, Command, Invocation, Registry};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Those built in, in the order of `/help`. Another one: its file, its `mod`, and a line here.
const BUILTIN: &[fn() -> Command] = &[
    help::command,
    tools::command,
    context::command,
    provider::command,
    model::command,
    compact::command,
    clear::command,
    reload::command,
    sessions::command,
    rename::command,
    fork::command,
    permissions::command,
    usage::command,
    skills::command,
    mcp::command,
    init::command,
    export::command,
    agent::command,
    starter::command,
];

/// All slash commands of this daemon; a cheap handle.
#[derive(Clone)]
pub struct Commands {
    sessions: Sessions,
    /// Held for look-ups only, never while a command runs.
    registry: Arc<Mutex<Registry>>,
}

impl Commands {
    /// With those built in.
    pub fn new(sessions: Sessions) -> Self {
        let mut registry = Registry::default();
        for command in BUILTIN {
            registry.register(command());
        }
        Self {
            sessions,
            registry: Arc::new(Mutex::new(registry)),
        }
    }

    /// The registry of the commands, to add and replace.
    pub fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session's commands: the daemon's, with those of its directory's plugins over them, and the prompts of
    /// its servers.
    pub async fn of(&self, session: &SessionId) -> SessionResult<Registry> {
        let slashes = self.sessions.commands(session).await?;
        let mut registry = self.registry().clone();
        for slash in slashes {
            registry.register(plugin::command(slash));
        }
        for prompt in self.sessions.prompts(session).await? {
            registry.register(prompt::command(prompt));
        }
        Ok(registry)
    }

    /// As `of`, where somebody wants a command of this name: a server's prompts are known once it runs.
    async fn with(&self, session: &SessionId, name: &str) -> SessionResult<Registry> {
        let registry = self.of(session).await?;
        if registry.find(name).is_some() || !name.contains(':') {
            return Ok(registry);
        }
        self.sessions.wake_servers(session).await?;
        self.of(session).await
    }

    /// A session's commands, in the order of their registration.
    pub async fn list(&self, session: &SessionId) -> SessionResult<Vec<CommandInfo>> {
        Ok(self.of(session).await?.infos())
    }

    /// Runs a line that starts with `/`. What goes wrong in the command stands in the result; an `Err` is an unknown
    /// session.
    pub async fn run(&self, session: &SessionId, line: &str) -> SessionResult<CommandResult> {
        match protocol::command::split(line) {
            Some((name, args)) => self.run_named(session, name, args).await,
            None => {
                self.sessions.get(session).await?;
                Ok(refused(format!("not a command, but text: {line:?}")))
            }
        }
    }

    /// Runs a command by its name; `ran` says whether there is one.
    pub async fn run_named(
        &self,
        session: &SessionId,
        name: &str,
        args: Option<&str>,
    ) -> SessionResult<CommandResult> {
        let registry = self.with(session, name).await?;
        let Some(command) = registry.find(name) else {
            return Ok(refused(registry.unknown(name)));
        };
        let invocation = self.invocation(session, args);
        let (output, error) = match (command.run)(invocation).await {
            Ok(output) => (output.trim_end_matches('\n').to_owned(), None),
            Err(failure) => (String::new(), Some(failure.0)),
        };
        Ok(CommandResult {
            ran: true,
            output,
            error,
        })
    }

    /// The completions of a command's argument that start with `partial`.
    pub async fn completions_for(
        &self,
        session: &SessionId,
        name: &str,
        partial: &str,
    ) -> SessionResult<Vec<Candidate>> {
        let found = self.of(session).await?.find(name);
        let asking = || self.invocation(session, Some(partial));
        let plain = |text| Candidate {
            text,
            description: None,
        };
        let mut words = match found.map(|command| command.completions) {
            None | Some(Candidates::None) => Vec::new(),
            Some(Candidates::Fixed(words)) => words.into_iter().map(plain).collect(),
            Some(Candidates::Asked(ask)) => ask(asking()).await.into_iter().map(plain).collect(),
            Some(Candidates::Told(ask)) => ask(asking()).await,
        };
        words.retain(|word| word.text.starts_with(partial));
        Ok(words)
    }

    /// What may stand at the end of the line: a command's name, its argument, else a file's name.
    pub async fn complete(&self, session: &SessionId, line: &str) -> SessionResult<Completions> {
        complete::complete(self, session, line).await
    }

    fn invocation(&self, session: &SessionId, args: Option<&str>) -> Invocation {
        Invocation {
            commands: self.clone(),
            sessions: self.sessions.clone(),
            session: session.clone(),
            args: args.map(str::to_owned),
        }
    }
}

fn refused(error: String) -> CommandResult {
    CommandResult {
        ran: false,
        output: String::new(),
        error: Some(error),
    }
}
