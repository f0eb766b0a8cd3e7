//! The Model Context Protocol as a server speaks it: a session's tools over stdin and stdout, through the same gate as a
//! model's calls. Must never run anything itself, nor take silence for a yes.

mod calls;
mod input;
mod result;
mod wire;

use crate::approval::{self, Question, Reply};
use crate::consent::Consent;
use crate::error::Failure;
use crate::follow::Follow;
use crate::link::Link;
use crate::out;
use crate::paint::Paint;
use calls::{Calls, Made};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use input::Input;
use protocol::event::{Event, EventKind};
use protocol::id::{CallId, SessionId};
use protocol::session::Session;
use protocol::tool::{ToolList, ToolRpcClient};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::future::Future;
use std::io::IsTerminal as _;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use wire::{Incoming, fault, reply, tell};

/// Versions that are spoken, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// How often the tools are looked at anew while a client is there.
const LOOK: Duration = Duration::from_secs(30);
/// How long calls that nobody waits for any more are stopped at the end.
const END: Duration = Duration::from_secs(2);
/// How long what the client asked for before it closed stdin may take to be answered.
const REST: Duration = Duration::from_secs(10);
/// How often it is looked meanwhile whether anybody is left to read that.
const GLANCE: Duration = Duration::from_millis(200);
/// The most that one notice of progress says, in characters.
const SAID: usize = 2000;

/// What was begun has come to this.
enum Came {
    Called(String, Result<Map<String, Value>, Failure>),
    Listed(Option<Value>, Result<ToolList, Failure>),
    Nothing,
}

type Work = Pin<Box<dyn Future<Output = Came>>>;

/// One client's connection.
pub(crate) struct Server {
    link: Rc<Link>,
    session: SessionId,
    cwd: String,
    consent: Consent,
    follow: Follow,
    work: FuturesUnordered<Work>,
    calls: Calls,
    /// Questions that the client was given, by the number of the request.
    asked: HashMap<u64, Question>,
    next: u64,
    /// Whether the client puts questions to a person.
    asks: bool,
    /// The tools as the client knows them.
    known: Option<Value>,
    /// How many lists of them the client waits for.
    listing: usize,
}

/// Tells the client why there is nothing to serve: each of its requests is answered with it, until it closes stdin.
pub(crate) async fn refuse(failure: Failure) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        return Err(failure);
    }
    let why = failure.whole();
    let mut input = Input::start();
    while let Some(line) = input.next().await {
        for message in wire::messages(&line?) {
            if let Ok(Incoming::Request { id, .. }) = message {
                fault(&id, -32603, &why)?;
            }
        }
    }
    Err(failure)
}

impl Server {
    pub(crate) fn new(link: Rc<Link>, session: &Session, consent: Consent) -> Self {
        Self {
            follow: Follow::new(Rc::clone(&link), session.id.clone(), session.seq),
            link,
            session: session.id.clone(),
            cwd: session.cwd.clone(),
            consent,
            work: FuturesUnordered::new(),
            calls: Calls::default(),
            asked: HashMap::new(),
            next: 0,
            asks: false,
            known: None,
            listing: 0,
        }
    }

    /// Until the client closes stdin.
    pub(crate) async fn serve(mut self) -> Result<(), Failure> {
        let mut input = Input::start();
        // Nothing of a call may be missed.
        self.follow.attach().await?;
        let mut look = tokio::time::interval(LOOK);
        look.reset();
        loop {
            tokio::select! {
                // What is told of a call comes before its result, as the daemon sent it.
                biased;
                event = self.follow.next() => self.happened(&event?).await?,
                line = input.next() => match line {
                    Some(line) => self.take(&line?)?,
                    None => break,
                },
                Some(came) = self.work.next() => self.came(came)?,
                _ = look.tick(), if self.known.is_some() => self.list(None),
            }
        }
        self.leave().await
    }

    fn take(&mut self, line: &str) -> Result<(), Failure> {
        let messages = wire::messages(line);
        messages.into_iter().try_for_each(|one| match one {
            Ok(message) => self.message(message),
            Err(error) => fault(&Value::Null, -32700, &format!("this is no JSON: {error}")),
        })
    }

    fn message(&mut self, message: Incoming) -> Result<(), Failure> {
        match message {
            Incoming::Request { id, method, params } => self.request(id, &method, params),
            Incoming::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    self.cancelled(&params["requestId"]);
                }
                Ok(())
            }
            Incoming::Answer { id, result } => {
                self.answered(&id, result.as_ref());
                Ok(())
            }
            Incoming::Nonsense => fault(&Value::Null, -32600, "this is no request"),
        }
    }

    fn request(&mut self, id: Value, method: &str, params: Value) -> Result<(), Failure> {
        match method {
            "initialize" => {
                self.asks = params["capabilities"]["elicitation"].is_object();
                reply(&id, &self.hello(&params))
            }
            "ping" => reply(&id, &json!({})),
            "tools/list" => {
                self.list(Some(id));
                Ok(())
            }
            "tools/call" => self.call(&id, params),
            _ => fault(&id, -32601, &format!("there is no method {method} here")),
        }
    }

    fn hello(&self, params: &Value) -> Value {
        let wanted = params["protocolVersion"].as_str().unwrap_or_default();
        let version = VERSIONS.iter().find(|version| **version == wanted);
        json!({
            "protocolVersion": version.unwrap_or(&VERSIONS[0]),
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "dwell", "version": env!("CARGO_PKG_VERSION")},
            "instructions": format!(
                "The tools of dwell's session {} in {}. A call may wait for somebody's approval.",
                self.session, self.cwd
            ),
        })
    }

    /// Asks for the tools; without an id only to see whether they are others.
    fn list(&mut self, id: Option<Value>) {
        self.listing += usize::from(id.is_some());
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.work.push(Box::pin(async move {
            let listed = link
                .call(async |client| ToolRpcClient::list(client, session.clone(), None).await)
                .await;
            Came::Listed(id, listed)
        }));
    }

    fn call(&mut self, id: &Value, mut params: Value) -> Result<(), Failure> {
        let Some(name) = params["name"].as_str().map(str::to_owned) else {
            return fault(id, -32602, "name is missing: which tool?");
        };
        let arguments = match params["arguments"].take() {
            Value::Null => json!({}),
            arguments => arguments,
        };
        let token = params["_meta"].get("progressToken").cloned();
        let key = id.to_string();
        let made = Made::new(id.clone(), &name, &arguments, token);
        if !self.calls.begin(&key, made) {
            return fault(id, -32600, "there is a request of this id already");
        }
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.work.push(Box::pin(async move {
            let ran = link.call_once(async |client| {
                let (session, name) = (session.clone(), name.clone());
                // However this process ends, nobody waits for the call then.
                let (arguments, with_caller) = (Some(arguments.clone()), Some(true));
                ToolRpcClient::run(client, session, name, arguments, None, with_caller, None).await
            });
            Came::Called(key, ran.await)
        }));
        Ok(())
    }

    fn came(&mut self, came: Came) -> Result<(), Failure> {
        if let Came::Listed(Some(_), _) = &came {
            self.listing -= 1;
        }
        match came {
            Came::Nothing => Ok(()),
            Came::Called(key, result) => {
                // A tool may have changed what tools there are.
                self.list(None);
                match self.calls.end(&key).filter(|made| !made.is_cancelled()) {
                    Some(made) => reply(&made.id, &result::of(result)),
                    None => Ok(()),
                }
            }
            Came::Listed(id, Ok(list)) => {
                let tools = result::tools(&list);
                let changed = self.known.as_ref().is_some_and(|known| *known != tools);
                if let Some(id) = id {
                    self.known = Some(tools.clone());
                    return reply(&id, &json!({"tools": tools}));
                }
                if changed {
                    self.known = Some(tools);
                    return tell("notifications/tools/list_changed", &json!({}));
                }
                Ok(())
            }
            Came::Listed(Some(id), Err(failure)) => fault(&id, -32603, &failure.message),
            Came::Listed(None, Err(_)) => Ok(()),
        }
    }

    async fn happened(&mut self, event: &Event) -> Result<(), Failure> {
        if let Some(stop) = self.calls.claim(event) {
            self.stop(stop);
        }
        self.asked
            .retain(|_, question| !question.is_settled_by(event));
        match (&event.kind, Question::of(event)) {
            (EventKind::ToolOutput { call, text, .. }, _) => self.progress(call, text),
            (_, Some(question)) if self.calls.is_ours(&question.call) => self.ask(question).await,
            _ => Ok(()),
        }
    }

    fn progress(&mut self, call: &CallId, text: &str) -> Result<(), Failure> {
        let Some((token, count)) = self.calls.progress(call) else {
            return Ok(());
        };
        let text: String = text.trim_end().chars().take(SAID).collect();
        let params = json!({"progressToken": token, "progress": count, "message": text});
        tell("notifications/progress", &params)
    }

    /// What was allowed is answered, else the client's person is asked, else it waits for another client of dwell.
    async fn ask(&mut self, question: Question) -> Result<(), Failure> {
        if self.consent.allows(&question.tool) {
            return approval::answer(&self.link, &question.approval, &Reply::yes()).await;
        }
        if !self.asks {
            let wait = format!(
                "waits for an approval of {}: `{} attach {}` answers it",
                question.tool,
                self.link.place().dwell(),
                self.session
            );
            return self.progress(&question.call, &wait);
        }
        self.next += 1;
        let params = json!({
            "mode": "form",
            "message": question.text(Paint::Plain),
            "requestedSchema": {
                "type": "object",
                "properties": {"allow": {"type": "boolean", "title": format!("Allow {}", question.tool)}},
                "required": ["allow"],
            },
        });
        wire::ask(self.next, "elicitation/create", &params)?;
        self.asked.insert(self.next, question);
        Ok(())
    }

    /// Only an accepted form that says so is a yes.
    fn answered(&mut self, id: &Value, result: Option<&Value>) {
        let Some(question) = id.as_u64().and_then(|id| self.asked.remove(&id)) else {
            return;
        };
        let accepted = result.is_some_and(|result| {
            result["action"] == "accept" && result["content"]["allow"] == Value::Bool(true)
        });
        let answer = match accepted {
            true => Reply::yes(),
            false => Reply::no("not allowed"),
        };
        let link = Rc::clone(&self.link);
        self.work.push(Box::pin(async move {
            // Where it cannot be sent, the question goes on waiting.
            let _ = approval::answer(&link, &question.approval, &answer).await;
            Came::Nothing
        }));
    }

    fn cancelled(&mut self, id: &Value) {
        if let Some(call) = self.calls.cancel(&id.to_string()) {
            self.stop(call);
        }
    }

    fn stop(&mut self, call: CallId) {
        let stopping = stop(Rc::clone(&self.link), self.session.clone(), call);
        self.work.push(Box::pin(async move {
            stopping.await;
            Came::Nothing
        }));
    }

    /// What the client asked for is still answered, for a while. What takes longer is stopped, and answered with that.
    async fn leave(mut self) -> Result<(), Failure> {
        if self.answer_rest(REST).await? {
            return Ok(());
        }
        let running: Vec<_> = self.calls.running().collect();
        running.into_iter().for_each(|call| self.stop(call));
        self.answer_rest(END).await.map(drop)
    }

    /// False when something is left, and nobody to wait for it or no time.
    async fn answer_rest(&mut self, limit: Duration) -> Result<bool, Failure> {
        let end = tokio::time::sleep(limit);
        tokio::pin!(end);
        let mut glance = tokio::time::interval(GLANCE);
        while self.listing > 0 || self.calls.are_due() {
            tokio::select! {
                biased;
                event = self.follow.next() => self.happened(&event?).await?,
                Some(came) = self.work.next() => self.came(came)?,
                () = &mut end => return Ok(false),
                _ = glance.tick() => if out::is_unread() {
                    return Ok(false);
                },
            }
        }
        Ok(true)
    }
}

async fn stop(link: Rc<Link>, session: SessionId, call: CallId) {
    let stopped = link
        .call(async |client| ToolRpcClient::cancel(client, session.clone(), call.clone()).await);
    // A daemon that is gone has stopped it.
    let _ = stopped.await;
}
