//! How the daemon is linked: its start-up relocations packed, where whatever starts it can read them. They are a megabyte
//! otherwise, and every page of it is read at each start. Must never make a build that its own machine cannot start.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_native = var("TARGET") == var("HOST");
    if is_native && reads_packed() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// The loader is glibc's, and knows them: since 2.36.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn reads_packed() -> bool {
    unsafe extern "C" {
        fn gnu_get_libc_version() -> *const std::ffi::c_char;
    }
    // SAFETY: it gives a constant that ends in NUL.
    let version = unsafe { std::ffi::CStr::from_ptr(gnu_get_libc_version()) };
    let version = version.to_string_lossy();
    let mut numbers = version
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (major, minor) >= (2, 36)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn reads_packed() -> bool {
    false
}
