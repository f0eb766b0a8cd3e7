//! What the unit tests of this crate share: events from the JSON they travel as, and a daemon that says what it is told.

use crate::place::Place;
use protocol::event::Event;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// An event of the session `s` and the turn `s.t1`.
pub(crate) fn event(seq: u64, kind: Value) -> Event {
    serde_json::from_value(event_json(seq, kind)).unwrap()
}

/// The same as it travels.
pub(crate) fn event_json(seq: u64, kind: Value) -> Value {
    let mut whole = json!({"session": "s", "seq": seq, "at": 0, "turn": "s.t1"});
    let (Some(object), Value::Object(kind)) = (whole.as_object_mut(), kind) else {
        panic!("an event is an object");
    };
    object.extend(kind);
    whole
}

/// Runs a test on a runtime like the client's.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limit = std::time::Duration::from_secs(20);
    runtime
        .block_on(async { tokio::time::timeout(limit, test).await })
        .expect("the test hangs");
}

/// What a scripted daemon does about a request.
pub(crate) enum Act {
    /// Answers it.
    Answer(Value),
    /// Refuses it.
    Refuse(Value),
    /// Sends an event of the subscription `sub`.
    Send(Value),
    /// Hangs up.
    Close,
}

type Script = dyn FnMut(usize, &str, &Value) -> Vec<Act> + Send;

/// A daemon in a directory of its own: for each request, by the number of its connection, it does what the script says.
pub(crate) struct ScriptedDaemon {
    pub(crate) place: Place,
    folder: PathBuf,
}

impl ScriptedDaemon {
    /// Listens. `initialize` is answered without the script, unless it has something to say.
    pub(crate) fn start(
        name: &str,
        script: impl FnMut(usize, &str, &Value) -> Vec<Act> + Send + 'static,
    ) -> Self {
        let folder = std::env::temp_dir().join(format!("dwell-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("d.sock");
        #[expect(clippy::disallowed_methods, reason = "a daemon of the test's own")]
        let listener = UnixListener::bind(&socket).unwrap();
        let script: Arc<Mutex<Script>> = Arc::new(Mutex::new(script));
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                tokio::spawn(serve(stream, connection, Arc::clone(&script)));
            }
        });
        Self {
            place: Place {
                given: Some(socket.clone()),
                socket,
                state: folder.clone(),
                remote: None,
            },
            folder,
        }
    }
}

impl Drop for ScriptedDaemon {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn serve(stream: UnixStream, connection: usize, script: Arc<Mutex<Script>>) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let method = request["method"].as_str().unwrap().to_string();
        let mut acts = script.lock().unwrap()(connection, &method, &request["params"]);
        if acts.is_empty() && method == "initialize" {
            acts.push(Act::Answer(hello(protocol::version::PROTOCOL)));
        }
        for act in acts {
            let id = &request["id"];
            let message = match act {
                Act::Answer(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                Act::Refuse(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
                Act::Send(event) => json!({
                    "jsonrpc": "2.0", "method": "session/event",
                    "params": {"subscription": "sub", "result": event}
                }),
                Act::Close => return,
            };
            let line = message.to_string() + "\n";
            if writer.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// The answer to `initialize`.
pub(crate) fn hello(protocol: u32) -> Value {
    json!({
        "protocol": protocol, "capabilities": {},
        "daemon": {"name": "dwelld", "version": "7.8.9", "pid": 1, "started_at": 0}
    })
}
