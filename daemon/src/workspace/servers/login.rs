//! Logging in to a server, and out. Must never wait for a person.

use super::{Login, Own};
use crate::toolbox::source::mcp::Shown;
use crate::toolbox::source::mcp::config::How;
use crate::workspace::Workspace;

impl Workspace {
    /// Begins a login; the person's part is at the URL that it holds.
    pub async fn login_mcp(&self, name: &str, own: Option<&Own>) -> Result<Login, String> {
        let servers = self.named(own).await;
        let server = servers.iter().find(|server| server.config.name == name);
        let Some(server) = server else {
            return Err(format!("no MCP server is called {name:?}"));
        };
        match &server.config.how {
            How::Http { url, oauth, .. } => {
                let begun = Login::begin(url, oauth).await;
                begun.map_err(|why| Shown::of(&server.config).text(&why))
            }
            How::Child { .. } => Err(format!(
                "the MCP server {name} is a program: nobody logs in to it"
            )),
        }
    }

    /// Waits for the person, and starts the server anew.
    pub async fn finish_login(
        &self,
        name: &str,
        login: Login,
        own: Option<&Own>,
    ) -> Result<(), String> {
        let servers = self.named(own).await;
        let server = servers.iter().find(|server| server.config.name == name);
        let shown = server.map_or_else(Shown::default, |server| Shown::of(&server.config));
        let finished = login.finish(&self.shared.places.servers.tokens).await;
        finished.map_err(|why| shown.text(&why))?;
        self.restart_mcp(Some(name), own).await
    }

    /// Forgets the token of a server. Whether there was one.
    pub async fn logout_mcp(&self, name: &str, own: Option<&Own>) -> Result<bool, String> {
        let servers = self.named(own).await;
        let server = servers.iter().find(|server| server.config.name == name);
        let server = server.ok_or_else(|| format!("no MCP server is called {name:?}"))?;
        let gone = match &server.config.how {
            How::Http { url, .. } => self.shared.places.servers.tokens.forget(url).await,
            How::Child { .. } => false,
        };
        server.stop().await;
        Ok(gone)
    }
}
