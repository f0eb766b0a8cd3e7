//! A session's log as the beginning of another one's. Pure.

use super::restart;
use super::state::State;
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{ApprovalId, SessionId, TurnId};

/// The events up to and including `at`, numbered anew for `to`; a turn that was under way there is ended.
pub fn copy(events: &[Event], at: u64, to: &SessionId) -> Vec<Event> {
    let mut copies: Vec<Event> = Vec::new();
    for event in events.iter().filter(|e| e.seq <= at) {
        let seq = copies.len() as u64 + 1;
        let turn = event
            .turn
            .as_ref()
            .map(|turn| moved(turn.as_str(), to).into());
        let kind = renamed(event.kind.clone(), to);
        copies.push(Event {
            session: to.clone(),
            seq,
            first_seq: None,
            at: event.at,
            turn,
            kind,
        });
    }
    let state = State::fold(&copies);
    let last = copies.last().map_or(0, |e| e.at);
    for (turn, kind) in ending(&state) {
        let seq = copies.len() as u64 + 1;
        copies.push(Event {
            session: to.clone(),
            seq,
            first_seq: None,
            at: last,
            turn,
            kind,
        });
    }
    copies
}

fn ending(state: &State) -> Vec<super::actor::Draft> {
    let queue = state.queue.iter().map(|q| {
        (
            None,
            EventKind::Dequeued {
                queued: q.queued.clone(),
            },
        )
    });
    let Some(turn) = &state.turn else {
        return queue.collect();
    };
    let mut drafts = restart::loose_ends(
        state,
        &turn.id,
        &[],
        "not run: the session was forked before it",
    );
    let reply = "interrupted: the session was forked here".to_owned();
    drafts.push((
        Some(turn.id.clone()),
        EventKind::TurnEnded {
            status: TurnStatus::Interrupted,
            reply,
        },
    ));
    drafts.extend(queue);
    drafts
}

/// Ids that carry their session's name get the new one's.
fn renamed(kind: EventKind, to: &SessionId) -> EventKind {
    let own = |approval: ApprovalId| ApprovalId::from(moved(approval.as_str(), to));
    match kind {
        EventKind::ApprovalAsked {
            approval,
            call,
            tool,
            arguments,
            why,
            patterns,
        } => EventKind::ApprovalAsked {
            approval: own(approval),
            call,
            tool,
            arguments,
            why,
            patterns,
        },
        EventKind::ApprovalAnswered {
            approval,
            answer,
            scope,
            by,
            reason,
            pattern,
        } => EventKind::ApprovalAnswered {
            approval: own(approval),
            answer,
            scope,
            by,
            reason,
            pattern,
        },
        EventKind::ApprovalWithdrawn { approval, why } => EventKind::ApprovalWithdrawn {
            approval: own(approval),
            why,
        },
        // A token names one turn of one session: the fork's first retry must not find the original's.
        EventKind::TurnStarted {
            text,
            images,
            token: _,
            client,
        } => EventKind::TurnStarted {
            text,
            images,
            token: None,
            client,
        },
        EventKind::Queued {
            queued,
            text,
            images,
            token: _,
            client,
        } => EventKind::Queued {
            queued,
            text,
            images,
            token: None,
            client,
        },
        other => other,
    }
}

fn moved(id: &str, to: &SessionId) -> String {
    match id.rsplit_once('.') {
        Some((_, rest)) => format!("{to}.{rest}"),
        None => id.to_owned(),
    }
}

/// The session that a turn's or approval's id belongs to.
pub fn session_of(id: &str) -> Option<SessionId> {
    id.rsplit_once('.').map(|(session, _)| session.into())
}

/// As `session_of`, for a turn.
pub fn session_of_turn(turn: &TurnId) -> Option<SessionId> {
    session_of(turn.as_str())
}
