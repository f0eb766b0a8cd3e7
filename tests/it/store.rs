//! The store's bad days: a full disk, a read-only folder, a damaged file, a newer format.

use harness::binaries::binaries;
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A file system of a size of its own; unmounted when dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    /// None where this process may not mount.
    fn mount(path: &Path, size: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        fs::create_dir_all(path).unwrap();
        let options = format!("size={size},mode=0700");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(path)
            .output()
            .ok()?;
        done.status.success().then(|| Self(path.to_owned()))
    }

    fn remount(&self, how: &str) {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{how}")])
            .arg(&self.0)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

const NEEDS_MOUNT: &str = "needs root that may mount a tmpfs";

#[test]
fn a_full_disk_fails_the_turn_loses_nothing_and_heals() {
    let mut sandbox = Sandbox::new();
    let Some(disk) = Tmpfs::mount(&sandbox.path("small"), "3m") else {
        return harness::wait::skip_unprivileged(
            "a_full_disk_fails_the_turn_loses_nothing_and_heals",
            NEEDS_MOUNT,
        );
    };
    sandbox.set("DWELL_DATA_DIR", sandbox.path("small"));
    let mut daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    assert_eq!(client.turn(&session, "say before").said(), "before");
    let ballast = disk.0.join("ballast");
    fill(&ballast);
    let received = until_full(&mut client, &session);
    assert!(received.to_string().contains("storage full"), "{received}");
    let log = client.history(&session);
    assert!(
        log.said().starts_with("before"),
        "what was there is readable"
    );
    let fault = client.try_call(
        "session/create",
        json!({"cwd": daemon.work(), "provider": "script"}),
    );
    if let Err(fault) = fault {
        assert_eq!(
            (fault.code, &fault.data["kind"]),
            (-32012, &json!("storage")),
            "{fault}"
        );
        assert!(fault.message.contains("storage full"), "{fault}");
    }
    fs::remove_file(&ballast).unwrap();
    let after = harness::wait::until("the session to work again", harness::wait::SOON, || {
        client
            .try_call(
                "turn/start",
                json!({"session": session, "text": "say after"}),
            )
            .map_err(|fault| fault.to_string())
    });
    let ended = client.call("turn/wait", json!({"turn": after["turn"]}));
    assert_eq!(
        (&ended["status"], &ended["reply"]),
        (&json!("completed"), &json!("after"))
    );
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let again = client.history(&session);
    again.assert_consecutive(0);
    assert!(again.said().starts_with("before") && again.said().ends_with("after"));
    drop(daemon);
    drop(disk);
}

/// Leaves no room.
fn fill(path: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(path).unwrap();
    for size in [64 * 1024, 4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

/// Plays turns until one fails; what the client was told then.
fn until_full(client: &mut TestClient, session: &str) -> Value {
    client.attach(session, None);
    let script = format!("say {}\n", "x".repeat(2000)).repeat(100);
    for _ in 0..50 {
        if let Err(fault) =
            client.try_call("turn/start", json!({"session": session, "text": script}))
        {
            return json!(fault.to_string());
        }
        let line = client.take("the end of the turn or trouble", |line| {
            line["method"] == "session/trouble" || line["params"]["result"]["type"] == "turn_ended"
        });
        if line["method"] == "session/trouble" || line["params"]["result"]["status"] == "failed" {
            return line;
        }
    }
    panic!("a full disk is never noticed");
}

#[test]
fn a_read_only_state_directory_is_a_clear_error() {
    let test = "a_read_only_state_directory_is_a_clear_error";
    for variable in ["DWELL_STATE_DIR", "DWELL_DATA_DIR"] {
        let mut sandbox = Sandbox::new();
        let folder = sandbox.path("frozen");
        let disk = Tmpfs::mount(&folder, "1m");
        match &disk {
            Some(disk) => disk.remount("ro"),
            None if rustix::process::geteuid().is_root() => {
                return harness::wait::skip_unprivileged(test, NEEDS_MOUNT);
            }
            None => {
                fs::create_dir(&folder).unwrap();
                harness::sandbox::set_mode(&folder, 0o500);
            }
        }
        sandbox.set(variable, &folder);
        let mut daemon = TestDaemon::stopped(sandbox, &binaries().daemon);
        daemon.launch();
        assert!(!daemon.wait_exit().success());
        let log = daemon.log();
        assert!(log.contains(folder.to_str().unwrap()), "{variable}: {log}");
        assert!(
            log.to_lowercase().contains("read-only") || log.to_lowercase().contains("denied"),
            "{variable}: {log}"
        );
        assert!(!log.contains("panicked"), "{log}");
    }
}

#[test]
fn a_store_of_a_newer_release_is_refused_and_left_alone() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(&session, "say hello");
    daemon.term();
    let file = daemon.path("data").join("sessions.db");
    let version = set_version(&file, 9999);
    daemon.launch();
    assert!(!daemon.wait_exit().success());
    assert!(daemon.log().contains("newer dwelld"), "{}", daemon.log());
    set_version(&file, version);
    daemon.restart();
    assert_eq!(daemon.client().history(&session).said(), "hello");
}

/// Sets the format's number and returns the one before.
fn set_version(file: &Path, version: i64) -> i64 {
    let store = rusqlite::Connection::open(file).unwrap();
    let before = store
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    store.pragma_update(None, "user_version", version).unwrap();
    before
}

#[test]
fn a_damaged_store_is_named_and_never_replaced() {
    let mut daemon = TestDaemon::start();
    daemon.client().session(&daemon.work());
    daemon.term();
    let file = daemon.path("data").join("sessions.db");
    let garbage = "this is no database ".repeat(1000);
    fs::write(&file, &garbage).unwrap();
    daemon.launch();
    assert!(!daemon.wait_exit().success());
    let log = daemon.log();
    assert!(
        log.contains(file.to_str().unwrap()) && log.contains("damaged"),
        "{log}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), garbage);
}

#[test]
fn many_finished_sessions_do_not_slow_a_new_one() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let before = a_new_one(&daemon, &mut client);
    for number in 0..1000 {
        let session = client.session(&daemon.work());
        if number % 10 == 0 {
            client.turn(&session, "say done");
        }
    }
    let after = a_new_one(&daemon, &mut client);
    // As fast as the first ones, but for what else a machine does meanwhile.
    assert!(
        after < before * 5 + Duration::from_millis(5),
        "{before:?}, then {after:?}"
    );
}

/// How long making a session takes, at the median of some.
fn a_new_one(daemon: &TestDaemon, client: &mut TestClient) -> Duration {
    let mut took: Vec<Duration> = (0..21)
        .map(|_| {
            let start = Instant::now();
            client.session(&daemon.work());
            start.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[10]
}
