//! What a frame says: one call, a batch, a notification, or nothing that can be called.
//! Must never run anything; what it cannot read becomes the error to answer with.

use jsonrpsee::types::Id;
use protocol::error::{ErrorKind, RpcError};
use serde::de::{Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A readable request.
#[derive(Debug)]
pub struct Call<'a> {
    /// None for a notification.
    pub id: Option<WireId>,
    pub method: Cow<'a, str>,
    /// None for absent, null, `[]` and `{}`.
    pub params: Option<&'a RawValue>,
}

/// What one JSON text of a frame asks.
#[derive(Debug)]
pub enum Message<'a> {
    Call(Call<'a>),
    /// A response, or what looks like one: nothing was asked, so nothing is answered.
    Response,
    Invalid(WireId, RpcError),
}

/// A frame's content.
#[derive(Debug)]
pub enum Content<'a> {
    Single(Message<'a>),
    Batch(Vec<Message<'a>>),
}

/// An id as the client wrote it: null, an integer or a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireId(Box<str>);

impl WireId {
    /// The id of an answer to what has none.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// `None` for what may not be an id.
    fn read(raw: &RawValue) -> Option<Self> {
        let text = raw.get().trim();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let fits = text == "null"
            || text.starts_with('"')
            || digits.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| Self(text.into()))
    }

    /// The same id in jsonrpsee's type, which knows no negative numbers and none over 64 bits.
    pub fn plain(&self) -> Option<Id<'static>> {
        if &*self.0 == "null" {
            return Some(Id::Null);
        }
        if self.0.starts_with('"') {
            let text: String = serde_json::from_str(&self.0).ok()?;
            return Some(Id::Str(text.into()));
        }
        self.0.parse().ok().map(Id::Number)
    }

    /// The id as JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// Reads a frame. `batch` is the longest batch.
pub fn read(frame: &[u8], batch: usize) -> Content<'_> {
    let first = frame.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        read_batch(frame, batch)
    } else {
        Content::Single(read_one(frame))
    }
}

/// The id in the first bytes of a frame that is too long to be read, if it stands there.
pub fn id_in_head(head: &[u8]) -> Option<WireId> {
    WireId::read(&protocol::head::id(head)?)
}

/// An answer that reports an error.
pub fn error_response(id: &WireId, error: RpcError) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        error: jsonrpsee::types::ErrorObjectOwned,
    }
    let id = serde_json::from_str(id.as_json()).unwrap_or(RawValue::NULL);
    let answer = Answer {
        jsonrpc: "2.0",
        id,
        error: error.into(),
    };
    serde_json::value::to_raw_value(&answer).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is there, be it null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn read_one(text: &[u8]) -> Message<'_> {
    match serde_json::from_slice::<Wire<'_>>(text) {
        Ok(wire) => sort(wire),
        Err(error) => match check_syntax(text) {
            Err(error) => Message::Invalid(WireId::null(), error),
            Ok(()) => Message::Invalid(
                id_of(text),
                invalid(format!("not a JSON-RPC request: {error}")),
            ),
        },
    }
}

fn check_syntax(text: &[u8]) -> Result<(), RpcError> {
    let text = std::str::from_utf8(text)
        .map_err(|error| RpcError::new(ErrorKind::Parse, format!("not JSON: {error}")))?;
    serde_json::from_str::<IgnoredAny>(text)
        .map(|_| ())
        .map_err(|error| not_json(&error))
}

fn sort(wire: Wire<'_>) -> Message<'_> {
    let id = match wire.id.map(WireId::read) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => {
            let why = "an id must be an integer, a string or null";
            return Message::Invalid(WireId::null(), invalid(why));
        }
    };
    let answerable = || id.clone().unwrap_or_else(WireId::null);
    let Some(method) = wire.method else {
        if wire.result.is_some() || wire.error.is_some() {
            return Message::Response;
        }
        let why = "not a JSON-RPC request: \"method\" is missing";
        return Message::Invalid(answerable(), invalid(why));
    };
    if wire.jsonrpc.as_deref() != Some("2.0") {
        let why = "not a JSON-RPC 2.0 request: \"jsonrpc\" must be \"2.0\"";
        return Message::Invalid(answerable(), invalid(why));
    }
    match wire.params.map(params) {
        None => {}
        Some(Ok(params)) => return Message::Call(Call { id, method, params }),
        Some(Err(error)) => return Message::Invalid(answerable(), error),
    }
    Message::Call(Call {
        id,
        method,
        params: None,
    })
}

fn params(raw: &RawValue) -> Result<Option<&RawValue>, RpcError> {
    let text = raw.get().trim().as_bytes();
    match text {
        [b'[' | b'{', inner @ .., _] if inner.iter().all(u8::is_ascii_whitespace) => Ok(None),
        [b'[' | b'{', ..] => Ok(Some(raw)),
        _ => Err(invalid("\"params\" must be an array or an object")),
    }
}

fn read_batch(frame: &[u8], limit: usize) -> Content<'_> {
    let mut deserializer = serde_json::Deserializer::from_slice(frame);
    let items = deserializer
        .deserialize_seq(Items { limit })
        .and_then(|items| deserializer.end().map(|()| items));
    let single = |error| Content::Single(Message::Invalid(WireId::null(), error));
    match items {
        Ok(items) if items.is_empty() => single(invalid("an empty batch")),
        Ok(items) => {
            let items = items.into_iter();
            Content::Batch(items.map(|item| read_one(item.get().as_bytes())).collect())
        }
        Err(error) if error.is_data() => single(invalid(format!(
            "a batch of more than {limit} calls: send several"
        ))),
        Err(error) => single(not_json(&error)),
    }
}

/// The id of what is JSON but no request.
fn id_of(text: &[u8]) -> WireId {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    serde_json::from_slice::<OnlyId<'_>>(text)
        .ok()
        .and_then(|only| WireId::read(only.id))
        .unwrap_or_else(WireId::null)
}

fn not_json(error: &serde_json::Error) -> RpcError {
    RpcError::new(ErrorKind::Parse, format!("not JSON: {error}"))
}

fn invalid(why: impl Into<String>) -> RpcError {
    RpcError::new(ErrorKind::InvalidRequest, why)
}

/// A batch's items, which are not looked into yet; stops at the limit, so that a frame of `[1,1,1,...]` stays cheap.
struct Items {
    limit: usize,
}

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() == self.limit {
                return Err(A::Error::custom("too many"));
            }
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(frame: &str, expected: &str) {
        let shown = match read(frame.as_bytes(), 3) {
            Content::Single(message) => show(&message),
            Content::Batch(messages) => {
                let shown: Vec<String> = messages.iter().map(show).collect();
                format!("[{}]", shown.join(" "))
            }
        };
        assert_eq!(shown, expected, "{frame}");
    }

    fn show(message: &Message<'_>) -> String {
        match message {
            Message::Response => "response".into(),
            Message::Invalid(id, error) => format!("{} {}", id.as_json(), error.kind.code()),
            Message::Call(call) => {
                let id = call.id.as_ref().map_or("-", WireId::as_json);
                let params = call.params.map_or("-", RawValue::get);
                format!("{id} {} {params}", call.method)
            }
        }
    }

    #[test]
    fn calls_are_read_in_all_their_forms() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a/b"}"#, "1 a/b -");
        check(
            r#"{"method":"a\u002fb","id":"x\"","extra":[],"jsonrpc":"2.0"}"#,
            r#""x\"" a/b -"#,
        );
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "null a -");
        check(r#"{"jsonrpc":"2.0","id":-3,"method":"a"}"#, "-3 a -");
        check(r#"{"jsonrpc":"2.0","method":"a"}"#, "- a -");
    }

    #[test]
    fn absent_null_and_empty_params_are_none() {
        for params in ["null", "[]", "{}", "[ ]", "{\t}"] {
            let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{params}}}"#);
            check(&frame, "1 a -");
        }
        let frame = r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#;
        check(frame, "1 a [1]");
    }

    #[test]
    fn what_is_no_request_is_told_apart() {
        check("{", "null -32700");
        check("nonsense", "null -32700");
        check("{\"a\":\"\u{1}\"}", "null -32700");
        check(r#"{"jsonrpc":"2.0","id":1,"method":1}"#, "1 -32600");
        check(r#"{"jsonrpc":"2.0","id":1,"method":1,]"#, "null -32700");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "1 -32600");
        check(r#"{"id":4,"method":"a"}"#, "4 -32600");
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "null -32600");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "null -32600");
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":"x"}"#,
            "1 -32600",
        );
        check("1", "null -32600");
        check(r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "response");
    }

    #[test]
    fn batches_are_read_item_by_item() {
        check("[]", "null -32600");
        check(" [1", "null -32700");
        check("[] x", "null -32700");
        check(
            r#"[1,{"jsonrpc":"2.0","id":2,"method":"a"}]"#,
            "[null -32600 2 a -]",
        );
        check("[1,1,1,1]", "null -32600");
    }

    #[test]
    fn an_id_is_found_in_the_head_of_what_is_too_long() {
        let find = |head: &str| id_in_head(head.as_bytes()).map(|id| id.0.into_string());
        assert_eq!(
            find(r#"{"jsonrpc":"2.0","id":7,"params":["#),
            Some("7".into())
        );
        assert_eq!(
            find(r#"{"params":{"a":[1]},"id":"x","par"#),
            Some("\"x\"".into())
        );
        assert_eq!(find(r#"{"jsonrpc":"2.0","id":71"#), None);
        assert_eq!(find(r#"{"params":{"id":7,"x":"#), None);
        assert_eq!(find(r#"{"id":{},"x":"#), None);
        assert_eq!(find("[[[["), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn ids_convert_where_jsonrpsee_has_them() {
        let plain = |text: &str| WireId(text.into()).plain();
        assert_eq!(plain("null"), Some(Id::Null));
        assert_eq!(plain("7"), Some(Id::Number(7)));
        assert_eq!(plain("\"\\u00fc\""), Some(Id::Str("ü".into())));
        assert_eq!(plain("-7"), None);
    }
}
