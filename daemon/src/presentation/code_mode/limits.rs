//! How much a program may use: what it has unasked, and the most that an expression may give it. Pure.

use protocol::expression::CodeLimits;

const KIBIBYTE: u64 = 1024;
const MEBIBYTE: u64 = 1024 * 1024;

/// How deep anything may be that becomes an event: what reads JSON stops at 128, the event around it included.
const DEEPEST: u64 = crate::toolbox::result::DEEPEST as u64;

/// The most that a model is given of a result, as JSON; more is cut.
pub(super) const RESULT: usize = 64 * 1024;

/// Times in milliseconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub wall_ms: u64,
    pub cpu_ms: u64,
    pub memory: u64,
    pub stack: u64,
    /// Of the program's text.
    pub source: u64,
    /// Calls in all.
    pub calls: u64,
    /// Calls at once; further ones wait.
    pub in_flight: u64,
    /// Of one call.
    pub input: u64,
    /// Of one call; more is cut.
    pub output: u64,
    pub logs: u64,
    /// How deep the result may be.
    pub depth: u64,
}

/// One limit: its name, its least, usual and largest value, and where it is kept.
struct Row(&'static str, u64, u64, u64, fn(&mut Limits) -> &mut u64);

const ROWS: &[Row] = &[
    Row("wall_ms", 10, 60_000, 600_000, |limits| &mut limits.wall_ms),
    Row("cpu_ms", 10, 10_000, 60_000, |limits| &mut limits.cpu_ms),
    Row(
        "memory",
        4 * MEBIBYTE,
        64 * MEBIBYTE,
        512 * MEBIBYTE,
        |limits| &mut limits.memory,
    ),
    Row(
        "stack",
        64 * KIBIBYTE,
        512 * KIBIBYTE,
        4 * MEBIBYTE,
        |limits| &mut limits.stack,
    ),
    Row("source", 1, 256 * KIBIBYTE, MEBIBYTE, |limits| {
        &mut limits.source
    }),
    Row("calls", 1, 200, 10_000, |limits| &mut limits.calls),
    Row("in_flight", 1, 16, 64, |limits| &mut limits.in_flight),
    Row("input", 64, MEBIBYTE, 4 * MEBIBYTE, |limits| {
        &mut limits.input
    }),
    Row("output", 256, 4 * MEBIBYTE, 8 * MEBIBYTE, |limits| {
        &mut limits.output
    }),
    Row("logs", 1, 64 * KIBIBYTE, MEBIBYTE, |limits| {
        &mut limits.logs
    }),
    Row("depth", 1, DEEPEST, DEEPEST, |limits| &mut limits.depth),
];

impl Default for Limits {
    fn default() -> Self {
        let mut limits = Self {
            wall_ms: 0,
            cpu_ms: 0,
            memory: 0,
            stack: 0,
            source: 0,
            calls: 0,
            in_flight: 0,
            input: 0,
            output: 0,
            logs: 0,
            depth: 0,
        };
        for Row(_, _, usual, _, place) in ROWS {
            *place(&mut limits) = *usual;
        }
        limits
    }
}

/// A limit that cannot be set: its name and what is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct BadLimit {
    pub name: String,
    pub why: String,
}

impl Limits {
    /// The usual ones, but for those that are given.
    pub fn of(given: &CodeLimits) -> Result<Self, BadLimit> {
        let mut limits = Self::default();
        let given = serde_json::to_value(given).unwrap_or_default();
        for Row(name, least, _, most, place) in ROWS {
            let Some(value) = given.get(*name) else {
                continue;
            };
            let number = value
                .as_u64()
                .filter(|number| (least..=most).contains(&number));
            *place(&mut limits) = number.ok_or_else(|| BadLimit {
                name: (*name).to_owned(),
                why: format!("must be a whole number from {least} to {most}"),
            })?;
        }
        Ok(limits)
    }
}

/// A size where one is counted in memory.
pub(super) fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    use serde_json::{Value, json};

    fn of(given: Value) -> Result<Limits, BadLimit> {
        Limits::of(&serde_json::from_value(given).unwrap())
    }

    #[test]
    fn limits_that_are_not_given_are_the_usual_ones() {
        assert_eq!(of(json!({})), Ok(Limits::default()));
        let limits = of(json!({"wall_ms": 500, "calls": 1000})).unwrap();
        assert_eq!((limits.wall_ms, limits.calls), (500, 1000));
        let usual = (10_000, 64 * MEBIBYTE, 16);
        assert_eq!((limits.cpu_ms, limits.memory, limits.in_flight), usual);
    }

    #[test]
    fn every_limit_of_an_expression_counts() {
        let most: Value = ROWS
            .iter()
            .map(|row| (row.0.to_owned(), json!(row.3)))
            .collect();
        let given: CodeLimits = serde_json::from_value(most.clone()).unwrap();
        assert_eq!(serde_json::to_value(given).unwrap(), most);
        let mut limits = Limits::of(&given).unwrap();
        for Row(name, _, _, most, place) in ROWS {
            assert_eq!(*place(&mut limits), *most, "{name}");
        }
    }

    #[test]
    fn a_limit_beyond_its_cap_is_refused_by_its_name() {
        for (given, name) in [
            (json!({"wall_ms": 600_001}), "wall_ms"),
            (json!({"wall_ms": 0}), "wall_ms"),
            (json!({"memory": 1}), "memory"),
            (json!({"in_flight": 65}), "in_flight"),
        ] {
            assert_eq!(of(given).unwrap_err().name, name);
        }
    }
}
