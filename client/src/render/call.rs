//! Tool calls: one line when one begins, one when it ends, and the tail of what it printed. Must never hold more of an
//! output than it will show.

use super::diff::Diff;
use super::results::{Lines, Results};
use super::styled::{painted_width, shortened, width};
use super::{cut, duration};
use crate::paint::{Mark, Paint, Part, printed, spell_out, tame};
use protocol::id::{CallId, TurnId};
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};

/// How much of a call's arguments its line shows.
const ARGUMENTS: usize = 100;

/// How long a line of output may grow.
const LINE: usize = 200;

/// How many lines of a change are shown when it is made.
const CHANGES: usize = 16;

/// How many calls that run are shown.
const SHOWN: usize = 4;

/// How calls look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) paint: Paint,
    /// Columns of a row, on a terminal that is drawn on: there a call has one line, when it is over.
    pub(super) room: Option<usize>,
}

/// What an event tells of a call that begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a Value,
    pub(super) parent: Option<&'a CallId>,
    pub(super) via: Option<&'a str>,
    pub(super) turn: Option<&'a TurnId>,
    /// Whether a person made it, and reads all that it prints.
    pub(super) tell: bool,
}

/// The calls that run.
#[derive(Debug, Default)]
pub(super) struct Calls {
    results: Results,
    running: HashMap<CallId, Call>,
    /// In the order they began.
    order: Vec<CallId>,
    /// The call whose line was written last: its end needs no name.
    latest: Option<CallId>,
}

#[derive(Debug)]
struct Call {
    name: String,
    brief: String,
    depth: usize,
    /// The event that began it.
    seq: u64,
    started_at: Option<u64>,
    /// Whether a line above says that it began.
    announced: bool,
    parent: Option<CallId>,
    turn: Option<TurnId>,
    of_program: bool,
    /// Whether a person made it: what it printed stands below it when it is over, all of it.
    of_person: bool,
    change: Option<Diff>,
    /// What was told of a file that is none of its own: a task's, before its question.
    told: Option<Replaced>,
    /// How much of its output is shown.
    most: Lines,
    lines: u64,
    tail: VecDeque<String>,
    /// Whether what comes next is written over the last line.
    returned: bool,
}

/// What was told of a file that a call writes over.
#[derive(Clone, Debug)]
pub(super) struct Replaced {
    pub(super) size: u64,
    pub(super) diff: Option<String>,
    pub(super) places: Option<u64>,
}

impl Replaced {
    fn tell(&self, change: &mut Diff) {
        change.replaces(self.size, self.diff.as_deref(), self.places);
    }
}

impl Calls {
    pub(super) fn new(results: Results) -> Self {
        Self {
            results,
            ..Self::default()
        }
    }

    /// The lines that say what is called; none where its end will say it.
    pub(super) fn begin(
        &mut self,
        look: Look,
        seq: u64,
        call: &CallId,
        told: Told<'_>,
    ) -> Option<String> {
        let Told {
            name,
            arguments,
            parent,
            via,
            turn,
            tell,
        } = told;
        let above = parent.and_then(|parent| self.running.get(parent));
        let new = Call {
            name: spell_out(name),
            brief: shown(name, arguments, look),
            depth: above.map_or(0, |above| above.depth + 1),
            seq,
            started_at: None,
            // What comes between must not part a person's command from what it printed.
            announced: look.room.is_none() && !tell,
            parent: parent.cloned(),
            turn: turn.cloned(),
            of_program: via == Some("code"),
            of_person: tell,
            change: Diff::of(arguments),
            told: None,
            most: self.results.of(name),
            lines: 0,
            tail: VecDeque::new(),
            returned: false,
        };
        // What comes next is indented below it.
        let mut lines = Vec::from_iter(self.announce(look.paint, parent));
        lines.extend(new.announced.then(|| new.line(look.paint)));
        self.running.insert(call.clone(), new);
        self.order.push(call.clone());
        if lines.is_empty() {
            return None;
        }
        self.latest = Some(call.clone());
        Some(lines.join("\n"))
    }

    /// The lines of a call and those around it that have none yet.
    fn announce(&mut self, paint: Paint, call: Option<&CallId>) -> Option<String> {
        let mut lines = Vec::new();
        let mut next = call.cloned();
        // The calls around a call are fewer than all, so this ends.
        while let Some(call) = next.take().and_then(|id| self.running.get_mut(&id)) {
            if std::mem::replace(&mut call.announced, true) {
                break;
            }
            lines.insert(0, call.line(paint));
            next.clone_from(&call.parent);
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Whether a program makes a call that runs.
    pub(super) fn is_of_program(&self, call: &CallId) -> bool {
        self.running.get(call).is_some_and(|call| call.of_program)
    }

    /// Whether a call that runs is a person's own.
    pub(super) fn is_of_person(&self, call: &CallId) -> bool {
        self.running.get(call).is_some_and(|call| call.of_person)
    }

    /// What the file is that a call writes over, or a task for it.
    pub(super) fn change(&mut self, call: &CallId, told: Replaced) {
        let Some(call) = self.running.get_mut(call) else {
            return;
        };
        match &mut call.change {
            Some(change) => told.tell(change),
            None => call.told = Some(told),
        }
    }

    /// What a call that runs makes of a file by these arguments, which are its task's where it is one.
    pub(super) fn change_of(&self, call: &CallId, arguments: &Value) -> Option<Diff> {
        let call = self.running.get(call)?;
        if call.change.is_some() {
            return call.change.clone();
        }
        let mut change = Diff::of(arguments)?;
        call.told.as_ref()?.tell(&mut change);
        Some(change)
    }

    /// A question is over, and what a task makes of its next file is told before that one's question.
    pub(super) fn settled(&mut self) {
        for call in self.running.values_mut() {
            call.told = None;
        }
    }

    /// A call's handler runs.
    pub(super) fn started(&mut self, call: &CallId, at: u64) {
        if let Some(call) = self.running.get_mut(call) {
            call.started_at = Some(at);
        }
    }

    /// Takes what a call printed.
    pub(super) fn output(&mut self, call: &CallId, text: &str) {
        if let Some(call) = self.running.get_mut(call) {
            call.print(text);
        }
    }

    /// The lines that say how a call ended, and the event that began it.
    pub(super) fn end(
        &mut self,
        look: Look,
        id: &CallId,
        result: &Map<String, Value>,
        ms: u64,
    ) -> (String, Option<u64>) {
        let call = self.running.remove(id);
        self.order.retain(|one| one != id);
        let began = call.as_ref().map(|call| call.seq);
        let lines = match (call, look.room) {
            (Some(call), Some(room)) if !call.announced => call.whole(look.paint, room, result, ms),
            (Some(call), None) if !call.announced => {
                self.latest = Some(id.clone());
                let line = call.line(look.paint);
                let below = self.end_below(look, Some(call), id, result, ms);
                format!("{line}\n{below}")
            }
            (call, _) => self.end_below(look, call, id, result, ms),
        };
        (lines, began)
    }

    /// Below the line that said it began.
    fn end_below(
        &self,
        look: Look,
        call: Option<Call>,
        id: &CallId,
        result: &Map<String, Value>,
        ms: u64,
    ) -> String {
        let named = self.latest.as_ref() != Some(id);
        let margin = "  ".repeat(call.as_ref().map_or(1, |call| call.depth + 1));
        let paint = look.paint;
        let mut out = match &call {
            Some(call) if call.of_person => call.all(paint, &margin, result),
            Some(call) if look.room.is_none() => call.shown(paint, &margin),
            _ => String::new(),
        };
        let mut parts = Vec::new();
        match call {
            Some(call) => parts.extend(named.then_some(call.name)),
            None => parts.push("a call that began earlier".into()),
        }
        parts.extend(outcome(result));
        parts.push(duration(ms));
        let summary = paint.dress(Part::Quiet, &parts.join(" · "));
        out.push_str(&format!("{margin}{} {summary}", ended(paint, result)));
        out
    }

    /// What runs, with the end of what it printed.
    pub(super) fn live(&self, paint: Paint, room: usize, now: u64) -> Vec<String> {
        let running = self.order.iter().filter_map(|id| self.running.get(id));
        let all: Vec<&Call> = running.filter(|call| !call.announced).collect();
        let mut rows = Vec::new();
        for (at, call) in all.iter().enumerate() {
            if at == SHOWN {
                let more = format!("… {} more calls wait", all.len() - at);
                rows.push(paint.dress(Part::Quiet, &more));
                break;
            }
            let time = call.started_at.map(|started| now.saturating_sub(started));
            let time = time.filter(|ms| *ms >= 1_000).map_or(String::new(), |ms| {
                paint.dress(Part::Quiet, &format!("  {}", duration(ms / 100 * 100)))
            });
            let line = call.line(paint);
            let left = room.saturating_sub(painted_width(&time));
            rows.push(format!("{}{time}", shortened(&line, left)));
            let margin = "  ".repeat(call.depth + 1);
            rows.extend(call.shown(paint, &margin).lines().map(str::to_string));
        }
        rows
    }

    /// A line for each that runs and has none yet.
    pub(super) fn unannounced(&self, paint: Paint) -> Vec<String> {
        let running = self.order.iter().filter_map(|id| self.running.get(id));
        let unannounced = running.filter(|call| !call.announced);
        unannounced.map(|call| call.line(paint)).collect()
    }

    /// Forgets calls of a turn that is over, whose end will not come. A person's own go on.
    pub(super) fn clear(&mut self, turn: Option<&TurnId>) {
        self.running.retain(|_, call| call.turn.as_ref() != turn);
        self.order.retain(|call| self.running.contains_key(call));
        self.latest = None;
    }
}

impl Call {
    fn line(&self, paint: Paint) -> String {
        let line = format!(
            "{}{} {} {}",
            "  ".repeat(self.depth),
            paint.mark(Mark::Call),
            paint.dress(Part::Tool, &self.name),
            self.brief
        );
        line.trim_end().to_string()
    }

    /// A call that is over, in one line; a change of a file below it, and the end of what a failed one printed.
    fn whole(&self, paint: Paint, room: usize, result: &Map<String, Value>, ms: u64) -> String {
        let margin = "  ".repeat(self.depth);
        let mut parts = Vec::new();
        parts.extend(self.change.as_ref().map(Diff::summary));
        parts.extend(outcome(result));
        parts.push(duration(ms));
        if self.printed() > 0 {
            let lines = lines_of(self.printed());
            // What was called counts more than how much it printed.
            if width(&parts.join(" · ")) + width(&lines) < room / 2 {
                parts.insert(parts.len() - 1, lines);
            }
        }
        let behind = paint.dress(Part::Quiet, &format!(" · {}", parts.join(" · ")));
        let head = format!(
            "{margin}{} {} {}",
            ended(paint, result),
            paint.dress(Part::Tool, &self.name),
            self.brief
        );
        let rest = room.saturating_sub(painted_width(&behind));
        // What is too long for one row is broken anyway.
        let left = if rest < room / 3 { room / 2 } else { rest };
        let mut out = format!("{}{behind}", shortened(head.trim_end(), left));
        let inner = format!("{margin}  ");
        let below = match &self.change {
            Some(change) if worked(result) => {
                change.rows(paint, room.saturating_sub(inner.len()), CHANGES)
            }
            _ if self.of_person => rows_of(&self.all(paint, "", result)),
            _ if worked(result) && outcome(result).is_none() && !self.most.always => Vec::new(),
            _ => rows_of(&self.shown(paint, "")),
        };
        for row in below {
            out.push_str(&format!("\n{inner}{row}"));
        }
        out
    }

    /// How many lines it printed.
    fn printed(&self) -> u64 {
        self.lines + u64::from(self.tail.back().is_some_and(|last| !last.is_empty()))
    }

    fn print(&mut self, text: &str) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let words = piece.trim_end_matches(['\n', '\r']);
            if !words.is_empty() {
                self.print_in_line(words);
            }
            match &piece[words.len()..] {
                "\n" => self.end_line(),
                "\r" => self.returned = true,
                _ => {}
            }
        }
    }

    fn print_in_line(&mut self, words: &str) {
        let over = std::mem::take(&mut self.returned);
        if let Some(last) = self.tail.back_mut().filter(|_| over) {
            last.clear();
        }
        self.extend_last(&tame(words));
    }

    fn end_line(&mut self) {
        self.returned = false;
        if self.tail.is_empty() {
            self.tail.push_back(String::new());
        }
        self.tail.push_back(String::new());
        self.lines += 1;
        // One more than is shown: the last one is empty after a line break.
        if self.tail.len() > self.most.most + 1 {
            self.tail.pop_front();
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

    /// All that it printed, each line with its margin; the tail of it where its result does not tell.
    fn all(&self, paint: Paint, margin: &str, result: &Map<String, Value>) -> String {
        let Some(Value::String(content)) = result.get("content") else {
            return self.shown(paint, margin);
        };
        let mut out = String::new();
        for line in printed(content).trim_end().lines() {
            out.push_str(&format!("{margin}{}\n", paint.dress(Part::Quiet, line)));
        }
        out
    }

    /// The tail of the output, each line with its margin.
    fn shown(&self, paint: Paint, margin: &str) -> String {
        let mut lines: Vec<&String> = self.tail.iter().collect();
        if lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        let lines = &lines[lines.len().saturating_sub(self.most.most)..];
        let mut out = String::new();
        let hidden = self.printed().saturating_sub(lines.len() as u64);
        if hidden > 0 && self.most.most > 0 {
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
fn shown(name: &str, arguments: &Value, look: Look) -> String {
    // A row that is drawn is cut where it ends.
    let most = look.room.map_or(ARGUMENTS, |room| room.max(ARGUMENTS));
    match (name, &arguments["name"]) {
        ("call_tool", Value::String(called)) => brief(&Value::String(called.clone()), most),
        _ => brief(arguments, most),
    }
}

fn rows_of(text: &str) -> Vec<String> {
    text.lines().map(str::to_string).collect()
}

fn worked(result: &Map<String, Value>) -> bool {
    result.get("ok") == Some(&Value::Bool(true))
}

/// A command that ran and said no has failed, for whoever reads down the marks.
pub(crate) fn went_well(result: &Map<String, Value>) -> bool {
    worked(result) && status_of(result).is_none()
}

fn ended(paint: Paint, result: &Map<String, Value>) -> String {
    paint.mark(match went_well(result) {
        true => Mark::Good,
        false => Mark::Bad,
    })
}

/// The exit status of a command, if that was not 0.
fn status_of(result: &Map<String, Value>) -> Option<i64> {
    let status = result.get("exit_status")?.as_i64();
    status.filter(|status| *status != 0)
}

fn lines_of(count: u64) -> String {
    match count {
        1 => "1 line".into(),
        count => format!("{count} lines"),
    }
}

/// Arguments in one short line: a lone text as it is, everything else as JSON.
fn brief(arguments: &Value, most: usize) -> String {
    let text = match arguments {
        Value::Null => return String::new(),
        Value::Object(members) if members.is_empty() => return String::new(),
        Value::Object(members) => match members.values().next() {
            Some(Value::String(text)) if members.len() == 1 => text.clone(),
            _ if Diff::of(arguments).is_some() => {
                let path = arguments.get("path").and_then(Value::as_str);
                path.unwrap_or_default().to_string()
            }
            _ => arguments.to_string(),
        },
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = spell_out(&text.replace(['\n', '\t'], " "));
    cut(line.trim(), most)
}

/// What a result says about how it went.
fn outcome(result: &Map<String, Value>) -> Option<String> {
    if let Some(error) = result.get("error") {
        let text = error
            .as_str()
            .map_or_else(|| error.to_string(), String::from);
        return Some(cut(&spell_out(&text.replace('\n', " ")), LINE));
    }
    if let (Some(Value::Array(tools)), Some(Value::Number(total))) =
        (result.get("tools"), result.get("total"))
    {
        return Some(format!("{} of {total} tools", tools.len()));
    }
    status_of(result).map(|status| format!("exit {status}"))
}
