//! Questions to people as the actor sees them: asked once, parked, answered once, withdrawn with their turn.

use super::{Actor, Draft};
use crate::session::message::{Answering, Asking};
use crate::session::{SessionError, SessionResult};
use crate::store::Durability;
use crate::toolbox::Verdict;
use crate::toolbox::permission::Permissions;
use protocol::approval::{Answer, Approval, Scope};
use protocol::event::{EventKind, Level};
use protocol::id::{ApprovalId, CallId, TurnId};
use std::sync::Arc;
use tokio::sync::oneshot;

impl Actor {
    /// Puts a question, unless it was put (or answered) for this call before.
    pub(super) async fn ask(
        &mut self,
        asking: Asking,
        reply: oneshot::Sender<Result<Verdict, String>>,
    ) {
        if let Some(answered) = self.state.answer_of(&asking.call) {
            let verdict = Verdict {
                answer: answered.answer,
                reason: answered.reason.clone(),
                grant: None,
            };
            let _ = reply.send(Ok(verdict));
            return;
        }
        let known = self
            .state
            .approval_of(&asking.call)
            .map(|a| a.approval.clone());
        let approval = match known {
            Some(approval) => approval,
            None => {
                let approval = self.state.next_approval(&self.id);
                let turn = self.turn_of(&asking.call);
                let Asking {
                    call,
                    tool,
                    arguments,
                    why,
                    patterns,
                } = asking;
                let asked = EventKind::ApprovalAsked {
                    approval: approval.clone(),
                    call,
                    tool,
                    arguments,
                    why,
                    patterns,
                };
                if let Err(error) = self.record(vec![(turn, asked)], Durability::SyncSoon).await {
                    let _ = reply.send(Err(error.to_string()));
                    return;
                }
                approval
            }
        };
        self.asking.insert(approval, reply);
        self.quieten();
    }

    /// The first answer wins.
    pub(super) async fn answer(&mut self, answering: Answering) -> SessionResult<u64> {
        let Some(asked) = self.state.approvals.get(&answering.approval).cloned() else {
            return Err(self.unanswerable(&answering));
        };
        let turn = self.turn_of(&asked.call);
        let Answering {
            approval,
            answer,
            scope,
            reason,
            pattern,
            by,
        } = answering;
        let answered = EventKind::ApprovalAnswered {
            approval: approval.clone(),
            answer,
            scope,
            by,
            reason: reason.clone(),
            pattern: pattern.clone(),
        };
        let mut drafts: Vec<Draft> = vec![(turn.clone(), answered)];
        // Checked by whoever brought it, so that the question still waits where it does not fit.
        let grant = match &pattern {
            Some(named) => Some(Permissions::grant_of(named).to_owned()),
            None => self.reach(&asked, answer, scope),
        };
        // What holds for one program is known to that program alone.
        if let Some(granted) = grant.clone().filter(|_| scope != Scope::Program) {
            let (tool, rule) = (asked.tool, pattern.unwrap_or_else(|| granted.clone()));
            let granted = EventKind::Granted {
                tool: tool.clone(),
                pattern: granted,
            };
            drafts.push((turn, granted));
            if scope == Scope::Always {
                self.write_rule(tool, rule);
            }
        }
        let seq = self.record(drafts, Durability::SyncSoon).await?;
        if let Some(waiting) = self.asking.remove(&approval) {
            let _ = waiting.send(Ok(Verdict {
                answer,
                reason,
                grant,
            }));
        }
        Ok(seq)
    }

    fn unanswerable(&self, answering: &Answering) -> SessionError {
        match self.state.answered.get(&answering.approval) {
            Some(first) => SessionError::AlreadyAnswered {
                approval: answering.approval.clone(),
                answer: first.answer,
                by: first.by.clone(),
            },
            None => SessionError::NotFound {
                what: "waiting approval",
                id: answering.approval.to_string(),
            },
        }
    }

    /// What a yes covers beyond its call, where its answer does not say so: exactly what was seen.
    fn reach(&self, asked: &Approval, answer: Answer, scope: Scope) -> Option<String> {
        match (answer, scope) {
            (Answer::Allow, Scope::Session | Scope::Always) => {
                let tool = self.shared.workspace.toolbox().tool_for(&asked.tool);
                let arguments = asked.arguments.as_object().cloned().unwrap_or_default();
                Some(Permissions::suggest(&tool, &arguments, &self.shared.cwd))
            }
            (Answer::Allow, Scope::Program) => Some("*".to_owned()),
            (Answer::Allow, Scope::Call) | (Answer::Deny, _) => None,
        }
    }

    /// The file is written beside the actor; a file that cannot be written is told, the answer stands.
    fn write_rule(&self, tool: String, pattern: String) {
        let (workspace, live) = (Arc::clone(&self.shared.workspace), Arc::clone(&self.live));
        tokio::spawn(async move {
            if let Err(error) = workspace.allow_always(&tool, &pattern).await {
                let text = format!("the rule for {tool} could not be kept for good: {error}");
                live.push(crate::session::live::Piece::Notice {
                    level: Level::Warning,
                    text,
                });
            }
        });
    }

    /// The questions that wait for calls of a turn. Those of a call that a person made are not any turn's.
    pub(super) fn asked_by(&self, turn: &TurnId) -> Vec<ApprovalId> {
        let is_its = |id: &&ApprovalId| {
            let asked = self.state.approvals.get(*id);
            asked.is_none_or(|asked| self.turn_of(&asked.call).as_ref() == Some(turn))
        };
        self.asking.keys().filter(is_its).cloned().collect()
    }

    /// Wakes the calls whose question nobody can answer any more.
    pub(super) fn withdraw(&mut self, questions: &[ApprovalId], why: &str) {
        for question in questions {
            if let Some(waiting) = self.asking.remove(question) {
                let _ = waiting.send(Err(why.to_owned()));
            }
        }
    }

    pub(super) fn turn_of(&self, call: &CallId) -> Option<TurnId> {
        match self.state.open_calls.iter().find(|c| c.call == *call) {
            Some(open) => open.turn.clone(),
            None => self.held.turn_of(call).flatten(),
        }
    }
}
