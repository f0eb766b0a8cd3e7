//! What a person may choose in the editor: provider, model, and what is done about questions. Must never offer what cannot
//! be had: a provider is offered when it answers.

use super::{Bridge, answer, read};
use crate::acp::convert::error::{self, Error};
use crate::link::Link;
use agent_client_protocol_schema::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode,
    SessionModeState, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest, SetSessionModeResponse,
};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use protocol::provider::{ProviderInfo, ProviderRpcClient};
use protocol::session::Session;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_local;

const PROVIDER: &str = "provider";
const MODEL: &str = "model";
const MODE: &str = "mode";

/// The choice of whatever model a provider takes by itself.
const DEFAULT: &str = "default";

/// How long an answer waits for providers that have not answered; they are offered later.
const PATIENCE: Duration = Duration::from_millis(800);

/// What is done about questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The person is asked.
    #[default]
    Ask,
    /// They are answered with yes, each for its call.
    Allow,
    /// They are answered with no.
    Deny,
}

impl Mode {
    const ALL: [Self; 3] = [Self::Ask, Self::Allow, Self::Deny];

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ask => "Ask",
            Self::Allow => "Allow all",
            Self::Deny => "Ask nothing",
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Ask => "What the permissions neither allow nor deny is asked",
            Self::Allow => {
                "What the permissions do not deny runs unasked, while this editor is there"
            }
            Self::Deny => "What the permissions do not allow does not run",
        }
    }

    fn find(id: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|mode| mode.id() == id);
        found.ok_or_else(|| {
            error::invalid(format!(
                "no mode is called \"{id}\": there are ask, allow, deny"
            ))
        })
    }

    pub(super) fn state(self) -> SessionModeState {
        let show = |mode: Self| {
            SessionMode::new(mode.id(), mode.name()).description(mode.about().to_owned())
        };
        SessionModeState::new(self.id(), Self::ALL.map(show).to_vec())
    }
}

/// The providers that answer, and their models.
pub(super) struct Catalogue {
    link: Rc<Link>,
    found: RefCell<HashMap<String, Vec<String>>>,
    /// In the daemon's order.
    names: RefCell<Vec<ProviderInfo>>,
    /// Whether all have answered.
    done: watch::Sender<bool>,
}

impl Catalogue {
    pub(super) fn new(link: Rc<Link>) -> Rc<Self> {
        Rc::new(Self {
            link,
            found: RefCell::default(),
            names: RefCell::default(),
            done: watch::Sender::new(false),
        })
    }

    /// Asks all of them, in the background.
    pub(super) fn look(self: &Rc<Self>) {
        let this = Rc::clone(self);
        spawn_local(async move {
            let listed = this
                .link
                .call(async |client| ProviderRpcClient::list(client, None).await)
                .await;
            let listed = listed.unwrap_or_default();
            *this.names.borrow_mut() = listed.clone();
            let mut asking: FuturesUnordered<_> =
                listed.into_iter().map(|one| this.ask(one.name)).collect();
            while asking.next().await.is_some() {}
            let _ = this.done.send_replace(true);
        });
    }

    async fn ask(&self, name: String) {
        let models = self
            .link
            .call(async |client| ProviderRpcClient::models(client, name.clone()).await);
        if let Ok(models) = models.await {
            let models = models.into_iter().map(|model| model.name).collect();
            self.found.borrow_mut().insert(name, models);
        }
    }

    /// What may be chosen in a session.
    pub(super) async fn options(&self, session: &Session, mode: Mode) -> Vec<SessionConfigOption> {
        let mut done = self.done.subscribe();
        let _ = tokio::time::timeout(PATIENCE, done.wait_for(|done| *done)).await;
        vec![
            self.providers(&session.provider),
            self.models(&session.provider, session.model.as_deref()),
            modes(mode),
        ]
    }

    /// Whether the daemon knows a provider of this name, as far as is known here.
    fn check(&self, name: &str) -> Result<(), Error> {
        let names = self.names.borrow();
        if names.is_empty() || names.iter().any(|info| info.name == name) {
            return Ok(());
        }
        let all: Vec<_> = names.iter().map(|info| info.name.as_str()).collect();
        Err(error::invalid(format!(
            "no provider is called \"{name}\": there are {}",
            all.join(", ")
        )))
    }

    fn providers(&self, current: &str) -> SessionConfigOption {
        let found = self.found.borrow();
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
        let found = self.found.borrow();
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

/// The modes again: editors that show options show no modes.
fn modes(current: Mode) -> SessionConfigOption {
    let show = |mode: Mode| {
        SessionConfigSelectOption::new(mode.id(), mode.name()).description(mode.about().to_owned())
    };
    let all = Mode::ALL.map(show).to_vec();
    SessionConfigOption::select(MODE, "Permissions", current.id(), all)
        .category(SessionConfigOptionCategory::Mode)
}

impl Bridge {
    pub(super) async fn set_mode(&self, params: Value) -> Result<Value, Error> {
        let asked: SetSessionModeRequest = read(params)?;
        let open = self.opened(&asked.session_id.0)?;
        open.switch_mode(Mode::find(&asked.mode_id.0)?).await;
        answer(SetSessionModeResponse::new())
    }

    pub(super) async fn set_option(&self, params: Value) -> Result<Value, Error> {
        let asked: SetSessionConfigOptionRequest = read(params)?;
        let open = self.opened(&asked.session_id.0)?;
        let value = asked.value.as_value_id();
        let value = value.ok_or_else(|| error::invalid("no option here is a yes or no"))?;
        let value = &*value.0;
        match &*asked.config_id.0 {
            PROVIDER => {
                self.catalogue.check(value)?;
                self.switch(&open.id, value, None).await?;
            }
            MODEL if value.is_empty() => return Err(error::invalid("a model has a name")),
            MODEL => {
                let session = self.found(open.id.as_str()).await?;
                let model = Some(value.to_owned()).filter(|model| model != DEFAULT);
                self.switch(&open.id, &session.provider, model).await?;
            }
            MODE => open.switch_mode(Mode::find(value)?).await,
            other => {
                return Err(error::invalid(format!(
                    "no option is called \"{other}\": there are {PROVIDER}, {MODEL}, {MODE}"
                )));
            }
        }
        let session = self.found(open.id.as_str()).await?;
        let options = self.catalogue.options(&session, open.mode.get()).await;
        answer(SetSessionConfigOptionResponse::new(options))
    }

    async fn switch(
        &self,
        session: &protocol::id::SessionId,
        provider: &str,
        model: Option<String>,
    ) -> Result<(), Error> {
        let call = self.link.call(async |client| {
            let (session, name) = (session.clone(), provider.to_owned());
            ProviderRpcClient::switch(client, session, name, model.clone()).await
        });
        call.await.map(|_| ()).map_err(error::from)
    }
}
