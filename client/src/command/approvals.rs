//! `dwell approvals`: the questions that wait for a person. Must never answer one.

use crate::approval::Question;
use crate::error::Failure;
use crate::listing::{age, directory, now};
use crate::paint::{Paint, Part, one_line};
use crate::place::Place;
use crate::{out, select};
use protocol::approval::{Approval, ApprovalRpcClient};
use protocol::session::SessionRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// One JSON object a line
    #[arg(long)]
    json: bool,

    /// Of which session [default: of all]
    session: Option<String>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = match &args.session {
        Some(word) => Some(select::id(&link, word).await?),
        None => None,
    };
    let waiting = link
        .call(async |client| ApprovalRpcClient::list(client, session.clone()).await)
        .await?;
    if args.json {
        return waiting.iter().try_for_each(out::json);
    }
    if waiting.is_empty() {
        return out::note("nothing waits for an answer");
    }
    let paint = Paint::of(&std::io::stdout());
    for one in &waiting {
        let cwd = link
            .call(async |client| SessionRpcClient::get(client, one.session.clone()).await)
            .await
            .map(|session| directory(&session.cwd));
        out::line(&shown(paint, one, cwd.as_deref().unwrap_or_default()))?;
    }
    Ok(())
}

/// All of the question: it is to be answered by what stands here.
fn shown(paint: Paint, one: &Approval, cwd: &str) -> String {
    let since = age(now().saturating_sub(one.asked_at));
    let head = format!("{}  {since}  {cwd}", one.approval);
    let head = paint.dress(Part::Tool, head.trim_end());
    let mut text = format!("{head}\n{}", Question::from(one).text(paint));
    for pattern in &one.patterns {
        let wider = format!("\n  or `always: {}`", one_line(pattern));
        text.push_str(&paint.dress(Part::Quiet, &wider));
    }
    text
}
