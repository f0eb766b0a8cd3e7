//! What clients of every kind get from the socket, with methods made for it.
#![expect(
    clippy::disallowed_methods,
    reason = "sockets that are not ours are bound to see them left alone"
)]

use super::listener::listen;
use super::*;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::core::server::{RpcModule, SubscriptionMessage};
use serde_json::{Value, json};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    directory: TempDir,
    socket: PathBuf,
    connections: Connections,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl Running {
    fn start(limits: Limits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("d.sock");
        let listener = listen(Place::named(socket.clone())).unwrap();
        let connections = Connections::default();
        let service = Service {
            activity: Default::default(),
            methods: methods().unwrap().into(),
            urgent: &["release"],
            waits: &["wait"],
            limits,
            connections: connections.clone(),
        };
        let stop = CancellationToken::new();
        let until = stop.clone();
        let served = tokio::spawn(async move { serve(&listener, service, until).await });
        Self {
            directory,
            socket,
            connections,
            stop,
            served,
        }
    }

    async fn connect(&self) -> Client {
        Client::connect(&self.socket).await
    }

    /// Waits until so many are connected.
    async fn until_connected(&self, count: u32) {
        let waiting = async {
            while self.connections.count() != count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap();
    }
}

fn methods() -> Result<RpcModule<Notify>, RegisterMethodError> {
    let mut module = RpcModule::new(Notify::new());
    module.register_method("echo", |params, _, _| {
        let text = params.as_str().unwrap_or("null").to_owned();
        serde_json::from_str::<Value>(&text).unwrap()
    })?;
    module.register_async_method("wait", |_, gate, _| async move {
        gate.notified().await;
        "released"
    })?;
    module.register_async_method("late", |_, _, _| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        "late"
    })?;
    module.register_method("release", |_, gate, _| {
        gate.notify_waiters();
        true
    })?;
    module.register_async_method("one", |params, _, _| async move { params.one::<u32>() })?;
    module.register_method::<u32, _>("boom", |_, _, _| panic!("on purpose"))?;
    module.register_method("who", |_, _, extensions| {
        let context = extensions.get::<Arc<Context>>().unwrap();
        json!({"pid": context.peer().pid, "name": context.name()})
    })?;
    // Sends notifications of 1 KiB as fast as they are taken.
    module.register_subscription("flood", "drop", "unflood", |_, pending, _, _| async move {
        let sink = pending.accept().await?;
        let text = "x".repeat(1024);
        loop {
            let id = sink.subscription_id();
            let message = SubscriptionMessage::new("drop", id, &text)?;
            if sink.send(message).await.is_err() {
                return Ok(());
            }
        }
    })?;
    Ok(module)
}

struct Client {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Client {
    async fn connect(socket: &Path) -> Self {
        let (reader, writer) = UnixStream::connect(socket).await.unwrap().into_split();
        Self {
            reader: BufReader::new(reader),
            writer,
        }
    }

    async fn send(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: Value, method: &str, params: Value) {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&format!("{call}\n")).await;
    }

    /// The next line; `None` at the end.
    async fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.reader.read_line(&mut line));
        if read.await.unwrap().unwrap_or(0) == 0 {
            return None;
        }
        Some(serde_json::from_str(&line).unwrap())
    }

    async fn next(&mut self) -> Value {
        self.line().await.expect("the connection ended")
    }

    /// The next message of a connection with headers.
    async fn framed(&mut self) -> Value {
        let read = async {
            let mut header = String::new();
            self.reader.read_line(&mut header).await.unwrap();
            let length = header.strip_prefix("Content-Length: ").unwrap().trim_end();
            let mut rest = vec![0; 2 + length.parse::<usize>().unwrap()];
            self.reader.read_exact(&mut rest).await.unwrap();
            serde_json::from_slice(&rest).unwrap()
        };
        timeout(PATIENCE, read).await.unwrap()
    }

    async fn code(&mut self) -> i64 {
        self.next().await["error"]["code"].as_i64().unwrap()
    }
}

#[tokio::test]
async fn pipelined_calls_are_all_answered() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    for id in 0..60 {
        client.call(json!(id), "echo", json!([id])).await;
    }
    for id in 0..60 {
        let answer = client.next().await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": id, "result": [id]}));
    }
}

#[tokio::test]
async fn ids_come_back_as_they_were() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    for id in [json!(null), json!(-5), json!("ü\"x"), json!(u64::MAX)] {
        client.call(id.clone(), "echo", json!([])).await;
        let answer = client.next().await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": id, "result": null}));
    }
}

#[tokio::test]
async fn batches_are_answered_as_arrays() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    client
        .send("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"},1,{\"jsonrpc\":\"2.0\",\"method\":\"echo\"},")
        .await;
    client
        .send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"nope\"},{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"flood\"}]\n")
        .await;
    let answers = client.next().await;
    assert_eq!(
        answers[0],
        json!({"jsonrpc": "2.0", "id": 1, "result": null})
    );
    assert_eq!(answers[1]["error"]["code"], -32600);
    assert_eq!(answers[1]["id"], Value::Null);
    assert_eq!(answers[2]["error"]["code"], -32601);
    assert_eq!(answers[2]["error"]["message"], "no method \"nope\"");
    assert_eq!(answers[3]["error"]["code"], -32600);
    assert_eq!(answers.as_array().unwrap().len(), 4);
    client.send("[]\n").await;
    assert_eq!(client.code().await, -32600);
    // Notifications alone get no answer: the next line is the next call's.
    client
        .send("[{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}]\n{\"jsonrpc\":\"2.0\",\"method\":\"nope\"}\n")
        .await;
    client.call(json!(9), "echo", json!(null)).await;
    assert_eq!(client.next().await["id"], 9);
}

#[tokio::test]
async fn bad_json_and_bad_requests_do_not_end_the_connection() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    client.send("{nonsense\n").await;
    assert_eq!(client.code().await, -32700);
    client.send("nonsense\n").await;
    assert_eq!(client.code().await, -32700);
    client.send("{\"id\":3}\n").await;
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(3), &json!(-32600))
    );
    client.call(json!(4), "one", json!(["x"])).await;
    let answer = client.next().await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"]["kind"], "invalid_params");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("parameters of one do not fit: "),
        "{message}"
    );
}

#[tokio::test]
async fn a_panic_costs_only_its_own_answer() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    client.call(json!(1), "boom", json!(null)).await;
    assert_eq!(client.code().await, -32603);
    client.call(json!(2), "echo", json!(null)).await;
    assert_eq!(client.next().await["id"], 2);
}

#[tokio::test]
async fn past_the_limit_of_calls_reads_go_on() {
    let server = Running::start(Limits {
        calls: 4,
        ..Limits::default()
    });
    let mut client = server.connect().await;
    for id in 0..4 {
        client.call(json!(id), "wait", json!(null)).await;
    }
    client.call(json!(4), "echo", json!(null)).await;
    let refused = client.next().await;
    assert_eq!(refused["id"], 4);
    assert_eq!(refused["error"]["code"], -32001);
    assert_eq!(refused["error"]["data"]["retryable"], true);
    client.call(json!(5), "release", json!(null)).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(client.next().await["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3, 5]);
    client.call(json!(6), "echo", json!(null)).await;
    assert_eq!(client.next().await["id"], 6);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped_and_others_are_served() {
    let server = Running::start(Limits {
        unread: Duration::from_millis(300),
        ..Limits::default()
    });
    let mut deaf = server.connect().await;
    deaf.call(json!(1), "flood", json!(null)).await;
    let mut other = server.connect().await;
    let mut calls = 0;
    server.until_connected(2).await;
    while server.connections.count() == 2 {
        other.call(json!(calls), "echo", json!(null)).await;
        assert_eq!(other.next().await["id"], calls);
        calls += 1;
    }
    assert!(
        calls > 10,
        "only {calls} calls of the other client were answered"
    );
    assert_eq!(server.connections.count(), 1);
}

#[tokio::test]
async fn a_reading_client_keeps_its_flood() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    client.call(json!("f"), "flood", json!(null)).await;
    let subscription = client.next().await["result"].clone();
    assert_eq!(subscription, "s1");
    for _ in 0..5000 {
        assert_eq!(client.next().await["params"]["subscription"], "s1");
    }
    client.call(json!("u"), "unflood", json!(["s1"])).await;
    while client.next().await["id"] != "u" {}
}

#[tokio::test]
async fn a_frame_over_the_limit_is_refused_and_the_next_one_read() {
    let server = Running::start(Limits {
        frame: 10_000,
        ..Limits::default()
    });
    let mut client = server.connect().await;
    client
        .call(json!(8), "echo", json!(["y".repeat(20_000)]))
        .await;
    // jsonrpsee's client and most others write the id before the parameters; serde_json's object is in that order too.
    let answer = client.next().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(8), &json!(-32600))
    );
    client.call(json!(9), "echo", json!(null)).await;
    assert_eq!(client.next().await["id"], 9);
    // Where no id is found, nobody could match the answer, so the connection ends.
    client.send(&"[".repeat(20_000)).await;
    assert_eq!(client.code().await, -32600);
    assert_eq!(client.line().await, None);
}

#[tokio::test]
async fn a_frame_that_is_announced_over_the_limit_is_refused_before_it_comes() {
    let server = Running::start(Limits {
        frame: 10_000,
        ..Limits::default()
    });
    let mut client = server.connect().await;
    client.send("Content-Length: 20000\r\n\r\n").await;
    let answer = client.framed().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(null), &json!(-32600))
    );
    assert_eq!(client.line().await, None);
    // With its id there, the connection goes on behind it.
    let mut client = server.connect().await;
    let head = "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"echo\",";
    client
        .send(&format!("Content-Length: 20000\r\n\r\n{head}"))
        .await;
    assert_eq!(client.framed().await["id"], 5);
    let rest = " ".repeat(20_000 - head.len());
    let next = "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"echo\"}";
    let length = next.len();
    client
        .send(&format!("{rest}Content-Length: {length}\r\n\r\n{next}"))
        .await;
    assert_eq!(client.framed().await["id"], 6);
}

#[tokio::test]
async fn garbage_of_16_mib_gets_an_error_and_is_cut() {
    let server = Running::start(Limits::default());
    for first in ["\u{1}", "{", "x"] {
        let (mut reader, mut writer) = UnixStream::connect(&server.socket)
            .await
            .unwrap()
            .into_split();
        let writing = tokio::spawn(async move {
            writer.write_all(first.as_bytes()).await?;
            let piece = vec![0xfe; 1 << 20];
            for _ in 0..17 {
                writer.write_all(&piece).await?;
            }
            writer.shutdown().await
        });
        let mut answer = String::new();
        timeout(PATIENCE, reader.read_to_string(&mut answer))
            .await
            .unwrap()
            .unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let code = answer["error"]["code"].as_i64().unwrap();
        assert!(code == -32700 || code == -32600, "{answer}");
        assert_eq!(answer["id"], Value::Null);
        let _ = writing.await.unwrap();
        let mut other = server.connect().await;
        other.call(json!(1), "echo", json!(null)).await;
        assert_eq!(other.next().await["id"], 1);
    }
}

#[tokio::test]
async fn five_hundred_connections_are_served() {
    let server = Running::start(Limits::default());
    let mut clients = Vec::new();
    for _ in 0..500 {
        clients.push(server.connect().await);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        client.call(json!(number), "echo", json!([number])).await;
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.next().await["result"], json!([number]));
    }
    assert_eq!(server.connections.count(), 500);
    drop(clients);
    server.until_connected(0).await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let server = Running::start(Limits {
        connections: 2,
        ..Limits::default()
    });
    let first = server.connect().await;
    let _second = server.connect().await;
    server.until_connected(2).await;
    let mut third = server.connect().await;
    let refused = third.next().await;
    assert_eq!(refused["error"]["code"], -32001);
    assert_eq!(third.line().await, None);
    drop(first);
    server.until_connected(1).await;
    let mut fourth = server.connect().await;
    fourth.call(json!(1), "echo", json!(null)).await;
    assert_eq!(fourth.next().await["id"], 1);
}

#[tokio::test]
async fn frames_may_arrive_byte_by_byte() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    let call = "\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"ü😀\"]}\r\n";
    for byte in call.as_bytes() {
        client.writer.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(client.next().await["result"], json!(["ü😀"]));
}

#[tokio::test]
async fn a_client_with_headers_is_answered_with_headers() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "echo", "params": {"a": 1}}).to_string();
    for _ in 0..2 {
        let length = call.len();
        client
            .send(&format!(
                "content-type: x\r\nCONTENT-LENGTH: {length}\r\n\r\n{call}"
            ))
            .await;
        assert_eq!(client.framed().await["result"], json!({"a": 1}));
    }
}

#[tokio::test]
async fn a_script_that_closes_its_half_gets_every_answer() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    client.call(json!(1), "wait", json!(null)).await;
    // The last line needs no line break.
    client
        .send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}")
        .await;
    client.writer.shutdown().await.unwrap();
    assert_eq!(client.next().await["id"], 2);
    let mut other = server.connect().await;
    other.call(json!(1), "release", json!(null)).await;
    assert_eq!(client.next().await["result"], "released");
    assert_eq!(client.line().await, None);
}

#[tokio::test]
async fn a_client_that_vanishes_with_a_call_in_flight_is_forgotten() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    client.call(json!(1), "wait", json!(null)).await;
    client.call(json!(2), "echo", json!(null)).await;
    client.next().await;
    drop(client);
    server.until_connected(0).await;
}

#[tokio::test]
async fn stopping_delivers_what_was_asked_and_removes_the_socket() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    client.call(json!(1), "late", json!(null)).await;
    client.call(json!(2), "echo", json!(null)).await;
    assert_eq!(client.next().await["id"], 2);
    server.stop.cancel();
    assert_eq!(client.line().await.unwrap()["result"], "late");
    assert_eq!(client.line().await, None);
    timeout(PATIENCE, server.served).await.unwrap().unwrap();
    assert!(!server.socket.exists());
    assert!(server.directory.path().join("d.sock.lock").exists());
}

#[tokio::test]
async fn a_handler_knows_who_calls() {
    let server = Running::start(Limits::default());
    let mut client = server.connect().await;
    client.call(json!(1), "who", json!(null)).await;
    let pid = std::process::id();
    let expected = json!({"pid": pid, "name": format!("pid {pid}")});
    assert_eq!(client.next().await["result"], expected);
}

/// Another user's thread: the kernel takes a connection's credentials from the thread that makes it.
fn as_nobody<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: needs root to act as another user");
        return None;
    }
    let thread = std::thread::spawn(move || {
        const NOBODY: libc::c_long = 65534;
        // SAFETY: the plain system call changes this thread alone, which ends with `act`.
        let done = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
        assert_eq!(done, 0);
        act()
    });
    Some(thread.join().unwrap())
}

#[tokio::test]
async fn another_user_is_refused_by_mode_and_by_credentials() {
    let server = Running::start(Limits::default());
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(server.directory.path(), open.clone()).unwrap();
    let socket = server.socket.clone();
    let connect = move || std::os::unix::net::UnixStream::connect(socket);
    let Some(by_mode) = as_nobody(connect.clone()) else {
        return;
    };
    assert_eq!(
        by_mode.unwrap_err().kind(),
        std::io::ErrorKind::PermissionDenied
    );
    std::fs::set_permissions(&server.socket, open).unwrap();
    let stream = as_nobody(connect).unwrap().unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut stream = UnixStream::from_std(stream).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["error"]["code"], -32005);
    assert_eq!(server.connections.count(), 0);
}

#[tokio::test]
async fn a_dead_socket_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("d.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let _listener = listen(Place::named(socket.clone())).unwrap();
    assert!(std::os::unix::net::UnixStream::connect(&socket).is_ok());
}

/// A socket as a daemon leaves it that was killed while it started a process: who listened is gone, and for a moment
/// somebody has its descriptors.
#[allow(clippy::disallowed_methods, reason = "a daemon that dies")]
fn dying(path: &Path) -> std::os::fd::OwnedFd {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
    use std::os::unix::process::CommandExt;
    let address = SocketAddrUnix::new(path).unwrap();
    let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::STREAM, flags, None).unwrap();
    let theirs = socket.try_clone().unwrap();
    let mut daemon = std::process::Command::new("true");
    // SAFETY: two system calls on what was made before, which any process may make between fork and exec.
    unsafe {
        daemon.pre_exec(move || {
            rustix::net::bind(&theirs, &address)?;
            Ok(rustix::net::listen(&theirs, 8)?)
        });
    }
    assert!(daemon.status().unwrap().success());
    socket
}

#[tokio::test]
async fn a_killed_daemons_last_moment_is_waited_for() {
    for with_lock in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::named(directory.path().join("d.sock"));
        let lock = std::fs::File::create(&place.lock).unwrap();
        if with_lock {
            lock.lock().unwrap();
        }
        let left = dying(&place.socket);
        assert!(std::os::unix::net::UnixStream::connect(&place.socket).is_ok());
        let mut starting = tokio::task::spawn_blocking({
            let place = place.clone();
            move || listen(place).map(drop).map_err(|error| error.to_string())
        });
        let early = timeout(Duration::from_millis(50), &mut starting).await;
        assert!(early.is_err(), "{early:?}");
        drop((left, lock));
        assert_eq!(starting.await.unwrap(), Ok(()));
    }
}

#[tokio::test]
async fn a_socket_that_is_taken_away_is_made_anew() {
    let server = Running::start(Limits::default());
    let mut old = server.connect().await;
    let lock = server.socket.with_extension("sock.lock");
    let takings: [&dyn Fn(); 4] = [
        &|| std::fs::remove_file(&server.socket).unwrap(),
        &|| std::fs::rename(&server.socket, server.directory.path().join("x")).unwrap(),
        &|| std::fs::remove_dir_all(server.directory.path()).unwrap(),
        &|| std::fs::remove_file(&lock).unwrap(),
    ];
    for (number, take) in takings.into_iter().enumerate() {
        take();
        let back = async {
            while !(server.socket.exists() && lock.exists()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, back).await.unwrap();
        let mode = std::fs::metadata(&server.socket).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "taking {number}");
        let mut client = server.connect().await;
        client.call(json!(1), "echo", json!(null)).await;
        assert_eq!(client.next().await["id"], 1, "taking {number}");
        let again = tokio::task::spawn_blocking({
            let place = Place::named(server.socket.clone());
            move || listen(place).err().map(|error| error.exit_code())
        });
        assert_eq!(again.await.unwrap(), Some(3), "the lock holds, {number}");
    }
    old.call(json!(2), "echo", json!(null)).await;
    assert_eq!(old.next().await["id"], 2, "who was connected stays so");
}

#[tokio::test]
async fn a_file_or_link_in_the_way_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link] {
        let error = listen(Place::named(path.clone())).err().unwrap();
        assert!(matches!(error, ListenError::InTheWay(_)), "{error}");
        assert_eq!(error.exit_code(), 1);
    }
    assert_eq!(std::fs::read_to_string(&link).unwrap(), "precious");
}

#[tokio::test]
async fn a_live_socket_is_never_unlinked() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("d.sock");
    // Somebody listens without our lock.
    let _theirs = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = listen(Place::named(socket.clone())).err().unwrap();
    assert!(matches!(error, ListenError::Running { .. }), "{error}");
    assert!(
        std::fs::symlink_metadata(&socket)
            .unwrap()
            .file_type()
            .is_socket()
    );
}

#[tokio::test]
async fn the_second_daemon_says_who_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (state, runtime) = (directory.path().join("state"), directory.path().join("run"));
    let first = listen(Place::usual(&state, Some(&runtime))).unwrap();
    // Without XDG_RUNTIME_DIR the socket would be another; the lock and the record are the same.
    let error = listen(Place::usual(&state, None)).err().unwrap();
    assert_eq!(error.exit_code(), 3);
    let words = error.to_string();
    let expected = format!(
        "dwelld is already running: pid {}, socket {}",
        std::process::id(),
        first.socket().display()
    );
    assert_eq!(words, expected);
    let record = listener::read_record(&state.join("dwelld.json")).unwrap();
    assert_eq!(record.pid, std::process::id());
    assert_eq!(Path::new(&record.socket), first.socket());
    drop(first);
    assert!(!state.join("dwelld.json").exists());
    assert!(!runtime.join("dwell.sock").exists());
    drop(listen(Place::usual(&state, None)).unwrap());
}

#[tokio::test]
async fn of_many_daemons_started_at_once_one_listens() {
    let directory = tempfile::tempdir().unwrap();
    let place = Place::named(directory.path().join("d.sock"));
    let runtime = tokio::runtime::Handle::current();
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (place, runtime) = (place.clone(), runtime.clone());
            std::thread::spawn(move || {
                let _context = runtime.enter();
                listen(place)
            })
        })
        .collect();
    let outcomes: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let listening = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(listening, 1);
    for error in outcomes.into_iter().filter_map(Result::err) {
        assert!(matches!(error, ListenError::Running { .. }), "{error}");
    }
}

#[tokio::test]
async fn the_socket_is_never_seen_open_to_others() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("new");
    let socket = folder.join("d.sock");
    let watched = socket.clone();
    let seen = Arc::new(AtomicUsize::new(0));
    let looks = Arc::clone(&seen);
    let watcher = std::thread::spawn(move || {
        while looks.load(Ordering::Relaxed) < 100 {
            if let Ok(found) = std::fs::symlink_metadata(&watched) {
                assert_eq!(found.permissions().mode() & 0o777, 0o600);
                looks.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    while !watcher.is_finished() {
        drop(listen(Place::named(socket.clone())).unwrap());
    }
    watcher.join().unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 100);
    drop(listen(Place::named(socket)).unwrap());
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn a_path_that_the_system_cannot_take_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("x".repeat(108));
    let error = listen(Place::named(socket)).err().unwrap();
    assert!(matches!(error, ListenError::TooLong { .. }), "{error}");
    assert!(
        error.to_string().contains("the system allows 107"),
        "{error}"
    );
}

#[tokio::test]
async fn a_directory_that_others_may_write_or_own_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("d.sock");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let error = listen(Place::named(socket.clone())).err().unwrap();
    assert!(matches!(error, ListenError::Writable(_)), "{error}");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(directory.path(), Some(65534), None).unwrap();
        let error = listen(Place::named(socket)).err().unwrap();
        assert!(
            matches!(error, ListenError::Foreign { owner: 65534, .. }),
            "{error}"
        );
    }
}
