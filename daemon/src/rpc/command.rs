//! `command/*`. Must never know a command.

use super::Rpc;
use super::attachments::Concerns;
use super::error::fail;
use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::command::{CommandInfo, CommandResult, CommandRpcServer, Completions};
use protocol::id::SessionId;

#[async_trait]
impl CommandRpcServer for Rpc {
    async fn list(&self, session: SessionId) -> Result<Vec<CommandInfo>, ErrorObjectOwned> {
        let commands = &self.0.parts.commands;
        commands.list(&session).await.map_err(fail)
    }

    async fn run(
        &self,
        extensions: &Extensions,
        session: SessionId,
        line: String,
    ) -> Result<CommandResult, ErrorObjectOwned> {
        self.check_controls(extensions, Concerns::Session(&session), "run a command")?;
        let commands = &self.0.parts.commands;
        commands.run(&session, &line).await.map_err(fail)
    }

    async fn complete(
        &self,
        session: SessionId,
        line: String,
    ) -> Result<Completions, ErrorObjectOwned> {
        let commands = &self.0.parts.commands;
        commands.complete(&session, &line).await.map_err(fail)
    }
}
