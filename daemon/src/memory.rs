//! What the process gives back to the system when nothing has happened for a while: free heap, and pages of the binary
//! that only a start or a burst of work needed. Must never drop a page that was ever written.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Nothing done for this long is rest. No timer runs after it.
const REST: Duration = Duration::from_millis(200);

/// Whether anything goes on; a cheap handle. Memory is kept while something does.
#[derive(Clone, Default)]
pub struct Activity(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Something was done since the last look.
    stirred: Notify,
    working: AtomicU32,
}

/// Something that goes on until this is dropped.
pub struct Work(Activity);

impl Activity {
    /// Something was done.
    pub fn stir(&self) {
        self.0.stirred.notify_one();
    }

    /// Something begins that may take long, and rests in between.
    pub fn work(&self) -> Work {
        self.0.working.fetch_add(1, Ordering::Relaxed);
        Work(self.clone())
    }

    /// Gives memory back after each burst of work.
    pub async fn keep_small(self) {
        loop {
            sleep(REST).await;
            if self.was_stirred() {
                continue;
            }
            if self.may_give_back() {
                give_back();
            }
            self.0.stirred.notified().await;
        }
    }

    fn may_give_back(&self) -> bool {
        self.0.working.load(Ordering::Relaxed) == 0
    }

    fn was_stirred(&self) -> bool {
        use futures_util::FutureExt;
        self.0.stirred.notified().now_or_never().is_some()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.0.working.fetch_sub(1, Ordering::Relaxed);
        self.0.stir();
    }
}

fn give_back() {
    trim_heap();
    let maps = match std::fs::read_to_string("/proc/self/smaps") {
        Ok(maps) => maps,
        Err(error) => {
            tracing::debug!(%error, "pages are not given back: cannot read the process's map");
            return;
        }
    };
    for stretch in untouched(&maps) {
        drop_pages(stretch);
    }
}

#[cfg(target_env = "gnu")]
fn trim_heap() {
    // SAFETY: takes no pointer; the allocator locks what it looks at.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}

/// Addresses, from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    from: usize,
    to: usize,
}

/// Mappings of files that cannot be written and of which no page is the process's own (a relocated one would be): what
/// they hold stands in the file, byte for byte.
fn untouched(maps: &str) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut mapping = None;
    for line in maps.lines() {
        if let Some(head) = head(line) {
            mapping = head;
        } else if let Some(own) = line.strip_prefix("Anonymous:") {
            let stretch = mapping.take();
            found.extend(stretch.filter(|_| own.trim() == "0 kB"));
        }
    }
    found
}

/// A mapping's first line, and its addresses where it is a candidate: `from-to r-xp offset device inode /path`.
fn head(line: &str) -> Option<Option<Stretch>> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let stretch = Stretch {
        from: usize::from_str_radix(from, 16).ok()?,
        to: usize::from_str_radix(to, 16).ok()?,
    };
    let mode = words.next()?;
    let of_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
    let read_only = mode.starts_with('r') && mode.as_bytes().get(1) == Some(&b'-');
    let candidate = of_file && read_only && mode.ends_with('p');
    Some(candidate.then_some(stretch))
}

fn drop_pages(stretch: Stretch) {
    let at = std::ptr::without_provenance_mut::<c_void>(stretch.from);
    let length = stretch.to - stretch.from;
    // SAFETY: a private mapping of a file without a page of our own: a page that is dropped is read from the file again
    // when it is next needed, with the same content. Nothing in the process writes to it or changes its mode.
    let dropped = unsafe { rustix::mm::madvise(at, length, rustix::mm::Advice::LinuxDontNeed) };
    if let Err(error) = dropped {
        tracing::debug!(%error, "pages are not given back");
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, Stretch, give_back, untouched};

    const MAPS: &str = "\
55d000000000-55d000004000 r--p 00000000 08:01 11 /usr/bin/dwelld
Rss:                  16 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
55d000004000-55d000008000 r-xp 00004000 08:01 11 /usr/bin/dwelld (deleted)
Rss:                  16 kB
Anonymous:             0 kB
55d000008000-55d00000c000 r--p 00008000 08:01 11 /usr/bin/dwelld
Anonymous:            16 kB
55d00000c000-55d000010000 rw-p 0000c000 08:01 11 /usr/bin/dwelld
Anonymous:             0 kB
55d000010000-55d000014000 rw-p 00000000 00:00 0 [heap]
Anonymous:            16 kB
7f0000000000-7f0000004000 rw-s 00000000 08:01 12 /data/sessions.db-shm
Anonymous:             0 kB
7f0000004000-7f0000008000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
7f0000008000-7f000000c000 ---p 00000000 08:01 13 /lib/libc.so.6
Anonymous:             0 kB
";

    #[test]
    fn only_pages_that_stand_in_a_file_are_dropped() {
        let stretch = |from, to| Stretch { from, to };
        assert_eq!(
            untouched(MAPS),
            [
                stretch(0x55d0_0000_0000, 0x55d0_0000_4000),
                stretch(0x55d0_0000_4000, 0x55d0_0000_8000)
            ]
        );
    }

    #[test]
    fn work_is_no_rest_and_its_end_is_looked_at() {
        let activity = Activity::default();
        let (first, second) = (activity.work(), activity.work());
        drop(first);
        assert!(activity.was_stirred() && !activity.may_give_back());
        drop(second);
        assert!(activity.was_stirred() && activity.may_give_back());
        assert!(!activity.was_stirred(), "nothing was done since");
    }

    #[test]
    fn the_process_goes_on_with_fewer_pages() {
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
        };
        let before = resident();
        give_back();
        let after = resident();
        assert!(after < before, "{before} pages before, {after} after");
        // Code that was dropped runs again.
        assert_eq!(untouched(MAPS).len(), 2);
    }
}
