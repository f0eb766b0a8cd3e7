//! `--host`: the client's commands on the daemon of another machine, by a stand-in for ssh and by a real one.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::sandbox::Sandbox;
use harness::ssh::{Sshd, remote_dwell, stand_in};
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// This machine, whose `--host` leads to the other by this ssh.
pub(crate) fn here(mut sandbox: Sandbox, ssh: &str) -> Sandbox {
    sandbox.set("DWELL_SSH", ssh);
    sandbox.set("DWELL_REMOTE", remote_dwell());
    sandbox.set("DWELL_PROVIDER", "script");
    sandbox
}

pub(crate) fn dwell(sandbox: &Sandbox, there: &TestDaemon, arguments: &[&str]) -> Dwell {
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

/// Waits for the first session that anybody makes there.
pub(crate) fn first_session(client: &mut TestClient) -> String {
    until("a session", SOON, || {
        let list = client.call("session/list", serde_json::json!({}));
        let session = list["sessions"][0]["id"].as_str().map(str::to_owned);
        session.ok_or_else(|| "no session".to_owned())
    })
}

/// A turn that goes on while the link is cut, read to its end.
fn outlives(sandbox: &Sandbox, there: &TestDaemon, cut: impl FnOnce()) {
    let mut other = there.client();
    let running = std::thread::scope(|scope| {
        let asking =
            scope.spawn(|| dwell(sandbox, there, &["ask", "say one \nwait 1500\nsay two"]).run());
        let session = first_session(&mut other);
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
    assert!(again.ends_with("proxy --revive"), "{log}");
    // The terminal is in use: ssh must not read what is typed for the session.
    let asks = |line: &str| !line.contains("BatchMode=yes");
    assert!(asks(log.lines().next().unwrap()) && !asks(again), "{log}");
}

/// Breaks every link that the stand-in has made.
pub(crate) fn cut(sandbox: &Sandbox) {
    let log = fs::read_to_string(sandbox.path("ssh.log")).unwrap_or_default();
    for pid in log
        .lines()
        .filter_map(|line| line.split_whitespace().next())
    {
        // One that has ended is no fault.
        let _ = kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL);
    }
}

/// The other machine, this one, and a file whose being there means that no link can be made.
fn with_a_switch() -> (TestDaemon, Sandbox, std::path::PathBuf) {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let down = sandbox.path("down");
    let text = fs::read_to_string(&ssh).unwrap();
    let refuses = format!("#!/bin/sh\n[ ! -e '{}' ] || exit 255\n", down.display());
    fs::write(&ssh, text.replacen("#!/bin/sh\n", &refuses, 1)).unwrap();
    let sandbox = here(sandbox, ssh.to_str().unwrap());
    (there, sandbox, down)
}

#[test]
fn each_event_is_written_once_over_links_that_drop() {
    let (there, sandbox, _) = with_a_switch();
    let prompt = "say one \nwait 800\nsay two \nwait 800\nsay three";
    let ran = std::thread::scope(|scope| {
        let asking = scope.spawn(|| dwell(&sandbox, &there, &["ask", "--json", prompt]).run());
        let mut other = there.client();
        let session = first_session(&mut other);
        other.attach(&session, Some(0));
        other.until_type("saying");
        cut(&sandbox);
        other.until_type("saying");
        cut(&sandbox);
        asking.join().unwrap()
    });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let events = ran.stdout.lines();
    let seqs: Vec<u64> = events
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(ran.stdout.contains("one two three"), "{}", ran.stdout);
}

#[test]
fn a_wait_outlives_its_link() {
    let (there, sandbox, _) = with_a_switch();
    let mut other = there.client();
    let session = other.session(&there.work());
    other.start(&session, "wait 1000\nsay waited");
    let ran = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| dwell(&sandbox, &there, &["wait", &session]).run());
        linked(&sandbox);
        cut(&sandbox);
        waiting.join().unwrap()
    });
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "waited\n"),
        "{}",
        ran.stderr
    );
}

/// Waits until more has come and gone through the first link than the handshake has.
fn linked(sandbox: &Sandbox) {
    until("a link in use", SOON, || {
        let log = fs::read_to_string(sandbox.path("ssh.log")).unwrap_or_default();
        let pid = log.split_whitespace().next().ok_or("no ssh")?;
        let counts = fs::read_to_string(format!("/proc/{pid}/io"));
        let counts = counts.map_err(|error| error.to_string())?;
        let written = counts.lines().find_map(|line| line.strip_prefix("wchar: "));
        match written.and_then(|count| count.parse::<u64>().ok()) {
            Some(800..) => Ok(()),
            other => Err(format!("{other:?} bytes")),
        }
    });
}

#[test]
fn a_tool_run_by_hand_goes_on_without_its_link_and_its_result_comes() {
    let (there, sandbox, _) = with_a_switch();
    let mut other = there.client();
    let session = other.session(&there.work());
    other.attach(&session, None);
    let command = r#"{"command": "echo begun >>marks; sleep 1; echo ended"}"#;
    let words = ["run", "--yes", "-s", &session, "execute", command];
    let ran = std::thread::scope(|scope| {
        let running = scope.spawn(|| dwell(&sandbox, &there, &words).run());
        until("the command to run", SOON, || {
            let begun = there.read("marks") == "begun\n";
            begun.then_some(()).ok_or_else(|| "not yet".to_owned())
        });
        cut(&sandbox);
        running.join().unwrap()
    });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["content"], "ended\n");
    assert_eq!(there.read("marks"), "begun\n", "it ran once");
}

#[test]
fn what_happened_while_the_link_was_down_is_told_by_watch_afterwards() {
    use std::io::BufRead as _;
    let (there, sandbox, down) = with_a_switch();
    let mut other = there.client();
    let session = other.session(&there.work());
    other.turn(&session, "say before");
    let mut command = std::process::Command::new(remote_dwell());
    sandbox.apply(&mut command);
    let host = format!("box:{}", there.work().display());
    command.args(["--host", &host, "watch"]);
    let mut watching = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = std::io::BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut next = || told.next().unwrap().unwrap();
    // It hears from the first turn on, whichever that is.
    let heard = std::thread::scope(|scope| {
        let beginning = scope.spawn(&mut next);
        while !beginning.is_finished() {
            other.turn(&session, "say again");
        }
        beginning.join().unwrap()
    });
    assert!(heard.starts_with(&session), "{heard}");
    fs::write(&down, "").unwrap();
    cut(&sandbox);
    let new = other.session(&there.work());
    other.turn(&new, "fail on purpose");
    fs::remove_file(&down).unwrap();
    let all: Vec<String> = std::iter::repeat_with(&mut next)
        .take_while(|line| !line.contains(&new))
        .take(1000)
        .collect();
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert!(all.iter().all(|line| line.contains(&session)), "{all:?}");
}

#[test]
fn tools_for_another_program_are_there_again_after_the_link_dropped() {
    use std::io::{BufRead as _, Write as _};
    let (there, sandbox, _) = with_a_switch();
    let mut command = std::process::Command::new(remote_dwell());
    sandbox.apply(&mut command);
    let host = format!("box:{}", there.work().display());
    command.args(["--host", &host, "mcp"]);
    let mut server = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let mut answers = std::io::BufReader::new(server.stdout.take().unwrap()).lines();
    there.write("note.txt", "a note");
    let mut ask = |id: u32, method: &str, params: serde_json::Value| {
        let call =
            serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{call}").unwrap();
        let is_answer = |line: &String| line.contains(&format!("\"id\":{id},"));
        answers
            .by_ref()
            .map(Result::unwrap)
            .find(is_answer)
            .unwrap()
    };
    let client = serde_json::json!({"name": "test", "version": "1"});
    let hello = serde_json::json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    ask(1, "initialize", hello);
    let read = serde_json::json!({"name": "read", "arguments": {"path": "note.txt"}});
    assert!(ask(2, "tools/call", read.clone()).contains("a note"));
    cut(&sandbox);
    // A call that was under way when the link broke says so; the next one has a new link.
    let answered = ["3", "4"].map(|id| ask(id.parse().unwrap(), "tools/call", read.clone()));
    assert!(answered[1].contains("a note"), "{answered:?}");
    drop(stdin);
    assert!(server.wait().unwrap().success());
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

/// A daemon of another release is told from both sides' numbers, and what is to be run names the machine.
#[test]
fn a_daemon_of_another_protocol_on_another_machine_is_told_with_what_to_run() {
    let sandbox = Sandbox::new();
    let ssh = sandbox.path("ssh");
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocol":9,"daemon":{"name":"dwelld","version":"7.8.9","pid":1,"started_at":1},"capabilities":{}}}"#;
    fs::write(
        &ssh,
        format!("#!/bin/sh\nread call\necho '{answer}'\nread more\n"),
    )
    .unwrap();
    harness::sandbox::set_mode(&ssh, 0o755);
    let ran = Dwell::alone(&sandbox)
        .env("DWELL_SSH", ssh.to_str().unwrap())
        .args(["--host", "me@box", "ls"])
        .run();
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    for part in [
        "the daemon on me@box speaks protocol 9 (dwelld 7.8.9)",
        "this client speaks protocol",
        "`dwell --host me@box daemon restart`",
    ] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}

#[test]
fn a_restart_there_is_offered_and_where_it_does_not_help_the_next_step_is_told() {
    let name = "a_restart_there_is_offered_and_where_it_does_not_help_the_next_step_is_told";
    let sandbox = Sandbox::new();
    let Some(tmux) = Tmux::start(&sandbox) else {
        return skip(name, "tmux is not installed");
    };
    let ssh = sandbox.path("ssh");
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocol":9,"daemon":{"name":"dwelld","version":"7.8.9","pid":1,"started_at":1},"capabilities":{}}}"#;
    let there = format!(
        "#!/bin/sh\ncase \"$*\" in *'daemon restart'*) echo restarted there; exit 0;; esac\nread call\necho '{answer}'\nread more\n"
    );
    fs::write(&ssh, there).unwrap();
    harness::sandbox::set_mode(&ssh, 0o755);
    let mut line = format!("env -i TERM=xterm-256color DWELL_SSH='{}'", ssh.display());
    for (name, value) in sandbox.variables() {
        line.push_str(&format!(" {name}='{value}'"));
    }
    let client = remote_dwell().display();
    tmux.open_sized(
        "it",
        &format!("{line} '{client}' --host me@box ls; sleep 60"),
        200,
        20,
    );
    tmux.shows("it", "restart it? Sessions are kept");
    tmux.type_line("it", "y");
    tmux.shows("it", "restarted there");
    tmux.shows("it", "of one release on me@box and here");
}

#[test]
fn a_proxy_to_another_machine_starts_nothing_here() {
    let (there, sandbox, _) = with_a_switch();
    let call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon/status\"}\n";
    let said = dwell(&sandbox, &there, &["proxy"]).stdin(call).ok();
    assert!(said.contains(&format!("\"pid\":{}", there.pid())), "{said}");
    assert!(!sandbox.path("run").join("dwell").exists());
}

#[test]
fn what_a_shell_prints_on_the_way_is_passed_over() {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let text = fs::read_to_string(&ssh).unwrap();
    let greeting = "exec \"$@\"";
    let greets = text.replace(
        greeting,
        &format!("echo 'Welcome to box'\necho '{{\"load\": 0.5}}'\n{greeting}"),
    );
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
