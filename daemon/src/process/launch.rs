//! The supervisor's start of the target: PATH search, then a spawn in a session of its own.
//! Runs in a process that nobody else's state lives in, so it may change directory and block.

use super::wire::Request;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// Where programs are looked for when the environment does not say.
pub(super) const DEFAULT_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Starts the target in its directory; standard input, output and error are this process's own. Gives its pid, or
/// a message for people.
pub(super) fn launch(request: &Request) -> Result<libc::pid_t, String> {
    let name = request.program.to_string_lossy().into_owned();
    // SAFETY: a NUL-terminated string that lives through the call.
    if unsafe { libc::chdir(request.cwd.as_ptr()) } != 0 {
        let error = io::Error::last_os_error();
        return Err(format!(
            "cannot start {name}: cannot enter the directory {}: {error}",
            request.cwd.to_string_lossy()
        ));
    }
    let program = find(request)?;
    let started = spawn(&program, request);
    // The supervisor holds no directory busy.
    // SAFETY: a NUL-terminated constant.
    unsafe { libc::chdir(c"/".as_ptr()) };
    started.map_err(|error| {
        format!(
            "cannot start {name}: {}: {error}",
            program.to_string_lossy()
        )
    })
}

/// The file to execute: the name itself when it has a slash, else the first executable of that name on PATH.
fn find(request: &Request) -> Result<CString, String> {
    let name = request.program.to_bytes();
    if name.contains(&b'/') {
        return Ok(request.program.clone());
    }
    let path = request.env("PATH").unwrap_or(DEFAULT_PATH.as_bytes());
    let candidates = path.split(|byte| *byte == b':').map(|folder| {
        let folder = if folder.is_empty() { b"." } else { folder };
        CString::new([folder, b"/", name].concat())
    });
    candidates
        .flatten()
        .find(|file| !name.is_empty() && is_executable(file))
        .ok_or_else(|| {
            format!(
                "cannot start {}: not found on PATH {}",
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(path)
            )
        })
}

fn is_executable(file: &CStr) -> bool {
    let path = std::path::Path::new(OsStr::from_bytes(file.to_bytes()));
    // SAFETY: a NUL-terminated string that lives through the call.
    path.is_file() && unsafe { libc::access(file.as_ptr(), libc::X_OK) } == 0
}

fn spawn(program: &CStr, request: &Request) -> io::Result<libc::pid_t> {
    let pointers = |strings: &mut dyn Iterator<Item = &CString>| {
        strings
            .map(|string| string.as_ptr().cast_mut())
            .chain([ptr::null_mut()])
            .collect::<Vec<_>>()
    };
    let argv = pointers(&mut [&request.program].into_iter().chain(&request.args));
    let envp = pointers(&mut request.env.iter());
    let attributes = Attributes::new()?;
    let mut pid = 0;
    // SAFETY: both arrays end in a null pointer and point into `request`, which outlives the call.
    check(unsafe {
        libc::posix_spawn(
            &mut pid,
            program.as_ptr(),
            ptr::null(),
            &attributes.0,
            argv.as_ptr(),
            envp.as_ptr(),
        )
    })?;
    Ok(pid)
}

/// A session of its own, no signal blocked, every signal at its default: nothing of the supervisor's shows.
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        let flags = libc::POSIX_SPAWN_SETSID
            | libc::POSIX_SPAWN_SETSIGMASK as libc::c_short
            | libc::POSIX_SPAWN_SETSIGDEF as libc::c_short;
        // SAFETY: initialised by the first call before anything reads it; the sets are plain values.
        unsafe {
            check(libc::posix_spawnattr_init(attributes.as_mut_ptr()))?;
            let mut attributes = Self(attributes.assume_init());
            let mut signals = std::mem::zeroed();
            libc::sigemptyset(&mut signals);
            check(libc::posix_spawnattr_setsigmask(
                &mut attributes.0,
                &signals,
            ))?;
            libc::sigfillset(&mut signals);
            check(libc::posix_spawnattr_setsigdefault(
                &mut attributes.0,
                &signals,
            ))?;
            check(libc::posix_spawnattr_setflags(&mut attributes.0, flags))?;
            Ok(attributes)
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

/// `posix_spawn` and its kin return the error number instead of setting it.
fn check(error: libc::c_int) -> io::Result<()> {
    match error {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(number)),
    }
}
