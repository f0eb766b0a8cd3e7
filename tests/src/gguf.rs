//! Model files made on the spot: valid for every loader, a megabyte in milliseconds, and they always say the same.
//! Each is an exact Markov chain: must never hold weights that anybody trained.

mod chain;
mod legacy;
mod write;

use chain::Chain;
use std::path::Path;

pub use legacy::{GGJT_TEXT, LLAMA2_TEXT, Llama2, ggjt, llama2, llama2_tokenizer};

/// What the model answers where no tool is wanted.
pub const TEXT: &str = "Hello from the fixture model.";
/// What it answers when there are tools and the last words of the user ask to read something.
pub const CALL: &str =
    r#"<tool_call>{"name": "read", "arguments": {"path": "README.md"}}</tool_call>"#;
/// What it answers after a tool's result.
pub const AFTER: &str = "The file was read.";
/// A word of the user at which it goes on for ever.
pub const ENDLESS: &str = "endlessly";

/// How much there is to compute for each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Next to nothing.
    Light,
    /// Some milliseconds, for what has to be seen in mid-answer.
    Heavy,
}

/// Tokens of the template. They are control tokens: the first one of the answer follows from the last of these.
const CONTROL: &[&str] = &[
    "<|end|>",
    "<|begin|>",
    "<|system|>",
    "<|user|>",
    "<|tool|>",
    "<|assistant|>",
    "<|assistant_tools|>",
    "<|after_tool|>",
    "<|assistant_endless|>",
];

/// It renders calls as Hermes models do, and its last token chooses what is answered. Every byte is a token here, so it
/// leaves out what only costs time: the tools' parameters, and the rest of long messages.
const TEMPLATE: &str = r#"{%- if tools %}<|system|>You may call these tools:
<tools>
{%- for tool in tools %}
{{ tool.function.name }}
{%- endfor %}
</tools>
To call one, answer with its name and arguments as JSON within <tool_call></tool_call>.<|end|>
{%- endif %}
{%- for message in messages %}<|{{ message.role }}|>{{ (message.content or "")[:400] }}
{%- if message.tool_calls %}
{%- for call in message.tool_calls %}<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor %}
{%- endif %}<|end|>
{%- endfor %}
{%- if add_generation_prompt %}
{%- if messages[-1].role == 'tool' %}<|after_tool|>
{%- elif 'endlessly' in messages[-1].content %}<|assistant_endless|>
{%- elif tools and 'read' in messages[-1].content | lower %}<|assistant_tools|>
{%- else %}<|assistant|>
{%- endif %}
{%- endif %}"#;

/// The model as the bytes of a GGUF file (llama architecture, byte-level tokenizer, template).
pub fn gguf(weight: Weight) -> Vec<u8> {
    let mut chain = Chain::bytes(CONTROL);
    chain.says(
        "<|assistant|>",
        &["Hello", " from", " the", " fixture", " model."],
        "<|end|>",
    );
    chain.says(
        "<|assistant_tools|>",
        &[
            "<tool_call>",
            r#"{"name":"#,
            r#" "read","#,
            r#" "arguments":"#,
            r#" {"path":"#,
            r#" "README.md"}}"#,
            "</tool_call>",
        ],
        "<|end|>",
    );
    chain.says(
        "<|after_tool|>",
        &["The", " file", " was", " read."],
        "<|end|>",
    );
    chain.says("<|assistant_endless|>", &[" tick", " tock"], " tick");
    // The one token that a merge makes.
    chain.says("<|begin|>", &[write::MERGED], "<|end|>");
    write::gguf(&chain, TEMPLATE, weight)
}

/// `gguf` in a file.
pub fn write_gguf(path: &Path, weight: Weight) {
    std::fs::write(path, gguf(weight)).unwrap();
}
