//! What a script is run from: its file, where that is as it was read and bash can read it, and else a copy of what was read.
//! Must never run a content that nobody took apart.

use super::Script;
use super::folder::Folder;
use crate::toolbox::source::script::{Language, content};
use std::io;
use std::path::PathBuf;

const BASH_SOURCE: &str = "BASH_SOURCE";

impl Script {
    /// A copy of what was read, where the file says something else by now: it is being edited, or the edit is broken, or it
    /// is gone.
    pub(super) fn kept(&self, folder: &Folder) -> io::Result<Option<PathBuf>> {
        let is_same = content::read(&self.file).is_ok_and(|now| *now == *self.source);
        if is_same && !self.has_foreign_ends() {
            return Ok(None);
        }
        if self.language != Language::Bash {
            return folder.keep(&self.source).map(Some);
        }
        let mut text = self.source.to_vec();
        if self.has_foreign_ends() {
            text = String::from_utf8_lossy(&text)
                .replace("\r\n", "\n")
                .into_bytes();
        }
        match std::str::from_utf8(&text) {
            Ok(text) => folder.keep(at_home(text).as_bytes()).map(Some),
            Err(_) => folder.keep(&text).map(Some),
        }
    }

    /// Lines that end as on another system, which bash takes for a part of each line's last word.
    fn has_foreign_ends(&self) -> bool {
        let has = |pair: &[u8]| pair == b"\r\n";
        self.language == Language::Bash && self.source.windows(2).any(has)
    }
}

/// Pure: a script that looks for its own file by `$0` wherever it did so by `BASH_SOURCE`, which is the copy's name and cannot
/// be set. That of another depth stays.
fn at_home(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BASH_SOURCE) {
        let (before, after) = (&rest[..at], &rest[at + BASH_SOURCE.len()..]);
        let is_in_braces = before.ends_with("${");
        let after_index = match is_in_braces {
            true => after.strip_prefix("[0]").unwrap_or(after),
            false => after,
        };
        let goes_on = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let is_whole = !after_index.starts_with(goes_on);
        let is_other = is_in_braces && after_index.starts_with('[');
        out.push_str(before);
        if (is_in_braces || before.ends_with('$')) && is_whole && !is_other {
            out.push('0');
            rest = after_index;
        } else {
            out.push_str(BASH_SOURCE);
            rest = after;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::at_home;

    #[test]
    fn only_the_scripts_own_name_is_found_in_another_way() {
        for (text, expected) in [
            ("dirname \"${BASH_SOURCE[0]}\"", "dirname \"${0}\""),
            ("${BASH_SOURCE%/*}/a $BASH_SOURCE", "${0%/*}/a $0"),
            ("${BASH_SOURCE[0]:-$0}", "${0:-$0}"),
            ("[[ ${BASH_SOURCE[0]} == \"$0\" ]]", "[[ ${0} == \"$0\" ]]"),
        ] {
            assert_eq!(at_home(text), expected);
        }
        for same in [
            "${BASH_SOURCE[1]} ${#BASH_SOURCE[@]} ${BASH_SOURCE[@]}",
            "$BASH_SOURCES ${BASH_SOURCE_DIR} BASH_SOURCE",
        ] {
            assert_eq!(at_home(same), same);
        }
    }
}
