//! The beginning of a message that is too long to be read: whose answer the refusal is. Does no IO.

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The member `id` in the first bytes of a message, as it is written there, if it stands there.
pub fn id(head: &[u8]) -> Option<Box<RawValue>> {
    // Up to the last comma, so that no number is cut in its middle.
    let end = head.iter().rposition(|byte| *byte == b',')?;
    let mut found = None;
    // The text is cut off, so this always fails; what counts is what was seen before.
    let _ = serde_json::Deserializer::from_slice(&head[..end]).deserialize_map(IdIn(&mut found));
    found
}

/// Looks for the member `id` and keeps it even when the rest cannot be read.
struct IdIn<'a>(&'a mut Option<Box<RawValue>>);

impl<'de> Visitor<'de> for IdIn<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == "id" {
                *self.0 = Some(map.next_value()?);
                return Ok(());
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_id_is_found_where_it_stands_whole() {
        let find = |head: &str| super::id(head.as_bytes()).map(|id| id.get().to_owned());
        assert_eq!(
            find(r#"{"id":"a","params":{"x":"yyy"#),
            Some(r#""a""#.into())
        );
        assert_eq!(find(r#"{"jsonrpc":"2.0","id":7,"met"#), Some("7".into()));
        assert_eq!(find(r#"{"params":{"id":1,"x":"yyy"#), None);
        assert_eq!(find(r#"{"id":123"#), None);
    }
}
