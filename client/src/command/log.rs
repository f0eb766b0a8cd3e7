//! `dwell log`: what happened in a session, read from the store.

use crate::attach::View;
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::paint::{Paint, dumb};
use crate::place::Place;
use crate::render::{Prompts, Renderer};
use crate::select;
use protocol::event::Event;
use protocol::id::SessionId;
use protocol::session::SessionRpcClient;
use std::io::IsTerminal;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many events one request asks for.
const PAGE: u32 = 1000;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which session
    #[arg(default_value = select::LAST)]
    session: String,

    /// Only events after this one
    #[arg(long, default_value_t = 0, value_name = "SEQ")]
    after: u64,

    /// The events themselves, one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = select::id(&link, &args.session).await?;
    let mut view = View::after(args.after);
    let mut renderer = Renderer::new(Paint::of(&std::io::stdout()), Prompts::Shown);
    if let Some(columns) = columns() {
        renderer = renderer.rich(columns);
    }
    let mut show = |event: Event| -> Result<(), Failure> {
        if args.json {
            return out::json(&event);
        }
        let Some(event) = view.take(event) else {
            return Ok(());
        };
        for chunk in renderer.event(&event) {
            out::raw(&chunk.text)?;
        }
        Ok(())
    };
    every_event(&link, &session, args.after, &mut show).await?;
    if !args.json {
        for chunk in renderer.finish() {
            out::raw(&chunk.text)?;
        }
        // What runs, as it stands.
        for row in renderer.live(now()) {
            out::line(&row)?;
        }
    }
    Ok(())
}

/// Columns for text, on a terminal that can be drawn on: there a session looks as it does while it goes on.
fn columns() -> Option<usize> {
    let capable = std::io::stdout().is_terminal() && !dumb();
    let (columns, _) = crate::screen::size().filter(|_| capable)?;
    Some(columns.saturating_sub(1))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_millis() as u64
}

async fn every_event(
    link: &Link,
    session: &SessionId,
    after: u64,
    show: &mut impl FnMut(Event) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut after = after;
    loop {
        let page = link
            .call(async |client| {
                let session = session.clone();
                SessionRpcClient::history(client, session, Some(after), None, Some(PAGE)).await
            })
            .await?;
        after = page.events.last().map_or(after, |event| event.seq);
        page.events.into_iter().try_for_each(&mut *show)?;
        if !page.more {
            return Ok(());
        }
    }
}
