//! `dwell ls`: sessions, newest first.

use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use crate::render::styled::{clip, width};
use crate::render::{cut, first_line};
use protocol::session::{Session, SessionRpcClient, SessionState};
use std::rc::Rc;

/// The column that gives way.
const TITLE: usize = 3;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only this directory's
    #[arg(long)]
    here: bool,

    /// Those that were put away
    #[arg(long)]
    archived: bool,

    /// At most so many
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
    limit: u32,

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

    /// Words of the id or the title
    query: Option<String>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = match args.no_start {
        true => Rc::new(Link::open(place, Start::Never, Speak::Ours).await?),
        false => super::link(place).await?,
    };
    let mut sessions = fetch(&link, &args).await?;
    let wanted = |session: &Session| {
        args.state.is_empty()
            || args
                .state
                .iter()
                .any(|state| state == session.state.as_str())
    };
    sessions.retain(wanted);
    if args.json {
        return sessions.iter().try_for_each(out::json);
    }
    if args.tsv {
        return sessions
            .iter()
            .try_for_each(|session| out::line(&fields(session)));
    }
    let paint = Paint::of(&std::io::stdout());
    let now = now();
    let home = std::env::var("HOME").unwrap_or_default();
    let rows: Vec<[String; 5]> = sessions
        .iter()
        .map(|session| row(session, now, &home))
        .collect();
    if rows.is_empty() {
        return out::note("no sessions");
    }
    // A row is to have one line of the window.
    let columns = out::columns();
    for (row, session) in table(&rows, columns).iter().zip(&sessions) {
        let row = columns.map_or_else(|| row.clone(), |columns| clip(row, columns));
        out::line(&dressed(paint, &row, session.state))?;
    }
    Ok(())
}

async fn fetch(link: &Link, args: &Args) -> Result<Vec<Session>, Failure> {
    let cwd = args.here.then(|| link.place().here()).transpose()?;
    let archived = args.archived.then_some(true);
    let mut sessions = Vec::new();
    let mut cursor = None;
    loop {
        let left = args.limit.saturating_sub(sessions.len() as u32);
        let page = link
            .call(async |client| {
                SessionRpcClient::list(
                    client,
                    cwd.clone(),
                    args.query.clone(),
                    archived,
                    Some(left),
                    cursor.clone(),
                )
                .await
            })
            .await?;
        sessions.extend(page.sessions);
        cursor = page.cursor;
        if cursor.is_none() || sessions.len() as u32 >= args.limit {
            return Ok(sessions);
        }
    }
}

/// For programs: the fields never change their places, and none holds a tab or a line break.
fn fields(session: &Session) -> String {
    let plain = |text: &str| crate::paint::tame(text).replace(['\t', '\n'], " ");
    let parts = [
        session.id.to_string(),
        session.state.as_str().to_string(),
        session.updated_at.to_string(),
        plain(&session.title),
        plain(&session.cwd),
    ];
    parts.join("\t")
}

fn row(session: &Session, now: u64, home: &str) -> [String; 5] {
    let cwd = match session.cwd.strip_prefix(home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
            format!("~{rest}")
        }
        _ => session.cwd.clone(),
    };
    let cwd = crate::paint::tame(&cwd);
    [
        session.id.to_string(),
        session.state.as_str().to_string(),
        age(now.saturating_sub(session.updated_at)),
        titled(session),
        cwd,
    ]
}

fn titled(session: &Session) -> String {
    let title = first_line(&session.title);
    match (&session.parent, &session.task) {
        (Some(parent), Some(_)) => cut(&format!("(task of {parent}) {title}"), 70),
        _ => cut(&title, 50),
    }
}

/// Columns as wide as their widest cell; the titles give way to the rest where the window is narrow.
fn table(rows: &[[String; 5]], columns: Option<usize>) -> Vec<String> {
    let widest = |column: usize| {
        rows.iter()
            .map(|row| width(&row[column]))
            .max()
            .unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..4).map(widest).collect();
    if let Some(columns) = columns {
        let rest = widths[..3].iter().sum::<usize>() + 8 + widest(4).min(columns / 3);
        widths[TITLE] = widths[TITLE].min(columns.saturating_sub(rest));
    }
    let line = |row: &[String; 5]| {
        let mut text = String::new();
        for (cell, wide) in row.iter().zip(&widths) {
            let cell = clip(cell, *wide);
            let gap = " ".repeat(wide.saturating_sub(width(&cell)) + 2);
            text.push_str(&format!("{cell}{gap}"));
        }
        text.push_str(&row[4]);
        text.trim_end().to_string()
    };
    rows.iter().map(line).collect()
}

fn dressed(paint: Paint, row: &str, state: SessionState) -> String {
    let part = match state {
        SessionState::Idle => return row.to_string(),
        SessionState::Running => Part::Good,
        SessionState::Waiting => Part::Ask,
        SessionState::Failed => Part::Bad,
    };
    let word = state.as_str();
    row.replacen(word, &paint.dress(part, word), 1)
}

/// How long ago, in one unit.
fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        assert_eq!(age(0), "0s");
        assert_eq!(age(61_000), "1m");
        assert_eq!(age(7_200_000), "2h");
        assert_eq!(age(200_000_000), "2d");
    }

    #[test]
    fn a_narrow_window_has_a_line_for_each_row() {
        let row = [
            "swift-otter-abc123",
            "idle",
            "1s",
            &"long ".repeat(9),
            "~/here",
        ]
        .map(String::from);
        let lines = table(&[row], Some(60));
        assert!(
            width(&lines[0]) <= 60 && lines[0].ends_with("~/here"),
            "{lines:?}"
        );
    }

    #[test]
    fn columns_line_up() {
        let cell = |text: &str| text.to_string();
        let rows = [
            [
                cell("a"),
                cell("idle"),
                cell("1s"),
                cell("grün"),
                cell("/x"),
            ],
            [
                cell("bcd"),
                cell("running"),
                cell("10s"),
                cell(""),
                cell("/y"),
            ],
        ];
        assert_eq!(
            table(&rows, None),
            ["a    idle     1s   grün  /x", "bcd  running  10s        /y"]
        );
    }
}
