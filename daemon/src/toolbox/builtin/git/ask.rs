//! What git itself is asked before a command runs. Must never be given what a model said.

use crate::process::{self, Exit, Spawn};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(10);
/// More than any repository has to say for honest reasons.
const LONGEST: usize = 64 * 1024;

/// How git ended, with what it wrote.
pub(super) struct Answer {
    pub(super) code: i32,
    pub(super) output: Vec<u8>,
}

pub(super) async fn ask(
    args: &[&str],
    env: &BTreeMap<String, String>,
    cwd: &Path,
    cancel: &CancellationToken,
) -> Result<Answer, String> {
    let spawn = Spawn {
        program: "git".into(),
        args: args.iter().map(Into::into).collect(),
        cwd: cwd.to_owned(),
        env: env.clone(),
        stdin: None,
        timeout: Some(TIMEOUT),
    };
    let mut output = Vec::new();
    let mut keep = |bytes: &[u8]| {
        let room = (LONGEST + 1).saturating_sub(output.len());
        output.extend_from_slice(&bytes[..bytes.len().min(room)]);
    };
    let what = args[0];
    match process::run(spawn, cancel, &mut keep).await {
        Exit::Code(_) if output.len() > LONGEST => Err(format!(
            "git {what} says more of this repository than can be looked at"
        )),
        Exit::Code(code) => Ok(Answer { code, output }),
        Exit::NotStarted(why) => Err(why),
        Exit::Cancelled => Err("cancelled".to_owned()),
        Exit::Signal(_) | Exit::TimedOut => Err(format!("git {what} did not end")),
    }
}
