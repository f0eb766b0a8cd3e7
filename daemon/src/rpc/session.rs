//! `session/*` and `queue/*`. Must never know how a session is kept.

use super::attachments::Concerns;
use super::error::{expression, fail};
use super::{Rpc, attach, caller, detach};
use crate::session::NewSession;
use crate::store::ListQuery;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::core::server::RpcModule;
use jsonrpsee::core::{SubscriptionResult, async_trait};
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::{Extensions, PendingSubscriptionSink};
use protocol::error::{ErrorKind, RpcError};
use protocol::id::{QueuedId, SessionId};
use protocol::session::{
    Empty, Export, ExportFormat, History, QueueRpcServer, Queued, Recorded, Role, SearchHit,
    Session, SessionList, SessionRpcServer,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// One page of a list unless the client says otherwise, and the most it may say.
const PAGE: u32 = 100;
const PAGE_LIMIT: u32 = 1000;

/// The methods, with `session/attach` checked and `session/detach` widened.
pub(super) fn module(rpc: &Rpc) -> Result<RpcModule<Rpc>, RegisterMethodError> {
    let mut module = SessionRpcServer::into_rpc(rpc.clone());
    attach::check_params(&mut module)?;
    detach::widen(&mut module, "session/detach", rpc.0.attachments.clone())?;
    Ok(module)
}

#[async_trait]
impl SessionRpcServer for Rpc {
    async fn create(
        &self,
        extensions: &Extensions,
        cwd: String,
        env: Option<BTreeMap<String, String>>,
        title: Option<String>,
        provider: Option<String>,
        model: Option<String>,
        toolbox: Option<Value>,
        agent: Option<String>,
        vars: Option<BTreeMap<String, String>>,
        mcp_servers: Option<Map<String, Value>>,
    ) -> Result<Session, ErrorObjectOwned> {
        let toolbox = expression(toolbox.as_ref())?;
        check_cwd(&cwd)?;
        let new = NewSession {
            cwd,
            env,
            title,
            provider,
            model,
            toolbox,
            agent,
            vars,
            mcp_servers: mcp_servers.unwrap_or_default(),
        };
        let caller = Arc::clone(caller(extensions)?);
        // Building may ask a person for a key, or load a model: for nobody it need not go on.
        tokio::select! {
            made = self.sessions().create(new) => made.map_err(fail),
            () = caller.gone() => Err(RpcError::new(ErrorKind::Internal, "the caller has gone").into()),
        }
    }

    async fn join(
        &self,
        extensions: &Extensions,
        session: SessionId,
        mcp_servers: Map<String, Value>,
    ) -> Result<Empty, ErrorObjectOwned> {
        self.check_controls(
            extensions,
            Concerns::Session(&session),
            "name the session's MCP servers",
        )?;
        let named = self.sessions().name_servers(&session, mcp_servers).await;
        named.map(|()| Empty {}).map_err(fail)
    }

    async fn list(
        &self,
        cwd: Option<String>,
        query: Option<String>,
        archived: Option<bool>,
        limit: Option<u32>,
        cursor: Option<String>,
    ) -> Result<SessionList, ErrorObjectOwned> {
        let query = ListQuery {
            cwd,
            query,
            archived: archived.unwrap_or(false),
            limit: limit.unwrap_or(PAGE).clamp(1, PAGE_LIMIT),
            cursor,
        };
        self.sessions().list(query).await.map_err(fail)
    }

    async fn get(&self, session: SessionId) -> Result<Session, ErrorObjectOwned> {
        self.sessions().get(&session).await.map_err(fail)
    }

    async fn rename(
        &self,
        extensions: &Extensions,
        session: SessionId,
        title: String,
    ) -> Result<Recorded, ErrorObjectOwned> {
        self.check_controls(
            extensions,
            Concerns::Session(&session),
            "rename the session",
        )?;
        recorded(self.sessions().rename(&session, title).await)
    }

    async fn archive(
        &self,
        extensions: &Extensions,
        session: SessionId,
        archived: Option<bool>,
    ) -> Result<Empty, ErrorObjectOwned> {
        self.check_controls(
            extensions,
            Concerns::Session(&session),
            "archive the session",
        )?;
        let archived = archived.unwrap_or(true);
        let done = self.sessions().archive(&session, archived).await;
        done.map(|()| Empty {}).map_err(fail)
    }

    async fn delete(
        &self,
        extensions: &Extensions,
        session: SessionId,
    ) -> Result<Empty, ErrorObjectOwned> {
        self.check_controls(
            extensions,
            Concerns::Session(&session),
            "delete the session",
        )?;
        let done = self.sessions().delete(&session).await;
        done.map(|()| Empty {}).map_err(fail)
    }

    async fn fork(&self, session: SessionId, at: Option<u64>) -> Result<Session, ErrorObjectOwned> {
        self.sessions().fork(&session, at).await.map_err(fail)
    }

    async fn history(
        &self,
        session: SessionId,
        after: Option<u64>,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> Result<History, ErrorObjectOwned> {
        self.sessions()
            .history(&session, after, before, limit)
            .await
            .map_err(fail)
    }

    async fn search(
        &self,
        query: String,
        limit: Option<u32>,
    ) -> Result<Vec<SearchHit>, ErrorObjectOwned> {
        self.sessions().search(&query, limit).await.map_err(fail)
    }

    async fn export(
        &self,
        session: SessionId,
        format: ExportFormat,
    ) -> Result<Export, ErrorObjectOwned> {
        self.sessions().export(&session, format).await.map_err(fail)
    }

    async fn clear(
        &self,
        extensions: &Extensions,
        session: SessionId,
    ) -> Result<Recorded, ErrorObjectOwned> {
        self.check_controls(extensions, Concerns::Session(&session), "clear the session")?;
        recorded(self.sessions().clear(&session).await)
    }

    async fn replace(
        &self,
        extensions: &Extensions,
        session: SessionId,
        messages: Vec<Value>,
    ) -> Result<Recorded, ErrorObjectOwned> {
        let about = Concerns::Session(&session);
        self.check_controls(extensions, about, "replace the conversation")?;
        recorded(self.sessions().replace(&session, messages).await)
    }

    async fn say(
        &self,
        extensions: &Extensions,
        session: SessionId,
        text: String,
    ) -> Result<Recorded, ErrorObjectOwned> {
        self.check_controls(extensions, Concerns::Session(&session), "say something")?;
        recorded(self.sessions().say(&session, text).await)
    }

    async fn attach(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        session: SessionId,
        after: Option<u64>,
        role: Option<Role>,
    ) -> SubscriptionResult {
        let role = role.unwrap_or_default();
        self.forward(pending, extensions, session, after, role)
            .await
    }
}

#[async_trait]
impl QueueRpcServer for Rpc {
    async fn queue_list(&self, session: SessionId) -> Result<Vec<Queued>, ErrorObjectOwned> {
        self.sessions().queue(&session).await.map_err(fail)
    }

    async fn queue_remove(
        &self,
        extensions: &Extensions,
        session: SessionId,
        queued: QueuedId,
    ) -> Result<Recorded, ErrorObjectOwned> {
        self.check_controls(extensions, Concerns::Session(&session), "change the queue")?;
        recorded(self.sessions().unqueue(&session, &queued).await)
    }
}

pub(super) fn recorded(
    seq: crate::session::SessionResult<u64>,
) -> Result<Recorded, ErrorObjectOwned> {
    seq.map(|seq| Recorded { seq }).map_err(fail)
}

/// A session works in one directory for good, so what is relative to nobody knows what is refused.
fn check_cwd(cwd: &str) -> Result<(), ErrorObjectOwned> {
    if Path::new(cwd).is_absolute() {
        return Ok(());
    }
    let why = format!("cwd must be an absolute path, not {cwd:?}");
    Err(RpcError::new(ErrorKind::InvalidParams, why).into())
}
