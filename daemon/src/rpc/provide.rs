//! A connection as a client that offers tools. Must never keep the connection alive.

use crate::toolbox::source::client::Offerer;
use crate::transport::Context;
use futures_util::future::BoxFuture;
use jsonrpsee::ConnectionId;
use protocol::tool::{ToolAsked, ToolCancelled};
use std::sync::{Arc, Weak};

struct Caller {
    name: String,
    context: Weak<Context>,
}

/// The caller, and its connection's number.
pub(super) fn offerer(context: &Arc<Context>) -> (u64, Arc<dyn Offerer>) {
    let ConnectionId(number) = context.id();
    let caller = Caller {
        name: context.name(),
        context: Arc::downgrade(context),
    };
    (number as u64, Arc::new(caller))
}

impl Offerer for Caller {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn is_gone(&self) -> bool {
        self.context
            .upgrade()
            .is_none_or(|context| context.is_gone())
    }

    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(context) = self.context.upgrade() {
                context.gone().await;
            }
        })
    }

    fn withdraw(&self, cancelled: ToolCancelled) {
        if let Some(context) = self.context.upgrade() {
            context.try_notify(cancelled);
        }
    }

    fn ask(&self, asked: ToolAsked) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let Some(context) = self.context.upgrade() else {
                return false;
            };
            context.notify(asked).await
        })
    }
}
