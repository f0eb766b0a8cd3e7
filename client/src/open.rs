//! Making a session for a directory. Must never send more of this process's environment than the allow-list.

use crate::environment;
use crate::error::Failure;
use crate::link::Link;
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
}

impl Model {
    /// The provider that was named: on the command line, or in this process's environment, which is not the daemon's.
    fn provider(&self) -> Option<String> {
        let from_env = || std::env::var("DWELL_PROVIDER").ok();
        let named = self.provider.clone().or_else(from_env);
        named.filter(|name| !name.is_empty())
    }
}

/// Makes a session.
pub(crate) async fn create(
    link: &Link,
    cwd: &str,
    model: &Model,
    title: Option<String>,
) -> Result<Session, Failure> {
    let env = environment::for_session();
    link.call_once(async |client| {
        SessionRpcClient::create(
            client,
            cwd.to_string(),
            Some(env.clone()),
            title.clone(),
            model.provider(),
            model.model.clone(),
            None,
            None,
            None,
        )
        .await
    })
    .await
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
