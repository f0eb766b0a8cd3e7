//! `dwell answer`: a person's answer to a question that waits. Must never guess between two questions.

use crate::approval::{Question, Reply};
use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::place::Place;
use crate::{out, select};
use protocol::approval::ApprovalRpcClient;
use protocol::id::ApprovalId;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The question (`dwell approvals` shows which wait), or its session where only one waits there
    #[arg(value_name = "QUESTION")]
    question: String,

    /// yes, no, `no REASON`, session (yes, and no more questions about the same in this session), always, program (yes to
    /// all that the calling program does), or with a pattern `session: PATTERN`, `always: PATTERN`
    #[arg(required = true, value_name = "ANSWER")]
    answer: Vec<String>,
}

/// Prints the question that was answered.
pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let words = args.answer.join(" ");
    let Some(reply) = Reply::parse(&words) else {
        return Err(Failure::usage(format!("\"{words}\" is no answer"))
            .hint("yes, no, `no REASON`, session, always, program, or `always: PATTERN`"));
    };
    let link = super::link(place).await?;
    let approval = question(&link, &args.question).await?;
    link.call_once(async |client| {
        ApprovalRpcClient::answer(
            client,
            approval.clone(),
            reply.answer,
            Some(reply.scope),
            reply.reason.clone(),
            reply.pattern.clone(),
        )
        .await
    })
    .await?;
    out::line(approval.as_str())
}

/// The question that a word names: its own id, or the only one of a session.
async fn question(link: &Link, word: &str) -> Result<ApprovalId, Failure> {
    // A session's id has no dot.
    if word.contains('.') {
        return Ok(word.into());
    }
    let session = select::id(link, word).await?;
    let mut waiting = link
        .call(async |client| ApprovalRpcClient::list(client, Some(session.clone())).await)
        .await?;
    match waiting.len() {
        0 => Err(
            Failure::new(format!("nothing waits for an answer in {session}"))
                .hint("`dwell approvals` lists what waits elsewhere")
                .exit(Exit::NotFound),
        ),
        1 => Ok(waiting.swap_remove(0).approval),
        n => {
            let about = |one| {
                let question = Question::from(one);
                format!("{} ({})", question.approval, question.brief_line())
            };
            let all: Vec<String> = waiting.iter().map(about).collect();
            Err(Failure::new(format!(
                "{n} questions wait in {session}: {}",
                all.join(", ")
            ))
            .hint("name one of them"))
        }
    }
}
