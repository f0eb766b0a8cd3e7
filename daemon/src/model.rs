//! Local models: what there is, what can be had, and having it, once for all who ask at the same time.
//! Must never load a model, and never fetch one that nobody asked for.

mod catalogue;
mod file;
mod pull;
mod record;

use crate::process::mask::Mask;
use catalogue::Catalogue;
use protocol::provider::model_file;
use protocol::provider::{LocalModel, ModelProgress};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The table `[model]` of `config.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Another catalogue in place of the built-in one.
    pub catalogue: Option<PathBuf>,
}

/// What pulling needs from outside.
#[derive(Clone, Debug, Default)]
pub struct Means {
    /// Where models are kept.
    pub folder: PathBuf,
    pub settings: Settings,
    /// The executable that writes models in a form that is computed fast.
    pub local: Option<PathBuf>,
    /// The environment of what is run: the daemon's own.
    pub env: Arc<BTreeMap<String, String>>,
    /// What is shown nowhere of what that says.
    pub mask: Mask,
}

/// All of them; a cheap handle.
#[derive(Clone, Debug)]
pub struct Models {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    means: Means,
    /// By name. Held for a look only; it grows with the pulls that run.
    pulls: Mutex<HashMap<String, watch::Receiver<State>>>,
}

/// Why something cannot be done with a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    #[error("no model {name:?}; there are {}", .known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("{name} is being pulled: wait for its end")]
    Busy { name: String },
    #[error("{message}")]
    Disk { path: String, message: String },
    #[error("{message}")]
    Fetch { message: String },
}

/// How far a pull is. A reader sees the newest only, so a slow one holds up nobody.
#[derive(Clone, Debug)]
enum State {
    Begun,
    Progress(ModelProgress),
    Ended(Result<LocalModel, ModelError>),
}

/// A pull that somebody waits for. It goes on without him.
pub struct Pull {
    state: watch::Receiver<State>,
    /// What was told last.
    last: Option<ModelProgress>,
}

impl Models {
    pub fn new(means: Means) -> Self {
        let pulls = Mutex::default();
        Self {
            inner: Arc::new(Inner { means, pulls }),
        }
    }

    /// Those of the catalogue, then those that lie in the folder besides.
    pub async fn list(&self) -> Result<Vec<LocalModel>, ModelError> {
        let this = self.clone();
        file::blocking(move || this.look()).await
    }

    /// Whether there is a model that could be talked to.
    pub fn is_any_here(&self) -> bool {
        !file::models(&self.inner.means.folder).is_empty()
    }

    /// Fetches a model, or joins whoever does.
    pub fn pull(&self, name: &str) -> Result<Pull, ModelError> {
        let catalogue = self.catalogue()?;
        let entry = catalogue.entry(name).cloned();
        let entry = entry.ok_or_else(|| unknown(name, &catalogue))?;
        let mut pulls = self.pulls();
        if let Some(state) = pulls.get(name) {
            return Ok(Pull::of(state.clone()));
        }
        // Under the lock: a pull that has just ended has left the model.
        let shown = entry.shown(&self.inner.means.folder);
        if shown.path.is_none() {
            self.inner.means.check_engine()?;
        }
        let (tell, state) = watch::channel(State::Begun);
        let tell = Arc::new(tell);
        pulls.insert(name.to_owned(), state.clone());
        drop(pulls);
        let this = self.clone();
        tokio::spawn(async move {
            let name = entry.name.clone();
            let means = this.inner.means.clone();
            let progress = Arc::clone(&tell);
            // Whether anybody listens or not.
            let told = move |far| drop(progress.send(State::Progress(far)));
            let path = shown.path.as_ref().map(PathBuf::from);
            let whole = match path {
                Some(path) => file::blocking(move || record::check(&path)).await,
                None => Ok(false),
            };
            let ended = match whole {
                Ok(true) => Ok(shown),
                Ok(false) => pull::pull(means, entry, told).await,
                Err(error) => Err(error),
            };
            match &ended {
                Ok(model) => tracing::info!(model = name, path = model.path, "a model was pulled"),
                Err(error) => tracing::warn!(model = name, "a model was not pulled: {error}"),
            }
            this.pulls().remove(&name);
            // Whoever waits has a receiver of his own.
            let _ = tell.send(State::Ended(ended));
        });
        Ok(Pull::of(state))
    }

    /// Removes a model's file, and what was fetched of it.
    pub async fn remove(&self, name: &str) -> Result<(), ModelError> {
        if self.pulls().contains_key(name) {
            return Err(ModelError::Busy {
                name: name.to_owned(),
            });
        }
        let (this, name) = (self.clone(), name.to_owned());
        file::blocking(move || this.delete(&name)).await
    }

    fn look(&self) -> Result<Vec<LocalModel>, ModelError> {
        let folder = &self.inner.means.folder;
        let catalogue = self.catalogue()?;
        let mut all: Vec<_> = catalogue
            .models
            .iter()
            .map(|entry| entry.shown(folder))
            .collect();
        let named = catalogue.models.iter();
        let known: Vec<_> = named.map(|entry| entry.path(folder)).collect();
        for path in file::models(folder) {
            if known.contains(&path) {
                continue;
            }
            let shown = path.display().to_string();
            let stem = path.file_stem().unwrap_or_default();
            all.push(LocalModel {
                name: stem.to_string_lossy().into_owned(),
                size: path.metadata().map_or(0, |meta| meta.len()),
                path: Some(shown),
                ..LocalModel::default()
            });
        }
        Ok(all)
    }

    fn delete(&self, name: &str) -> Result<(), ModelError> {
        let folder = &self.inner.means.folder;
        let catalogue = self.catalogue()?;
        let file = model_file(name).ok_or_else(|| unknown(name, &catalogue))?;
        let path = folder.join(file);
        let there = path.exists();
        if !there && catalogue.entry(name).is_none() {
            return Err(unknown(name, &catalogue));
        }
        file::remove(&path)?;
        record::forget(&path)?;
        file::remove(&pull::part(&path))?;
        file::remove_folder(&pull::workshop(&path))
    }

    fn catalogue(&self) -> Result<Catalogue, ModelError> {
        let named = self.inner.means.settings.catalogue.as_deref();
        Catalogue::read(named).map_err(|message| ModelError::Fetch { message })
    }

    fn pulls(&self) -> MutexGuard<'_, HashMap<String, watch::Receiver<State>>> {
        self.inner
            .pulls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Means {
    /// A model that nothing here could run is not worth fetching.
    fn check_engine(&self) -> Result<(), ModelError> {
        match &self.local {
            Some(local) if local.is_file() => Ok(()),
            _ => Err(ModelError::Fetch {
                message: "there is no dwell-local to run a model with: it belongs beside dwelld (`cargo build -p dwell-local` \
                          makes it), and DWELL_LOCAL names another place"
                    .to_owned(),
            }),
        }
    }
}

impl Pull {
    fn of(state: watch::Receiver<State>) -> Self {
        Self { state, last: None }
    }

    /// How far it is, whenever it is further; none when it has ended.
    pub async fn progress(&mut self) -> Option<ModelProgress> {
        loop {
            let state = self.state.borrow_and_update().clone();
            match state {
                State::Ended(_) => return None,
                State::Progress(progress) if self.last.as_ref() != Some(&progress) => {
                    self.last = Some(progress.clone());
                    return Some(progress);
                }
                State::Progress(_) | State::Begun => self.state.changed().await.ok()?,
            }
        }
    }

    /// What came of it.
    pub fn end(self) -> Result<LocalModel, ModelError> {
        match &*self.state.borrow() {
            State::Ended(ended) => ended.clone(),
            State::Begun | State::Progress(_) => Err(ModelError::Fetch {
                message: "the pull was given up".to_owned(),
            }),
        }
    }
}

impl catalogue::Entry {
    fn path(&self, folder: &Path) -> PathBuf {
        folder.join(model_file(&self.name).unwrap_or_default())
    }

    fn shown(&self, folder: &Path) -> LocalModel {
        let path = self.path(folder);
        let there = path.metadata().ok().filter(|meta| meta.is_file());
        let damaged = there.is_some() && record::is_damaged(&path);
        let there = there.filter(|_| !damaged);
        LocalModel {
            name: self.name.clone(),
            about: Some(self.about.clone()),
            licence: Some(self.licence.clone()),
            size: there.as_ref().map_or(self.size, std::fs::Metadata::len),
            path: there.map(|_| path.display().to_string()),
            damaged,
            demo: self.demo,
        }
    }
}

fn unknown(name: &str, catalogue: &Catalogue) -> ModelError {
    ModelError::Unknown {
        name: name.to_owned(),
        known: catalogue
            .models
            .iter()
            .map(|entry| entry.name.clone())
            .collect(),
    }
}
