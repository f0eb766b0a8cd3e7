//! A server that answers: its handshake, requests and their ends. Must never wait for one longer than a limit says, nor
//! let a request be forgotten that nobody waits for any more.

use super::Around;
use super::config::{Config, How};
use super::face::{Face, root};
use super::http;
use super::oauth::Bearer;
use super::progress::{Calls, Tell};
use super::shown::Shown;
use super::stdio::Stdio;
use super::throttle::Throttle;
use crate::process::Spawn;
use crate::process::mask::Mask;
use crate::stdio_rpc::lines::{self, Mouth};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientNotification, ClientRequest, ProtocolVersion, RequestId, ServerResult,
    SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, PeerRequestOptions, RunningService,
    ServiceError, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often a server may ask for more before it gives a result.
const ROUNDS: usize = 10;
/// How long the death of a child may take to be known, when it has closed its stdout.
const DEATH: Duration = Duration::from_secs(3);
/// The longest text of an error that is shown.
const ERROR: usize = 600;

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// It wants to know who somebody is.
    Login(String),
    Failed(String),
}

impl Failure {
    pub fn text(&self) -> &str {
        match self {
            Self::Login(text) | Self::Failed(text) => text,
        }
    }

    fn shown(self, shown: &Shown) -> Self {
        match self {
            Self::Login(text) => Self::Login(shown.text(&text)),
            Self::Failed(text) => Self::Failed(shown.text(&text)),
        }
    }
}

/// When the last handle is dropped, the server is let go; a child is killed.
pub struct Connection {
    label: String,
    cwd: PathBuf,
    peer: Peer<RoleClient>,
    calls: Calls,
    /// How long a call may take without a sign of progress.
    call: Duration,
    shown: Shown,
    end: Arc<End>,
    /// Told when a list is another than before.
    pub changed: Arc<Notify>,
    _alive: DropGuard,
}

/// How it ended, once it has.
#[derive(Default)]
pub struct End {
    how: OnceLock<String>,
    ended: CancellationToken,
}

impl End {
    /// Waits for the end, and gives how it came about.
    pub async fn came(&self) -> String {
        self.ended.cancelled().await;
        self.how.get().cloned().unwrap_or_default()
    }

    fn is(&self, how: String) {
        let _ = self.how.set(how);
        self.ended.cancel();
    }
}

type Service = RunningService<RoleClient, Face>;

impl Connection {
    /// Starts or reaches the server, and agrees with it on a version.
    pub async fn open(config: &Config, around: &Around) -> Result<Self, Failure> {
        let opened = match Self::open_as(config, around, newest()).await {
            Err(Missed::Puzzled(_)) => {
                // What it made of a question that it does not know is no sign that it would not take a handshake.
                Self::open_as(config, around, ClientLifecycleMode::Initialize).await
            }
            other => other,
        };
        opened.map_err(|missed| missed.failure().shown(&Shown::of(config)))
    }

    async fn open_as(
        config: &Config,
        around: &Around,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, Missed> {
        let label = label(&config.name);
        let stop = CancellationToken::new();
        // A start that is given up takes the child along.
        let alive = stop.clone().drop_guard();
        let (calls, changed) = (Calls::default(), Arc::new(Notify::new()));
        let face = Face {
            cwd: around.cwd.clone(),
            calls: calls.clone(),
            changed: Arc::clone(&changed),
        };
        let serving = Serving {
            face,
            lifecycle,
            stop,
        };
        let (service, mouth) = match &config.how {
            How::Child { .. } => {
                let (service, mouth) = child(&label, config, around, serving).await?;
                (service, Some(mouth))
            }
            How::Http { url, headers, .. } => {
                let bearer = Bearer::of(url, around.tokens.clone()).await;
                let transport = http::transport(url, headers, bearer).await;
                let transport = transport.map_err(|why| {
                    Missed::For(Failure::Failed(format!("{label} cannot be reached: {why}")))
                })?;
                let service = serving.on(transport).await;
                let service = service.map_err(|error| unreachable(&label, &config.name, &error))?;
                (service, None)
            }
        };
        let peer = service.peer().clone();
        let end = Arc::new(End::default());
        let shown = Shown::of(config);
        let told = (label.clone(), shown.clone());
        tokio::spawn(keep(service, mouth, told, Arc::clone(&end)));
        listen(&peer, &changed, &end);
        Ok(Self {
            label,
            cwd: around.cwd.clone(),
            peer,
            calls,
            call: config.call.unwrap_or(around.settings.call()),
            shown,
            end,
            changed,
            _alive: alive,
        })
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    pub fn has_ended(&self) -> bool {
        self.end.ended.is_cancelled()
    }

    /// Its end, for who must not keep it alive.
    pub fn end(&self) -> Arc<End> {
        Arc::clone(&self.end)
    }

    /// What it is and speaks: name, version, and the protocol's version.
    pub fn about(&self) -> String {
        let Some(info) = self.peer.peer_info() else {
            return String::new();
        };
        let who = info.server_info.as_ref();
        let who = who.map(|who| format!("{} {}, ", who.name, who.version));
        format!("{}MCP {}", who.unwrap_or_default(), info.protocol_version)
    }

    /// Whether it says that it has these (`tools`, `prompts`, `resources`). One that says nothing at all may have tools.
    pub(super) fn offers(&self, what: &str) -> bool {
        let info = self.peer.peer_info();
        let can = info.and_then(|info| serde_json::to_value(&info.capabilities).ok());
        let has = |what: &str| can.as_ref().is_some_and(|can| can[what].is_object());
        let silent = || !["tools", "prompts", "resources"].into_iter().any(has);
        has(what) || (what == "tools" && silent())
    }

    /// Runs a tool. `tell` gets its progress.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        tell: Tell,
    ) -> Result<Value, String> {
        let mut params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        for _ in 0..ROUNDS {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            let mut result = self.ask_telling(request, self.call, Some(&tell)).await?;
            match result["resultType"].as_str() {
                Some("input_required") => {}
                Some("task") => {
                    return Err(format!(
                        "{} answered with a task, which was not asked for",
                        self.label
                    ));
                }
                _ => return Ok(result),
            }
            let asked = result["inputRequests"].take();
            params.input_responses = Some(self.inputs(&asked)?);
            params.request_state = result["requestState"].as_str().map(str::to_owned);
        }
        Err(format!(
            "{} asked for more {ROUNDS} times and gave no result",
            self.label
        ))
    }

    /// What it may know of dwell: where the work is, and that nobody answers its questions.
    fn inputs(&self, asked: &Value) -> Result<BTreeMap<String, Value>, String> {
        let answer = |(key, request): (&String, &Value)| {
            let answer = match request["method"].as_str() {
                Some("roots/list") => json!({"roots": [root(&self.cwd)]}),
                Some("elicitation/create") => json!({"action": "decline"}),
                other => {
                    let what = other.unwrap_or("something");
                    return Err(format!(
                        "{} asks for {what}, which dwell does not give",
                        self.label
                    ));
                }
            };
            Ok((key.clone(), answer))
        };
        asked
            .as_object()
            .into_iter()
            .flatten()
            .map(answer)
            .collect()
    }

    /// Sends a request; its answer as it stands on the wire.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<Value, String> {
        self.ask_telling(request, limit, None).await
    }

    async fn ask_telling(
        &self,
        request: ClientRequest,
        limit: Duration,
        tell: Option<&Tell>,
    ) -> Result<Value, String> {
        let options = PeerRequestOptions::with_timeout(limit).reset_timeout_on_progress();
        let handle = match self.peer.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => return Err(self.fault(error).await),
        };
        let _told = tell.map(|tell| self.calls.tell(&handle.progress_token, Arc::clone(tell)));
        let mut abandoned = Abandoned {
            peer: &self.peer,
            id: Some(handle.id.clone()),
        };
        let answer = handle.await_response().await;
        abandoned.id = None;
        // Progress that came before the answer is told by tasks that may not have run yet.
        tokio::task::yield_now().await;
        match answer {
            Ok(result) => value(&result),
            Err(error) => Err(self.fault(error).await),
        }
    }

    async fn fault(&self, error: ServiceError) -> String {
        self.shown.text(&self.cause(error).await)
    }

    async fn cause(&self, error: ServiceError) -> String {
        let label = &self.label;
        match error {
            ServiceError::McpError(error) => format!("{label}: {}", short(&error.message)),
            ServiceError::Timeout { timeout } => {
                format!("{label} did not answer within {} s", timeout.as_secs_f64())
            }
            ServiceError::TransportClosed => {
                match tokio::time::timeout(DEATH, self.end.came()).await {
                    Ok(how) => how,
                    Err(_) => format!("{label} closed the connection"),
                }
            }
            ServiceError::UnexpectedResponse => {
                format!("{label} answered something else than was asked")
            }
            ServiceError::TransportSend(error) => {
                format!(
                    "{label} cannot be reached: {}",
                    short(&http::cause(&*error.error))
                )
            }
            other => format!("{label}: {}", short(&other.to_string())),
        }
    }
}

pub(super) fn label(name: &str) -> String {
    format!("the MCP server {name}")
}

fn value(result: &ServerResult) -> Result<Value, String> {
    serde_json::to_value(result).map_err(|error| error.to_string())
}

/// A request that nobody waits for any more is told to the server.
struct Abandoned<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        let peer = self.peer.clone();
        let reason = "nobody waits for it any more".to_owned();
        let params = CancelledNotificationParam::new(Some(id), Some(reason));
        // It is over with the connection, at the latest.
        tokio::spawn(async move {
            let cancelled =
                ClientNotification::CancelledNotification(CancelledNotification::new(params));
            let _ = peer.send_notification(cancelled).await;
        });
    }
}

/// Why a start came to nothing.
enum Missed {
    For(Failure),
    /// It answered, but nothing that fits.
    Puzzled(Failure),
}

impl Missed {
    fn failure(self) -> Failure {
        match self {
            Self::For(failure) | Self::Puzzled(failure) => failure,
        }
    }
}

/// Whether a server answered what was not asked, or refused to be asked like that.
fn is_puzzled(error: &ClientInitializeError) -> bool {
    matches!(
        error,
        ClientInitializeError::ExpectedInitResult(_)
            | ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::JsonRpcError(_)
            | ClientInitializeError::TransportError { .. }
    )
}

async fn child(
    label: &str,
    config: &Config,
    around: &Around,
    serving: Serving,
) -> Result<(Service, Mouth), Missed> {
    let How::Child {
        command,
        args,
        env,
        cwd,
    } = &config.how
    else {
        unreachable!("only a child is started");
    };
    let mut all = (*around.env).clone();
    all.extend(env.clone());
    let spawn = Spawn {
        program: command.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: cwd.clone(),
        env: all,
        stdin: None,
        timeout: None,
    };
    let mask = hidden(&around.mask, env.iter().chain(&config.variables));
    let (mouth, ears) = lines::start(label, &spawn, mask)
        .map_err(|error| Missed::For(Failure::Failed(format!("{label} did not start: {error}"))))?;
    match serving.on(Stdio::new(mouth.clone(), ears)).await {
        Ok(service) => Ok((service, mouth)),
        Err(error) => {
            // How it ended says more than that it did; what is said here counts only for one that lives.
            let gone = matches!(
                error,
                ClientInitializeError::ConnectionClosed(_)
                    | ClientInitializeError::TransportError { .. }
            );
            if gone && let Ok(how) = tokio::time::timeout(DEATH, mouth.ended()).await {
                return Err(Missed::For(Failure::Failed(how)));
            }
            let puzzled = is_puzzled(&error);
            mouth.stop(&format!(
                "does not speak MCP: {}",
                short(&error.to_string())
            ));
            let failure = Failure::Failed(mouth.ended().await);
            Err(match puzzled {
                true => Missed::Puzzled(failure),
                false => Missed::For(failure),
            })
        }
    }
}

/// Values of variables that are named like keys.
fn hidden<'a>(mask: &Mask, values: impl Iterator<Item = (&'a String, &'a String)>) -> Mask {
    let secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        ["KEY", "TOKEN", "SECRET", "PASSWORD"]
            .iter()
            .any(|word| name.contains(word))
    };
    let values = values.filter(|(name, _)| secret(name));
    mask.and(values.map(|(_, value)| value.clone()))
}

/// What a connection is served with.
struct Serving {
    face: Face,
    lifecycle: ClientLifecycleMode,
    stop: CancellationToken,
}

impl Serving {
    async fn on<T>(self, transport: T) -> Result<Service, ClientInitializeError>
    where
        T: Transport<RoleClient> + Send + 'static,
    {
        let transport = Throttle::new(transport);
        serve_client_with_lifecycle_and_ct(self.face, transport, self.lifecycle, self.stop).await
    }
}

/// What comes first is what is asked for; a server that knows no version without a handshake gets one.
fn newest() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn unreachable(label: &str, name: &str, error: &ClientInitializeError) -> Missed {
    if error.is_authorization_required() || error.auth_challenge().is_some() {
        let wanted = format!("{label} wants a login: /mcp login {name}");
        return Missed::For(Failure::Login(wanted));
    }
    let failure = Failure::Failed(format!("{label} cannot be reached: {}", told(error)));
    match is_puzzled(error) {
        true => Missed::Puzzled(failure),
        false => Missed::For(failure),
    }
}

/// The cause, without the names of what it came through.
fn told(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => short(&http::cause(&*error.error)),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => told(fallback),
        other => short(&other.to_string()),
    }
}

/// Holds the service to its end, and says how it came about.
async fn keep(
    service: Service,
    mouth: Option<Mouth>,
    (label, shown): (String, Shown),
    end: Arc<End>,
) {
    let _ = service.waiting().await;
    let how = match mouth {
        Some(mouth) => mouth.ended().await,
        None => format!("{label} closed the connection"),
    };
    end.is(shown.text(&how));
}

/// Where there is no handshake, news of lists has to be asked for.
fn listen(peer: &Peer<RoleClient>, changed: &Arc<Notify>, end: &Arc<End>) {
    let modern = peer
        .peer_info()
        .is_some_and(|info| !info.protocol_version.has_initialize());
    if !modern {
        return;
    }
    let filter = SubscriptionFilter::builder()
        .tools_list_changed()
        .prompts_list_changed()
        .resources_list_changed()
        .build();
    let (peer, changed, end) = (peer.clone(), Arc::clone(changed), Arc::clone(end));
    tokio::spawn(async move {
        let hearing = async {
            let mut news = peer.listen(filter).await.ok()?;
            while let Ok(Some(_)) = news.next().await {
                changed.notify_one();
            }
            Some(())
        };
        tokio::select! {
            _ = hearing => {}
            _ = end.came() => {}
        }
    });
}

/// The beginning of a text that may be long.
fn short(text: &str) -> String {
    match text.char_indices().nth(ERROR) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
