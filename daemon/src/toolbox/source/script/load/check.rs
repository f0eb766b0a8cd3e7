//! Everything that is wrong with the scripts of a directory and with what they need, for a person who asks.
//! Reads and looks for programs; must never run a script.

use super::super::bash;
use super::super::run::{LONGEST, dotenv, plain};
use super::syntax::Source;
use super::{File, Kind, Language, Own, Scripts};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    pub files: usize,
    /// Names of the tools that can be offered.
    pub tools: Vec<String>,
    pub problems: Vec<String>,
    pub warnings: Vec<String>,
    /// What could be read, for who knows the languages better.
    pub sources: Vec<Source>,
}

impl Scripts {
    /// Looks at all of them, those of a directory that is not trusted too; `env` is where they would run, and `is_builtin`
    /// knows the names of tools that need no script. Blocks on the disk.
    pub fn check(
        &self,
        cwd: &Path,
        env: &BTreeMap<String, String>,
        is_builtin: impl Fn(&str) -> bool,
    ) -> Checked {
        let mut listing = self.list(cwd, Own::Trusted);
        let mut warnings = Vec::new();
        for folder in self.folders(cwd, Own::Trusted) {
            warnings.extend(folder.list_agents(&mut listing));
        }
        let loaded = self.load(&listing, None);
        let mut checked = Checked {
            files: listing.files.len(),
            tools: loaded
                .tools
                .iter()
                .map(|tool| tool.name().to_owned())
                .collect(),
            problems: loaded.problems,
            warnings,
            sources: self.sources(&listing),
        };
        let refused = loaded.tools.iter().filter_map(|tool| {
            let why = tool.check().err()?;
            Some((tool.name().to_owned(), why))
        });
        for (name, why) in refused {
            checked.tools.retain(|known| *known != name);
            checked.problems.push(why);
        }
        for folder in self.folders(cwd, Own::Trusted) {
            for files in folder.files_of_agents() {
                self.hides(&files, &mut checked);
            }
        }
        let mut missing = BTreeSet::new();
        for file in &listing.files {
            self.renames(file, &mut checked);
            self.replaces(file, &is_builtin, &mut checked);
            self.needs(file, env, &mut checked);
            let program = interpreter(file.language);
            if !is_on_path(program, env) {
                missing.insert(program);
            }
        }
        for program in missing {
            checked.problems.push(format!(
                "{program} is not on PATH, and there are tools that need it"
            ));
        }
        checked
    }

    /// Of files that stand for what they declare now; what is wrong with others is told already.
    fn sources(&self, listing: &super::Listing) -> Vec<Source> {
        let source = |file: &File| {
            let reading = self.shared.known.read(&file.path, file.kind).ok()?;
            reading.problem.is_none().then(|| Source {
                file: file.path.clone(),
                language: file.language,
                text: Arc::clone(&reading.source),
            })
        };
        listing.files.iter().filter_map(source).collect()
    }

    fn renames(&self, file: &File, checked: &mut Checked) {
        let Ok(reading) = self.shared.known.read(&file.path, file.kind) else {
            return;
        };
        let names = reading.declared.declarations.iter().map(|one| &one.name);
        for (name, shown) in names.map(|name| (name, plain(name))) {
            if *name != shown {
                checked.warnings.push(format!(
                    "{}: models know the tool {name} as {shown}: vendors take up to {LONGEST} of A-Z a-z 0-9 _ - in a name",
                    file.path.display()
                ));
            }
        }
    }

    fn replaces(&self, file: &File, is_builtin: &dyn Fn(&str) -> bool, checked: &mut Checked) {
        let Ok(reading) = self.shared.known.read(&file.path, file.kind) else {
            return;
        };
        let names = reading.declared.declarations.iter().map(|one| &one.name);
        for name in names.filter(|name| is_builtin(name)) {
            checked.warnings.push(format!(
                "{}: the tool {name} takes the place of the built-in one",
                file.path.display()
            ));
        }
    }

    /// An agent's own tools that come before shared ones of its choice.
    fn hides(&self, files: &[File], checked: &mut Checked) {
        let named = |file: &File| -> BTreeSet<String> {
            let reading = self.shared.known.read(&file.path, file.kind).ok();
            let declared = reading.map(|reading| reading.declared.declarations.clone());
            let all = declared.into_iter().flatten();
            all.map(|one| one.name).collect()
        };
        let Some(own) = files.iter().find(|file| file.kind == Kind::Agent) else {
            return;
        };
        let names = named(own);
        for shared in files.iter().filter(|file| file.kind != Kind::Agent) {
            for name in names.intersection(&named(shared)) {
                checked.warnings.push(format!(
                    "{}: the agent's own tool {name} takes the place of the one in {}, which it chooses too",
                    own.path.display(),
                    shared.path.display()
                ));
            }
        }
    }

    fn needs(&self, file: &File, env: &BTreeMap<String, String>, checked: &mut Checked) {
        let Ok(reading) = self.shared.known.read(&file.path, file.kind) else {
            return;
        };
        if !reading.declared.declarations.is_empty() {
            let warnings = reading.declared.warnings.iter();
            checked
                .warnings
                .extend(warnings.map(|warning| warning.told(&file.path)));
        }
        if file.language != Language::Bash {
            return;
        }
        let text = std::fs::read_to_string(&file.path).unwrap_or_default();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let Ok(root) = bash::export(&file.stem(), text) else {
            return;
        };
        let name = file.path.display();
        let from_file = dotenv::read(&file.root.dir.join(".env")).unwrap_or_default();
        let is_set =
            |id: &String| env.contains_key(id) || from_file.iter().any(|(known, _)| known == id);
        for needed in root
            .envs
            .iter()
            .filter(|needed| needed.required && !is_set(&needed.id))
        {
            checked.problems.push(format!(
                "{name}: the environment variable {} is not set",
                needed.id
            ));
        }
        for tool in bash::required_tools(&root) {
            if !is_on_path(&tool, env) {
                checked
                    .problems
                    .push(format!("{name}: {tool} is not on PATH"));
            }
        }
    }
}

fn interpreter(language: Language) -> &'static str {
    match language {
        Language::Bash => "bash",
        Language::JavaScript => "node",
        Language::Python => "python3",
    }
}

fn is_on_path(program: &str, env: &BTreeMap<String, String>) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let path = env.get("PATH").map_or("", String::as_str);
    std::env::split_paths(path).any(|folder| {
        let file = folder.join(program).metadata();
        file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}
