//! What counts of a directory, and that every change of it shows.

use super::{Digests, Scan, Whose};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;

fn scan(cwd: &Path) -> Scan {
    Digests::default().scan(cwd, Whose::Directory)
}

fn put(cwd: &Path, name: &str, text: &str) {
    let path = cwd.join(".agents").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn only_what_could_run_or_be_believed_counts() {
    let root = TempDir::new().unwrap();
    assert_eq!(scan(root.path()), Scan::default());
    for name in [
        "plugins/a.py",
        "tools/t/x.sh",
        "agents/b",
        "mcp.json",
        "config.toml",
        "permissions.json",
        "skills/s/SKILL.md",
        ".git/index",
        "helper.inc",
        "lib/l.sh",
        ".env",
        "tools.txt",
        "utils/guard.sh",
    ] {
        put(root.path(), name, "x");
    }
    let names: Vec<String> = scan(root.path()).files.into_keys().collect();
    let expected = [
        ".env",
        "agents/b",
        "config.toml",
        "helper.inc",
        "lib/l.sh",
        "mcp.json",
        "permissions.json",
        "plugins/a.py",
        "tools.txt",
        "tools/t/x.sh",
        "utils/guard.sh",
    ];
    assert_eq!(names, expected.map(|name| format!(".agents/{name}")));
}

#[test]
fn where_nothing_runs_other_files_do_not_count() {
    let root = TempDir::new().unwrap();
    put(root.path(), "notes/a.md", "x");
    assert_eq!(scan(root.path()), Scan::default());
    put(root.path(), "permissions.json", "{}");
    assert_eq!(scan(root.path()).files.len(), 1);
    put(root.path(), "tools/x.sh", "x");
    assert_eq!(scan(root.path()).files.len(), 3);
}

#[test]
fn every_change_shows() {
    let root = TempDir::new().unwrap();
    put(root.path(), "tools/x", "one");
    let digests = Digests::default();
    let mut seen = vec![digests.scan(root.path(), Whose::Directory)];
    let mut changed = || {
        let scan = digests.scan(root.path(), Whose::Directory);
        assert!(!seen.contains(&scan), "{scan:?}");
        seen.push(scan);
    };
    put(root.path(), "tools/x", "two");
    changed();
    put(root.path(), "tools/y", "");
    changed();
    let path = root.path().join(".agents/tools/x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    changed();
    fs::remove_file(&path).unwrap();
    changed();
    symlink("/bin/true", &path).unwrap();
    changed();
    fs::remove_file(&path).unwrap();
    symlink("/bin/false", &path).unwrap();
    changed();
}

#[test]
fn a_linked_files_content_counts_too() {
    let root = TempDir::new().unwrap();
    put(root.path(), "tools/own", "x");
    fs::write(root.path().join("far"), "one").unwrap();
    symlink("../../far", root.path().join(".agents/tools/link")).unwrap();
    let before = scan(root.path());
    fs::write(root.path().join("far"), "two").unwrap();
    assert_ne!(scan(root.path()), before);
}

#[test]
fn pipes_rings_and_what_cannot_be_read_do_not_hang() {
    let root = TempDir::new().unwrap();
    put(root.path(), "tools/x", "x");
    let tools = root.path().join(".agents/tools");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        tools.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    symlink("..", tools.join("up")).unwrap();
    symlink("ring", tools.join("ring")).unwrap();
    symlink("nowhere", tools.join("nothing")).unwrap();
    symlink("/dev/zero", tools.join("zero")).unwrap();
    put(root.path(), "tools/secret", "x");
    fs::set_permissions(tools.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    let scan = scan(root.path());
    assert_eq!(scan.incomplete, None);
    for name in ["pipe", "ring", "nothing", "zero", "x", "secret"] {
        assert!(
            scan.files.contains_key(&format!(".agents/tools/{name}")),
            "{name}: {scan:?}"
        );
    }
}

#[test]
fn what_is_installed_is_one_entry_that_any_change_shows_in() {
    let root = TempDir::new().unwrap();
    put(root.path(), "tools/x.js", "x");
    for file in 0..=super::FILES {
        put(
            root.path(),
            &format!("node_modules/p{}/{file}.js", file % 40),
            "one",
        );
    }
    put(
        root.path(),
        "node_modules/p1/node_modules/q/index.js",
        "one",
    );
    let digests = Digests::default();
    let mut seen = vec![digests.scan(root.path(), Whose::Directory)];
    assert_eq!(seen[0].incomplete, None);
    let names: Vec<_> = seen[0].files.keys().cloned().collect();
    assert_eq!(names, [".agents/node_modules", ".agents/tools/x.js"]);
    let mut changed = || {
        let scan = digests.scan(root.path(), Whose::Directory);
        assert!(!seen.contains(&scan), "{:?}", scan.files);
        seen.push(scan);
    };
    put(root.path(), "node_modules/p1/1.js", "two");
    changed();
    put(
        root.path(),
        "node_modules/p1/node_modules/q/index.js",
        "two",
    );
    changed();
    put(root.path(), "node_modules/.bin/new", "");
    changed();
    let path = root.path().join(".agents/node_modules/p2/2.js");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    changed();
    fs::rename(&path, path.with_file_name("moved.js")).unwrap();
    changed();
    fs::remove_file(path.with_file_name("moved.js")).unwrap();
    changed();
    symlink("/bin/true", &path).unwrap();
    changed();
}

#[test]
fn a_tree_without_end_is_incomplete() {
    let root = TempDir::new().unwrap();
    put(
        root.path(),
        &format!("tools/{}x", "deep/".repeat(super::DEPTH)),
        "x",
    );
    assert!(scan(root.path()).incomplete.is_some());
}

#[test]
fn a_large_file_is_incomplete_and_is_not_read() {
    let root = TempDir::new().unwrap();
    put(root.path(), "tools/large", "");
    let file = fs::File::create(root.path().join(".agents/tools/large")).unwrap();
    file.set_len(super::BYTES + 1).unwrap();
    assert!(scan(root.path()).incomplete.is_some());
}
