//! Whether a failed round trip is tried again, and after which pause. Pure: it neither waits nor counts.

use crate::provider::{ErrorClass, ProviderError};

/// How often a round trip is tried, the first time included.
pub const TRIES: u32 = 4;
/// The longest pause before the second try; it doubles with each further one.
const FIRST_PAUSE_MS: u64 = 500;
/// The longest pause where the vendor named none.
const LONGEST_PAUSE_MS: u64 = 8_000;
/// The longest pause that a vendor may ask for.
const LONGEST_ASKED_MS: u64 = 60_000;

/// What the failed round trip had brought before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitted {
    Nothing,
    /// Text or thinking, which is withdrawn before the next try.
    Text,
    /// A call, which is never made twice.
    Call,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    After { ms: u64 },
    GiveUp,
}

/// `attempt` is the number of the try that failed; the first is 1. `jitter` lies between 0 and 1 and spreads the pauses
/// of sessions that failed together.
pub fn decide(error: &ProviderError, attempt: u32, emitted: Emitted, jitter: f64) -> Retry {
    let asked = match (&error.class, emitted) {
        (_, Emitted::Call) => return Retry::GiveUp,
        (ErrorClass::Status { code, .. }, _) if !is_passing(*code) => return Retry::GiveUp,
        (ErrorClass::Status { retry_after_ms, .. }, _) => *retry_after_ms,
        (ErrorClass::Dropped | ErrorClass::Stalled, _) => None,
        (ErrorClass::Reported { retryable: true }, _) => None,
        (ErrorClass::Reported { retryable: false } | ErrorClass::Fatal, _) => return Retry::GiveUp,
    };
    if attempt >= TRIES {
        return Retry::GiveUp;
    }
    let ms = match asked.filter(|ms| *ms > 0) {
        Some(asked) => asked.min(LONGEST_ASKED_MS),
        None => pause(attempt, jitter),
    };
    Retry::After { ms }
}

/// Statuses that may be others the next time.
fn is_passing(code: u16) -> bool {
    matches!(code, 408 | 409 | 429 | 500..=599)
}

/// Between the half and the whole of a time that doubles with each try.
fn pause(attempt: u32, jitter: f64) -> u64 {
    let doublings = attempt.saturating_sub(1).min(16);
    let whole = (FIRST_PAUSE_MS << doublings).min(LONGEST_PAUSE_MS);
    let half = whole / 2;
    half + (half as f64 * jitter.clamp(0.0, 1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(class: ErrorClass) -> ProviderError {
        ProviderError {
            class,
            message: String::new(),
        }
    }

    fn status(code: u16, retry_after_ms: Option<u64>) -> ProviderError {
        failed(ErrorClass::Status {
            code,
            retry_after_ms,
        })
    }

    fn first(error: &ProviderError) -> Retry {
        decide(error, 1, Emitted::Nothing, 1.0)
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let again = Retry::After { ms: 500 };
        for code in [408, 409, 429, 500, 502, 503, 529, 599] {
            assert_eq!(first(&status(code, None)), again, "{code}");
        }
        for code in [400, 401, 403, 404, 413, 422, 301, 600] {
            assert_eq!(first(&status(code, Some(10))), Retry::GiveUp, "{code}");
        }
        assert_eq!(first(&failed(ErrorClass::Dropped)), again);
        assert_eq!(first(&failed(ErrorClass::Stalled)), again);
        let reported = |retryable| failed(ErrorClass::Reported { retryable });
        assert_eq!(first(&reported(true)), again);
        assert_eq!(first(&reported(false)), Retry::GiveUp);
        assert_eq!(first(&failed(ErrorClass::Fatal)), Retry::GiveUp);
    }

    #[test]
    fn a_round_trip_that_emitted_a_call_is_never_tried_again() {
        for error in [failed(ErrorClass::Dropped), status(503, Some(1))] {
            assert_eq!(decide(&error, 1, Emitted::Call, 0.0), Retry::GiveUp);
            let text = decide(&error, 1, Emitted::Text, 0.0);
            assert_ne!(text, Retry::GiveUp);
        }
    }

    #[test]
    fn tries_are_bounded_and_pauses_double() {
        let dropped = failed(ErrorClass::Dropped);
        let pauses = |jitter| {
            (1..=4)
                .map(|attempt| decide(&dropped, attempt, Emitted::Nothing, jitter))
                .collect::<Vec<_>>()
        };
        let after = |ms| Retry::After { ms };
        let most = [after(500), after(1000), after(2000), Retry::GiveUp];
        let least = [after(250), after(500), after(1000), Retry::GiveUp];
        assert_eq!(pauses(1.0), most);
        assert_eq!(pauses(0.0), least);
        assert_eq!(pauses(f64::INFINITY), most);
        assert_eq!(pause(u32::MAX, 1.0), LONGEST_PAUSE_MS);
    }

    #[test]
    fn pause_that_the_vendor_asks_for_is_kept_up_to_a_minute() {
        assert_eq!(first(&status(429, Some(1_500))), Retry::After { ms: 1_500 });
        let hours = status(429, Some(86_400_000));
        assert_eq!(first(&hours), Retry::After { ms: 60_000 });
        assert_eq!(first(&status(429, Some(0))), Retry::After { ms: 500 });
    }
}
