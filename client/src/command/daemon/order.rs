//! Commands of a service manager, run to their end or to a limit. Must never leave one behind that hangs.

use super::quote;
use crate::error::Failure;
use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a question may take.
const ASKED: Duration = Duration::from_secs(5);

/// How long an order may take: one that stops the daemon waits for its turns.
const DONE: Duration = Duration::from_secs(90);

/// The pause between two looks whether it is over.
const PAUSE: Duration = Duration::from_millis(10);

/// A command, word by word.
pub(super) type Order = Vec<String>;

/// As a person types it.
pub(super) fn typed(order: &[String]) -> String {
    let words: Vec<String> = order.iter().map(|word| quote::shell(word)).collect();
    words.join(" ")
}

/// Some of them, a line each.
pub(super) fn lines(orders: &[Order]) -> String {
    let lines = orders.iter().map(|order| format!("  {}", typed(order)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Gives one after the other. Of a failure a person is told what is left to do by hand.
pub(super) async fn give(orders: &[Order]) -> Result<(), Failure> {
    for (at, order) in orders.iter().enumerate() {
        run(order, DONE).await.map_err(|why| {
            let left = lines(&orders[at..]);
            Failure::new(format!("`{}` {why}", typed(order)))
                .hint(format!("once that is mended, run:\n{left}"))
        })?;
    }
    Ok(())
}

async fn run(order: &[String], limit: Duration) -> Result<(), String> {
    let mut child = started(order, Stdio::inherit(), Stdio::inherit())?;
    let status = ended(&mut child, limit).await?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("failed: {status}")),
    }
}

/// What a command answers that succeeds in time.
pub(super) async fn ask(order: &[String]) -> Option<String> {
    let mut child = started(order, Stdio::piped(), Stdio::null()).ok()?;
    let mut stdout = child.stdout.take()?;
    // In a thread: an environment may be more than a pipe takes.
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).map(|_| bytes)
    });
    let status = ended(&mut child, ASKED).await.ok()?;
    let bytes = reading.join().ok()?.ok()?;
    status
        .success()
        .then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn started(order: &[String], stdout: Stdio, stderr: Stdio) -> Result<Child, String> {
    let (program, arguments) = order.split_first().ok_or("names no program")?;
    #[expect(
        clippy::disallowed_methods,
        reason = "its end is waited for, or it is killed"
    )]
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
        .map_err(|error| format!("cannot be run: {error}"))
}

async fn ended(child: &mut Child, limit: Duration) -> Result<ExitStatus, String> {
    let until = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not end within {limit:?}"));
            }
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Order {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn one_that_hangs_is_ended_and_said() {
        crate::testing::run(async {
            let said = run(&words(&["sleep", "600"]), Duration::from_millis(50)).await;
            assert_eq!(said, Err("did not end within 50ms".into()));
        });
    }

    #[test]
    fn of_a_failure_what_is_left_is_told() {
        let orders = [words(&["true"]), words(&["false"]), words(&["echo", "a b"])];
        crate::testing::run(async {
            let failure = give(&orders).await.unwrap_err();
            assert!(failure.message.starts_with("`false` failed"), "{failure}");
            assert_eq!(
                failure.hint.as_deref(),
                Some("once that is mended, run:\n  false\n  echo 'a b'")
            );
        });
    }
}
