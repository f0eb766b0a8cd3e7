//! Making a session for a directory. Must never send more of this process's environment than the allow-list.

use crate::agent::Agent;
use crate::environment;
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::paint::{Paint, Part};
use crate::toolbox::Toolbox;
use clap::Args;
use protocol::session::{Session, SessionRpcClient};

/// What a new session talks to.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Model {
    /// The provider: anthropic, openai, ... (`dwell providers` lists them)
    #[arg(short, long, value_name = "NAME")]
    pub provider: Option<String>,

    /// The provider's model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    #[command(flatten)]
    pub toolbox: Toolbox,
}

impl Model {
    /// The provider that was named: on the command line, or in this process's environment, which is not the daemon's.
    fn provider(&self) -> Option<String> {
        let from_env = || std::env::var("DWELL_PROVIDER").ok();
        let named = self.provider.clone().or_else(from_env);
        named.filter(|name| !name.is_empty())
    }

    /// Whether the command line says anything of it.
    pub(crate) fn is_given(&self) -> bool {
        self.provider.is_some() || self.model.is_some() || self.toolbox.value().is_some()
    }

    /// Whether a person chose what to talk to.
    pub(crate) fn is_named(&self) -> bool {
        self.provider().is_some()
    }

    /// The model that was named. The daemon does not know this directory: a file of it travels with its whole path.
    fn model(&self) -> Option<String> {
        let name = self.model.as_ref()?;
        let path = std::path::Path::new(name);
        let is_file = path.extension().is_some_and(|ext| ext == "gguf") && path.is_file();
        let whole = is_file
            .then(|| std::path::absolute(path))
            .and_then(Result::ok);
        let whole = whole.and_then(|path| path.into_os_string().into_string().ok());
        Some(whole.unwrap_or_else(|| name.clone()))
    }
}

/// Makes a session.
pub(crate) async fn create(
    link: &Link,
    cwd: &str,
    model: &Model,
    title: Option<String>,
) -> Result<Session, Failure> {
    create_as(link, cwd, model, title, None).await
}

/// Makes a session that is an agent's.
pub(crate) async fn create_as(
    link: &Link,
    cwd: &str,
    model: &Model,
    title: Option<String>,
    agent: Option<Agent>,
) -> Result<Session, Failure> {
    let env = link.place().environment();
    let session = link.call_once(async |client| {
        SessionRpcClient::create(
            client,
            cwd.to_string(),
            env.clone(),
            title.clone(),
            model.provider(),
            model.model(),
            model.toolbox.value(),
            agent.as_ref().map(|agent| agent.name.clone()),
            agent.as_ref().map(|agent| agent.vars.clone()),
            None,
        )
        .await
    });
    let session = session.await;
    let provider = session.as_ref().map(|session| session.provider.clone());
    if let Some(name) = provider.ok().or_else(|| model.provider()) {
        tell_left_out(link, &name)?;
    }
    session
}

/// A server that the provider will not talk to though this shell names it.
fn tell_left_out(link: &Link, provider: &str) -> Result<(), Failure> {
    if link.place().remote.is_some() {
        return Ok(());
    }
    let (connection, _) = link.connection();
    match environment::left_out(provider, &connection.servers) {
        Some(note) => out::note(&Paint::of(&std::io::stderr()).dress(Part::Quiet, &note)),
        None => Ok(()),
    }
}

/// A token for `turn/start`: no two turns of any client share one.
pub(crate) fn token() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count:x}", std::process::id(), now.as_nanos())
}
