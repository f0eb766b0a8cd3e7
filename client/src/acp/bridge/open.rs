//! Opening sessions for the editor: new ones, and those that are there, with their past or without.

use super::session::{From, Open};
use super::{Bridge, answer, read, text};
use crate::acp::convert::error::{self, Error};
use crate::acp::convert::servers;
use crate::acp::lane::Ticket;
use crate::acp::peer::Responder;
use crate::error::Failure;
use crate::{agent, open, trust};
use agent_client_protocol_schema::v1::{
    LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse,
};
use protocol::event::Level;
use protocol::id::SessionId;
use protocol::session::{Session, SessionRpcClient};
use serde_json::{Map, Value};
use std::rc::Rc;
use tokio::task::spawn_local;

impl Bridge {
    pub(super) async fn create(self: &Rc<Self>, params: Value, reply: Responder) {
        match self.made(params).await {
            Ok((open, result, unjoined)) => {
                reply.send(Ok::<_, Error>(result)).await;
                self.introduce(&open, &unjoined).await;
            }
            Err(error) => reply.send(Err::<(), _>(error)).await,
        }
    }

    async fn made(&self, params: Value) -> Result<(Rc<Open>, Value, Vec<String>), Error> {
        let asked: NewSessionRequest = read(params)?;
        let cwd = text(&asked.cwd)?;
        self.catalogue.look(&cwd);
        let wishes = &self.wishes;
        let made = async {
            let agent = agent::settle(&self.link, &cwd, &wishes.agent, None).await?;
            let make = || open::create_as(&self.link, &cwd, &wishes.model, None, agent.clone());
            match make().await {
                // One that was made all the same is empty, and nobody knows it.
                Err(failure) if failure.is_disconnect() => make().await,
                made => made,
            }
        };
        let session = made.await.map_err(error::from)?;
        let (servers, unjoined) = servers::of(&asked.mcp_servers);
        if !servers.is_empty()
            && let Err(error) = self.join(&session.id, servers).await
        {
            // Nobody knows it yet.
            let deleted =
                async |client: &_| SessionRpcClient::delete(client, session.id.clone()).await;
            let _ = self.link.call(deleted).await;
            return Err(error);
        }
        let options = self.catalogue.options(&session, Default::default()).await;
        let open = self.follow(session, From::Now);
        let result = NewSessionResponse::new(open.id.as_str().to_owned())
            .modes(open.modes())
            .config_options(options);
        Ok((open, answer(result)?, unjoined))
    }

    /// The editor's servers are the session's from now on.
    async fn join(&self, id: &SessionId, servers: Map<String, Value>) -> Result<(), Error> {
        match servers.is_empty() {
            true => self.joined.borrow_mut().remove(id),
            false => self.joined.borrow_mut().insert(id.clone()),
        };
        let call = self
            .link
            .call(async |client| SessionRpcClient::join(client, id.clone(), servers.clone()).await);
        call.await.map(drop).map_err(error::from)
    }

    /// Those of the editor that leaves it are not.
    pub(super) async fn part(&self, id: &SessionId) {
        if self.joined.borrow().contains(id) {
            // A session that is gone has none.
            let _ = self.join(id, Map::new()).await;
        }
    }

    /// The past comes before the answer.
    pub(super) async fn load(
        self: &Rc<Self>,
        params: Value,
        reply: Responder,
        ticket: Option<Ticket>,
    ) {
        let work = async {
            let asked: LoadSessionRequest = read(params)?;
            let cwd = text(&asked.cwd)?;
            let session = self.found(&asked.session_id.0).await?;
            self.catalogue.look(&session.cwd);
            let (servers, unjoined) = servers::of(&asked.mcp_servers);
            self.join(&session.id, servers).await?;
            let seq = session.seq;
            let open = self.follow(session.clone(), From::Beginning);
            let options = self.catalogue.options(&session, open.mode.get()).await;
            let result = LoadSessionResponse::new()
                .modes(open.modes())
                .config_options(options);
            Ok((open, cwd, seq, answer(result)?, unjoined))
        };
        match work.await {
            Ok((open, cwd, seq, result, unjoined)) => {
                open.answer_after(seq, reply, result).await;
                drop(ticket);
                open.tell_place(&cwd).await;
                self.introduce(&open, &unjoined).await;
            }
            Err(error) => reply.send(Err::<(), Error>(error)).await,
        }
    }

    pub(super) async fn resume(
        self: &Rc<Self>,
        params: Value,
        reply: Responder,
        ticket: Option<Ticket>,
    ) {
        let work = async {
            let asked: ResumeSessionRequest = read(params)?;
            let cwd = text(&asked.cwd)?;
            let session = self.found(&asked.session_id.0).await?;
            self.catalogue.look(&session.cwd);
            let (servers, unjoined) = servers::of(&asked.mcp_servers);
            self.join(&session.id, servers).await?;
            // One that is open goes on as it is: the editor has heard all of it.
            let open = match self.opened(&asked.session_id.0) {
                Ok(open) => open,
                Err(_) => self.follow(session.clone(), From::Now),
            };
            let options = self.catalogue.options(&session, open.mode.get()).await;
            let result = ResumeSessionResponse::new()
                .modes(open.modes())
                .config_options(options);
            Ok((open, cwd, answer(result)?, unjoined))
        };
        match work.await {
            Ok((open, cwd, result, unjoined)) => {
                reply.send(Ok::<_, Error>(result)).await;
                drop(ticket);
                open.tell_place(&cwd).await;
                self.introduce(&open, &unjoined).await;
            }
            Err(error) => reply.send(Err::<(), Error>(error)).await,
        }
    }

    pub(super) async fn found(&self, id: &str) -> Result<Session, Error> {
        let id = SessionId::from(id);
        let call = self
            .link
            .call(async |client| SessionRpcClient::get(client, id.clone()).await);
        call.await.map_err(error::from)
    }

    /// Opens it anew if it is open already: the editor wants to hear it from there on. Its turns go on, and are answered
    /// when they end.
    fn follow(&self, session: Session, from: From) -> Rc<Open> {
        let before = self.opened(session.id.as_str()).ok();
        let (mode, turns) = match &before {
            Some(open) => (open.mode.get(), open.take_all()),
            None => Default::default(),
        };
        if let Some(open) = &before {
            drop(open.shut());
        }
        let (link, peer) = (Rc::clone(&self.link), Rc::clone(&self.peer));
        let catalogue = Rc::clone(&self.catalogue);
        let open = Open::start(link, peer, catalogue, session, from, self.notices.get());
        open.mode.set(mode);
        open.prompts.borrow_mut().extend(turns);
        let id = open.id.clone();
        self.open.borrow_mut().insert(id, Rc::clone(&open));
        open
    }

    /// What an editor may know once it knows the session: its commands, and what does not count or is not there.
    async fn introduce(&self, open: &Rc<Open>, unjoined: &[String]) {
        open.tell_commands().await;
        for note in unjoined {
            open.tell(Level::Warning, note).await;
        }
        if let Ok(Some(note)) = self.untrusted(&open.cwd).await {
            open.tell(Level::Warning, &note).await;
        }
        // Servers may take their time, and nothing else has to wait for them.
        let open = Rc::clone(open);
        spawn_local(async move { open.tell_problems().await });
    }

    async fn untrusted(&self, cwd: &str) -> Result<Option<String>, Failure> {
        let waiting = trust::waiting(&self.link, cwd).await?;
        let waiting = waiting.filter(|trust| !trust.files.is_empty());
        Ok(waiting.map(|trust| {
            format!(
                "files of .agents/ here do not count before somebody trusts them with `dwell trust`:\n{}",
                trust::files(&trust)
            )
        }))
    }
}
