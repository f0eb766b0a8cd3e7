//! Names of tools as every vendor takes them, each one's own. Does no input or output.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The longest name that vendors take.
const LONGEST: usize = 64;

/// What models call a server's tools, in the same order: `prefix` and the tool's own name, with `_` for what vendors refuse.
/// A name that would not be the tool's own then, or is too long, ends in a few digits that are.
pub(super) fn shown(prefix: &str, tools: &[&str]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    // Who really has a name is before those that would only come to it, in whatever order the server lists them.
    let mut order: Vec<usize> = (0..tools.len()).collect();
    order.sort_by_key(|at| (!tools[*at].chars().all(is_plain), tools[*at]));
    let mut names = vec![String::new(); tools.len()];
    for at in order {
        let own = format!("{prefix}{}", tools[at]);
        let plain = plain(&own);
        let mut name = match plain.len() <= LONGEST && !plain.is_empty() {
            true => plain.clone(),
            false => marked(&plain, &own),
        };
        if taken.contains(&name) {
            name = marked(&plain, &own);
        }
        taken.insert(name.clone());
        names[at] = name;
    }
    names
}

/// With `_` for what vendors refuse.
pub fn plain(name: &str) -> String {
    name.replace(|c: char| !is_plain(c), "_")
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
    fn name_is_whose_it_really_is_however_the_server_lists_them() {
        let one = shown("c__", &["a b", "a_b", "a.b"]);
        let other = shown("c__", &["a_b", "a.b", "a b"]);
        assert_eq!(one[1], "c__a_b");
        assert_eq!(
            [&one[1], &one[2], &one[0]],
            [&other[0], &other[1], &other[2]]
        );
    }

    #[test]
    fn names_that_vendors_take_stay_and_others_are_mapped_each_to_its_own() {
        assert_eq!(
            shown("github__", &["create_issue", "a-b"]),
            ["github__create_issue", "github__a-b"]
        );
        let odd = shown("my server__", &["a.b", "a/b", "a b", "\u{e4}"]);
        assert_eq!(odd[2], "my_server__a_b");
        assert!(odd[0].starts_with("my_server__a_b_") && odd[1].starts_with("my_server__a_b_"));
        assert_ne!(odd[0], odd[1]);
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
