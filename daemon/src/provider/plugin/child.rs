//! The children that providers live in: started on first use, shared, started anew when one has ended, stopped when
//! nobody has used it for a while. Must never know what is said to them.

use super::route::Routes;
use crate::process::Spawn;
use crate::stdio_rpc::{CallError, Peer, raw};
use protocol::plugin::Setup;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// How long a child may take to say what it offers.
const SETUP: Duration = Duration::from_secs(20);

/// An executable that serves providers.
#[derive(Clone, Debug)]
pub(in super::super) struct Executable {
    /// What people know it by.
    pub(in super::super) name: String,
    pub(in super::super) path: PathBuf,
    pub(in super::super) env: Arc<BTreeMap<String, String>>,
    /// What a person can do when it is not there.
    pub(in super::super) hint: &'static str,
}

/// All of them, by path.
pub(in super::super) struct Children {
    stop_after: Duration,
    /// Held for a look only; it grows with the executables that were used, which are few.
    all: Mutex<BTreeMap<PathBuf, Arc<Child>>>,
}

pub(super) struct Child {
    executable: Executable,
    stop_after: Duration,
    /// The process, while there is one. Held while it starts, so that it starts once.
    live: tokio::sync::Mutex<Option<Arc<Live>>>,
}

/// A running child.
pub(super) struct Live {
    pub(super) label: String,
    pub(super) peer: Peer,
    pub(super) providers: Vec<String>,
    pub(super) routes: Arc<Routes>,
    /// Held for a look only.
    uses: Mutex<Uses>,
}

struct Uses {
    count: usize,
    /// When the last one ended.
    last: Instant,
}

impl Children {
    pub(in super::super) fn new(stop_after: Duration) -> Self {
        Self {
            stop_after,
            all: Mutex::default(),
        }
    }

    pub(super) fn of(&self, executable: Executable) -> Arc<Child> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let child = all.entry(executable.path.clone()).or_insert_with(|| {
            Arc::new(Child {
                executable,
                stop_after: self.stop_after,
                live: tokio::sync::Mutex::default(),
            })
        });
        child.clone()
    }
}

impl Child {
    pub(super) fn label(&self) -> &str {
        &self.executable.name
    }

    /// The process, started if there is none.
    pub(super) async fn live(self: &Arc<Self>) -> Result<Arc<Live>, String> {
        let mut slot = self.live.lock().await;
        if let Some(live) = slot.as_ref().filter(|live| !live.peer.has_ended()) {
            return Ok(live.clone());
        }
        *slot = None;
        let live = Arc::new(self.start().await?);
        tokio::spawn(stop_when_idle(
            Arc::downgrade(self),
            Arc::downgrade(&live),
            self.stop_after,
        ));
        *slot = Some(live.clone());
        Ok(live)
    }

    async fn start(&self) -> Result<Live, String> {
        let Executable {
            name, path, env, ..
        } = &self.executable;
        let spawn = Spawn {
            program: path.into(),
            args: Vec::new(),
            cwd: "/".into(),
            env: (**env).clone(),
            stdin: None,
            timeout: None,
        };
        let routes = Arc::new(Routes::default());
        let peer = Peer::start(name, &spawn, routes.clone()).map_err(|error| error.to_string())?;
        let nothing = raw(&json!({}));
        let setup = peer.call("plugin/setup", &nothing);
        let setup = timeout(SETUP, setup).await.map_err(|_| {
            let seconds = SETUP.as_secs();
            format!("it did not answer plugin/setup within {seconds} s")
        })?;
        let setup = setup.map_err(|error| match error {
            CallError::Gone(how) => how
                .trim_start_matches(name.as_str())
                .trim_start()
                .to_owned(),
            CallError::Refused(refusal) => refusal.message,
        })?;
        let setup: Setup = serde_json::from_str(setup.get())
            .map_err(|error| format!("what it says of itself cannot be read: {error}"))?;
        Ok(Live {
            label: name.clone(),
            peer,
            providers: setup.providers.into_iter().map(|one| one.name).collect(),
            routes,
            uses: Mutex::new(Uses {
                count: 0,
                last: Instant::now(),
            }),
        })
    }
}

impl Live {
    /// It is not idle while this lives.
    pub(super) fn using(self: &Arc<Self>) -> Use {
        self.uses(|uses| uses.count += 1);
        Use(self.clone())
    }

    /// Until when it may live if nobody uses it; none while somebody does.
    fn idle_until(&self, stop_after: Duration) -> Option<Instant> {
        self.uses(|uses| (uses.count == 0).then(|| uses.last + stop_after))
    }

    fn uses<T>(&self, look: impl FnOnce(&mut Uses) -> T) -> T {
        look(&mut self.uses.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One use of a running child.
pub(super) struct Use(Arc<Live>);

impl Drop for Use {
    fn drop(&mut self) {
        self.0.uses(|uses| {
            uses.count -= 1;
            uses.last = Instant::now();
        });
    }
}

/// One timer while the child runs. Whoever uses it just then holds it till he is done.
async fn stop_when_idle(child: Weak<Child>, live: Weak<Live>, stop_after: Duration) {
    loop {
        let Some(now) = live.upgrade().filter(|live| !live.peer.has_ended()) else {
            return;
        };
        let until = now.idle_until(stop_after);
        drop(now);
        sleep_until(until.unwrap_or_else(|| Instant::now() + stop_after)).await;
        let (Some(child), Some(live)) = (child.upgrade(), live.upgrade()) else {
            return;
        };
        let mut slot = child.live.lock().await;
        let is_idle = live.idle_until(stop_after);
        if is_idle.is_some_and(|until| until <= Instant::now()) {
            slot.take_if(|one| Arc::ptr_eq(one, &live));
            return;
        }
    }
}
