//! Model files that lie: each is an error that names the file and says why, and none takes the process or its memory.

use super::{file, user};
use harness::gguf::{self, Weight};
use harness::local::Local;
use harness::procfs;
use harness::sandbox::Sandbox;
use serde_json::json;

/// What a build says of each of these files, with a good one built after all of them by the same process.
fn check(provider: &str, variable: &str, good: &[u8], bad: &[(String, Vec<u8>)]) {
    let sandbox = Sandbox::new();
    file(&sandbox, "tokenizer.bin", &gguf::llama2_tokenizer());
    let mut local = Local::start(&[("RUST_BACKTRACE", "1")]);
    for (what, bytes) in bad {
        let path = file(&sandbox, "bad.bin", bytes);
        let build = json!({"name": provider, "env": {variable: path}});
        let why = local.call("provider/build", build).expect_err(what);
        assert!(
            why.contains("bad.bin: ") && why.len() < 600 && !why.contains('\n'),
            "{what}: {why}"
        );
    }
    assert!(
        procfs::resident(local.pid()) < 100 << 20,
        "a header cannot make it allocate"
    );
    let path = file(&sandbox, "good.bin", good);
    let build = json!({"name": provider, "env": {variable: path}});
    let built = local.call("provider/build", build).expect("a good file");
    let instance = built["instance"].as_str().unwrap();
    assert!(
        !local
            .fetch(instance, &user("hi"), &json!([]))
            .text
            .is_empty()
    );
}

/// The file cut at some hundred places: near its beginning, where the header is, and all over.
fn cuts(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let near = (0..40).chain((40..4000).step_by(97));
    let all = (4000..whole.len()).step_by(whole.len() / 23);
    let at = near
        .chain(all)
        .chain([whole.len() - 1])
        .filter(|at| *at < whole.len());
    at.map(|at| (format!("cut at {at}"), whole[..at].to_vec()))
        .collect()
}

fn with(whole: &[u8], what: &str, at: usize, bytes: &[u8]) -> (String, Vec<u8>) {
    let mut changed = whole.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    (what.to_owned(), changed)
}

/// Where a text first stands, and what follows it.
fn behind(whole: &[u8], text: &str) -> usize {
    let at = whole
        .windows(text.len())
        .position(|part| part == text.as_bytes());
    at.unwrap() + text.len()
}

#[test]
fn a_damaged_gguf_file_is_an_error() {
    let good = gguf::gguf(Weight::Light);
    let mut bad = cuts(&good);
    let huge = u64::MAX.to_le_bytes();
    let large = (1_u64 << 40).to_le_bytes();
    let architecture = behind(&good, "general.architecture") + 12;
    bad.extend([
        with(&good, "another magic", 0, b"GGML"),
        with(&good, "another version", 4, &[9]),
        with(&good, "tensors without end", 8, &huge),
        with(&good, "metadata without end", 16, &huge),
        with(&good, "a name without end", 24, &large),
        with(&good, "another architecture", architecture, b"mamba"),
        with(&good, "no heads", behind(&good, "head_count") + 4, &[0; 4]),
        with(
            &good,
            "too many blocks",
            behind(&good, "block_count") + 4,
            &[255; 4],
        ),
        with(
            &good,
            "too wide",
            behind(&good, "embedding_length") + 4,
            &[255; 4],
        ),
        with(
            &good,
            "a matrix without end",
            behind(&good, "token_embd.weight") + 4,
            &huge,
        ),
        with(
            &good,
            "sizes that overflow",
            behind(&good, "token_embd.weight") + 4,
            &large,
        ),
        with(
            &good,
            "a tensor of another kind",
            behind(&good, "token_embd.weight") + 20,
            &[77],
        ),
        with(
            &good,
            "a tensor beyond the end",
            behind(&good, "token_embd.weight") + 24,
            &large,
        ),
        ("nothing".to_owned(), Vec::new()),
        ("text".to_owned(), b"no model at all\n".repeat(100)),
    ]);
    check("candle", "CANDLE_MODEL", &good, &bad);
}

#[test]
fn a_damaged_file_of_an_older_format_is_an_error() {
    let good = gguf::ggjt();
    let mut bad = cuts(&good);
    bad.extend([
        with(&good, "another version", 4, &[9]),
        with(&good, "words without end", 8, &[255; 4]),
        with(&good, "no heads", 20, &[0; 4]),
        with(&good, "a word without end", 36, &[255; 4]),
        with(&good, "another magic", 0, b"PK\x03\x04"),
    ]);
    check("ggml", "GGML_MODEL", &good, &bad);
}

#[test]
fn a_damaged_checkpoint_is_an_error() {
    for layout in [gguf::Llama2::V0, gguf::Llama2::V1, gguf::Llama2::V2] {
        let good = gguf::llama2(layout);
        let start = if layout == gguf::Llama2::V0 { 0 } else { 8 };
        let mut bad = cuts(&good);
        for field in 0..7 {
            let at = start + field * 4;
            bad.push(with(
                &good,
                &format!("field {field} is huge"),
                at,
                &i32::MAX.to_le_bytes(),
            ));
            bad.push(with(&good, &format!("field {field} is none"), at, &[0; 4]));
        }
        // More than the file has, or less; the context of the later layouts is no size of theirs.
        bad.retain(|(what, _)| !(start == 8 && what == "field 6 is huge"));
        check("llama2", "LLAMA2_MODEL", &good, &bad);
    }
}
