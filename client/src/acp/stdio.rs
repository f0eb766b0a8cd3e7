//! Standard input and output, each in a thread of its own: neither a peer that does not read nor one that says nothing
//! holds up the other direction. Must never know what the bytes mean.

use std::io::{Read as _, Write as _};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// Read at once.
const CHUNK: usize = 64 << 10;

/// Pieces of input that wait; then the peer waits.
const READ_AHEAD: usize = 4;

/// Messages that wait for a peer to read; then those who write wait.
const WRITTEN_AHEAD: usize = 64;

/// How long what was said last may take to be read when there is no more to come.
const DRAIN: Duration = Duration::from_secs(2);

/// What comes in; its end is the end of standard input.
pub(super) fn input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    // Ends with standard input, or with the process.
    std::thread::spawn(move || {
        let mut chunk = vec![0; CHUNK];
        let mut stdin = std::io::stdin().lock();
        loop {
            match stdin.read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => {
                    if sender.blocking_send(chunk[..read].to_vec()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    receiver
}

/// Where messages go out, in order.
pub(super) struct Output {
    /// Whole frames. Closed when nobody reads standard output any more.
    pub(super) frames: mpsc::Sender<Vec<u8>>,
    thread: JoinHandle<()>,
}

/// Starts writing.
pub(super) fn output() -> Output {
    let (frames, mut receiver) = mpsc::channel::<Vec<u8>>(WRITTEN_AHEAD);
    let thread = std::thread::spawn(move || {
        let mut stdout = std::io::stdout().lock();
        while let Some(frame) = receiver.blocking_recv() {
            let written = stdout.write_all(&frame).and_then(|()| stdout.flush());
            if frame.is_empty() || written.is_err() {
                return;
            }
        }
    });
    Output { frames, thread }
}

impl Output {
    /// Waits until what was said is written, unless nobody reads it. An empty frame is the last: others may hold the
    /// sender for ever.
    pub(super) async fn drain(self) {
        let end = tokio::time::Instant::now() + DRAIN;
        let _ = tokio::time::timeout_at(end, self.frames.send(Vec::new())).await;
        while !self.thread.is_finished() && tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}
