//! Tools that clients offer for a session and run themselves, such as an editor's own. They are there as long as the
//! connection that offered them; must never keep one alive, nor know what it speaks.

use crate::toolbox::Toolbox;
use crate::toolbox::builtin::capture::bounded;
use crate::toolbox::tool::{Call, Outcome, Tool};
use futures_util::future::BoxFuture;
use protocol::id::{CallId, SessionId};
use protocol::tool::{Answered, ProvidedTool, ToolAsked, ToolCancelled};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Tools that one client may offer for one session: all of them go along with every request.
const OFFERED: usize = 128;

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
    /// Tells it that nobody waits for a call any more, unless it has too much unread to be told.
    fn withdraw(&self, cancelled: ToolCancelled);
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
    answer: oneshot::Sender<Outcome>,
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
        if provided.len() > OFFERED {
            return Err(format!(
                "{} tools are more than the {OFFERED} that a client may offer for a session",
                provided.len()
            ));
        }
        let mut names = HashSet::new();
        if let Some(twice) = provided.iter().find(|one| !names.insert(&one.name)) {
            return Err(format!("two of the tools are called {:?}", twice.name));
        }
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

    /// Whether the connection offers it still: it may have taken it back while a call waited for a person.
    fn is_offered(&self, session: &SessionId, connection: u64, name: &str) -> bool {
        let offers = lock(&self.0.offers);
        let mut own = offers.get(session).into_iter().flatten();
        own.any(|offer| {
            offer.connection == connection && offer.tools.iter().any(|tool| tool.name() == name)
        })
    }

    /// A client's result of a call that it was asked to run. False when it was not, or when nobody waits any more.
    pub fn answer(&self, connection: u64, call: &CallId, answered: Answered) -> bool {
        let mut waiting = lock(&self.0.waiting);
        let own = waiting
            .get(call)
            .is_some_and(|waiting| waiting.connection == connection);
        let waiting = own.then(|| waiting.remove(call)).flatten();
        waiting.is_some_and(|waiting| waiting.answer.send(outcome(answered)).is_ok())
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
    if !of.is_gone() && !provided.is_offered(&call.session, connection, &name) {
        return Err(format!("{} offers {name} no more", of.name()));
    }
    // Of all sessions: a connection may offer tools for several.
    let id = CallId::from(format!("{}.{}", call.session, call.call));
    let (answer, answered) = oneshot::channel();
    let waiting = Waiting { connection, answer };
    lock(&provided.0.waiting).insert(id.clone(), waiting);
    let mut entry = Entry {
        provided: &provided,
        of: None,
        cancelled: ToolCancelled {
            session: call.session.clone(),
            call: id.clone(),
        },
    };
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
    entry.of = Some(&of);
    tokio::select! {
        result = answered => match result {
            Ok(result) => Ok(bounded(&call, result?).await),
            Err(_) => Err(lost()),
        },
        () = of.gone() => Err(lost()),
        () = call.cancel.cancelled() => Err("cancelled".to_owned()),
    }
}

/// What a client's answer means: a failing tool says so by `error`, or by `ok`.
fn outcome(answered: Answered) -> Outcome {
    match answered {
        Answered::Failed(why) => Err(why),
        Answered::Gave(result) if result.get("ok") == Some(&Value::Bool(false)) => {
            let why = result.get("error").and_then(Value::as_str);
            Err(why
                .unwrap_or("the tool failed, and does not say why")
                .to_owned())
        }
        Answered::Gave(result) => Ok(result),
    }
}

/// A call that is waited for, while it is. Whoever works on it is told when that ends without its answer.
struct Entry<'a> {
    provided: &'a Provided,
    /// Who was asked, once it was.
    of: Option<&'a Arc<dyn Offerer>>,
    cancelled: ToolCancelled,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let unanswered = lock(&self.provided.0.waiting).remove(&self.cancelled.call);
        if let (Some(_), Some(of)) = (unanswered, self.of) {
            of.withdraw(self.cancelled.clone());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
