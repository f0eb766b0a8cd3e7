//! The two threads: one reads requests and cancels, one computes. Must never let a long answer hold up a cancel.

use crate::engine::{Cancel, Engines};
use crate::provider::PROVIDERS;
use crate::wire::{self, Failure, Line, Out, Request};
use protocol::plugin::{
    BuildParams, CancelParams, FetchParams, InstanceParams, PluginProvider, Setup,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests that may wait for the one that computes; past it a request is refused, so that cancels are always read.
const QUEUE: usize = 64;

/// Fetches that wait or run, by the request's id.
type Running = Arc<Mutex<HashMap<u64, Cancel>>>;

/// What is computed, in order.
enum Job {
    Build(Value, BuildParams),
    Models(Value, InstanceParams),
    Fetch(Value, FetchParams, Cancel),
    Release(InstanceParams),
}

/// Serves until stdin ends. What is computed then is of no use to anybody, so nothing is waited for.
pub fn serve() {
    let (jobs, queue) = sync_channel(QUEUE);
    let out = Out::new(std::io::stdout());
    let reader = Reader {
        jobs,
        out: out.clone(),
        running: Running::default(),
    };
    let running = Arc::clone(&reader.running);
    std::thread::spawn(move || compute(&queue, &out, &running));
    let mut input = std::io::stdin().lock();
    loop {
        match wire::read(&mut input) {
            Ok(Line::Request(request)) => reader.take(request),
            Ok(Line::Nonsense) => {}
            Ok(Line::End) | Err(_) => return,
        }
    }
}

struct Reader {
    jobs: SyncSender<Job>,
    out: Out,
    running: Running,
}

impl Reader {
    fn take(&self, request: Request) {
        let Some(id) = request.id else {
            self.notified(&request.method, request.params);
            return;
        };
        let job = match request.method.as_str() {
            "plugin/setup" => {
                self.out.answer(&id, Ok(setup()));
                return;
            }
            "provider/build" => read(request.params).map(|params| Job::Build(id.clone(), params)),
            "provider/models" => read(request.params).map(|params| Job::Models(id.clone(), params)),
            "provider/fetch" => read(request.params)
                .map(|params| Job::Fetch(id.clone(), params, self.register(&id))),
            other => Err(Failure {
                code: -32601,
                ..Failure::new(format!("dwell-local has no method {other}"))
            }),
        };
        let refused = match job {
            Err(failure) => failure,
            Ok(job) => match self.jobs.try_send(job) {
                Ok(()) => return,
                Err(_) => Failure {
                    retryable: true,
                    ..Failure::new("too many requests wait for the local model")
                },
            },
        };
        forget(&self.running, &id);
        self.out.answer(&id, Err::<Value, _>(refused));
    }

    fn notified(&self, method: &str, params: Value) {
        match method {
            "provider/cancel" => {
                if let Ok(CancelParams { id }) = read(params)
                    && let Some(cancel) = lock(&self.running).get(&id)
                {
                    cancel.set();
                }
            }
            // Lost where the queue is full: an instance that nobody uses costs a name.
            "provider/release" => {
                if let Ok(params) = read(params) {
                    let _ = self.jobs.try_send(Job::Release(params));
                }
            }
            _ => {}
        }
    }

    fn register(&self, id: &Value) -> Cancel {
        let cancel = Cancel::default();
        if let Some(id) = id.as_u64() {
            lock(&self.running).insert(id, cancel.clone());
        }
        cancel
    }
}

fn setup() -> Setup {
    let names = PROVIDERS.iter().map(|provider| PluginProvider {
        name: provider.name.to_owned(),
    });
    Setup {
        providers: names.collect(),
        ..Setup::default()
    }
}

fn compute(queue: &Receiver<Job>, out: &Out, running: &Running) {
    let mut engines = Engines::default();
    for job in queue {
        match job {
            Job::Build(id, params) => out.answer(&id, engines.build(&params)),
            Job::Models(id, params) => out.answer(&id, engines.models(&params.instance)),
            Job::Release(params) => engines.release(&params.instance),
            Job::Fetch(id, params, cancel) => {
                let fetch = id.as_u64();
                let mut emit = |event| out.event(fetch, event);
                let done = engines.fetch(&params, &cancel, &mut emit);
                forget(running, &id);
                out.answer(&id, done.map(|()| json!({})));
            }
        }
    }
}

fn forget(running: &Running, id: &Value) {
    if let Some(id) = id.as_u64() {
        lock(running).remove(&id);
    }
}

fn lock(running: &Running) -> std::sync::MutexGuard<'_, HashMap<u64, Cancel>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Failure> {
    serde_json::from_value(params).map_err(|error| Failure {
        code: -32602,
        ..Failure::new(format!("cannot read the parameters: {error}"))
    })
}
