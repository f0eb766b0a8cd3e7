//! From text to tokens and back, for the vocabularies that model files carry. Must never know what is said.

mod bpe;
mod spm;

use crate::model::gguf::Gguf;
use crate::model::legacy::Vocabulary;
use bpe::Bpe;
use spm::Spm;
use std::collections::HashMap;
use std::path::Path;

/// A vocabulary and its way of splitting.
pub struct Tokenizer {
    /// What each token says; nothing for control tokens.
    pieces: Vec<Vec<u8>>,
    /// Tokens that text is split at first, by their first byte, the longest first.
    whole: HashMap<u8, Vec<(String, u32)>>,
    control: Vec<String>,
    split: Split,
    pub begin: Option<u32>,
    adds_begin: bool,
    /// Tokens that end an answer.
    ends: Vec<u32>,
}

enum Split {
    Bpe(Box<Bpe>),
    Spm(Spm),
}

/// Kinds of tokens in a file.
const CONTROL: i64 = 3;
const USER: i64 = 4;
const BYTE: i64 = 6;

/// Tokens that end an answer in some family or other, wherever a vocabulary has them.
const ENDS: &[&str] = &[
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "</s>",
];

impl Tokenizer {
    /// The one that a GGUF file holds.
    pub fn of_gguf(file: &Gguf) -> Result<Self, String> {
        let texts = strings(file, "tokenizer.ggml.tokens")
            .ok_or("it has no vocabulary (tokenizer.ggml.tokens)")?;
        let kinds = file.list("tokenizer.ggml.token_type").unwrap_or_default();
        let kind = |id: usize| {
            let kind = kinds.get(id).and_then(|kind| {
                kind.to_i64()
                    .or_else(|_| kind.to_i32().map(i64::from))
                    .or_else(|_| kind.to_u32().map(i64::from))
                    .ok()
            });
            kind.unwrap_or(1)
        };
        let kinds: Vec<i64> = (0..texts.len()).map(kind).collect();
        let (split, pieces) = match file.text("tokenizer.ggml.model") {
            Some("gpt2") => {
                let pieces = texts.iter().zip(&kinds).map(|(text, kind)| match *kind {
                    CONTROL => Vec::new(),
                    USER => text.clone().into_bytes(),
                    _ => bpe::bytes(text),
                });
                let pieces = pieces.collect();
                let merges = strings(file, "tokenizer.ggml.merges").unwrap_or_default();
                let pre = file.text("tokenizer.ggml.pre").unwrap_or("default");
                (
                    Split::Bpe(Box::new(Bpe::new(texts.clone(), &merges, pre)?)),
                    pieces,
                )
            }
            Some("llama") => {
                let scores = file.list("tokenizer.ggml.scores").unwrap_or_default();
                let score = |id: usize| scores.get(id).and_then(|score| score.to_f32().ok());
                let plain = |(id, text): (usize, &String)| {
                    let bytes = match kinds[id] {
                        BYTE => spm::byte(text.as_bytes()).map_or_else(Vec::new, |byte| vec![byte]),
                        _ => text.replace('\u{2581}', " ").into_bytes(),
                    };
                    (bytes, score(id).unwrap_or(0.0), kinds[id] == BYTE)
                };
                let all: Vec<_> = texts.iter().enumerate().map(plain).collect();
                let hidden = |(id, (bytes, ..)): (usize, &(Vec<u8>, f32, bool))| match kinds[id] {
                    CONTROL | 2 => Vec::new(),
                    _ => bytes.clone(),
                };
                let pieces = all.iter().enumerate().map(hidden).collect();
                let prefix = file.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true);
                (Split::Spm(Spm::new(all, prefix)), pieces)
            }
            other => {
                return Err(format!(
                    "its tokenizer is {}; those that run here are gpt2 and llama",
                    other.unwrap_or("none")
                ));
            }
        };
        let spm = matches!(split, Split::Spm(_));
        let id = |name: &str| {
            file.number(&format!("tokenizer.ggml.{name}_token_id"))
                .and_then(|id| u32::try_from(id).ok())
        };
        let mut this = Self::new(pieces, split);
        for ((text, kind), number) in texts.iter().zip(&kinds).zip(0..) {
            if matches!(*kind, CONTROL | USER) && !text.is_empty() {
                this.keep_whole(text, number, *kind == CONTROL);
            }
            if ENDS.contains(&text.as_str()) {
                this.ends.push(number);
            }
        }
        this.sort();
        this.ends.extend(id("eos").into_iter().chain(id("eot")));
        this.begin = id("bos").filter(|id| (*id as usize) < texts.len());
        this.adds_begin = file.flag("tokenizer.ggml.add_bos_token").unwrap_or(spm);
        Ok(this)
    }

    /// The one of a file before GGUF: unknown, begin and end are its first three.
    pub fn of_legacy(vocabulary: Vocabulary) -> Self {
        let all = vocabulary
            .into_iter()
            .enumerate()
            .map(|(id, (bytes, score))| {
                // Control tokens have no text there, and single bytes follow them.
                let fallback = (3..259).contains(&id);
                (bytes, score, fallback)
            });
        Self::of_scores(all.collect())
    }

    /// `tokenizer.bin` of llama2.c, for a model of `words` tokens.
    pub fn of_llama2(path: &Path, words: usize) -> Result<Self, String> {
        let file = std::fs::read(path).map_err(|error| error.to_string())?;
        let mut rest = file.get(4..).unwrap_or_default();
        let mut all = Vec::new();
        for id in 0..words {
            let token = spm::token(&mut rest);
            let (score, bytes) = token
                .ok_or_else(|| format!("it ends after {id} tokens, and the model has {words}"))?;
            let byte = spm::byte(bytes);
            all.push((
                byte.map_or_else(|| bytes.to_vec(), |byte| vec![byte]),
                score,
                byte.is_some(),
            ));
        }
        Ok(Self::of_scores(all))
    }

    fn of_scores(all: Vec<(Vec<u8>, f32, bool)>) -> Self {
        let hidden = |(id, (bytes, ..)): (usize, &(Vec<u8>, f32, bool))| match id {
            0..3 => Vec::new(),
            _ => bytes.clone(),
        };
        let pieces = all.iter().enumerate().map(hidden).collect();
        let mut this = Self::new(pieces, Split::Spm(Spm::new(all, true)));
        this.begin = Some(1);
        this.adds_begin = true;
        // llama2.c's models begin the next story after either.
        this.ends = vec![1, 2];
        this
    }

    fn new(pieces: Vec<Vec<u8>>, split: Split) -> Self {
        Self {
            pieces,
            split,
            whole: HashMap::new(),
            control: Vec::new(),
            begin: None,
            adds_begin: false,
            ends: Vec::new(),
        }
    }

    fn keep_whole(&mut self, text: &str, id: u32, control: bool) {
        let first = text.as_bytes()[0];
        self.whole
            .entry(first)
            .or_default()
            .push((text.to_owned(), id));
        if control {
            self.control.push(text.to_owned());
        }
    }

    fn sort(&mut self) {
        for list in self.whole.values_mut() {
            list.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        }
    }

    /// The tokens of a whole prompt.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        let mut ids = Vec::new();
        let mut from = 0;
        let mut at = 0;
        while at < text.len() {
            let Some((special, id)) = self.whole_at(text, at) else {
                at += 1;
                continue;
            };
            self.plain(&text[from..at], from == 0, &mut ids)?;
            ids.push(id);
            at += special.len();
            from = at;
        }
        self.plain(&text[from..], from == 0, &mut ids)?;
        match self.begin.filter(|_| self.adds_begin) {
            Some(begin) if ids.first() != Some(&begin) => ids.insert(0, begin),
            _ => {}
        }
        Ok(ids)
    }

    fn whole_at(&self, text: &str, at: usize) -> Option<(&str, u32)> {
        let list = self.whole.get(&text.as_bytes()[at])?;
        let rest = text.get(at..)?;
        let found = list
            .iter()
            .find(|(special, _)| rest.starts_with(special.as_str()));
        found.map(|(special, id)| (special.as_str(), *id))
    }

    fn plain(&self, text: &str, first: bool, ids: &mut Vec<u32>) -> Result<(), String> {
        match &self.split {
            _ if text.is_empty() => Ok(()),
            Split::Bpe(bpe) => bpe.encode(text, ids),
            Split::Spm(spm) => {
                spm.encode(text, first, ids);
                Ok(())
            }
        }
    }

    /// Text that somebody wrote, in which no control token is one any more.
    pub fn harmless(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for token in self
            .control
            .iter()
            .filter(|token| token.chars().count() > 1)
        {
            if text.contains(token.as_str()) {
                let first = token.chars().next().map_or(0, char::len_utf8);
                let broken = format!("{}\u{200b}{}", &token[..first], &token[first..]);
                text = text.replace(token.as_str(), &broken);
            }
        }
        text
    }

    pub fn piece(&self, id: u32) -> &[u8] {
        self.pieces.get(id as usize).map_or(&[], Vec::as_slice)
    }

    pub fn ends(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }

    /// A token's own name, for templates.
    pub fn name(&self, id: Option<u32>) -> &str {
        let all = self.whole.values().flatten();
        let found = all
            .filter(|(_, other)| Some(*other) == id)
            .map(|(text, _)| text.as_str());
        found.into_iter().next().unwrap_or("")
    }

    pub fn has(&self, text: &str) -> bool {
        self.whole
            .values()
            .flatten()
            .any(|(other, _)| other == text)
    }

    pub fn end(&self) -> Option<u32> {
        self.ends.last().copied()
    }
}

fn strings(file: &Gguf, name: &str) -> Option<Vec<String>> {
    let list = file.list(name)?.iter();
    list.map(|value| value.to_string().ok().cloned()).collect()
}
