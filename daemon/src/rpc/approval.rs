//! `approval/*` and `trust/*`. Must never decide: it carries questions and answers.

use super::Rpc;
use super::attachments::Concerns;
use super::error::fail;
use crate::session::Answering;
use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::approval::{
    Answer, AnswerResult, Approval, ApprovalRpcServer, Scope, Trust, TrustRpcServer,
};
use protocol::error::{ErrorKind, RpcError};
use protocol::id::{ApprovalId, SessionId};
use std::path::Path;

#[async_trait]
impl ApprovalRpcServer for Rpc {
    async fn list(&self, session: Option<SessionId>) -> Result<Vec<Approval>, ErrorObjectOwned> {
        let approvals = self.sessions().approvals(session.as_ref()).await;
        approvals.map_err(fail)
    }

    async fn answer(
        &self,
        extensions: &Extensions,
        approval: ApprovalId,
        answer: Answer,
        scope: Option<Scope>,
        reason: Option<String>,
        pattern: Option<String>,
    ) -> Result<AnswerResult, ErrorObjectOwned> {
        let about = Concerns::PartOfSession(approval.as_str());
        let context = self.check_controls(extensions, about, "answer an approval")?;
        let answering = Answering {
            approval,
            answer,
            scope: scope.unwrap_or_default(),
            reason,
            pattern,
            by: context.name(),
        };
        self.sessions()
            .answer(answering)
            .await
            .map(|seq| AnswerResult { seq })
            .map_err(fail)
    }
}

#[async_trait]
impl TrustRpcServer for Rpc {
    async fn trust_list(&self, cwd: Option<String>) -> Result<Vec<Trust>, ErrorObjectOwned> {
        let trusts = &self.0.parts.trusts;
        match cwd {
            Some(cwd) => Ok(vec![trusts.check(Path::new(&cwd)).await]),
            None => trusts.list().await.map_err(unreadable),
        }
    }

    async fn trust_answer(
        &self,
        cwd: String,
        allow: bool,
        digest: Option<String>,
    ) -> Result<Trust, ErrorObjectOwned> {
        let trusts = &self.0.parts.trusts;
        trusts
            .answer_shown(Path::new(&cwd), allow, digest)
            .await
            .map_err(unreadable)
    }

    async fn trust_add(
        &self,
        cwd: String,
        path: String,
        content: String,
    ) -> Result<Trust, ErrorObjectOwned> {
        let trusts = &self.0.parts.trusts;
        let added = trusts.add(Path::new(&cwd), &path, &content).await;
        added.map_err(unreadable)
    }
}

/// The decisions lie in a file of the state directory.
fn unreadable(why: String) -> ErrorObjectOwned {
    RpcError::new(ErrorKind::Storage, why).into()
}
