//! What was folded, in full: read from the daemon again, onto the screen or into the person's pager. Must never keep it.

use super::{Talk, job, program};
use crate::error::Failure;
use crate::link::Link;
use crate::paint::{Paint, Part, printed, tame};
use crate::render::styled::{Break, Piece, paint_row, wrap};
use crate::render::{Folded, What, thought_rows};
use nu_ansi_term::Style;
use protocol::event::{Event, EventKind};
use protocol::id::SessionId;
use protocol::session::SessionRpcClient;
use serde_json::Value;
use std::rc::Rc;

/// How many events of it are read at once.
const PAGE: u32 = 1_000;

/// How many rows go onto the screen; the pager shows all.
const ROWS: usize = 300;

impl Talk<'_> {
    /// The newest folded thing, and with every further press the one before.
    pub(super) fn unfold(&mut self) {
        let Some(folded) = self.renderer.folded(self.unfolded).cloned() else {
            self.hint = Some("nothing more is folded".into());
            return;
        };
        self.unfolded += 1;
        let (columns, _) = self.console.screen.size();
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        let (paint, room) = (self.paint, columns.saturating_sub(1));
        self.jobs.push(job::unfold(async move {
            let rows = read(&link, session, &folded, paint, room).await?;
            Ok(shortened(paint, rows))
        }));
    }

    /// The question that waits, the one that was unfolded last, or else the newest, in the pager.
    pub(super) async fn page(&mut self) -> Result<(), Failure> {
        if let Some(question) = self.questions.first() {
            let text = question.text(self.paint);
            return self.page_through(text).await;
        }
        let Some(folded) = self
            .renderer
            .folded(self.unfolded.saturating_sub(1))
            .cloned()
        else {
            self.hint = Some("nothing is folded".into());
            return Ok(());
        };
        let (columns, _) = self.console.screen.size();
        let (paint, room) = (self.paint, columns.saturating_sub(1));
        let rows = read(&self.link, self.session.clone(), &folded, paint, room).await?;
        self.page_through(rows.join("\n")).await
    }

    async fn page_through(&mut self, text: String) -> Result<(), Failure> {
        self.console.sleep()?;
        let paged = program::page(text + "\n").await;
        if paged != Ok(program::Paged::Well) {
            self.console.mend()?;
        }
        self.console.wake()?;
        if let Err(failure) = paged {
            self.line(&super::complaint(self.paint, &failure));
        }
        Ok(())
    }
}

fn shortened(paint: Paint, mut rows: Vec<String>) -> String {
    if rows.len() > ROWS {
        let more = format!(
            "… {} more rows, which Alt-O shows in the pager",
            rows.len() - ROWS
        );
        rows.truncate(ROWS);
        rows.push(paint.dress(Part::Quiet, &more));
    }
    rows.join("\n") + "\n"
}

async fn read(
    link: &Link,
    session: SessionId,
    folded: &Folded,
    paint: Paint,
    room: usize,
) -> Result<Vec<String>, Failure> {
    let mut whole = Whole::default();
    let mut after = folded.first.saturating_sub(1);
    loop {
        let page = link
            .call(async |client| {
                let before = Some(folded.last + 1);
                SessionRpcClient::history(client, session.clone(), Some(after), before, Some(PAGE))
                    .await
            })
            .await?;
        after = page.events.last().map_or(after, |event| event.seq);
        page.events
            .into_iter()
            .for_each(|event| whole.take(event, &folded.what));
        if !page.more || after >= folded.last {
            return Ok(whole.rows(paint, room));
        }
    }
}

/// Something folded, gathered from its events.
#[derive(Debug, Default)]
struct Whole {
    head: Option<String>,
    arguments: Option<Value>,
    thought: String,
    output: String,
    result: Option<Value>,
}

impl Whole {
    fn take(&mut self, event: Event, what: &What) {
        match (event.kind, what) {
            (EventKind::Thinking { text, .. }, What::Thought) => self.thought.push_str(&text),
            (
                EventKind::Doing {
                    call,
                    name,
                    arguments,
                    ..
                },
                What::Call(id),
            ) if call == *id => {
                self.head = Some(name);
                self.arguments = Some(arguments);
            }
            (EventKind::ToolOutput { call, text, .. }, What::Call(id)) if call == *id => {
                self.output.push_str(&text);
            }
            (EventKind::Done { call, result, .. }, What::Call(id)) if call == *id => {
                self.result = Some(Value::Object(result));
            }
            _ => {}
        }
    }

    fn rows(&self, paint: Paint, room: usize) -> Vec<String> {
        if !self.thought.is_empty() {
            return thought_rows(paint, room, &tame(&self.thought));
        }
        let mut rows =
            vec![paint.dress(Part::Tool, &tame(self.head.as_deref().unwrap_or_default()))];
        rows.extend(self.arguments.iter().flat_map(|value| fields(value, room)));
        rows.push(paint.dress(Part::Quiet, "result:"));
        let printed = !self.output.is_empty();
        rows.extend(broken(&self.output, room));
        for (name, value) in self.result.iter().filter_map(Value::as_object).flatten() {
            // What was printed is told by the output already.
            if !(printed && name == "content") {
                rows.extend(field(name, value, room));
            }
        }
        rows
    }
}

fn fields(value: &Value, room: usize) -> Vec<String> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| field(name, value, room))
            .collect(),
        other => broken(&other.to_string(), room),
    }
}

fn field(name: &str, value: &Value, room: usize) -> Vec<String> {
    match value {
        Value::String(text) if text.contains('\n') => {
            let mut rows = vec![format!("  {}:", tame(name))];
            rows.extend(
                broken(text, room.saturating_sub(2))
                    .iter()
                    .map(|row| format!("  {row}")),
            );
            rows
        }
        Value::String(text) => broken(&format!("{name}: {text}"), room),
        other => broken(&format!("{name}: {other}"), room),
    }
}

fn broken(text: &str, room: usize) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let pieces = [Piece::new(
        printed(text.trim_end_matches('\n')),
        Style::new(),
    )];
    let rows = wrap(&pieces, room.saturating_sub(2), Break::Anywhere);
    rows.iter()
        .map(|row| format!("  {}", paint_row(Paint::Plain, row)))
        .collect()
}
