//! `tool/*` and `toolbox/*`. Must never make a JSON-RPC error of a failing tool: that is a result.

use super::Rpc;
use super::attachments::Concerns;
use super::caller;
use super::error::{expression, fail};
use super::provide::offerer;
use crate::session::{Audience, SessionError};
use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::error::{ErrorKind, RpcError};
use protocol::id::{CallId, SessionId};
use protocol::session::Empty;
use protocol::tool::{
    Answered, ProvidedTool, ToolCheck, ToolList, ToolResult, ToolRpcServer, ToolboxInfo,
    ToolboxRpcServer,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

#[async_trait]
impl ToolRpcServer for Rpc {
    async fn list(
        &self,
        session: SessionId,
        toolbox: Option<Value>,
    ) -> Result<ToolList, ErrorObjectOwned> {
        let toolbox = expression(toolbox.as_ref())?;
        let list = self.sessions().tools(&session, toolbox.as_ref()).await;
        list.map_err(fail)
    }

    async fn run(
        &self,
        extensions: &Extensions,
        session: SessionId,
        name: String,
        arguments: Option<Value>,
        toolbox: Option<Value>,
        with_caller: Option<bool>,
        tell: Option<bool>,
    ) -> Result<Map<String, Value>, ErrorObjectOwned> {
        let toolbox = expression(toolbox.as_ref())?;
        let about = || Concerns::Session(&session);
        let context = self.check_controls(extensions, about(), "run a tool")?;
        let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
        let cancel = CancellationToken::new();
        let audience = match tell {
            Some(true) => Audience::Model,
            Some(false) | None => Audience::Caller,
        };
        let sessions = self.sessions();
        let running = sessions.run_tool(
            &session,
            &name,
            arguments,
            toolbox,
            audience,
            cancel.clone(),
        );
        // Whoever takes the call back, or ties it to himself and has gone, gets no result.
        let _tied = cancel.drop_guard();
        let result = match with_caller {
            Some(true) => {
                tokio::select! {
                    result = running => result,
                    () = context.gone() => Err(SessionError::Stopping),
                }
            }
            Some(false) | None => running.await,
        };
        let result = result.map_err(fail)?;
        // What a client that follows the session sees of the call comes before its result.
        if self.0.attachments.follows(context.id(), about())
            && let Ok(now) = self.sessions().get(&session).await
        {
            let attachments = &self.0.attachments;
            attachments.delivered(context.id(), about(), now.seq).await;
        }
        Ok(result)
    }

    async fn cancel(
        &self,
        extensions: &Extensions,
        session: SessionId,
        call: CallId,
    ) -> Result<Empty, ErrorObjectOwned> {
        self.check_controls(extensions, Concerns::Session(&session), "cancel a call")?;
        self.sessions()
            .cancel_call(&session, call)
            .await
            .map_err(fail)?;
        Ok(Empty {})
    }

    async fn check(
        &self,
        cwd: String,
        env: Option<BTreeMap<String, String>>,
    ) -> Result<ToolCheck, ErrorObjectOwned> {
        self.sessions().check_scripts(&cwd, env).await.map_err(fail)
    }

    async fn provide(
        &self,
        extensions: &Extensions,
        session: SessionId,
        tools: Vec<ProvidedTool>,
    ) -> Result<Empty, ErrorObjectOwned> {
        self.check_controls(extensions, Concerns::Session(&session), "offer tools")?;
        let (connection, of) = offerer(caller(extensions)?);
        let offered = self
            .sessions()
            .provide(&session, connection, &of, tools)
            .await;
        offered.map(|()| Empty {}).map_err(fail)
    }

    async fn answer_tool(
        &self,
        extensions: &Extensions,
        call: CallId,
        result: Option<ToolResult>,
        error: Option<String>,
    ) -> Result<Empty, ErrorObjectOwned> {
        let (connection, _) = offerer(caller(extensions)?);
        let answered = match error {
            Some(why) => Answered::Failed(why),
            None => Answered::Gave(result.unwrap_or_default().0),
        };
        match self.sessions().answer_tool(connection, &call, answered) {
            true => Ok(Empty {}),
            false => {
                let why = format!("no call \"{call}\" waits for this client");
                Err(RpcError::new(ErrorKind::NotFound, why).into())
            }
        }
    }
}

#[async_trait]
impl ToolboxRpcServer for Rpc {
    async fn toolbox_list(
        &self,
        cwd: Option<String>,
    ) -> Result<Vec<ToolboxInfo>, ErrorObjectOwned> {
        self.sessions()
            .toolboxes(cwd.as_deref())
            .await
            .map_err(fail)
    }

    async fn toolbox_reload(
        &self,
        cwd: Option<String>,
    ) -> Result<Vec<ToolboxInfo>, ErrorObjectOwned> {
        self.sessions()
            .reload_toolboxes(cwd.as_deref())
            .await
            .map_err(fail)
    }
}
