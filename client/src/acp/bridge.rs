//! The protocol's methods as calls of the daemon: one line each in a table. Must never keep what the daemon knows, but
//! for which sessions this editor has open.

mod catalogue;
mod choices;
mod commands;
mod hear;
mod lost;
mod old;
mod open;
mod prompt;
mod question;
mod session;

use super::Wishes;
use super::convert::error::{self, Error};
use super::convert::listing;
use super::lane::{Lanes, Ticket};
use super::peer::{Peer, Responder};
use crate::error::Failure;
use crate::link::Link;
use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, DeleteSessionRequest,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest, McpCapabilities,
    PromptCapabilities, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities,
    SessionListCapabilities, SessionResumeCapabilities,
};
use catalogue::Catalogue;
use protocol::id::SessionId;
use protocol::session::SessionRpcClient;
use protocol::version::RELEASE;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use session::Open;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Sessions on one page of a list.
const PAGE: u32 = 50;

/// What stands between the editor and the daemon.
pub(super) struct Bridge {
    link: Rc<Link>,
    peer: Rc<Peer>,
    wishes: Wishes,
    catalogue: Rc<Catalogue>,
    /// Whether the editor shows notices.
    notices: Cell<bool>,
    /// Sessions that this editor has joined servers to.
    joined: RefCell<HashSet<SessionId>>,
    /// What the editor asks of each session.
    lanes: Lanes,
    /// What this editor has open.
    open: RefCell<HashMap<SessionId, Rc<Open>>>,
}

impl Bridge {
    pub(super) fn new(link: Rc<Link>, peer: Rc<Peer>, wishes: Wishes) -> Rc<Self> {
        Rc::new(Self {
            catalogue: Catalogue::new(Rc::clone(&link)),
            link,
            peer,
            wishes,
            notices: Cell::new(false),
            joined: RefCell::default(),
            lanes: Lanes::default(),
            open: RefCell::default(),
        })
    }

    /// A place behind what was asked of the same session before, for what counts in its order. Taken as messages come.
    pub(super) fn line_up(&self, method: &str, params: &Value) -> Option<Ticket> {
        let session = params["sessionId"].as_str()?;
        let ordered = matches!(
            method,
            "session/load"
                | "session/resume"
                | "session/prompt"
                | "session/close"
                | "session/delete"
                | "session/set_mode"
                | "session/set_config_option"
                | "session/cancel"
        );
        ordered.then(|| self.lanes.last(session))
    }

    /// Sees to a request. Turns, and what must follow a session's updates, are answered by whoever follows the session.
    pub(super) async fn request(
        self: Rc<Self>,
        method: &str,
        params: Value,
        reply: Responder,
        ticket: Option<Ticket>,
    ) {
        if self.waits(method, &params) {
            self.turn_of(&ticket).await;
        }
        let result = match method {
            "initialize" => self.initialize(params),
            "authenticate" => Err(error::invalid("dwell asks nobody to authenticate")),
            "session/new" => return self.create(params, reply).await,
            "session/load" => return self.load(params, reply, ticket).await,
            "session/resume" => return self.resume(params, reply, ticket).await,
            "session/prompt" => return self.prompt(params, reply, ticket).await,
            "session/list" => self.list(params).await,
            "session/close" => self.close(params).await,
            "session/delete" => self.delete(params).await,
            "session/set_mode" => self.set_mode(params).await,
            // A notification, which some send as a request.
            "session/cancel" => self.cancel(params).await.map(|()| Value::Null),
            "session/set_config_option" => self.set_option(params).await,
            other => Err(error::unknown(other)),
        };
        // The answer does not hold up what is behind.
        drop(ticket);
        reply.send(result).await;
    }

    /// Whether something begins behind what came before it. A prompt waits on its own, where a cancel finds it. What stops
    /// things, and modes, which answer what waits, do not, but for a session that is being opened.
    fn waits(&self, method: &str, params: &Value) -> bool {
        let open = || {
            let session = params["sessionId"].as_str();
            session.is_some_and(|id| self.opened(id).is_ok())
        };
        match method {
            "session/load" | "session/resume" | "session/delete" => true,
            "session/set_config_option" => !choices::is_mode(params) || !open(),
            _ => !open(),
        }
    }

    async fn turn_of(&self, ticket: &Option<Ticket>) {
        if let Some(ticket) = ticket {
            ticket.turn().await;
        }
    }

    /// Sees to a notification; one that nobody knows is none of ours.
    pub(super) async fn notification(
        self: Rc<Self>,
        method: &str,
        params: Value,
        ticket: Option<Ticket>,
    ) {
        if self.waits(method, &params) {
            self.turn_of(&ticket).await;
        }
        match method {
            // Nobody waits to be told why not.
            "session/cancel" => drop(self.cancel(params).await),
            // In the protocol's spelling, and as libraries for language servers send it by themselves.
            "$/cancel_request" => self.withdraw(&params["requestId"]).await,
            "$/cancelRequest" => self.withdraw(&params["id"]).await,
            _ => {}
        }
    }

    async fn cancel(&self, params: Value) -> Result<(), Error> {
        let CancelNotification { session_id, .. } = read(params)?;
        self.opened(&session_id.0)?.cancel().await;
        Ok(())
    }

    async fn withdraw(&self, request: &Value) {
        for open in self.all_open() {
            open.withdraw(|one| one.reply.is(request)).await;
            if open.commands.cancel(|one| one.is(request)) {
                open.cancel_turn().await;
            }
        }
    }

    fn all_open(&self) -> Vec<Rc<Open>> {
        self.open.borrow().values().cloned().collect()
    }

    fn initialize(&self, params: Value) -> Result<Value, Error> {
        let asked: InitializeRequest = read(params)?;
        let session = asked.client_capabilities.session;
        let notices = session.and_then(|session| session.notices);
        self.notices.set(notices.is_some());
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions);
        // Whatever was asked for: this is what is spoken here, and the editor decides whether it will do.
        answer(
            InitializeResponse::new(ProtocolVersion::V1)
                .agent_capabilities(capabilities)
                .agent_info(Implementation::new("dwell", RELEASE).title("dwell".to_owned())),
        )
    }

    async fn list(&self, params: Value) -> Result<Value, Error> {
        let asked: ListSessionsRequest = read(params)?;
        let cwd = asked.cwd.as_deref().map(text).transpose()?;
        let call = self.link.call(async |client| {
            let (cwd, cursor) = (cwd.clone(), asked.cursor.clone());
            SessionRpcClient::list(client, cwd, None, None, Some(PAGE), cursor).await
        });
        answer(listing::page(call.await.map_err(error::from)?))
    }

    /// The protocol has a session's work end with it; the session itself stays in the daemon.
    async fn close(&self, params: Value) -> Result<Value, Error> {
        let CloseSessionRequest { session_id, .. } = read(params)?;
        let open = self.opened(&session_id.0)?;
        open.cancel().await;
        self.part(&open.id).await;
        self.shut(&open.id).await;
        Ok(json!({}))
    }

    async fn delete(&self, params: Value) -> Result<Value, Error> {
        let DeleteSessionRequest { session_id, .. } = read(params)?;
        let id = SessionId::from(&*session_id.0);
        self.shut(&id).await;
        let call = self
            .link
            .call(async |client| SessionRpcClient::delete(client, id.clone()).await);
        call.await.map_err(error::from)?;
        Ok(json!({}))
    }

    /// Lets go of a session, and waits until what is due of it has been said.
    async fn shut(&self, id: &SessionId) {
        let open = self.open.borrow_mut().remove(id);
        if let Some(open) = open {
            open.shut().await;
        }
    }

    fn opened(&self, id: &str) -> Result<Rc<Open>, Error> {
        let open = self.open.borrow().get(id).cloned();
        open.ok_or_else(|| error::not_open(id))
    }
}

/// Parameters in the protocol's types.
fn read<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    // Nothing, and an empty list, are an empty object to those who send them.
    let params = match params {
        Value::Null => json!({}),
        Value::Array(none) if none.is_empty() => json!({}),
        params => params,
    };
    serde_json::from_value(params)
        .map_err(|why| error::invalid(format!("cannot read params: {why}")))
}

fn answer(result: impl serde::Serialize) -> Result<Value, Error> {
    let result = serde_json::to_value(result);
    result.map_err(|why| error::from(Failure::new(format!("cannot write the answer: {why}"))))
}

/// A directory as the daemon names it.
fn text(path: &Path) -> Result<String, Error> {
    // Without a slash at its end.
    let plain: PathBuf = path.components().collect();
    let text = plain.to_str().filter(|_| path.is_absolute());
    let wrong = || error::invalid(format!("not an absolute path: {}", path.display()));
    text.map(str::to_owned).ok_or_else(wrong)
}
