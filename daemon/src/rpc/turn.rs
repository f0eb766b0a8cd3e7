//! `turn/*`. Must never answer `turn/wait` before the turn's events stand in the caller's queue.

use super::attachments::Concerns;
use super::error::fail;
use super::session::recorded;
use super::{Rpc, caller};
use crate::session::{Prompt, WhenBusy};
use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::error::{ErrorKind, RpcError};
use protocol::event::Image;
use protocol::id::{SessionId, TurnId};
use protocol::session::Recorded;
use protocol::turn::{Cancelled, Ended, Started, TurnRpcServer};

#[async_trait]
impl TurnRpcServer for Rpc {
    async fn start(
        &self,
        extensions: &Extensions,
        session: SessionId,
        text: String,
        images: Option<Vec<Image>>,
        token: Option<String>,
        queue: Option<bool>,
        mentions: Option<bool>,
    ) -> Result<Started, ErrorObjectOwned> {
        let about = Concerns::Session(&session);
        let context = self.check_controls(extensions, about, "start a turn")?;
        let images = images.unwrap_or_default();
        images.iter().try_for_each(check_image)?;
        let text = match mentions {
            Some(false) => text,
            Some(true) | None => {
                let whole = self.sessions().with_resources(&session, text).await;
                whole.map_err(fail)?
            }
        };
        let prompt = Prompt {
            text,
            images,
            token,
            client: context.client().map(|client| client.name),
            when_busy: match queue {
                Some(true) => WhenBusy::Queue,
                _ => WhenBusy::Refuse,
            },
        };
        self.sessions().start(&session, prompt).await.map_err(fail)
    }

    async fn steer(
        &self,
        extensions: &Extensions,
        session: SessionId,
        text: String,
    ) -> Result<Recorded, ErrorObjectOwned> {
        self.check_controls(extensions, Concerns::Session(&session), "steer the turn")?;
        let text = self.sessions().with_resources(&session, text).await;
        recorded(self.sessions().steer(&session, text.map_err(fail)?).await)
    }

    async fn cancel(
        &self,
        extensions: &Extensions,
        session: SessionId,
        turn: Option<TurnId>,
    ) -> Result<Cancelled, ErrorObjectOwned> {
        self.check_controls(extensions, Concerns::Session(&session), "cancel the turn")?;
        self.sessions().cancel(&session, turn).await.map_err(fail)
    }

    async fn wait(&self, extensions: &Extensions, turn: TurnId) -> Result<Ended, ErrorObjectOwned> {
        let context = caller(extensions)?;
        let waited = async {
            let ended = self.sessions().wait(&turn).await.map_err(fail)?;
            let about = Concerns::PartOfSession(turn.as_str());
            let attachments = &self.0.attachments;
            attachments.delivered(context.id(), about, ended.seq).await;
            Ok(ended)
        };
        tokio::select! {
            ended = waited => ended,
            // Nobody is left to be told.
            () = context.gone() => Err(gone(&turn)),
        }
    }
}

fn gone(turn: &TurnId) -> ErrorObjectOwned {
    let why = format!("the connection ended while it waited for turn {turn}");
    RpcError::new(ErrorKind::Overloaded, why).into()
}

fn check_image(image: &Image) -> Result<(), ErrorObjectOwned> {
    let refused = |why| Err(RpcError::new(ErrorKind::InvalidParams, why).into());
    image.fault().map_or(Ok(()), refused)
}
