//! Where `dwelld`, `dwell` and `dwell-local` are: built once for a test run, with the same features, so that nothing is built twice.
//! Must never use binaries that are older than the sources, unless somebody names them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The binaries of one build.
#[derive(Debug)]
pub struct Binaries {
    pub daemon: PathBuf,
    pub client: PathBuf,
    /// Local models; it stands beside the daemon, which finds it there.
    pub local: PathBuf,
}

/// The binaries under test. `DWELL_TEST_BIN_DIR` names a folder with others, such as installed ones.
pub fn binaries() -> &'static Binaries {
    static BUILT: OnceLock<Binaries> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var_os("DWELL_TEST_BIN_DIR") {
        Some(folder) => inside(Path::new(&folder)),
        None => build(Profile::of_this_process()),
    })
}

/// The release binaries, for what is measured.
pub fn release() -> Binaries {
    match std::env::var_os("DWELL_TEST_BIN_DIR") {
        Some(folder) => inside(Path::new(&folder)),
        None => build(Profile::Release),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Profile {
    Dev,
    Release,
}

impl Profile {
    fn of_this_process() -> Self {
        match output_folder().file_name().and_then(|name| name.to_str()) {
            Some("release") => Self::Release,
            _ => Self::Dev,
        }
    }
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests lies in the workspace")
}

/// A cargo that is not confused by the variables of the cargo that runs us: build scripts watch some of them, and
/// everything would be built anew.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let ours = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_CRATE_",
            "CARGO_BIN_",
            "CARGO_PRIMARY_",
        ];
        if ours.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command
}

/// `target/debug` or `target/release`, from where this process lies: `target/PROFILE/deps/NAME`.
fn output_folder() -> PathBuf {
    let me = std::env::current_exe().expect("a process knows its file");
    let deps = me.parent().expect("a file lies in a folder");
    match deps.file_name().and_then(|name| name.to_str()) {
        Some("deps") => deps
            .parent()
            .expect("deps lies in a profile's folder")
            .to_owned(),
        _ => deps.to_owned(),
    }
}

fn build(profile: Profile) -> Binaries {
    let target = output_folder()
        .parent()
        .expect("a profile lies in target")
        .to_owned();
    let mut command = cargo();
    command.args(["build", "--quiet", "--locked", "--bins"]);
    match profile {
        // With a test target, because tests decide the features of what they share with the binaries.
        Profile::Dev => command.args(["--workspace", "--test", "it"]),
        // What is measured, without the engines of local models.
        Profile::Release => command.args(["--release", "-p", "dwelld", "-p", "dwell"]),
    };
    let done = command
        .arg("--target-dir")
        .arg(&target)
        .output()
        .expect("cargo starts");
    assert!(
        done.status.success(),
        "building the binaries under test failed:\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
    inside(&target.join(match profile {
        Profile::Dev => "debug",
        Profile::Release => "release",
    }))
}

fn inside(folder: &Path) -> Binaries {
    let binaries = Binaries {
        daemon: folder.join("dwelld"),
        client: folder.join("dwell"),
        local: folder.join("dwell-local"),
    };
    for file in [&binaries.daemon, &binaries.client] {
        assert!(file.is_file(), "no binary {}", file.display());
    }
    binaries
}
