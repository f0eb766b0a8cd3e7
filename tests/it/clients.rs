//! Editors' own JSON-RPC libraries, unchanged, on the daemon's socket: each plays the scenario of `tests/clients/`.

use harness::clients::{Clients, on_path, run};
use harness::daemon::TestDaemon;
use std::process::Command;

fn plays(daemon: &TestDaemon, command: Command) {
    let said = run(daemon, command).well();
    assert!(said.contains("scenario passed"), "{said}");
}

/// The program and its text, copied into the sandbox.
fn with_program(daemon: &TestDaemon, program: &str, arguments: &[&str], name: &str) -> Command {
    let copy = daemon.path(name);
    let source = harness::binaries::root().join("tests/clients").join(name);
    std::fs::copy(source, &copy).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).arg(copy);
    command
}

#[test]
fn visual_studio_codes_library_plays_the_scenario() {
    let name = "visual_studio_codes_library_plays_the_scenario";
    let Some(clients) = Clients::find(name, "node_modules/vscode-jsonrpc") else {
        return;
    };
    let daemon = TestDaemon::start();
    let mut command = Command::new("node");
    command.arg(clients.program(&daemon, "vscode.mjs"));
    plays(&daemon, command);
}

#[test]
fn emacs_plays_the_scenario() {
    let Some(emacs) = on_path("emacs_plays_the_scenario", "emacs", "emacs-nox") else {
        return;
    };
    let daemon = TestDaemon::start();
    let arguments = ["-Q", "--batch", "-l"];
    let command = with_program(&daemon, emacs.to_str().unwrap(), &arguments, "emacs.el");
    plays(&daemon, command);
}

#[test]
fn neovim_plays_the_scenario_in_both_ways() {
    let name = "neovim_plays_the_scenario_in_both_ways";
    let Some(clients) = Clients::find(name, "py/bin/nvim") else {
        return;
    };
    let nvim = clients.binary("py/bin/nvim");
    for way in ["rpc", "pipe"] {
        let daemon = TestDaemon::start();
        let arguments = ["--clean", "-l"];
        let mut command = with_program(&daemon, nvim.to_str().unwrap(), &arguments, "neovim.lua");
        command.arg(way);
        plays(&daemon, command);
    }
}

#[test]
fn plain_python_plays_the_scenario() {
    let Some(python) = on_path("plain_python_plays_the_scenario", "python3", "python3") else {
        return;
    };
    let daemon = TestDaemon::start();
    let command = with_program(&daemon, python.to_str().unwrap(), &[], "plain.py");
    plays(&daemon, command);
}

#[test]
fn a_shell_with_socat_plays_the_scenario() {
    if on_path("a_shell_with_socat_plays_the_scenario", "socat", "socat").is_none() {
        return;
    }
    let daemon = TestDaemon::start();
    plays(&daemon, with_program(&daemon, "bash", &[], "socat.sh"));
}
