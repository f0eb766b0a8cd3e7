//! What a session shows when one attaches to it: the last exchanges, bounded; whatever runs, from its beginning; the
//! questions and prompts that wait. Must never answer or start anything.

use super::header;
use super::talk::shell::Told;
use crate::approval::Question;
use crate::attach::View;
use crate::error::Failure;
use crate::link::Link;
use crate::paint::{Mark, Paint, Part};
use crate::render::{Prompts, Renderer, first_line};
use protocol::approval::Answer;
use protocol::event::{Event, EventKind};
use protocol::id::{ApprovalId, CallId, SessionId, TurnId};
use protocol::session::{Session, SessionRpcClient};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many finished exchanges are shown, where nobody says it.
const EXCHANGES: usize = 3;

/// Says it.
const VARIABLE: &str = "DWELL_PAST";

/// How many lines of them.
const LINES: usize = 60;

/// How many events one request asks for.
const PAGE: u32 = 500;

/// How many events are read for finished exchanges: a session may hold millions.
const MOST: usize = 2_000;

/// How many for what runs: a turn may be as long.
const MOST_RUNNING: usize = 10_000;

/// A session as it stands when one attaches.
pub(super) struct Past {
    /// What to show.
    pub(super) text: String,
    /// Where to go on.
    pub(super) view: View,
    /// How to go on: it knows the calls that run.
    pub(super) renderer: Renderer,
    /// The turn that runs or waits.
    pub(super) turn: Option<TurnId>,
    /// The questions that wait.
    pub(super) questions: Vec<Question>,
    /// Commands of people's own that run.
    pub(super) told: Told,
    /// The session itself.
    pub(super) session: Session,
}

/// Where it is shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum On {
    /// A terminal that is drawn on, with so many columns for text.
    Screen(usize),
    /// Anything else; on a terminal that is not drawn on, with so many columns.
    Plain(Option<usize>),
}

/// Reads it.
pub(super) async fn read(
    link: &Link,
    id: &SessionId,
    paint: Paint,
    on: On,
) -> Result<Past, Failure> {
    let session = link
        .call(async |client| SessionRpcClient::get(client, id.clone()).await)
        .await?;
    let exchanges = exchanges(std::env::var(VARIABLE).ok().as_deref());
    let events = last_events(link, &session, exchanges).await?;
    Ok(show(paint, on, session, events, exchanges))
}

/// Whether a value of `DWELL_PAST` means something.
pub(super) fn understands(said: &str) -> bool {
    matches!(said.trim(), "off" | "no") || said.trim().parse::<usize>().is_ok()
}

/// A number, or a word for none.
fn exchanges(said: Option<&str>) -> usize {
    match said.map(str::trim) {
        Some("off" | "no") => 0,
        Some(number) => number.parse().unwrap_or(EXCHANGES),
        None => EXCHANGES,
    }
}

/// The newest events, back to the beginning of what is shown.
async fn last_events(
    link: &Link,
    session: &Session,
    exchanges: usize,
) -> Result<Vec<Event>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    let mut before = session.seq + 1;
    while before > 1 {
        let page = link
            .call(async |client| {
                let id = session.id.clone();
                SessionRpcClient::history(client, id, None, Some(before), Some(PAGE)).await
            })
            .await?;
        let Some(oldest) = page.events.first().map(Event::first) else {
            break;
        };
        let mut page = page.events;
        page.append(&mut events);
        events = page;
        let running = session.turn.as_ref();
        let reached = running.is_none_or(|turn| start_of(&events, turn).is_some());
        let enough = starts(&events).count() > exchanges || events.len() >= MOST;
        let most = events.len() >= MOST_RUNNING;
        if (reached && enough) || most || oldest >= before {
            break;
        }
        before = oldest;
    }
    Ok(events)
}

/// Where turns start.
fn starts(events: &[Event]) -> impl DoubleEndedIterator<Item = usize> {
    let starts = |event: &Event| matches!(event.kind, EventKind::TurnStarted { .. });
    (0..events.len()).filter(move |at| starts(&events[*at]))
}

fn start_of(events: &[Event], turn: &TurnId) -> Option<usize> {
    starts(events).find(|at| events[*at].turn.as_ref() == Some(turn))
}

fn show(paint: Paint, on: On, session: Session, events: Vec<Event>, exchanges: usize) -> Past {
    let live = session
        .turn
        .as_ref()
        .and_then(|turn| start_of(&events, turn));
    let live = live.unwrap_or(events.len());
    let from = starts(&events[..live]).rev().take(exchanges).last();
    let from = from.unwrap_or(if exchanges == 0 { live } else { 0 });
    let mut view = View::default();
    let mut renderer = Renderer::new(paint, Prompts::Shown).offering_keys();
    renderer = match on {
        On::Screen(room) => renderer.rich(room),
        On::Plain(Some(room)) => renderer.broken(room),
        On::Plain(None) => renderer,
    };
    let mut finished = String::new();
    let mut running = String::new();
    let pending: Vec<_> = session.approvals.iter().map(|one| &one.approval).collect();
    let mut asked = Vec::new();
    let began_earlier = events.get(from).is_some_and(|event| event.first() > 1);
    let mut told = Told::default();
    let now = now();
    let begun = begun_before(&events[..from]);
    let mut typed = Vec::new();
    for (at, event) in events.into_iter().enumerate() {
        told.note(&event, now);
        let Some(event) = view.take(event) else {
            continue;
        };
        if at < from {
            // Its end stands below, and names it.
            if call_of(&event.kind).is_some_and(|call| begun.contains(call)) {
                renderer.event(&event);
            }
            continue;
        }
        if is_typed(&event.kind, &told, &mut typed) || settled(&event.kind, &pending) {
            continue;
        }
        if let EventKind::ApprovalAsked { approval, .. } = &event.kind {
            asked.push(approval.clone());
        }
        let target = if at < live {
            &mut finished
        } else {
            &mut running
        };
        for chunk in renderer.event(&event) {
            target.push_str(&chunk.text);
        }
    }
    let mut text = header(paint, &session) + "\n";
    text.push_str(&last_lines(paint, &finished, began_earlier, &session.id));
    text.push_str(&running);
    if let On::Plain(_) = on {
        // The panel shows them elsewhere.
        for row in renderer.live(now) {
            end_line(&mut text);
            text.push_str(&(row + "\n"));
        }
    }
    let waiting = session.approvals.iter().map(Question::from);
    let questions: Vec<Question> = waiting.map(|one| renderer.knows(one)).collect();
    for question in &questions {
        if !asked.contains(&question.approval) {
            end_line(&mut text);
            text.push_str(&question.text(paint));
            text.push_str(&match on {
                On::Screen(_) => "\n".to_string(),
                On::Plain(_) => format!("\n  {}\n", question.line_keys()),
            });
        }
    }
    let queue = match on {
        // The panel shows them.
        On::Screen(_) => &[],
        On::Plain(_) => session.queue.as_slice(),
    };
    for queued in queue {
        end_line(&mut text);
        let line = format!("queued {}: {}", queued.queued, first_line(&queued.text));
        text.push_str(&(paint.dress(Part::Quiet, &line) + "\n"));
    }
    Past {
        text,
        view,
        renderer,
        turn: session.turn.clone(),
        questions,
        told,
        session,
    }
}

/// Commands of people's own that begin in these events and do not end in them.
fn begun_before(events: &[Event]) -> Vec<CallId> {
    let mut begun = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::Doing {
                call, tell: true, ..
            } => begun.push(call.clone()),
            EventKind::Done { call, .. } => begun.retain(|one| one != call),
            _ => {}
        }
    }
    begun
}

/// The call that an event tells of while it runs.
fn call_of(kind: &EventKind) -> Option<&CallId> {
    match kind {
        EventKind::Doing { call, .. }
        | EventKind::CallStarted { call }
        | EventKind::ToolOutput { call, .. } => Some(call),
        _ => None,
    }
}

/// Whether an event is the yes to a command of a person's own, which is typed and not asked. `typed` are questions about such.
fn is_typed(kind: &EventKind, told: &Told, typed: &mut Vec<ApprovalId>) -> bool {
    match kind {
        EventKind::ApprovalAsked { approval, call, .. } if told.has(call) => {
            typed.push(approval.clone());
            false
        }
        EventKind::ApprovalAnswered {
            approval,
            answer: Answer::Allow,
            ..
        } => typed.contains(approval),
        _ => false,
    }
}

/// Whether an event only matters while it waits, and does not any more.
fn settled(kind: &EventKind, pending: &[&ApprovalId]) -> bool {
    match kind {
        EventKind::ApprovalAsked { approval, .. } => !pending.contains(&approval),
        EventKind::Queued { .. } => true,
        _ => false,
    }
}

/// The time of day, in milliseconds.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

fn end_line(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

/// The end of the finished exchanges, and whether there is more.
fn last_lines(paint: Paint, text: &str, began_earlier: bool, id: &SessionId) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let kept = &lines[lines.len().saturating_sub(LINES)..];
    let mut out = String::new();
    if began_earlier || kept.len() < lines.len() {
        let more = paint.dress(
            Part::Quiet,
            &format!("`dwell log {id}` shows what came before"),
        );
        out.push_str(&format!("{} {more}\n", paint.mark(Mark::More)));
    }
    for line in kept {
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;
    use serde_json::{Value, json};

    fn session(turn: Option<&str>, more: Value) -> Session {
        let mut whole = json!({
            "id": "s", "title": "", "cwd": "/w", "state": "idle", "provider": "script",
            "created_at": 0, "updated_at": 0, "seq": 0, "turn": turn
        });
        whole
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn turn(seq: u64, number: u64, kind: Value) -> Event {
        let mut event = event(seq, kind);
        event.turn = Some(format!("s.t{number}").into());
        event
    }

    fn talk(count: u64) -> Vec<Event> {
        let mut events = Vec::new();
        for n in 1..=count {
            let seq = n * 3;
            events.push(turn(
                seq - 2,
                n,
                json!({"type": "turn_started", "text": format!("ask {n}")}),
            ));
            events.push(turn(
                seq - 1,
                n,
                json!({"type": "saying", "message": format!("m{n}"), "offset": 0, "text": format!("reply {n}")}),
            ));
            events.push(turn(
                seq,
                n,
                json!({"type": "turn_ended", "status": "completed", "reply": format!("reply {n}")}),
            ));
        }
        events
    }

    #[test]
    fn the_last_exchanges_are_shown_and_where_the_rest_is() {
        let past = show(
            Paint::Plain,
            On::Plain(None),
            session(None, json!({})),
            talk(5),
            EXCHANGES,
        );
        assert_eq!(
            past.text,
            "s · script · /w\n... `dwell log s` shows what came before\n> ask 3\nreply 3\n> ask 4\nreply 4\n> ask 5\nreply 5\n"
        );
        assert_eq!(past.view.cursor(), 15);
    }

    #[test]
    fn how_many_exchanges_are_shown_can_be_said() {
        let said = |count: usize| {
            let past = show(
                Paint::Plain,
                On::Plain(None),
                session(None, json!({})),
                talk(5),
                count,
            );
            past.text.matches("> ask").count()
        };
        assert_eq!([0, 1, 4, 9].map(said), [0, 1, 4, 5]);
        let read = [None, Some("off"), Some("7"), Some("many")].map(exchanges);
        assert_eq!(read, [EXCHANGES, 0, 7, EXCHANGES]);
    }

    #[test]
    fn what_runs_is_shown_from_its_beginning_and_goes_on() {
        let mut events = talk(1);
        events.push(turn(4, 2, json!({"type": "turn_started", "text": "go"})));
        events.push(turn(
            5,
            2,
            json!({"type": "saying", "message": "m2", "offset": 0, "text": "so "}),
        ));
        events.push(turn(
            6,
            2,
            json!({"type": "saying", "message": "m2", "offset": 3, "text": "far"}),
        ));
        let mut past = show(
            Paint::Plain,
            On::Plain(None),
            session(Some("s.t2"), json!({})),
            events,
            EXCHANGES,
        );
        assert_eq!(past.text, "s · script · /w\n> ask 1\nreply 1\n> go\nso far");
        let folded = json!({"type": "saying", "message": "m2", "offset": 0, "first_seq": 5, "text": "so far so good"});
        let next = past.view.take(turn(8, 2, folded)).unwrap();
        assert_eq!(past.renderer.event(&next)[0].text, " so good");
    }

    #[test]
    fn what_waits_is_shown_and_what_was_answered_is_not() {
        let asked = |seq: u64, id: &str| {
            turn(
                seq,
                1,
                json!({"type": "approval_asked", "approval": id, "call": "c1", "tool": "write",
                       "arguments": {"path": id}, "why": ""}),
            )
        };
        let waiting = json!({
            "approvals": [{"approval": "s.a2", "session": "s", "call": "c1", "tool": "write",
                           "arguments": {"path": "s.a2"}, "why": "", "asked_at": 0}],
            "queue": [{"queued": "q1", "text": "then this"}]
        });
        let started = turn(1, 1, json!({"type": "turn_started", "text": "go"}));
        let queued = turn(
            4,
            1,
            json!({"type": "queued", "queued": "q1", "text": "then this"}),
        );
        let events = vec![started, asked(2, "s.a1"), asked(3, "s.a2"), queued];
        let past = show(
            Paint::Plain,
            On::Plain(None),
            session(Some("s.t1"), waiting),
            events,
            EXCHANGES,
        );
        assert_eq!(
            past.text,
            format!(
                "s · script · /w\n> go\n? allow write?\n    s.a2\n  {}\nqueued q1: then this\n",
                past.questions[0].keys().join("  ")
            )
        );
        assert_eq!(past.questions.len(), 1);
    }
}
