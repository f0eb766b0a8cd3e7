//! What the service managers are told: files, and the commands that set the service up and take it away. Must never run them,
//! but to ask whether the manager answers.

use super::mark::{self, Comment};
use super::order::{self, Order};
use super::quote;
use super::setting::Settings;
use crate::error::Failure;
use std::collections::BTreeMap;
use std::path::Path;

const SERVICE: &str = include_str!("../../../../systemd/dwelld.service");
const SOCKET: &str = include_str!("../../../../systemd/dwelld.socket");

/// Where the units' texts name what is each person's own.
const EXEC: &str = "ExecStart=%h/.cargo/bin/dwelld\n";
const LISTEN: &str = "ListenStream=%t/dwell/dwell.sock\n";

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

/// The daemon as a service runs it.
pub(super) struct Service<'a> {
    pub(super) program: &'a Path,
    pub(super) settings: &'a Settings,
    /// Where what it says goes, if the manager keeps no journal.
    pub(super) log: &'a Path,
}

impl Manager {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Systemd => "the user's systemd",
            Self::Launchd => "launchd",
        }
    }

    /// As `--manager` has it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
        }
    }

    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Systemd => &["dwelld.socket", "dwelld.service"],
            Self::Launchd => &["dwelld.plist"],
        }
    }

    /// Where systemd puts a link to a unit that is enabled.
    pub(super) const fn links(self) -> &'static [&'static str] {
        match self {
            Self::Systemd => &[
                "sockets.target.wants/dwelld.socket",
                "default.target.wants/dwelld.service",
            ],
            Self::Launchd => &[],
        }
    }

    pub(super) fn files(self, service: &Service<'_>) -> Result<Vec<File>, Failure> {
        let program = service.program.to_str();
        let program = program.ok_or_else(|| {
            Failure::new("the path of dwelld is not UTF-8, and no service has it")
        })?;
        let texts = match self {
            Self::Systemd => vec![
                listening(service.settings)?,
                serving(program, service.settings),
            ],
            Self::Launchd => vec![plist(program, service)?],
        };
        let named = self.names().iter().zip(texts);
        Ok(named
            .map(|(name, text)| File {
                name,
                text: mark::marked(text, self.comment()),
            })
            .collect())
    }

    /// Whether a text is one that was written here and not changed since.
    pub(super) fn wrote(self, text: &str) -> bool {
        mark::is_ours(text, self.comment())
    }

    const fn comment(self) -> Comment {
        match self {
            Self::Systemd => ("# ", ""),
            Self::Launchd => ("<!-- ", " -->"),
        }
    }

    /// What it gives to services, if it is there for this person. Nobody could try this with launchd.
    pub(super) async fn environment(self) -> Option<BTreeMap<String, String>> {
        match self {
            Self::Systemd => {
                let asked = words(&["systemctl", "--user", "show-environment"]);
                Some(variables(&order::ask(&asked).await?))
            }
            Self::Launchd if cfg!(target_os = "macos") => {
                let answer = order::ask(&words(&["launchctl", "help"])).await;
                answer.map(|_| BTreeMap::new())
            }
            Self::Launchd => None,
        }
    }

    /// Has it read files that have changed.
    pub(super) fn reread(self) -> Vec<Order> {
        match self {
            Self::Systemd => vec![words(&["systemctl", "--user", "daemon-reload"])],
            Self::Launchd => Vec::new(),
        }
    }

    /// Sets it up.
    pub(super) fn start(self, folder: &Path) -> Vec<Order> {
        let mut orders = self.reread();
        orders.push(match self {
            Self::Systemd => words(&["systemctl", "--user", "enable", "--now", "dwelld.socket"]),
            Self::Launchd => words(&["launchctl", "load", "-w", &agent(folder)]),
        });
        orders
    }

    /// Starts anew what it runs, as the files are now.
    pub(super) fn renew(self, folder: &Path) -> Vec<Order> {
        match self {
            Self::Systemd => vec![
                words(&["systemctl", "--user", "stop", "dwelld.service"]),
                words(&["systemctl", "--user", "restart", "dwelld.socket"]),
            ],
            Self::Launchd => vec![
                words(&["launchctl", "unload", &agent(folder)]),
                words(&["launchctl", "load", "-w", &agent(folder)]),
            ],
        }
    }

    /// Takes it away, while its files are there.
    pub(super) fn stop(self, folder: &Path) -> Vec<Order> {
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
}

/// How a person keeps a unit's daemon down.
pub(super) const KEEP_DOWN: &str = "systemctl --user stop dwelld.socket dwelld.service";

/// What shows the last that a unit's daemon said.
pub(super) fn journal(unit: &str, lines: usize) -> Order {
    let lines = format!("--lines={lines}");
    let output = "--output=cat";
    words(&[
        "journalctl",
        "--user",
        "--unit",
        unit,
        &lines,
        output,
        "--no-pager",
    ])
}

fn words(words: &[&str]) -> Order {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn agent(folder: &Path) -> String {
    folder.join("dwelld.plist").display().to_string()
}

/// Lines such as `NAME=value`.
fn variables(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), quote::unshell(value)))
        .collect()
}

fn listening(settings: &Settings) -> Result<String, Failure> {
    Ok(match &settings.socket {
        None => SOCKET.to_owned(),
        Some(socket) => {
            let line = format!("ListenStream={}\n", quote::socket(socket)?);
            SOCKET.replace(LISTEN, &line)
        }
    })
}

fn serving(program: &str, settings: &Settings) -> String {
    let mut lines = format!("ExecStart={}\n", quote::program(program));
    for (name, value) in &settings.variables {
        let assignment = quote::word(&format!("{name}={value}"));
        lines.push_str(&format!("Environment={assignment}\n"));
    }
    SERVICE.replace(EXEC, &lines)
}

/// It starts when somebody logs in, since the daemon does not take a socket of launchd; and where a person waits for what it
/// runs, nothing is slowed down in the background's favour.
fn plist(program: &str, service: &Service<'_>) -> Result<String, Failure> {
    let program = quote::xml(program)?;
    let log = quote::xml(&service.log.display().to_string())?;
    let mut variables = String::new();
    for (name, value) in &service.settings.variables {
        let value = quote::xml(value)?;
        variables.push_str(&format!(
            "    <key>{name}</key>\n    <string>{value}</string>\n"
        ));
    }
    if !variables.is_empty() {
        variables = format!("  <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n");
    }
    Ok(format!(
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
{variables}  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ProcessType</key>
  <string>Interactive</string>
  <key>StandardErrorPath</key>
  <string>{log}</string>
  <key>Umask</key>
  <integer>63</integer>
  <key>ExitTimeOut</key>
  <integer>60</integer>
</dict>
</plist>
"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_the_repository_have_the_lines_that_are_replaced() {
        assert_eq!(SERVICE.matches(EXEC).count(), 1);
        assert_eq!(SOCKET.matches(LISTEN).count(), 1);
    }

    #[test]
    fn the_managers_environment_is_read_line_by_line() {
        let read = variables("HOME=/home/me\nXDG_CONFIG_HOME=$'/a b'\nnonsense\n");
        let expected = [("HOME", "/home/me"), ("XDG_CONFIG_HOME", "/a b")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(read, BTreeMap::from(expected));
    }
}
