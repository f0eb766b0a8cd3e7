//! A way to another machine: a stand-in for ssh, and a real sshd with keys and settings of its own on a port that the system
//! chooses. The other machine is this one, with another sandbox. Must never touch the keys, hosts or settings of a user.

use crate::binaries::binaries;
use crate::clients::on_path;
use crate::daemon::TestDaemon;
use crate::sandbox::{Sandbox, set_mode};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A script that stands in for ssh: it notes its arguments and its process, and runs what ssh would run there.
pub fn stand_in(here: &Sandbox, there: &TestDaemon) -> PathBuf {
    let words: String = there
        .variables()
        .iter()
        .map(|(name, value)| format!("export {name}='{value}'\n"))
        .collect();
    let script = here.path("ssh");
    let note = here.path("ssh.log");
    let text = format!(
        "#!/bin/sh\necho \"$$ $*\" >>'{}'\n{words}export DWELL_SOCKET='{}'\ncd '{}'\n\
         while [ \"$1\" = -T ] || [ \"$1\" = -o ]; do [ \"$1\" = -o ] && shift; shift; done\n\
         shift\nexec \"$@\"\n",
        note.display(),
        there.socket().display(),
        there.work().display(),
    );
    fs::write(&script, text).unwrap();
    set_mode(&script, 0o755);
    script
}

/// A real sshd, one process for each connection.
#[derive(Debug)]
pub struct Sshd {
    /// The client's settings, in which the other machine is called `box`.
    pub config: PathBuf,
    address: std::net::SocketAddr,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
    running: Arc<Mutex<Vec<Child>>>,
}

impl Sshd {
    /// None where it is not installed or may not run; the test then says that it was skipped.
    pub fn start(test: &str, here: &Sandbox, there: &TestDaemon) -> Option<Self> {
        let sshd = on_path(test, "sshd", "openssh-server")?;
        on_path(test, "ssh", "openssh-client")?;
        let folder = here.path("sshd");
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o700);
        for key in ["host", "user"] {
            make_key(&folder.join(key));
        }
        fs::copy(folder.join("user.pub"), folder.join("authorized")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = write(&folder, "sshd_config", &server_config(&folder, there));
        let config = write(
            &folder,
            "ssh_config",
            &client_config(&folder, address.port()),
        );
        // sshd of root wants this folder, which an init system would have made.
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let over = Arc::new(AtomicBool::new(false));
        let running = Arc::new(Mutex::new(Vec::new()));
        let accepting = {
            let (over, running) = (Arc::clone(&over), Arc::clone(&running));
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if over.load(Ordering::SeqCst) {
                        return;
                    }
                    running.lock().unwrap().push(serve(&sshd, &server, stream));
                }
            })
        };
        Some(Self {
            config,
            address,
            over,
            accepting: Some(accepting),
            running,
        })
    }

    /// Ends every connection, as a network that fails.
    pub fn cut(&self) {
        for mut child in self.running.lock().unwrap().drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        self.cut();
    }
}

fn serve(sshd: &Path, config: &Path, stream: TcpStream) -> Child {
    let stream = OwnedFd::from(stream);
    let output = stream.try_clone().unwrap();
    Command::new(sshd)
        .args(["-i", "-e", "-f"])
        .arg(config)
        .stdin(stream)
        .stdout(output)
        .stderr(fs::File::create(config.with_extension("log")).unwrap())
        .spawn()
        .unwrap()
}

fn make_key(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .status();
    assert!(made.unwrap().success());
}

fn server_config(folder: &Path, there: &TestDaemon) -> String {
    let folder = folder.display();
    let mut variables: Vec<String> = there
        .variables()
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    variables.push(format!("DWELL_SOCKET={}", there.socket().display()));
    format!(
        "HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPidFile none\nUsePAM no\nStrictModes no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\nSetEnv {}\n",
        variables.join(" ")
    )
}

fn client_config(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "Host box\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n\
         BatchMode yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
    )
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Where `dwell` is on the other machine.
pub fn remote_dwell() -> &'static Path {
    &binaries().client
}
