//! The daemon's questions as requests to the editor. The first answer wins, whoever gives it: one that comes from elsewhere
//! takes ours back. Must never turn silence, a cancel or a closed editor into a yes.

use super::choices::Mode;
use super::old;
use super::session::Open;
use crate::acp::convert::call;
use crate::acp::peer::{Answer, Asked};
use crate::approval::{self, Question, Reply};
use agent_client_protocol_schema::v1::{
    CancelRequestNotification, PermissionOption, PermissionOptionKind, RequestId,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ToolCallUpdate,
};
use protocol::approval::{Answer as Word, Scope};
use protocol::event::{Event, Level};
use protocol::id::ApprovalId;
use std::rc::Rc;
use tokio::task::spawn_local;

/// What may be answered: the option's id, its words, its kind, and what it means.
const OPTIONS: [(&str, &str, PermissionOptionKind, Option<Scope>); 4] = [
    (
        "once",
        "Allow",
        PermissionOptionKind::AllowOnce,
        Some(Scope::Call),
    ),
    (
        "session",
        "Allow for this session",
        PermissionOptionKind::AllowAlways,
        Some(Scope::Session),
    ),
    (
        "always",
        "Always allow",
        PermissionOptionKind::AllowAlways,
        Some(Scope::Always),
    ),
    ("no", "Deny", PermissionOptionKind::RejectOnce, None),
];

/// The questions of one session that nobody has answered.
pub(super) struct Questions {
    open: Rc<Open>,
    /// Not asked yet.
    waiting: Vec<Question>,
    /// Asked, with the number of our request.
    asked: Vec<(Question, u64)>,
}

impl Questions {
    pub(super) fn new(open: Rc<Open>) -> Self {
        Self {
            open,
            waiting: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// More of them.
    pub(super) fn open(&mut self, questions: impl IntoIterator<Item = Question>) {
        self.waiting.extend(questions);
    }

    /// Asks what has not been asked.
    pub(super) async fn ask(&mut self) {
        for question in std::mem::take(&mut self.waiting) {
            match self.open.mode.get() {
                Mode::Ask => self.put(question).await,
                Mode::Allow => answer(&self.open, question.approval, Reply::yes()),
                Mode::Deny => {
                    let no = "the person's editor is set to allow nothing that has to be asked";
                    answer(&self.open, question.approval, Reply::no(no));
                }
            }
        }
    }

    async fn put(&mut self, question: Question) {
        let peer = self.open.peer();
        let asked = peer
            .ask(
                "session/request_permission",
                &request(&self.open, &question),
            )
            .await;
        let approval = question.approval.clone();
        self.asked.push((question, asked.id));
        spawn_local(hear(Rc::clone(&self.open), approval, asked));
    }

    /// Takes back what an event settles.
    pub(super) async fn settle(&mut self, event: &Event) {
        self.waiting
            .retain(|question| !question.is_settled_by(event));
        let (over, rest) = std::mem::take(&mut self.asked)
            .into_iter()
            .partition(|(question, _)| question.is_settled_by(event));
        self.asked = rest;
        let over: Vec<(Question, u64)> = over;
        self.take_back(over).await;
    }

    /// Takes all of them back; they wait in the daemon.
    pub(super) async fn forget(&mut self) {
        self.waiting.clear();
        let all = std::mem::take(&mut self.asked);
        self.take_back(all).await;
    }

    async fn take_back(&self, over: Vec<(Question, u64)>) {
        let peer = self.open.peer();
        for (_, id) in over {
            // Unless the editor has answered it by now, which is how it may have been settled.
            if peer.forget(id) {
                let id = i64::try_from(id).unwrap_or_default();
                let back = CancelRequestNotification::new(RequestId::Number(id));
                peer.notify("$/cancel_request", &back).await;
            }
        }
    }
}

fn request(open: &Open, question: &Question) -> RequestPermissionRequest {
    let options = OPTIONS
        .iter()
        .map(|(id, name, kind, _)| PermissionOption::new(*id, *name, *kind));
    let cwd = std::path::Path::new(&open.cwd);
    let old = old::of(&open.link, &question.tool, &question.arguments, cwd);
    let fields = call::asked(
        &question.tool,
        &question.arguments,
        &question.why,
        cwd,
        &old,
    );
    let call = ToolCallUpdate::new(question.call.as_str().to_owned(), fields);
    RequestPermissionRequest::new(open.id.as_str().to_owned(), call, options.collect())
}

/// Waits for the editor's answer, apart from the session's events.
async fn hear(open: Rc<Open>, approval: ApprovalId, asked: Asked) {
    // Nobody answers any more when the question was taken back.
    let Ok(said) = asked.answer.await else { return };
    if let Some(reply) = meant(said) {
        answer(&open, approval, reply);
    }
}

/// What an answer means; none leaves the question to others.
fn meant(said: Answer) -> Option<Reply> {
    let said = match said {
        Ok(said) => said,
        Err(why) => return Some(Reply::no(format!("the editor could not ask: {why}"))),
    };
    let said: RequestPermissionResponse = serde_json::from_value(said).ok()?;
    let RequestPermissionOutcome::Selected(chosen) = said.outcome else {
        return None;
    };
    let found = OPTIONS.iter().find(|(id, ..)| *id == &*chosen.option_id.0);
    Some(match found {
        Some((.., Some(scope))) => Reply {
            answer: Word::Allow,
            scope: *scope,
            reason: None,
        },
        _ => Reply::no("the person said no"),
    })
}

fn answer(open: &Rc<Open>, approval: ApprovalId, reply: Reply) {
    let open = Rc::clone(open);
    spawn_local(async move {
        if let Err(failure) = approval::answer(&open.link, &approval, &reply).await {
            open.tell(Level::Error, &failure.message).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_chosen_yes_is_a_yes() {
        let chosen = |id| json!({"outcome": {"outcome": "selected", "optionId": id}});
        for (_, _, _, scope) in OPTIONS.iter().filter(|one| one.3.is_some()) {
            assert!(scope.is_some());
        }
        let yes = meant(Ok(chosen("session"))).unwrap();
        assert_eq!((yes.answer, yes.scope), (Word::Allow, Scope::Session));
        for no in [
            Ok(chosen("no")),
            Ok(chosen("whatever")),
            Err("x".to_owned()),
        ] {
            assert_eq!(meant(no).unwrap().answer, Word::Deny);
        }
        let silent = json!({"outcome": {"outcome": "cancelled"}});
        for none in [silent, json!({}), json!(null), json!({"outcome": true})] {
            assert_eq!(meant(Ok(none)), None);
        }
    }
}
