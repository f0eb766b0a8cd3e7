//! `dwell search`: full text over all sessions.

use crate::error::{Exit, Failure};
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use crate::render::first_line;
use protocol::session::{SearchHit, SessionRpcClient};

/// The most hits that the daemon gives.
const MOST: u32 = 200;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// At most so many hits, up to 200
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
    limit: u32,

    /// One JSON object a line
    #[arg(long)]
    json: bool,

    /// Words, "phrases", prefix*
    #[arg(required = true)]
    query: Vec<String>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let query = args.query.join(" ");
    // One more than asked for shows whether there is one.
    let asked = (args.limit + 1).min(MOST);
    let mut hits = link
        .call(async |client| SessionRpcClient::search(client, query.clone(), Some(asked)).await)
        .await?;
    let limit = args.limit as usize;
    let more = hits.len() > limit || hits.len() == MOST as usize;
    hits.truncate(limit);
    if more {
        out::note(&format!(
            "these are the first {limit}: further words narrow the search, -n shows up to {MOST}"
        ))?;
    }
    if args.json {
        return hits.iter().try_for_each(out::json);
    }
    if hits.is_empty() {
        out::note(&format!("nothing found for {query}"))?;
        return Err(Failure::shown(Exit::Failed));
    }
    let paint = Paint::of(&std::io::stdout());
    hits.iter()
        .try_for_each(|hit| out::line(&shown(paint, hit)))
}

fn shown(paint: Paint, hit: &SearchHit) -> String {
    let place = paint.dress(Part::Tool, &format!("{}:{}", hit.session, hit.seq));
    let title = paint.dress(Part::Quiet, &first_line(&hit.title));
    format!("{place}  {}  {title}", first_line(&hit.snippet))
        .trim_end()
        .to_string()
}
