//! Tools that clients offer for a session and run themselves, such as an editor's own. They are there as long as the
//! connection that offered them; must never keep one alive, nor know what it speaks.

use crate::toolbox::Toolbox;
use crate::toolbox::builtin::capture::bounded;
use crate::toolbox::tool::{Call, Outcome, Tool};
use futures_util::future::BoxFuture;
use protocol::id::{CallId, SessionId};
use protocol::tool::{ProvidedTool, ToolAsked};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The client at the other end, as tools need it.
pub trait Offerer: Send + Sync {
    /// What it is called.
    fn name(&self) -> String;
    /// Whether it has gone.
    fn is_gone(&self) -> bool;
    /// Resolves when it has gone.
    fn gone(&self) -> BoxFuture<'_, ()>;
    /// Asks it to run a call; false when it has gone.
    fn ask(&self, asked: ToolAsked) -> BoxFuture<'_, bool>;
}

/// What all clients offer; a cheap handle. The locks are held for look-ups only.
#[derive(Clone, Default)]
pub struct Provided(Arc<Table>);

#[derive(Default)]
struct Table {
    offers: Mutex<HashMap<SessionId, Vec<Offer>>>,
    /// Calls that a client runs. One that nobody waits for any more takes itself out.
    waiting: Mutex<HashMap<CallId, Waiting>>,
}

/// What one connection offers for one session.
#[derive(Clone)]
struct Offer {
    connection: u64,
    tools: Vec<Tool>,
    of: Arc<dyn Offerer>,
}

struct Waiting {
    connection: u64,
    answer: oneshot::Sender<Map<String, Value>>,
}

impl Provided {
    /// Puts these in the place of what the connection offered for the session before. Says why when one cannot work; then
    /// what was offered before stays.
    pub fn offer(
        &self,
        session: &SessionId,
        connection: u64,
        of: &Arc<dyn Offerer>,
        provided: Vec<ProvidedTool>,
    ) -> Result<(), String> {
        let tools: Vec<Tool> = provided
            .iter()
            .map(|one| self.tool(one, connection, of))
            .collect();
        let mut trial = Toolbox::new();
        tools
            .iter()
            .try_for_each(|tool| trial.try_add(tool.clone()))?;
        let mut offers = lock(&self.0.offers);
        offers.retain(|_, of_session| {
            of_session.retain(|offer| !offer.of.is_gone());
            !of_session.is_empty()
        });
        let of_session = offers.entry(session.clone()).or_default();
        of_session.retain(|offer| offer.connection != connection);
        of_session.push(Offer {
            connection,
            tools,
            of: Arc::clone(of),
        });
        Ok(())
    }

    /// The session's tools, with those that clients offer over them.
    pub fn over(&self, session: &SessionId, toolbox: Arc<Toolbox>) -> Arc<Toolbox> {
        let offers = lock(&self.0.offers);
        let there = offers.get(session).into_iter().flatten();
        let there: Vec<Tool> = there
            .filter(|offer| !offer.of.is_gone())
            .flat_map(|offer| offer.tools.iter().cloned())
            .collect();
        drop(offers);
        if there.is_empty() {
            return toolbox;
        }
        let mut over = (*toolbox).clone();
        there.into_iter().for_each(|tool| over.add(tool));
        Arc::new(over)
    }

    /// A client's result of a call that it was asked to run. False when it was not, or when nobody waits any more.
    pub fn answer(&self, connection: u64, call: &CallId, result: Map<String, Value>) -> bool {
        let mut waiting = lock(&self.0.waiting);
        let own = waiting
            .get(call)
            .is_some_and(|waiting| waiting.connection == connection);
        let waiting = own.then(|| waiting.remove(call)).flatten();
        waiting.is_some_and(|waiting| waiting.answer.send(result).is_ok())
    }

    fn tool(&self, provided: &ProvidedTool, connection: u64, of: &Arc<dyn Offerer>) -> Tool {
        let (this, name, of) = (self.clone(), provided.name.clone(), Arc::clone(of));
        let handler = move |call: Call, arguments: Map<String, Value>| {
            run(
                this.clone(),
                connection,
                Arc::clone(&of),
                name.clone(),
                call,
                arguments,
            )
        };
        Tool::provided(provided).source("client").handler(handler)
    }
}

/// It may take as long as it likes: whoever waits for it can cancel.
async fn run(
    provided: Provided,
    connection: u64,
    of: Arc<dyn Offerer>,
    name: String,
    call: Call,
    arguments: Map<String, Value>,
) -> Outcome {
    // Of all sessions: a connection may offer tools for several.
    let id = CallId::from(format!("{}.{}", call.session, call.call));
    let (answer, answered) = oneshot::channel();
    let waiting = Waiting { connection, answer };
    lock(&provided.0.waiting).insert(id.clone(), waiting);
    let _entry = Entry(&provided, id.clone());
    let asked = ToolAsked {
        session: call.session.clone(),
        call: id.clone(),
        name: name.clone(),
        arguments,
    };
    let lost = || format!("{} has gone, which offered {name}", of.name());
    if !of.ask(asked).await {
        return Err(lost());
    }
    tokio::select! {
        result = answered => match result {
            Ok(result) => Ok(bounded(&call, result).await),
            Err(_) => Err(lost()),
        },
        () = of.gone() => Err(lost()),
        () = call.cancel.cancelled() => Err("cancelled".to_owned()),
    }
}

/// A call that is waited for, while it is.
struct Entry<'a>(&'a Provided, CallId);

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        lock(&self.0.0.waiting).remove(&self.1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
