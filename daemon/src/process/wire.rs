//! What the daemon and a supervisor tell each other over their socket: one request, then reports.
//! Must never be spoken between different builds: both ends are the same executable.

use super::Spawn;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// What to start. Strings are C strings, so that the supervisor can hand them on as they are.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) cwd: CString,
    pub(super) program: CString,
    pub(super) args: Vec<CString>,
    pub(super) env: Vec<CString>,
}

impl Request {
    pub(super) fn of(spawn: &Spawn) -> io::Result<Self> {
        let strings = |what: &str, bytes: &[u8]| {
            CString::new(bytes).map_err(|_| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("{what} contains a NUL byte"),
                )
            })
        };
        Ok(Self {
            cwd: strings("the directory", spawn.cwd.as_os_str().as_bytes())?,
            program: strings("the program's name", spawn.program.as_bytes())?,
            args: spawn
                .args
                .iter()
                .map(|arg| strings("an argument", arg.as_bytes()))
                .collect::<io::Result<_>>()?,
            env: spawn
                .env
                .iter()
                .map(|(name, value)| strings(name, format!("{name}={value}").as_bytes()))
                .collect::<io::Result<_>>()?,
        })
    }

    /// A length, the number of arguments, then all strings, each with its NUL.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend((self.args.len() as u32).to_ne_bytes());
        let heads = [&self.cwd, &self.program];
        for string in heads.into_iter().chain(&self.args).chain(&self.env) {
            bytes.extend(string.as_bytes_with_nul());
        }
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    /// Reads what `encode` wrote, without the length before it.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (count, mut rest) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_ne_bytes(*count) as usize;
        let mut strings = Vec::new();
        while !rest.is_empty() {
            let string = CStr::from_bytes_until_nul(rest).ok()?;
            rest = &rest[string.to_bytes_with_nul().len()..];
            strings.push(string.to_owned());
        }
        if strings.len() < count + 2 {
            return None;
        }
        let env = strings.split_off(count + 2);
        let args = strings.split_off(2);
        let program = strings.pop()?;
        let cwd = strings.pop()?;
        Some(Self {
            cwd,
            program,
            args,
            env,
        })
    }

    pub(super) fn env(&self, name: &str) -> Option<&[u8]> {
        self.env.iter().find_map(|entry| {
            let rest = entry.to_bytes().strip_prefix(name.as_bytes())?;
            rest.strip_prefix(b"=")
        })
    }
}

/// What a supervisor tells.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Report {
    /// The supervisor is there, under this number, and will start the child.
    Ready(i32),
    Code(i32),
    Signal(i32),
    NotStarted(String),
}

impl Report {
    /// A kind, a number, the length of the text, the text.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, number, text) = match self {
            Self::Ready(pid) => (b'R', *pid, ""),
            Self::Code(code) => (b'E', *code, ""),
            Self::Signal(signal) => (b'S', *signal, ""),
            Self::NotStarted(why) => (b'N', 0, why.as_str()),
        };
        let mut bytes = vec![kind];
        bytes.extend(number.to_ne_bytes());
        bytes.extend((text.len() as u32).to_ne_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    /// Takes one whole report off the front of `bytes`.
    pub(super) fn take(bytes: &mut Vec<u8>) -> Option<Self> {
        let kind = *bytes.first()?;
        let number = i32::from_ne_bytes(bytes.get(1..5)?.try_into().ok()?);
        let length = u32::from_ne_bytes(bytes.get(5..9)?.try_into().ok()?) as usize;
        let text = String::from_utf8_lossy(bytes.get(9..9 + length)?).into_owned();
        bytes.drain(..9 + length);
        Some(match kind {
            b'R' => Self::Ready(number),
            b'E' => Self::Code(number),
            b'S' => Self::Signal(number),
            _ => Self::NotStarted(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let spawn = Spawn {
            program: "sh".into(),
            args: vec!["-c".into(), "".into(), "echo \"a b\"".into()],
            cwd: "/tmp".into(),
            env: [("A", "1=2"), ("B", "")]
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
            stdin: None,
            timeout: None,
        };
        let request = Request::of(&spawn).unwrap();
        assert_eq!(Request::decode(&request.encode()[4..]), Some(request));
    }

    #[test]
    fn reports_are_found_in_any_split() {
        let reports = [Report::Ready(7), Report::NotStarted("no such thing".into())];
        let bytes: Vec<u8> = reports.iter().flat_map(Report::encode).collect();
        let mut buffer = Vec::new();
        let mut found = Vec::new();
        for byte in bytes {
            buffer.push(byte);
            found.extend(Report::take(&mut buffer));
        }
        assert_eq!(found, reports);
    }
}
