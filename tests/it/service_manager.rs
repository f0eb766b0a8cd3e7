//! The daemon under a real systemd of a user: its socket starts it, and it comes back after whatever ends it. Nothing here speaks
//! with a service manager of this machine.

use harness::binaries::binaries;
use harness::dwell::Ran;
use harness::manager::UserManager;
use harness::sandbox::Sandbox;
use harness::wait::{SOON, until, until_true};
use std::fs;
use std::path::{Path, PathBuf};

const SERVICE: &str = "dwelld.service";

/// Both binaries in a folder whose name means something to whoever reads a unit carelessly.
fn strangely_placed(sandbox: &Sandbox, folder: &str) -> PathBuf {
    let folder = sandbox.path(folder);
    fs::create_dir(&folder).unwrap();
    for binary in [&binaries().client, &binaries().daemon] {
        let place = folder.join(binary.file_name().unwrap());
        if fs::hard_link(binary, &place).is_err() {
            fs::copy(binary, &place).unwrap();
        }
    }
    folder.join("dwell")
}

#[track_caller]
fn well(ran: Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran.stdout
}

/// Waits until the service runs as another process than before.
fn replaced(manager: &UserManager, before: &str) {
    until("the service to run anew", SOON, || {
        let state = manager.property(SERVICE, "ActiveState");
        let pid = manager.property(SERVICE, "MainPID");
        match state == "active" && pid != before {
            true => Ok(()),
            false => Err(format!("{state}, {pid} after {before}")),
        }
    });
}

#[test]
fn systemd_starts_the_daemon_for_its_first_client_and_brings_it_back_with_its_sessions() {
    let name =
        "systemd_starts_the_daemon_for_its_first_client_and_brings_it_back_with_its_sessions";
    let mut sandbox = Sandbox::new();
    sandbox.set("DWELL_PROVIDER", "script");
    // What the manager has not of its own, and cannot write down as it is.
    sandbox.set("DWELL_DATA_DIR", sandbox.path("da ta\n100% $HOME \"q\" \\"));
    sandbox.set("DWELL_SOCKET", sandbox.path("run/a b 100%t $x.sock"));
    let Some(manager) = UserManager::start(name, &sandbox) else {
        return;
    };
    let dwell = strangely_placed(&sandbox, "b in $HOME ${HOME} 100% \"q' \\x");
    let run = |words: &[&str]| manager.run(&dwell, words);
    assert!(well(run(&["daemon", "install"])).contains("set up"));
    assert_eq!(manager.property("dwelld.socket", "ActiveState"), "active");
    assert_eq!(manager.property(SERVICE, "ActiveState"), "inactive");
    // A watchdog that a test can wait for, and as many starts; a drop-in is a person's own.
    let drop_in = sandbox.path("home/.config/systemd/user/dwelld.service.d/quick.conf");
    fs::create_dir_all(drop_in.parent().unwrap()).unwrap();
    let quick = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nWatchdogSec=4\n";
    fs::write(&drop_in, quick).unwrap();
    well(manager.run("systemctl", &["--user", "daemon-reload"]));

    assert_eq!(well(run(&["ask", "say hello"])), "hello\n");
    let status = well(run(&["daemon", "status"]));
    let state = manager.run("systemctl", &["--user", "status", "dwelld.*"]);
    assert!(
        status.contains("as dwelld.service"),
        "{status}\n{}",
        state.stdout
    );
    let data = sandbox.path("da ta\n100% $HOME \"q\" \\");
    assert!(data.join("sessions.db").exists(), "{status}");
    has_its_session(&run(&["ls"]));

    let pid = manager.property(SERVICE, "MainPID");
    let kill = [
        "--user",
        "kill",
        "--kill-whom=main",
        "--signal=KILL",
        SERVICE,
    ];
    well(manager.run("systemctl", &kill));
    replaced(&manager, &pid);
    has_its_session(&run(&["ls"]));

    let pid = manager.property(SERVICE, "MainPID");
    let stop = [
        "--user",
        "kill",
        "--kill-whom=main",
        "--signal=STOP",
        SERVICE,
    ];
    well(manager.run("systemctl", &stop));
    replaced(&manager, &pid);
    has_its_session(&run(&["ls"]));

    restarted_and_stopped(&manager, &run);
    uninstalled(&manager, &run(&["daemon", "uninstall"]), &drop_in);
}

#[track_caller]
fn has_its_session(listed: &Ran) {
    assert!(listed.stdout.contains("say hello"), "{listed:?}");
}

fn restarted_and_stopped(manager: &UserManager, run: &impl Fn(&[&str]) -> Ran) {
    let pid = manager.property(SERVICE, "MainPID");
    well(run(&["daemon", "restart"]));
    replaced(manager, &pid);
    let stopped = run(&["daemon", "stop"]);
    assert!(
        stopped
            .stderr
            .contains("systemctl --user stop dwelld.socket"),
        "{stopped:?}"
    );
    until_true("the service to be down", SOON, || {
        manager.property(SERVICE, "ActiveState") == "inactive"
    });
    has_its_session(&run(&["ls"]));
    assert_eq!(manager.property(SERVICE, "ActiveState"), "active");
    // Once more while it runs: nothing to do.
    assert!(well(run(&["daemon", "install"])).contains("set up, and running"));
}

fn uninstalled(manager: &UserManager, ran: &Ran, drop_in: &Path) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("dwelld.service.d, which is yours"),
        "{ran:?}"
    );
    let folder = drop_in.parent().and_then(Path::parent).unwrap();
    let left: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|entry| !entry.file_name().to_str().unwrap().ends_with(".wants"))
        .map(|entry| entry.path())
        .collect();
    assert_eq!(left, [drop_in.parent().unwrap()]);
    assert_eq!(manager.property("dwelld.socket", "LoadState"), "not-found");
}
