//! What a script finds in its environment: the session's variables, the folder's `.env`, and those that say which call
//! it is.

use super::folder::{Folder, private};
use super::{Around, Declaration, Script, dotenv, text};
use crate::toolbox::builtin::environment;
use std::collections::BTreeMap;
use std::io;

pub(super) fn of(
    script: &Script,
    declaration: &Declaration,
    around: &Around,
    folder: &Folder,
) -> io::Result<BTreeMap<String, String>> {
    let mut env = environment::from(&around.env);
    // What is set already wins, also when it is set to nothing.
    for (name, value) in dotenv::read(&script.root.dir.join(".env"))? {
        env.entry(name).or_insert(value);
    }
    let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
    set("LLM_OUTPUT", text(&folder.output())?);
    set("LLM_ROOT_DIR", text(&script.root.dir)?);
    let cache = script.root.cache.join(&script.name);
    private(&cache)?;
    match &script.agent {
        None => {
            set("LLM_TOOL_NAME", declaration.name.clone());
            set("LLM_TOOL_CACHE_DIR", text(&cache)?);
        }
        Some(agent) => {
            set("LLM_AGENT_NAME", agent.name.clone());
            set("LLM_AGENT_FUNC", declaration.function.clone());
            set("LLM_AGENT_ROOT_DIR", text(&agent.dir)?);
            set("LLM_AGENT_CACHE_DIR", text(&cache)?);
            for (name, value) in &agent.variables {
                let name = name.to_uppercase().replace('-', "_");
                set(&format!("LLM_AGENT_VAR_{name}"), value.clone());
            }
        }
    }
    Ok(env)
}
