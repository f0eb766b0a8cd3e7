//! The GGUF container, version 3: metadata, tensor table, aligned data. Must never know what the tokens mean.

use super::Weight;
use super::chain::{Chain, Kind};

const ALIGNMENT: usize = 32;
const HEAD: usize = 64;

/// What the only merge makes, of its two letters.
pub(super) const MERGED: &str = "ti";

/// The file's bytes.
pub(super) fn gguf(chain: &Chain, template: &str, weight: Weight) -> Vec<u8> {
    let dim = chain.tokens.len().next_multiple_of(HEAD);
    let (blocks, inner) = match weight {
        Weight::Light => (1, 32),
        Weight::Heavy => (8, 2048),
    };
    let meta = metadata(chain, template, dim, blocks, inner);
    let tensors = tensors(chain, dim, blocks, inner);
    let mut file = b"GGUF".to_vec();
    file.extend(3_u32.to_le_bytes());
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((meta.len() as u64).to_le_bytes());
    meta.iter().for_each(|entry| file.extend(entry));
    let mut offset = 0;
    for tensor in &tensors {
        string(&mut file, tensor.name.as_bytes());
        file.extend((tensor.dims.len() as u32).to_le_bytes());
        for size in &tensor.dims {
            file.extend((*size as u64).to_le_bytes());
        }
        file.extend(tensor.kind.to_le_bytes());
        file.extend((offset as u64).to_le_bytes());
        offset += tensor.data.len().next_multiple_of(ALIGNMENT);
    }
    for tensor in tensors {
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file.extend(tensor.data);
    }
    file
}

struct Tensor {
    name: String,
    /// The fastest dimension first, as the file has it.
    dims: Vec<usize>,
    kind: u32,
    data: Vec<u8>,
}

fn tensors(chain: &Chain, dim: usize, blocks: usize, inner: usize) -> Vec<Tensor> {
    let words = chain.tokens.len();
    let mut all = vec![
        floats("token_embd.weight", &[dim, words], &chain.embeddings(dim)),
        floats("output_norm.weight", &[dim], &vec![1.0; dim]),
        floats("output.weight", &[dim, words], &chain.transitions(dim)),
    ];
    for block in 0..blocks {
        let name = |part: &str| format!("blk.{block}.{part}.weight");
        for part in ["attn_norm", "ffn_norm"] {
            all.push(floats(&name(part), &[dim], &vec![1.0; dim]));
        }
        for (part, from, to) in [
            ("attn_q", dim, dim),
            ("attn_k", dim, HEAD),
            ("attn_v", dim, HEAD),
            ("attn_output", dim, dim),
            ("ffn_gate", dim, inner),
            ("ffn_up", dim, inner),
            ("ffn_down", inner, dim),
        ] {
            all.push(zeros(&name(part), &[from, to]));
        }
    }
    all
}

fn floats(name: &str, dims: &[usize], values: &[f32]) -> Tensor {
    Tensor {
        name: name.to_owned(),
        dims: dims.to_vec(),
        kind: 0,
        data: values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
    }
}

/// Eight-bit blocks (`Q8_0`: a scale of two bytes, then 32 values).
fn zeros(name: &str, dims: &[usize]) -> Tensor {
    Tensor {
        name: name.to_owned(),
        dims: dims.to_vec(),
        kind: 8,
        data: vec![0; dims.iter().product::<usize>() / 32 * 34],
    }
}

fn metadata(
    chain: &Chain,
    template: &str,
    dim: usize,
    blocks: usize,
    inner: usize,
) -> Vec<Vec<u8>> {
    let number =
        |name: &str, value: usize| entry(name, 4, |out| out.extend((value as u32).to_le_bytes()));
    let text = |name: &str, value: &str| entry(name, 8, |out| string(out, value.as_bytes()));
    let float = |name: &str, value: f32| entry(name, 6, |out| out.extend(value.to_le_bytes()));
    let tokens: Vec<String> = chain
        .tokens
        .iter()
        .map(|token| shown(&token.bytes, token.kind))
        .collect();
    let kinds: Vec<i32> = chain.tokens.iter().map(|token| kind(token.kind)).collect();
    vec![
        text("general.architecture", "llama"),
        text("general.name", "fixture"),
        text("general.license", "MIT"),
        number("general.file_type", 0),
        number("llama.context_length", 4096),
        number("llama.embedding_length", dim),
        number("llama.block_count", blocks),
        number("llama.feed_forward_length", inner),
        number("llama.attention.head_count", dim / HEAD),
        number("llama.attention.head_count_kv", 1),
        number("llama.rope.dimension_count", HEAD),
        float("llama.attention.layer_norm_rms_epsilon", 1e-5),
        float("llama.rope.freq_base", 10_000.0),
        number("llama.vocab_size", tokens.len()),
        text("tokenizer.ggml.model", "gpt2"),
        text("tokenizer.ggml.pre", "smollm"),
        entry("tokenizer.ggml.tokens", 9, |out| strings(out, &tokens)),
        entry("tokenizer.ggml.token_type", 9, |out| {
            out.extend(5_u32.to_le_bytes());
            out.extend((kinds.len() as u64).to_le_bytes());
            kinds.iter().for_each(|kind| out.extend(kind.to_le_bytes()));
        }),
        // Some loaders refuse a tokenizer that merges nothing.
        entry("tokenizer.ggml.merges", 9, |out| {
            strings(out, &[format!("{} {}", &MERGED[..1], &MERGED[1..])])
        }),
        number("tokenizer.ggml.bos_token_id", chain.id("<|begin|>")),
        number("tokenizer.ggml.eos_token_id", chain.id("<|end|>")),
        entry("tokenizer.ggml.add_bos_token", 7, |out| out.push(0)),
        text("tokenizer.chat_template", template),
    ]
}

fn entry(name: &str, kind: u32, value: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    string(&mut out, name.as_bytes());
    out.extend(kind.to_le_bytes());
    value(&mut out);
    out
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

fn strings(out: &mut Vec<u8>, values: &[String]) {
    out.extend(8_u32.to_le_bytes());
    out.extend((values.len() as u64).to_le_bytes());
    values
        .iter()
        .for_each(|value| string(out, value.as_bytes()));
}

fn kind(kind: Kind) -> i32 {
    match kind {
        Kind::Control => 3,
        Kind::Tag => 4,
        Kind::Byte | Kind::Word => 1,
    }
}

/// A byte-level tokenizer writes each byte as a letter that can be seen.
fn shown(bytes: &[u8], kind: Kind) -> String {
    match kind {
        Kind::Control | Kind::Tag => String::from_utf8(bytes.to_vec()).unwrap(),
        Kind::Byte | Kind::Word => bytes.iter().map(|byte| letter(*byte)).collect(),
    }
}

fn letter(byte: u8) -> char {
    let plain = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    if plain(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|other| !plain(*other)).count();
    char::from_u32(256 + before as u32).expect("a letter of the Latin extensions")
}
