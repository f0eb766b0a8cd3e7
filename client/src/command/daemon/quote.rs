//! How a text stands in a unit, in a property list and in a shell's line. Must never change what is read back from it.

use crate::error::Failure;
use std::fmt::Write as _;
use std::path::Path;

/// A word that systemd takes apart as a shell would: of a percent sign it makes more, and of a backslash.
pub(super) fn word(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '\\' | '"' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            '\n' => quoted.push_str("\\n"),
            // Writing to a string cannot fail.
            c if c.is_ascii_control() => drop(write!(quoted, "\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// What `ExecStart=` says to run a program. systemd takes no quote, backslash or control character in the path itself, so a
/// shell is put before such a one, which becomes it. The colon: no dollar sign is a variable.
pub(super) fn program(path: &str) -> String {
    let refused = |c: char| c.is_ascii_control() || "\"'\\".contains(c);
    if path.contains(refused) {
        return format!(":/bin/sh -c {} {}", word("exec \"$0\""), word(path));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    match path.chars().all(plain) {
        true => path.to_owned(),
        false => format!(":{}", word(path)),
    }
}

/// A socket as `ListenStream=` has it, which knows no quotes: it is the line as it is, but for percent signs, blanks at its end
/// and a backslash there.
pub(super) fn socket(path: &Path) -> Result<String, Failure> {
    let refuse = |why: &str| {
        Failure::new(format!(
            "the socket {} cannot be written into a unit: {why}",
            path.display()
        ))
        .hint("name another with --socket or DWELL_SOCKET")
    };
    let text = path.to_str().ok_or_else(|| refuse("it is not UTF-8"))?;
    if text.contains(|c: char| c.is_ascii_control()) {
        return Err(refuse("it holds a control character"));
    }
    if text.ends_with(|c: char| c == '\\' || c.is_whitespace()) {
        return Err(refuse("it ends in a blank or a backslash"));
    }
    Ok(text.replace('%', "%%"))
}

/// Whether systemd forgets a socket when it reads its units anew: it writes the path down with escapes, and does not know it again.
pub(super) fn is_forgotten(socket: &Path) -> bool {
    let escaped = |byte: &u8| !byte.is_ascii_graphic() && *byte != b' ' || b"\"'\\".contains(byte);
    socket.as_os_str().as_encoded_bytes().iter().any(escaped)
}

/// A text of XML.
pub(super) fn xml(text: &str) -> Result<String, Failure> {
    if text.contains(|c: char| c.is_ascii_control() && !"\t\n\r".contains(c)) {
        return Err(Failure::new(format!(
            "{text:?} holds a control character, which a property list cannot have"
        )));
    }
    // A return would be read as a line's end.
    let plain = text.replace('&', "&amp;").replace('\r', "&#13;");
    Ok(plain.replace('<', "&lt;").replace('>', "&gt;"))
}

/// A word as a person types it.
pub(super) fn shell(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@,%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A value as `systemctl show-environment` prints it: bare, or as `$'...'` with C's escapes.
pub(super) fn unshell(text: &str) -> String {
    let inner = text
        .strip_prefix("$'")
        .and_then(|rest| rest.strip_suffix('\''));
    let Some(inner) = inner else {
        return text.to_owned();
    };
    let mut value = String::new();
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        match (c, c == '\\') {
            (_, true) => value.extend(rest.next().map(|escaped| match escaped {
                'n' => '\n',
                't' => '\t',
                other => other,
            })),
            (c, false) => value.push(c),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_whatever_its_path_holds() {
        assert_eq!(program("/usr/bin/dwelld"), "/usr/bin/dwelld");
        assert_eq!(
            program("/my $HOME/100%/dwelld"),
            ":\"/my $HOME/100%%/dwelld\""
        );
        assert_eq!(
            program("/a\"b\n/dwelld"),
            ":/bin/sh -c \"exec \\\"$0\\\"\" \"/a\\\"b\\n/dwelld\""
        );
    }

    #[test]
    fn a_socket_that_a_unit_cannot_name_is_refused() {
        let said = |path: &str| socket(Path::new(path));
        assert_eq!(
            said("/a \"b\"/100%\\x/s.sock").unwrap(),
            "/a \"b\"/100%%\\x/s.sock"
        );
        for path in ["/a\nb", "/a ", "/a\\"] {
            let failure = said(path).unwrap_err();
            assert!(failure.hint.unwrap().contains("--socket"), "{path:?}");
        }
    }

    #[test]
    fn a_socket_that_systemd_escapes_is_one_that_it_forgets() {
        let forgotten = |path: &str| is_forgotten(Path::new(path));
        assert!(!forgotten("/run/user/7/a b $x 100%.sock"));
        for path in ["/a\"b", "/it's", "/a\\b", "/gr\u{fc}n"] {
            assert!(forgotten(path), "{path}");
        }
    }

    #[test]
    fn what_systemctl_prints_is_read_back() {
        assert_eq!(unshell("/plain/path"), "/plain/path");
        assert_eq!(unshell("$'/a b\\'s\\n\\\\'"), "/a b's\n\\");
    }

    #[test]
    fn a_shell_reads_one_word() {
        assert_eq!(shell("a-b"), "a-b");
        assert_eq!(shell("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(shell(""), "''");
    }
}
