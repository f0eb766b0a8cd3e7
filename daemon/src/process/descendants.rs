//! Finding every descendant of a process in /proc. Only reads; what it found may be gone or have grown by then,
//! so whoever kills looks again until nothing is left.

use std::collections::HashMap;
use std::fs;

/// All living descendants of a process, nearest first.
pub(super) fn of(root: i32) -> Vec<i32> {
    let children: Box<dyn Fn(i32) -> Vec<i32>> = match listed_children(root) {
        Some(_) => Box::new(|pid| listed_children(pid).unwrap_or_default()),
        // A kernel without the list of children.
        None => {
            let by_parent = parents();
            Box::new(move |pid| by_parent.get(&pid).cloned().unwrap_or_default())
        }
    };
    let mut found = children(root);
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let below = children(*pid);
        found.extend(below);
        next += 1;
    }
    found
}

/// All members of a session: what is left to go by when the supervisor itself is gone.
pub(super) fn of_session(session: i32) -> Vec<i32> {
    stats()
        .filter(|(_, stat)| stat.session == session)
        .map(|(pid, _)| pid)
        .collect()
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
    for (pid, stat) in stats() {
        by_parent.entry(stat.parent).or_default().push(pid);
    }
    by_parent
}

struct Stat {
    parent: i32,
    session: i32,
}

fn stats() -> impl Iterator<Item = (i32, Stat)> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Some((pid, parse_stat(&stat)?))
    })
}

/// The fields after the name, which may itself hold spaces and parentheses.
fn parse_stat(stat: &[u8]) -> Option<Stat> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some(Stat { parent, session })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = parse_stat(b"42 (a) b) S 7 41 40 0 -1").unwrap();
        assert_eq!((stat.parent, stat.session), (7, 40));
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
