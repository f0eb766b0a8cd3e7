//! Fetches what a site publishes, bounded and from no other host. Must never write anything.

use super::published::{self, Content, Document, Index, PLACES};
use super::{archive, head_description, head_name};
use crate::toolbox::builtin::fetch::{client, document};
use crate::toolbox::web::is_loopback;
use crate::workspace::scan::digest_of;
use reqwest::{Client, Url};
use std::collections::BTreeMap;
use std::time::Duration;

const INDEX: usize = 1024 * 1024;
const FILE: usize = 1024 * 1024;
const ALL: usize = 8 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Everything that a site offers, in memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    pub site: String,
    pub skills: Vec<Offered>,
    /// What is left out, and why.
    pub refused: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    pub name: String,
    pub description: String,
    /// By path in its folder.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Offer {
    /// Those of these names, or all.
    pub(super) fn wanted(&self, names: &[String]) -> Result<Vec<Offered>, String> {
        if names.is_empty() {
            return Ok(self.skills.clone());
        }
        let find = |name: &String| {
            let found = self.skills.iter().find(|skill| skill.name == *name);
            found
                .cloned()
                .ok_or_else(|| format!("{} offers no skill {name:?}", self.site))
        };
        names.iter().map(find).collect()
    }

    /// Tells one offer from another, to the byte.
    pub(super) fn digest(&self) -> String {
        let skills = self.skills.iter().map(|skill| {
            let files = skill
                .files
                .iter()
                .map(|(path, bytes)| format!("{path} {}\n", digest_of(bytes)));
            format!(
                "{} {}\n{}",
                skill.name,
                skill.description,
                files.collect::<String>()
            )
        });
        digest_of(skills.collect::<String>().as_bytes())
    }
}

/// Fetches it all.
pub(super) async fn fetch(host: &str) -> Result<Offer, String> {
    let site = site(host)?;
    let fetching = tokio::time::timeout(TIMEOUT, all(&site));
    fetching.await.unwrap_or_else(|_| {
        let seconds = TIMEOUT.as_secs();
        Err(format!("{site} has not sent everything within {seconds} s"))
    })
}

/// A host as people write it. Only this machine may do without encryption.
fn site(host: &str) -> Result<Url, String> {
    let written = match host.contains("://") {
        true => host.to_owned(),
        false => format!("https://{host}"),
    };
    let no_host = |why: &dyn std::fmt::Display| format!("{host:?} is no host: {why}");
    let url = Url::parse(&written).map_err(|error| no_host(&error))?;
    check(&url)?;
    match (url.path(), url.query(), url.username()) {
        ("/", None, "") => Ok(url),
        _ => Err(no_host(&"name it alone, such as example.com")),
    }
}

fn check(url: &Url) -> Result<(), String> {
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback(url) => Ok(()),
        _ => Err(format!("skills are taken over https only, not from {url}")),
    }
}

async fn all(site: &Url) -> Result<Offer, String> {
    let client = client(site).await?;
    let index = index(&client, site).await?;
    let mut offer = Offer {
        site: shown(site),
        refused: index.refused,
        skills: Vec::new(),
    };
    let mut left = ALL;
    for entry in index.entries {
        match files(&client, &entry.name, entry.content, &mut left).await {
            Ok((description, files)) => offer.skills.push(Offered {
                name: entry.name,
                description,
                files,
            }),
            Err(why) => offer.refused.push(format!("{:?}: {why}", entry.name)),
        }
    }
    Ok(offer)
}

/// The first place that has one. Many sites answer with a page of theirs where there is nothing.
async fn index(client: &Client, site: &Url) -> Result<Index, String> {
    let mut unreadable = None;
    for place in PLACES {
        let url = site.join(place).map_err(|error| error.to_string())?;
        let Some(bytes) = document(client, &url, INDEX, check).await? else {
            continue;
        };
        match published::read(&bytes, &url) {
            Ok(index) => return Ok(index),
            Err(why) => unreadable = unreadable.or(Some(why)),
        }
    }
    let site = shown(site);
    Err(unreadable.unwrap_or_else(|| {
        format!(
            "{site} publishes no skills: there is nothing at {}",
            PLACES.join(" or ")
        )
    }))
}

/// What a skill's own file says of itself, which is what the model is told, and all of its files.
async fn files(
    client: &Client,
    name: &str,
    content: Content,
    left: &mut usize,
) -> Result<(String, BTreeMap<String, Vec<u8>>), String> {
    let files = match content {
        Content::Archive(packed) => {
            let bytes = get(client, &packed, left).await?;
            let files = archive::unpack(&bytes, *left)?;
            let size: usize = files.values().map(Vec::len).sum();
            *left -= size.min(*left);
            files
        }
        Content::Files(documents) => {
            let mut files = BTreeMap::new();
            for one in documents {
                let bytes = get(client, &one, left).await?;
                files.insert(one.path, bytes);
            }
            files
        }
    };
    let text = files.get("SKILL.md").ok_or("it has no SKILL.md")?;
    let text = std::str::from_utf8(text).map_err(|_| "its SKILL.md is no text")?;
    match head_name(text) {
        Some(own) if own != name => Err(format!("its SKILL.md says that its name is {own:?}")),
        _ => Ok((head_description(text), files)),
    }
}

async fn get(client: &Client, one: &Document, left: &mut usize) -> Result<Vec<u8>, String> {
    let bytes = document(client, &one.url, FILE.min(*left), check).await?;
    let bytes = bytes.ok_or_else(|| format!("there is nothing at {}", one.url))?;
    if one
        .digest
        .as_ref()
        .is_some_and(|digest| *digest != digest_of(&bytes))
    {
        return Err(format!(
            "what lies at {} is not what the index says: its digest differs",
            one.url
        ));
    }
    *left -= bytes.len();
    Ok(bytes)
}

fn shown(site: &Url) -> String {
    let host = site.host_str().unwrap_or_default();
    site.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::site;

    #[test]
    fn host_is_named_alone_and_only_this_machine_does_without_encryption() {
        assert_eq!(
            site("example.com").unwrap().as_str(),
            "https://example.com/"
        );
        assert_eq!(
            site("https://example.com:8443/").unwrap().port(),
            Some(8443)
        );
        assert!(site("http://127.0.0.1:99").is_ok() && site("http://[::1]:99").is_ok());
        for wrong in ["http://example.com", "ftp://example.com", "file:///etc"] {
            assert!(site(wrong).unwrap_err().contains("https only"), "{wrong}");
        }
        for wrong in [
            "example.com/skills",
            "a b",
            "",
            "me@example.com",
            "example.com?x",
        ] {
            assert!(site(wrong).unwrap_err().contains("is no host"), "{wrong}");
        }
    }
}
