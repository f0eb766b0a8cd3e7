//! A server that is a child: a message a line over its stdin and stdout. Must never let what is no message do more than
//! be counted, and never listen for ever to one that says nothing else.

use crate::stdio_rpc::lines::{Ears, Mouth};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::future::Future;
use std::io;

/// Lines and bytes that are no messages, one behind the other: a server that greets, or prints what it does, is
/// borne; one that only prints is not.
const LINES: usize = 1000;
const BYTES: usize = 4 * 1024 * 1024;

pub(super) struct Stdio {
    mouth: Mouth,
    ears: Ears,
    /// What came since the last message.
    lines: usize,
    bytes: usize,
    /// It has closed its stdout: how it ends is about to be known.
    silent: bool,
}

impl Stdio {
    pub(super) fn new(mouth: Mouth, ears: Ears) -> Self {
        Self {
            mouth,
            ears,
            lines: 0,
            bytes: 0,
            silent: false,
        }
    }

    fn nonsense(&mut self, line: &[u8]) {
        self.lines += 1;
        self.bytes += line.len();
        if self.lines >= LINES || self.bytes >= BYTES {
            self.mouth
                .stop("printed what are no messages, and nothing else");
        }
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let mouth = self.mouth.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let said = mouth.say(line).await;
            said.map_err(|how| io::Error::new(io::ErrorKind::BrokenPipe, how))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(line) = self.ears.next().await else {
                self.silent = true;
                return None;
            };
            match serde_json::from_slice(&line) {
                Ok(message) => {
                    (self.lines, self.bytes) = (0, 0);
                    return Some(message);
                }
                Err(_) => self.nonsense(&line),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        if !self.silent {
            self.mouth.stop("was let go");
        }
        Ok(())
    }
}
