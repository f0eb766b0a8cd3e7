//! Lines from the person at the terminal, also when stdin is something else. Reads only while a question stands; must
//! never take what was typed before it as an answer.

use crate::error::Failure;
use crate::out;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::sync::mpsc as blocking;
use std::time::Instant;
use tokio::sync::mpsc;

/// The terminal of this process, for questions.
#[derive(Debug)]
pub(crate) struct Tty {
    reader: Option<Reader>,
}

/// A line, or the end of the input, and when it was read.
type Typed = (Instant, Option<String>);

/// A thread that reads one line for each request. Both channels hold one: there is one question at a time.
#[derive(Debug)]
struct Reader {
    wanted: blocking::SyncSender<()>,
    lines: mpsc::Receiver<Typed>,
    /// Whether a request is still open, because its question went away before a line came.
    reading: bool,
}

impl Tty {
    /// The terminal, if questions can be seen and answered: stderr is one, and one can be read.
    pub(crate) fn find() -> Option<Self> {
        let readable = std::io::stdin().is_terminal() || File::open("/dev/tty").is_ok();
        (std::io::stderr().is_terminal() && readable).then_some(Self { reader: None })
    }

    /// Puts a question and gives the line that answers it; none at the end of the input. Dropping the future leaves
    /// the question unanswered.
    pub(crate) async fn ask(&mut self, question: &str) -> Result<Option<String>, Failure> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => self.reader.insert(Reader::start()?),
        };
        forget_typed();
        let asked = Instant::now();
        out::progress(question)?;
        loop {
            match reader.line().await {
                Some((typed, _)) if typed < asked => {}
                Some((_, line)) => return Ok(line),
                None => return Ok(None),
            }
        }
    }
}

impl Reader {
    fn start() -> Result<Self, Failure> {
        let terminal = File::open("/dev/tty").or_else(|_| File::open("/dev/stdin"))?;
        let (wanted, requests) = blocking::sync_channel::<()>(1);
        let (sender, lines) = mpsc::channel(1);
        // Ends with the process, or when nobody asks any more; it holds nothing that would be missed.
        std::thread::spawn(move || {
            let mut terminal = BufReader::new(terminal);
            while requests.recv().is_ok() {
                let mut text = String::new();
                let line = match terminal.read_line(&mut text) {
                    Ok(0) | Err(_) => None,
                    Ok(_) => Some(text),
                };
                if sender.blocking_send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            wanted,
            lines,
            reading: false,
        })
    }

    async fn line(&mut self) -> Option<Typed> {
        if !self.reading {
            self.wanted.try_send(()).ok()?;
            self.reading = true;
        }
        let line = self.lines.recv().await;
        self.reading = false;
        line
    }
}

/// Drops what was typed before the question stood there.
fn forget_typed() {
    if let Ok(terminal) = File::open("/dev/tty") {
        let _ = rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
    }
}
