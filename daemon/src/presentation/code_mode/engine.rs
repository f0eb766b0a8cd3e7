//! A program in QuickJS: its realm, its jobs, its calls over the wire, and how it ended. Runs in the child alone.
//! Must never touch a file, a socket or another process: all that it has is the wire.

mod ended;
mod heap;

use super::line::Line;
use super::source::{Shape, Source};
use super::wire::{Ending, Failed, Frame, Job, Kind, STOPPED, beginning};
use crate::toolbox::result::DEEPEST;
use ended::{OUT_OF_MEMORY, host_error, is_vague, returned, thrown, tidy};
use heap::Heap;
use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Exception, Function, Object, Runtime, Value};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

const BOOTSTRAP: &str = include_str!("bootstrap.js");
/// What stands for a program in the stacks of its errors.
const PROGRAM: &str = "program";
/// The longest name of a tool that is asked for, as JSON, in bytes.
const LONGEST_NAME: usize = 1024;
/// How many jobs run between two looks at the clock and the wire.
const JOBS: usize = 64;
/// How many rejections that nobody handled are told.
const TOLD: usize = 5;

/// Why a program must end at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    /// The daemon says so, or is gone.
    Asked,
    /// Its processor time is used up.
    Cpu,
}

/// What the program's closures share with what runs it.
struct Shared {
    line: RefCell<Line>,
    cpu_ms: u64,
    stop: Cell<Option<Stop>>,
    /// Whether memory was ever refused.
    refused: Rc<Cell<bool>>,
    ending: RefCell<Option<Ending>>,
    /// Rejections that nobody handles yet, by the address of their promise.
    floating: RefCell<BTreeMap<usize, String>>,
    logged: Cell<usize>,
    logs: usize,
}

impl Shared {
    /// Whether it must stop; looks at the clock and at what the daemon says.
    fn must_stop(&self) -> bool {
        if self.stop.get().is_some() {
            return true;
        }
        if cpu_ms() >= self.cpu_ms {
            self.stop.set(Some(Stop::Cpu));
        } else if let Ok(mut line) = self.line.try_borrow_mut()
            && line.stop_asked()
        {
            self.stop.set(Some(Stop::Asked));
        }
        self.stop.get().is_some()
    }

    fn log(&self, text: &str) {
        let room = self.logs.saturating_sub(self.logged.get());
        if room == 0 {
            return;
        }
        let mut line = beginning(text, room).to_owned();
        if line.len() < text.len() {
            line.push_str(" [the log is cut here]");
            self.logged.set(self.logs);
        } else {
            self.logged.set(self.logged.get() + text.len() + 1);
        }
        self.line.borrow_mut().send(&Frame::new(Kind::Log, 0, line));
    }
}

/// Runs it to its end and says how that was.
pub(super) fn run(job: &Job, line: Line) {
    let refused = Rc::new(Cell::new(false));
    let shared = Rc::new(Shared {
        line: RefCell::new(line),
        cpu_ms: job.cpu_ms,
        stop: Cell::new(None),
        refused: Rc::clone(&refused),
        ending: RefCell::new(None),
        floating: RefCell::default(),
        logged: Cell::new(0),
        logs: job.logs,
    });
    let heap = Heap::new(job.memory, refused);
    let ended = Runtime::new_with_alloc(heap).and_then(|runtime| {
        limit(&runtime, job, &shared);
        let context = Context::full(&runtime)?;
        context.with(|ctx| {
            let program = Program {
                ctx: ctx.clone(),
                job,
                shared: &shared,
            };
            program.run();
        });
        // Taking the realm apart costs time that nobody has use for.
        std::mem::forget(context);
        std::mem::forget(runtime);
        Ok(())
    });
    if ended.is_err() {
        let failed = Failed::new("memory", "the program has too little memory to begin");
        shared.settle(Ending::Failed(failed));
    }
    shared.finish();
}

fn limit(runtime: &Runtime, job: &Job, shared: &Rc<Shared>) {
    runtime.set_max_stack_size(job.stack);
    let watched = Rc::clone(shared);
    runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop())));
    let watched = Rc::clone(shared);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(
        move |_, promise, reason, handled| {
            let mut floating = watched.floating.borrow_mut();
            let key = address(&promise);
            if handled {
                floating.remove(&key);
            } else if floating.len() < 1000 {
                floating.insert(key, words(&reason));
            }
        },
    )));
}

impl Shared {
    /// The first ending counts. What a program throws that is being stopped is not its own doing.
    fn settle(&self, ending: Ending) {
        let mut settled = self.ending.borrow_mut();
        if settled.is_none() {
            let ending = match (self.stop.get(), ending) {
                // Where an endless loop stands the engine does not know; the beginning of its function would mislead.
                (Some(stop), Ending::Failed(_)) => Ending::Failed(self.stopped(stop)),
                (None, Ending::Failed(failed)) if self.refused.get() && is_vague(&failed) => {
                    Ending::Failed(Failed {
                        at: failed.at,
                        ..Failed::new("memory", OUT_OF_MEMORY)
                    })
                }
                (_, ending) => ending,
            };
            let text = serde_json::to_vec(&ending).unwrap_or_default();
            *settled = Some(ending);
            self.line
                .borrow_mut()
                .send(&Frame::new(Kind::Settled, 0, text));
        }
    }

    fn stopped(&self, stop: Stop) -> Failed {
        match stop {
            Stop::Cpu => Failed::new(
                "cpu",
                &format!(
                    "the program used up its {} ms of processor time",
                    self.cpu_ms
                ),
            ),
            Stop::Asked => Failed::new(STOPPED, "the program was stopped"),
        }
    }

    /// The last word.
    fn finish(&self) {
        let floating = self.floating.borrow();
        let told = floating
            .values()
            .take(TOLD)
            .map(|text| format!("a rejected promise was handled by nobody: {text}"));
        let more = floating.len().saturating_sub(TOLD);
        let more =
            (more > 0).then(|| format!("{more} more rejected promises were handled by nobody"));
        let notes: Vec<String> = told.chain(more).collect();
        let text = serde_json::to_vec(&notes).unwrap_or_default();
        self.line
            .borrow_mut()
            .send(&Frame::new(Kind::Finished, 0, text));
    }
}

struct Program<'js, 'a> {
    ctx: Ctx<'js>,
    job: &'a Job,
    shared: &'a Rc<Shared>,
}

impl<'js> Program<'js, '_> {
    fn run(&self) {
        let begun = self.realm().and_then(|realm| {
            let main = self.main(&realm)?;
            self.start(&realm, main)?;
            Ok(realm)
        });
        match begun {
            Ok(realm) => self.pump(&realm),
            Err(error) => self.shared.settle(self.failed_to_begin(error)),
        }
        if let Some(stop) = self.shared.stop.get() {
            self.shared
                .settle(Ending::Failed(self.shared.stopped(stop)));
        }
    }

    /// What the program finds.
    fn realm(&self) -> rquickjs::Result<Object<'js>> {
        let bootstrap: Function = self.ctx.eval(BOOTSTRAP)?;
        let shared = Rc::clone(self.shared);
        let most = self.job.input;
        let send = Function::new(
            self.ctx.clone(),
            move |id: u32, name: String, input: String| {
                if name.len() > LONGEST_NAME {
                    return Some("no tool has a name that long".to_owned());
                }
                let Ok(input) = tidy(&input, DEEPEST) else {
                    return Some(format!("its input is more than {DEEPEST} deep"));
                };
                if input.len() > most {
                    return Some(format!(
                        "its input has {} bytes of at most {most}",
                        input.len()
                    ));
                }
                let text = format!("[{name},{input}]");
                shared
                    .line
                    .borrow_mut()
                    .send(&Frame::new(Kind::Call, id, text));
                None
            },
        )?;
        let shared = Rc::clone(self.shared);
        let log = Function::new(self.ctx.clone(), move |text: String| shared.log(&text))?;
        let limits = Object::new(self.ctx.clone())?;
        limits.set("calls", self.job.calls)?;
        bootstrap.call((
            send,
            log,
            self.job.tools.clone(),
            other_names(&self.job.tools),
            limits,
        ))
    }

    /// The program's function, compiled.
    fn main(&self, realm: &Object<'js>) -> rquickjs::Result<Function<'js>> {
        let source = Source::of(&self.job.code);
        if source.shape == Shape::Perhaps
            && let Some(function) = self.lone(&source, realm)
        {
            return Ok(function);
        }
        self.eval(&source.program())
    }

    /// The function that the program is, when it is nothing else. To find out it is evaluated before there are tools;
    /// a function has no effect by being there.
    fn lone(&self, source: &Source, realm: &Object<'js>) -> Option<Function<'js>> {
        let tools: Value = self.ctx.globals().get("tools").ok()?;
        self.ctx.globals().remove("tools").ok()?;
        let value: rquickjs::Result<Value> = self.eval(&source.expression());
        if value.is_err() {
            // Not left for whoever looks at exceptions next.
            self.ctx.catch();
        }
        self.ctx.globals().set("tools", tools).ok()?;
        let function = value.ok()?.into_function()?;
        let text: Function = realm.get("source").ok()?;
        let text: String = text.call((function.clone(),)).ok()?;
        source.is_all(&text).then_some(function)
    }

    fn eval<V: rquickjs::FromJs<'js>>(&self, code: &str) -> rquickjs::Result<V> {
        let mut options = EvalOptions::default();
        options.filename = Some(PROGRAM.to_owned());
        self.ctx.eval_with_options(code, options)
    }

    fn start(&self, realm: &Object<'js>, main: Function<'js>) -> rquickjs::Result<()> {
        let start: Function = realm.get("start")?;
        let (shared, result, depth) = (Rc::clone(self.shared), self.job.result, self.job.depth);
        let done = Function::new(self.ctx.clone(), move |value: Object<'js>| {
            shared.settle(returned(&value, result, depth));
        })?;
        let shared = Rc::clone(self.shared);
        let failed = Function::new(self.ctx.clone(), move |value: Object<'js>| {
            shared.settle(Ending::Failed(thrown(&value)));
        })?;
        start.call((main, done, failed))
    }

    /// Runs jobs and takes results until nothing is left to come.
    fn pump(&self, realm: &Object<'js>) {
        let Ok(settle) = realm.get::<_, Function>("settle") else {
            return;
        };
        loop {
            if !self.jobs() {
                return;
            }
            let frame = {
                let mut line = self.shared.line.borrow_mut();
                if line.open == 0 {
                    break;
                }
                line.receive()
            };
            match frame {
                Some(Frame {
                    kind: Kind::Result,
                    id,
                    text,
                }) => self.give(&settle, id, true, text),
                Some(Frame {
                    kind: Kind::Failed,
                    id,
                    text,
                }) => self.give(&settle, id, false, text),
                // Asked for when nothing else is left to do.
                Some(Frame {
                    kind: Kind::Idle,
                    id,
                    ..
                }) => {
                    let idling = Frame::new(Kind::Idling, id, "");
                    self.shared.line.borrow_mut().send(&idling);
                }
                Some(_) | None => return self.shared.stop.set(Some(Stop::Asked)),
            }
        }
        let failed = Failed::new(
            "never_settles",
            "the program waits for a promise that nothing will settle: no call is open and no timer exists",
        );
        self.shared.settle(Ending::Failed(failed));
    }

    /// False when it must stop.
    fn jobs(&self) -> bool {
        loop {
            for _ in 0..JOBS {
                if !self.ctx.execute_pending_job() {
                    return !self.shared.must_stop();
                }
            }
            if self.shared.must_stop() {
                return false;
            }
        }
    }

    fn give(&self, settle: &Function<'js>, id: u32, ok: bool, text: Vec<u8>) {
        self.shared.line.borrow_mut().open -= 1;
        let given = self
            .ctx
            .json_parse(text)
            .and_then(|value| settle.call::<_, ()>((id, ok, value)));
        if given.is_err() {
            let thrown = self.ctx.catch();
            if self.shared.stop.get().is_none() {
                self.shared.settle(Ending::Failed(host_error(&thrown)));
                self.shared.stop.set(Some(Stop::Asked));
            }
        }
    }

    fn failed_to_begin(&self, error: rquickjs::Error) -> Ending {
        let failed = match error {
            rquickjs::Error::Exception => {
                let thrown = self.ctx.catch();
                host_error(&thrown)
            }
            other => Failed::new("syntax", &format!("the program cannot be read: {other}")),
        };
        Ending::Failed(failed)
    }
}

/// Names for tools whose own are no identifiers, where they are unique: each, and behind it the real one.
fn other_names(tools: &[String]) -> Vec<String> {
    let known: HashSet<&str> = tools.iter().map(String::as_str).collect();
    let mut others: BTreeMap<String, Option<&str>> = BTreeMap::new();
    for name in tools {
        let other = identifier(name);
        if !known.contains(other.as_str()) {
            let is_new = !others.contains_key(&other);
            others.insert(other, is_new.then_some(name));
        }
    }
    let pair = |(other, real): (String, Option<&str>)| Some([other, real?.to_owned()]);
    others.into_iter().filter_map(pair).flatten().collect()
}

fn identifier(name: &str) -> String {
    let fits = |c: char| c.is_alphanumeric() || "_$".contains(c);
    let digit = name.starts_with(|c: char| c.is_numeric());
    let start = if digit { "_" } else { "" };
    start
        .chars()
        .chain(name.chars().map(|c| if fits(c) { c } else { '_' }))
        .collect()
}

fn words(reason: &Value<'_>) -> String {
    let exception = reason.as_object().cloned().and_then(Exception::from_object);
    let text = match exception {
        Some(exception) => exception.message(),
        None => reason.as_string().and_then(|text| text.to_string().ok()),
    };
    let text = text.unwrap_or_else(|| "(no message)".to_owned());
    beginning(&text, 300).to_owned()
}

fn address(value: &Value<'_>) -> usize {
    // SAFETY: the pointer is compared, never followed.
    unsafe { rquickjs::qjs::JS_VALUE_GET_PTR(value.as_raw()) as usize }
}

/// What this process used so far.
fn cpu_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1000
        + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::other_names;

    #[test]
    fn names_that_are_no_identifiers_have_another_where_it_is_unique() {
        let names = ["a-b", "c.d", "c-d", "e_f", "e-f", "2d", "plain", "größe"];
        let names = names.map(str::to_owned);
        assert_eq!(other_names(&names), ["_2d", "2d", "a_b", "a-b"]);
    }
}
