//! Scripts run through the gate: what reaches them, and what comes of them.

mod bash;
mod dotenv;
mod kinds;
mod languages;
mod numbers;

use super::*;
use crate::toolbox::builtin::testing::Bench;
use crate::toolbox::source::script::{Kind, declare, standin};
use serde_json::json;

/// A test binary's `main` is not ours to change: this runs before it.
#[used]
#[unsafe(link_section = ".init_array")]
static STAND_IN: extern "C" fn() = {
    extern "C" fn stand_in() {
        standin::main_if_asked();
    }
    stand_in
};

/// The tool of one file in the folder of a bench.
fn tool_of(bench: &Bench, name: &str, content: &str, timeout: Duration) -> Tool {
    let file = bench.write(&format!("my root/tools/{name}"), content);
    let dir = bench.cwd().join("my root");
    let language = Language::of(&file).unwrap();
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let declared = declare(language, Kind::Tool, stem, content.as_bytes()).unwrap();
    let script = Script {
        name: stem.to_owned(),
        file,
        language,
        root: Arc::new(Root {
            cache: dir.join("cache"),
            bin: bench.cwd().join("bin"),
            dir,
        }),
        agent: None,
        timeout,
        source: content.as_bytes().into(),
    };
    tool(
        &Arc::new(script),
        &Arc::new(declared.declarations[0].clone()),
    )
}

async fn run(name: &str, content: &str, arguments: Value) -> Value {
    let bench = Bench::new();
    run_in(&bench, name, content, arguments).await
}

async fn run_in(bench: &Bench, name: &str, content: &str, arguments: Value) -> Value {
    let tool = tool_of(bench, name, content, TIMEOUT);
    Value::Object(bench.run(move || tool, arguments).await)
}

/// Words that have broken somebody's quoting.
fn hard_words() -> Vec<String> {
    let mut words: Vec<_> = [
        "---\ntitle: x\n---",
        "-rf",
        "--",
        "--help",
        "-h",
        "-5",
        "",
        " ",
        "it's \"q\" $HOME `id` $(id) \\ \n end",
        "C:\\dir\\file",
        "Grüße 日本語 🎉",
        "a\nEOF\ntouch PWNED\n#",
        "trailing\n\n",
        "\t\r\u{7f}\u{1b}[31m",
        "007",
        "'",
        "a=b",
        "@file",
        "!",
        "\u{feff}x",
    ]
    .map(str::to_owned)
    .into();
    words.push("x".repeat(1024 * 1024));
    words
}
