//! A child that is spoken with in lines, by whoever knows what they mean. Must never look into one, nor keep more of them
//! than its bounds.

use super::QUEUE;
use super::talk::{attend, read_text};
use super::voice::Voice;
use crate::process::mask::Mask;
use crate::process::{self, Spawn};
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::io::BufReader;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Lines that were read and not taken yet. A child that says more waits.
const READ: usize = 16;

/// The end that speaks; a cheap handle. When the last is dropped, the child is killed.
#[derive(Clone)]
pub struct Mouth {
    shared: Arc<Shared>,
    to: mpsc::Sender<Vec<u8>>,
    _alive: Arc<DropGuard>,
}

/// The end that listens.
pub struct Ears(mpsc::Receiver<Vec<u8>>);

struct Shared {
    voice: Voice,
    /// Why it was stopped, where somebody said so.
    why: OnceLock<String>,
    /// How it ended, once it has.
    fate: OnceLock<String>,
    stop: CancellationToken,
    ended: CancellationToken,
}

/// Starts the child. `name` is what people know it by.
pub fn start(name: &str, spawn: &Spawn, mask: Mask) -> io::Result<(Mouth, Ears)> {
    let (running, pipes) = process::open(spawn)?;
    let (to, queue) = mpsc::channel(QUEUE);
    let (heard, lines) = mpsc::channel(READ);
    let stop = CancellationToken::new();
    let shared = Arc::new(Shared {
        voice: Voice::new(name, mask),
        why: OnceLock::new(),
        fate: OnceLock::new(),
        stop: stop.clone(),
        ended: CancellationToken::new(),
    });
    let own = Arc::clone(&shared);
    tokio::spawn(async move {
        let ears = (
            listen(pipes.stdout, heard),
            own.voice.complain(pipes.stderr),
        );
        let how = attend(running, pipes.stdin, queue, &own.stop, ears).await;
        let how = own.why.get().cloned().unwrap_or(how);
        let _ = own.fate.set(own.voice.end(&how));
        own.ended.cancel();
    });
    let _alive = Arc::new(stop.drop_guard());
    Ok((Mouth { shared, to, _alive }, Ears(lines)))
}

/// Ends at the end of stdout, or with the reason why what comes is not listened to any more.
async fn listen(stdout: pipe::Receiver, heard: mpsc::Sender<Vec<u8>>) -> Option<String> {
    let mut reader = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        let text = match read_text(&mut reader, &mut line).await {
            Ok(text) => text?,
            Err(why) => return Some(why),
        };
        // Who listened has gone, and lets go of the child.
        if heard.send(text.to_owned()).await.is_err() {
            return None;
        }
    }
}

impl Mouth {
    /// Waits while the child has much unread. An error is how it ended.
    pub async fn say(&self, line: Vec<u8>) -> Result<(), String> {
        match self.to.send(line).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended().await),
        }
    }

    /// Kills it; `why` stands in the message of its end, after its name.
    pub fn stop(&self, why: &str) {
        let _ = self.shared.why.set(why.to_owned());
        self.shared.stop.cancel();
    }

    /// Waits until nothing of the child is left; gives how it ended.
    pub async fn ended(&self) -> String {
        self.shared.ended.cancelled().await;
        self.shared.fate.get().cloned().unwrap_or_default()
    }
}

impl Ears {
    /// The next line, without its end; none when there are no more. May be dropped without losing one.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.0.recv().await
    }
}
