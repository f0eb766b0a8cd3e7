//! Whoever else asks for `argc` while a tool runs: the real one, where there is one, and argc's own library where not.

use super::quote::quote;
use super::{failing, mark, say};
use argc::{ArgcValue, NativeRuntime};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) fn main(args: &[String]) -> i32 {
    if args.get(1).is_some_and(|asked| asked == "--argc-eval") {
        mark();
    }
    if let Some(real) = real() {
        become_it(&real, args);
    }
    let (script, rest) = match args {
        [_, asked, script, rest @ ..] if asked == "--argc-eval" => (script, rest),
        // What such a word gives is for the shell: there nobody would see how this ended.
        [_, asked, ..] if asked.starts_with("--argc-") => {
            return say(&failing(&format!(
                "argc is not installed, and {asked} needs it"
            )));
        }
        _ => return complain("argc is not installed"),
    };
    say(&evaluated(script, rest).unwrap_or_else(|why| failing(&why)))
}

/// An `argc` on PATH that is not this program.
fn real() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("argc"))
        .find(|file| {
            file.canonicalize()
                .is_ok_and(|real| real != own && real.is_file())
        })
}

/// Returns only when it cannot be started.
fn become_it(real: &Path, args: &[String]) {
    let words = args.iter().map(|word| CString::new(word.as_bytes()));
    let (Ok(file), Ok(words)) = (
        CString::new(real.as_os_str().as_bytes()),
        words.collect::<Result<Vec<_>, _>>(),
    ) else {
        return;
    };
    let mut argv: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(std::ptr::null());
    // SAFETY: both are NUL-terminated and live through the call, and the array ends in a null pointer.
    unsafe { libc::execv(file.as_ptr(), argv.as_ptr()) };
}

fn evaluated(script: &str, rest: &[String]) -> Result<String, String> {
    let text = std::fs::read_to_string(script).map_err(|error| format!("{script}: {error}"))?;
    let stem = Path::new(script).file_stem().unwrap_or_default();
    let mut args = vec![stem.to_string_lossy().into_owned()];
    args.extend(rest.iter().cloned());
    let eval = || argc::eval(NativeRuntime, &text, &args, Some(script), None);
    let values = std::panic::catch_unwind(eval)
        .map_err(|_| format!("{script} is too odd for argc"))?
        .map_err(|error| error.to_string())?;
    // What it says about an error holds the words that were wrong, in a form that they can break out of.
    let error = values.iter().find_map(|value| match value {
        ArgcValue::Error((text, code)) => Some((text, *code)),
        _ => None,
    });
    Ok(match error {
        Some((text, code)) => {
            format!("command printf '%s\\n' {} >&2\nexit {code}\n", quote(text))
        }
        None => ArgcValue::to_bash(&values) + "\n",
    })
}

#[allow(clippy::print_stderr)]
fn complain(text: &str) -> i32 {
    eprintln!("error: {text}");
    1
}
