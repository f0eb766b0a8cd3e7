//! The readers under noise: no panic, and an end in bounded time.

use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Pieces that mean something to one of the readers, so that noise gets further than the first check.
const PIECES: &[&str] = &[
    "# @describe ",
    "# @option --a",
    "# @flag -b",
    "# @arg x",
    "# @cmd c\n",
    "!",
    "+",
    "*,",
    "[a|b]",
    "=`f`",
    "[`f`]",
    " <INT>",
    "main() {\n",
    "}\n",
    "<<EOF\n",
    "EOF\n",
    "<<-'X'",
    "$'",
    "\\",
    "/**\n",
    " * ",
    "*/",
    "@typedef {",
    "}",
    "@property {string} ",
    "@param {Object} args",
    "[n=",
    "]",
    "exports.run = ",
    "function run(",
    ") {",
    "export ",
    "module.exports = {",
    "=> ",
    "'x'|",
    "Array<",
    "{a: ",
    "def run(",
    "a: ",
    "Optional[",
    "Literal['",
    "\"\"\"",
    "'''",
    "):\n",
    "    ",
    "Args:\n",
    "Parameters\n----\n",
    ":param a: ",
    "a (int, optional): ",
    "class C(Enum):\n",
    " = ",
    "if True:\n",
    "async ",
    "@d\n",
    "\n",
    "\r\n",
    "\t",
    " ",
    "ö",
    "🎉",
    "\u{feff}",
    "\"",
    "'",
    "(",
    "[",
    "{",
    "|",
    ",",
    "0x",
    "-1",
    ".",
    "\0",
    "#",
];

fn noise() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => proptest::sample::select(PIECES).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

fn read_all(bytes: &[u8]) {
    let began = Instant::now();
    for language in [Language::Bash, Language::JavaScript, Language::Python] {
        for kind in [Kind::Tool, Kind::Agent] {
            let _ = declare(language, kind, "noise", bytes);
        }
    }
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "took {:?}",
        began.elapsed()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn noise_is_read_or_refused(text in noise()) {
        read_all(text.as_bytes());
    }

    #[test]
    fn bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
    }

    /// Real files with a piece taken out and another put in.
    #[test]
    fn broken_files_are_read_or_refused(
        file in 0_usize..154, at in 0_usize..2000, length in 0_usize..40, put in noise(),
    ) {
        let expected = std::fs::read_to_string(fixtures().join("expected.json")).unwrap();
        let records: Vec<Value> = serde_json::from_str(&expected).unwrap();
        let mut bytes = std::fs::read(fixtures().join(records[file]["file"].as_str().unwrap())).unwrap();
        let from = at.min(bytes.len());
        let to = (from + length).min(bytes.len());
        bytes.splice(from..to, put.bytes().take(60));
        read_all(&bytes);
    }
}

#[test]
fn what_is_nested_deeply_is_refused_and_breaks_nothing() {
    let deep = |open: &str| open.repeat(50_000);
    for text in [
        format!("def run(a: {}):\n  \"\"\"D.\"\"\"\n", deep("list[")),
        format!("def run(a={}):\n  \"\"\"D.\"\"\"\n", deep("[")),
        format!(
            "/**\n * D.\n * @property {{{}}} a - A\n */\nexports.run = (a) => a;\n",
            deep("Array<")
        ),
        format!("/**\n * D.\n */\nexports.run = {};\n", deep("(")),
        format!("# @describe D.\n# @option --a{}\n", deep("[")),
        deep("if (a) {"),
        deep("if a:\n "),
    ] {
        read_all(text.as_bytes());
    }
}
