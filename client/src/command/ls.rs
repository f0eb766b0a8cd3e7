//! `dwell ls`: sessions, newest first.

use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::listing::{cells, dressed, now, table};
use crate::out;
use crate::paint::Paint;
use crate::place::Place;
use protocol::session::{Session, SessionRpcClient};
use std::rc::Rc;

/// How many are shown to people who name no number.
const SHOWN: usize = 50;

/// How many one request asks for.
const PAGE: u32 = 500;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only this directory's
    #[arg(long)]
    here: bool,

    /// Those that were put away, in the place of the others
    #[arg(long)]
    archived: bool,

    /// At most so many, 0 for all [default: 50; all with --json and --tsv]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,

    /// Only those in this state: idle, running, waiting or failed; may be given again
    #[arg(long, value_name = "STATE", value_parser = ["idle", "running", "waiting", "failed"])]
    state: Vec<String>,

    /// One JSON object a line
    #[arg(long)]
    json: bool,

    /// Fields with tabs between them, a session a line: id, state, milliseconds since the epoch, title, directory
    #[arg(long, conflicts_with = "json")]
    tsv: bool,

    /// Start no daemon: where none runs there is nothing to list
    #[arg(long)]
    no_start: bool,

    /// A part of the id or of the title
    query: Option<String>,
}

impl Args {
    /// How many are shown: programs are given all, unless they say otherwise.
    fn most(&self) -> usize {
        match self.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None if self.json || self.tsv => usize::MAX,
            None => SHOWN,
        }
    }
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = match args.no_start {
        true => Rc::new(Link::open(place, Start::Never, Speak::Ours).await?),
        false => super::link(place).await?,
    };
    let (sessions, unshown) = fetch(&link, &args).await?;
    if args.json {
        return sessions.iter().try_for_each(out::json);
    }
    if args.tsv {
        return sessions
            .iter()
            .try_for_each(|session| out::line(&fields(session)));
    }
    show(&sessions)?;
    match unshown {
        0 => Ok(()),
        more => out::note(&format!("{more} more: -n 0 lists all")),
    }
}

/// For people, in the window's width.
fn show(sessions: &[Session]) -> Result<(), Failure> {
    if sessions.is_empty() {
        return out::note("no sessions");
    }
    let paint = Paint::of(&std::io::stdout());
    let now = now();
    let rows: Vec<_> = sessions.iter().map(|one| cells(one, now)).collect();
    let rows = table(&rows, out::columns());
    rows.iter()
        .zip(sessions)
        .try_for_each(|(row, session)| out::line(&dressed(paint, row, session, None)))
}

/// Those that are asked for, newest first, and how many there are beyond them.
async fn fetch(link: &Link, args: &Args) -> Result<(Vec<Session>, usize), Failure> {
    let cwd = args.here.then(|| link.place().here()).transpose()?;
    let archived = args.archived.then_some(true);
    let wanted = |session: &Session| {
        let state = session.state.as_str();
        args.state.is_empty() || args.state.iter().any(|one| one == state)
    };
    let (mut sessions, mut unshown, most) = (Vec::new(), 0, args.most());
    let mut cursor = None;
    loop {
        let page = link
            .call(async |client| {
                SessionRpcClient::list(
                    client,
                    cwd.clone(),
                    args.query.clone(),
                    archived,
                    Some(PAGE),
                    cursor.clone(),
                )
                .await
            })
            .await?;
        for session in page.sessions.into_iter().filter(wanted) {
            match sessions.len() < most {
                true => sessions.push(session),
                false => unshown += 1,
            }
        }
        cursor = page.cursor;
        // How many are left is of interest only to people, and only where they did not say how many they want.
        let enough = args.limit.is_some() && sessions.len() >= most;
        if cursor.is_none() || enough {
            let unshown = if args.limit.is_some() { 0 } else { unshown };
            return Ok((sessions, unshown));
        }
    }
}

/// For programs: the fields never change their places, and none holds a tab or a line break.
fn fields(session: &Session) -> String {
    let title = crate::paint::tame(&session.title).replace(['\t', '\n'], " ");
    let parts = [
        session.id.to_string(),
        session.state.as_str().to_string(),
        session.updated_at.to_string(),
        title,
        escaped(&session.cwd),
    ];
    parts.join("\t")
}

/// A path without control characters, which `printf %b` gives back: a program may go there.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                let bytes = c.encode_utf8(&mut bytes).bytes();
                bytes.for_each(|byte| out.push_str(&format!("\\0{byte:03o}")));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_what_it_is_on_one_line() {
        let path = "/w/a b\n\\c\u{1b}[2J\u{85}";
        assert_eq!(escaped(path), "/w/a b\\n\\\\c\\0033[2J\\0302\\0205");
    }
}
