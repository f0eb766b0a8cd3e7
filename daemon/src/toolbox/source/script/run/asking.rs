//! The answer to a bash script that asks argc for its arguments: known before it asks, where nothing that the script does
//! until then can change it, and else left to the stand-in, for which the call is written down.

use super::folder::{self, Folder};
use super::{Declaration, Script, before, text};
use crate::toolbox::source::script::standin;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

pub(super) struct Asking<'c> {
    pub(super) script: &'c Script,
    pub(super) declaration: &'c Declaration,
    pub(super) arguments: &'c Map<String, Value>,
    /// The script's own.
    pub(super) words: &'c [String],
}

impl Asking<'_> {
    /// Puts our own `argc` before all others, for this script alone.
    pub(super) fn stand_in(
        &self,
        folder: &Folder,
        kept: Option<&Path>,
        guards: &str,
        env: &mut BTreeMap<String, String>,
    ) -> io::Result<()> {
        let Self {
            script,
            declaration,
            arguments,
            words,
        } = self;
        folder.write_call(&script.file, kept, declaration, arguments, words)?;
        let bin = &script.root.bin;
        folder::link(bin, "argc")?;
        let path = env.get("PATH").map_or("", String::as_str);
        let path = format!("{}:{path}", bin.display());
        env.insert("PATH".to_owned(), path);
        env.insert(standin::CALL.to_owned(), text(&folder.call())?);
        let lines = self.lines(env);
        if let Some(lines) = &lines {
            std::fs::write(folder.lines(), lines)?;
        }
        let answered = lines.map(|_| before::Answered {
            script: &script.file,
            words: words.len(),
        });
        before::prepare(folder, answered, guards, env)
    }

    /// What the script is to evaluate, where that is known by now.
    fn lines(&self, env: &BTreeMap<String, String>) -> Option<String> {
        let source = std::str::from_utf8(&self.script.source).ok()?;
        let call = standin::Call {
            script: self.script.file.clone(),
            function: self.declaration.function.clone(),
            arguments: self.arguments.clone(),
            words: self.words.to_vec(),
        };
        standin::settled(&call, source, env)
    }
}
