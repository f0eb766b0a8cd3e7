//! The promise of `process`, tried on real children: nothing outlives its call.

use super::{Exit, Spawn, descendants, nursery, run};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The supervisor is this same executable, and a test binary's `main` is not ours to change: this runs before it.
#[used]
#[unsafe(link_section = ".init_array")]
static SUPERVISE: extern "C" fn() = {
    extern "C" fn supervise() {
        nursery::main_if_asked();
    }
    supervise
};

fn shell(script: &str) -> Spawn {
    Spawn {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())].into(),
        stdin: None,
        timeout: Some(Duration::from_secs(30)),
    }
}

async fn output_of(spawn: Spawn) -> (Exit, String) {
    let mut output = Vec::new();
    let exit = run(spawn, &CancellationToken::new(), &mut |bytes| {
        output.extend(bytes)
    })
    .await;
    (exit, String::from_utf8_lossy(&output).into_owned())
}

/// Runs a script that prints pids, then `ready`; cancels at that; gives the pids and how long the end took.
async fn cancelled_when_ready(script: &str) -> (Exit, Vec<i32>, Duration) {
    let cancel = CancellationToken::new();
    let mut output = String::new();
    let mut asked = None;
    let exit = run(shell(script), &cancel, &mut |bytes| {
        output.push_str(&String::from_utf8_lossy(bytes));
        if asked.is_none() && output.contains("ready") {
            asked = Some(Instant::now());
            cancel.cancel();
        }
    })
    .await;
    let pids = output
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    (exit, pids, asked.expect("the script said ready").elapsed())
}

fn is_alive(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn output_and_errors_come_merged_in_order() {
    let (exit, output) = output_of(shell("echo a; echo b >&2; echo c; exit 3")).await;
    assert_eq!((exit, output.as_str()), (Exit::Code(3), "a\nb\nc\n"));
}

#[tokio::test]
async fn a_signal_is_told_apart_from_a_code() {
    let (exit, _) = output_of(shell("kill -9 $$")).await;
    assert_eq!(exit, Exit::Signal(9));
}

#[tokio::test]
async fn standard_input_is_what_was_given_and_else_empty() {
    let mut spawn = shell("cat");
    assert_eq!(
        output_of(spawn.clone()).await,
        (Exit::Code(0), String::new())
    );
    spawn.stdin = Some(vec![b'x'; 300_000]);
    let (exit, output) = output_of(spawn).await;
    assert_eq!((exit, output.len()), (Exit::Code(0), 300_000));
}

#[tokio::test]
async fn the_environment_is_the_given_one_alone() {
    let mut spawn = shell("env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD=");
    spawn.env.insert("A".into(), "b c".into());
    let (_, output) = output_of(spawn).await;
    let mut lines = output.lines().collect::<Vec<_>>();
    lines.sort_unstable();
    assert_eq!(lines, ["A=b c", "PATH=/usr/local/bin:/usr/bin:/bin"]);
}

#[tokio::test]
async fn a_request_larger_than_the_socket_arrives() {
    let mut spawn = shell("printf %s ${#A}");
    for name in ["A", "B", "C", "D", "E", "F"] {
        spawn.env.insert(name.into(), "x".repeat(100_000));
    }
    assert_eq!(output_of(spawn).await, (Exit::Code(0), "100000".into()));
}

#[tokio::test]
async fn a_child_inherits_three_descriptors_and_no_blocked_signal() {
    let (_, output) = output_of(shell(
        "ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status",
    ))
    .await;
    assert_eq!(
        output, "4\nSigBlk:\t0000000000000000\n",
        "ls opens the fourth itself"
    );
}

#[tokio::test]
async fn a_missing_program_is_named_with_the_path_searched() {
    let mut spawn = shell("");
    spawn.program = "no-such-tool".into();
    let (exit, _) = output_of(spawn).await;
    let why = "cannot start no-such-tool: not found on PATH /usr/local/bin:/usr/bin:/bin";
    assert_eq!(exit, Exit::NotStarted(why.into()));
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let mut spawn = shell("true");
    spawn.cwd = "/no/such/folder".into();
    let (exit, _) = output_of(spawn).await;
    let why = "cannot start sh: cannot enter the directory /no/such/folder: No such file or directory (os error 2)";
    assert_eq!(exit, Exit::NotStarted(why.into()));
}

#[tokio::test]
async fn a_nul_byte_is_refused() {
    let (exit, _) = output_of(shell("echo \0")).await;
    assert_eq!(
        exit,
        Exit::NotStarted("cannot start sh: an argument contains a NUL byte".into())
    );
}

#[tokio::test]
async fn a_background_child_ends_with_its_call() {
    let began = Instant::now();
    let (exit, output) = output_of(shell("sleep 600 & echo $!")).await;
    assert_eq!(exit, Exit::Code(0));
    assert!(!is_alive(output.trim().parse().unwrap()));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_daemonised_grandchild_ends_with_its_call() {
    let script = "setsid sh -c '(setsid sleep 600 >/dev/null 2>&1 & echo $!)' & wait; echo done";
    let (exit, output) = output_of(shell(script)).await;
    assert_eq!(exit, Exit::Code(0));
    assert!(output.ends_with("done\n"));
    let pid = output.lines().next().unwrap().parse().unwrap();
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn cancelling_takes_less_than_200_ms_whatever_the_child_does() {
    let scripts = [
        "echo $$; echo ready; sleep 600 & echo $!; sleep 600",
        "trap '' TERM; echo $$; echo ready; while :; do sleep 600; done",
        "echo $$; setsid sleep 600 >/dev/null 2>&1 & echo $!; echo ready; sleep 600",
        "echo $$; kill -STOP $PPID; echo ready; sleep 600",
    ];
    for script in scripts {
        // The best of a few: a busy machine may take its time over any one.
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let (exit, pids, took) = cancelled_when_ready(script).await;
            assert_eq!(exit, Exit::Cancelled, "{script}");
            assert!(!pids.is_empty(), "{script}");
            assert!(!pids.iter().any(|pid| is_alive(*pid)), "{script}");
            best = best.min(took);
            if best < Duration::from_millis(200) {
                break;
            }
        }
        assert!(best < Duration::from_millis(200), "{script} took {best:?}");
    }
}

#[tokio::test]
async fn what_a_child_prints_when_asked_to_end_is_kept() {
    let cancel = CancellationToken::new();
    let mut output = Vec::new();
    let script = "trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let exit = run(shell(script), &cancel, &mut |bytes| {
        output.extend(bytes);
        cancel.cancel();
    })
    .await;
    let output = String::from_utf8_lossy(&output);
    assert_eq!(exit, Exit::Cancelled);
    assert!(output.ends_with("bye\n"), "{output}");
}

#[tokio::test]
async fn a_timeout_ends_all() {
    let mut spawn = shell("echo $$; sleep 600 & echo $!; wait");
    spawn.timeout = Some(Duration::from_millis(100));
    let (exit, output) = output_of(spawn).await;
    assert_eq!(exit, Exit::TimedOut);
    assert!(!output.lines().any(|pid| is_alive(pid.parse().unwrap())));
}

#[tokio::test]
async fn a_tree_that_keeps_forking_is_killed_whole() {
    let script = "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; echo $$; exec sleep 600; }; f 5 & sleep 0.05; echo ready; wait";
    let (exit, _, took) = cancelled_when_ready(script).await;
    assert_eq!(exit, Exit::Cancelled);
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn dropping_the_call_kills_the_child() {
    let cancel = CancellationToken::new();
    let (told, mut pids) = tokio::sync::mpsc::channel(1);
    let call = tokio::spawn(async move {
        let mut say = |bytes: &[u8]| {
            let line = String::from_utf8_lossy(bytes).into_owned();
            told.try_send(line).unwrap();
        };
        run(shell("echo $$ $PPID; exec sleep 600"), &cancel, &mut say).await
    });
    let line = pids.recv().await.unwrap();
    call.abort();
    let deadline = Instant::now() + Duration::from_secs(1);
    for pid in line.split_whitespace() {
        while is_alive(pid.parse().unwrap()) {
            assert!(Instant::now() < deadline, "{line} live on");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn signals_to_its_own_group_do_not_reach_the_supervisor() {
    let (exit, _) = output_of(shell(
        "trap '' TERM; kill 0; kill -TERM $PPID; kill -INT $PPID; echo on; exit 4",
    ))
    .await;
    assert_eq!(exit, Exit::Code(4));
}

#[tokio::test]
async fn killing_the_supervisor_kills_the_command() {
    let script =
        "setsid sh -c 'echo $$; exec sleep 600' & sleep 0.05; echo $$; kill -9 $PPID; sleep 600";
    let (exit, output) = output_of(shell(script)).await;
    assert_eq!(exit, Exit::Signal(9));
    let deadline = Instant::now() + Duration::from_secs(5);
    for pid in output.lines() {
        while is_alive(pid.parse().unwrap()) {
            assert!(Instant::now() < deadline, "{pid} of {output} lives on");
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn closed_output_is_not_the_end() {
    let (exit, output) = output_of(shell("echo a; exec >&- 2>&-; sleep 0.05; exit 5")).await;
    assert_eq!((exit, output.as_str()), (Exit::Code(5), "a\n"));
}

#[tokio::test]
async fn all_of_a_flood_arrives() {
    let mut count = 0_usize;
    let exit = run(
        shell("head -c 100000000 /dev/zero"),
        &CancellationToken::new(),
        &mut |bytes| {
            assert!(bytes.len() <= 64 * 1024);
            count += bytes.len();
        },
    )
    .await;
    assert_eq!((exit, count), (Exit::Code(0), 100_000_000));
}

#[tokio::test]
async fn no_zombie_and_no_descriptor_is_left_behind() {
    let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    output_of(shell("true")).await;
    let before = count();
    for _ in 0..200 {
        output_of(shell("true")).await;
    }
    // Other tests of this process open some too, but one a call would be more than all of theirs.
    let after = count();
    assert!(after < before + 200, "{before} descriptors, then {after}");
    let is_zombie = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(dwell-supervise) Z")
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut zombies = descendants::of(std::process::id() as i32);
    zombies.retain(is_zombie);
    while zombies.iter().any(is_zombie) {
        assert!(Instant::now() < deadline, "zombies stay: {zombies:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_child_that_is_spoken_with_has_a_pipe_for_each_and_ends_when_it_is_let_go() {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let script = "echo $$; echo oh >&2; read line; echo \"heard $line\"; exec sleep 600";
    let (running, pipes) = super::open(&shell(script)).unwrap();
    let super::Pipes {
        mut stdin,
        stdout,
        stderr,
    } = pipes;
    stdin.write_all(b"you\n").await.unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let mut complaints = BufReader::new(stderr).lines();
    let pid: i32 = lines.next_line().await.unwrap().unwrap().parse().unwrap();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "heard you");
    assert_eq!(complaints.next_line().await.unwrap().unwrap(), "oh");
    drop(running);
    assert_eq!(lines.next_line().await.unwrap(), None);
    let deadline = Instant::now() + Duration::from_secs(1);
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "{pid} lives on");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_end_of_a_child_that_is_spoken_with_is_told() {
    let (running, _pipes) = super::open(&shell("exit 3")).unwrap();
    let exit = running.ended(&CancellationToken::new()).await;
    assert_eq!(exit, Exit::Code(3));
}
