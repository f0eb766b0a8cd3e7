//! One server: started when it is needed and anew when it has ended, and what it offered last. Must never start over and
//! over without a pause, nor keep who asks longer than a start may take.

use super::held;
use super::info::{Health, ServerInfo};
use crate::toolbox::BoxFuture;
use crate::toolbox::source::mcp::config::Config;
use crate::toolbox::source::mcp::{self, Around, Connection, Declared, Failure, Inventory};
use crate::toolbox::tool::Tool;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The pause before the second start after a failure; each further one doubles it. The first start is at once.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A pause shorter than this is waited for by a call; in a longer one it is refused.
const PATIENCE: Duration = Duration::from_secs(1);
/// A connection that lived so long counts as one that works.
const WORKS: Duration = Duration::from_secs(60);
/// News of lists that come closer together are one.
const NEWS: Duration = Duration::from_millis(200);

pub(super) struct Server {
    pub(super) config: Config,
    around: Around,
    this: Weak<Server>,
    /// Held for a look only.
    state: Mutex<State>,
    changes: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Connection>>,
    /// The start under way.
    attempt: Option<Attempt>,
    /// What is left of earlier ones is stopped with the next.
    task: Option<AbortHandle>,
    /// When the last start was begun.
    started: Option<Instant>,
    /// How often it has failed in a row.
    failures: u32,
    not_before: Option<Instant>,
    /// It did not answer in time when it was last started: no turn waits for it again.
    hangs: bool,
    inventory: Arc<Inventory>,
    /// The tools of that.
    declared: Arc<Declared>,
    /// Why it does not run, for people.
    problem: Option<String>,
}

#[derive(Clone)]
struct Attempt {
    begun: Instant,
    over: CancellationToken,
}

impl Server {
    pub(super) fn new(config: Config, around: Around, changes: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            config,
            around,
            this: this.clone(),
            state: Mutex::default(),
            changes,
        })
    }

    /// Starts it where it does not run and may be started. Gives what a turn waits for, which ends in time.
    pub(super) fn wake(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let attempt = {
            let mut state = held(&self.state);
            let pausing = state.not_before.is_some_and(|until| Instant::now() < until);
            if state.running().is_some() || (state.attempt.is_none() && pausing) {
                return None;
            }
            let hangs = state.hangs;
            let attempt = self.begin(&mut state);
            (!hangs).then_some(attempt)?
        };
        let limit = self.around.settings.wait();
        Some(async move {
            tokio::select! {
                () = attempt.over.cancelled() => {}
                () = sleep_until(attempt.begun + limit) => {}
            }
        })
    }

    /// The start under way; begun if there is none.
    fn begin(&self, state: &mut State) -> Attempt {
        if let Some(attempt) = &state.attempt {
            return attempt.clone();
        }
        let attempt = Attempt {
            begun: Instant::now(),
            over: CancellationToken::new(),
        };
        state.attempt = Some(attempt.clone());
        state.started = Some(attempt.begun);
        let over = attempt.over.clone().drop_guard();
        let (this, config, around) = (self.this.clone(), self.config.clone(), self.around.clone());
        let task = tokio::spawn(run(this, config, around, over));
        state.task = Some(task.abort_handle());
        self.changed();
        attempt
    }

    fn came(&self, opened: Result<(Connection, Inventory), Missed>) -> Option<Arc<Connection>> {
        let mut state = held(&self.state);
        state.attempt = None;
        self.changed();
        match opened {
            Ok((connection, inventory)) => {
                let connection = Arc::new(connection);
                (state.problem, state.hangs) = (None, false);
                state.offers(&self.config, inventory);
                state.live = Some(Arc::clone(&connection));
                Some(connection)
            }
            Err(Missed { why, hangs }) => {
                state.hangs = hangs;
                state.failed(&self.config.name, why);
                None
            }
        }
    }

    fn offers(&self, inventory: Inventory) {
        held(&self.state).offers(&self.config, inventory);
        self.changed();
    }

    fn ended(&self, how: String) {
        held(&self.state).failed(&self.config.name, how);
        self.changed();
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets go of it, as a person asked: the next start is at once.
    pub(super) async fn stop(&self) {
        let ending = {
            let mut state = held(&self.state);
            if let Some(task) = state.task.take() {
                task.abort();
            }
            let live = state.live.take();
            *state = State::default();
            live.map(|live| live.end())
        };
        self.changed();
        if let Some(end) = ending {
            end.came().await;
        }
    }

    /// The tools it offered last.
    pub(super) fn tools(&self) -> Vec<Tool> {
        let declared = Arc::clone(&held(&self.state).declared);
        let server = self.this.upgrade().map(|this| this as Arc<dyn mcp::Server>);
        let tools = server.map(|server| declared.tools(&server).collect());
        tools.unwrap_or_default()
    }

    /// What is wrong with it, and with what it offers.
    pub(super) fn problems(&self) -> Vec<String> {
        let state = held(&self.state);
        let starting = state.attempt.is_some() && state.problem.is_none();
        let waits = starting.then(|| {
            let name = &self.config.name;
            format!(
                "the MCP server {name} has not answered yet; what it offers is there once it has"
            )
        });
        let own = state.problem.clone().or(waits).into_iter();
        let offered = state
            .inventory
            .problems
            .iter()
            .chain(&state.declared.problems);
        own.chain(offered.cloned()).collect()
    }

    pub(super) fn info(&self) -> ServerInfo {
        let problems = self.problems();
        let state = held(&self.state);
        let health = match (&state.live, &state.attempt, &state.problem) {
            (Some(_), _, _) => Health::Ready,
            (None, _, Some(_)) => Health::Failed,
            (None, Some(_), None) => Health::Starting,
            (None, None, None) => Health::Idle,
        };
        ServerInfo {
            name: self.config.name.clone(),
            health,
            about: state.inventory.about.clone(),
            tools: state.declared.names().map(str::to_owned).collect(),
            prompts: state.inventory.prompts.clone(),
            resources: state.inventory.resources.clone(),
            problems,
        }
    }

    async fn connection(&self) -> Result<Arc<Connection>, String> {
        // Twice: a short pause may stand before the start.
        for _ in 0..2 {
            let attempt = {
                let mut state = held(&self.state);
                if let Some(live) = state.running() {
                    return Ok(live);
                }
                match state.pause()? {
                    Some(until) => Err(until),
                    None => Ok(self.begin(&mut state)),
                }
            };
            match attempt {
                Err(until) => sleep_until(until).await,
                Ok(attempt) => {
                    attempt.over.cancelled().await;
                    break;
                }
            }
        }
        let mut state = held(&self.state);
        let gone = || format!("the MCP server {} was let go", self.config.name);
        match state.running() {
            Some(live) => Ok(live),
            None => Err(state.problem.clone().unwrap_or_else(gone)),
        }
    }
}

impl mcp::Server for Server {
    fn live(&self) -> BoxFuture<'_, Result<Arc<Connection>, String>> {
        Box::pin(self.connection())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(task) = held(&self.state).task.take() {
            task.abort();
        }
    }
}

impl State {
    fn offers(&mut self, config: &Config, inventory: Inventory) {
        self.declared = Arc::new(Declared::new(config, &inventory));
        self.inventory = Arc::new(inventory);
    }

    fn running(&mut self) -> Option<Arc<Connection>> {
        self.live.clone().filter(|live| !live.has_ended())
    }

    fn failed(&mut self, name: &str, how: String) {
        let lived = self.started.map(|started| started.elapsed());
        if self.live.take().is_some() && lived.is_some_and(|lived| lived >= WORKS) {
            self.failures = 0;
        }
        self.failures += 1;
        self.not_before = pause_after(self.failures).map(|pause| Instant::now() + pause);
        tracing::warn!(server = name, failures = self.failures, "{how}");
        self.problem = Some(how);
    }

    /// Until when a call waits before a start; an error when that is too long.
    fn pause(&self) -> Result<Option<Instant>, String> {
        let Some(until) = self.not_before.filter(|_| self.attempt.is_none()) else {
            return Ok(None);
        };
        let left = until.saturating_duration_since(Instant::now());
        if left > PATIENCE {
            let why = self.problem.clone().unwrap_or_default();
            let seconds = left.as_secs_f64().ceil();
            return Err(format!("{why}; it may start again in {seconds} s"));
        }
        Ok((!left.is_zero()).then_some(until))
    }
}

/// Why a start came to nothing.
struct Missed {
    why: String,
    hangs: bool,
}

/// From a start to the end of what it gave. Whoever drops the server ends this too.
async fn run(this: Weak<Server>, config: Config, around: Around, over: DropGuard) {
    let opened = open(&config, &around).await;
    let came = this.upgrade().and_then(|server| server.came(opened));
    drop(over);
    let Some(connection) = came else {
        return;
    };
    let (end, changed) = (connection.end(), Arc::clone(&connection.changed));
    let connection = Arc::downgrade(&connection);
    loop {
        tokio::select! {
            how = end.came() => {
                if let Some(server) = this.upgrade() {
                    server.ended(how);
                }
                return;
            }
            () = changed.notified() => {}
        }
        tokio::time::sleep(NEWS).await;
        let Some(connection) = connection.upgrade() else {
            return;
        };
        let asked = timeout(around.settings.start(), connection.inventory()).await;
        match (asked, this.upgrade()) {
            (Ok(Ok(inventory)), Some(server)) => server.offers(inventory),
            (Ok(Err(why)), _) => {
                tracing::warn!(server = config.name, "its lists are not read anew: {why}")
            }
            (Err(_), _) | (_, None) => {}
        }
    }
}

async fn open(config: &Config, around: &Around) -> Result<(Connection, Inventory), Missed> {
    let limit = around.settings.start();
    let opening = async {
        let connection = Connection::open(config, around).await;
        let connection = connection.map_err(|failure| match failure {
            Failure::Login(why) | Failure::Failed(why) => why,
        })?;
        let inventory = connection.inventory().await?;
        Ok((connection, inventory))
    };
    match timeout(limit, opening).await {
        Ok(opened) => opened.map_err(|why| Missed { why, hangs: false }),
        Err(_) => Err(Missed {
            why: format!(
                "the MCP server {} did not answer within {} s of its start",
                config.name,
                limit.as_secs_f64()
            ),
            hangs: true,
        }),
    }
}

fn pause_after(failures: u32) -> Option<Duration> {
    let doublings = failures.checked_sub(2)?;
    let pause = PAUSE.saturating_mul(2_u32.saturating_pow(doublings));
    Some(pause.min(LONGEST_PAUSE))
}
