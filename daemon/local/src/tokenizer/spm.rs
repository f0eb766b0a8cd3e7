//! Pieces with scores, as SentencePiece has them: of all neighbours that make a token the best is joined, again and again.
//! Must never see control tokens.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

pub(super) struct Spm {
    ids: HashMap<Vec<u8>, u32>,
    scores: Vec<f32>,
    /// The token of each single byte, for what has no other.
    bytes: HashMap<u8, u32>,
    /// A space goes before the text.
    prefix: bool,
}

/// Two neighbours that would make a token.
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// Of both when this was found: they may have been joined with others since.
    length: usize,
}

/// A part of the text, linked to its neighbours.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    before: Option<usize>,
    after: Option<usize>,
}

impl Spm {
    /// Bytes, score, and whether it stands for a single byte only.
    pub(super) fn new(all: Vec<(Vec<u8>, f32, bool)>, prefix: bool) -> Self {
        let mut this = Self {
            ids: HashMap::new(),
            scores: all.iter().map(|(_, score, _)| *score).collect(),
            bytes: HashMap::new(),
            prefix,
        };
        for ((bytes, _, fallback), id) in all.into_iter().zip(0..) {
            match (fallback, bytes.as_slice()) {
                (true, [byte]) => drop(this.bytes.insert(*byte, id)),
                (_, []) => {}
                _ => drop(this.ids.entry(bytes).or_insert(id)),
            }
        }
        this
    }

    pub(super) fn encode(&self, text: &str, first: bool, ids: &mut Vec<u32>) {
        let text = match self.prefix && first {
            true => format!(" {text}"),
            false => text.to_owned(),
        };
        let text = text.as_bytes();
        let mut parts = parts(text);
        let mut pairs = BinaryHeap::new();
        for right in 1..parts.len() {
            self.consider(text, &parts, right - 1, right, &mut pairs);
        }
        while let Some(pair) = pairs.pop() {
            let (left, right) = (parts[pair.left], parts[pair.right]);
            let stale = left.end != right.start || right.end - left.start != pair.length;
            if stale || left.start == left.end {
                continue;
            }
            parts[pair.left].end = right.end;
            parts[pair.left].after = right.after;
            parts[pair.right].start = right.end;
            if let Some(after) = right.after {
                parts[after].before = Some(pair.left);
                self.consider(text, &parts, pair.left, after, &mut pairs);
            }
            if let Some(before) = left.before {
                self.consider(text, &parts, before, pair.left, &mut pairs);
            }
        }
        let mut at = (!parts.is_empty()).then_some(0);
        while let Some(index) = at {
            let part = &text[parts[index].start..parts[index].end];
            match self.ids.get(part) {
                Some(id) => ids.push(*id),
                None => ids.extend(
                    part.iter()
                        .map(|byte| self.bytes.get(byte).copied().unwrap_or(0)),
                ),
            }
            at = parts[index].after;
        }
    }

    fn consider(
        &self,
        text: &[u8],
        parts: &[Part],
        left: usize,
        right: usize,
        pairs: &mut BinaryHeap<Pair>,
    ) {
        let (start, end) = (parts[left].start, parts[right].end);
        if let Some(id) = self.ids.get(&text[start..end]) {
            pairs.push(Pair {
                score: self.scores[*id as usize],
                left,
                right,
                length: end - start,
            });
        }
    }
}

/// One part for each letter.
fn parts(text: &[u8]) -> Vec<Part> {
    let begins = |byte: u8| byte & 0xc0 != 0x80;
    let starts: Vec<usize> = (0..text.len()).filter(|at| begins(text[*at])).collect();
    let count = starts.len();
    let part = |(index, start): (usize, &usize)| Part {
        start: *start,
        end: starts.get(index + 1).copied().unwrap_or(text.len()),
        before: index.checked_sub(1),
        after: (index + 1 < count).then_some(index + 1),
    };
    starts.iter().enumerate().map(part).collect()
}

/// The byte that `<0x0A>` stands for.
pub(super) fn byte(text: &[u8]) -> Option<u8> {
    let hex = text.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

/// The next entry of a `tokenizer.bin`.
pub(super) fn token<'a>(rest: &mut &'a [u8]) -> Option<(f32, &'a [u8])> {
    let (score, more) = rest.split_first_chunk::<4>()?;
    let (length, more) = more.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (bytes, more) = more.split_at_checked(length)?;
    *rest = more;
    Some((f32::from_le_bytes(*score), bytes))
}

impl Ord for Pair {
    /// The better score; of two alike the one further left.
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[u32]) {
        let words = ["", "", "", "a", "b", "c", "ab", "bc", "abc", " "];
        let scores = [0.0, 0.0, 0.0, -9.0, -9.0, -9.0, -2.0, -1.0, -3.0, -9.0];
        let all = words
            .iter()
            .zip(scores)
            .map(|(word, score)| (word.as_bytes().to_vec(), score, false));
        let byte = (vec![0xe9], 0.0, true);
        let spm = Spm::new(all.chain([byte]).collect(), false);
        let mut ids = Vec::new();
        spm.encode(text, true, &mut ids);
        assert_eq!(ids, expected, "{text:?}");
    }

    #[test]
    fn the_best_neighbours_are_joined_first() {
        check("abc", &[8]);
        check("ab", &[6]);
        check("abbc", &[6, 7]);
        check("cab", &[5, 6]);
        check("", &[]);
        check("\u{96e8}", &[10, 0, 0]);
        check("ca\u{20ac}", &[5, 3, 0, 0, 0]);
    }

    #[test]
    fn a_written_byte_is_read() {
        assert_eq!(byte(b"<0x0A>"), Some(10));
        assert_eq!(byte(b"<0x0A"), None);
        assert_eq!(byte(b"a"), None);
    }
}
