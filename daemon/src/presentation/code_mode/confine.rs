//! What a program's process may do: limits of the system, and a filter that lets through what the engine needs.
//! Must never be loosened for the comfort of a program: no file, no socket, no process, no thread.

use rustix::process::{Resource, Rlimit, setrlimit};
use std::io;

const MEBIBYTE: u64 = 1024 * 1024;
/// What the executable itself and its buffers need beside a program's memory.
const OWN: u64 = 256 * MEBIBYTE;
/// More than any stack that a program may have.
const STACK: u64 = 16 * MEBIBYTE;

/// Limits, and no more privileges for ever.
pub(super) fn limit(memory: usize, cpu_ms: u64) -> io::Result<()> {
    let memory = u64::try_from(memory).unwrap_or(u64::MAX);
    let seconds = cpu_ms.div_ceil(1000) + 1;
    for (resource, soft, hard) in [
        (
            Resource::As,
            memory.saturating_mul(2).saturating_add(OWN),
            None,
        ),
        (Resource::Cpu, seconds, Some(seconds + 1)),
        (Resource::Core, 0, None),
        (Resource::Fsize, 0, None),
        (Resource::Nofile, 3, None),
    ] {
        let limit = Rlimit {
            current: Some(soft),
            maximum: Some(hard.unwrap_or(soft)),
        };
        setrlimit(resource, limit)?;
    }
    let stack = rustix::process::getrlimit(Resource::Stack);
    let most = stack.maximum.unwrap_or(u64::MAX);
    if stack
        .current
        .is_some_and(|current| current < STACK.min(most))
    {
        let current = Some(STACK.min(most));
        setrlimit(
            Resource::Stack,
            Rlimit {
                current,
                maximum: stack.maximum,
            },
        )?;
    }
    // SAFETY: plain system calls on this process.
    unsafe {
        libc::close_range(3, libc::c_uint::MAX, 0);
        libc::prctl(libc::PR_SET_NAME, c"dwell-code".as_ptr());
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    }
}

/// Whether this kernel takes a filter, asked without setting one.
pub(super) fn available() -> Result<(), String> {
    if ARCHITECTURE.is_none() {
        return Err(format!(
            "there is no filter of system calls for {}",
            std::env::consts::ARCH
        ));
    }
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: a plain system call that reads one number.
    let known = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    match known {
        0 => Ok(()),
        _ => Err(format!(
            "this kernel takes no filter of system calls: {}",
            io::Error::last_os_error()
        )),
    }
}

/// From here on everything but the listed calls fails with EPERM.
pub(super) fn filter() -> Result<(), String> {
    available()?;
    let program = program(ARCHITECTURE.unwrap_or_default());
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap_or(u16::MAX),
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the filter points into `program`, which outlives the call; the kernel copies it.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        )
    };
    check(set).map_err(|error| format!("the filter of system calls is refused: {error}"))
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// Always let through.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
];

/// Let through when an argument (its index) compares so with a number.
const ALLOWED_IF: &[(libc::c_long, u32, Test)] = &[
    (libc::SYS_read, 0, Test::Is(0)),
    (libc::SYS_write, 0, Test::Is(1)),
    // Memory that cannot be executed.
    (libc::SYS_mmap, 2, Test::Without(libc::PROT_EXEC as u32)),
    (libc::SYS_mprotect, 2, Test::Without(libc::PROT_EXEC as u32)),
];

#[derive(Clone, Copy)]
enum Test {
    Is(u32),
    Without(u32),
}

/// Offsets in what the kernel shows a filter.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

fn program(architecture: u32) -> Vec<libc::sock_filter> {
    let load = |offset| op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    let give = |action| op(libc::BPF_RET | libc::BPF_K, action, 0, 0);
    let when = |test, number, skip_if, skip_else| {
        op(
            libc::BPF_JMP | test | libc::BPF_K,
            number,
            skip_if,
            skip_else,
        )
    };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    // Numbers of another architecture mean other calls.
    let mut program = vec![
        load(ARCH),
        when(libc::BPF_JEQ, architecture, 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    for number in ALLOWED {
        program.extend([
            when(libc::BPF_JEQ, *number as u32, 0, 1),
            give(libc::SECCOMP_RET_ALLOW),
        ]);
    }
    for (number, argument, test) in ALLOWED_IF {
        // The lower half: descriptors and protections are ints. Little-endian, as both architectures are.
        let tested = match test {
            Test::Is(value) => when(libc::BPF_JEQ, *value, 0, 1),
            Test::Without(bits) => when(libc::BPF_JSET, *bits, 1, 0),
        };
        program.extend([
            when(libc::BPF_JEQ, *number as u32, 0, 4),
            load(ARGUMENTS + 8 * argument),
            tested,
            give(libc::SECCOMP_RET_ALLOW),
            give(refuse),
        ]);
    }
    program.push(give(refuse));
    program
}

fn op(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
