//! Which tools fit a question: BM25 over the words of names and descriptions, the same for the same tools in any order.
//! Pure. Must never read a schema, and never give a tool that it was not made of.

use super::words::{alike, says_something, stem, words};
use std::collections::HashMap;

/// How soon further mentions of a word count less, and how far a long text counts less than a short one.
const K1: f32 = 1.2;
const B: f32 = 0.5;
/// What a word in a name, in the name of where the tool comes from, and in a description counts.
const NAME: f32 = 3.0;
const SOURCE: f32 = 2.0;
const DESCRIPTION: f32 = 1.0;
/// What another word that may stand for the one asked for counts, and one that begins with it.
const ALIKE: f32 = 0.7;
const PREFIX: f32 = 0.6;
/// The shortest word that counts as the beginning of others.
const PREFIX_LEN: usize = 3;

/// Tools by their words.
#[derive(Default)]
pub struct Index {
    /// Sorted; the numbers in `postings` are places in it.
    names: Vec<String>,
    /// Where each stood among those that the index was made of.
    places: Vec<usize>,
    /// Words of names without where they come from, to be met exactly.
    parts: Vec<Vec<String>>,
    /// Sorted by word, so that beginnings are found too.
    vocabulary: Vec<(String, Vec<(u32, f32)>)>,
}

impl Index {
    /// Of names and descriptions.
    pub fn new<'a>(tools: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut tools: Vec<(&str, &str, usize)> = tools
            .enumerate()
            .map(|(at, (name, text))| (name, text, at))
            .collect();
        tools.sort_unstable();
        let documents = tools
            .iter()
            .map(|(name, text, _)| Document::new(name, text));
        let documents: Vec<Document> = documents.collect();
        // Whole numbers, so that their sum is the same in any order.
        let total: usize = documents.iter().map(|document| document.length).sum();
        let average = (total as f32 / documents.len().max(1) as f32).max(1.0);
        let mut postings: HashMap<String, Vec<(u32, f32)>> = HashMap::new();
        for (at, document) in documents.iter().enumerate() {
            let norm = 1.0 - B + B * document.length as f32 / average;
            for (word, weight) in &document.weights {
                let entry = (at as u32, weight / norm);
                match postings.get_mut(word) {
                    Some(known) => known.push(entry),
                    None => drop(postings.insert(word.clone(), vec![entry])),
                }
            }
        }
        let mut vocabulary: Vec<_> = postings.into_iter().collect();
        vocabulary.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self {
            names: tools.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            places: tools.iter().map(|(.., at)| *at).collect(),
            parts: tools.iter().map(|(name, ..)| part(name)).collect(),
            vocabulary,
        }
    }

    /// All names in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Where the one of that number in `names` stood among those that the index was made of.
    pub fn place(&self, at: usize) -> usize {
        self.places[at]
    }

    /// Numbers in `names` of those that fit, the best first: exact ones, then by weight, then by name.
    pub fn find(&self, question: &str) -> Vec<usize> {
        let scores = self.scores(question);
        let asked = question.trim();
        let asked_words: Vec<String> = stems(question);
        let rank = |at: usize| {
            let name = self.names[at].as_str();
            match name {
                _ if name == asked => 3,
                _ if name.eq_ignore_ascii_case(asked) => 2,
                _ if !asked_words.is_empty() && self.parts[at] == asked_words => 1,
                _ => 0,
            }
        };
        let mut found: Vec<(u8, f32, usize)> = Vec::new();
        for (at, score) in scores.iter().enumerate() {
            let rank = rank(at);
            if rank > 0 || *score > 0.0 {
                found.push((rank, *score, at));
            }
        }
        found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        found.into_iter().map(|(_, _, at)| at).collect()
    }

    fn scores(&self, question: &str) -> Vec<f32> {
        let mut scores = vec![0.0; self.names.len()];
        let mut best = vec![0.0_f32; self.names.len()];
        let mut touched: Vec<u32> = Vec::new();
        for word in asked(question) {
            for (postings, weight) in self.standing_for(&word) {
                for (at, frequency) in postings {
                    let best = &mut best[*at as usize];
                    if *best == 0.0 {
                        touched.push(*at);
                    }
                    *best = best.max(weight * frequency * (K1 + 1.0) / (frequency + K1));
                }
            }
            // A word and those that stand for it are one word: as rare as all of them together.
            let (all, with) = (self.names.len() as f32, touched.len() as f32);
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for at in touched.drain(..) {
                scores[at as usize] += rarity * std::mem::take(&mut best[at as usize]);
            }
        }
        scores
    }

    /// The postings of a word as asked, of those that may stand for it, and of those that it begins.
    fn standing_for(&self, word: &str) -> Vec<(&[(u32, f32)], f32)> {
        let own = stem(word);
        let mut found = Vec::from_iter(self.postings(own).map(|postings| (postings, 1.0)));
        for other in alike(word) {
            found.extend(self.postings(other).map(|postings| (postings, ALIKE)));
        }
        if own.len() >= PREFIX_LEN {
            let from = self
                .vocabulary
                .partition_point(|(known, _)| known.as_str() <= own);
            let longer = self.vocabulary[from..].iter();
            let longer = longer.take_while(|(known, _)| known.starts_with(own));
            found.extend(longer.map(|(_, postings)| (postings.as_slice(), PREFIX)));
        }
        found
    }

    fn postings(&self, word: &str) -> Option<&[(u32, f32)]> {
        let at = self
            .vocabulary
            .binary_search_by(|(known, _)| known.as_str().cmp(word));
        at.ok().map(|at| self.vocabulary[at].1.as_slice())
    }
}

/// The words of a question that say something, or all of them where none does.
fn asked(question: &str) -> Vec<String> {
    let all: Vec<String> = words(question).collect();
    let mut telling: Vec<String> = all
        .iter()
        .filter(|word| says_something(word))
        .cloned()
        .collect();
    if telling.is_empty() {
        telling = all;
    }
    let mut seen = Vec::new();
    telling.retain(|word| {
        let new = !seen.contains(word);
        seen.push(word.clone());
        new
    });
    telling
}

fn stems(text: &str) -> Vec<String> {
    words(text).map(|word| stem(&word).to_owned()).collect()
}

/// The words of a name behind its source: `github__create_issue` is asked for by "create issue" too.
fn part(name: &str) -> Vec<String> {
    stems(name.split_once("__").map_or(name, |(_, part)| part))
}

/// One tool's words and what each counts in it.
struct Document {
    weights: HashMap<String, f32>,
    length: usize,
}

impl Document {
    fn new(name: &str, description: &str) -> Self {
        let (source, part) = name.split_once("__").unwrap_or(("", name));
        let mut document = Self {
            weights: HashMap::new(),
            length: 0,
        };
        document.add(source, SOURCE);
        document.add(part, NAME);
        document.add(description, DESCRIPTION);
        document
    }

    fn add(&mut self, text: &str, weight: f32) {
        for word in words(text) {
            self.length += 1;
            let stem = stem(&word);
            match self.weights.get_mut(stem) {
                Some(known) => *known += weight,
                None => drop(self.weights.insert(stem.to_owned(), weight)),
            }
        }
    }
}
