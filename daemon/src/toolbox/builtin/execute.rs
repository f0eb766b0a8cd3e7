//! `execute`: a line for the shell. Nothing that it starts outlives it.

use super::arguments::{self, Arguments};
use super::capture::Capture;
use super::environment;
use crate::process::{Exit, Spawn, run_into};
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use serde_json::{Map, Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn tool() -> Tool {
    Tool::new(
        "execute",
        "Run a shell command. Returns its exit status and its output (stdout and stderr together). Standard input is \
         empty, and there is no terminal. Background processes end with the command.",
    )
    .param("command", json!({"type": "string", "description": "The command line, for bash where there is one, else sh"}))
    .param("timeout", json!({"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "description": "Seconds until it is stopped; 120 if not given"}))
    .param("cwd", json!({"type": "string", "description": "Directory to run in; the session's if not given"}))
    .required("command")
    .alias("bash")
    .alias("sh")
    .alias("exec")
    .access(Access::Execute)
    .shell("command")
    .path("cwd")
    .path("cwd")
    .handler(execute)
}

async fn execute(call: Call, arguments: Arguments) -> Outcome {
    let seconds = arguments.get("timeout").and_then(Value::as_f64);
    let timeout = seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(TIMEOUT);
    let env = environment::of(&call);
    let spawn = Spawn {
        program: shell(env.get("PATH").map_or("", String::as_str)).into(),
        args: vec!["-c".into(), arguments::text(&arguments, "command").into()],
        cwd: arguments::path(&call, arguments::text(&arguments, "cwd")),
        env,
        stdin: None,
        timeout: Some(timeout),
    };
    Ok(run(&call, spawn).await)
}

/// Runs a program; its output is streamed, and its end is the result.
pub(super) async fn run(call: &Call, spawn: Spawn) -> Map<String, Value> {
    let timeout = spawn.timeout.unwrap_or(Duration::MAX);
    let mut capture = Capture::new(call);
    let exit = run_into(spawn, &call.cancel, &mut capture).await;
    result(exit, capture.finish().await, timeout)
}

/// Bash, which models write for, where there is one.
fn shell(path: &str) -> &'static str {
    let is_program = |file: &Path| {
        file.metadata()
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let mut folders = path.split(':').filter(|folder| folder.starts_with('/'));
    if folders.any(|folder| is_program(&Path::new(folder).join("bash"))) {
        "bash"
    } else {
        "sh"
    }
}

fn result(exit: Exit, content: String, timeout: Duration) -> Map<String, Value> {
    let mut result = match exit {
        Exit::Code(code) => Map::from_iter([("exit_status".to_owned(), json!(code))]),
        Exit::Signal(signal) => arguments::failure(format!("killed by {}", signal_name(signal))),
        Exit::TimedOut => {
            arguments::failure(format!("timed out after {} s", timeout.as_secs_f64()))
        }
        Exit::Cancelled => arguments::failure("cancelled"),
        Exit::NotStarted(why) => return arguments::failure(why),
    };
    result.insert("content".to_owned(), Value::String(content));
    result
}

pub(in crate::toolbox) fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use std::time::Instant;
    use tokio_util::sync::CancellationToken;

    async fn check(command: &str) -> Value {
        Value::Object(Bench::new().run(tool, json!({"command": command})).await)
    }

    #[tokio::test]
    async fn a_status_other_than_0_is_no_failure() {
        let result = check("echo out; echo err >&2; exit 3").await;
        assert_eq!(
            result,
            json!({"exit_status": 3, "content": "out\nerr\n", "ok": true})
        );
    }

    #[tokio::test]
    async fn a_signal_is_a_failure() {
        let result = check("echo a; kill -SEGV $$").await;
        assert_eq!(
            result,
            json!({"error": "killed by signal 11 (SIGSEGV)", "content": "a\n", "ok": false})
        );
    }

    #[tokio::test]
    async fn a_timeout_is_a_failure_and_keeps_the_output() {
        let arguments = json!({"command": "echo a; sleep 60", "timeout": 0.2});
        let result = Value::Object(Bench::new().run(tool, arguments).await);
        assert_eq!(
            result,
            json!({"error": "timed out after 0.2 s", "content": "a\n", "ok": false})
        );
    }

    /// How long a call that does its best to stay took to end.
    async fn cancelled() -> Duration {
        let bench = Bench::new();
        let cancel = CancellationToken::new();
        let command = "trap '' TERM; setsid sleep 600 & echo ready; while :; do sleep 600; done";
        let call = bench.run_until(tool, json!({"command": command}), cancel.clone());
        let watch = async {
            while !bench.output().contains("ready") {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
            Instant::now()
        };
        let (result, asked) = tokio::join!(call, watch);
        assert_eq!(result["error"], "cancelled");
        asked.elapsed()
    }

    #[tokio::test]
    async fn a_cancel_takes_less_than_200_ms() {
        // The best of a few: a busy machine may take its time over any one.
        let mut best = cancelled().await;
        for _ in 0..4 {
            best = best.min(cancelled().await);
        }
        assert!(best < Duration::from_millis(200), "{best:?}");
    }

    #[tokio::test]
    async fn standard_input_is_empty_and_there_is_no_terminal() {
        let result = check("cat; (exec 3</dev/tty) 2>/dev/null || echo none").await;
        assert_eq!(result["content"], "none\n");
    }

    #[tokio::test]
    async fn the_model_writes_for_bash() {
        assert_eq!(
            check("a=(x y); [[ ${a[1]} == y ]] && echo yes").await["content"],
            "yes\n"
        );
    }

    #[tokio::test]
    async fn secrets_are_not_in_the_environment() {
        let mut bench = Bench::new();
        for (name, value) in [
            ("OPENAI_API_KEY", "s"),
            ("DWELL_PROVIDER", "s"),
            ("LANG", "C"),
        ] {
            bench.env.insert(name.into(), value.into());
        }
        let result = bench.run(tool, json!({"command": "env"})).await;
        let content = result["content"].as_str().unwrap();
        assert!(
            content.contains("LANG=C") && !content.contains("=s\n"),
            "{content}"
        );
    }

    #[tokio::test]
    async fn the_directory_is_the_sessions_or_the_given_one() {
        let bench = Bench::new();
        bench.write("sub/file", "");
        for (cwd, shown) in [
            (json!("."), "sub\n"),
            (json!("sub"), "file\n"),
            (json!("~"), ""),
        ] {
            let result = bench.run(tool, json!({"command": "ls", "cwd": cwd})).await;
            assert_eq!(result["content"], shown);
        }
        let result = bench
            .run(tool, json!({"command": "ls", "cwd": "gone"}))
            .await;
        assert!(
            result["error"]
                .as_str()
                .unwrap()
                .contains("cannot enter the directory")
        );
    }

    #[tokio::test]
    async fn a_missing_shell_is_named_with_the_path_searched() {
        let mut bench = Bench::new();
        bench.env.insert("PATH".into(), "/none".into());
        let result = bench.run(tool, json!({"command": "ls"})).await;
        assert_eq!(result["error"], "cannot start sh: not found on PATH /none");
    }

    #[tokio::test]
    async fn without_a_path_there_is_a_sane_one() {
        let mut bench = Bench::new();
        bench.env.clear();
        assert_eq!(
            bench.run(tool, json!({"command": "ls /bin/sh"})).await["content"],
            "/bin/sh\n"
        );
    }

    #[tokio::test]
    async fn binary_output_stays_text_and_is_streamed_whole_characters_at_a_time() {
        let bench = Bench::new();
        let command = r"printf 'a\377b\000'; printf '\342\202'; sleep 0.05; printf '\254'";
        let result = bench.run(tool, json!({"command": command})).await;
        assert_eq!(result["content"], "a\u{fffd}b\0€");
        assert_eq!(bench.output(), "a\u{fffd}b\0€");
    }

    #[tokio::test]
    async fn a_flood_is_capped_and_kept_up_to_a_limit() {
        let bench = Bench::new();
        let result = bench
            .run(
                tool,
                json!({"command": "head -c 100000000 /dev/zero | tr '\\0' x"}),
            )
            .await;
        let content = result["content"].as_str().unwrap();
        assert!(content.len() < 33 * 1024);
        assert!(
            content.contains("the first 64 MiB are in "),
            "{}",
            &content[16 * 1024..16 * 1024 + 300]
        );
        let size = bench
            .spill_dir()
            .join("test-c1.txt")
            .metadata()
            .unwrap()
            .len();
        assert_eq!(size, 64 * 1024 * 1024);
    }
}
