//! Names of tools as every vendor takes them, each one's own. Does no input or output.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The longest name that vendors take.
const LONGEST: usize = 64;

/// What models call a server's tools, in the same order: `prefix` and the tool's own name, with `_` for what vendors refuse.
/// A name that would not be the tool's own then, or is too long, ends in a few digits that are.
pub(super) fn shown(prefix: &str, tools: &[&str]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |tool: &&str| {
        let own = format!("{prefix}{tool}");
        let plain = own.replace(|c: char| !is_plain(c), "_");
        let mut name = match plain.len() <= LONGEST && !plain.is_empty() {
            true => plain.clone(),
            false => marked(&plain, &own),
        };
        if taken.contains(&name) {
            name = marked(&plain, &own);
        }
        taken.insert(name.clone());
        name
    };
    tools.iter().map(name).collect()
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// With digits that come from the name as the server has it, so that it is the same each time.
fn marked(plain: &str, own: &str) -> String {
    let digest = Sha256::digest(own);
    let mark: String = digest
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let room = LONGEST - mark.len() - 1;
    format!("{}_{mark}", &plain[..plain.len().min(room)])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, shown};

    #[test]
    fn names_that_vendors_take_stay_and_others_are_mapped_each_to_its_own() {
        assert_eq!(
            shown("github__", &["create_issue", "a-b"]),
            ["github__create_issue", "github__a-b"]
        );
        let odd = shown("my server__", &["a.b", "a/b", "a b", "\u{e4}"]);
        assert_eq!(odd[0], "my_server__a_b");
        assert!(odd[1].starts_with("my_server__a_b_") && odd[2].starts_with("my_server__a_b_"));
        assert_ne!(odd[1], odd[2]);
        assert_eq!(odd[3], "my_server___");
        let long = "x".repeat(100);
        let other = format!("{long}y");
        let names = shown("s__", &[&long, &other]);
        assert_ne!(names[0], names[1]);
        for name in names.iter().chain(&odd) {
            let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            assert!(name.len() <= LONGEST && name.chars().all(fits), "{name}");
        }
        assert_eq!(shown("s__", &[&long]), shown("s__", &[&long]));
        assert_eq!(shown("", &["\u{e4}\u{f6}"]), ["__"]);
        assert_eq!(shown("", &[""]).len(), 1);
    }
}
