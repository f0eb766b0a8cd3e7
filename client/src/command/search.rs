//! `dwell search`: full text over all sessions.

use crate::error::{Exit, Failure};
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use crate::render::first_line;
use protocol::session::{SearchHit, SessionRpcClient};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// At most so many hits
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
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
    let hits = link
        .call(async |client| {
            SessionRpcClient::search(client, query.clone(), Some(args.limit)).await
        })
        .await?;
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
