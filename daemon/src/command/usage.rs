//! `/usage`: the tokens this session has cost so far.

use super::registry::{Command, Invocation, Ran};
use super::table::table;
use protocol::event::{Event, EventKind};

/// Events read at once.
const PAGE: u32 = 1000;

pub(super) fn command() -> Command {
    Command::new("usage", "show the tokens this session has cost", run)
}

async fn run(invocation: Invocation) -> Ran {
    let mut tokens = Tokens::default();
    let mut after = None;
    loop {
        let sessions = &invocation.sessions;
        let page = sessions
            .history(&invocation.session, after, None, Some(PAGE))
            .await?;
        page.events.iter().for_each(|event| tokens.add(event));
        after = page.events.last().map(|event| event.seq);
        if !page.more || after.is_none() {
            return Ok(tokens.text());
        }
    }
}

#[derive(Default)]
struct Tokens {
    round_trips: u64,
    input: u64,
    output: u64,
    cached: u64,
}

impl Tokens {
    fn add(&mut self, event: &Event) {
        if let EventKind::Usage {
            input,
            output,
            cached,
            ..
        } = &event.kind
        {
            self.round_trips += 1;
            self.input += input;
            self.output += output;
            self.cached += cached;
        }
    }

    fn text(&self) -> String {
        if self.round_trips == 0 {
            return "no usage was reported".to_owned();
        }
        let row = |name: &str, count: u64| [name.to_owned(), count.to_string()];
        table(&[
            row("round trips", self.round_trips),
            row("tokens in", self.input),
            row("of them cached", self.cached),
            row("tokens out", self.output),
        ])
    }
}
