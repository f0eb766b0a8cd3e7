//! Lines from the person at the terminal, also when stdin is something else. Reads only while a question stands; must
//! never take what was typed before it as an answer.

use crate::error::Failure;
use crate::out;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::time::Instant;
use tokio::sync::mpsc;

/// The terminal of this process, for questions.
#[derive(Debug)]
pub(crate) struct Tty {
    /// The lines of a thread that reads for as long as the process lives; one may wait.
    lines: Option<mpsc::Receiver<Typed>>,
}

/// A line, or the end of the input, and when it was read.
type Typed = (Instant, Option<String>);

impl Tty {
    /// The terminal, if questions can be seen and answered: stderr is one, and one can be read.
    pub(crate) fn find() -> Option<Self> {
        let readable = std::io::stdin().is_terminal() || File::open("/dev/tty").is_ok();
        (std::io::stderr().is_terminal() && readable).then_some(Self { lines: None })
    }

    /// Puts a question and gives the line that answers it; none at the end of the input. Dropping the future leaves
    /// the question unanswered.
    pub(crate) async fn ask(&mut self, question: &str) -> Result<Option<String>, Failure> {
        let lines = match &mut self.lines {
            Some(lines) => lines,
            None => self.lines.insert(read_lines()?),
        };
        forget_typed();
        let asked = Instant::now();
        out::progress(question)?;
        loop {
            match lines.recv().await {
                Some((typed, _)) if typed < asked => {}
                Some((_, line)) => return Ok(line),
                None => return Ok(None),
            }
        }
    }
}

fn read_lines() -> Result<mpsc::Receiver<Typed>, Failure> {
    let terminal = File::open("/dev/tty").or_else(|_| File::open("/dev/stdin"))?;
    let (sender, receiver) = mpsc::channel(1);
    // Blocks in a read until the process ends; it holds nothing that would be missed.
    std::thread::spawn(move || {
        let mut reader = BufReader::new(terminal);
        loop {
            let mut line = String::new();
            let line = match reader.read_line(&mut line) {
                Ok(0) | Err(_) => None,
                Ok(_) => Some(line),
            };
            let ended = line.is_none();
            if sender.blocking_send((Instant::now(), line)).is_err() || ended {
                return;
            }
        }
    });
    Ok(receiver)
}

/// Drops what was typed before the question stood there.
fn forget_typed() {
    if let Ok(terminal) = File::open("/dev/tty") {
        let _ = rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
    }
}
