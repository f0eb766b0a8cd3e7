//! What is told of a program: its result or failure, and what it did on the way. Pure.
//! Must never leave out a call that was made: a model that does not know of it makes it again.

use super::wire::{Ending, Failed};
use crate::toolbox::result::finish;
use serde_json::{Map, Value, json};

/// A call of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) tool: String,
    pub(super) ok: bool,
    pub(super) ms: u64,
}

#[derive(Default)]
pub(super) struct Outcome {
    pub(super) ending: Option<Ending>,
    logs: Vec<String>,
    logged: usize,
    pub(super) calls: Vec<Made>,
    pub(super) notes: Vec<String>,
    /// Calls that ran when the program itself had returned.
    pub(super) not_awaited: usize,
    /// Calls that still ran when its time was up.
    pub(super) abandoned: usize,
    /// Calls whose turn, or whose answer by a person, had not come by then.
    pub(super) not_run: usize,
}

impl Outcome {
    /// Of a program that never ran.
    pub(super) fn failed(failed: Failed) -> Self {
        Self {
            ending: Some(Ending::Failed(failed)),
            ..Self::default()
        }
    }

    pub(super) fn log(&mut self, text: String, most: usize) {
        self.logged += text.len();
        if self.logged <= most {
            self.logs.push(text);
        }
    }

    /// The code of its failure, if it failed.
    pub(super) fn code(&self) -> Option<&str> {
        match &self.ending {
            Some(Ending::Failed(failed)) => Some(&failed.code),
            Some(Ending::Returned(_)) | None => None,
        }
    }

    /// As a model reads it.
    pub(super) fn result(mut self) -> Map<String, Value> {
        let mut result = Map::new();
        match self.ending.take() {
            Some(Ending::Returned(returned)) => {
                let value = serde_json::from_str(returned.result.get()).unwrap_or(Value::Null);
                result.insert("result".to_owned(), value);
                if returned.truncated {
                    result.insert("truncated".to_owned(), json!(true));
                    self.notes
                        .push("the result is too long and was cut: return less of it".to_owned());
                }
                if returned.nothing && self.logs.is_empty() {
                    let note = "the program returned nothing and logged nothing: add return";
                    self.notes.push(note.to_owned());
                }
            }
            Some(Ending::Failed(failed)) => describe(failed, &mut result),
            None => {}
        }
        self.note_open_calls();
        if !self.logs.is_empty() {
            result.insert("logs".to_owned(), json!(self.logs.join("\n")));
        }
        let call = |made: &Made| json!({"tool": made.tool, "ok": made.ok, "ms": made.ms});
        result.insert("calls".to_owned(), self.calls.iter().map(call).collect());
        if !self.notes.is_empty() {
            result.insert("notes".to_owned(), json!(self.notes));
        }
        finish(result)
    }

    fn note_open_calls(&mut self) {
        let calls = |count: usize| match count {
            1 => "1 call was".to_owned(),
            count => format!("{count} calls were"),
        };
        if self.not_awaited > 0 {
            let note = format!(
                "{} not awaited by the program: add await",
                calls(self.not_awaited)
            );
            self.notes.push(note);
        }
        if self.abandoned > 0 {
            let note = format!(
                "{} cancelled while running: the outcome is not known",
                calls(self.abandoned)
            );
            self.notes.push(note);
        }
        if self.not_run > 0 {
            let note = format!("{} still waiting and not run", calls(self.not_run));
            self.notes.push(note);
        }
    }
}

fn describe(failed: Failed, result: &mut Map<String, Value>) {
    result.insert("error".to_owned(), json!(failed.message));
    result.insert("code".to_owned(), json!(failed.code));
    if failed.retryable {
        result.insert("retryable".to_owned(), json!(true));
    }
    let more = [
        ("tool", failed.tool.map(Value::from)),
        ("at", failed.at.map(Value::from)),
        ("details", failed.details),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            result.insert(name.to_owned(), value);
        }
    }
}
