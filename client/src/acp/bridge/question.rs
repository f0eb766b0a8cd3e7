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
    asked: Vec<Put>,
}

/// A question that the editor was asked.
struct Put {
    question: Question,
    /// The number of our request.
    id: u64,
    /// The mode has answered it, and the daemon has not said so yet.
    over: bool,
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

    /// Asks what has not been asked. A mode that answers does so also where the editor shows a question already.
    pub(super) async fn ask(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(reply) = by_itself(self.open.mode.get()) else {
            for question in waiting {
                self.put(question).await;
            }
            return;
        };
        for question in waiting {
            answer(&self.open, question.approval, reply.clone());
        }
        for put in self.asked.iter_mut().filter(|put| !put.over) {
            put.over = true;
            answer(&self.open, put.question.approval.clone(), reply.clone());
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
        let asker = Asker {
            approval: question.approval.clone(),
            tool: question.tool.clone(),
            patterns: question.patterns.clone(),
        };
        self.asked.push(Put {
            question,
            id: asked.id,
            over: false,
        });
        spawn_local(hear(Rc::clone(&self.open), asker, asked));
    }

    /// Takes back what an event settles.
    pub(super) async fn settle(&mut self, event: &Event) {
        self.waiting
            .retain(|question| !question.is_settled_by(event));
        let (over, rest) = std::mem::take(&mut self.asked)
            .into_iter()
            .partition(|put: &Put| put.question.is_settled_by(event));
        self.asked = rest;
        self.take_back(over).await;
    }

    /// Takes all of them back; they wait in the daemon.
    pub(super) async fn forget(&mut self) {
        self.waiting.clear();
        let all = std::mem::take(&mut self.asked);
        self.take_back(all).await;
    }

    async fn take_back(&self, over: Vec<Put>) {
        let peer = self.open.peer();
        for Put { id, .. } in over {
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

/// What a mode answers; none where the person is asked.
fn by_itself(mode: Mode) -> Option<Reply> {
    match mode {
        Mode::Ask => None,
        Mode::Allow => Some(Reply::yes()),
        Mode::Deny => Some(Reply::no(
            "the person's editor is set to allow nothing that has to be asked",
        )),
    }
}

/// What was asked, for whoever waits for the answer.
struct Asker {
    approval: ApprovalId,
    tool: String,
    patterns: Vec<String>,
}

/// Waits for the editor's answer, apart from the session's events.
async fn hear(open: Rc<Open>, asker: Asker, asked: Asked) {
    // Nobody answers any more when the question was taken back.
    let Ok(said) = asked.answer.await else { return };
    match meant(said, &asker.patterns) {
        Meaning::Said(reply) => answer(&open, asker.approval, reply),
        Meaning::Nothing => {}
        // Else an editor that believes to have answered waits for a turn that waits for it.
        Meaning::Unread(why) => {
            let note = format!(
                "the editor's answer to whether {} may run cannot be read ({why}): the question waits for another client's, or for a cancel",
                asker.tool
            );
            open.tell(Level::Warning, &note).await;
        }
    }
}

/// What an answer means.
#[derive(Debug, PartialEq)]
enum Meaning {
    Said(Reply),
    /// The question is left to others.
    Nothing,
    /// It is no answer, and why.
    Unread(String),
}

fn meant(said: Answer, patterns: &[String]) -> Meaning {
    let said = match said {
        Ok(said) => said,
        Err(why) => {
            return Meaning::Said(Reply::no(format!("the editor could not ask: {why}")));
        }
    };
    let said: RequestPermissionResponse = match serde_json::from_value(said) {
        Ok(said) => said,
        Err(why) => return Meaning::Unread(why.to_string()),
    };
    let RequestPermissionOutcome::Selected(chosen) = said.outcome else {
        return Meaning::Nothing;
    };
    let id = &*chosen.option_id.0;
    let found = choices(patterns).into_iter().find(|one| *one.id == *id);
    let Some(choice) = found else {
        return Meaning::Said(Reply::no(format!(
            "the editor chose {id:?}, which it was not offered"
        )));
    };
    Meaning::Said(match choice.reach {
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
        let Meaning::Said(yes) = meant(Ok(chosen("session")), &[]) else {
            panic!("it is an answer")
        };
        assert_eq!((yes.answer, yes.scope), (Word::Allow, Scope::Session));
        for no in [
            Ok(chosen("no")),
            Ok(chosen("whatever")),
            Err("x".to_owned()),
        ] {
            let Meaning::Said(no) = meant(no, &[]) else {
                panic!("it is an answer")
            };
            assert_eq!(no.answer, Word::Deny);
        }
        let silent = json!({"outcome": {"outcome": "cancelled"}});
        assert_eq!(meant(Ok(silent), &[]), Meaning::Nothing);
        for none in [json!({}), json!(null), json!({"outcome": true})] {
            assert!(matches!(meant(Ok(none), &[]), Meaning::Unread(_)));
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
        let Meaning::Said(reply) = meant(Ok(chosen), &patterns) else {
            panic!("it is an answer")
        };
        assert_eq!(
            (reply.scope, reply.pattern.as_deref()),
            (Scope::Always, Some("a b"))
        );
    }
}
