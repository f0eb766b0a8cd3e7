//! One run of a shell hook: the call in, the verdict out. Must never keep more of what it prints than people read.

use super::ShellHook;
use crate::process::{self, Exit, Pipes, Spawn};
use crate::toolbox::hook::HookCall;
use protocol::plugin::HookParams;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// The most of its words that are kept.
const WORDS: usize = 8 * 1024;
/// The status that blocks.
const BLOCKS: i32 = 2;
/// How long what an ended command has written may take to be read.
const REST: Duration = Duration::from_secs(1);

/// Runs it. When this is dropped, nothing of the command is left.
pub(super) async fn command(hook: &ShellHook, cwd: PathBuf, call: &HookCall) -> Result<(), String> {
    let spawn = Spawn {
        program: "sh".into(),
        args: vec!["-c".into(), hook.command.clone().into()],
        cwd,
        env: (*call.env).clone(),
        stdin: None,
        timeout: None,
    };
    let cannot = |why: &dyn std::fmt::Display| format!("the hook {:?}: {why}", hook.command);
    let (running, pipes) = process::open(&spawn).map_err(|error| cannot(&error))?;
    let (exit, words) = speak(running, pipes, &input(hook, call)).await;
    let words = words.trim();
    match exit {
        Exit::Code(0) => Ok(()),
        Exit::Code(BLOCKS) if words.is_empty() => Err(cannot(&"it blocked without a reason")),
        Exit::Code(BLOCKS) => Err(words.to_owned()),
        Exit::NotStarted(why) => Err(cannot(&why)),
        Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::Cancelled => {
            let how = match exit {
                Exit::Code(code) => format!("ended with exit status {code}"),
                Exit::Signal(signal) => format!("was killed by signal {signal}"),
                _ => "was stopped".to_owned(),
            };
            let words = match words.is_empty() {
                true => String::new(),
                false => format!(": {words}"),
            };
            let text = format!("the hook {:?} {how}{words}", hook.command);
            call.port.warn(&text);
            Ok(())
        }
    }
}

fn input(hook: &ShellHook, call: &HookCall) -> Vec<u8> {
    let params = HookParams {
        session: call.session.clone(),
        call: Some(call.call.clone()),
        id: hook.command.clone(),
        point: hook.point,
        tool: call.tool.clone(),
        arguments: (*call.arguments).clone(),
        result: call.result.as_ref().map(|result| (**result).clone()),
    };
    let mut line = serde_json::to_vec(&params).expect("strings and JSON are JSON");
    line.push(b'\n');
    line
}

async fn speak(running: process::Running, pipes: Pipes, input: &[u8]) -> (Exit, String) {
    let Pipes {
        mut stdin,
        mut stdout,
        mut stderr,
    } = pipes;
    let never = CancellationToken::new();
    let mut words = Vec::new();
    let exit = {
        let speaking = async {
            let write = async {
                // Who reads nothing needs nothing.
                let _ = stdin.write_all(input).await;
                drop(stdin);
            };
            tokio::join!(
                write,
                drain(&mut stdout, None),
                drain(&mut stderr, Some(&mut words))
            );
        };
        tokio::pin!(speaking);
        let ended = running.ended(&never);
        tokio::pin!(ended);
        tokio::select! {
            exit = &mut ended => {
                // Only a descriptor that travelled out of the command's tree keeps a pipe open.
                let _ = tokio::time::timeout(REST, speaking).await;
                exit
            }
            () = &mut speaking => ended.await,
        }
    };
    (exit, String::from_utf8_lossy(&words).into_owned())
}

async fn drain(pipe: &mut pipe::Receiver, mut kept: Option<&mut Vec<u8>>) {
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = pipe.read(&mut piece).await {
        if let Some(kept) = &mut kept {
            let room = WORDS.saturating_sub(kept.len()).min(count);
            kept.extend_from_slice(&piece[..room]);
        }
    }
}
