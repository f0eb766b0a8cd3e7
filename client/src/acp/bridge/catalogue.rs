//! The providers that answer in a directory, and their models. Must never offer what cannot be had.

use super::choices::{Mode, modes};
use crate::acp::convert::error::{self, Error};
use crate::link::Link;
use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use protocol::provider::{ProviderInfo, ProviderRpcClient};
use protocol::session::Session;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_local;

pub(super) const PROVIDER: &str = "provider";
pub(super) const MODEL: &str = "model";

/// The choice of whatever model a provider takes by itself.
pub(super) const DEFAULT: &str = "default";

/// How long an answer waits for providers that have not answered; they are offered later.
const PATIENCE: Duration = Duration::from_millis(800);

/// What may be chosen, by directory: a plugin's provider is there in the directories that have the plugin.
pub(super) struct Catalogue {
    link: Rc<Link>,
    found: RefCell<HashMap<String, Rc<Found>>>,
}

/// The providers of one directory.
struct Found {
    /// Those that have answered.
    models: RefCell<HashMap<String, Vec<String>>>,
    /// All, in the daemon's order.
    names: RefCell<Vec<ProviderInfo>>,
    /// Whether all have answered.
    done: watch::Sender<bool>,
}

impl Catalogue {
    pub(super) fn new(link: Rc<Link>) -> Rc<Self> {
        Rc::new(Self {
            link,
            found: RefCell::default(),
        })
    }

    /// Asks all providers of a directory, in the background; again, if it is known: it may have been trusted since.
    pub(super) fn look(self: &Rc<Self>, cwd: &str) {
        let found = self.of(cwd);
        if !found.done.send_replace(false) {
            return;
        }
        let (this, cwd) = (Rc::clone(self), cwd.to_owned());
        spawn_local(async move {
            this.ask_all(&cwd, &found).await;
            let _ = found.done.send_replace(true);
        });
    }

    fn of(&self, cwd: &str) -> Rc<Found> {
        let mut all = self.found.borrow_mut();
        let new = || {
            Rc::new(Found {
                models: RefCell::default(),
                names: RefCell::default(),
                done: watch::Sender::new(true),
            })
        };
        Rc::clone(all.entry(cwd.to_owned()).or_insert_with(new))
    }

    async fn ask_all(&self, cwd: &str, found: &Found) {
        let listed = self
            .link
            .call(async |client| ProviderRpcClient::list(client, Some(cwd.to_owned())).await);
        let Ok(listed) = listed.await else { return };
        found.names.borrow_mut().clone_from(&listed);
        let asking = listed.into_iter().map(|one| self.ask(cwd, found, one.name));
        let mut asking: FuturesUnordered<_> = asking.collect();
        while asking.next().await.is_some() {}
    }

    async fn ask(&self, cwd: &str, found: &Found, name: String) {
        let models = self.link.call(async |client| {
            ProviderRpcClient::models(client, name.clone(), Some(cwd.to_owned())).await
        });
        let models = models.await;
        let mut known = found.models.borrow_mut();
        match models {
            Ok(models) => {
                let models = models.into_iter().map(|model| model.name).collect();
                known.insert(name, models);
            }
            Err(_) => drop(known.remove(&name)),
        }
    }

    /// What may be chosen in a session.
    pub(super) async fn options(&self, session: &Session, mode: Mode) -> Vec<SessionConfigOption> {
        let found = self.of(&session.cwd);
        let mut done = found.done.subscribe();
        let _ = tokio::time::timeout(PATIENCE, done.wait_for(|done| *done)).await;
        vec![
            found.providers(&session.provider),
            found.models(&session.provider, session.model.as_deref()),
            modes(mode),
        ]
    }

    /// Whether the daemon knows a provider of this name there, as far as is known here.
    pub(super) fn check(&self, cwd: &str, name: &str) -> Result<(), Error> {
        let found = self.of(cwd);
        let names = found.names.borrow();
        if names.is_empty() || names.iter().any(|info| info.name == name) {
            return Ok(());
        }
        let all: Vec<_> = names.iter().map(|info| info.name.as_str()).collect();
        Err(error::invalid(format!(
            "no provider is called \"{name}\": there are {}",
            all.join(", ")
        )))
    }
}

impl Found {
    fn providers(&self, current: &str) -> SessionConfigOption {
        let found = self.models.borrow();
        let names = self.names.borrow();
        let names = names.iter().map(|info| info.name.as_str());
        let mut offered: Vec<&str> = names
            .filter(|name| *name == current || found.contains_key(*name))
            .collect();
        if !offered.contains(&current) {
            offered.insert(0, current);
        }
        let all: Vec<_> = offered.into_iter().map(choice).collect();
        SessionConfigOption::select(PROVIDER, "Provider", current.to_owned(), all)
            .description("Who runs the model".to_owned())
            .category(SessionConfigOptionCategory::Other("_provider".to_owned()))
    }

    fn models(&self, provider: &str, current: Option<&str>) -> SessionConfigOption {
        let found = self.models.borrow();
        let known = found.get(provider).map(Vec::as_slice).unwrap_or_default();
        let usual = self.names.borrow();
        let usual = usual.iter().find(|info| info.name == provider);
        let usual = usual.and_then(|info| info.default_model.as_deref());
        let name = match usual {
            Some(model) => format!("Default ({model})"),
            None => "Default".to_owned(),
        };
        let mut all = vec![SessionConfigSelectOption::new(DEFAULT, name)];
        all.extend(known.iter().map(|model| choice(model)));
        if let Some(current) = current
            && !known.iter().any(|model| model == current)
        {
            all.push(choice(current));
        }
        let current = current.unwrap_or(DEFAULT).to_owned();
        SessionConfigOption::select(MODEL, "Model", current, all)
            .category(SessionConfigOptionCategory::Model)
    }
}

fn choice(name: &str) -> SessionConfigSelectOption {
    SessionConfigSelectOption::new(name.to_owned(), name)
}
