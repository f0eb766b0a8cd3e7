//! The children that providers live in: started on first use, shared, started anew when one has ended, stopped when
//! nobody has used it for a while. Must never know what is said to them.

use crate::process::Spawn;
use crate::process::mask::Mask;
use crate::stdio_rpc::{BoxFuture, CallError, Handler, Host, Live, Peer, Refusal, Streams, raw};
use protocol::plugin::{EVENT, Setup};
use protocol::unseen::is_unseen;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// How long a child may take to say what it offers.
const SETUP: Duration = Duration::from_secs(20);

/// The longest name of a provider, in bytes.
const NAME: usize = 64;

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
    /// What no child's words show.
    mask: Mask,
    /// Held for a look only; it grows with the executables that were used, which are few.
    all: Mutex<BTreeMap<PathBuf, Arc<Child>>>,
}

pub(super) struct Child {
    executable: Executable,
    /// For the timer, which must not keep it.
    this: Weak<Child>,
    stop_after: Duration,
    mask: Mask,
    /// The process, while there is one. Held while it starts, so that it starts once.
    slot: tokio::sync::Mutex<Option<Slot>>,
}

#[derive(Clone)]
struct Slot {
    live: Arc<Live>,
    providers: Arc<[String]>,
}

impl Children {
    pub(in super::super) fn new(stop_after: Duration, mask: Mask) -> Self {
        Self {
            stop_after,
            mask,
            all: Mutex::default(),
        }
    }

    pub(super) fn of(&self, executable: Executable) -> Arc<Child> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let child = all.entry(executable.path.clone()).or_insert_with(|| {
            Arc::new_cyclic(|this| Child {
                executable,
                stop_after: self.stop_after,
                this: this.clone(),
                mask: self.mask.clone(),
                slot: tokio::sync::Mutex::default(),
            })
        });
        child.clone()
    }
}

impl Host for Child {
    fn label(&self) -> &str {
        &self.executable.name
    }

    fn live(&self) -> BoxFuture<'_, Result<Arc<Live>, String>> {
        Box::pin(async { self.slot().await.map(|slot| slot.live) })
    }
}

impl Child {
    /// What it offers.
    pub(super) async fn providers(&self) -> Result<Arc<[String]>, String> {
        self.slot().await.map(|slot| slot.providers)
    }

    /// The process, started if there is none.
    async fn slot(&self) -> Result<Slot, String> {
        let mut slot = self.slot.lock().await;
        if let Some(slot) = slot.as_ref().filter(|slot| !slot.live.peer.has_ended()) {
            return Ok(slot.clone());
        }
        *slot = None;
        let started = self.start().await?;
        tokio::spawn(stop_when_idle(
            self.this.clone(),
            Arc::downgrade(&started.live),
            self.stop_after,
        ));
        *slot = Some(started.clone());
        Ok(started)
    }

    async fn start(&self) -> Result<Slot, String> {
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
        let streams = Arc::new(Streams::default());
        let listener = Arc::new(Listener(streams.clone()));
        let peer = Peer::start(name, &spawn, self.mask.clone(), listener);
        let peer = peer.map_err(|error| error.to_string())?;
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
        let names = setup.providers.into_iter().map(|one| one.name);
        let (providers, odd): (Vec<_>, Vec<_>) = names.partition(|one| can_be_typed(one));
        for one in odd {
            let shown: String = one.chars().take(NAME).collect();
            tracing::warn!(
                child = name,
                "it registered {shown:?}, which is no name for a provider, and is passed over"
            );
        }
        Ok(Slot {
            live: Arc::new(Live::new(name, peer, streams)),
            providers: providers.into(),
        })
    }
}

/// Whether people could give it behind `-p`.
fn can_be_typed(name: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || is_unseen(None, c);
    !name.is_empty() && name.len() <= NAME && !name.starts_with('-') && !name.contains(odd)
}

/// A provider's executable has nothing to ask.
struct Listener(Arc<Streams>);

impl Handler for Listener {
    fn notified<'a>(&'a self, method: &'a str, params: &'a RawValue) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if method == EVENT {
                self.0.take(params).await;
            }
        })
    }

    fn asked(
        &self,
        method: String,
        _: Box<RawValue>,
    ) -> BoxFuture<'static, Result<Value, Refusal>> {
        Box::pin(std::future::ready(Err(Refusal::no_method(&method))))
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
        let mut slot = child.slot.lock().await;
        let is_idle = live.idle_until(stop_after);
        if is_idle.is_some_and(|until| until <= Instant::now()) {
            slot.take_if(|one| Arc::ptr_eq(&one.live, &live));
            return;
        }
    }
}
