//! Where a vendor's key comes from: a variable, `config.toml`, or a command. Must never show one, nor what a command said.

use super::registry::Build;
use super::settings::Named;
use crate::process::{self, Exit, Spawn};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

/// How long the command may take: it may ask its owner.
const COMMAND: Duration = Duration::from_secs(60);
/// The longest key.
const LENGTH: u64 = 16 * 1024;

/// The first that is there. Variables are looked for in their order.
pub(super) async fn find(
    name: &str,
    variables: &[String],
    named: &Named,
    build: &Build,
) -> Result<Option<SecretString>, String> {
    let set = variables.iter().find_map(|name| build.variable(name));
    if let Some(key) = set.and_then(trimmed) {
        return Ok(Some(key));
    }
    if let Some(key) = &named.api_key {
        return Ok(trimmed(key.expose_secret().to_owned()));
    }
    match &named.api_key_command {
        Some(command) => ask(name, command, build).await.map(Some),
        None => Ok(None),
    }
}

fn trimmed(key: String) -> Option<SecretString> {
    let key = Zeroizing::new(key);
    let key = key.trim();
    (!key.is_empty()).then(|| SecretString::from(key))
}

/// The first line that the command prints. It has no supervisor's output in common with anything that is logged.
async fn ask(name: &str, command: &str, build: &Build) -> Result<SecretString, String> {
    let spawn = Spawn {
        program: "sh".into(),
        args: vec!["-c".into(), command.into()],
        cwd: "/".into(),
        env: (*build.child_env).clone(),
        stdin: None,
        timeout: None,
    };
    let failed = |why: String| format!("the api_key_command of {name} {why}");
    let (running, pipes) =
        process::open(&spawn).map_err(|error| failed(format!("cannot start: {error}")))?;
    drop(pipes.stdin);
    let cancel = CancellationToken::new();
    let mut said = Zeroizing::new(Vec::new());
    let reading = async {
        let mut stdout = pipes.stdout.take(LENGTH);
        // What cannot be read is no key, which is told below.
        let _ = stdout.read_to_end(&mut said).await;
    };
    let quiet = async {
        let mut stderr = pipes.stderr;
        // Nobody reads it, and a full pipe would stop the command.
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    };
    let all = async { tokio::join!(running.ended(&cancel), reading, quiet).0 };
    let exit = tokio::time::timeout(COMMAND, all).await;
    match exit {
        Err(_) => Err(failed(format!("took longer than {} s", COMMAND.as_secs()))),
        Ok(Exit::Code(0)) => {
            let line = said.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let key = std::str::from_utf8(line).ok().map(str::to_owned);
            let key = key.and_then(trimmed);
            key.ok_or_else(|| failed("printed no key".to_owned()))
        }
        Ok(Exit::Code(code)) => Err(failed(format!("failed with exit status {code}"))),
        Ok(Exit::NotStarted(why)) => Err(failed(format!("did not start: {why}"))),
        Ok(Exit::Signal(_) | Exit::TimedOut | Exit::Cancelled) => {
            Err(failed("was killed".to_owned()))
        }
    }
}
