//! Calls in flight that their client may take back, as editors' libraries do with `$/cancelRequest`. Must never touch a
//! call of a method that does something: such a call is carried out, and its answer tells what came of it.

use super::request::{Call, WireId};
use protocol::error::{ErrorKind, RpcError};
use protocol::withdrawal::NOTIFICATIONS;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The calls of one connection that may be taken back, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Withdrawals(Arc<Mutex<Waiting>>);

/// Held for a look only. Bounded by the calls in flight. Calls of one id, which no client should make, share a place.
type Waiting = HashMap<Box<str>, (CancellationToken, usize)>;

/// One call's place; it is free again when this is dropped.
pub(super) struct Place {
    all: Withdrawals,
    id: Box<str>,
    token: CancellationToken,
}

impl Withdrawals {
    /// A place for a call.
    pub(super) fn enter(&self, id: &WireId) -> Place {
        let id = key(id.as_json());
        let mut waiting = self.held();
        let (token, count) = waiting.entry(id.clone()).or_default();
        *count += 1;
        Place {
            all: self.clone(),
            id,
            token: token.clone(),
        }
    }

    /// Takes a call back if that is what this notification says; one that is not in flight, or not to be taken back, goes
    /// on. False for another notification.
    pub(super) fn hear(&self, call: &Call<'_>) -> bool {
        let spelt = NOTIFICATIONS.iter().find(|(name, _)| *name == call.method);
        let Some((_, member)) = spelt.filter(|_| call.id.is_none()) else {
            return false;
        };
        let named = call.params.and_then(|params| named(params, member));
        if let Some((token, _)) = named.and_then(|id| self.held().remove(&key(id.get()))) {
            token.cancel();
        }
        true
    }

    fn held(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Resolves when the call is taken back.
    pub(super) async fn withdrawn(&self) {
        self.token.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.all.held();
        // Once it is taken back the place may be another call's.
        if self.token.is_cancelled() {
            return;
        }
        if let Some((_, count)) = waiting.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.id);
            }
        }
    }
}

/// What the client is told.
pub(super) fn error(method: &str) -> RpcError {
    let why = format!("{method} was taken back by the client that called it");
    RpcError::new(ErrorKind::Withdrawn, why)
}

fn named(params: &RawValue, member: &str) -> Option<Box<RawValue>> {
    let mut params: HashMap<String, Box<RawValue>> = serde_json::from_str(params.get()).ok()?;
    params.remove(member)
}

/// An id that is written in another way is the same one.
fn key(id: &str) -> Box<str> {
    let plain = |text: String| text.into_boxed_str();
    match serde_json::from_str::<String>(id) {
        Ok(text) => plain(format!("\"{text}")),
        Err(_) => id.trim().into(),
    }
}
