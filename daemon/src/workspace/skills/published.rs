//! What a site says that it publishes: its index of skills, in either form that sites use. Pure.
//! Must never let a name or a path through that could lead out of a skill's folder.

use reqwest::Url;
use serde::Deserialize;

/// Where the index is, and where it was in the form before.
pub(super) const PLACES: [&str; 2] = [
    "/.well-known/agent-skills/index.json",
    "/.well-known/skills/index.json",
];
const SKILL: &str = "SKILL.md";
/// More than these nobody looks through.
const SKILLS: usize = 50;
const FILES: usize = 64;
const NAME: usize = 64;
const PATH: usize = 200;
const DEPTH: usize = 8;

/// A skill of an index. What that says of it counts nowhere: its own file does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) content: Content,
}

/// What of it is fetched.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// Files by their path in the skill's folder.
    Files(Vec<Document>),
    /// A `.tar.gz` with all of them.
    Archive(Document),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document {
    pub(super) path: String,
    pub(super) url: Url,
    /// Its SHA-256 in hexadecimal digits, where the index says it.
    pub(super) digest: Option<String>,
}

/// The skills of an index, and why others are left out.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Index {
    pub(super) entries: Vec<Entry>,
    pub(super) refused: Vec<String>,
}

#[derive(Deserialize)]
struct Written {
    skills: Vec<Skill>,
}

#[derive(Deserialize)]
struct Skill {
    #[serde(default)]
    name: String,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    files: Option<Vec<String>>,
}

/// Reads an index that was found at `at`.
pub(super) fn read(bytes: &[u8], at: &Url) -> Result<Index, String> {
    let written: Written = serde_json::from_slice(bytes)
        .map_err(|error| format!("{at} is no index of skills: {error}"))?;
    if written.skills.len() > SKILLS {
        let count = written.skills.len();
        return Err(format!(
            "{at} lists {count} skills; more than {SKILLS} are not taken"
        ));
    }
    let mut index = Index::default();
    for skill in written.skills {
        let known = index.entries.iter().any(|entry| entry.name == skill.name);
        let shown: String = skill.name.chars().take(NAME).collect();
        match entry(skill, at) {
            Ok(_) if known => index.refused.push(format!("{shown:?}: it is listed twice")),
            Ok(entry) => index.entries.push(entry),
            Err(why) => index.refused.push(format!("{shown:?}: {why}")),
        }
    }
    Ok(index)
}

fn entry(skill: Skill, at: &Url) -> Result<Entry, String> {
    if !is_name(&skill.name) {
        return Err("a skill's name is of small letters, digits and single hyphens".to_owned());
    }
    let content = match (&skill.url, &skill.files) {
        (Some(url), _) => artifact(&skill, url, at)?,
        (None, Some(files)) => Content::Files(listed(&skill.name, files, at)?),
        (None, None) => return Err("the index says neither its url nor its files".to_owned()),
    };
    Ok(Entry {
        name: skill.name,
        content,
    })
}

fn artifact(skill: &Skill, url: &str, at: &Url) -> Result<Content, String> {
    let document = Document {
        path: SKILL.to_owned(),
        url: on_site(url, at)?,
        digest: Some(digest(skill.digest.as_deref())?),
    };
    match skill.kind.as_deref() {
        Some("skill-md") => Ok(Content::Files(vec![document])),
        Some("archive") => Ok(Content::Archive(document)),
        Some(other) => Err(format!("its type {other:?} is not known")),
        None => Err("the index does not say its type".to_owned()),
    }
}

fn digest(written: Option<&str>) -> Result<String, String> {
    let digits = written.and_then(|digest| digest.strip_prefix("sha256:"));
    let whole = |digits: &&str| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let digits = digits.filter(whole);
    let digits = digits.ok_or("the index has no sha256 digest of it")?;
    Ok(digits.to_ascii_lowercase())
}

fn listed(name: &str, files: &[String], at: &Url) -> Result<Vec<Document>, String> {
    if files.len() > FILES {
        return Err(format!("it has more than {FILES} files"));
    }
    if !files.iter().any(|file| file == SKILL) {
        return Err(format!("it has no {SKILL}"));
    }
    let document = |file: &String| {
        check_path(file)?;
        Ok(Document {
            path: file.clone(),
            url: on_site(&format!("{name}/{file}"), at)?,
            digest: None,
        })
    };
    files.iter().map(document).collect()
}

/// Relative to the index, and on its host.
fn on_site(url: &str, at: &Url) -> Result<Url, String> {
    let url = at.join(url).map_err(|error| format!("{url:?}: {error}"))?;
    match url.origin() == at.origin() {
        true => Ok(url),
        false => Err(format!("{url} lies on another host")),
    }
}

/// Whether it may be a folder's name, in the letters that skills' names are made of.
pub(super) fn is_name(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=NAME).contains(&name.len())
        && name.bytes().all(letter)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Whether a file may lie there in a skill's folder.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.contains(|c: char| c == '\\' || c.is_control())
    };
    let parts = path.split('/').count();
    match path.len() <= PATH && parts <= DEPTH && path.split('/').all(plain) {
        true => Ok(()),
        false => Err(format!("{path:?} is no path in a skill's folder")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn index(value: &Value) -> Index {
        let at = Url::parse("https://example.com/.well-known/agent-skills/index.json").unwrap();
        read(value.to_string().as_bytes(), &at).unwrap()
    }

    fn refused(skill: Value) -> String {
        let mut index = index(&json!({"skills": [skill]}));
        assert!(index.entries.is_empty(), "{index:?}");
        index.refused.remove(0)
    }

    #[test]
    fn both_forms_of_an_index_are_read() {
        let digest = "AB".repeat(32);
        let index = index(&json!({
            "$schema": "https://schemas.example.com/0.2.0",
            "skills": [
                {"name": "pdf", "type": "skill-md", "url": "/a/SKILL.md",
                 "digest": format!("sha256:{digest}")},
                {"name": "all", "type": "archive", "url": "all.tar.gz", "digest": format!("sha256:{digest}")},
                {"name": "old", "files": ["SKILL.md", "scripts/run.py"]},
            ]
        }));
        assert_eq!(index.refused, Vec::<String>::new());
        let [pdf, all, old] = &index.entries[..] else {
            panic!("{index:?}")
        };
        let Content::Files(files) = &pdf.content else {
            panic!("{pdf:?}")
        };
        assert_eq!(files[0].url.as_str(), "https://example.com/a/SKILL.md");
        assert_eq!(files[0].digest, Some("ab".repeat(32)));
        assert!(
            matches!(&all.content, Content::Archive(one) if one.url.path().ends_with("/agent-skills/all.tar.gz"))
        );
        let Content::Files(files) = &old.content else {
            panic!("{old:?}")
        };
        assert_eq!(
            files[1].url.path(),
            "/.well-known/agent-skills/old/scripts/run.py"
        );
    }

    #[test]
    fn nothing_leads_out_of_the_folder_or_to_another_host() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for name in ["", "..", "a/b", "A", "a--b", "-a", "a b", ".a"] {
            let why = refused(json!({"name": name, "files": ["SKILL.md"]}));
            assert!(why.contains("a skill's name"), "{name}: {why}");
        }
        for path in [
            "../x", "/etc/x", "a/../b", "a//b", ".hidden", "a\\b", "a\u{1b}b",
        ] {
            let why = refused(json!({"name": "a", "files": ["SKILL.md", path]}));
            assert!(why.contains("no path in a skill's folder"), "{path}: {why}");
        }
        for url in [
            "https://other.com/x",
            "http://example.com/x",
            "//other.com/x",
            "file:///x",
        ] {
            let skill = json!({"name": "a", "type": "skill-md", "url": url, "digest": digest});
            assert!(refused(skill).contains("lies on another host"), "{url}");
        }
        let many: Vec<String> = (0..=FILES).map(|n| format!("f{n}")).collect();
        assert!(refused(json!({"name": "a", "files": many})).contains("more than 64 files"));
        assert!(refused(json!({"name": "a", "files": ["x"]})).contains("no SKILL.md"));
        let bare = json!({"name": "a", "type": "skill-md", "url": "x", "digest": "md5:1"});
        assert!(refused(bare).contains("no sha256 digest"));
    }
}
