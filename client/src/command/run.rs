//! `dwell run`: a tool by hand, through the same gate as a model's call. Must never answer its own question without
//! being told to.

use crate::approval::{self, Question, Reply};
use crate::ask_tty::Tty;
use crate::error::{Exit, Failure};
use crate::follow::Follow;
use crate::link::Link;
use crate::open::{self, Model};
use crate::paint::Paint;
use crate::place::Place;
use crate::toolbox::Toolbox;
use crate::{out, select};
use protocol::id::SessionId;
use protocol::session::SessionRpcClient;
use protocol::tool::ToolRpcClient;
use serde_json::Value;
use std::rc::Rc;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// In which session [default: this directory's newest, or one that is made for this]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,

    #[command(flatten)]
    toolbox: Toolbox,

    /// Allow the call if it needs an approval
    #[arg(short, long)]
    yes: bool,

    /// The tool
    tool: String,

    /// Its arguments, a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
}

/// Prints the result, and fails when the tool did.
pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let arguments: Value = serde_json::from_str(&args.arguments).map_err(|error| {
        Failure::usage(format!("the arguments are no JSON: {error}"))
            .hint("such as '{\"path\": \"README.md\"}'")
    })?;
    let link = super::link(place).await?;
    let session = session_for(&link, args.session.as_deref()).await?;
    // Before the call: a question that was put meanwhile would be nobody's.
    let mut follow = follow_from_now(&link, &session).await?;
    let asked = answer_questions(&link, &mut follow, args.yes);
    let ran = link.call_once(async |client| {
        let name = args.tool.clone();
        let (arguments, toolbox) = (Some(arguments.clone()), args.toolbox.value());
        ToolRpcClient::run(client, session.clone(), name, arguments, toolbox, None).await
    });
    let result = tokio::select! {
        result = ran => result?,
        failure = asked => return Err(failure),
    };
    out::json(&result)?;
    match result.get("ok") {
        Some(Value::Bool(true)) => Ok(()),
        _ => Err(Failure::shown(Exit::Failed)),
    }
}

/// The session that a word names, or this directory's newest, or a new one.
pub(super) async fn session_for(link: &Link, word: Option<&str>) -> Result<SessionId, Failure> {
    if let Some(word) = word {
        return select::id(link, word).await;
    }
    match select::last(link).await? {
        Some(session) => Ok(session.id),
        None => Ok(
            open::create(link, &link.place().here()?, &Model::default(), None)
                .await?
                .id,
        ),
    }
}

async fn follow_from_now(link: &Rc<Link>, session: &SessionId) -> Result<Follow, Failure> {
    let now = link
        .call(async |client| SessionRpcClient::get(client, session.clone()).await)
        .await?;
    Ok(Follow::new(Rc::clone(link), session.clone(), now.seq))
}

/// Puts the questions of calls that no model made to this terminal, until something fails.
async fn answer_questions(link: &Link, follow: &mut Follow, yes: bool) -> Failure {
    let mut tty = Tty::find();
    loop {
        let event = match follow.next().await {
            Ok(event) => event,
            Err(failure) => return failure,
        };
        let by_hand = event.turn.is_none();
        let Some(question) = Question::of(&event).filter(|_| by_hand) else {
            continue;
        };
        let reply = match reply_to(&question, yes, tty.as_mut()).await {
            Ok(reply) => reply,
            Err(failure) => return failure,
        };
        if let Err(failure) = approval::answer(link, &question.approval, &reply).await {
            return failure;
        }
    }
}

async fn reply_to(question: &Question, yes: bool, tty: Option<&mut Tty>) -> Result<Reply, Failure> {
    if yes {
        return Ok(Reply::yes());
    }
    let Some(tty) = tty else {
        let tool = &question.tool;
        out::note(&format!(
            "denied: {tool} needs an approval and there is no terminal to ask on; `dwell run -y` allows it, a rule in permissions.json does for good"
        ))?;
        return Ok(Reply::no("there is no terminal to ask on"));
    };
    out::note(&question.text(Paint::of(&std::io::stderr())))?;
    loop {
        match tty
            .ask(&format!("  {}: ", question.keys().join("  ")))
            .await?
        {
            None => return Ok(Reply::no("not answered")),
            Some(line) => {
                if let Some(reply) = Reply::parse(&line) {
                    return Ok(reply);
                }
            }
        }
    }
}
