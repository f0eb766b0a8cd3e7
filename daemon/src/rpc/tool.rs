//! `tool/*` and `toolbox/*`. Must never make a JSON-RPC error of a failing tool: that is a result.

use super::Rpc;
use super::attachments::Concerns;
use super::error::{expression, fail};
use super::later::absent;
use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::id::{CallId, SessionId};
use protocol::session::Empty;
use protocol::tool::{
    ProvidedTool, ToolCheck, ToolList, ToolRpcServer, ToolboxInfo, ToolboxRpcServer,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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
    ) -> Result<Map<String, Value>, ErrorObjectOwned> {
        let toolbox = expression(toolbox.as_ref())?;
        self.check_controls(extensions, Concerns::Session(&session), "run a tool")?;
        let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
        self.sessions()
            .run_tool(&session, &name, arguments, toolbox)
            .await
            .map_err(fail)
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
        _extensions: &Extensions,
        _session: SessionId,
        _tools: Vec<ProvidedTool>,
    ) -> Result<Empty, ErrorObjectOwned> {
        Err(absent("tool/provide"))
    }

    async fn answer_tool(
        &self,
        _extensions: &Extensions,
        _call: CallId,
        _result: Map<String, Value>,
    ) -> Result<Empty, ErrorObjectOwned> {
        Err(absent("tool/answer"))
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
