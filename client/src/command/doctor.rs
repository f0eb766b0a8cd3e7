//! `dwell doctor`: what is wrong here, and how to mend it. Must never mend, start or stop anything itself.

mod check;
mod files;
mod server;

use crate::connect::{Speak, Start};
use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use check::{Check, State};
use serde::Serialize;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Exit code 1 says that something does not work.
pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let far = place.remote.is_some();
    let mut checks = match &place.remote {
        // What lies on this machine has no part in it.
        Some(remote) => vec![check::remote(remote)],
        None => {
            let mut checks = vec![check::binary(), check::socket(&place), check::state(&place)];
            checks.extend(files::checks().await);
            checks
        }
    };
    let link = Link::open(place.clone(), Start::Never, Speak::Any).await;
    match &link {
        Ok(link) => {
            checks.extend(check::versions(link).await);
            checks.extend(check::providers(link).await);
            if !far {
                checks.push(check::keys());
            }
            checks.push(check::trust(link).await);
            if !far {
                checks.extend(server::checks(&link.connection().0.servers).await);
            }
        }
        Err(failure) => {
            let there = far || crate::connect::is_there(&place).await;
            checks.push(check::unreachable(failure, there));
        }
    }
    checks.extend(check::terminal());
    let misread = crate::repl::settings::misread().into_iter();
    checks.extend(misread.map(|wrong| Check::new(State::Doubtful, wrong)));
    checks.push(check::programs());
    let paint = Paint::of(&std::io::stdout());
    for check in &checks {
        match args.json {
            true => out::json(&Told::of(check))?,
            false => out::line(&shown(check, paint))?,
        }
    }
    match checks.iter().any(|check| check.state == State::Bad) {
        true => Err(Failure::shown(Exit::Failed)),
        false => Ok(()),
    }
}

/// A check for programs.
#[derive(Debug, Serialize)]
struct Told<'a> {
    state: &'static str,
    what: &'a str,
    hint: Option<&'a str>,
}

impl<'a> Told<'a> {
    fn of(check: &'a Check) -> Self {
        Self {
            state: check.state.word(),
            what: &check.what,
            hint: check.hint.as_deref(),
        }
    }
}

fn shown(check: &Check, paint: Paint) -> String {
    let part = match check.state {
        State::Good => Part::Good,
        State::Doubtful => Part::Ask,
        State::Bad => Part::Bad,
    };
    let word = check.state.word();
    let mut line = format!(
        "{}{} {}",
        paint.dress(part, word),
        " ".repeat(7 - word.len()),
        check.what
    );
    if let Some(hint) = &check.hint {
        line.push_str(&format!("\n        {}", paint.dress(Part::Quiet, hint)));
    }
    line
}
