//! Where models are: what a person named, and what was pulled. Must never change a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The model that is taken where none is named.
const DEFAULT: &str = "smollm2";

/// Variables of the session, and behind them this process's own.
#[derive(Debug)]
pub struct Variables<'a>(pub &'a BTreeMap<String, String>);

impl Variables<'_> {
    /// A value that is not empty.
    pub fn get(&self, name: &str) -> Option<String> {
        let own = self.0.get(name).cloned();
        let value = own.or_else(|| std::env::var(name).ok());
        value.filter(|value| !value.is_empty())
    }

    /// A file that a variable names.
    pub fn path(&self, name: &str) -> Result<Option<PathBuf>, String> {
        self.get(name).map(|value| whole(name, &value)).transpose()
    }

    /// The folder of pulled models.
    pub fn folder(&self) -> Option<PathBuf> {
        let data = match self.get("DWELL_DATA_DIR") {
            Some(named) => PathBuf::from(named),
            None => directories::ProjectDirs::from("", "", "dwell")?
                .data_local_dir()
                .to_path_buf(),
        };
        Some(data.join("models"))
    }

    /// The file of a pulled model.
    pub fn pulled(&self, name: &str) -> Option<PathBuf> {
        let file = file_name(name)?;
        let path = self.folder()?.join(file);
        path.is_file().then_some(path)
    }

    /// The default model, else the first of those that were pulled.
    pub fn default_model(&self) -> Option<PathBuf> {
        if let Some(path) = self.pulled(DEFAULT) {
            return Some(path);
        }
        let entries = std::fs::read_dir(self.folder()?).ok()?;
        let paths = entries.flatten().map(|entry| entry.path());
        let models = paths.filter(|path| path.extension().is_some_and(|ext| ext == "gguf"));
        models.min()
    }
}

/// A path that means the same everywhere: this process's own directory is nobody's.
pub fn whole(what: &str, path: &str) -> Result<PathBuf, String> {
    match Path::new(path).is_absolute() {
        true => Ok(PathBuf::from(path)),
        false => Err(format!(
            "{what} is {path}: name the file with its whole path, from / on"
        )),
    }
}

/// A model's file in the folder; none for what cannot be a model's name.
fn file_name(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    let good = !name.is_empty() && !name.starts_with('.') && name.chars().all(fits);
    good.then(|| format!("{}.gguf", name.replace(':', "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_out_of_the_folder() {
        assert_eq!(file_name("a.b:1"), Some("a.b-1.gguf".to_owned()));
        for name in ["", "../x", "a/b", ".hidden", "a\0"] {
            assert_eq!(file_name(name), None, "{name:?}");
        }
    }
}
