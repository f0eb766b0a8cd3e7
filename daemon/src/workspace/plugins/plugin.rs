//! One plugin: its process, started when it is needed and anew when it has ended, and what it said it adds.
//! Must never keep a session waiting longer than its deadlines, nor start over and over without a pause.

use super::calls::Calls;
use super::find::Found;
use super::listen::Ear;
use super::said::{self, Said};
use super::{Means, OnFailure, held};
use crate::process::Spawn;
use crate::stdio_rpc::{BoxFuture, CallError, Host, Live, Peer, Streams, raw};
use protocol::id::SessionId;
use protocol::plugin::{Setup, SetupParams};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// The pause before the second start after a failure; each further one doubles it. The first start is at once.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A pause shorter than this is waited for; in a longer one who asks is refused.
const PATIENCE: Duration = Duration::from_secs(1);
/// A process that lived so long counts as one that works.
const WORKS: Duration = Duration::from_secs(60);

pub(in crate::workspace) struct Plugin {
    pub(super) found: Found,
    pub(super) name: String,
    label: String,
    cwd: PathBuf,
    pub(super) means: Means,
    /// The one that needed it first.
    session: Option<SessionId>,
    this: Weak<Plugin>,
    /// Held while it starts, so that it starts once.
    slot: tokio::sync::Mutex<Slot>,
    /// What it works on.
    pub(super) calls: Calls,
    /// Held by each piece of work that may take as long as it likes.
    work: Arc<()>,
    /// What it said last, in two parts. Held for a look only.
    setup: Mutex<Arc<Setup>>,
    told: Mutex<Told>,
    /// Why it does not run, for people. Held for a look only.
    problem: Mutex<Option<String>>,
    changes: Arc<AtomicU64>,
}

/// What is known of the hooks that it may have.
#[derive(Default)]
struct Told {
    /// What is wrong with what it said.
    faults: Vec<String>,
    /// Why hooks of it may be missing.
    unguarded: Option<String>,
    /// Whether it has said what it adds since it was last stopped.
    once: bool,
    /// Whether it had hooks when it last said it, or the file that was there before had.
    guards: bool,
}

#[derive(Default)]
struct Slot {
    live: Option<Arc<Live>>,
    started: Option<Instant>,
    /// How often it has failed in a row.
    failures: u32,
    /// When it may start again.
    not_before: Option<Instant>,
}

impl Plugin {
    pub(super) fn new(
        found: Found,
        cwd: PathBuf,
        means: Means,
        changes: Arc<AtomicU64>,
        session: Option<SessionId>,
    ) -> Arc<Self> {
        let name = found.name();
        Arc::new_cyclic(|this| Self {
            label: format!("the plugin {name}"),
            name,
            found,
            cwd,
            means,
            session,
            this: this.clone(),
            slot: tokio::sync::Mutex::default(),
            calls: Calls::default(),
            work: Arc::default(),
            setup: Mutex::default(),
            told: Mutex::default(),
            problem: Mutex::default(),
            changes,
        })
    }

    /// It works on what has no deadline, while this lives: silence then is no sign that it hangs.
    pub(super) fn works(&self) -> Arc<()> {
        Arc::clone(&self.work)
    }

    pub(super) fn is_at_work(&self) -> bool {
        Arc::strong_count(&self.work) > 1
    }

    /// As tools and providers name it.
    pub(super) fn source(&self) -> String {
        format!("plugin {}", self.name)
    }

    /// What it said last that it adds.
    pub(super) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&held(&self.setup))
    }

    pub(super) fn has_provider(&self, name: &str) -> bool {
        self.setup().providers.iter().any(|one| one.name == name)
    }

    /// Why it does not run.
    pub(super) fn problem(&self) -> Option<String> {
        held(&self.problem).clone()
    }

    /// What is wrong with what it said.
    pub(super) fn faults(&self) -> Vec<String> {
        let faults = held(&self.told).faults.clone();
        let named = |fault: String| format!("{}: {fault}", self.label);
        faults.into_iter().map(named).collect()
    }

    /// Why calls may lack a guard of it.
    pub(super) fn unguarded(&self) -> Option<String> {
        match self.means.on_failure() {
            OnFailure::Refuse => held(&self.told).unguarded.clone(),
            OnFailure::Ignore => None,
        }
    }

    /// It stands in the place of one that had hooks, or may have: while it does not work, they are missing.
    pub(super) fn succeeds(&self, other: &Self) {
        let guards = held(&other.told).guards;
        held(&self.told).guards |= guards;
    }

    /// What it adds is another from now on.
    pub(super) fn update(&self, said: Said) {
        let lost = said
            .lost_hook
            .map(|fault| format!("{}: {fault}", self.label));
        *held(&self.told) = Told {
            faults: said.faults,
            unguarded: lost,
            once: true,
            guards: !said.setup.hooks.is_empty(),
        };
        self.change(said.setup);
    }

    fn change(&self, setup: Setup) {
        *held(&self.setup) = Arc::new(setup);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Its process has ended by itself.
    pub(super) fn ended(&self, how: String) {
        *held(&self.problem) = Some(how);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts it for the first time. A failure is kept for people.
    pub(super) async fn begin(&self) {
        let Err(why) = self.live().await else { return };
        let found = self.found.clone();
        let looking = tokio::task::spawn_blocking(move || found.may_guard());
        let guards = looking.await.unwrap_or(true);
        let mut told = held(&self.told);
        if (guards || told.guards) && !told.once {
            told.unguarded = Some(why);
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends its process, as a person asked: the next start is at once, and what it added is forgotten but for its
    /// providers, with which sessions go on.
    pub(super) async fn stop(&self) {
        let mut slot = self.slot.lock().await;
        if let Some(live) = slot.live.take() {
            live.peer.stop();
            live.peer.ended().await;
        }
        *slot = Slot::default();
        let providers = self.setup().providers.clone();
        let guards = held(&self.told).guards;
        *held(&self.told) = Told {
            guards,
            ..Told::default()
        };
        self.change(Setup {
            providers,
            ..Setup::default()
        });
    }

    async fn running(&self) -> Result<Arc<Live>, String> {
        let mut slot = self.slot.lock().await;
        if let Some(how) = slot.live.as_ref().and_then(|live| live.peer.fate()) {
            self.failed(&mut slot, how);
        }
        if let Some(live) = &slot.live {
            return Ok(Arc::clone(live));
        }
        self.pause(&slot).await?;
        slot.started = Some(Instant::now());
        match self.start().await {
            Ok(live) => {
                if held(&self.problem).take().is_some() {
                    self.changes.fetch_add(1, Ordering::Relaxed);
                }
                slot.live = Some(Arc::clone(&live));
                Ok(live)
            }
            Err(why) => {
                self.failed(&mut slot, why.clone());
                Err(why)
            }
        }
    }

    fn failed(&self, slot: &mut Slot, how: String) {
        let lived = slot.started.map(|started| started.elapsed());
        if lived.is_some_and(|lived| lived >= WORKS) {
            slot.failures = 0;
        }
        slot.live = None;
        slot.failures += 1;
        slot.not_before = pause_after(slot.failures).map(|pause| Instant::now() + pause);
        tracing::warn!(plugin = self.name, failures = slot.failures, "{how}");
        self.ended(how);
    }

    async fn pause(&self, slot: &Slot) -> Result<(), String> {
        let Some(until) = slot.not_before else {
            return Ok(());
        };
        let left = until.saturating_duration_since(Instant::now());
        if left > PATIENCE {
            let why = self.problem().unwrap_or_default();
            let seconds = left.as_secs_f64().ceil();
            return Err(format!("{why}; it may start again in {seconds} s"));
        }
        sleep_until(until).await;
        Ok(())
    }

    async fn start(&self) -> Result<Arc<Live>, String> {
        let command = self.found.command(&self.means.sdk);
        let (program, args) =
            command.map_err(|why| format!("{} did not start: {why}", self.label))?;
        let spawn = Spawn {
            program,
            args,
            cwd: self.cwd.clone(),
            env: self.env(),
            stdin: None,
            timeout: None,
        };
        let streams = Arc::new(Streams::default());
        let ear = Arc::new(Ear::new(
            self.this.clone(),
            &self.means,
            &self.name,
            &streams,
        ));
        let peer = Peer::start(&self.label, &spawn, self.means.mask.clone(), ear.clone())
            .map_err(|error| format!("{} did not start: {error}", self.label))?;
        let live = Arc::new(Live::new(&self.label, peer, streams));
        ear.speaks_to(&live);
        let said = self.ask_setup(&live.peer).await?;
        self.update(said);
        Ok(live)
    }

    async fn ask_setup(&self, peer: &Peer) -> Result<Said, String> {
        let params = raw(&SetupParams {
            session: self.session.clone(),
            cwd: self.cwd.display().to_string(),
        });
        let (label, limit) = (&self.label, self.means.setup());
        let asked = timeout(limit, peer.call("plugin/setup", &params)).await;
        let asked = asked.map_err(|_| {
            let seconds = limit.as_secs_f64();
            format!("{label} did not answer plugin/setup within {seconds} s")
        })?;
        let setup = asked.map_err(|error| match error {
            CallError::Gone(how) => how,
            CallError::Refused(refusal) => {
                format!("{label} cannot be set up: {}", refusal.message)
            }
        })?;
        said::read(setup.get())
            .map_err(|error| format!("what {label} says that it adds cannot be read: {error}"))
    }

    /// The daemon's environment, with the SDKs where their languages look, and no cache of bytecode in a folder that is
    /// trusted as it is.
    fn env(&self) -> BTreeMap<String, String> {
        let mut env = (*self.means.env).clone();
        let sdk = self.means.sdk.display().to_string();
        let python = match env.get("PYTHONPATH").filter(|path| !path.is_empty()) {
            Some(path) => format!("{sdk}:{path}"),
            None => sdk.clone(),
        };
        let own = [
            ("PYTHONPATH", python),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("DWELL_SDK", sdk),
        ];
        env.extend(own.map(|(name, value)| (name.to_owned(), value)));
        env
    }
}

impl Host for Plugin {
    fn label(&self) -> &str {
        &self.label
    }

    fn live(&self) -> BoxFuture<'_, Result<Arc<Live>, String>> {
        Box::pin(self.running())
    }
}

fn pause_after(failures: u32) -> Option<Duration> {
    let doublings = failures.checked_sub(2)?;
    let pause = PAUSE.saturating_mul(2_u32.saturating_pow(doublings));
    Some(pause.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_PAUSE, PAUSE, pause_after};

    #[test]
    fn first_failure_costs_no_pause_and_further_ones_double_it_up_to_the_longest() {
        let pauses = [1, 2, 3, 4, 40].map(pause_after);
        let expected = [
            None,
            Some(PAUSE),
            Some(PAUSE * 2),
            Some(PAUSE * 4),
            Some(LONGEST_PAUSE),
        ];
        assert_eq!(pauses, expected);
    }
}
