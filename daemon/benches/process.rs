//! What a call costs beyond its command: `cargo bench -p dwelld --bench process`. Prints; judges nothing.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it reports to a terminal, and compares with plain spawns"
)]

use daemon::process::{Spawn, nursery, run};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 300;

fn main() {
    nursery::main_if_asked();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    report("plain spawn of true, with wait", &mut || {
        let status = Command::new("/bin/true").stdout(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()));
    });
    report("plain spawn of this executable", &mut || {
        let status = Command::new("/proc/self/exe")
            .arg("supervise")
            .stderr(Stdio::null())
            .status();
        assert!(status.is_ok());
    });
    report("run of true", &mut || {
        runtime.block_on(call("/bin/true", &[]))
    });
    report("run of sh -c true", &mut || {
        runtime.block_on(call("sh", &["-c", "true"]))
    });
    report("run of bash -c true", &mut || {
        runtime.block_on(call("bash", &["-c", "true"]))
    });
    let began = Instant::now();
    runtime.block_on(call("head", &["-c", "1000000000", "/dev/zero"]));
    println!("1 GB of output: {:?}", began.elapsed());
    report("cancel of sleep", &mut || runtime.block_on(cancelled()));
}

async fn call(program: &str, args: &[&str]) {
    run(spawn(program, args), &CancellationToken::new(), &mut |_| {}).await;
}

async fn cancelled() {
    let cancel = CancellationToken::new();
    let mut ready = |_: &[u8]| cancel.cancel();
    run(
        spawn("sh", &["-c", "echo ready; exec sleep 60"]),
        &cancel,
        &mut ready,
    )
    .await;
}

fn spawn(program: &str, args: &[&str]) -> Spawn {
    Spawn {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: "/".into(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        stdin: None,
        timeout: Some(Duration::from_secs(60)),
    }
}

fn report(what: &str, round: &mut dyn FnMut()) {
    let mut times: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            round();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!(
        "{what}: median {:?}, best {:?}, 95th {:?}",
        times[ROUNDS / 2],
        times[0],
        times[ROUNDS * 95 / 100]
    );
}
