//! Sessions in lists: `ls` and what it leaves out, names that would break a row, `watch` and what it tells of the past.

use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::wait::{SOON, until_true};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::process::{Child, Command};

fn dwell(daemon: &TestDaemon, args: &[&str]) -> harness::dwell::Ran {
    Dwell::new(daemon).args(args.iter().copied()).run()
}

#[test]
fn programs_are_given_all_sessions_and_people_are_told_how_many_more_there_are() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    for _ in 0..53 {
        client.session(&daemon.work());
    }
    let lines = |args: &[&str]| {
        let ran = dwell(&daemon, args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        (ran.stdout.lines().count(), ran.stderr)
    };
    let quiet = String::new;
    assert_eq!(lines(&["ls", "--tsv"]), (53, quiet()));
    assert_eq!(lines(&["ls", "--json"]), (53, quiet()));
    let more = "3 more: -n 0 lists all\n".to_owned();
    assert_eq!(lines(&["ls"]), (50, more));
    assert_eq!(lines(&["ls", "-n", "0"]), (53, quiet()));
    assert_eq!(lines(&["ls", "-n", "7", "--json"]), (7, quiet()));
    assert_eq!(lines(&["ls", "-n", "7"]), (7, quiet()));
}

#[test]
fn a_state_is_looked_for_in_all_sessions_and_not_only_in_the_newest() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let old = client.session(&daemon.work());
    client.turn(&old, "fail boom");
    for _ in 0..3 {
        let session = client.session(&daemon.work());
        client.turn(&session, "say newer");
    }
    let failed = Dwell::new(&daemon)
        .args(["ls", "--state", "failed", "-n", "1", "--tsv"])
        .ok();
    assert!(failed.starts_with(&old), "{failed:?}");
}

#[test]
fn a_search_says_that_there_is_more_than_it_shows() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    for _ in 0..3 {
        let session = client.session(&daemon.work());
        client.turn(&session, "# a heron\nsay done");
    }
    let search = |most: &str| dwell(&daemon, &["search", "--json", "-n", most, "heron"]);
    let two = search("2");
    assert_eq!(two.stdout.lines().count(), 2, "{}", two.stderr);
    assert!(two.stderr.contains("the first 2"), "{}", two.stderr);
    let all = search("200");
    assert!(all.stdout.lines().count() >= 3, "{}", all.stdout);
    assert_eq!(all.stderr, "");
    assert_eq!(search("201").code, Some(2));
}

#[test]
fn a_name_with_a_line_break_is_one_row_and_can_be_read_back() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let odd = daemon.work().join("x\ny\tz\u{1b}[2J\\w");
    fs::create_dir(&odd).unwrap();
    client.session(&odd);
    let rows = Dwell::new(&daemon).args(["ls"]).ok();
    assert_eq!(rows.lines().count(), 1, "{rows:?}");
    assert!(rows.contains(r"x\ny\tz\u{1b}[2J\w"), "{rows:?}");
    let fields = Dwell::new(&daemon).args(["ls", "--tsv"]).ok();
    assert_eq!(fields.lines().count(), 1, "{fields:?}");
    let place = fields.trim_end().split('\t').nth(4).unwrap();
    let read = Command::new("sh")
        .args(["-c", "printf %b \"$1\"", "sh", place])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(read.stdout).unwrap(),
        odd.to_str().unwrap()
    );
}

/// `dwell watch`, whose lines go to a file.
struct Watch<'a> {
    daemon: &'a TestDaemon,
    child: Child,
}

impl<'a> Watch<'a> {
    fn start(daemon: &'a TestDaemon, args: &[&str]) -> Self {
        let mut command = Command::new(&harness::binaries::binaries().client);
        daemon.apply(&mut command);
        let child = command
            .env("DWELL_SOCKET", daemon.socket())
            .arg("watch")
            .args(args)
            .stdout(File::create(daemon.path("watch.txt")).unwrap())
            .spawn()
            .unwrap();
        Self { daemon, child }
    }

    fn told(&self) -> String {
        fs::read_to_string(self.daemon.path("watch.txt")).unwrap()
    }

    fn until_line(&self, begins: &str) {
        until_true(begins, SOON, || {
            self.told().lines().any(|line| line.starts_with(begins))
        });
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn whoever_begins_to_watch_sees_what_runs_and_waits_and_how_it_ends() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let [runs, waits, rests] = [(); 3].map(|()| client.session(&daemon.work()));
    client.turn(&rests, "say nothing new");
    client.attach(&waits, None);
    client.start(&waits, "do execute {\"command\": \"true\"}");
    client.until_type("approval_asked");
    client.start(&runs, "wait 60000");
    let watch = Watch::start(&daemon, &[]);
    watch.until_line(&format!("{runs}  running"));
    watch.until_line(&format!("{waits}  waiting"));
    client.call("turn/cancel", json!({"session": runs}));
    watch.until_line(&format!("{runs}  cancelled"));
    client.call("turn/cancel", json!({"session": waits}));
    watch.until_line(&format!("{waits}  cancelled"));
    client.start(&runs, "fail boom");
    watch.until_line(&format!("{runs}  failed"));
    let told = watch.told();
    assert!(!told.contains(&rests), "{told}");
    let work = daemon.work();
    let name = work.file_name().unwrap().to_str().unwrap();
    assert!(told.lines().all(|line| line.ends_with(name)), "{told}");
}

#[test]
fn watch_tells_programs_which_turn_ended_and_how() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.start(&session, "wait 60000");
    let watch = Watch::start(&daemon, &["--json"]);
    until_true("the running turn", SOON, || watch.told().contains("\n"));
    let first: Value = serde_json::from_str(watch.told().lines().next().unwrap()).unwrap();
    assert_eq!(first["session"]["state"], "running");
    assert_eq!(first.get("ended"), None);
    client.call("turn/cancel", json!({"session": session}));
    let ended = || {
        let lines: Vec<Value> = watch
            .told()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        lines.into_iter().find(|line| line.get("ended").is_some())
    };
    until_true("its end", SOON, || ended().is_some());
    assert_eq!(
        ended().unwrap()["ended"],
        json!({"turn": format!("{session}.t1"), "status": "cancelled"})
    );
}
