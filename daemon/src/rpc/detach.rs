//! Ending a subscription in every way that clients name one: its id by position or by name, or its session.
//! Must never end another connection's.

use super::Rpc;
use super::attachments::Attachments;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::core::server::{MethodCallback, MethodResponse, ResponsePayload, RpcModule};
use jsonrpsee::types::{ErrorObjectOwned, Params, SubscriptionId};
use protocol::error::{ErrorKind, RpcError};
use protocol::id::SessionId;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Widens an unsubscribe method, which by itself takes `[id]` alone.
pub(super) fn widen(
    module: &mut RpcModule<Rpc>,
    method: &'static str,
    attachments: Attachments,
) -> Result<(), RegisterMethodError> {
    let Some(MethodCallback::Unsubscription(inner)) = module.remove_method(method) else {
        return Err(RegisterMethodError::MethodNotFound(method.into()));
    };
    let wide = MethodCallback::Unsubscription(Arc::new(
        move |id, params, connection, max_size, extensions| {
            let named = match read(&params) {
                Ok(named) => named,
                Err(why) => {
                    let why = format!("cannot tell what {method} ends: {why}");
                    let error = RpcError::new(ErrorKind::InvalidParams, why);
                    return MethodResponse::error(id, ErrorObjectOwned::from(error));
                }
            };
            let mut ended = false;
            for subscription in named.subscriptions(connection, &attachments) {
                let json = serde_json::json!([subscription]).to_string();
                let params = Params::new(Some(&json));
                let response = inner(id.clone(), params, connection, max_size, extensions.clone());
                ended |= response.as_ref().contains("\"result\":true");
            }
            MethodResponse::response(id, ResponsePayload::success(ended), max_size)
        },
    ));
    module.verify_and_insert(method, wide).map(|_| ())
}

#[derive(Deserialize)]
struct Named {
    /// A string or a number; one that is neither is nobody's.
    subscription: Option<Value>,
    session: Option<SessionId>,
}

impl Named {
    fn subscriptions(
        self,
        connection: jsonrpsee::ConnectionId,
        attachments: &Attachments,
    ) -> Vec<SubscriptionId<'static>> {
        let of_session = self
            .session
            .map(|session| attachments.subscriptions(connection, &session));
        let mut all = of_session.unwrap_or_default();
        let named = self.subscription.map(SubscriptionId::try_from);
        all.extend(named.and_then(Result::ok));
        all
    }
}

fn read(params: &Params<'_>) -> Result<Named, String> {
    let wanted = "name a subscription or a session";
    let named = if params.is_object() {
        let text = params.as_str().unwrap_or("{}");
        serde_json::from_str(text).map_err(|error| error.to_string())?
    } else {
        let mut sequence = params.sequence();
        let subscription = sequence.next().map_err(|_| wanted.to_owned())?;
        Named {
            subscription: Some(subscription),
            session: None,
        }
    };
    if named.subscription.is_none() && named.session.is_none() {
        return Err(wanted.into());
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::super::attachments::Attachment;
    use super::*;
    use jsonrpsee::ConnectionId;
    use protocol::session::Role;

    fn attach(table: &Attachments, connection: usize, name: &'static str) -> Attachment {
        let subscription = SubscriptionId::Str(name.into());
        let connection = ConnectionId(connection);
        table.add(connection, "owl".into(), subscription, Role::Controller, 0)
    }

    fn check(params: &str, expected: Result<&[&str], ()>) {
        let table = Attachments::default();
        let _kept = [(1, "s1"), (1, "s2"), (2, "s3")]
            .map(|(connection, name)| attach(&table, connection, name));
        let named = read(&Params::new(Some(params)));
        let ended = named.map(|named| named.subscriptions(ConnectionId(1), &table));
        let expected = expected.map(|names| {
            let owned = names
                .iter()
                .map(|name| SubscriptionId::Str((*name).to_owned().into()));
            owned.collect::<Vec<_>>()
        });
        assert_eq!(ended.map_err(|_| ()), expected, "{params}");
    }

    #[test]
    fn a_subscription_is_named_in_three_ways() {
        check(r#"["s1"]"#, Ok(&["s1"]));
        check(r#"{"subscription": "s1"}"#, Ok(&["s1"]));
        check(r#"{"session": "owl"}"#, Ok(&["s1", "s2"]));
        check(r#"{"session": "cat"}"#, Ok(&[]));
        check(r#"[{}]"#, Ok(&[]));
        check("[]", Err(()));
        check("{}", Err(()));
        check(r#"{"session": 1}"#, Err(()));
    }
}
