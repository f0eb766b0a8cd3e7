//! Events in, text out: how a session looks on a terminal or in a pipe. Pure; must never write, wait or ask.

mod breaker;
mod call;
pub(crate) mod code;
pub(crate) mod diff;
mod fold;
mod line;
mod markdown;
pub(crate) mod results;
mod rich;
pub(crate) mod styled;
pub(crate) mod words;

use crate::approval::Question;
use crate::paint::{Paint, Part, spell_out, tame};
use breaker::Breaker;
pub(crate) use call::went_well;
use call::{Calls, Look, Replaced, Told};
pub(crate) use fold::{Folded, What, thought_rows};
use line::{answered, ended, notice};
use protocol::approval::Answer;
use protocol::event::{Event, EventKind};
use protocol::id::ApprovalId;
use results::Results;
pub(crate) use rich::Thoughts;
use rich::{Rich, prompt_rows, quiet_image, whole_rows};

/// Where a piece of text goes when reply and progress are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The model's reply.
    Reply,
    /// Everything around it.
    Progress,
}

/// A piece of text; it need not end a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Where it goes.
    pub channel: Channel,
    /// As it is to be written.
    pub text: String,
}

/// Whether the prompts of turns are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prompts {
    /// Each turn begins with what was asked.
    Shown,
    /// The same, and nobody needs to be told who asked.
    Own,
    /// The person sees them already.
    Hidden,
}

/// Whether a question names the keys that answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Offered,
    Hidden,
}

/// What kind of text stands at the end of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// A finished line.
    Line,
    /// A reply that may go on.
    Reply,
    /// A thought that may go on.
    Thought,
}

/// The look of a session, fed one event after the other.
#[derive(Debug)]
pub(crate) struct Renderer {
    paint: Paint,
    /// None where text goes out as it comes.
    rich: Option<Rich>,
    /// What breaks rows where text goes out as it comes, on a terminal.
    breaker: Option<Breaker>,
    prompts: Prompts,
    keys: Keys,
    tail: Tail,
    /// Whether the text at the tail ended with a line break of its own.
    at_line_start: bool,
    /// Whether the running turn has shown any reply.
    replied: bool,
    calls: Calls,
    /// Questions about people's own commands.
    typed: Vec<ApprovalId>,
}

impl Renderer {
    /// A renderer at the start of a line.
    pub(crate) fn new(paint: Paint, prompts: Prompts) -> Self {
        Self {
            paint,
            rich: None,
            breaker: None,
            prompts,
            keys: Keys::Hidden,
            tail: Tail::Line,
            at_line_start: true,
            replied: false,
            calls: Calls::new(Results::from_env()),
            typed: Vec::new(),
        }
    }

    /// For a terminal that is drawn on, with rows of so many columns: replies as Markdown, what goes on in
    /// [`Renderer::live`], and what is long folded.
    pub(crate) fn rich(mut self, room: usize) -> Self {
        self.rich = Some(Rich::new(self.paint, room));
        self
    }

    /// For a terminal that is not drawn on: what is said breaks between words, in rows of so many columns.
    pub(crate) fn broken(mut self, room: usize) -> Self {
        self.breaker = Some(Breaker::new(room));
        self
    }

    /// Rows have another width from here on.
    pub(crate) fn set_room(&mut self, room: usize) {
        if let Some(breaker) = &mut self.breaker {
            breaker.set_room(room);
        }
        if let Some(rich) = &mut self.rich {
            rich.set_room(room);
        }
    }

    /// Folds thoughts from here on, or not; says which.
    pub(crate) fn toggle_thoughts(&mut self) -> Thoughts {
        let Some(rich) = &mut self.rich else {
            return Thoughts::Shown;
        };
        rich.thoughts = match rich.thoughts {
            Thoughts::Folded => Thoughts::Shown,
            Thoughts::Shown => Thoughts::Folded,
        };
        rich.thoughts
    }

    /// What was folded, `back` steps before the newest.
    pub(crate) fn folded(&self, back: usize) -> Option<&Folded> {
        self.rich.as_ref()?.folds.get(back)
    }

    /// What goes on: rows that the next event may change. `now` is the time of day in milliseconds.
    pub(crate) fn live(&mut self, now: u64) -> Vec<String> {
        let Some(rich) = &mut self.rich else {
            return self.calls.unannounced(self.paint);
        };
        let mut rows = rich.live(self.paint).to_vec();
        rows.extend(self.calls.live(self.paint, rich.room, now));
        rows
    }

    /// Where a person may answer questions by a key.
    pub(crate) fn offering_keys(mut self) -> Self {
        self.keys = Keys::Offered;
        self
    }

    /// Shows the prompts of further turns, or not.
    pub(crate) fn set_prompts(&mut self, prompts: Prompts) {
        self.prompts = prompts;
    }

    /// What to write for an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Chunk> {
        let mut out = Vec::new();
        if matches!(
            event.kind,
            EventKind::ApprovalAnswered { .. } | EventKind::ApprovalWithdrawn { .. }
        ) {
            self.calls.settled();
        }
        match &event.kind {
            EventKind::Saying { text, .. } => self.flow(Tail::Reply, text, event, &mut out),
            EventKind::Said { text, .. } => {
                self.flow(Tail::Reply, text, event, &mut out);
                self.end_line(&mut out);
            }
            EventKind::Thinking { text, .. } => self.flow(Tail::Thought, text, event, &mut out),
            EventKind::ToolOutput { call, text, .. } => self.calls.output(call, text),
            EventKind::Changing {
                call,
                size,
                diff,
                places,
            } => {
                let (size, diff, places) = (*size, diff.clone(), *places);
                self.calls.change(call, Replaced { size, diff, places });
            }
            EventKind::CallStarted { call } => self.calls.started(call, event.at),
            other => {
                let line = self.line(event);
                // A call has no line of its own before it is over, and ends what was said before it all the same.
                // A person's own command has nothing to do with what is being said.
                let ends = matches!(
                    other,
                    EventKind::TurnEnded { .. } | EventKind::Doing { tell: false, .. }
                );
                if line.is_some() || ends {
                    self.end_line(&mut out);
                }
                if let Some(line) = line {
                    out.push(Chunk {
                        channel: Channel::Progress,
                        text: line + "\n",
                    });
                }
            }
        }
        out
    }

    /// Ends an unfinished line, such as before somebody else writes.
    pub(crate) fn finish(&mut self) -> Vec<Chunk> {
        let mut out = Vec::new();
        self.end_line(&mut out);
        out
    }

    fn flow(&mut self, tail: Tail, text: &str, event: &Event, out: &mut Vec<Chunk>) {
        if text.is_empty() {
            return;
        }
        if self.tail != tail {
            self.end_line(out);
        }
        let text = tame(text);
        if let Some(rich) = &mut self.rich {
            self.tail = tail;
            self.replied |= tail == Tail::Reply;
            let rows = rich.flow(tail, &text, event);
            return out.extend(whole_rows(Channel::Reply, rows));
        }
        self.at_line_start = text.ends_with('\n');
        self.tail = tail;
        let text = match &mut self.breaker {
            Some(breaker) => breaker.push(&text),
            None => text,
        };
        let (channel, text) = match tail {
            Tail::Thought => (Channel::Progress, self.paint.dress(Part::Quiet, &text)),
            Tail::Reply | Tail::Line => (Channel::Reply, text),
        };
        self.replied |= tail == Tail::Reply;
        out.push(Chunk { channel, text });
    }

    fn end_line(&mut self, out: &mut Vec<Chunk>) {
        let channel = match self.tail {
            Tail::Line => return,
            Tail::Reply => Channel::Reply,
            Tail::Thought => Channel::Progress,
        };
        if let Some(rich) = &mut self.rich {
            let rows = rich.end(self.paint);
            out.extend(whole_rows(channel, rows));
            self.tail = Tail::Line;
            return;
        }
        let held = self.breaker.as_mut().map(Breaker::finish);
        if !self.at_line_start {
            let held = held.unwrap_or_default();
            let text = match self.tail {
                Tail::Thought => self.paint.dress(Part::Quiet, &held),
                Tail::Reply | Tail::Line => held,
            };
            out.push(Chunk {
                channel,
                text: text + "\n",
            });
        }
        self.tail = Tail::Line;
        self.at_line_start = true;
    }

    /// The line, or lines, of an event that is no flowing text.
    fn line(&mut self, event: &Event) -> Option<String> {
        let paint = self.paint;
        let quiet = |text: String| Some(paint.dress(Part::Quiet, &text));
        match &event.kind {
            EventKind::TurnStarted {
                text,
                client,
                images,
                ..
            } => {
                self.replied = false;
                let by = client.as_deref().filter(|_| self.prompts == Prompts::Shown);
                let line = (self.prompts != Prompts::Hidden).then(|| match &self.rich {
                    Some(rich) => prompt_rows(paint, rich.room, text, by),
                    None => prompt_line(paint, text, by),
                });
                let shown = images.iter().map(|image| quiet_image(paint, image));
                let lines: Vec<String> = line.into_iter().chain(shown).collect();
                (!lines.is_empty()).then(|| self.spaced(lines.join("\n")))
            }
            EventKind::Doing {
                call,
                name,
                arguments,
                parent,
                via,
                tell,
                ..
            } => {
                let look = self.look();
                let told = Told {
                    name,
                    arguments,
                    parent: parent.as_ref(),
                    via: via.as_deref(),
                    turn: event.turn.as_ref(),
                    tell: *tell,
                };
                self.calls.begin(look, event.seq, call, told)
            }
            EventKind::Done { call, result, ms } => {
                let look = self.look();
                let (lines, began) = self.calls.end(look, call, result, *ms);
                if let (Some(rich), Some(began)) = (&mut self.rich, began) {
                    rich.folds.push(What::Call(call.clone()), began, event.seq);
                }
                Some(lines)
            }
            // Who typed it answers by that. Where there is room to draw, what waits is shown as long as it waits.
            EventKind::ApprovalAsked { approval, call, .. }
                if self.rich.is_some() && self.calls.is_of_person(call) =>
            {
                self.typed.push(approval.clone());
                None
            }
            EventKind::ApprovalAnswered {
                approval,
                answer: Answer::Allow,
                ..
            } if self.typed.contains(approval) => None,
            EventKind::ApprovalAsked { .. } => {
                let question = self.knows(Question::of(event)?);
                let text = question.text(paint);
                match self.keys {
                    Keys::Offered if self.rich.is_none() => {
                        Some(format!("{text}\n  {}", question.line_keys()))
                    }
                    Keys::Offered | Keys::Hidden => Some(text),
                }
            }
            EventKind::ApprovalAnswered {
                answer,
                scope,
                by,
                reason,
                ..
            } => quiet(answered(*answer, *scope, by, reason.as_deref())),
            EventKind::ApprovalWithdrawn { why, .. } => {
                quiet(format!("  question withdrawn: {}", tame(why)))
            }
            EventKind::Notice { level, text } => Some(notice(paint, *level, text)),
            EventKind::Retrying {
                attempt,
                after_ms,
                why,
            } => quiet(format!(
                "retrying in {} (attempt {attempt}): {}",
                duration(*after_ms),
                tame(why)
            )),
            EventKind::Unsaid { .. } => quiet("(the draft above is withdrawn)".into()),
            EventKind::ProviderSwitched { name, model } => quiet(match model {
                Some(model) => format!("provider: {name} ({model})"),
                None => format!("provider: {name}"),
            }),
            EventKind::Renamed { title } => quiet(format!("title: {}", tame(title))),
            EventKind::Compacted { .. } => {
                quiet("(from here on the model sees a summary of what came before)".into())
            }
            EventKind::Cleared => quiet("(the model sees nothing of what came before)".into()),
            EventKind::Replaced { .. } => {
                quiet("(the model sees another conversation from here on)".into())
            }
            EventKind::CommandOutput { text } => Some(tame(text).trim_end_matches('\n').into()),
            // Where there is room to draw, what waits is shown as long as it waits.
            EventKind::Queued { .. } if self.rich.is_some() => None,
            EventKind::Queued { queued, text, .. } => {
                quiet(format!("queued {queued}: {}", first_line(text)))
            }
            EventKind::Steered { text } => Some(format!(
                "{} {}",
                paint.dress(Part::Quiet, "steered:"),
                tame(text)
            )),
            // One line, whatever is in it.
            EventKind::Granted { tool, pattern } => quiet(format!(
                "  allowed from here on: {} {}",
                tame(tool),
                spell_out(pattern).replace('\n', "\\n")
            )),
            EventKind::TurnEnded { status, reply } => {
                self.calls.clear(event.turn.as_ref());
                ended(paint, *status, reply, self.replied)
            }
            EventKind::Saying { .. }
            | EventKind::Said { .. }
            | EventKind::Thinking { .. }
            | EventKind::ToolOutput { .. }
            | EventKind::CallStarted { .. }
            | EventKind::Changing { .. }
            | EventKind::RoundStarted { .. }
            | EventKind::Signed { .. }
            | EventKind::Usage { .. }
            | EventKind::Dequeued { .. }
            | EventKind::Unknown => None,
        }
    }
}

impl Renderer {
    /// A question with what earlier events told of its call.
    pub(crate) fn knows(&self, mut question: Question) -> Question {
        question.of_program = self.calls.is_of_program(&question.call);
        let change = self.calls.change_of(&question.call, &question.arguments);
        question.change = change.or(question.change);
        question
    }

    fn look(&self) -> Look {
        Look {
            paint: self.paint,
            room: self.rich.as_ref().map(|rich| rich.room),
        }
    }

    /// Where there is room to draw, a blank row parts one exchange from the next.
    fn spaced(&self, text: String) -> String {
        match &self.rich {
            Some(_) => format!("\n{text}\n"),
            None => text,
        }
    }
}

/// A prompt as it stands in the scrollback.
fn prompt_line(paint: Paint, text: &str, client: Option<&str>) -> String {
    let text = tame(text);
    let shown = text.trim_end().replace('\n', "\n  ");
    let line = paint.dress(Part::Prompt, &format!("> {shown}"));
    match client {
        Some(client) if !client.is_empty() => {
            let by = paint.dress(Part::Quiet, &format!("({})", tame(client)));
            format!("{line}  {by}")
        }
        _ => line,
    }
}

/// A time for people.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000.. => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// The first line of a text, cut to what a list can show.
pub(crate) fn first_line(text: &str) -> String {
    let text = tame(text);
    let line = text.trim().lines().next().unwrap_or("").replace('\t', " ");
    cut(&line, 100)
}

/// At most `most` characters, the last one showing that something is missing.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
mod tests;
