//! Halves of surrogate pairs in JSON's escapes (`"\ud83c"`), which languages with 16-bit characters write when they cut
//! a text in the middle of one. The grammar allows them and no string of ours can hold them. Does no IO.

use std::borrow::Cow;

/// U+FFFD as an escape: as long as what it stands for.
const INSTEAD: &[u8] = b"\\ufffd";

/// The same JSON with U+FFFD for each half that stands alone. What is no JSON comes back as no JSON.
pub fn mend(json: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(json);
    let mut at = 0;
    while let Some(found) = json[at..].iter().position(|byte| *byte == b'\\') {
        let start = at + found;
        at = match half(json, start) {
            // Any other escape: what is escaped is never the beginning of another.
            None => start + 2,
            Some(Half::High) if half(json, start + 6) == Some(Half::Low) => start + 12,
            Some(_) => {
                mended.to_mut()[start..start + 6].copy_from_slice(INSTEAD);
                start + 6
            }
        };
        at = at.min(json.len());
    }
    mended
}

#[derive(Clone, Copy, PartialEq)]
enum Half {
    High,
    Low,
}

/// The half that the escape at this place stands for, if it does.
fn half(json: &[u8], at: usize) -> Option<Half> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Half::High),
        0xDC00..=0xDFFF => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::mend;
    use std::borrow::Cow;

    fn mended(json: &str) -> String {
        String::from_utf8(mend(json.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn halves_that_stand_alone_are_replaced_and_pairs_stay() {
        for (json, expected) in [
            (r#""a \ud83c...""#, r#""a \ufffd...""#),
            (r#""\uDC00""#, r#""\ufffd""#),
            (r#""\ud83c\ud83c\udf89""#, r#""\ufffd\ud83c\udf89""#),
            (r#""\udf89\ud83c""#, r#""\ufffd\ufffd""#),
            (r#""\ud83c\udf89""#, r#""\ud83c\udf89""#),
            // A backslash, and the letters after it.
            (r#""\\ud83c""#, r#""\\ud83c""#),
            (r#""\\\ud83c""#, r#""\\\ufffd""#),
            (r#""\ud83c\n\udf89""#, r#""\ufffd\n\ufffd""#),
            ("\"\\ud8", "\"\\ud8"),
            ("\\", "\\"),
            ("", ""),
        ] {
            assert_eq!(mended(json), expected, "{json}");
        }
        assert!(matches!(mend(b"{\"a\": \"\\n\"}"), Cow::Borrowed(_)));
    }
}
