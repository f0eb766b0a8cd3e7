//! One HTTP round trip with a streamed answer: sending, the idle limit, and what went wrong on the way.
//! Must never know what a vendor's events mean, nor put a header or a URL's query into a message.

use super::http::{authority, root_cause};
use super::sse::{Event, Framing, Parser, TooLarge};
use super::{ErrorClass, ProviderError, ProviderEvent};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout, timeout_at};

/// How much of a refusal's body is read.
const REFUSAL: usize = 64 * 1024;
/// How long what follows the answer's end may take before it counts as all.
const TAIL: Duration = Duration::from_secs(5);
/// How long the body may take to end behind the vendor's end mark, so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(50);

/// Whom a round trip talks to and how patient it is.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// `host:port`.
    name: String,
    idle: Duration,
}

/// What the reader of the events says after each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// More must come.
    Open,
    /// The answer is whole; more may come (usage, the end mark).
    Tail,
    /// That was the end mark.
    Ended,
}

pub(super) type Emit<'a> = dyn FnMut(ProviderEvent) + Send + 'a;

/// One answer, put together from what comes: text goes on at once, calls when they are complete.
pub(super) trait Answer: Send {
    fn event(&mut self, event: &Event<'_>, emit: &mut Emit<'_>) -> Result<Flow, ProviderError>;
    /// Where the answer is now.
    fn flow(&self) -> Flow;
    /// An answer that is not streamed.
    fn object(&mut self, body: &[u8], emit: &mut Emit<'_>) -> Result<(), ProviderError>;
    /// Tells what waits for the end, unless the answer is one that cannot count.
    fn end(self: Box<Self>, emit: &mut Emit<'_>) -> Result<(), ProviderError>;
}

/// How the body came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Mark,
    /// Without an end mark, by the body's end or, behind a whole answer, by silence or a broken connection.
    NoMark,
}

impl Peer {
    pub(super) fn new(url: &Url, idle: Duration) -> Self {
        Self {
            name: authority(url),
            idle,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends and waits for the head of the answer.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, ProviderError> {
        match timeout(self.idle, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.not_sent(&error)),
            Err(_) => Err(self.stalled()),
        }
    }

    /// Reads a streamed answer to its end. `each` is told of every event, in order.
    pub(super) async fn read(
        &self,
        mut response: Response,
        framing: Framing,
        each: &mut (dyn FnMut(Event<'_>) -> Result<Flow, ProviderError> + Send),
    ) -> Result<End, ProviderError> {
        let mut parser = Parser::new(framing);
        let mut flow = Flow::Open;
        let mut received = 0;
        let mut deadline = Instant::now() + self.idle;
        while flow != Flow::Ended {
            let chunk = match timeout_at(deadline, response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => {
                    parser.finish(&mut |event| self.step(&mut flow, event, each))?;
                    break;
                }
                Ok(Err(_)) | Err(_) if flow == Flow::Tail => break,
                Ok(Err(error)) => return Err(self.broken(&error)),
                Err(_) => return Err(self.stalled()),
            };
            parser.feed(&chunk, &mut |event| self.step(&mut flow, event, each))?;
            if parser.received() != received {
                received = parser.received();
                let patience = if flow == Flow::Tail { TAIL } else { self.idle };
                deadline = Instant::now() + patience.min(self.idle);
            }
        }
        if flow != Flow::Ended {
            return Ok(End::NoMark);
        }
        drain(response).await;
        Ok(End::Mark)
    }

    /// Events behind the end mark are none.
    fn step(
        &self,
        flow: &mut Flow,
        event: Event<'_>,
        each: &mut (dyn FnMut(Event<'_>) -> Result<Flow, ProviderError> + Send),
    ) -> Result<(), ProviderError> {
        if *flow != Flow::Ended {
            *flow = each(event)?;
        }
        Ok(())
    }

    /// The whole body, at most `limit` bytes of it.
    pub(super) async fn body(
        &self,
        mut response: Response,
        limit: usize,
    ) -> Result<Vec<u8>, ProviderError> {
        let mut body = Vec::new();
        loop {
            match timeout(self.idle, response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Ok(None)) => return Ok(body),
                Ok(Err(error)) => return Err(self.broken(&error)),
                Err(_) => return Err(self.stalled()),
            }
            if body.len() >= limit {
                body.truncate(limit);
                return Ok(body);
            }
        }
    }

    /// A status that is no success. `explain` finds the vendor's message in the body.
    pub(super) async fn refused(
        &self,
        response: Response,
        explain: fn(&[u8]) -> Option<String>,
    ) -> ProviderError {
        let status = response.status();
        let retry_after_ms = retry_after(response.headers(), SystemTime::now());
        // The status is the news; a body that does not come changes nothing.
        let body = self.body(response, REFUSAL).await.unwrap_or_default();
        let why = explain(&body).unwrap_or_else(|| plain(&body));
        let colon = if why.is_empty() { "" } else { ": " };
        ProviderError {
            class: ErrorClass::Status {
                code: status.as_u16(),
                retry_after_ms,
            },
            message: format!("{} answered {}{colon}{why}", self.name, named(status)),
        }
    }

    pub(super) fn ended_early(&self) -> ProviderError {
        let message = format!("{} ended the stream without an end mark", self.name);
        ProviderError {
            class: ErrorClass::Dropped,
            message,
        }
    }

    /// Bytes that are not what the vendor's interface promises.
    pub(super) fn nonsense(&self, data: &[u8]) -> ProviderError {
        let shown: String = String::from_utf8_lossy(data).chars().take(80).collect();
        ProviderError {
            class: ErrorClass::Dropped,
            message: format!("{} sent what cannot be read: {shown:?}", self.name),
        }
    }

    fn not_sent(&self, error: &reqwest::Error) -> ProviderError {
        let cause = root_cause(error);
        let name = &self.name;
        let message = if cause.contains("certificate") {
            let message = format!("cannot trust {name}: {cause}");
            return ProviderError {
                class: ErrorClass::Fatal,
                message,
            };
        } else if error.is_builder() {
            let message = format!("cannot make a request to {name}: {cause}");
            return ProviderError {
                class: ErrorClass::Fatal,
                message,
            };
        } else if error.is_timeout() {
            format!("cannot connect to {name}: no answer in time: check the network")
        } else if error.is_connect() {
            format!("cannot connect to {name}: {cause}: check that a server runs there")
        } else {
            format!("{name} broke off before it answered: {cause}")
        };
        ProviderError {
            class: ErrorClass::Dropped,
            message,
        }
    }

    fn broken(&self, error: &reqwest::Error) -> ProviderError {
        ProviderError {
            class: ErrorClass::Dropped,
            message: format!("{} broke off its answer: {}", self.name, root_cause(error)),
        }
    }

    fn stalled(&self) -> ProviderError {
        let (name, idle) = (&self.name, self.idle.as_secs_f64());
        ProviderError {
            class: ErrorClass::Stalled,
            message: format!(
                "{name} sent no data for {idle} s (DWELL_IDLE_TIMEOUT_MS sets the limit)"
            ),
        }
    }
}

impl From<TooLarge> for ProviderError {
    fn from(TooLarge: TooLarge) -> Self {
        Self {
            class: ErrorClass::Fatal,
            message: "the provider's stream holds an event that is too large".to_owned(),
        }
    }
}

/// With its name, where it has one.
fn named(status: StatusCode) -> String {
    match (status.as_u16(), status.canonical_reason()) {
        (529, _) => "529 (overloaded)".to_owned(),
        (_, Some(_)) => status.to_string(),
        (code, None) => code.to_string(),
    }
}

/// Reads what little follows, so that the connection goes back to the pool.
async fn drain(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // A body that goes on costs its connection, nothing else.
    let _ = timeout(DRAIN, rest).await;
}

/// A body that is no JSON: its first line, unless it is a web page.
fn plain(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default();
    match line.starts_with('<') {
        true => "a web page".to_owned(),
        false => line.chars().take(300).collect(),
    }
}

/// The pause that the vendor asks for in milliseconds. A date in the past, 0 and what cannot be read count as none.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let exact = text("retry-after-ms").and_then(|ms| number(ms, 1.0));
    exact.or_else(|| {
        let value = text(RETRY_AFTER.as_str())?;
        number(value, 1000.0).or_else(|| until(value, now))
    })
}

fn number(text: &str, unit: f64) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    let ms = number * unit;
    (ms.is_finite() && ms >= 1.0).then_some(ms as u64)
}

fn until(date: &str, now: SystemTime) -> Option<u64> {
    let date = httpdate::parse_http_date(date.trim()).ok()?;
    let ms = date.duration_since(now).ok()?.as_millis();
    u64::try_from(ms).ok().filter(|ms| *ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &'static str, value: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        retry_after(&headers, now)
    }

    #[test]
    fn pause_is_read_from_seconds_milliseconds_and_dates() {
        assert_eq!(asked("retry-after", "3"), Some(3000));
        assert_eq!(asked("retry-after", "1.5"), Some(1500));
        assert_eq!(asked("retry-after-ms", "250"), Some(250));
        let date = asked("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT");
        assert_eq!(date, Some(3000));
    }

    #[test]
    fn status_has_a_name_or_none() {
        let of = |code| named(StatusCode::from_u16(code).unwrap());
        assert_eq!(of(429), "429 Too Many Requests");
        assert_eq!(
            (of(529), of(599)),
            ("529 (overloaded)".to_owned(), "599".to_owned())
        );
    }

    #[test]
    fn past_dates_zero_and_garbage_count_as_no_pause() {
        let past = "Sun, 06 Nov 1994 08:49:30 GMT";
        for value in [past, "0", "-1", "soon", "NaN", "inf", "", "1e400"] {
            assert_eq!(asked("retry-after", value), None, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), SystemTime::now()), None);
    }
}
