//! Identifiers: strings on the wire, distinct types in the code. Must never be parsed for meaning.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The identifier as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(text.into())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A session: unique in a store, short and readable (`calm-otter-7f3k`).
    SessionId
);
id!(
    /// A turn: the session's id and a number, so that it is unique everywhere (`calm-otter-7f3k.t3`).
    TurnId
);
id!(
    /// A message or thought that grows piece by piece; unique in its session (`m4`, `t4`).
    MessageId
);
id!(
    /// A tool call; unique in its session (`c7`), and below a program or another tool `c7/2`.
    CallId
);
id!(
    /// A question put to people: the session's id and a number (`calm-otter-7f3k.a2`).
    ApprovalId
);
id!(
    /// A prompt that waits behind the running turn; unique in its session (`q1`).
    QueuedId
);
