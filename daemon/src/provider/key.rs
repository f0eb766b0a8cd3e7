//! Where a vendor's key comes from: a variable, `config.toml`, or a command. Must never show one, nor what a command said.

use super::preset::is_key_variable;
use super::registry::Build;
use super::settings::{Named, Settings};
use crate::process::mask::{self, Mask};
use crate::process::{self, Exit, Spawn};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

/// How long the command may take: it may ask its owner.
const COMMAND: Duration = Duration::from_secs(60);
/// The longest key.
const LENGTH: u64 = 16 * 1024;

/// Ends of the names of variables that hold secrets of some other use.
const ENDS: &[&str] = &["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];
/// A shorter value of theirs is most likely a number or a word.
const LONG: usize = 8;

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
        Some(command) => {
            let key = ask(name, command, build).await?;
            mask::learn(key.expose_secret());
            Ok(Some(key))
        }
        None => Ok(None),
    }
}

/// All keys that stand in a variable of the daemon or in `config.toml`, to be hidden in what children say.
pub(crate) fn known(settings: &Settings, env: &BTreeMap<String, String>) -> Mask {
    let own = |name: &str| {
        let mut own = settings
            .named
            .values()
            .filter_map(|n| n.api_key_variable.as_deref());
        own.any(|own| own == name)
    };
    let secret = |name: &str| is_key_variable(name) || own(name);
    // Whatever else is called so is no business of a log.
    let called = |name: &str| ENDS.iter().any(|end| name.ends_with(end));
    let set = env.iter();
    let set = set.filter(|(name, value)| secret(name) || (called(name) && value.len() >= LONG));
    let set = set.map(|(_, value)| value.clone());
    let written = settings.named.values().filter_map(|n| n.api_key.as_ref());
    let written = written.map(|key| key.expose_secret().to_owned());
    Mask::of(set.chain(written))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_variables_and_of_the_file_are_known() {
        let table = "[house]\napi_key_variable = 'HOUSE'\n[other]\napi_key = 'k3y-of-other'\n";
        let named = toml::from_str(table).unwrap();
        let settings = Settings {
            named,
            ..Settings::default()
        };
        let env = [
            ("OPENAI_API_KEY", "k3y-of-openai"),
            ("GITHUB_TOKEN", "k3y-of-github"),
            ("HOUSE", "k3y-of-house"),
            ("MAX_TOKEN", "4096"),
            ("PATH", "/usr/bin"),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let said = "k3y-of-openai k3y-of-github k3y-of-house k3y-of-other 4096 /usr/bin";
        let shown = known(&settings, &env.into()).hide(said);
        assert_eq!(shown, "*** *** *** *** 4096 /usr/bin");
    }
}
