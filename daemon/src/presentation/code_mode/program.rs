//! One program from its text to its end: the child, the calls it makes, the time it has.
//! Must never run a call itself, and never return while its child lives.

use super::child::{Child, Reading};
use super::clock::Clock;
use super::limits::{Limits, RESULT, size};
use super::outcome::{Made, Outcome};
use super::slots::{Busy, Slot, Slots};
use super::source::Source;
use super::wire::{Ending, Failed, Frame, Job, Kind, STOPPED, beginning};
use crate::process::Exit;
use crate::toolbox::BoxFuture;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long a program whose time is up may take to say where it was.
const LAST_WORD: Duration = Duration::from_millis(250);
/// How long calls that were cancelled may take to end.
const GRACE: Duration = Duration::from_millis(250);
/// Of calls that wait, what is read only to learn whether the program waits for them.
const ASIDE: usize = 4 * 1024 * 1024;
/// What a frame has beside its input, a name for example.
const BESIDE: usize = 64 * 1024;

/// A program and what it may use.
pub(super) struct Program<'a> {
    pub(super) code: &'a str,
    /// Names of the tools, `search_tools` among them if it is there.
    pub(super) tools: Vec<String>,
    pub(super) limits: &'a Limits,
    /// Run also where no filter of system calls can be had.
    pub(super) unfiltered: bool,
    pub(super) slots: &'static Slots,
    /// The place of the program that runs this one.
    pub(super) within: Option<Arc<Semaphore>>,
    pub(super) cancel: &'a CancellationToken,
}

/// Makes the calls of a program: tool, input, the program's clock, what cancels them.
pub(super) type Caller<'a> = dyn Fn(
        String,
        Value,
        Arc<Clock>,
        CancellationToken,
    ) -> BoxFuture<'static, Result<Value, Box<Failed>>>
    + Send
    + Sync
    + 'a;

impl Program<'_> {
    /// Runs it. Whatever happens, what it did is told.
    pub(super) async fn run(&self, caller: &Caller<'_>) -> Outcome {
        if let Some(failed) = self.refusal() {
            return Outcome::failed(failed);
        }
        let slot = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Outcome::failed(cancelled()),
            place = self.place() => place,
        };
        let Ok((slot, _within)) = slot else {
            let message = "as many programs run and wait as may; try again later";
            return Outcome::failed(Failed::new("busy", message));
        };
        let started = Child::start(size(self.limits.input) + BESIDE);
        let (running, mut child) = match started {
            Ok(started) => started,
            Err(error) => {
                let message = format!("cannot start a process for the program: {error}");
                return Outcome::failed(Failed::new("crashed", &message));
            }
        };
        let job = serde_json::to_vec(&self.job()).unwrap_or_default();
        child.send(Kind::Job, 0, job);
        let clock = Clock::new(Duration::from_millis(self.limits.wall_ms), slot);
        let kill = CancellationToken::new();
        let run = Run {
            program: self,
            caller,
            child,
            clock: Arc::new(clock),
            open: FuturesUnordered::new(),
            queued: VecDeque::new(),
            queued_bytes: 0,
            asked: false,
            given: 0,
            calls_cancel: CancellationToken::new(),
            ending: None,
            finished: false,
            outcome: Outcome::default(),
        };
        run.until_ended(running.ended(&kill), &kill).await
    }

    /// Who waited for one of the daemon's places while its own program holds one could wait for itself.
    async fn place(&self) -> Result<(Option<Slot>, Option<OwnedSemaphorePermit>), Busy> {
        match &self.within {
            None => Ok((Some(self.slots.take().await?), None)),
            Some(within) => Ok((None, Arc::clone(within).acquire_owned().await.ok())),
        }
    }

    /// Why it cannot even begin.
    fn refusal(&self) -> Option<Failed> {
        if self.code.len() > size(self.limits.source) {
            let (has, may) = (self.code.len(), self.limits.source);
            let message = format!("the program has {has} bytes of at most {may}");
            return Some(Failed::new("program_too_large", &message));
        }
        if let Some(at) = self.code.find('\0') {
            let line = self.code[..at].matches('\n').count() + 1;
            let message = format!("there is a NUL character on line {line}");
            return Some(Failed::new("syntax", &message));
        }
        let nothing = || Failed::new("empty_program", "there is nothing in the program to run");
        Source::of(self.code).is_empty().then(nothing)
    }

    fn job(&self) -> Job {
        let limits = self.limits;
        Job {
            code: self.code.to_owned(),
            tools: self.tools.clone(),
            unfiltered: self.unfiltered,
            cpu_ms: limits.cpu_ms,
            memory: size(limits.memory),
            stack: size(limits.stack),
            calls: size(limits.calls),
            input: size(limits.input),
            logs: size(limits.logs),
            result: RESULT,
            depth: size(limits.depth),
        }
    }
}

fn cancelled() -> Failed {
    Failed::new("cancelled", "cancelled")
}

/// A call that ended.
struct Ended {
    id: u32,
    /// Its place among the calls made.
    at: usize,
    result: Result<Value, Box<Failed>>,
    ms: u64,
}

/// A call that waits for its turn.
struct Queued {
    id: u32,
    /// Its place among the calls made.
    at: usize,
    input: Value,
    bytes: usize,
}

/// A running program.
struct Run<'a> {
    program: &'a Program<'a>,
    caller: &'a Caller<'a>,
    child: Child,
    clock: Arc<Clock>,
    open: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// Calls beyond those that may run at once. Nothing is read while it is as long as that again, but to learn whether the
    /// program waits.
    queued: VecDeque<Queued>,
    queued_bytes: usize,
    /// Whether it was asked to say when it waits, since it was given something.
    asked: bool,
    /// How often it was given something.
    given: u32,
    calls_cancel: CancellationToken,
    ending: Option<Ending>,
    finished: bool,
    outcome: Outcome,
}

/// Why it is ended before it ended itself.
enum Cut {
    Cancelled,
    Timeout,
    Broken(String),
}

impl Run<'_> {
    async fn until_ended(
        mut self,
        ended: impl Future<Output = Exit>,
        kill: &CancellationToken,
    ) -> Outcome {
        let mut ended = std::pin::pin!(ended);
        let (exit, cut) = self.go(&mut ended).await;
        kill.cancel();
        let exit = match exit {
            Some(exit) => exit,
            None => ended.await,
        };
        while let Some(frame) = self.child.rest() {
            // What it said before its end counts; calls come too late.
            if frame.kind != Kind::Call {
                let _ = self.take(frame);
            }
        }
        self.abandon_calls().await;
        self.conclude(exit, cut)
    }

    /// Until the child has ended, or must.
    async fn go(
        &mut self,
        ended: &mut (impl Future<Output = Exit> + Unpin),
    ) -> (Option<Exit>, Option<Cut>) {
        let clock = Arc::clone(&self.clock);
        let mut over = std::pin::pin!(clock.over());
        let mut last_word: Option<Instant> = None;
        let cancel = self.program.cancel;
        loop {
            self.start_queued();
            let room = self.queued.len() < size(self.program.limits.in_flight);
            let listens = self.asked && self.queued_bytes < ASIDE;
            let reading = if room || listens {
                Reading::On
            } else {
                Reading::Off
            };
            let asked = self.asked;
            let until = last_word.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                () = cancel.cancelled() => return (None, Some(Cut::Cancelled)),
                exit = &mut *ended => {
                    let cut = last_word.map(|_| Cut::Timeout);
                    return (Some(exit), cut);
                }
                () = clock.asks(), if !asked => {
                    self.asked = true;
                    self.child.send(Kind::Idle, self.given, "");
                }
                () = sleep_until(until), if last_word.is_some() => return (None, Some(Cut::Timeout)),
                () = &mut over, if last_word.is_none() => {
                    self.child.send(Kind::Stop, 0, "");
                    last_word = Some(Instant::now() + LAST_WORD);
                }
                Some(done) = self.open.next(), if !self.open.is_empty() => self.answer(done),
                frame = self.child.next(reading) => {
                    let frame = frame.map_err(|_| "it sent what is no frame".to_owned());
                    if let Err(why) = frame.and_then(|frame| self.take(frame)) {
                        return (None, Some(Cut::Broken(why)));
                    }
                }
            }
        }
    }

    fn take(&mut self, frame: Frame) -> Result<(), String> {
        let Frame { kind, id, text } = frame;
        match kind {
            Kind::Ready if text.is_empty() || self.program.unfiltered => {}
            Kind::Ready => {
                let why = String::from_utf8_lossy(&text);
                let message = format!("programs do not run here: {why}");
                self.ending = Some(Ending::Failed(Failed::new("unavailable", &message)));
            }
            Kind::Call => return self.call(id, &text),
            Kind::Log => {
                let room = size(self.program.limits.logs) + BESIDE;
                let text = String::from_utf8_lossy(&text).into_owned();
                self.outcome.log(text, room);
            }
            Kind::Settled if self.ending.is_none() => {
                let ending = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
                // Of one that failed nobody knows what it would have awaited.
                if let Ending::Returned(_) = &ending {
                    self.outcome.not_awaited = self.open.len() + self.queued.len();
                }
                self.ending = Some(ending);
            }
            Kind::Settled => {}
            Kind::Finished => {
                self.finished = true;
                let notes: Vec<String> = serde_json::from_slice(&text).unwrap_or_default();
                self.outcome.notes.extend(notes.into_iter().take(8));
            }
            // Of an answer that crossed what it was given nobody knows whether it still holds.
            Kind::Idling if id == self.given => self.clock.idles(true),
            Kind::Idling => {}
            Kind::Job | Kind::Result | Kind::Failed | Kind::Stop | Kind::Idle => {
                return Err(format!("it sent a frame of the kind {kind:?}"));
            }
        }
        Ok(())
    }

    fn call(&mut self, id: u32, text: &[u8]) -> Result<(), String> {
        let (tool, input): (String, Value) = serde_json::from_slice(text)
            .map_err(|error| format!("it sent a call that is no JSON: {error}"))?;
        if self.outcome.calls.len() >= size(self.program.limits.calls) {
            return Err("it made more calls than it may".to_owned());
        }
        self.outcome.calls.push(Made {
            tool,
            ok: false,
            ms: 0,
        });
        self.queued_bytes += text.len();
        self.queued.push_back(Queued {
            id,
            at: self.outcome.calls.len() - 1,
            input,
            bytes: text.len(),
        });
        Ok(())
    }

    fn start_queued(&mut self) {
        while self.open.len() < size(self.program.limits.in_flight)
            && let Some(queued) = self.queued.pop_front()
        {
            let Queued {
                id,
                at,
                input,
                bytes,
            } = queued;
            self.queued_bytes -= bytes;
            let tool = self.outcome.calls[at].tool.clone();
            let clock = Arc::clone(&self.clock);
            let running = (self.caller)(tool, input, Arc::clone(&clock), self.calls_cancel.clone());
            self.open.push(Box::pin(async move {
                let _count = clock.call();
                let begun = Instant::now();
                let result = running.await;
                let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                Ended { id, at, result, ms }
            }));
        }
    }

    fn answer(&mut self, ended: Ended) {
        let id = ended.id;
        let (kind, text) = match self.record(ended) {
            Ok(value) => (Kind::Result, self.cut(&value)),
            Err(failed) => (Kind::Failed, json!(*failed).to_string()),
        };
        self.clock.idles(false);
        self.asked = false;
        self.given += 1;
        self.child.send(kind, id, text);
    }

    fn record(&mut self, ended: Ended) -> Result<Value, Box<Failed>> {
        let made = &mut self.outcome.calls[ended.at];
        made.ok = ended.result.is_ok();
        made.ms = ended.ms;
        ended.result
    }

    /// A result as JSON; of one that is too long, its beginning. It is no failure: what the tool did is done.
    fn cut(&mut self, value: &Value) -> String {
        let text = value.to_string();
        let most = size(self.program.limits.output);
        if text.len() <= most {
            return text;
        }
        let note = format!("a result of {} bytes was cut to {most}", text.len());
        self.outcome.notes.push(note);
        json!({"truncated": true, "text": beginning(&text, most), "ok": true}).to_string()
    }

    /// Calls that still run have nobody to tell; they are cancelled, and end as everybody's do.
    async fn abandon_calls(&mut self) {
        let waiting = self.clock.waiting();
        self.outcome.not_run = self.queued.len() + waiting;
        self.outcome.abandoned = self.open.len().saturating_sub(waiting);
        self.queued.clear();
        self.calls_cancel.cancel();
        let deadline = Instant::now() + GRACE;
        while !self.open.is_empty() {
            match tokio::time::timeout_at(deadline, self.open.next()).await {
                Ok(Some(ended)) => drop(self.record(ended)),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn conclude(mut self, exit: Exit, cut: Option<Cut>) -> Outcome {
        let wall = self.program.limits.wall_ms;
        let timeout = |at| Failed {
            at,
            ..Failed::new(
                "timeout",
                &format!("the program did not end within {wall} ms"),
            )
        };
        let ending = match (self.ending.take(), cut) {
            (_, Some(Cut::Cancelled)) => Ending::Failed(cancelled()),
            (Some(Ending::Failed(failed)), Some(Cut::Timeout)) if failed.code == STOPPED => {
                Ending::Failed(timeout(failed.at))
            }
            (Some(Ending::Failed(failed)), _) if failed.code == STOPPED => {
                Ending::Failed(crashed(&exit))
            }
            (Some(ending), _) => ending,
            (None, Some(Cut::Timeout)) => Ending::Failed(timeout(None)),
            (None, Some(Cut::Broken(why))) => Ending::Failed(Failed::new(
                "crashed",
                &format!("the program's process is broken: {why}"),
            )),
            (None, None) => Ending::Failed(match exit {
                Exit::Signal(libc::SIGXCPU) => {
                    let cpu = self.program.limits.cpu_ms;
                    Failed::new(
                        "cpu",
                        &format!("the program used up its {cpu} ms of processor time"),
                    )
                }
                exit => crashed(&exit),
            }),
        };
        self.outcome.ending = Some(ending);
        self.outcome
    }
}

fn crashed(exit: &Exit) -> Failed {
    let how = match exit {
        Exit::Code(code) => format!("it ended with {code}"),
        Exit::Signal(signal) => format!("it was killed by signal {signal}"),
        Exit::TimedOut | Exit::Cancelled => "it was ended".to_owned(),
        Exit::NotStarted(why) => why.clone(),
    };
    Failed::new("crashed", &format!("the program's process is gone: {how}"))
}
