//! The formats before GGUF: `ggjt` version 3, and the checkpoints of llama2.c with their tokenizer.
//! Must never be larger than a test can write in passing.

use super::chain::{Chain, Kind};

/// What the `ggjt` model answers to anything.
pub const GGJT_TEXT: &str = "Hello out of a ggjt file.";
/// What the llama2 checkpoints answer to anything.
pub const LLAMA2_TEXT: &str = "hello world!";

const HEADS: usize = 8;
const INNER: usize = 32;
const CONTEXT: usize = 512;

/// The layouts of a llama2 checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Llama2 {
    /// Seven numbers and the weights; the classifier apart.
    V0,
    /// Magic `ak42`, floats.
    V1,
    /// Magic `ak42`, eight-bit groups.
    V2,
}

/// Unknown, begin and end come first, as in every vocabulary of that time.
fn chain(words: &[&str]) -> Chain {
    let mut chain = Chain::bytes(&["<unk>", "<s>", "</s>"]);
    chain.says_after_any_byte(words);
    let end = chain.id("</s>");
    chain.tokens.last_mut().expect("a word").next = end;
    chain
}

/// A `ggjt` file: one block of zeros, all floats.
pub fn ggjt() -> Vec<u8> {
    let chain = chain(&[" Hello", " out", " of", " a ggjt", " file."]);
    let (words, dim) = sizes(&chain);
    let mut file = 0x6767_6a74_u32.to_le_bytes().to_vec();
    let header = [3, words, dim, INNER, HEADS, 1, dim / HEADS, 0];
    numbers(&mut file, &header);
    for token in &chain.tokens {
        numbers(&mut file, &[token.bytes.len()]);
        file.extend(&token.bytes);
        file.extend(score(token.kind).to_le_bytes());
    }
    let mut tensor = |name: &str, dims: &[usize], values: &[f32]| {
        numbers(&mut file, &[dims.len(), name.len(), 0]);
        numbers(&mut file, dims);
        file.extend(name.as_bytes());
        file.resize(file.len().next_multiple_of(32), 0);
        floats(&mut file, values);
    };
    tensor(
        "tok_embeddings.weight",
        &[dim, words],
        &chain.embeddings(dim),
    );
    tensor("norm.weight", &[dim], &vec![1.0; dim]);
    tensor("output.weight", &[dim, words], &chain.transitions(dim));
    for part in ["attention_norm", "ffn_norm"] {
        tensor(&format!("layers.0.{part}.weight"), &[dim], &vec![1.0; dim]);
    }
    for part in ["wq", "wk", "wv", "wo"] {
        let name = format!("layers.0.attention.{part}.weight");
        tensor(&name, &[dim, dim], &vec![0.0; dim * dim]);
    }
    for (part, from, to) in [("w1", dim, INNER), ("w2", INNER, dim), ("w3", dim, INNER)] {
        let name = format!("layers.0.feed_forward.{part}.weight");
        tensor(&name, &[from, to], &vec![0.0; from * to]);
    }
    file
}

/// A llama2 checkpoint: one block of zeros, the classifier apart from the embeddings.
pub fn llama2(layout: Llama2) -> Vec<u8> {
    let chain = llama2_chain();
    let (words, dim) = sizes(&chain);
    let ones = vec![1.0; dim];
    let (square, inner) = (vec![0.0; dim * dim], vec![0.0; dim * INNER]);
    let blocks = [&square, &square, &square, &square, &inner, &inner, &inner];
    let (embeddings, classifier) = (chain.embeddings(dim), chain.transitions(dim));
    let mut header = vec![dim, INNER, 1, HEADS, HEADS, words, CONTEXT];
    let mut file = Vec::new();
    if layout == Llama2::V0 {
        header[5] = words.wrapping_neg();
        numbers(&mut file, &header);
        floats(&mut file, &embeddings);
        floats(&mut file, &ones);
        blocks[..4]
            .iter()
            .for_each(|block| floats(&mut file, block));
        floats(&mut file, &ones);
        blocks[4..]
            .iter()
            .for_each(|block| floats(&mut file, block));
        floats(&mut file, &ones);
        // Tables of angles, which older readers use.
        floats(&mut file, &vec![0.0; CONTEXT * dim / HEADS]);
        floats(&mut file, &classifier);
        return file;
    }
    let version = if layout == Llama2::V1 { 1 } else { 2 };
    numbers(&mut file, &[0x616b_3432, version]);
    numbers(&mut file, &header);
    file.push(0);
    if layout == Llama2::V2 {
        numbers(&mut file, &[32]);
    }
    file.resize(256, 0);
    (0..3).for_each(|_| floats(&mut file, &ones));
    let weights = [&embeddings].into_iter().chain(blocks).chain([&classifier]);
    for weight in weights {
        match layout {
            Llama2::V2 => groups(&mut file, weight),
            Llama2::V0 | Llama2::V1 => floats(&mut file, weight),
        }
    }
    file
}

/// The tokenizer of the llama2 checkpoints.
pub fn llama2_tokenizer() -> Vec<u8> {
    let chain = llama2_chain();
    let mut file = Vec::new();
    numbers(&mut file, &[16]);
    for (id, token) in chain.tokens.iter().enumerate() {
        // Bytes are written out, all else is text.
        let bytes = match token.kind {
            Kind::Byte => format!("<0x{:02X}>", id - 3).into_bytes(),
            Kind::Control | Kind::Word | Kind::Tag => token.bytes.clone(),
        };
        file.extend(score(token.kind).to_le_bytes());
        numbers(&mut file, &[bytes.len()]);
        file.extend(bytes);
    }
    file
}

fn llama2_chain() -> Chain {
    chain(&[" hello", " world!"])
}

fn sizes(chain: &Chain) -> (usize, usize) {
    let words = chain.tokens.len();
    (words, words.next_multiple_of(HEADS * 8))
}

fn score(kind: Kind) -> f32 {
    match kind {
        Kind::Word | Kind::Tag => -1.0,
        Kind::Control | Kind::Byte => 0.0,
    }
}

fn numbers(out: &mut Vec<u8>, values: &[usize]) {
    for value in values {
        out.extend((*value as u32).to_le_bytes());
    }
}

fn floats(out: &mut Vec<u8>, values: &[f32]) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

/// Values as bytes, then a scale for each 32 of them.
fn groups(out: &mut Vec<u8>, values: &[f32]) {
    let scale = |group: &[f32]| {
        group
            .iter()
            .fold(0.0_f32, |most, value| most.max(value.abs()))
            / 127.0
    };
    for group in values.chunks(32) {
        let scale = scale(group);
        let whole = |value: &f32| {
            if scale == 0.0 {
                0
            } else {
                (value / scale).round() as i8
            }
        };
        out.extend(group.iter().map(whole).map(|value| value as u8));
    }
    floats(out, &values.chunks(32).map(scale).collect::<Vec<_>>());
}
