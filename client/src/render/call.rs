//! Tool calls: one line when one begins, one when it ends, and the tail of what it printed. Must never hold more of an
//! output than it will show.

use super::{cut, duration};
use crate::paint::{Mark, Paint, Part, tame};
use protocol::id::CallId;
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};

/// How much of a call's arguments its line shows.
const ARGUMENTS: usize = 100;

/// How many lines of a call's output stay on the screen.
const TAIL: usize = 5;

/// How long a line of output may grow.
const LINE: usize = 200;

/// The calls that run.
#[derive(Debug, Default)]
pub(super) struct Calls {
    running: HashMap<CallId, Call>,
    /// The call whose line was written last: its end needs no name.
    latest: Option<CallId>,
}

#[derive(Debug)]
struct Call {
    name: String,
    depth: usize,
    lines: u64,
    tail: VecDeque<String>,
}

impl Calls {
    /// The line that says what is called.
    pub(super) fn begin(
        &mut self,
        paint: Paint,
        call: &CallId,
        name: &str,
        arguments: &Value,
        parent: Option<&CallId>,
    ) -> String {
        let above = parent.and_then(|parent| self.running.get(parent));
        let depth = above.map_or(0, |above| above.depth + 1);
        let name = tame(name);
        let line = format!(
            "{}{} {} {}",
            "  ".repeat(depth),
            paint.mark(Mark::Call),
            paint.dress(Part::Tool, &name),
            shown(&name, arguments)
        );
        let new = Call {
            name,
            depth,
            lines: 0,
            tail: VecDeque::new(),
        };
        self.running.insert(call.clone(), new);
        self.latest = Some(call.clone());
        line.trim_end().to_string()
    }

    /// Takes what a call printed.
    pub(super) fn output(&mut self, call: &CallId, text: &str) {
        if let Some(call) = self.running.get_mut(call) {
            call.print(&tame(text));
        }
    }

    /// The lines that say how a call ended.
    pub(super) fn end(
        &mut self,
        paint: Paint,
        id: &CallId,
        result: &Map<String, Value>,
        ms: u64,
    ) -> String {
        let call = self.running.remove(id);
        let named = self.latest.as_ref() != Some(id);
        let margin = "  ".repeat(call.as_ref().map_or(1, |call| call.depth + 1));
        let mut out = call
            .as_ref()
            .map_or(String::new(), |call| call.shown(paint, &margin));
        let worked = result.get("ok") == Some(&Value::Bool(true));
        let mark = paint.mark(if worked { Mark::Good } else { Mark::Bad });
        let mut parts = Vec::new();
        if let Some(call) = call.filter(|_| named) {
            parts.push(call.name);
        }
        parts.extend(outcome(result));
        parts.push(duration(ms));
        let summary = paint.dress(Part::Quiet, &parts.join(" · "));
        out.push_str(&format!("{margin}{mark} {summary}"));
        out
    }

    /// The newest call and the last line it printed.
    pub(super) fn activity(&self) -> Option<String> {
        let newest = self
            .latest
            .as_ref()
            .and_then(|latest| self.running.get(latest))
            .or_else(|| self.running.values().next())?;
        let printed = newest.tail.iter().rev().find(|line| !line.is_empty());
        Some(match printed {
            Some(line) => format!("{}: {line}", newest.name),
            None => newest.name.clone(),
        })
    }

    /// Forgets calls whose end will not come.
    pub(super) fn clear(&mut self) {
        self.running.clear();
        self.latest = None;
    }
}

impl Call {
    fn print(&mut self, text: &str) {
        let mut pieces = text.split('\n');
        if let Some(first) = pieces.next() {
            self.extend_last(first);
        }
        for piece in pieces {
            self.tail.push_back(String::new());
            self.lines += 1;
            // One more than is shown: the last one is empty after a line break.
            if self.tail.len() > TAIL + 1 {
                self.tail.pop_front();
            }
            self.extend_last(piece);
        }
    }

    fn extend_last(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.tail.is_empty() {
            self.tail.push_back(String::new());
        }
        if let Some(last) = self.tail.back_mut() {
            let room = LINE.saturating_sub(last.chars().count());
            last.extend(text.chars().take(room));
        }
    }

    /// The tail of the output, each line with its margin.
    fn shown(&self, paint: Paint, margin: &str) -> String {
        let mut lines: Vec<&String> = self.tail.iter().collect();
        if lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        let lines = &lines[lines.len().saturating_sub(TAIL)..];
        let total = self.lines + u64::from(self.tail.back().is_some_and(|last| !last.is_empty()));
        let mut out = String::new();
        let hidden = total.saturating_sub(lines.len() as u64);
        if hidden > 0 {
            let text = paint.dress(Part::Quiet, &format!("{hidden} more lines"));
            out.push_str(&format!("{margin}{} {text}\n", paint.mark(Mark::More)));
        }
        for line in lines {
            out.push_str(&format!("{margin}{}\n", paint.dress(Part::Quiet, line)));
        }
        out
    }
}

/// A call's arguments in its line. Of one that hands on to another the name: the other has a line of its own, with all.
fn shown(name: &str, arguments: &Value) -> String {
    match (name, &arguments["name"]) {
        ("call_tool", Value::String(called)) => brief(&Value::String(called.clone())),
        _ => brief(arguments),
    }
}

/// Arguments in one short line: a lone text as it is, everything else as JSON.
fn brief(arguments: &Value) -> String {
    let text = match arguments {
        Value::Null => return String::new(),
        Value::Object(members) if members.is_empty() => return String::new(),
        Value::Object(members) => match members.values().next() {
            Some(Value::String(text)) if members.len() == 1 => text.clone(),
            _ => arguments.to_string(),
        },
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = tame(&text.replace(['\n', '\t'], " "));
    cut(line.trim(), ARGUMENTS)
}

/// What a result says about how it went.
fn outcome(result: &Map<String, Value>) -> Option<String> {
    if let Some(error) = result.get("error") {
        let text = error
            .as_str()
            .map_or_else(|| error.to_string(), String::from);
        return Some(cut(&tame(&text.replace('\n', " ")), LINE));
    }
    if let (Some(Value::Array(tools)), Some(Value::Number(total))) =
        (result.get("tools"), result.get("total"))
    {
        return Some(format!("{} of {total} tools", tools.len()));
    }
    match result.get("exit_status") {
        Some(Value::Number(status)) if status.as_i64() != Some(0) => Some(format!("exit {status}")),
        _ => None,
    }
}
