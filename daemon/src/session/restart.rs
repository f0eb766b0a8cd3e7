//! What a session owes its readers when a turn did not end by itself: a result for each call, an end for the turn.
//! Pure.

use super::actor::Draft;
use super::state::{OpenCall, State};
use crate::presentation::code_mode::RUN_CODE;
use crate::toolbox::result::finish;
use crate::turn::step::{Step, next_step};
use protocol::approval::Approval;
use protocol::event::{EventKind, TurnStatus};
use protocol::id::{CallId, TurnId};
use serde_json::{Map, Value, json};

/// What becomes of a loaded session's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is none, or the drafts end it.
    Over,
    /// It waits for a person, as before.
    GoesOn,
}

/// Who waits for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    ForPeople,
    /// A call of another session did, and died with the daemon.
    ForNobody,
}

pub struct Plan {
    pub turn: Turn,
    pub drafts: Vec<Draft>,
}

const DIED: &str = "interrupted: the daemon stopped; outcome unknown";
const NEVER_RAN: &str = "interrupted: the daemon stopped before it ran";

/// Puts a session in order whose daemon is gone. No call runs twice, and none stays without a result.
pub fn plan(state: &State, max_rounds: u32, waits: Waits) -> Plan {
    let waiting = match next_step(state, max_rounds) {
        Step::AwaitApproval(call, _) if waits == Waits::ForPeople => Some(call),
        Step::AwaitApproval(..) => None,
        Step::Idle | Step::CallModel(_) | Step::RunCall(_) | Step::Finish(_, _) => None,
    };
    let mut drafts = Vec::new();
    // Calls of programs and of clients died with the daemon, whatever the turn does. What a call that waits has only handed
    // on to waits with it.
    let goes_on = |open: &OpenCall| {
        open.by_model || open.handed_on && open.parent.is_some() && open.parent == waiting
    };
    for open in state.open_calls.iter().filter(|open| !goes_on(open)) {
        close(
            state,
            open,
            if open.started { DIED } else { NEVER_RAN },
            &mut drafts,
        );
    }
    let Some(turn) = &state.turn else {
        return Plan {
            turn: Turn::Over,
            drafts,
        };
    };
    if waiting.is_some() {
        return Plan {
            turn: Turn::GoesOn,
            drafts,
        };
    }
    for open in state.pending_calls() {
        close(
            state,
            open,
            if open.started { DIED } else { NEVER_RAN },
            &mut drafts,
        );
    }
    let reply = "interrupted: the daemon stopped".to_owned();
    drafts.push((
        Some(turn.id.clone()),
        EventKind::TurnEnded {
            status: TurnStatus::Interrupted,
            reply,
        },
    ));
    Plan {
        turn: Turn::Over,
        drafts,
    }
}

/// Results for the calls of a turn that ends now, those in `pending` (not yet in the log) included.
pub fn loose_ends(state: &State, turn: &TurnId, pending: &[Draft], why: &str) -> Vec<Draft> {
    let mut drafts = Vec::new();
    for open in state
        .open_calls
        .iter()
        .filter(|c| c.turn.as_ref() == Some(turn))
    {
        let why = if open.started || !why.contains("outcome unknown") {
            why
        } else {
            NEVER_RAN
        };
        close(state, open, why, &mut drafts);
    }
    for (of, kind) in pending {
        if let EventKind::Doing { call, .. } = kind {
            drafts.push((of.clone(), done(call, why)));
        }
    }
    let ended = |call: &CallId| {
        pending
            .iter()
            .any(|(_, k)| matches!(k, EventKind::Done { call: c, .. } if c == call))
    };
    drafts.retain(|(_, kind)| !matches!(kind, EventKind::Done { call, .. } if ended(call)));
    drafts
}

fn close(state: &State, open: &OpenCall, why: &str, drafts: &mut Vec<Draft>) {
    drafts.extend(withdrawal(state, &open.call, open.turn.as_ref(), why));
    let mut end = done(&open.call, why);
    if let EventKind::Done { result, .. } = &mut end
        && let Some(calls) = calls_of(state, open)
    {
        result.insert("code".to_owned(), json!("cancelled"));
        result.insert("calls".to_owned(), calls);
        *result = finish(std::mem::take(result));
    }
    drafts.push((open.turn.clone(), end));
}

/// What a program's call did, for whoever might make it again; nothing of any other call.
fn calls_of(state: &State, program: &OpenCall) -> Option<Value> {
    let call = |tool: &str, ok: bool, ms: u64| json!({"tool": tool, "ok": ok, "ms": ms});
    let ended = program
        .made
        .iter()
        .map(|made| call(&made.tool, made.ok, made.ms));
    let is_its = |open: &&OpenCall| open.by_program && open.parent.as_ref() == Some(&program.call);
    let open = state.open_calls.iter().filter(is_its);
    let calls: Vec<Value> = ended
        .chain(open.map(|open| call(&open.name, false, 0)))
        .collect();
    (program.name == RUN_CODE || !calls.is_empty()).then(|| calls.into())
}

/// What goes before the end of a call whose questions nobody answered.
pub fn withdrawal(
    state: &State,
    call: &CallId,
    turn: Option<&TurnId>,
    why: &str,
) -> impl Iterator<Item = Draft> {
    let withdrawn = move |approval: &Approval| EventKind::ApprovalWithdrawn {
        approval: approval.approval.clone(),
        why: why.to_owned(),
    };
    let of = state.approvals.values().filter(|asked| asked.call == *call);
    of.map(move |asked| (turn.cloned(), withdrawn(asked)))
}

/// The end of a call as its result says it, with the withdrawal of its questions that still wait.
pub fn ending(
    state: &State,
    call: CallId,
    turn: Option<TurnId>,
    result: Map<String, Value>,
    ms: u64,
) -> Vec<Draft> {
    let why = result
        .get("error")
        .and_then(Value::as_str)
        .unwrap_or("the call ended");
    let mut drafts: Vec<Draft> = Vec::from_iter(withdrawal(state, &call, turn.as_ref(), why));
    drafts.push((turn, EventKind::Done { call, result, ms }));
    drafts
}

fn done(call: &CallId, why: &str) -> EventKind {
    let result = Map::from_iter([
        ("error".to_owned(), json!(why)),
        ("ok".to_owned(), Value::Bool(false)),
    ]);
    EventKind::Done {
        call: call.clone(),
        result,
        ms: 0,
    }
}
