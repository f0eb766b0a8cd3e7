//! The protocol's framing as jsonrpsee's transport over a Unix socket. Must never interpret a message, but for the one with
//! which the daemon refuses the whole connection: it answers no request.

use jsonrpsee::core::client::{ReceivedMessage, TransportReceiverT, TransportSenderT};
use protocol::framing::{DEFAULT_LIMIT, Decoder, FrameError, Style, encode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// One read; a burst of small events comes in few of them.
const CHUNK: usize = 64 << 10;

/// What the daemon may send in one frame. A folded message may be larger than what it takes.
const LIMIT: usize = 4 * DEFAULT_LIMIT;

/// How every message of the daemon begins.
const BEGINNING: &[u8] = b"{\"jsonrpc\"";

/// Why a transport ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The daemon sent what is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The daemon closed the connection.
    #[error("the daemon closed the connection")]
    Closed,
    /// The daemon takes no connection now, in its words.
    #[error("{0}")]
    Refused(String),
}

/// Both halves of a connection.
pub(crate) fn split(stream: UnixStream) -> (Sender, Receiver) {
    let (reader, writer) = stream.into_split();
    let receiver = Receiver {
        reader,
        decoder: Decoder::with_style(LIMIT, Style::Lines),
        chunk: vec![0; CHUNK],
        begun: false,
    };
    (Sender { writer }, receiver)
}

/// Writes one message a line.
#[derive(Debug)]
pub(crate) struct Sender {
    writer: OwnedWriteHalf,
}

impl TransportSenderT for Sender {
    type Error = TransportError;

    async fn send(&mut self, message: String) -> Result<(), Self::Error> {
        let mut frame = Vec::with_capacity(message.len() + 1);
        encode(Style::Lines, message.as_bytes(), &mut frame);
        Ok(self.writer.write_all(&frame).await?)
    }
}

/// Reads one message a line.
#[derive(Debug)]
pub(crate) struct Receiver {
    reader: OwnedReadHalf,
    decoder: Decoder,
    chunk: Vec<u8>,
    /// Whether a message has come.
    begun: bool,
}

impl Receiver {
    /// The message in a frame. What a shell on the way says before the first one is none, whatever it looks like:
    /// start-up files print.
    fn message(&mut self, mut frame: Vec<u8>) -> Option<Vec<u8>> {
        if !self.begun {
            let mut starts = frame
                .windows(BEGINNING.len())
                .enumerate()
                .filter(|(_, at)| *at == BEGINNING);
            let (start, _) = starts.find(|(start, _)| is_message(&frame[*start..]))?;
            frame.drain(..start);
            self.begun = true;
        }
        Some(frame)
    }
}

/// Whether this is one of the daemon's.
fn is_message(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        jsonrpc: Cow<'a, str>,
        method: Option<IgnoredAny>,
        result: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Message<'_>>(text).is_ok_and(|message| {
        let says = message.method.is_some() || message.result.is_some() || message.error.is_some();
        message.jsonrpc == "2.0" && says
    })
}

/// What an error says that answers nothing that was asked.
fn refusal(message: &[u8]) -> Option<String> {
    let said: Value = serde_json::from_slice(message).ok()?;
    let nobody_asked = said.get("id").is_some_and(Value::is_null);
    let why = said["error"]["message"].as_str().filter(|_| nobody_asked)?;
    Some(why.to_owned())
}

impl TransportReceiverT for Receiver {
    type Error = TransportError;

    async fn receive(&mut self) -> Result<ReceivedMessage, Self::Error> {
        // A burst is decoded from memory without ever waiting; the budget lets those who print it have their turn
        // before the subscription's buffer is full.
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                let first = !self.begun;
                let Some(message) = self.message(frame) else {
                    continue;
                };
                let refused = if first { refusal(&message) } else { None };
                return match refused {
                    Some(why) => Err(TransportError::Refused(why)),
                    None => Ok(ReceivedMessage::Bytes(message)),
                };
            }
            let read = self.reader.read(&mut self.chunk).await?;
            if read == 0 {
                return Err(TransportError::Closed);
            }
            self.decoder.push(&self.chunk[..read]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(test);
    }

    fn bytes_of(message: ReceivedMessage) -> Vec<u8> {
        match message {
            ReceivedMessage::Bytes(bytes) => bytes,
            other => panic!("expected bytes, got {other:?}"),
        }
    }

    #[test]
    fn messages_arrive_whole_however_they_were_split() {
        run(async {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let (_sender, mut receiver) = split(ours);
            let writing = async {
                for piece in ["{\"jsonrpc\":\"2.0\",\"result\":", "\"ü\"}\n{}", "\n"] {
                    theirs.write_all(piece.as_bytes()).await.unwrap();
                    tokio::task::yield_now().await;
                }
            };
            let reading = async {
                let first = receiver.receive().await.unwrap();
                (first, receiver.receive().await.unwrap())
            };
            let ((), (first, second)) = tokio::join!(writing, reading);
            assert_eq!(
                bytes_of(first),
                "{\"jsonrpc\":\"2.0\",\"result\":\"ü\"}".as_bytes()
            );
            assert_eq!(bytes_of(second), b"{}");
        });
    }

    #[test]
    fn what_a_shell_says_before_the_first_message_is_passed_over() {
        run(async {
            const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
            for greeting in [
                "Welcome to box\n\n[1] a {brace}\n",
                "no line: ",
                "",
                "{\"motd\": \"hello\", \"id\": 1}\n{}\n",
                "{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"1.0\",\"result\":1} ",
            ] {
                let (ours, mut theirs) = UnixStream::pair().unwrap();
                let (_sender, mut receiver) = split(ours);
                let said = format!("{greeting}{MESSAGE}\n{{}}\n");
                theirs.write_all(said.as_bytes()).await.unwrap();
                let first = bytes_of(receiver.receive().await.unwrap());
                assert_eq!(first, MESSAGE.as_bytes(), "{greeting:?}");
                assert_eq!(bytes_of(receiver.receive().await.unwrap()), b"{}");
            }
        });
    }

    #[test]
    fn a_closed_connection_is_an_error_and_not_silence() {
        run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (_sender, mut receiver) = split(ours);
            drop(theirs);
            let error = receiver.receive().await.unwrap_err();
            assert!(matches!(error, TransportError::Closed), "{error}");
        });
    }
}
