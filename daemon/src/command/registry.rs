//! The registry of slash commands: names, descriptions, completions and what runs.
//! Must never run a command itself.

use super::Commands;
use crate::session::{SessionError, Sessions};
use protocol::command::{Candidate, CommandInfo};
use protocol::id::SessionId;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a command prints for its caller, or what it raised.
pub type Ran = Result<String, Failure>;

/// The message of what a command raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self(message)
    }
}

/// What a command gets.
#[derive(Clone)]
pub struct Invocation {
    pub commands: Commands,
    pub sessions: Sessions,
    pub session: SessionId,
    /// Everything after the first space, or none.
    pub args: Option<String>,
}

impl Invocation {
    /// The argument without the space around it; an empty one counts as none.
    pub fn argument(&self) -> Option<&str> {
        let args = self.args.as_deref().map(str::trim);
        args.filter(|args| !args.is_empty())
    }
}

/// A slash command.
#[derive(Clone)]
pub struct Command {
    /// Without its slash.
    pub name: String,
    /// One line for `/help`.
    pub description: String,
    pub completions: Candidates,
    pub run: Arc<dyn Fn(Invocation) -> BoxFuture<Ran> + Send + Sync>,
}

/// What may stand as a command's argument.
#[derive(Clone)]
pub enum Candidates {
    None,
    Fixed(Vec<String>),
    /// Asked for each time.
    Asked(Arc<dyn Fn(Invocation) -> BoxFuture<Vec<String>> + Send + Sync>),
    /// The same, each with a line about it.
    Told(Arc<dyn Fn(Invocation) -> BoxFuture<Vec<Candidate>> + Send + Sync>),
}

impl Candidates {
    pub fn fixed(words: &[&str]) -> Self {
        Self::Fixed(words.iter().map(|word| (*word).to_owned()).collect())
    }

    pub fn asked<F>(ask: fn(Invocation) -> F) -> Self
    where
        F: Future<Output = Vec<String>> + Send + 'static,
    {
        Self::Asked(Arc::new(move |invocation| Box::pin(ask(invocation))))
    }

    pub fn told<F>(ask: fn(Invocation) -> F) -> Self
    where
        F: Future<Output = Vec<Candidate>> + Send + 'static,
    {
        Self::Told(Arc::new(move |invocation| Box::pin(ask(invocation))))
    }
}

impl Command {
    /// With no completions.
    pub fn new<F>(name: &str, description: &str, run: fn(Invocation) -> F) -> Self
    where
        F: Future<Output = Ran> + Send + 'static,
    {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            completions: Candidates::None,
            run: Arc::new(move |invocation| Box::pin(run(invocation))),
        }
    }

    #[must_use]
    pub fn completing(mut self, completions: Candidates) -> Self {
        self.completions = completions;
        self
    }
}

/// Commands in the order of their registration.
#[derive(Clone, Default)]
pub struct Registry {
    commands: Vec<Command>,
}

impl Registry {
    /// A command of the same name is replaced, in its place.
    pub fn register(&mut self, command: Command) {
        let mut same = self.commands.iter_mut();
        match same.find(|one| one.name == command.name) {
            Some(one) => *one = command,
            None => self.commands.push(command),
        }
    }

    pub fn find(&self, name: &str) -> Option<Command> {
        self.commands.iter().find(|one| one.name == name).cloned()
    }

    /// With their slashes.
    pub fn names(&self) -> Vec<String> {
        self.each().map(|(name, _)| name).collect()
    }

    /// `/name` and description of each.
    pub fn each(&self) -> impl Iterator<Item = (String, &str)> {
        let commands = self.commands.iter();
        commands.map(|one| (format!("/{}", one.name), one.description.as_str()))
    }

    pub fn infos(&self) -> Vec<CommandInfo> {
        let each = self.each();
        each.map(|(name, description)| CommandInfo {
            name,
            description: description.to_owned(),
        })
        .collect()
    }

    /// What is said of a name that no command has.
    pub fn unknown(&self, name: &str) -> String {
        let names = self.names().join(", ");
        format!("unknown command: \"/{name}\". Available: {names}.")
    }

    pub fn clear(&mut self) {
        self.commands.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn nothing(_: Invocation) -> Ran {
        Ok(String::new())
    }

    #[test]
    fn same_name_replaces_in_its_place_and_clear_removes_all() {
        let mut registry = Registry::default();
        for (name, about) in [("exit", "a"), ("help", "b"), ("exit", "c")] {
            registry.register(Command::new(name, about, nothing));
        }
        assert_eq!(registry.names(), ["/exit", "/help"]);
        assert_eq!(registry.each().next(), Some(("/exit".to_owned(), "c")));
        assert_eq!(
            registry.unknown("x"),
            "unknown command: \"/x\". Available: /exit, /help."
        );
        registry.clear();
        assert!(registry.names().is_empty());
    }
}
