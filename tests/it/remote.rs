//! `--host`: the client's commands on the daemon of another machine, by a stand-in for ssh and by a real one.

use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::sandbox::Sandbox;
use harness::ssh::{Sshd, remote_dwell, stand_in};
use harness::wait::{SOON, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// This machine, whose `--host` leads to the other by this ssh.
fn here(mut sandbox: Sandbox, ssh: &str) -> Sandbox {
    sandbox.set("DWELL_SSH", ssh);
    sandbox.set("DWELL_REMOTE", remote_dwell());
    sandbox.set("DWELL_PROVIDER", "script");
    sandbox
}

fn dwell(sandbox: &Sandbox, there: &TestDaemon, arguments: &[&str]) -> Dwell {
    let host = format!("box:{}", there.work().display());
    Dwell::alone(sandbox)
        .args(["--host", &host])
        .args(arguments.iter().copied())
}

/// The commands of a day, all on the other machine.
fn day(sandbox: &Sandbox, there: &TestDaemon) {
    let run = |arguments: &[&str]| dwell(sandbox, there, arguments).ok();
    let said = run(&[
        "ask",
        "--yes",
        "do execute {\"command\": \"pwd > where.txt\"}\nsay grün 😀",
    ]);
    assert!(said.contains("grün 😀"), "{said}");
    assert_eq!(
        there.read("where.txt").trim(),
        there.work().to_str().unwrap()
    );
    assert!(run(&["ls"]).contains("do execute"), "its sessions");
    let id = run(&["new", "-d"]).trim().to_owned();
    run(&["send", &id, "say later"]);
    assert!(run(&["log", &id]).contains("say later"));
    assert!(run(&["tools", "-s", &id]).contains("execute"));
    assert!(run(&["daemon", "status"]).contains(there.socket().to_str().unwrap()));
    assert!(run(&["rpc", "daemon/status"]).contains("\"pid\""));
    run(&["rm", &id]);
    let missing = dwell(sandbox, there, &["log", "nobody"]).run();
    assert_eq!(missing.code, Some(4), "{}", missing.stderr);
    let mine = sandbox.path("run").join("dwell");
    assert!(!mine.exists(), "no daemon began here");
}

#[test]
fn commands_work_through_a_stand_in_for_ssh() {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let sandbox = here(sandbox, ssh.to_str().unwrap());
    day(&sandbox, &there);
    let log = fs::read_to_string(sandbox.path("ssh.log")).unwrap();
    let first = log.lines().next().unwrap();
    let expected = format!(
        "-T -o ServerAliveInterval=15 box {} proxy",
        remote_dwell().display()
    );
    assert!(first.ends_with(&expected), "{first}");
}

#[test]
fn commands_work_through_a_real_sshd() {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let Some(sshd) = Sshd::start("commands_work_through_a_real_sshd", &sandbox, &there) else {
        return;
    };
    let ssh = format!("ssh -F {}", sshd.config.display());
    day(&here(sandbox, &ssh), &there);
}

/// A turn that goes on while the link is cut, read to its end.
fn outlives(sandbox: &Sandbox, there: &TestDaemon, cut: impl FnOnce()) {
    let mut other = there.client();
    let running = std::thread::scope(|scope| {
        let asking =
            scope.spawn(|| dwell(sandbox, there, &["ask", "say one \nwait 1500\nsay two"]).run());
        let session = until("the turn to run", SOON, || {
            let list = other.call("session/list", serde_json::json!({}));
            let session = list["sessions"][0]["id"].as_str().map(str::to_owned);
            session.ok_or_else(|| "no session".to_owned())
        });
        other.attach(&session, Some(0));
        other.until_type("saying");
        cut();
        asking.join().unwrap()
    });
    assert_eq!(running.code, Some(0), "{}", running.stderr);
    assert_eq!(running.stdout, "one two\n", "each word once");
}

#[test]
fn a_link_that_drops_is_made_again_and_each_word_comes_once() {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let sandbox = here(sandbox, ssh.to_str().unwrap());
    outlives(&sandbox, &there, || {
        let log = fs::read_to_string(sandbox.path("ssh.log")).unwrap();
        let pid = log.split_whitespace().next().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    });
    let log = fs::read_to_string(sandbox.path("ssh.log")).unwrap();
    let again = log.lines().nth(1).unwrap();
    assert!(again.ends_with("proxy --no-start"), "{log}");
    // The terminal is in use: ssh must not read what is typed for the session.
    let asks = |line: &str| !line.contains("BatchMode=yes");
    assert!(asks(log.lines().next().unwrap()) && !asks(again), "{log}");
}

#[test]
fn a_real_ssh_link_that_drops_is_made_again() {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let Some(sshd) = Sshd::start("a_real_ssh_link_that_drops_is_made_again", &sandbox, &there)
    else {
        return;
    };
    let ssh = format!("ssh -F {}", sshd.config.display());
    outlives(&here(sandbox, &ssh), &there, || sshd.cut());
}

#[test]
fn the_other_machines_daemon_is_started_and_stopped_from_here() {
    let mut there = TestDaemon::start();
    assert!(there.term().success());
    let sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let sandbox = here(sandbox, ssh.to_str().unwrap());
    let none = dwell(&sandbox, &there, &["daemon", "status"]).run();
    assert_eq!(none.code, Some(3), "{}", none.stderr);
    assert!(none.stderr.contains("no daemon answers"), "{}", none.stderr);
    assert!(dwell(&sandbox, &there, &["ls"]).run().code == Some(0));
    assert!(
        dwell(&sandbox, &there, &["daemon", "status"])
            .ok()
            .contains("dwelld")
    );
    assert!(
        dwell(&sandbox, &there, &["daemon", "stop"])
            .ok()
            .contains("stopped")
    );
}

#[test]
fn a_machine_that_cannot_be_reached_is_told_with_what_to_do() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("bin");
    fs::create_dir(&folder).unwrap();
    for (name, code, words, hint) in [
        ("unreachable", 255, "ssh did not reach box", "`ssh box`"),
        ("bare", 127, "there is no dwell on box", "install it there"),
        (
            "broken",
            9,
            "dwell on box ended with exit code 9",
            "daemon status",
        ),
    ] {
        let ssh = folder.join(name);
        fs::write(&ssh, format!("#!/bin/sh\nexit {code}\n")).unwrap();
        harness::sandbox::set_mode(&ssh, 0o755);
        let ran = Dwell::alone(&sandbox)
            .env("DWELL_SSH", ssh.to_str().unwrap())
            .args(["--host", "box", "ls"])
            .run();
        assert_eq!(ran.code, Some(3), "{name}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(words) && ran.stderr.contains(hint),
            "{}",
            ran.stderr
        );
    }
    let option = Dwell::alone(&sandbox)
        .args(["--host=-oProxyCommand=x", "ls"])
        .run();
    assert_eq!(option.code, Some(2), "{}", option.stderr);
}

#[test]
fn what_a_shell_prints_on_the_way_is_passed_over() {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let text = fs::read_to_string(&ssh).unwrap();
    let greeting = "exec \"$@\"";
    let greets = text.replace(greeting, &format!("echo 'Welcome to box'\n{greeting}"));
    fs::write(&ssh, greets).unwrap();
    let sandbox = here(sandbox, ssh.to_str().unwrap());
    let said = dwell(&sandbox, &there, &["ask", "say grün"]).ok();
    assert_eq!(said, "grün\n");
}

#[test]
fn the_doctor_looks_at_the_other_machine_and_says_so() {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let sandbox = here(sandbox, ssh.to_str().unwrap());
    let said = dwell(&sandbox, &there, &["doctor"]).run().stdout;
    assert!(said.contains("all but the terminal is box's"), "{said}");
    for mine in ["no socket at", "state directory", "vendor's key"] {
        assert!(!said.contains(mine), "{said}");
    }
}

#[test]
fn a_directory_that_is_not_absolute_is_refused_with_what_to_write() {
    let sandbox = Sandbox::new();
    for host in ["box:srv", "box:~/x"] {
        let ran = Dwell::alone(&sandbox).args(["--host", host, "ls"]).run();
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("box:/srv/project"), "{}", ran.stderr);
    }
}

#[test]
fn a_proxy_passes_frames_of_either_kind() {
    let daemon = TestDaemon::start();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"daemon/status"}"#;
    let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let lines = Dwell::new(&daemon)
        .args(["proxy"])
        .stdin(&format!("{body}\n"))
        .ok();
    assert!(
        lines.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\""),
        "{lines}"
    );
    let headers = Dwell::new(&daemon).args(["proxy"]).stdin(&framed).ok();
    assert!(headers.starts_with("Content-Length: "), "{headers}");
}
