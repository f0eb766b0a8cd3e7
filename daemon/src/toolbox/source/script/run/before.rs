//! What bash reads before a script: an answer to `argc` that costs no process, and the guards. Kept out of what the script
//! starts itself, but for the guards, which are there for all of it.
//! Must never leave a word of a model's unquoted, nor change what a script sees beyond that.

use super::folder::Folder;
use super::text;
use crate::toolbox::source::script::standin::quote::quote;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Where bash finds what is to be read, and where the session's own word for that is kept.
const BASH_ENV: &str = "BASH_ENV";
const OWN: &str = "DWELL_TOOL_BASH_ENV";

/// An answer to `argc` that the call's folder holds: to which script, and to how many words.
pub(super) struct Answered<'s> {
    pub(super) script: &'s Path,
    pub(super) words: usize,
}

/// Puts it in the call's folder and into the environment.
pub(super) fn prepare(
    folder: &Folder,
    answered: Option<Answered<'_>>,
    guards: &str,
    env: &mut BTreeMap<String, String>,
) -> io::Result<()> {
    if answered.is_none() && guards.is_empty() {
        return Ok(());
    }
    let own = env.remove(BASH_ENV).filter(|own| !own.is_empty());
    let mut before = String::new();
    if guards.is_empty() {
        before += &match &own {
            Some(own) => format!("BASH_ENV={}\n", quote(own)),
            None => "unset BASH_ENV\n".to_owned(),
        };
    }
    before += guards;
    if let Some(answered) = answered {
        before += &answered.function(folder)?;
    }
    if let Some(own) = own {
        before += &format!("if [ -r \"${OWN}\" ]; then builtin . \"${OWN}\"; fi\n");
        env.insert(OWN.to_owned(), own);
    }
    let file = folder.before();
    std::fs::write(&file, before)?;
    env.insert(BASH_ENV.to_owned(), text(&file)?);
    Ok(())
}

impl Answered<'_> {
    /// A function in the place of the program: for the script that is called, and for nothing that it starts.
    fn function(&self, folder: &Folder) -> io::Result<String> {
        let (script, lines) = (quote(&text(self.script)?), quote(&text(&folder.lines())?));
        let (asked, count) = (quote(&text(&folder.asked())?), self.words + 2);
        Ok(format!(
            "if [ -z \"$DWELL_TOOL_BEGUN\" ]; then\nexport DWELL_TOOL_BEGUN=1\nargc() {{\n\
             if [ \"$#\" -eq {count} ] && [ \"$1\" = --argc-eval ] && [ \"$2\" = {script} ]; then\n\
             builtin printf '%s\\n' \"$(<{lines})\" && : >{asked}\n\
             else command argc \"$@\"; fi\n}}\nfi\n"
        ))
    }
}
