//! What people install: the tarball below some prefix and the Debian package. The daemon in them is a stand-in, which is smaller.

use harness::binaries::{binaries, root};
use harness::clients::on_path;
use harness::sandbox::{Sandbox, set_mode};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packs both, and says where.
fn packed(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.path("binaries");
    fs::create_dir(&folder).unwrap();
    fs::copy(&binaries().client, folder.join("dwell")).unwrap();
    for name in ["dwelld", "dwell-local"] {
        fs::write(folder.join(name), "#!/bin/sh\nexit 0\n").unwrap();
        set_mode(&folder.join(name), 0o755);
    }
    let out = sandbox.path("package");
    let mut command = Command::new(root().join(".ci/package"));
    sandbox.apply(&mut command);
    let done = command
        .arg(&folder)
        .arg(&out)
        .env("DPKG_DEB_COMPRESSOR_TYPE", "none")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    out
}

fn ending(folder: &Path, end: &str) -> Option<PathBuf> {
    let all = fs::read_dir(folder).unwrap().flatten();
    let mut paths = all.map(|entry| entry.path());
    paths.find(|path| path.to_str().unwrap().ends_with(end))
}

/// Files below a folder, but for the manual's many.
fn files(folder: &Path, below: &str) -> Vec<String> {
    let listed = Command::new("find")
        .arg(folder.join(below))
        .args(["-type", "f", "!", "-name", "dwell-*.1.gz"])
        .args(["-printf", "%P %m\n"])
        .output()
        .unwrap();
    let mut files: Vec<String> = String::from_utf8(listed.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    files.sort_unstable();
    files
}

fn expected(completions_of_zsh: &str) -> Vec<String> {
    let zsh = format!("share/zsh/{completions_of_zsh}/_dwell 644");
    let mut files: Vec<String> = [
        "bin/dwell 755",
        "bin/dwell-local 755",
        "bin/dwelld 755",
        "lib/systemd/user/dwelld.service 644",
        "lib/systemd/user/dwelld.socket 644",
        "share/bash-completion/completions/dwell 644",
        "share/doc/dwell/LICENSE 644",
        "share/doc/dwell/README.md 644",
        "share/fish/vendor_completions.d/dwell.fish 644",
        "share/man/man1/dwell.1.gz 644",
        &zsh,
    ]
    .map(str::to_owned)
    .to_vec();
    files.sort_unstable();
    files
}

#[test]
fn packages_hold_everything_once_and_leave_nothing_behind() {
    let sandbox = Sandbox::new();
    let out = packed(&sandbox);
    let prefix = sandbox.path("usr local");
    fs::create_dir(&prefix).unwrap();
    let tarball = ending(&out, "-linux.tar.gz").expect("a tarball");
    let untar = Command::new("tar")
        .arg("-xzf")
        .arg(tarball)
        .arg("-C")
        .arg(&prefix)
        .status();
    assert!(untar.unwrap().success());
    assert_eq!(files(&prefix, ""), expected("site-functions"));
    let service = fs::read_to_string(prefix.join("lib/systemd/user/dwelld.service")).unwrap();
    // Wherever it lies of the places where systemd looks.
    assert!(service.contains("\nExecStart=dwelld\n"), "{service}");
    // Below any other prefix a unit is written that names the daemon beside.
    let mut install = Command::new(prefix.join("bin/dwell"));
    sandbox.apply(&mut install);
    let installed = install.args(["daemon", "install"]).output().unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let unit = sandbox.path("home/.config/systemd/user/dwelld.service");
    let unit = fs::read_to_string(unit).unwrap();
    assert!(unit.contains("/usr local/bin/dwelld\""), "{unit}");

    let name = "packages_hold_everything_once_and_leave_nothing_behind";
    let (Some(dpkg), Some(package)) = (on_path(name, "dpkg", "dpkg"), ending(&out, ".deb")) else {
        return;
    };
    let machine = sandbox.path("machine");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(machine.join("var/lib/dpkg").join(folder)).unwrap();
    }
    for file in ["status", "available"] {
        fs::write(machine.join("var/lib/dpkg").join(file), "").unwrap();
    }
    let dpkg = |words: &[&str]| {
        let done = Command::new(&dpkg)
            .arg(format!("--root={}", machine.display()))
            // The C library is this machine's.
            .args([
                "--force-depends",
                "--force-not-root",
                "--force-script-chrootless",
            ])
            .args(words)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    dpkg(&["--install", package.to_str().unwrap()]);
    assert_eq!(files(&machine, "usr"), expected("vendor-completions"));
    let service = machine.join("usr/lib/systemd/user/dwelld.service");
    let service = fs::read_to_string(service).unwrap();
    assert!(
        service.contains("\nExecStart=/usr/bin/dwelld\n"),
        "{service}"
    );
    dpkg(&["--purge", "dwell"]);
    assert_eq!(files(&machine, "usr"), Vec::<String>::new());
}
