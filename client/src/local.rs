//! Models that run on this machine: having one pulled while a person watches, and offering that where nothing else is
//! set up. Must never have anything fetched that nobody asked for.

pub(crate) mod progress;

use crate::ask_tty::Tty;
use crate::error::Failure;
use crate::link::Link;
use crate::open::Model;
use crate::out;
use crate::paint::{Paint, Part};
use progress::Progress;
use protocol::provider::{LocalModel, ModelProgress, ModelRpcClient, ProviderRpcClient};
use protocol::session::{Session, SessionRpcClient};
use std::pin::pin;

/// The model that is offered.
const OFFERED: &str = "smollm2";
/// The provider that takes a pulled model by its name.
const PROVIDER: &str = "llama";
/// What answers where nothing is set up.
const NOTHING: &str = "stub";

/// Has a model pulled and shows how far it is. When this process ends, the daemon goes on.
pub(crate) async fn pull(link: &Link, name: &str) -> Result<LocalModel, Failure> {
    use jsonrpsee::core::client::SubscriptionClientT;
    let (connection, _) = link.connection();
    let news = connection
        .client
        .subscribe_to_method("model/progress")
        .await;
    let mut news = news.ok();
    let mut progress = Progress::start(name);
    let mut ended = pin!(ModelRpcClient::model_pull(
        &connection.client,
        name.to_owned()
    ));
    loop {
        let next = async {
            match &mut news {
                Some(news) => news.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            model = &mut ended => {
                progress.finish();
                return Ok(model?);
            }
            far = next => match far {
                Some(Ok(far)) => show(&mut progress, name, &far)?,
                Some(Err(_)) => {}
                None => news = None,
            },
        }
    }
}

/// Somebody else of this process may wait for another model.
fn show(progress: &mut Progress, name: &str, far: &ModelProgress) -> Result<(), Failure> {
    match far.name == name {
        true => progress.show(far),
        false => Ok(()),
    }
}

/// Has a model pulled, unless it is there, and gives what a session needs to talk to it.
pub(crate) async fn chosen(link: &Link, name: &str, model: &Model) -> Result<Model, Failure> {
    let pulled = pull(link, name).await?;
    tell_of_demo(&pulled)?;
    let mut model = model.clone();
    if model.provider.is_none() && model.model.is_none() {
        model.provider = Some(PROVIDER.to_owned());
        model.model = Some(name.to_owned());
    }
    Ok(model)
}

/// A new session that nothing answers in: says what the choices are and, on a terminal, offers to pull a model.
pub(crate) async fn offer(
    link: &Link,
    session: Session,
    asked: &Model,
    tty: Option<&mut Tty>,
) -> Result<Session, Failure> {
    if session.provider != NOTHING || asked.is_named() {
        return Ok(session);
    }
    let models = link.call(async |client| ModelRpcClient::model_list(client).await);
    let models = models.await.unwrap_or_default();
    let Some(model) = models.iter().find(|model| model.name == OFFERED) else {
        return Ok(session);
    };
    out::note(&choices(model))?;
    let Some(tty) = tty else {
        return Ok(session);
    };
    let question = format!("  pull {OFFERED} now? [y/N] ");
    let line = tty.ask(&question).await?.unwrap_or_default();
    if !matches!(line.trim().to_lowercase().as_str(), "y" | "yes") {
        return Ok(session);
    }
    let pulled = pull(link, OFFERED).await?;
    tell_of_demo(&pulled)?;
    let id = session.id.clone();
    link.call(async |client| {
        let (provider, model) = (PROVIDER.to_owned(), Some(OFFERED.to_owned()));
        ProviderRpcClient::switch(client, id.clone(), provider, model).await
    })
    .await?;
    link.call(async |client| SessionRpcClient::get(client, id.clone()).await)
        .await
}

/// What a session talks to, in words: the stub is told for what it is.
pub(crate) fn named(provider: &str, model: Option<&str>) -> String {
    match model {
        _ if provider == NOTHING => format!("no model ({NOTHING})"),
        Some(model) => format!("{provider} {model}"),
        None => provider.to_owned(),
    }
}

/// A new session that nobody answers in, where nobody chose the stub: its canned words would be taken for a reply, so
/// nothing is asked, and the session does not stay.
pub(crate) async fn check_answers(
    link: &Link,
    session: &Session,
    asked: &Model,
) -> Result<(), Failure> {
    if session.provider != NOTHING || asked.is_named() {
        return Ok(());
    }
    let id = session.id.clone();
    link.call(async |client| SessionRpcClient::delete(client, id.clone()).await)
        .await?;
    Err(
        Failure::new("no model is connected, so nobody can answer")
            .hint("-p NAME asks a provider, `dwell providers` lists them, `dwell model pull` fetches a model"),
    )
}

/// What is to be said of a session whose words nobody makes; nothing where a model answers.
pub(crate) fn warning(session: &Session) -> Option<String> {
    (session.provider == NOTHING).then(|| {
        let paint = Paint::of(&std::io::stderr());
        format!(
            "{} What answers in {} is the stub, with the same words every time: set a key such as ANTHROPIC_API_KEY or \
             OPENAI_API_KEY, start ollama, or `dwell model pull`; then `/provider NAME` there chooses it",
            paint.dress(Part::Bad, "no model is connected."),
            session.id,
        )
    })
}

fn choices(model: &LocalModel) -> String {
    let paint = Paint::of(&std::io::stderr());
    let head = paint.dress(Part::Bad, "no model is connected.");
    let licence = model.licence.as_deref().unwrap_or("licence unknown");
    format!(
        "{head} You can\n  \
         set a key: ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, ... (`dwell providers` lists all)\n  \
         or name a server: OPENAI_BASE_URL, or a running ollama\n  \
         or pull a small model that runs here: `dwell model pull {}` ({}, {licence}; a demo model)",
        model.name,
        progress::bytes(model.size),
    )
}

/// Nobody shall take a toy's word for more than it is.
fn tell_of_demo(model: &LocalModel) -> Result<(), Failure> {
    if !model.demo {
        return Ok(());
    }
    let paint = Paint::of(&std::io::stderr());
    let text = format!(
        "{} is a demo model: it shows how things work, and what it says is often wrong",
        model.name
    );
    out::note(&paint.dress(Part::Quiet, &text))
}
