//! What a program cannot reach, in JavaScript and below it.

use super::*;
use crate::process::{Exit, Spawn};
use std::ffi::OsStr;

#[tokio::test]
async fn there_are_no_files_sockets_timers_or_modules() {
    let code = "return [typeof fetch, typeof require, typeof process, typeof setTimeout, typeof Deno, typeof std, typeof os,
        typeof Function('return this')().fetch]";
    let result = run(code).await;
    assert_eq!(result["result"], json!(vec!["undefined"; 8]));
    for code in [
        "await import('fs')",
        "await import('/etc/passwd')",
        "await eval(\"import('std')\")",
    ] {
        assert_eq!(run(code).await["code"], "thrown", "{code}");
    }
}

#[tokio::test]
async fn what_a_program_changes_harms_itself_alone() {
    let code = "JSON.stringify = () => 'x'; Promise.prototype.then = null; Map.prototype.get = null; Object.freeze = null;
        Array.prototype[Symbol.iterator] = null; String.prototype.toWellFormed = null; globalThis.Error = null;
        return (await tools.echo({a: 1})).got";
    let bench = Bench::new();
    assert_eq!(bench.run(code).await["result"], json!({"a": 1}));
    assert_eq!(bench.run("return JSON.stringify({})").await["result"], "{}");
}

/// The first argument that makes this executable try what a program must not do.
const PROBE: &str = "code-probe";

pub(super) fn probe_if_asked() {
    if std::env::args_os().nth(1).as_deref() == Some(OsStr::new(PROBE)) {
        let confined = confine::limit(64 << 20, 1000).map_err(|error| error.to_string());
        if let Err(why) = confined.and_then(|()| confine::filter()) {
            println!("{why}");
        }
        // SAFETY: plain system calls on this process, which ends here.
        let tried = unsafe {
            [
                ("open", libc::open(c"/etc/passwd".as_ptr(), libc::O_RDONLY)),
                ("socket", libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)),
                ("inet", libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)),
                (
                    "fork",
                    libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::c_int,
                ),
                (
                    "exec",
                    libc::execv(c"/bin/true".as_ptr(), [std::ptr::null()].as_ptr()),
                ),
                ("kill", libc::kill(libc::getppid(), 0)),
                (
                    "ptrace",
                    libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) as libc::c_int,
                ),
                (
                    "write",
                    libc::write(2, c"x".as_ptr().cast(), 1) as libc::c_int,
                ),
                ("prctl", libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0)),
                (
                    "rlimit",
                    libc::setrlimit(
                        libc::RLIMIT_CORE,
                        &libc::rlimit {
                            rlim_cur: 0,
                            rlim_max: 0,
                        },
                    ),
                ),
            ]
            .map(|(name, result)| (name, result, std::io::Error::last_os_error()))
        };
        for (name, result, _) in &tried {
            println!("{name} {result}");
        }
        let executable = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: as above.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 4096, executable, flags, -1, 0) };
        println!(
            "exec-memory {}",
            if mapped == libc::MAP_FAILED { -1 } else { 0 }
        );
        println!("errno {:?}", std::io::Error::last_os_error().raw_os_error());
        // SAFETY: nothing here needs exit handlers.
        unsafe { libc::_exit(0) }
    }
}

#[tokio::test]
async fn below_javascript_the_kernel_refuses_files_sockets_and_processes() {
    let spawn = Spawn {
        program: "/proc/self/exe".into(),
        args: vec![PROBE.into()],
        cwd: "/".into(),
        env: Default::default(),
        stdin: None,
        timeout: Some(Duration::from_secs(20)),
    };
    let mut output = Vec::new();
    let mut take = |bytes: &[u8]| output.extend_from_slice(bytes);
    let exit = crate::process::run(spawn, &CancellationToken::new(), &mut take).await;
    let output = String::from_utf8_lossy(&output).into_owned();
    assert_eq!(exit, Exit::Code(0), "{output}");
    let names = [
        "open",
        "socket",
        "inet",
        "fork",
        "exec",
        "kill",
        "ptrace",
        "write",
        "prctl",
        "rlimit",
        "exec-memory",
    ];
    let mut expected: String = names.iter().map(|name| format!("{name} -1\n")).collect();
    expected.push_str(&format!("errno Some({})\n", libc::EPERM));
    assert_eq!(output, expected);
}

#[test]
fn where_there_is_no_filter_programs_do_not_run_unless_a_setting_says_so() {
    let none = || Err("this kernel takes no filter".to_owned());
    let why = allowed(none(), Settings::default()).unwrap_err();
    assert!(
        why.starts_with("code mode is off here: this kernel takes no filter; set unfiltered"),
        "{why}"
    );
    assert_eq!(allowed(none(), Settings { unfiltered: true }), Ok(()));
    assert_eq!(allowed(Ok(()), Settings::default()), Ok(()));
}
