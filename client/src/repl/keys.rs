//! The keyboard, on a thread of its own: the terminal is raw while this lives, and as it was before when it is dropped
//! or asleep. Must never write anything but the modes of the terminal.

use crossterm::event::{
    self, DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
    Event, KeyCode, KeyModifiers,
};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as blocking};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How often the thread looks up from waiting for a key.
const LOOK_UP: Duration = Duration::from_millis(100);

/// How many keys wait to be handled before the thread reads no more; the terminal holds the rest.
const WAITING: usize = 64;

/// Whether the terminal is asked to tell when it gets or loses the focus. It is one mode more that a program which is
/// killed leaves behind, and one that shells do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    Unknown,
    Told,
}

/// The keyboard.
#[derive(Debug)]
pub(super) struct Keys {
    focus: Focus,
    events: mpsc::Receiver<io::Result<Event>>,
    asleep: Arc<AtomicBool>,
    thread: Thread,
    /// The thread's word that it has stopped reading.
    stopped: blocking::Receiver<()>,
}

impl Keys {
    /// Makes the terminal raw and begins to read.
    pub(super) fn start(focus: Focus) -> io::Result<Self> {
        raw(focus)?;
        let (sender, events) = mpsc::channel(WAITING);
        let asleep = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&asleep);
        // One word for each time it is put to sleep.
        let (stopping, stopped) = blocking::sync_channel(1);
        // Ends with the process, or when nobody listens any more.
        let thread = std::thread::spawn(move || read(&sender, &theirs, &stopping));
        Ok(Self {
            focus,
            events,
            asleep,
            thread: thread.thread().clone(),
            stopped,
        })
    }

    /// The next key, paste or change of size. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> io::Result<Event> {
        let gone = || Err(io::Error::other("the keyboard's thread has ended"));
        self.events.recv().await.unwrap_or_else(gone)
    }

    /// What has been pressed already.
    pub(super) fn ready(&mut self) -> Option<io::Result<Event>> {
        self.events.try_recv().ok()
    }

    /// Leaves the terminal to another program.
    pub(super) fn sleep(&mut self) -> io::Result<()> {
        self.asleep.store(true, Ordering::SeqCst);
        // A thread that waits for room in the channel reads nothing either.
        let _ = self.stopped.recv_timeout(LOOK_UP * 5);
        cooked(self.focus)
    }

    /// Takes it back, also from somebody who took it unasked.
    pub(super) fn wake(&mut self) -> io::Result<()> {
        disable_raw_mode()?;
        raw(self.focus)?;
        while self.stopped.try_recv().is_ok() {}
        self.asleep.store(false, Ordering::SeqCst);
        self.thread.unpark();
        Ok(())
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A thread that read on would take keys from whoever reads next.
        let _ = self.sleep();
        self.events.close();
        self.thread.unpark();
    }
}

fn raw(focus: Focus) -> io::Result<()> {
    enable_raw_mode()?;
    if focus == Focus::Told {
        crossterm::execute!(io::stdout(), EnableFocusChange)?;
    }
    crossterm::execute!(io::stdout(), EnableBracketedPaste)
}

fn cooked(focus: Focus) -> io::Result<()> {
    if focus == Focus::Told {
        crossterm::execute!(io::stdout(), DisableFocusChange)?;
    }
    crossterm::execute!(io::stdout(), DisableBracketedPaste, crossterm::cursor::Show)?;
    disable_raw_mode()
}

/// Tells what a terminal answers from what a person types. An answer that nobody waits for any more, as it comes late over
/// a slow line or was asked for by a program that has ended, is read as Alt and its first letter, and then letters.
#[derive(Debug, Default)]
struct Answers {
    /// When the last part of one came.
    since: Option<Instant>,
}

/// A terminal sends an answer at once; a person does not type on so soon.
const AT_ONCE: Duration = Duration::from_millis(30);

impl Answers {
    /// Whether an event is a part of one.
    fn takes(&mut self, event: &Event, now: Instant) -> bool {
        let Event::Key(key) = event else {
            return false;
        };
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let goes_on = self
            .since
            .take()
            .is_some_and(|since| now.duration_since(since) < AT_ONCE);
        let (begins, ends) = match key.code {
            // OSC, DCS, APC, PM, SOS; ST; BEL.
            KeyCode::Char(']' | 'P' | '_' | '^' | 'X') if alt => (true, false),
            KeyCode::Char('\\') if alt => (false, goes_on),
            KeyCode::Char('g') if control => (false, goes_on),
            KeyCode::Char(_) if !alt && !control => (false, false),
            _ => return false,
        };
        if ends {
            return true;
        }
        if begins || goes_on {
            self.since = Some(now);
        }
        begins || goes_on
    }
}

fn read(
    events: &mpsc::Sender<io::Result<Event>>,
    asleep: &AtomicBool,
    stopping: &blocking::SyncSender<()>,
) {
    let mut answers = Answers::default();
    while !events.is_closed() {
        if asleep.load(Ordering::SeqCst) {
            let _ = stopping.try_send(());
            std::thread::park();
            continue;
        }
        let event = match event::poll(LOOK_UP) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        if let Ok(event) = &event
            && answers.takes(event, Instant::now())
        {
            continue;
        }
        let broken = event.is_err();
        if events.blocking_send(event).is_err() || broken {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyEvent;

    #[test]
    fn an_answer_of_the_terminal_is_nothing_that_was_typed() {
        let mut answers = Answers::default();
        let mut now = Instant::now();
        let alt = |c| (c, KeyModifiers::ALT);
        let plain = |text: &'static str| text.chars().map(|c| (c, KeyModifiers::NONE));
        let mut typed = |keys: Vec<(char, KeyModifiers)>, pause: Duration| -> String {
            let kept = keys.into_iter().filter(|(c, modifiers)| {
                now += pause;
                let key = KeyEvent::new(KeyCode::Char(*c), *modifiers);
                !answers.takes(&Event::Key(key), now)
            });
            kept.map(|(c, _)| c).collect()
        };
        let at_once = Duration::from_micros(10);
        let colour = [alt(']')].into_iter().chain(plain("11;rgb:0/0/0"));
        let keys = plain("a")
            .chain(colour)
            .chain([alt('\\')])
            .chain(plain("b"));
        assert_eq!(typed(keys.collect(), at_once), "ab");
        let bell = ('g', KeyModifiers::CONTROL);
        let keys = [alt(']')]
            .into_iter()
            .chain(plain("0;x"))
            .chain([bell, bell]);
        assert_eq!(
            typed(keys.collect(), at_once),
            "g",
            "one ends it, one is a key"
        );
        let keys = [alt('P')].into_iter().chain(plain("by hand"));
        assert_eq!(typed(keys.collect(), AT_ONCE * 2), "by hand");
    }
}
