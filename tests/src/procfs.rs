//! What the kernel says of a process: alive, children, memory, processor time. Must never signal what it looks at.

use std::fs;
use std::time::Duration;

/// Whether a process runs (a zombie does not).
pub fn alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

fn state(pid: u32) -> Option<char> {
    fields(pid)?.first()?.chars().next()
}

/// The fields of `/proc/PID/stat` from the state on: the name before may hold anything.
fn fields(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// The processor time used so far by all threads, those that ended too, in nanoseconds.
pub fn cpu(pid: u32) -> Duration {
    let pid = libc::pid_t::try_from(pid).unwrap();
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both calls write to the one place that each is given.
    let done = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    assert!(done, "process {pid} has a clock");
    Duration::new(
        u64::try_from(time.tv_sec).unwrap(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

/// Resident memory in bytes.
pub fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// All that runs below a process, supervisors included.
pub fn descendants(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut parents = vec![of];
    while let Some(parent) = parents.pop() {
        let Ok(children) = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
        else {
            continue;
        };
        let children = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        let children: Vec<u32> = children.filter(|pid| alive(*pid)).collect();
        parents.extend(&children);
        found.extend(children);
    }
    found
}

/// Processes whose environment or command line holds `mark`: how a test finds what it caused, however far it ran away.
pub fn marked(mark: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let holds = |file: &str| {
            fs::read(entry.path().join(file)).is_ok_and(|bytes| {
                bytes
                    .windows(mark.len())
                    .any(|part| part == mark.as_bytes())
            })
        };
        if pid != std::process::id() && alive(pid) && (holds("cmdline") || holds("environ")) {
            found.push(pid);
        }
    }
    found
}
