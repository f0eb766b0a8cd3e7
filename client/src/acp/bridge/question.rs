//! The daemon's questions as requests to the editor. The first answer wins, whoever gives it: one that comes from elsewhere
//! takes ours back. Must never turn silence, a cancel or a closed editor into a yes.

use super::choices::Mode;
use super::old;
use super::session::Open;
use crate::acp::convert::call;
use crate::acp::peer::{Answer, Asked};
use crate::approval::{self, Question, Reply};
use crate::paint::spell_out;
use crate::render::styled::clip_middle;
use agent_client_protocol_schema::v1::{
    CancelRequestNotification, PermissionOption, PermissionOptionKind, RequestId,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ToolCallUpdate,
};
use protocol::approval::{Answer as Word, Scope};
use protocol::event::{Event, Level};
use protocol::id::ApprovalId;
use std::rc::Rc;
use tokio::task::spawn_local;

/// How many patterns are offered: an editor's question has little room.
const PATTERNS: usize = 2;

/// How much of a pattern stands in an option.
const SHOWN: usize = 60;

/// One of what may be answered.
struct Choice {
    /// As the editor names it.
    id: String,
    words: String,
    kind: PermissionOptionKind,
    /// What it means; none is a no.
    reach: Option<(Scope, Option<String>)>,
}

impl Choice {
    fn new(
        id: &str,
        words: &str,
        kind: PermissionOptionKind,
        reach: Option<(Scope, Option<String>)>,
    ) -> Self {
        Self {
            id: id.to_owned(),
            words: words.to_owned(),
            kind,
            reach,
        }
    }
}

/// What may be answered to a question, the patterns that the daemon offers among it.
fn choices(patterns: &[String]) -> Vec<Choice> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectOnce};
    let once = Choice::new("once", "Allow", AllowOnce, Some((Scope::Call, None)));
    let session = "Allow for this session";
    let session = Choice::new(
        "session",
        session,
        AllowAlways,
        Some((Scope::Session, None)),
    );
    let mut all = vec![once, session];
    for (at, pattern) in patterns.iter().take(PATTERNS).enumerate() {
        let words = format!("Always allow {}", clip_middle(&spell_out(pattern), SHOWN));
        let reach = Some((Scope::Always, Some(pattern.clone())));
        all.push(Choice::new(
            &format!("always-{at}"),
            &words,
            AllowAlways,
            reach,
        ));
    }
    if patterns.is_empty() {
        let reach = Some((Scope::Always, None));
        all.push(Choice::new("always", "Always allow", AllowAlways, reach));
    }
    all.push(Choice::new("no", "Deny", RejectOnce, None));
    all
}

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
        let (approval, patterns) = (question.approval.clone(), question.patterns.clone());
        self.asked.push((question, asked.id));
        spawn_local(hear(Rc::clone(&self.open), approval, patterns, asked));
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
    let options = choices(&question.patterns)
        .into_iter()
        .map(|choice| PermissionOption::new(choice.id, choice.words, choice.kind));
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
async fn hear(open: Rc<Open>, approval: ApprovalId, patterns: Vec<String>, asked: Asked) {
    // Nobody answers any more when the question was taken back.
    let Ok(said) = asked.answer.await else { return };
    if let Some(reply) = meant(said, &patterns) {
        answer(&open, approval, reply);
    }
}

/// What an answer means; none leaves the question to others.
fn meant(said: Answer, patterns: &[String]) -> Option<Reply> {
    let said = match said {
        Ok(said) => said,
        Err(why) => return Some(Reply::no(format!("the editor could not ask: {why}"))),
    };
    let said: RequestPermissionResponse = serde_json::from_value(said).ok()?;
    let RequestPermissionOutcome::Selected(chosen) = said.outcome else {
        return None;
    };
    let all = choices(patterns);
    let found = all.into_iter().find(|one| *one.id == *chosen.option_id.0);
    Some(match found.and_then(|one| one.reach) {
        Some((scope, pattern)) => Reply {
            answer: Word::Allow,
            scope,
            reason: None,
            pattern,
        },
        None => Reply::no("the person said no"),
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
        let yes = meant(Ok(chosen("session")), &[]).unwrap();
        assert_eq!((yes.answer, yes.scope), (Word::Allow, Scope::Session));
        for no in [
            Ok(chosen("no")),
            Ok(chosen("whatever")),
            Err("x".to_owned()),
        ] {
            assert_eq!(meant(no, &[]).unwrap().answer, Word::Deny);
        }
        let silent = json!({"outcome": {"outcome": "cancelled"}});
        for none in [silent, json!({}), json!(null), json!({"outcome": true})] {
            assert_eq!(meant(Ok(none), &[]), None);
        }
    }

    #[test]
    fn patterns_are_options_of_their_own() {
        let patterns = ["a *".to_owned(), "a b".to_owned(), "a b c".to_owned()];
        let words = |patterns: &[String]| -> Vec<String> {
            choices(patterns).into_iter().map(|one| one.words).collect()
        };
        assert_eq!(
            words(&patterns),
            [
                "Allow",
                "Allow for this session",
                "Always allow a *",
                "Always allow a b",
                "Deny"
            ]
        );
        assert_eq!(words(&[])[2], "Always allow");
        let chosen = json!({"outcome": {"outcome": "selected", "optionId": "always-1"}});
        let reply = meant(Ok(chosen), &patterns).unwrap();
        assert_eq!(
            (reply.scope, reply.pattern.as_deref()),
            (Scope::Always, Some("a b"))
        );
    }
}
