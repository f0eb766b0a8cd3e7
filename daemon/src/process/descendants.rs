//! Finding every descendant of a process in /proc. Only reads; what it found may be gone or have grown by then,
//! so whoever kills looks again until nothing is left.

use std::collections::HashMap;
use std::fs;

/// All living descendants of a process, nearest first.
pub(super) fn of(root: i32) -> Vec<i32> {
    let look = look(root);
    let mut found = look(root);
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let below = look(*pid);
        found.extend(below);
        next += 1;
    }
    found
}

/// The living children of a process.
pub(super) fn children(root: i32) -> Vec<i32> {
    look(root)(root)
}

/// How to find the children of a process, by what the kernel offers.
fn look(root: i32) -> Box<dyn Fn(i32) -> Vec<i32>> {
    match listed_children(root) {
        Some(_) => Box::new(|pid| listed_children(pid).unwrap_or_default()),
        None => {
            let by_parent = parents();
            Box::new(move |pid| by_parent.get(&pid).cloned().unwrap_or_default())
        }
    }
}

/// Children of all threads, as the kernel lists them.
fn listed_children(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        found.extend(
            list.split_whitespace()
                .filter_map(|pid| pid.parse::<i32>().ok()),
        );
    }
    Some(found)
}

fn parents() -> HashMap<i32, Vec<i32>> {
    let mut by_parent = HashMap::<i32, Vec<i32>>::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for (pid, parent) in processes.filter_map(|entry| parent_of(&entry)) {
        by_parent.entry(parent).or_default().push(pid);
    }
    by_parent
}

fn parent_of(entry: &fs::DirEntry) -> Option<(i32, i32)> {
    let pid = entry.file_name().to_str()?.parse().ok()?;
    let stat = fs::read(entry.path().join("stat")).ok()?;
    Some((pid, parse_parent(&stat)?))
}

/// The second field after the name, which may itself hold spaces and parentheses.
fn parse_parent(stat: &[u8]) -> Option<i32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        assert_eq!(parse_parent(b"42 (a) b) S 7 41 40 0 -1"), Some(7));
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "a child of this very process is wanted"
    )]
    fn both_ways_of_looking_find_the_same_children() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let own = std::process::id() as i32;
        assert!(listed_children(own).is_none_or(|list| list.contains(&pid)));
        assert!(parents()[&own].contains(&pid));
        assert!(of(own).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
