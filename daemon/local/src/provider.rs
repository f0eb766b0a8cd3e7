//! The table of local providers: which file each takes. Must never open one.

use crate::files::{Variables, whole};
use std::path::PathBuf;

/// A provider by name.
pub struct Local {
    pub name: &'static str,
    pub choose: fn(Option<&str>, &Variables<'_>) -> Result<Choice, String>,
}

/// What to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A GGUF file.
    Gguf(PathBuf),
    /// GGUF, or a format before it: the first bytes tell.
    Any(PathBuf),
    /// A checkpoint of llama2.c and its tokenizer.
    Llama2 { model: PathBuf, tokenizer: PathBuf },
}

/// Another one: a line here.
pub const PROVIDERS: &[Local] = &[
    Local {
        name: "candle",
        choose: candle,
    },
    Local {
        name: "llama",
        choose: llama,
    },
    Local {
        name: "ggml",
        choose: ggml,
    },
    Local {
        name: "llama2",
        choose: llama2,
    },
];

const PULL: &str = "`dwell model pull smollm2` fetches a small one";

/// Its model comes from the environment only.
fn candle(_: Option<&str>, variables: &Variables<'_>) -> Result<Choice, String> {
    let named = variables.path("CANDLE_MODEL")?;
    let path = named.or_else(|| variables.default_model());
    let none = || format!("no model: set CANDLE_MODEL to a GGUF file, or {PULL}");
    path.map(Choice::Gguf).ok_or_else(none)
}

fn llama(model: Option<&str>, variables: &Variables<'_>) -> Result<Choice, String> {
    let path = match model {
        Some(name) if is_file_name(name) => Some(whole("--model", name)?),
        Some(name) => Some(variables.pulled(name).ok_or_else(|| {
            format!("no model {name:?} here: `dwell model list` shows what there is, `dwell model pull {name}` fetches it, or name a .gguf file with --model")
        })?),
        None => variables.default_model(),
    };
    let none = || format!("no model: name a .gguf file with --model, or {PULL}");
    path.map(Choice::Gguf).ok_or_else(none)
}

fn ggml(_: Option<&str>, variables: &Variables<'_>) -> Result<Choice, String> {
    let named = variables.path("GGML_MODEL")?;
    let none = || "no model: set GGML_MODEL to a GGUF or ggml file".to_owned();
    named.map(Choice::Any).ok_or_else(none)
}

fn llama2(_: Option<&str>, variables: &Variables<'_>) -> Result<Choice, String> {
    let model = variables.path("LLAMA2_MODEL")?.ok_or(
        "no model: set LLAMA2_MODEL to a checkpoint of llama2.c, and LLAMA2_TOKENIZER to its tokenizer.bin",
    )?;
    let beside = || model.with_file_name("tokenizer.bin");
    let tokenizer = variables.path("LLAMA2_TOKENIZER")?.unwrap_or_else(beside);
    Ok(Choice::Llama2 { model, tokenizer })
}

fn is_file_name(name: &str) -> bool {
    name.contains('/') || name.ends_with(".gguf")
}
