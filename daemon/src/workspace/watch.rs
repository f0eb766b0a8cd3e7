//! Looks at a workspace's scripts as soon as one of them is edited, for as long as a session works with them.
//! Must never be needed: what counts is how the files are when a turn begins, and who cannot watch learns it then. Nothing is
//! started before a session has script tools.

use super::Workspace;
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

/// Between the first word of an edit and the look at it: an editor writes in several steps.
const SETTLE: Duration = Duration::from_millis(150);

/// By folder, who wants to know of it.
type Wanted = HashMap<PathBuf, Vec<Who>>;

/// A workspace, never held on the watcher's thread: its end waits for that thread.
#[derive(Clone)]
struct Who {
    workspace: Weak<Workspace>,
    /// Whether a look is due.
    due: Arc<AtomicBool>,
}

impl Who {
    fn is(&self, other: &Self) -> bool {
        self.workspace.ptr_eq(&other.workspace)
    }

    /// One look for all that happens within a short time.
    fn stir(self, runtime: &Handle) {
        if self.due.swap(true, Ordering::Relaxed) {
            return;
        }
        runtime.spawn(async move {
            tokio::time::sleep(SETTLE).await;
            self.due.store(false, Ordering::Relaxed);
            if let Some(workspace) = self.workspace.upgrade() {
                workspace.look().await;
            }
        });
    }
}

/// The daemon's one watcher, there while somebody watches.
#[derive(Default)]
pub(super) struct Watches(Mutex<Weak<Running>>);

struct Running {
    watcher: Mutex<RecommendedWatcher>,
    wanted: Arc<Mutex<Wanted>>,
}

/// What one workspace watches. Dropped, it watches nothing.
pub(super) struct Watch {
    running: Arc<Running>,
    folders: BTreeSet<PathBuf>,
    who: Who,
}

/// A workspace's own part: whether anybody works there, and what it watches.
#[derive(Default)]
pub(super) struct Watching {
    used: AtomicBool,
    watch: Mutex<Option<Watch>>,
}

impl Watching {
    /// A session works here.
    pub(super) fn use_it(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// Watches these folders; with none nothing is kept.
    pub(super) fn set(&self, workspace: &Arc<Workspace>, folders: BTreeSet<PathBuf>) {
        let mut watch = held(&self.watch);
        if folders.is_empty() || !self.used.load(Ordering::Relaxed) {
            *watch = None;
            return;
        }
        if watch.is_none() {
            *watch = workspace.shared.watches.watch(workspace);
        }
        if let Some(watch) = watch.as_mut() {
            watch.only(folders);
        }
    }
}

impl Watches {
    /// Nothing, where this system watches no more: then edits are seen when somebody looks.
    pub(super) fn watch(&self, who: &Arc<Workspace>) -> Option<Watch> {
        let mut running = held(&self.0);
        let running = match running.upgrade() {
            Some(known) => known,
            None => {
                let fresh = Running::start(Handle::try_current().ok()?)
                    .inspect_err(|error| tracing::info!(%error, "script tools are not watched"))
                    .ok()?;
                *running = Arc::downgrade(&fresh);
                fresh
            }
        };
        Some(Watch {
            running,
            folders: BTreeSet::new(),
            who: Who {
                workspace: Arc::downgrade(who),
                due: Arc::default(),
            },
        })
    }
}

impl Running {
    fn start(runtime: Handle) -> notify::Result<Arc<Self>> {
        let wanted: Arc<Mutex<Wanted>> = Arc::default();
        let known = Arc::clone(&wanted);
        let watcher = notify::recommended_watcher(move |event| {
            for who in concerned(&mut held(&known), event) {
                who.stir(&runtime);
            }
        })?;
        Ok(Arc::new(Self {
            watcher: Mutex::new(watcher),
            wanted,
        }))
    }
}

impl Watch {
    /// Watches these folders, those that are there, and no others.
    pub(super) fn only(&mut self, folders: BTreeSet<PathBuf>) {
        let gone: Vec<_> = self.folders.difference(&folders).cloned().collect();
        for folder in &gone {
            self.leave(folder);
        }
        let mut watcher = held(&self.running.watcher);
        for folder in folders {
            let mut wanted = held(&self.running.wanted);
            let others = wanted.get_mut(&folder);
            match others {
                Some(others) if others.iter().any(|one| one.is(&self.who)) => {}
                Some(others) => others.push(self.who.clone()),
                None => {
                    // What happens meanwhile is kept for us by the system.
                    drop(wanted);
                    if let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive) {
                        tracing::debug!(folder = %folder.display(), %error, "is not watched");
                        continue;
                    }
                    wanted = held(&self.running.wanted);
                    wanted.insert(folder.clone(), vec![self.who.clone()]);
                }
            }
            drop(wanted);
            self.folders.insert(folder);
        }
    }

    fn leave(&mut self, folder: &Path) {
        self.folders.remove(folder);
        let mut wanted = held(&self.running.wanted);
        let Some(others) = wanted.get_mut(folder) else {
            return;
        };
        others.retain(|one| !one.is(&self.who) && one.workspace.strong_count() > 0);
        if others.is_empty() {
            wanted.remove(folder);
            drop(wanted);
            // One whose folder is gone has ended by itself.
            let _ = held(&self.running.watcher).unwatch(folder);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for folder in std::mem::take(&mut self.folders) {
            self.leave(&folder);
        }
    }
}

/// Who is to look. A folder that is gone is forgotten: one that takes its place must be watched anew.
fn concerned(wanted: &mut Wanted, event: notify::Result<Event>) -> Vec<Who> {
    let mut who: Vec<Who> = Vec::new();
    let mut add = |more: &[Who]| {
        for one in more {
            if !who.iter().any(|known| known.is(one)) {
                who.push(one.clone());
            }
        }
    };
    match event {
        Ok(event) if is_a_look(event.kind) => {}
        Ok(event) if !event.need_rescan() => {
            for path in &event.paths {
                if let Some(here) = path.parent().and_then(|folder| wanted.get(folder)) {
                    add(here);
                }
                let may_be_gone = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(_));
                if may_be_gone && !path.is_dir() {
                    add(&wanted.remove(path).unwrap_or_default());
                }
            }
        }
        // What was lost may have been about anybody.
        Ok(_) | Err(_) => wanted.values().for_each(|all| add(all)),
    }
    who
}

/// Files that are opened and read, by ourselves too.
fn is_a_look(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        _ => false,
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
