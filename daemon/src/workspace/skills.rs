//! Skills: texts that the model reads when it needs them, found in `.agents/skills/` of the user and of the directory.
//! Must never run anything of a skill; like `AGENTS.md` it is words for the model, and counts without trust.

mod archive;
mod published;
mod site;
mod take;

pub use site::Offer;
pub use take::{Existing, Taken};

use super::{Shared, Workspace, file};
use crate::toolbox::Toolbox;
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest `SKILL.md`.
const LONGEST: u64 = 256 * 1024;
/// More than these nobody tells apart, and each costs words in every round trip.
const MOST: usize = 100;
/// The longest description that goes into the prompt, in characters.
const DESCRIPTION: usize = 1024;

/// A skill as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// Holds its `SKILL.md`, and what that speaks of.
    pub folder: PathBuf,
    /// Where its text has to lie really, whatever links lead to it.
    within: Option<PathBuf>,
}

/// Skills that were read, so that a file is read again only when it is another, and what sites were seen to offer.
#[derive(Default)]
pub(super) struct Known {
    /// Held for a look only, as is the other.
    read: Mutex<HashMap<PathBuf, (Stamp, Option<Skill>)>>,
    /// By site: the digest of what was shown last.
    shown: Mutex<BTreeMap<String, String>>,
}

#[derive(Clone, Copy, PartialEq)]
struct Stamp {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

/// The user's skills, with the directory's over those of the same name, by name.
pub(super) fn of(shared: &Shared, cwd: &Path) -> Vec<Skill> {
    let mut all: Vec<Skill> = Vec::new();
    // What is the user's own may lie anywhere, what came with a directory only in it.
    let homes = [(&*shared.places.home, None), (cwd, Some(cwd))];
    for (root, within) in homes
        .into_iter()
        .filter(|(root, within)| within.is_none() || *root != shared.places.home)
    {
        for skill in inside(&shared.skills, &root.join(".agents/skills"), within) {
            match all.iter_mut().find(|known| known.name == skill.name) {
                Some(known) => *known = skill,
                None => all.push(skill),
            }
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.truncate(MOST);
    all
}

/// Why skills of a directory do not count.
pub(super) fn problems(shared: &Shared, cwd: &Path) -> Vec<String> {
    if cwd == shared.places.home {
        return Vec::new();
    }
    let found = folders(&cwd.join(".agents/skills")).into_iter();
    let found = found.map(|folder| folder.join("SKILL.md"));
    let opened = found.map(|path| (file::open_below(cwd, &path).err(), path));
    let told = opened.filter_map(|(error, path)| {
        let error = error.filter(|error| !file::missing(error))?;
        Some(format!("cannot use {}: {error}", path.display()))
    });
    told.collect()
}

fn inside(known: &Known, folder: &Path, within: Option<&Path>) -> Vec<Skill> {
    let found = folders(folder).into_iter();
    found
        .filter_map(|folder| known.skill(folder, within))
        .collect()
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // What is being put there has a dot in front.
    let hidden = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.as_encoded_bytes()[0] == b'.')
    };
    folders.retain(|path| !hidden(path));
    folders.sort();
    folders
}

impl Known {
    fn shown(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn skill(&self, folder: PathBuf, within: Option<&Path>) -> Option<Skill> {
        let found = std::fs::metadata(folder.join("SKILL.md")).ok()?;
        let stamp = Stamp {
            file: (found.dev(), found.ino()),
            size: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
        };
        let mut read_before = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, skill)) = read_before.get(&folder)
            && *known == stamp
        {
            return skill.clone();
        }
        // Folders that are gone never come back as often as this.
        if read_before.len() >= 10 * MOST {
            read_before.clear();
        }
        let skill = read(folder.clone(), within);
        read_before.insert(folder, (stamp, skill.clone()));
        skill
    }
}

fn read(folder: PathBuf, within: Option<&Path>) -> Option<Skill> {
    let text = match text_in(&folder, within) {
        Ok(text) => text,
        Err(why) => {
            tracing::warn!(folder = %folder.display(), %why, "a skill is left out");
            return None;
        }
    };
    let own = folder.file_name()?.to_str()?.to_owned();
    let (head, _) = split(&text);
    let name = field(head, "name")
        .filter(|name| !name.is_empty())
        .unwrap_or(own);
    Some(Skill {
        name,
        description: head_description(&text),
        folder,
        within: within.map(Path::to_owned),
    })
}

fn text_in(folder: &Path, within: Option<&Path>) -> Result<String, String> {
    let path = folder.join("SKILL.md");
    let bytes = match within {
        Some(root) => file::read_below(root, &path, LONGEST),
        None => file::read(&path, LONGEST),
    };
    let bytes = bytes.map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or_else(|| format!("{} is gone", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The lines between the first two `---`, and what follows.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = text
        .strip_prefix("---")
        .and_then(|rest| rest.split_once('\n'))
    else {
        return ("", text);
    };
    let mut at = 0;
    for line in rest.1.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (&rest.1[..at], &rest.1[at + line.len()..]);
        }
        at += line.len();
    }
    ("", text)
}

/// A value of the head, which is YAML: plain, in quotes, or folded over indented lines.
fn field(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines();
    let first = lines.find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    let more = lines.take_while(|line| line.starts_with([' ', '\t']) || line.trim().is_empty());
    let first = match first.trim() {
        ">" | "|" | ">-" | "|-" | ">+" | "|+" => "",
        first => first,
    };
    let words = [first].into_iter().chain(more.map(str::trim));
    let value = words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let bare = quoted('"').or_else(|| quoted('\'')).unwrap_or(&value);
    Some(bare.to_owned())
}

/// The name that a `SKILL.md` gives itself.
fn head_name(text: &str) -> Option<String> {
    field(split(text).0, "name").filter(|name| !name.is_empty())
}

/// What a `SKILL.md` is for, as the model is told.
fn head_description(text: &str) -> String {
    let description = field(split(text).0, "description").unwrap_or_default();
    description.chars().take(DESCRIPTION).collect()
}

/// What the system prompt says of them; none when there are none.
pub(super) fn for_prompt(skills: &[Skill]) -> Option<String> {
    if skills.is_empty() {
        return None;
    }
    let lines = skills.iter().map(|skill| {
        let description = skill.description.replace('\n', " ");
        format!("- {}: {description}", skill.name)
            .trim_end_matches([' ', ':'])
            .to_owned()
    });
    let list = lines.collect::<Vec<_>>().join("\n");
    Some(format!(
        "Skills that the tool `skill` reads, for when one fits the task:\n{list}"
    ))
}

/// The tool `skill`, where there are any.
pub(super) fn add_to(toolbox: &mut Toolbox, skills: &[Skill]) {
    if skills.is_empty() {
        return;
    }
    let skills: Arc<[Skill]> = skills.into();
    let about = "Read a skill: instructions for a kind of task. Their names and what each is for stand in the system prompt.";
    let tool = Tool::new("skill", about)
        .param(
            "name",
            json!({"type": "string", "description": "The skill's name"}),
        )
        .required("name")
        .access(Access::Nothing)
        .handler(move |_: Call, arguments: Map<String, Value>| {
            let skills = Arc::clone(&skills);
            async move { open(&skills, arguments).await }
        });
    toolbox.add(tool);
}

async fn open(skills: &[Skill], arguments: Map<String, Value>) -> Outcome {
    let name = arguments["name"].as_str().unwrap_or_default();
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
        let names: Vec<_> = skills.iter().map(|skill| skill.name.as_str()).collect();
        return Err(format!(
            "unknown skill: {name:?}. Available: {}.",
            names.join(", ")
        ));
    };
    let (folder, within) = (skill.folder.clone(), skill.within.clone());
    let reading = tokio::task::spawn_blocking(move || text_in(&folder, within.as_deref()));
    let text = reading.await.map_err(|error| error.to_string())??;
    let result = json!({
        "name": name,
        "directory": skill.folder.display().to_string(),
        "content": split(&text).1.trim(),
    });
    match result {
        Value::Object(result) => Ok(result),
        _ => Ok(Map::new()),
    }
}

impl Workspace {
    /// Its skills as the files are now.
    pub async fn skills(&self) -> Vec<Skill> {
        self.blocking(of).await.unwrap_or_default()
    }

    /// What a site publishes.
    pub async fn offer(&self, site: &str) -> Result<Offer, String> {
        site::fetch(site).await
    }

    /// All of an offer was shown: it can be taken.
    pub fn was_shown(&self, offer: &Offer) {
        let mut shown = self.shared.skills.shown();
        if shown.len() >= MOST {
            shown.clear();
        }
        shown.insert(offer.site.clone(), offer.digest());
    }

    /// Puts skills that a site publishes into the user's home: all, or those named. An error when the site offers
    /// something else than what was shown, or has none of a name.
    pub async fn take(
        &self,
        site: &str,
        names: &[String],
        existing: Existing,
    ) -> Result<Vec<Taken>, String> {
        let offer = site::fetch(site).await?;
        let shown = self.shared.skills.shown().get(&offer.site).cloned();
        if shown != Some(offer.digest()) {
            return Err(match shown {
                None => format!(
                    "what {site} publishes was not shown yet: /skills fetch {site} shows it"
                ),
                Some(_) => format!(
                    "{site} publishes something else than what was shown: /skills fetch {site} shows it"
                ),
            });
        }
        let wanted = offer.wanted(names)?;
        let putting = self.blocking(move |shared, _| {
            let folder = shared.places.home.join(".agents/skills");
            let put = |skill: &site::Offered| take::take(&folder, skill, existing);
            wanted.iter().map(put).collect()
        });
        putting.await?
    }
}

#[cfg(test)]
mod tests {
    use super::{field, split};

    #[test]
    fn head_is_read_in_each_way_that_people_write_it() {
        let (head, body) = split(
            "---\nname: pdf\ndescription: >-\n  Reads PDF files,\n  and forms\nlicense: x\n---\n\n# PDF\n---\n",
        );
        assert_eq!(body.trim(), "# PDF\n---");
        assert_eq!(field(head, "name").as_deref(), Some("pdf"));
        assert_eq!(
            field(head, "description").as_deref(),
            Some("Reads PDF files, and forms")
        );
        assert_eq!(field(head, "license").as_deref(), Some("x"));
        assert_eq!(field(head, "other"), None);
        assert_eq!(field("name: \"a: b\"\n", "name").as_deref(), Some("a: b"));
        assert_eq!(field("names: x\n", "name"), None);
        for text in ["no head", "---\nname: x\nno end", ""] {
            assert_eq!(split(text), ("", text));
        }
    }
}
