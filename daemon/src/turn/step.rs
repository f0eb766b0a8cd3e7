//! What a turn does next: a pure function of the state. Must never know how it is done.

use crate::session::state::{OpenCall, State};
use protocol::event::TurnStatus;
use protocol::id::{ApprovalId, CallId};
use serde_json::{Map, Value};

/// How many times a call may fail in the same way before the turn stops.
const GIVE_UP_AFTER: u32 = 6;

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// No turn runs.
    Idle,
    /// Ask the model; the number of the round trip.
    CallModel(u32),
    /// Run the first call without an end.
    RunCall(CallId),
    /// The same, after a person's answer.
    AwaitApproval(CallId, ApprovalId),
    /// The turn is over.
    Finish(TurnStatus, String),
}

/// The next step of the running turn.
pub fn next_step(state: &State, max_rounds: u32) -> Step {
    let Some(turn) = &state.turn else {
        return Step::Idle;
    };
    if let Some(call) = state.pending_calls().next() {
        return step_of(state, call);
    }
    if let Some(repeat) = turn.repeat.as_ref().filter(|r| r.times >= GIVE_UP_AFTER) {
        let reply = format!(
            "stopped: {} failed {} times in the same way",
            repeat.name, repeat.times
        );
        return Step::Finish(TurnStatus::Failed, reply);
    }
    let silent = turn.round.as_ref().is_some_and(|r| r.whole && r.calls == 0);
    if silent && !state.conversation.has_steers() {
        return Step::Finish(TurnStatus::Completed, state.round_text().to_owned());
    }
    if turn.rounds >= max_rounds {
        return Step::Finish(
            TurnStatus::MaxRounds,
            format!("stopped after {max_rounds} rounds"),
        );
    }
    Step::CallModel(turn.rounds + 1)
}

/// The next step once this call has this result; none when only the state after it can say.
pub fn after_call(
    state: &State,
    call: &CallId,
    result: &Map<String, Value>,
    max_rounds: u32,
) -> Option<Step> {
    let turn = state.turn.as_ref()?;
    let mut pending = state.pending_calls();
    let open = pending.next().filter(|c| c.call == *call)?;
    let last = pending.next().is_none();
    let repeats = state.repeats(&open.name, &open.arguments, result);
    let goes_on = last && repeats < GIVE_UP_AFTER && turn.rounds < max_rounds;
    goes_on.then_some(Step::CallModel(turn.rounds + 1))
}

fn step_of(state: &State, call: &OpenCall) -> Step {
    match state.waiting_for(&call.call) {
        // The questions of a call that runs are those of its sub-session.
        Some(approval) if !call.started => {
            Step::AwaitApproval(call.call.clone(), approval.approval.clone())
        }
        Some(_) | None => Step::RunCall(call.call.clone()),
    }
}
