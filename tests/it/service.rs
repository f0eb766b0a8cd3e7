//! The daemon as a service: units that systemd accepts, a socket that it hands over, a watchdog that it hears, and the command
//! that installs all of it. Nothing here speaks with a service manager of this machine.

use harness::binaries::{binaries, root};
use harness::client::TestClient;
use harness::clients::on_path;
use harness::dwell::Dwell;
use harness::sandbox::{Sandbox, set_mode};
use harness::wait::{SOON, until};
use serde_json::json;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn units(sandbox: &Sandbox) -> [PathBuf; 2] {
    let folder = sandbox.path("home").join(".config/systemd/user");
    ["dwelld.socket", "dwelld.service"].map(|name| folder.join(name))
}

fn systemd(sandbox: &Sandbox, program: &Path, arguments: &[&str], files: &[PathBuf]) -> Output {
    let mut command = Command::new(program);
    sandbox.apply(&mut command);
    command.args(arguments).args(files).output().unwrap()
}

#[test]
fn installed_units_are_what_systemd_accepts_and_are_taken_away_again() {
    let sandbox = Sandbox::new();
    let said = Dwell::alone(&sandbox).args(["daemon", "install"]).ok();
    let [socket, service] = units(&sandbox);
    assert!(said.contains("does not answer here"), "{said}");
    assert!(
        said.contains("systemctl --user enable --now dwelld.socket"),
        "{said}"
    );
    let text = fs::read_to_string(&service).unwrap();
    let line = format!("ExecStart={}\n", binaries().daemon.display());
    assert!(text.contains(&line), "{text}");
    assert!(
        text.contains("Type=notify\n") && text.contains("WatchdogSec="),
        "{text}"
    );

    // Once more changes nothing; what a person wrote is kept.
    let said = Dwell::alone(&sandbox).args(["daemon", "install"]).ok();
    assert_eq!(said.matches("is as it should be").count(), 2, "{said}");
    fs::write(&socket, "# mine\n").unwrap();
    Dwell::alone(&sandbox).args(["daemon", "install"]).ok();
    let kept = fs::read_to_string(socket.with_extension("socket.old")).unwrap();
    assert_eq!(kept, "# mine\n");

    let name = "installed_units_are_what_systemd_accepts_and_are_taken_away_again";
    if let Some(analyze) = on_path(name, "systemd-analyze", "systemd") {
        let files = [socket.clone(), service.clone()];
        let verified = systemd(&sandbox, &analyze, &["verify", "--user"], &files);
        let complaints = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(
            verified.status.success() && complaints.is_empty(),
            "{complaints}"
        );
    }
    // What a person has made of one is kept, and so is what was kept before.
    fs::write(&service, format!("{text}# mine too\n")).unwrap();
    fs::write(&socket, "# mine again\n").unwrap();
    let said = Dwell::alone(&sandbox).args(["daemon", "uninstall"]).ok();
    assert!(!socket.exists() && !service.exists(), "{said}");
    let old = |path: &PathBuf, end: &str| {
        fs::read_to_string(PathBuf::from(format!("{}{end}", path.display()))).unwrap()
    };
    assert_eq!(old(&socket, ".old"), "# mine\n");
    assert_eq!(old(&socket, ".old1"), "# mine again\n");
    assert!(old(&service, ".old").ends_with("# mine too\n"));
    let said = Dwell::alone(&sandbox).args(["daemon", "uninstall"]).ok();
    assert!(said.contains("nothing is installed"), "{said}");
}

/// What a shell names is what its `dwell` uses: the service has it, however it is written, and has no key.
#[test]
fn a_service_has_the_directories_and_the_socket_of_the_shell_and_no_key() {
    let name = "a_service_has_the_directories_and_the_socket_of_the_shell_and_no_key";
    let analyze = on_path(name, "systemd-analyze", "systemd");
    for odd in [
        "plain",
        "a b",
        "100%",
        "$HOME ${HOME}",
        "\"q\" 'q'",
        "back\\slash",
        "é\u{1f600}",
    ] {
        let mut sandbox = Sandbox::new();
        sandbox.unset("DWELL_DATA_DIR");
        sandbox.set("XDG_DATA_HOME", sandbox.path(odd));
        sandbox.set("DWELL_CONFIG_DIR", sandbox.path(&format!("{odd}\nconfig")));
        sandbox.set("DWELL_HOUSE_KEY", "hush-hush");
        sandbox.set("OPENAI_API_KEY", "hush-hush");
        let at = sandbox.path(odd).join("s.sock");
        let ran = Dwell::alone(&sandbox)
            .args(["--socket", at.to_str().unwrap(), "daemon", "install"])
            .run();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let data = sandbox.path(odd).join("dwell");
        assert!(
            ran.stdout
                .contains(&format!("  DWELL_DATA_DIR={}\n", data.display()))
        );
        assert!(ran.stderr.contains("OPENAI_API_KEY"), "{}", ran.stderr);
        let [socket, service] = units(&sandbox).map(|unit| fs::read_to_string(unit).unwrap());
        let listen = format!("ListenStream={}\n", at.display()).replace('%', "%%");
        assert!(socket.contains(&listen), "{socket}");
        for said in [&socket, &service, &ran.stdout, &ran.stderr] {
            assert!(!said.contains("hush"), "{said}");
        }
        if let Some(analyze) = &analyze {
            let verified = systemd(&sandbox, analyze, &["verify", "--user"], &units(&sandbox));
            let complaints = String::from_utf8_lossy(&verified.stderr).into_owned();
            assert!(
                verified.status.success() && complaints.is_empty(),
                "{odd}: {complaints}"
            );
        }
    }
}

#[test]
fn a_socket_that_no_unit_can_name_is_refused_with_what_to_do() {
    let sandbox = Sandbox::new();
    let at = sandbox.path("a\nb.sock");
    let ran = Dwell::alone(&sandbox)
        .args(["--socket", at.to_str().unwrap(), "daemon", "install"])
        .run();
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("control character") && ran.stderr.contains("--socket"));
    assert!(!units(&sandbox)[1].exists(), "nothing is half installed");
}

#[test]
fn what_a_newer_install_writes_replaces_the_older_and_what_a_person_added_stays() {
    let mut sandbox = Sandbox::new();
    Dwell::alone(&sandbox).args(["daemon", "install"]).ok();
    sandbox.set("DWELL_LOG", "debug");
    let said = Dwell::alone(&sandbox).args(["daemon", "install"]).run();
    let [socket, service] = units(&sandbox);
    assert!(
        fs::read_to_string(&service)
            .unwrap()
            .contains("DWELL_LOG=debug")
    );
    let old = PathBuf::from(format!("{}.old", service.display()));
    assert!(
        !old.exists() && !said.stderr.contains("what was there"),
        "{}",
        said.stderr
    );

    let added = PathBuf::from(format!("{}.d/mine.conf", service.display()));
    fs::create_dir(added.parent().unwrap()).unwrap();
    fs::write(&added, "[Service]\nNice=5\n").unwrap();
    // Enabled by hand, where nobody answers who would take it back.
    let enabled = socket.with_file_name("sockets.target.wants/dwelld.socket");
    fs::create_dir(enabled.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&socket, &enabled).unwrap();
    let said = Dwell::alone(&sandbox).args(["daemon", "uninstall"]).run();
    assert!(
        said.stderr.contains("dwelld.service.d, which is yours"),
        "{}",
        said.stderr
    );
    assert!(added.exists() && !service.exists() && !socket.exists());
    assert!(enabled.symlink_metadata().is_err(), "a link to nothing");
}

/// A stand-in for systemctl.
fn systemctl(sandbox: &mut Sandbox, script: &str) {
    let folder = sandbox.path("bin");
    fs::create_dir(&folder).unwrap();
    let stand_in = folder.join("systemctl");
    fs::write(&stand_in, format!("#!/bin/sh\n{script}\n")).unwrap();
    set_mode(&stand_in, 0o755);
    sandbox.set("PATH", format!("{}:/usr/bin:/bin", folder.display()));
}

#[test]
fn a_service_manager_that_hangs_is_given_up_and_one_that_fails_is_told_with_what_is_left() {
    let mut sandbox = Sandbox::new();
    systemctl(&mut sandbox, "exec sleep 600");
    let said = Dwell::alone(&sandbox).args(["daemon", "install"]).ok();
    assert!(said.contains("does not answer here"), "{said}");

    let mut sandbox = Sandbox::new();
    systemctl(
        &mut sandbox,
        "[ \"$2\" != enable ] || { echo no bus >&2; exit 1; }",
    );
    let ran = Dwell::alone(&sandbox).args(["daemon", "install"]).run();
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    for part in [
        "no bus",
        "enable --now dwelld.socket` failed",
        "run:\n  systemctl --user enable",
    ] {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}

/// The manager looks in its own directories, not in those of a shell.
#[test]
fn units_go_where_the_manager_that_answers_looks() {
    let mut sandbox = Sandbox::new();
    let its = sandbox.path("its config");
    systemctl(
        &mut sandbox,
        &format!(
            "[ \"$2\" != show-environment ] || echo \"XDG_CONFIG_HOME=\\$'{}'\"",
            its.display()
        ),
    );
    sandbox.set("XDG_CONFIG_HOME", sandbox.path("of the shell"));
    Dwell::alone(&sandbox).args(["daemon", "install"]).ok();
    assert!(its.join("systemd/user/dwelld.socket").exists());
    assert!(!sandbox.path("of the shell").join("systemd").exists());
}

#[test]
fn a_masked_unit_stays_masked() {
    let sandbox = Sandbox::new();
    let [socket, _] = units(&sandbox);
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/null", &socket).unwrap();
    let ran = Dwell::alone(&sandbox).args(["daemon", "install"]).run();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("unmask"), "{}", ran.stderr);
    assert_eq!(fs::read_link(&socket).unwrap(), PathBuf::from("/dev/null"));
}

/// Tools are the service's children and inherit what confines it, down to `sudo`: so the number stays high on purpose, and this
/// test says when it changes.
#[test]
fn exposure_is_what_it_was_when_it_was_thought_about() {
    let name = "exposure_is_what_it_was_when_it_was_thought_about";
    let Some(analyze) = on_path(name, "systemd-analyze", "systemd") else {
        return;
    };
    let sandbox = Sandbox::new();
    let unit = root().join("systemd/dwelld.service");
    let judged = |threshold: &str| {
        let threshold = format!("--threshold={threshold}");
        let arguments = ["security", "--offline=true", "--user", &threshold];
        systemd(&sandbox, &analyze, &arguments, std::slice::from_ref(&unit))
    };
    let at = judged("98");
    assert!(
        at.status.success(),
        "{}",
        String::from_utf8_lossy(&at.stdout)
    );
    assert!(
        !judged("50").status.success(),
        "a threshold that is not met is told"
    );
}

#[test]
fn the_daemon_starts_with_the_first_client_of_its_socket() {
    let name = "the_daemon_starts_with_the_first_client_of_its_socket";
    let Some(activate) = on_path(name, "systemd-socket-activate", "systemd") else {
        return;
    };
    let sandbox = Sandbox::new();
    let socket = sandbox.path("run").join("activated.sock");
    let mut command = Command::new(activate);
    sandbox.apply(&mut command);
    // What is handed on is named, and nothing else: the sandbox is named to the daemon.
    for (name, value) in sandbox.variables() {
        command.arg(format!("--setenv={name}={value}"));
    }
    command.arg("-l").arg(&socket).arg(&binaries().daemon);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut client = until("the socket", SOON, || {
        TestClient::try_connect(&socket).map_err(|error| error.to_string())
    });
    let status = client.call("daemon/status", json!({}));
    // The process became the daemon when the client came.
    let pid = child.id();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status["daemon"]["pid"], pid);
}

#[test]
fn the_watchdog_hears_from_the_daemon_in_time() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("run").join("notify.sock");
    let notify = UnixDatagram::bind(&path).unwrap();
    notify.set_read_timeout(Some(SOON)).unwrap();
    let mut command = Command::new(&binaries().daemon);
    sandbox.apply(&mut command);
    command
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "400000");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut bytes = [0; 4096];
    let mut told = String::new();
    while told.matches("WATCHDOG=1").count() < 3 {
        let count = notify
            .recv(&mut bytes)
            .expect("the daemon says that it lives");
        told.push_str(&String::from_utf8_lossy(&bytes[..count]));
        told.push('\n');
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told.contains("READY=1"), "{told}");
}

#[test]
fn a_service_manager_that_answers_is_told_in_order() {
    let mut sandbox = Sandbox::new();
    let log = sandbox.path("systemctl.log");
    systemctl(&mut sandbox, &format!("echo \"$*\" >>'{}'", log.display()));
    let said = Dwell::alone(&sandbox).args(["daemon", "install"]).ok();
    assert!(said.contains("set up"), "{said}");
    Dwell::alone(&sandbox).args(["daemon", "uninstall"]).ok();
    let expected = "--user show-environment\n--user daemon-reload\n--user enable --now dwelld.socket\n\
                    --user show-environment\n--user disable --now dwelld.socket dwelld.service\n--user daemon-reload\n";
    assert_eq!(fs::read_to_string(log).unwrap(), expected);
}

/// Its form only: there is no launchd to try it with.
#[test]
fn the_launch_agent_is_a_property_list() {
    let name = "the_launch_agent_is_a_property_list";
    let Some(python) = on_path(name, "python3", "python3") else {
        return;
    };
    let mut sandbox = Sandbox::new();
    let odd = sandbox.path("a & b <c> \"d\" 100%\n$HOME");
    sandbox.set("DWELL_DATA_DIR", &odd);
    sandbox.set("OPENAI_API_KEY", "hush-hush");
    let arguments = ["daemon", "install", "--manager", "launchd"];
    Dwell::alone(&sandbox).args(arguments).ok();
    let plist = sandbox
        .path("home")
        .join("Library/LaunchAgents/dwelld.plist");
    let read =
        "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let read = Command::new(python)
        .args(["-c", read])
        .arg(&plist)
        .output()
        .unwrap();
    let read: serde_json::Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(read["ProgramArguments"], json!([binaries().daemon]));
    assert_eq!(read["RunAtLoad"], true);
    assert_eq!(read["KeepAlive"], json!({"SuccessfulExit": false}));
    assert_eq!(read["ProcessType"], "Interactive");
    let its = &read["EnvironmentVariables"];
    assert_eq!(its["DWELL_DATA_DIR"], odd.to_str().unwrap());
    assert_eq!(its.get("OPENAI_API_KEY"), None);
    let log = PathBuf::from(read["StandardErrorPath"].as_str().unwrap());
    assert_eq!(log, sandbox.path("state/log/dwelld.log"));
    assert!(log.parent().unwrap().is_dir(), "launchd makes none");
    let said = Dwell::alone(&sandbox)
        .args(["daemon", "uninstall", "--manager", "launchd"])
        .ok();
    assert!(!plist.exists(), "{said}");
}
