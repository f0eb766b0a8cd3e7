//! Figures and their targets: medians, and lines for people. Must never fail a run: it states what is.

use std::time::Duration;

/// Lines of a report, printed as they come.
#[derive(Default)]
pub(super) struct Report {
    name: String,
    missed: Vec<String>,
}

/// Whether a figure is small enough.
#[derive(Clone, Copy)]
pub(super) enum Target {
    AtMost(f64),
    /// Stands there to compare with.
    None,
}

impl Report {
    pub(super) fn about(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// One figure in a unit.
    pub(super) fn line(&mut self, what: &str, value: f64, unit: &str, target: Target) {
        let (limit, verdict) = match target {
            Target::AtMost(limit) if value <= limit => (format!("<= {limit} {unit}"), "holds"),
            Target::AtMost(limit) => (format!("<= {limit} {unit}"), "MISSED"),
            Target::None => (String::new(), ""),
        };
        let value = format!("{value:.3} {unit}");
        println!("{what:44} {value:>14} {limit:>14}  {verdict}");
        if verdict == "MISSED" {
            self.missed
                .push(format!("{} ({what}: {value}, target {limit})", self.name));
        }
    }

    pub(super) fn end(self) {
        match self.missed.as_slice() {
            [] => println!("\nall targets hold"),
            missed => println!("\nmissed:\n  {}", missed.join("\n  ")),
        }
    }
}

/// The middle one.
pub(super) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The one that 99 of 100 do not exceed.
pub(super) fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}

pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(super) fn mib(bytes: u64) -> f64 {
    to_f64(bytes) / 1024.0 / 1024.0
}

pub(super) fn kib(bytes: u64) -> f64 {
    to_f64(bytes) / 1024.0
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn to_f64(count: u64) -> f64 {
    count as f64
}
