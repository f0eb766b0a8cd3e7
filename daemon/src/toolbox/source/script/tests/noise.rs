//! The readers under noise: no panic, and an end in bounded time and memory. `DWELL_FUZZ_SECONDS=600` goes on for that long.

use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
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

/// One file in one language, as whatever it may be taken for.
fn read_as(language: Language, bytes: &[u8]) {
    let began = Instant::now();
    for kind in [Kind::Tool, Kind::Agent] {
        let Ok(declared) = declare(language, kind, "noise", bytes) else {
            continue;
        };
        for tool in &declared.declarations {
            let told = tool.to_value().to_string();
            assert!(
                told.len() <= 64 * bytes.len() + 4096,
                "{} bytes said of {}",
                told.len(),
                bytes.len()
            );
            if let (Language::Bash, Ok(text)) = (language, std::str::from_utf8(bytes)) {
                answered(tool, text);
            }
        }
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "took {took:?}");
}

/// What a script would evaluate holds the words of a model only inside quotes.
fn answered(tool: &Declaration, text: &str) {
    let word = "x'; touch PWNED; '";
    let given = |(name, schema): (&String, &Value)| {
        let value = match schema["type"].as_str() {
            Some("array") => json!([word, word]),
            Some("boolean") => json!(true),
            _ => json!(word),
        };
        (name.clone(), value)
    };
    let call = standin::Call {
        script: "/noise.sh".into(),
        function: tool.function.clone(),
        arguments: tool.properties.iter().map(given).collect(),
        words: vec![word.to_owned()],
    };
    let lines = standin::settled(&call, text, &BTreeMap::new()).unwrap_or_default();
    for line in lines.lines().filter(|line| line.contains("touch PWNED")) {
        assert!(line.contains("'\\''; touch PWNED; '\\''"), "{line}");
    }
}

fn read_all(bytes: &[u8]) {
    for language in [Language::Bash, Language::JavaScript, Language::Python] {
        read_as(language, bytes);
    }
}

/// The recorded files, each with its language.
fn recorded() -> Vec<(Language, Vec<u8>)> {
    let expected = std::fs::read_to_string(fixtures().join("expected.json")).unwrap();
    let records: Vec<Value> = serde_json::from_str(&expected).unwrap();
    let read = |record: &Value| {
        let path = fixtures().join(record["file"].as_str().unwrap());
        (Language::of(&path).unwrap(), std::fs::read(path).unwrap())
    };
    records.iter().map(read).collect()
}

/// A change to a file; places are shares of its length, in thousandths.
#[derive(Clone, Debug)]
enum Change {
    Out(usize, usize),
    In(usize, String),
    Again(usize, usize, usize),
    Flip(usize, u8),
    /// A part of another file.
    Other(usize, usize, usize, usize),
    Cut(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = || 0_usize..1000;
    prop_oneof![
        (at(), 0_usize..60).prop_map(|(at, length)| Change::Out(at, length)),
        (at(), noise()).prop_map(|(at, text)| Change::In(at, text)),
        (at(), 0_usize..80, 1_usize..40)
            .prop_map(|(at, length, times)| Change::Again(at, length, times)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Flip(at, byte)),
        (at(), 0_usize..154, at(), 0_usize..400)
            .prop_map(|(at, file, from, length)| Change::Other(at, file, from, length)),
        at().prop_map(Change::Cut),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: Vec<Change>, files: &[(Language, Vec<u8>)]) -> Vec<u8> {
    let part = |bytes: &[u8], at: usize, length: usize| {
        let from = at * bytes.len() / 1000;
        from..(from + length).min(bytes.len())
    };
    for change in changes {
        match change {
            Change::Out(at, length) => {
                let part = part(&bytes, at, length);
                bytes.drain(part);
            }
            Change::In(at, text) => {
                let from = part(&bytes, at, 0);
                bytes.splice(from, text.bytes());
            }
            Change::Again(at, length, times) => {
                let part = part(&bytes, at, length);
                let (from, more) = (part.end, bytes[part].repeat(times));
                bytes.splice(from..from, more);
            }
            Change::Flip(at, byte) => {
                let part = part(&bytes, at, 1);
                bytes[part].fill(byte);
            }
            Change::Other(at, file, from, length) => {
                let other = &files[file].1;
                let more = other[part(other, from, length)].to_vec();
                let to = part(&bytes, at, 0);
                bytes.splice(to, more);
            }
            Change::Cut(at) => bytes.truncate(at * bytes.len() / 1000),
        }
    }
    bytes
}

/// Most of its time goes to real files that were changed a little, since those get furthest.
#[test]
fn changed_files_are_read_or_refused_for_as_long_as_is_asked() {
    let seconds = std::env::var("DWELL_FUZZ_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(2);
    let until = Instant::now() + Duration::from_secs(seconds);
    let files = recorded();
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let which = (0..files.len(), proptest::collection::vec(change(), 1..8));
    let (mut count, mut slowest) = (0_u64, Duration::ZERO);
    while Instant::now() < until {
        let (file, changes) = which.new_tree(&mut runner).unwrap().current();
        let (language, bytes) = files[file].clone();
        let bytes = changed(bytes, changes, &files);
        let began = Instant::now();
        let read = std::panic::catch_unwind(|| read_as(language, &bytes));
        slowest = slowest.max(began.elapsed());
        if let Err(why) = read {
            let kept = std::env::temp_dir().join(format!("dwell-noise-{}", std::process::id()));
            std::fs::write(&kept, &bytes).unwrap();
            eprintln!("{language:?} as in {}", kept.display());
            std::panic::resume_unwind(why);
        }
        count += 1;
    }
    println!(
        "{count} files, the slowest {slowest:?}, resident {} KiB",
        resident()
    );
    assert!(resident() < 1024 * 1024, "{} KiB", resident());
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let words = line.unwrap().split_whitespace().nth(1);
    words.unwrap().parse().unwrap()
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
