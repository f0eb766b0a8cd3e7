//! What the service managers are told: files, and the commands that set the service up and take it away. Must never run them,
//! but to ask whether the manager answers.

use super::install::succeeds;
use crate::error::Failure;
use std::path::Path;

const SERVICE: &str = include_str!("../../../../systemd/dwelld.service");
const SOCKET: &str = include_str!("../../../../systemd/dwelld.socket");

/// Where the service's text names the daemon.
const PROGRAM: &str = "%h/.cargo/bin/dwelld";

const LABEL: &str = "dwelld";

/// A service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Manager {
    /// Linux: user units, with a socket that starts the daemon
    Systemd,
    /// macOS: a launch agent
    Launchd,
}

impl Default for Manager {
    fn default() -> Self {
        match cfg!(target_os = "macos") {
            true => Self::Launchd,
            false => Self::Systemd,
        }
    }
}

/// A file to write.
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) text: String,
}

impl Manager {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Systemd => "the user's systemd",
            Self::Launchd => "launchd",
        }
    }

    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Systemd => &["dwelld.socket", "dwelld.service"],
            Self::Launchd => &["dwelld.plist"],
        }
    }

    pub(super) fn files(self, program: &Path) -> Result<Vec<File>, Failure> {
        let program = program.to_str().filter(|path| !path.contains('\n'));
        let program = program
            .ok_or_else(|| Failure::new("the path of dwelld cannot be written into a service"))?;
        let names = self.names();
        Ok(match self {
            Self::Systemd => vec![
                File {
                    name: names[0],
                    text: SOCKET.to_owned(),
                },
                File {
                    name: names[1],
                    text: SERVICE.replace(PROGRAM, &quoted(program)),
                },
            ],
            Self::Launchd => vec![File {
                name: names[0],
                text: plist(program),
            }],
        })
    }

    /// Whether a text is the one that is written into the file of this name, wherever the daemon lay then.
    pub(super) fn wrote(self, name: &str, text: &str) -> bool {
        const ANY: &str = "/any/dwelld";
        let files = self.files(Path::new(ANY)).unwrap_or_default();
        let ours = files.into_iter().find(|file| file.name == name);
        ours.is_some_and(|ours| match ours.text.split_once(ANY) {
            None => text == ours.text,
            Some((before, after)) => {
                let rest = text.strip_prefix(before);
                let program = rest.and_then(|rest| rest.strip_suffix(after));
                program.is_some_and(|program| !program.contains('\n'))
            }
        })
    }

    /// Whether it is there for this person. Nobody could try this with launchd.
    pub(super) fn answers(self) -> bool {
        match self {
            Self::Systemd => succeeds(&words(&["systemctl", "--user", "show-environment"])),
            Self::Launchd => cfg!(target_os = "macos") && succeeds(&words(&["launchctl", "help"])),
        }
    }

    /// Sets it up.
    pub(super) fn start(self, folder: &Path) -> Vec<Vec<String>> {
        match self {
            Self::Systemd => vec![
                words(&["systemctl", "--user", "daemon-reload"]),
                words(&["systemctl", "--user", "enable", "--now", "dwelld.socket"]),
            ],
            Self::Launchd => vec![words(&["launchctl", "load", "-w", &agent(folder)])],
        }
    }

    /// Takes it away, while its files are there.
    pub(super) fn stop(self, folder: &Path) -> Vec<Vec<String>> {
        match self {
            Self::Systemd => vec![words(&[
                "systemctl",
                "--user",
                "disable",
                "--now",
                "dwelld.socket",
                "dwelld.service",
            ])],
            Self::Launchd => vec![words(&["launchctl", "unload", "-w", &agent(folder)])],
        }
    }

    /// What is left to say once they are not.
    pub(super) fn forget(self) -> Vec<Vec<String>> {
        match self {
            Self::Systemd => vec![words(&["systemctl", "--user", "daemon-reload"])],
            Self::Launchd => Vec::new(),
        }
    }
}

/// Commands as a person types them.
pub(super) fn steps(steps: &[Vec<String>]) -> String {
    let typed = steps.iter().map(|step| format!("  {}", step.join(" ")));
    typed.collect::<Vec<_>>().join("\n")
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn agent(folder: &Path) -> String {
    folder.join("dwelld.plist").display().to_string()
}

/// A path as a unit has it: a percent sign and a dollar mean more there.
fn quoted(path: &str) -> String {
    let plain = path.replace('%', "%%").replace('$', "$$");
    let plain = plain.replace('\\', "\\\\").replace('"', "\\\"");
    match plain.contains(char::is_whitespace) {
        true => format!("\"{plain}\""),
        false => plain,
    }
}

fn plist(program: &str) -> String {
    let program = program
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
    <string>{program}</string>
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>Umask</key>
  <integer>63</integer>
  <key>ExitTimeOut</key>
  <integer>60</integer>
</dict>
</plist>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_names_the_daemon_whatever_its_path_holds() {
        let line = |path: &str| {
            let files = Manager::Systemd.files(Path::new(path)).unwrap();
            let text = files.into_iter().find(|file| file.name == "dwelld.service");
            let text = text.unwrap().text;
            let mut lines = text.lines().filter(|line| line.starts_with("ExecStart="));
            lines.next().unwrap().to_owned()
        };
        assert_eq!(line("/usr/bin/dwelld"), "ExecStart=/usr/bin/dwelld");
        assert_eq!(
            line("/my bin/100%/dwelld"),
            "ExecStart=\"/my bin/100%%/dwelld\""
        );
    }

    #[test]
    fn only_what_is_written_here_is_ours() {
        for manager in [Manager::Systemd, Manager::Launchd] {
            for file in manager.files(Path::new("/my bin/dwelld")).unwrap() {
                assert!(manager.wrote(file.name, &file.text), "{}", file.name);
                assert!(!manager.wrote(file.name, &format!("{}# mine\n", file.text)));
                assert!(!manager.wrote(file.name, "[Service]\nExecStart=/bin/mine\n"));
                assert!(!manager.wrote(file.name, ""));
            }
        }
    }
}
