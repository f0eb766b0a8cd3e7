//! A systemd for one user, in namespaces and control groups of its own, as root of a machine that runs none. Must never touch
//! a service manager that is there, and leaves nothing behind.

use crate::dwell::Ran;
use crate::procfs::descendants;
use crate::sandbox::Sandbox;
use crate::wait::{SOON, pause, skip_unprivileged};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Where the program is, which is on nobody's PATH.
const PROGRAMS: &[&str] = &["/usr/lib/systemd/systemd", "/lib/systemd/systemd"];

/// Goes into control groups of its own, so that whatever else runs here keeps its own.
const GROUPS: &str = r#"
while IFS=: read -r number names path; do
  case "$number:$names" in
    0:) folder=/sys/fs/cgroup/unified; [ -d "$folder" ] || folder=/sys/fs/cgroup ;;
    *:name=systemd) folder=/sys/fs/cgroup/systemd ;;
    *) continue ;;
  esac
  group="$folder${path%/}/dwell-test-$$"
  mkdir "$group" && echo "$group" >>"$1" && echo 0 >"$group/cgroup.procs" || exit 1
done </proc/self/cgroup
shift
exec "$@"
"#;

/// What a booted machine has, as far as a user's manager looks. Not `exec`: as a namespace's first process it would be the system's.
const BEGIN: &str = r#"
mount -t proc proc /proc && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system || exit 1
"$@"
exit $?
"#;

/// The manager, which ends with this.
#[derive(Debug)]
pub struct UserManager {
    child: Child,
    /// A process inside.
    inside: u32,
    groups: PathBuf,
    environment: Vec<(String, String)>,
}

impl UserManager {
    /// None where it cannot run; the test then says that it was skipped.
    pub fn start(test: &str, sandbox: &Sandbox) -> Option<Self> {
        let skip = |why: &str| {
            skip_unprivileged(test, why);
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("only root makes namespaces everywhere");
        }
        if Path::new("/run/systemd/system").exists() {
            return skip("a systemd runs here, whose control groups are its own");
        }
        let program = PROGRAMS.iter().find(|program| Path::new(program).exists());
        let Some(program) = program else {
            return skip("there is no systemd: the package systemd has it");
        };
        let groups = sandbox.path("groups");
        let child = Command::new("/bin/sh")
            .env_clear()
            .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", sandbox.path("home"))
            .env("XDG_RUNTIME_DIR", sandbox.path("run"))
            .args(["-c", GROUPS, "sh"])
            .arg(&groups)
            .args(["unshare", "--pid", "--mount", "--fork", "--kill-child"])
            .args([
                "/bin/sh",
                "-c",
                BEGIN,
                "sh",
                program,
                "--user",
                "--log-target=console",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(sandbox.path("manager.log")).unwrap())
            .spawn()
            .unwrap();
        let mut manager = Self {
            child,
            inside: 0,
            groups,
            environment: sandbox.variables(),
        };
        let end = Instant::now() + SOON;
        while Instant::now() < end {
            if let Ok(Some(status)) = manager.child.try_wait() {
                let said = fs::read_to_string(sandbox.path("manager.log")).unwrap_or_default();
                return skip(&format!("systemd --user ends with {status}: {said}"));
            }
            if manager.answers() {
                return Some(manager);
            }
            pause();
        }
        skip("systemd --user does not answer")
    }

    fn answers(&mut self) -> bool {
        let Some(inside) = descendants(self.child.id()).first().copied() else {
            return false;
        };
        self.inside = inside;
        let ran = self.run("systemctl", &["--user", "is-active", "basic.target"]);
        ran.stdout.trim() == "active"
    }

    /// Runs a program inside, in the sandbox's environment.
    pub fn run(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Ran {
        let target = format!("--target={}", self.inside);
        let done = Command::new("nsenter")
            .env_clear()
            .envs(self.environment.iter().cloned())
            .args([&target, "--mount", "--pid", "timeout", "60"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran {
            code: done.status.code(),
            stdout: text(&done.stdout),
            stderr: text(&done.stderr),
        }
    }

    /// What the manager says of a property of a unit.
    pub fn property(&self, unit: &str, name: &str) -> String {
        let ran = self.run(
            "systemctl",
            &["--user", "show", "--value", "--property", name, unit],
        );
        ran.stdout.trim().to_owned()
    }
}

impl Drop for UserManager {
    fn drop(&mut self) {
        // The first process of the namespace goes with it, and with that one all others.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let groups = fs::read_to_string(&self.groups).unwrap_or_default();
        for group in groups.lines() {
            let end = Instant::now() + SOON;
            while remove(Path::new(group)).is_err() && Instant::now() < end {
                pause();
            }
        }
    }
}

/// A control group with those below it: its files are the kernel's.
fn remove(group: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(group)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}
