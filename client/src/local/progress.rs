//! How far a pull is: a bar on a terminal, a line now and then elsewhere. Must never write to stdout.

use crate::error::Failure;
use crate::out;
use indicatif::{ProgressBar, ProgressStyle};
use protocol::provider::{ModelProgress, PullStep};
use std::io::IsTerminal;

const BAR: &str =
    "{msg} {bar:24} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta} left";
/// Where nobody knows how much it is.
const COUNT: &str = "{spinner} {msg} {decimal_bytes}";
/// Percent between two lines.
const LINES: u64 = 25;

pub(super) struct Progress {
    name: String,
    /// None: lines.
    bar: Option<ProgressBar>,
    step: Option<(PullStep, Option<u64>)>,
    /// The percent of the next line.
    next: u64,
}

impl Progress {
    pub(super) fn start(name: &str) -> Self {
        let terminal = std::io::stderr().is_terminal() && !crate::paint::dumb();
        Self {
            name: name.to_owned(),
            bar: terminal.then(ProgressBar::no_length),
            step: None,
            next: 0,
        }
    }

    pub(super) fn show(&mut self, far: &ModelProgress) -> Result<(), Failure> {
        // The package and the file in it are of two sizes.
        let step = Some((far.step, far.total));
        let fresh = std::mem::replace(&mut self.step, step) != step;
        match &self.bar {
            Some(bar) => {
                draw(bar, &self.name, far, fresh);
                Ok(())
            }
            None => self.line(far, fresh),
        }
    }

    fn line(&mut self, far: &ModelProgress, fresh: bool) -> Result<(), Failure> {
        if fresh {
            self.next = 0;
        }
        let percent = far
            .total
            .and_then(|total| (far.done * 100).checked_div(total));
        let percent = percent.unwrap_or(0);
        if !fresh && percent < self.next {
            return Ok(());
        }
        self.next = (percent / LINES + 1) * LINES;
        let doing = doing(&self.name, far);
        match far.total {
            Some(total) => out::note(&format!(
                "{doing}: {} of {} ({percent} %)",
                bytes(far.done),
                bytes(total)
            )),
            None => out::note(&doing),
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn draw(bar: &ProgressBar, name: &str, far: &ModelProgress, fresh: bool) {
    if fresh {
        let template = if far.total.is_some() { BAR } else { COUNT };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        // Another step has another speed.
        bar.reset();
        bar.set_message(doing(name, far));
    }
    if let Some(total) = far.total {
        bar.set_length(total);
    }
    bar.set_position(far.done);
}

fn doing(name: &str, far: &ModelProgress) -> String {
    let verb = match far.step {
        PullStep::Fetching => "fetching",
        PullStep::Checking => "checking",
        PullStep::Preparing => "preparing",
        PullStep::Unknown => "working on",
    };
    match &far.source {
        Some(source) => format!("{verb} {name} from {source}"),
        None => format!("{verb} {name}"),
    }
}

/// Bytes as people read them.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{} kB", count / 1000),
        1_000_000..1_000_000_000 => format!("{} MB", count / 1_000_000),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_readable() {
        assert_eq!(bytes(98_362_432), "98 MB");
        assert_eq!(bytes(1_117_320_768), "1.1 GB");
        assert_eq!(bytes(1_048), "1 kB");
    }
}
