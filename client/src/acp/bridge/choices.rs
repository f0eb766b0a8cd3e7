//! What a person chooses in the editor: provider, model, and what is done about questions. Must never take silence for a
//! choice.

use super::catalogue::{DEFAULT, MODEL, PROVIDER};
use super::{Bridge, answer, read};
use crate::acp::convert::error::{self, Error};
use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse,
};
use protocol::provider::ProviderRpcClient;
use serde_json::Value;

const MODE: &str = "mode";

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

/// The modes again: editors that show options show no modes.
pub(super) fn modes(current: Mode) -> SessionConfigOption {
    let show = |mode: Mode| {
        SessionConfigSelectOption::new(mode.id(), mode.name()).description(mode.about().to_owned())
    };
    let all = Mode::ALL.map(show).to_vec();
    SessionConfigOption::select(MODE, "Permissions", current.id(), all)
        .category(SessionConfigOptionCategory::Mode)
}

/// Whether it is the mode that is set among the options.
pub(super) fn is_mode(params: &Value) -> bool {
    params["configId"] == MODE
}

impl Bridge {
    pub(super) async fn set_mode(&self, params: Value) -> Result<Value, Error> {
        let asked: SetSessionModeRequest = read(params)?;
        let open = self.opened(&asked.session_id.0)?;
        open.switch_mode(Mode::find(&asked.mode_id.0)?).await;
        // Editors that show options show no modes, and the other way round: both have to agree.
        let session = self.found(open.id.as_str()).await?;
        let options = self.catalogue.options(&session, open.mode.get()).await;
        let update = ConfigOptionUpdate::new(options);
        open.send(SessionUpdate::ConfigOptionUpdate(update)).await;
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
                self.catalogue.check(&open.cwd, value)?;
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
