//! Ids and names that a vendor's rules take, made of such as it would refuse: a refusal would end a session for good.
//! Must never give two calls of one conversation the same id.

use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;

/// The longest name of a function that vendors take.
const NAME: usize = 64;

/// What ids of calls must be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdRule {
    /// At most so long, of any characters.
    Any(usize),
    /// Letters, digits, `_` and `-`, at most so long.
    Plain(usize),
    /// Exactly so many letters and digits.
    Exact(usize),
}

impl IdRule {
    fn takes(self, id: &str) -> bool {
        let plain = |id: &str, more: &[char]| {
            id.chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
        };
        match self {
            Self::Any(most) => !id.is_empty() && id.chars().count() <= most,
            Self::Plain(most) => !id.is_empty() && id.len() <= most && plain(id, &['_', '-']),
            Self::Exact(length) => id.len() == length && plain(id, &[]),
        }
    }

    fn length(self) -> usize {
        match self {
            Self::Any(most) | Self::Plain(most) => most.min(24),
            Self::Exact(length) => length,
        }
    }
}

/// The ids of one conversation as a vendor gets them: the same for a call and its result.
pub(super) struct Ids<'a> {
    rule: IdRule,
    /// Those that did not fit, by what they were.
    made: HashMap<&'a str, String>,
}

impl<'a> Ids<'a> {
    pub(super) fn new(rule: IdRule) -> Self {
        Self {
            rule,
            made: HashMap::new(),
        }
    }

    pub(super) fn of(&mut self, id: &'a str) -> Cow<'a, str> {
        if self.rule.takes(id) {
            return id.into();
        }
        let length = self.rule.length();
        let made = self.made.entry(id).or_insert_with(|| digest(id, length));
        made.clone().into()
    }
}

/// The same text for the same id, in every request: a vendor's cache goes by the bytes.
fn digest(id: &str, length: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let hash = |seed: u64| {
        id.bytes().fold(seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    };
    let mut state = hash(0xcbf2_9ce4_8422_2325);
    let step = hash(0x9e37_79b9_7f4a_7c15) | 1;
    let digits = std::iter::repeat_with(|| {
        state = state.wrapping_add(step);
        let mixed = (state ^ (state >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        DIGITS[((mixed >> 33) % 62) as usize] as char
    });
    digits.take(length).collect()
}

/// A model may have called a tool by a name that no tool can have.
pub(super) fn name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= NAME && name.chars().all(fits) {
        return name.into();
    }
    let fitting = name.chars().map(|c| if fits(c) { c } else { '_' });
    let fitting: String = fitting.take(NAME).collect();
    match fitting.is_empty() {
        true => "unnamed".into(),
        false => fitting.into(),
    }
}

/// The schema of a tool's arguments, which vendors want to be an object's.
pub(super) fn schema(parameters: &Value) -> Cow<'_, Value> {
    match parameters["type"] == "object" {
        true => Cow::Borrowed(parameters),
        false => Cow::Owned(json!({"type": "object", "properties": {}})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_that_the_vendor_refuses_are_made_to_fit() {
        assert_eq!(name("functions.read file"), "functions_read_file");
        assert_eq!(name(""), "unnamed");
        assert_eq!(name(&"x".repeat(99)).len(), NAME);
        assert_eq!(name("read"), "read");
    }

    #[test]
    fn ids_that_fit_are_kept_and_others_are_made_once() {
        let (long, odd) = ("y".repeat(60), "a b/c");
        for rule in [IdRule::Any(40), IdRule::Plain(64), IdRule::Exact(9)] {
            let mut ids = Ids::new(rule);
            for id in [long.as_str(), odd, "", "call_1", "abcdefghi"] {
                let fitted = ids.of(id).into_owned();
                assert!(rule.takes(&fitted), "{id} -> {fitted} for {rule:?}");
                assert_eq!(ids.of(id), fitted);
                assert_eq!(fitted == id, rule.takes(id));
            }
        }
    }

    #[test]
    fn ids_that_were_different_stay_so() {
        let all: Vec<String> = (0..5_000).map(|n| format!("call {n}")).collect();
        let mut ids = Ids::new(IdRule::Exact(9));
        let made: HashSet<_> = all.iter().map(|id| ids.of(id).into_owned()).collect();
        assert_eq!(made.len(), all.len());
    }
}
