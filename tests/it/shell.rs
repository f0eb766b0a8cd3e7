//! The client in real shells: what they complete, readers that go away, the manual as formatters read it.

use harness::binaries::binaries;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::sandbox::Sandbox;
use harness::tmux::Tmux;
use harness::wait::skip;
use std::process::{Command, Stdio};

/// A shell, how it is started without anybody's settings, and what makes it complete.
const SHELLS: [(&str, &str, &str); 3] = [
    (
        "bash",
        "bash --norc --noprofile -i",
        ". ./dwell.bash; echo loaded-$((40 + 2))",
    ),
    (
        "zsh",
        "zsh -f -i",
        "autoload -U compinit; compinit -D -u; . ./dwell.zsh; echo loaded-$((40 + 2))",
    ),
    (
        "fish",
        "fish --no-config -i",
        "source ./dwell.fish; echo loaded-(math 40 + 2)",
    ),
];

#[test]
fn real_shells_complete_commands_options_and_sessions() {
    let name = "real_shells_complete_commands_options_and_sessions";
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, "tmux is not installed");
    };
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let folder = binaries().client.parent().unwrap().display().to_string();
    for (shell, start, load) in SHELLS {
        if Command::new(shell).arg("--version").output().is_err() {
            skip(name, &format!("{shell} is not installed"));
            continue;
        }
        let script = Dwell::alone(&daemon).args(["completions", shell]).ok();
        daemon.write(&format!("dwell.{shell}"), &script);
        let mut line = "exec env -i TERM=xterm-256color PS1='ready> '".to_owned();
        for (name, value) in daemon.variables() {
            let value = match name.as_str() {
                "PATH" => format!("{folder}:{value}"),
                _ => value,
            };
            line.push_str(&format!(" {name}='{value}'"));
        }
        let socket = daemon.socket().display();
        let work = daemon.work();
        let work = work.display();
        tmux.open_sized(
            shell,
            &format!("cd '{work}'; {line} DWELL_SOCKET='{socket}' {start}"),
            200,
            20,
        );
        tmux.type_line(shell, load);
        tmux.shows(shell, "loaded-42");
        let half = &session[..session.len() - 3];
        for (typed, completed) in [
            ("dwell atta", "dwell attach ".to_owned()),
            ("dwell wait --js", "dwell wait --json ".to_owned()),
            (
                &format!("dwell log {half}"),
                format!("dwell log {session} "),
            ),
            (
                &format!("dwell ask -s {half}"),
                format!("dwell ask -s {session} "),
            ),
        ] {
            tmux.type_text(shell, typed);
            tmux.press(shell, "Tab");
            // Something behind it shows where the cursor is.
            tmux.shows(shell, completed.trim_end());
            tmux.type_text(shell, "x");
            tmux.shows(shell, &format!("{completed}x"));
            tmux.press(shell, "C-u");
        }
    }
}

#[test]
fn nobody_who_completes_starts_a_daemon() {
    let sandbox = Sandbox::new();
    let ran = Dwell::alone(&sandbox)
        .args(["ls", "--tsv", "--no-start"])
        .run();
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(3), ""),
        "{}",
        ran.stderr
    );
    assert!(!sandbox.path("run").join("dwell/dwell.sock").exists());
}

#[test]
fn a_reader_that_went_away_ends_each_command_without_a_word() {
    let daemon = TestDaemon::start();
    let session = daemon.client().session(&daemon.work());
    daemon.client().turn(&session, "say rhinoceros");
    for line in [
        "ls",
        "ls --json",
        "log",
        "export",
        "search rhinoceros",
        "providers",
        "tools",
        "commands",
        "completions bash",
        "man",
        "schema",
        "doctor",
        "wait",
        "ask -p script say-what",
        "ask -p script --json say-what",
        "daemon status",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(&binaries().client);
        daemon.apply(&mut command);
        let output = command
            .env("DWELL_SOCKET", daemon.socket())
            .args(line.split(' '))
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(141), ""), "{line}");
    }
}

#[test]
fn pages_of_the_manual_have_nothing_that_formatters_warn_of() {
    let name = "pages_of_the_manual_have_nothing_that_formatters_warn_of";
    let sandbox = Sandbox::new();
    let folder = sandbox.path("man");
    let written = Dwell::alone(&sandbox).env("SOURCE_DATE_EPOCH", "951782400");
    written.args(["man", folder.to_str().unwrap()]).ok();
    let files = std::fs::read_dir(&folder).unwrap();
    let mut pages: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    pages.sort();
    assert!(pages.len() > 40, "one for each command");
    for (program, args) in [
        ("mandoc", &["-T", "lint", "-W", "warning"][..]),
        ("groff", &["-man", "-ww", "-z", "-K", "utf8"]),
    ] {
        let mut command = Command::new(program);
        sandbox.apply(&mut command);
        let Ok(output) = command.args(args).args(&pages).output() else {
            skip(name, &format!("{program} is not installed"));
            continue;
        };
        let told = [output.stdout, output.stderr].concat();
        assert_eq!(String::from_utf8_lossy(&told), "", "{program}");
    }
    let page = std::fs::read_to_string(folder.join("dwell-wait.1")).unwrap();
    assert!(
        page.contains(".TH dwell-wait 1 2000-02-29 \"dwell "),
        "{page}"
    );
}
