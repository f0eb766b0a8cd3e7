//! The REPL: one session on a terminal, from the last exchanges on. Leaving it leaves the session as it is; must never
//! keep anything that the daemon has not stored.

mod console;
mod editor;
mod history;
mod keys;
mod line;
mod panel;
mod past;
mod pick;
mod plain;
pub(crate) mod settings;
mod talk;

use crate::ask_tty::Tty;
use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::paint::{Paint, Part, dumb, one_line};
use crate::{local, out, trust};
use console::Console;
use protocol::error::ErrorKind;
use protocol::session::{Session, SessionRpcClient};
use protocol::tool::ToolRpcClient;
use std::io::IsTerminal;
use std::rc::Rc;
use std::time::Duration;

/// How long the first line waits for what is wrong with tools: servers may take their time to start.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How a person left a session.
#[derive(Clone, Debug, PartialEq)]
enum Leave {
    /// The process ends.
    Detach,
    /// Another session comes next.
    Switch(Box<Session>),
}

/// The session that a person chooses from a list; none if they leave it.
pub(crate) async fn pick(link: &Rc<Link>) -> Result<Option<Session>, Failure> {
    if !capable() {
        return Err(
            Failure::usage("a list to choose from needs a terminal that can be drawn on")
                .hint("`dwell ls` lists sessions, `dwell attach SESSION` goes on with one"),
        );
    }
    let mut console = Console::start(link.place(), "")?;
    Ok(match pick::pick(link, &mut console).await? {
        pick::Chosen::Session(session) => Some(*session),
        pick::Chosen::Nothing | pick::Chosen::Ended => None,
    })
}

/// Runs until the person leaves. What was to be said at once is said when the session stands there.
pub(crate) async fn run(
    link: Rc<Link>,
    session: Session,
    mut opening: Option<String>,
) -> Result<(), Failure> {
    let mut session = session;
    let mut console = None;
    let mut bad = None;
    for wrong in settings::misread() {
        out::note(&format!("warning: {wrong}"))?;
    }
    loop {
        settle_trust(&link, &session).await?;
        tell_problems(&link, &session).await?;
        // Of a new one it was said with what the choices are.
        if let Some(warning) = local::warning(&session).filter(|_| session.seq > 0) {
            out::note(&warning)?;
        }
        if console.is_none() && capable() {
            console = Some(Console::start(link.place(), &session.cwd)?);
        }
        let left = match &mut console {
            Some(console) => talk::run(Rc::clone(&link), &session, console, opening.take()).await?,
            None => plain::run(Rc::clone(&link), &session, opening.take(), &mut bad).await?,
        };
        match left {
            Leave::Detach => {
                drop(console);
                return farewell(&link, &session).await;
            }
            Leave::Switch(other) => session = *other,
        }
    }
}

/// Whether the terminal can be drawn on.
fn capable() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !dumb()
}

async fn settle_trust(link: &Link, session: &Session) -> Result<(), Failure> {
    let waiting = match trust::waiting(link, &session.cwd).await {
        Err(failure) if failure.kind == Some(ErrorKind::MethodNotFound) => None,
        other => other?,
    };
    trust::settle(link, &session.cwd, waiting, tty().as_mut()).await
}

/// What of the session's tools could not be read, once.
async fn tell_problems(link: &Link, session: &Session) -> Result<(), Failure> {
    let listing =
        link.call(async |client| ToolRpcClient::list(client, session.id.clone(), None).await);
    let Ok(listed) = tokio::time::timeout(PATIENCE, listing).await else {
        return out::note("tools are still being started; /mcp and /tools show what there is");
    };
    // A session without tools is still one to talk in.
    let problems = listed.map(|list| list.problems).unwrap_or_default();
    problems
        .iter()
        .try_for_each(|problem| out::note(&format!("warning: {problem}")))
}

/// The terminal for questions before the first line, where lines come from one.
pub(crate) fn tty() -> Option<Tty> {
    Tty::find().filter(|_| std::io::stdin().is_terminal())
}

/// Says where the session has gone: nowhere.
async fn farewell(link: &Link, session: &Session) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() {
        return Ok(());
    }
    let id = &session.id;
    let state = SessionRpcClient::get(&link.connection().0.client, id.clone())
        .await
        .map(|session| session.state.as_str());
    let text = match state {
        Ok(state) => {
            let dwell = link.place().dwell();
            format!("detached from {id} ({state})\n`{dwell} attach {id}` comes back")
        }
        Err(_) => format!("detached from {id}"),
    };
    out::line(&Paint::of(&std::io::stdout()).dress(Part::Quiet, &text))
}

/// The first lines of a session on the screen.
fn header(paint: Paint, session: &Session) -> String {
    let model = local::named(&session.provider, session.model.as_deref());
    let mut parts = vec![session.id.to_string(), model, one_line(&session.cwd)];
    if !session.title.is_empty() {
        parts.insert(1, crate::render::first_line(&session.title));
    }
    paint.dress(Part::Quiet, &parts.join(" · "))
}

/// A failure within the REPL, which goes on.
fn complaint(paint: Paint, failure: &Failure) -> String {
    let mut text = paint.dress(Part::Bad, &failure.message);
    if let Some(hint) = &failure.hint {
        text.push('\n');
        text.push_str(&paint.dress(Part::Quiet, &format!("hint: {hint}")));
    }
    text
}

/// Whether a failure ends the REPL: what follows would fail alike.
fn is_final(failure: &Failure) -> bool {
    failure.exit == Exit::Unreachable
}
