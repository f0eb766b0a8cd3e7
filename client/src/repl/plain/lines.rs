//! Lines of stdin for the plain REPL. Must never read one before it is asked for.

use std::io::BufRead;
use std::sync::mpsc as blocking;
use tokio::sync::mpsc;

/// Lines of stdin, one for each request, so that none is read ahead.
pub(super) struct Lines {
    wanted: blocking::SyncSender<()>,
    lines: mpsc::Receiver<Option<String>>,
    waiting: bool,
}

impl Lines {
    pub(super) fn start() -> Self {
        let (wanted, requests) = blocking::sync_channel::<()>(1);
        let (sender, lines) = mpsc::channel(1);
        // Ends with the process, or when nobody asks any more.
        std::thread::spawn(move || {
            while requests.recv().is_ok() {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                let line = read.ok().filter(|read| *read > 0).map(|_| line);
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            wanted,
            lines,
            waiting: false,
        }
    }

    /// The next line; none at the end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<String> {
        if !self.waiting {
            self.wanted.try_send(()).ok()?;
            self.waiting = true;
        }
        let line = self.lines.recv().await.flatten();
        self.waiting = false;
        line
    }
}
