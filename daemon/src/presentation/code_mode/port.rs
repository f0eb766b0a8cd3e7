//! A session as the calls of one program see it: the clock stands while they wait for a person, and an answer for the
//! whole program reaches all of them. Must never answer what no person has.

use super::clock::Clock;
use crate::presentation::Toolkit;
use crate::toolbox::permission::Permissions;
use crate::toolbox::tool::{self, Access};
use crate::toolbox::{BoxFuture, CallPort, Question, Verdict, Via};
use protocol::approval::Answer;
use protocol::expression::CodeApproval;
use protocol::id::CallId;
use protocol::tool::Policy;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

pub(super) struct ProgramPort {
    pub(super) outer: Arc<dyn CallPort>,
    pub(super) clock: Arc<Clock>,
    pub(super) approval: CodeApproval,
    pub(super) grants: Arc<Grants>,
    pub(super) place: Arc<Semaphore>,
}

/// What people allowed beyond one call while the program ran.
pub(super) struct Grants {
    inner: Arc<dyn Toolkit>,
    cwd: PathBuf,
    spill_dir: PathBuf,
    /// Held to copy or replace what is in it.
    permissions: Mutex<Arc<Permissions>>,
    changed: Notify,
}

impl Grants {
    pub(super) fn new(
        inner: Arc<dyn Toolkit>,
        permissions: Arc<Permissions>,
        cwd: PathBuf,
        spill_dir: PathBuf,
    ) -> Self {
        Self {
            inner,
            cwd,
            spill_dir,
            permissions: Mutex::new(permissions),
            changed: Notify::new(),
        }
    }

    /// The rules for a call that begins now.
    pub(super) fn permissions(&self) -> Arc<Permissions> {
        Arc::clone(
            &self
                .permissions
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn add(&self, tool: &str, pattern: &str) {
        let mut permissions = self
            .permissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *permissions = Arc::new(permissions.with_grant(tool, pattern));
        drop(permissions);
        self.changed.notify_waiters();
    }

    /// Returns once a call that waits for its own answer is covered by another's.
    async fn cover(&self, tool: &str, arguments: &Value) {
        let known = self.inner.tools().iter().find(|known| known.name() == tool);
        let (Some(tool), Some(arguments)) = (known, arguments.as_object()) else {
            return std::future::pending().await;
        };
        loop {
            let changed = self.changed.notified();
            changed.await;
            let rules = self.permissions();
            let judgement = rules
                .judge(tool, arguments, &self.cwd, &self.spill_dir)
                .await;
            if judgement.policy == Policy::Allow {
                return;
            }
        }
    }
}

impl ProgramPort {
    async fn asked(&self, question: Question<'_>) -> Result<Verdict, String> {
        let (tool, arguments) = (question.tool, question.arguments);
        if self.approval == CodeApproval::Refuse {
            return Ok(Verdict {
                answer: Answer::Deny,
                reason: Some(format!("a program may not ask here; call {tool} directly")),
                grant: None,
            });
        }
        let _wait = self.clock.wait();
        tokio::select! {
            biased;
            verdict = self.outer.ask(question) => {
                if let Ok(Verdict { answer: Answer::Allow, grant: Some(pattern), .. }) = &verdict {
                    self.grants.add(tool, pattern);
                }
                verdict
            }
            () = self.grants.cover(tool, arguments) => Ok(Verdict {
                answer: Answer::Allow,
                reason: None,
                grant: None,
            }),
        }
    }
}

impl CallPort for ProgramPort {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        Box::pin(self.asked(question))
    }

    fn recorded(&self) -> BoxFuture<'_, Result<(), String>> {
        self.outer.recorded()
    }

    fn started<'a>(
        &'a self,
        call: &'a CallId,
        access: Access,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.outer.started(call, access)
    }

    fn output(&self, call: &CallId, text: &str) {
        self.outer.output(call, text);
    }

    fn child<'a>(
        &'a self,
        parent: &'a CallId,
        via: Via,
        name: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<CallId, String>> {
        self.outer.child(parent, via, name, arguments)
    }

    fn child_done<'a>(
        &'a self,
        call: &'a CallId,
        result: &'a Map<String, Value>,
        ms: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.outer.child_done(call, result, ms)
    }

    fn task<'a>(
        &'a self,
        call: &'a CallId,
        prompt: String,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, tool::Outcome> {
        let task = self.outer.task(call, prompt, cancel);
        Box::pin(async move {
            // Programs of the sub-session may need it.
            let _away = self.clock.away();
            task.await
        })
    }

    fn place(&self) -> Option<Arc<Semaphore>> {
        Some(Arc::clone(&self.place))
    }

    fn warn(&self, text: &str) {
        self.outer.warn(text);
    }
}
