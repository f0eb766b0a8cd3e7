//! Where models are: what a person named, and what was pulled. Must never change a file.

use protocol::provider::model_file;
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
        let file = model_file(name)?;
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
