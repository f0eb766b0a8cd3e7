//! The daemon's own life: starting, a second one, stale sockets, stopping, systemd.

use harness::binaries::binaries;
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::{AutoStarted, Dwell};
use harness::procfs::marked;
use harness::sandbox::Sandbox;
use harness::wait::{SOON, until, until_true};
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn of_two_daemons_started_at_once_one_serves_and_the_other_says_who_does() {
    let mut first = TestDaemon::stopped(Sandbox::new(), &binaries().daemon);
    first.launch();
    let mut command = Command::new(&binaries().daemon);
    first.apply(&mut command);
    let second = command
        .arg("--socket")
        .arg(first.socket())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .stdin(Stdio::null());
    let mut second = second.spawn().unwrap();
    let serving = until("one of them to answer", SOON, || {
        let mut client =
            TestClient::try_connect(first.socket()).map_err(|error| error.to_string())?;
        client
            .try_call("daemon/status", json!({}))
            .map_err(|error| error.to_string())
    });
    let pid = u32::try_from(serving["daemon"]["pid"].as_u64().unwrap()).unwrap();
    let said;
    if pid == second.id() {
        assert!(!first.wait_exit().success());
        said = first.log();
        second.kill().unwrap();
        second.wait().unwrap();
    } else {
        assert_eq!(pid, first.pid());
        let done = second.wait_with_output().unwrap();
        assert!(!done.status.success());
        said = String::from_utf8_lossy(&done.stderr).into_owned();
    }
    assert!(
        said.contains("already running") && said.contains(&pid.to_string()),
        "{said}"
    );
}

#[test]
fn a_dead_daemons_socket_is_replaced() {
    let mut daemon = TestDaemon::start();
    daemon.kill9();
    assert!(daemon.socket().exists(), "kill -9 leaves it behind");
    daemon.restart();
    daemon.client().call("daemon/status", json!({}));
}

#[test]
fn a_socket_that_is_removed_under_a_running_daemon_is_made_anew() {
    let daemon = TestDaemon::start();
    let mut old = daemon.client();
    let session = old.session(&daemon.work());
    old.attach(&session, None);
    old.start(&session, "wait 200\nsay still here");
    fs::remove_file(daemon.socket()).unwrap();
    let mut new = until("the socket", SOON, || {
        TestClient::try_connect(daemon.socket()).map_err(|error| error.to_string())
    });
    let status = new.call("daemon/status", json!({}));
    assert_eq!(status["daemon"]["pid"], daemon.pid());
    assert_eq!(old.until_ended().said(), "still here");
    assert!(daemon.log().contains("taken away"), "{}", daemon.log());
    let said = Dwell::new(&daemon).args(["daemon", "status"]).ok();
    assert!(said.contains(&format!("pid {}", daemon.pid())), "{said}");
}

#[test]
fn a_daemon_that_cannot_be_reached_is_named_and_can_be_stopped() {
    let mut daemon = TestDaemon::start();
    fs::remove_file(daemon.socket()).unwrap();
    // What is not ours to remove is in the way, so the daemon cannot come back.
    until("the way to be blocked", SOON, || {
        let _ = fs::remove_file(daemon.socket());
        fs::create_dir(daemon.socket()).map_err(|error| error.to_string())
    });
    until_true("the daemon to say so", SOON, || {
        daemon.log().contains("cannot reach")
    });
    // A directory refuses connections as nobody listening does.
    let pid = format!("pid {}", daemon.pid());
    fs::remove_dir(daemon.socket()).unwrap();
    let status = Dwell::new(&daemon).args(["daemon", "status"]).run();
    assert_eq!(status.code, Some(3), "{}", status.stderr);
    assert!(
        status.stderr.contains(&pid) && status.stderr.contains("dwell daemon stop"),
        "{}",
        status.stderr
    );
    let stopping = Dwell::new(&daemon).args(["daemon", "stop"]);
    // The daemon is this process's child, and stays a zombie until it is waited for.
    let stopped = thread::spawn(move || stopping.run());
    assert!(daemon.wait_exit().success());
    let stopped = stopped.join().unwrap();
    assert!(stopped.stdout.contains(&pid), "{}", stopped.stderr);
}

#[test]
fn relative_directories_are_refused_before_anything_starts() {
    for (name, value) in [("HOME", "some/home"), ("DWELL_STATE_DIR", "some/state")] {
        let mut sandbox = Sandbox::new();
        for unset in [
            "DWELL_DATA_DIR",
            "DWELL_CONFIG_DIR",
            "DWELL_RUNTIME_DIR",
            "DWELL_STATE_DIR",
            "DWELL_SOCKET",
        ] {
            sandbox.unset(unset);
        }
        sandbox.set(name, value);
        let ran = Dwell::alone(&sandbox).args(["ls"]).run();
        assert_eq!(ran.code, Some(3), "{name}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("not an absolute path") && ran.stderr.contains(name),
            "{}",
            ran.stderr
        );
        let ours = format!("XDG_RUNTIME_DIR={}", sandbox.path("run").display());
        assert_eq!(marked(&ours), [0; 0], "{name}");
        assert!(!sandbox.work().join("some").exists(), "{name}");
        let mut daemon = TestDaemon::stopped(sandbox, &binaries().daemon);
        daemon.launch();
        assert!(!daemon.wait_exit().success());
        assert!(daemon.log().contains(name), "{}", daemon.log());
    }
}

#[test]
fn directories_that_others_can_read_are_closed_to_them() {
    let sandbox = Sandbox::new();
    let own: Vec<_> = ["DWELL_STATE_DIR", "DWELL_DATA_DIR", "DWELL_RUNTIME_DIR"]
        .iter()
        .filter_map(|name| {
            let all = sandbox.variables();
            let (_, path) = all.into_iter().find(|(known, _)| known == name)?;
            Some(std::path::PathBuf::from(path))
        })
        .collect();
    for directory in &own {
        fs::create_dir_all(directory).unwrap();
        harness::sandbox::set_mode(directory, 0o755);
    }
    assert!(!own.is_empty());
    let daemon = TestDaemon::start_in(sandbox);
    daemon.client().call("daemon/status", json!({}));
    for directory in &own {
        assert_eq!(
            harness::sandbox::mode(directory) & 0o777,
            0o700,
            "{directory:?}"
        );
    }
}

#[test]
fn what_is_no_socket_is_never_removed() {
    let mut daemon = TestDaemon::stopped(Sandbox::new(), &binaries().daemon);
    fs::create_dir_all(daemon.socket().parent().unwrap()).unwrap();
    harness::sandbox::set_mode(daemon.socket().parent().unwrap(), 0o700);
    fs::write(daemon.socket(), "precious").unwrap();
    daemon.launch();
    assert!(!daemon.wait_exit().success());
    assert_eq!(fs::read_to_string(daemon.socket()).unwrap(), "precious");
    assert!(daemon.log().contains("no socket"), "{}", daemon.log());
}

#[test]
fn a_socket_path_that_is_too_long_is_named_as_such() {
    let sandbox = Sandbox::new();
    let long = sandbox.path(&"x".repeat(120));
    let mut daemon = TestDaemon::stopped(sandbox, &binaries().daemon).on_socket(long);
    daemon.launch();
    assert!(!daemon.wait_exit().success());
    assert!(daemon.log().contains("107"), "{}", daemon.log());
}

#[test]
fn a_session_of_another_daemon_on_the_same_state_is_held_and_says_by_whom() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.start(&session, "wait 60000");
    let mut command = Command::new(&binaries().daemon);
    daemon.apply(&mut command);
    let other_socket = daemon.path("run").join("other/dwell.sock");
    let mut second = command
        .arg("--socket")
        .arg(&other_socket)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut other = until("the second daemon", SOON, || {
        TestClient::try_connect(&other_socket).map_err(|error| error.to_string())
    });
    let fault = other.try_call(
        "turn/start",
        json!({"session": session, "text": "say mine"}),
    );
    let own = other.session(&daemon.work());
    let played = other.turn(&own, "say my own").said();
    drop(other);
    second.kill().unwrap();
    second.wait().unwrap();
    let fault = fault.unwrap_err();
    assert_eq!(
        (fault.code, &fault.data["kind"]),
        (-32003, &json!("held")),
        "{fault}"
    );
    assert_eq!(fault.data["pid"], daemon.pid());
    assert_eq!(played, "my own");
    client.call("turn/cancel", json!({"session": session}));
    client.history(&session).assert_consecutive(0);
}

#[test]
fn five_clients_at_once_start_one_daemon() {
    let sandbox = Sandbox::new();
    let _stop = AutoStarted(&sandbox);
    let replies: Vec<_> = thread::scope(|scope| {
        let asks: Vec<_> = (0..5)
            .map(|number| {
                let dwell = Dwell::alone(&sandbox);
                scope.spawn(move || {
                    dwell
                        .args(["ask", "-p", "script", &format!("say answer {number}")])
                        .run()
                })
            })
            .collect();
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    for (number, ran) in replies.iter().enumerate() {
        assert_eq!(
            (ran.code, ran.stdout.trim()),
            (Some(0), format!("answer {number}").as_str()),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(daemons(&sandbox).len(), 1);
}

#[test]
fn five_clients_at_once_after_a_crash_start_one_daemon() {
    let sandbox = Sandbox::new();
    let _stop = AutoStarted(&sandbox);
    Dwell::alone(&sandbox)
        .args(["ask", "-p", "script", "say hello"])
        .ok();
    let before = daemons(&sandbox);
    for pid in &before {
        let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
    until_true("it to be gone", SOON, || daemons(&sandbox).is_empty());
    thread::scope(|scope| {
        for _ in 0..5 {
            let dwell = Dwell::alone(&sandbox);
            scope.spawn(move || dwell.args(["ask", "-p", "script", "say again"]).ok());
        }
    });
    let after = daemons(&sandbox);
    assert_eq!(after.len(), 1);
    assert!(before.is_disjoint(&after));
}

#[test]
fn a_client_that_comes_while_a_daemon_dies_gets_a_new_one() {
    let sandbox = Sandbox::new();
    let _stop = AutoStarted(&sandbox);
    for round in 0..6 {
        let ran = Dwell::alone(&sandbox)
            .args(["ask", "-p", "script", "say hello"])
            .run();
        let got = (ran.code, ran.stdout.trim());
        assert_eq!(got, (Some(0), "hello"), "round {round}: {}", ran.stderr);
        for pid in daemons(&sandbox) {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
        }
    }
}

/// The daemons of a sandbox that started by themselves. A supervisor of a call is none.
fn daemons(sandbox: &Sandbox) -> BTreeSet<u32> {
    let home = format!("HOME={}", sandbox.path("home").display());
    let named = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "dwelld")
    };
    marked(&home).into_iter().filter(named).collect()
}

#[test]
fn sigterm_lets_a_turn_finish_and_takes_no_new_one() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, "say begun\nwait 300\nsay finished");
    client.until_type("saying");
    daemon.signal(Signal::TERM);
    let events = client.until_ended();
    assert_eq!(events.last()["status"], "completed");
    assert!(daemon.wait_exit().success());
    assert!(!daemon.socket().exists(), "it takes its socket away");
}

#[test]
fn a_second_signal_does_not_wait() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, "say begun\nwait 600000");
    client.until_type("saying");
    daemon.signal(Signal::TERM);
    let refused = until("the daemon to refuse new turns", SOON, || {
        match client.try_call(
            "turn/start",
            json!({"session": session, "text": "say no", "queue": true}),
        ) {
            Ok(answer) => Err(answer.to_string()),
            Err(fault) => Ok(fault),
        }
    });
    assert_eq!(refused.code, -32001, "{refused}");
    let start = Instant::now();
    daemon.signal(Signal::TERM);
    daemon.wait_exit();
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    daemon.restart();
    let log = daemon.client().history(&session);
    assert!(
        matches!(
            log.last()["status"].as_str(),
            Some("cancelled" | "interrupted")
        ),
        "{}",
        log.last()
    );
    assert_eq!(log.said(), "begun");
}

#[test]
fn shutdown_answers_before_the_daemon_goes() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    assert_eq!(
        client.call("daemon/shutdown", json!({"grace_ms": 1000})),
        json!({})
    );
    assert!(daemon.wait_exit().success());
}

#[test]
fn status_says_what_the_daemon_holds() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.start(&session, "wait 60000");
    let status = client.call("daemon/status", json!({}));
    assert_eq!(status["daemon"]["pid"], daemon.pid());
    assert_eq!(
        (&status["running"], &status["sessions"], &status["clients"]),
        (&json!(1), &json!(1), &json!(1)),
        "{status}"
    );
    assert_eq!(status["socket"], daemon.socket().to_str().unwrap());
    assert!(
        status["store"]
            .as_str()
            .unwrap()
            .starts_with(daemon.path("data").to_str().unwrap()),
        "{status}"
    );
    assert!(status["memory"].as_u64().unwrap() > 1024 * 1024, "{status}");
}

#[test]
fn a_binary_replaced_under_a_running_daemon_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.permissions(&json!({"execute": "allow"}));
    let copy = sandbox.path("dwelld");
    fs::copy(&binaries().daemon, &copy).unwrap();
    let mut daemon = TestDaemon::stopped(sandbox, &copy);
    daemon.restart();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    // The first command is run after the exchange: what runs commands must not be looked for in the file.
    client.start(
        &session,
        "say begun\nwait 200\ndo execute {\"command\": \"echo ran > ran\"}\nsay finished",
    );
    client.until_type("saying");
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "another build").unwrap();
    assert_eq!(client.until_ended().last()["status"], "completed");
    assert_eq!(daemon.read("ran"), "ran\n");
    assert_eq!(client.turn(&session, "say on").said(), "on");
}

#[test]
fn systemd_hands_over_the_socket_and_is_told_when_the_daemon_is_ready() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("run").join("activated.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let notify = UnixDatagram::bind(sandbox.path("run").join("notify.sock")).unwrap();
    notify.set_read_timeout(Some(SOON)).unwrap();
    let mut command = Command::new("/bin/sh");
    sandbox.apply(&mut command);
    command
        .arg("-c")
        .arg("LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\"")
        .arg(&binaries().daemon);
    command.env("NOTIFY_SOCKET", sandbox.path("run").join("notify.sock"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let fd = listener.as_raw_fd();
    // SAFETY: both calls are async-signal-safe, and nothing else runs between fork and exec.
    unsafe {
        command.pre_exec(move || {
            // A descriptor that is 3 already would still be closed by the exec.
            if libc::dup2(fd, 3) == 3 && libc::fcntl(3, libc::F_SETFD, 0) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    let mut child = command.spawn().unwrap();
    let mut bytes = [0; 4096];
    let mut told = String::new();
    while !told.contains("READY=1") {
        let count = notify
            .recv(&mut bytes)
            .expect("the daemon says that it is ready");
        told.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let status = TestClient::try_connect(&path)
        .unwrap()
        .call("daemon/status", json!({}));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status["daemon"]["pid"], child.id());
}
