//! What belongs to the terminal and not to one session: the keyboard, the screen, the text being typed, and the signals
//! that end all of it. Must never know a session.

use super::editor::{Editor, KeyStyle};
use super::history::History;
use super::keys::{Focus, Keys};
use super::talk::notice::Notices;
use crate::place::Place;
use crate::screen::Screen;
use futures_util::FutureExt as _;
use rustix::process::{Signal as Sent, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, Stdout, Write as _};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Undoes what a program that was killed may have left: its own screen, the mouse, a hidden cursor, colours.
const RESET: &[u8] =
    b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1l\x1b>\x1b[?25h\x1b[0m";

/// The terminal of this process.
pub(super) struct Console {
    pub(super) signals: Signals,
    pub(super) keys: Keys,
    pub(super) screen: Screen<Stdout>,
    pub(super) editor: Editor,
    pub(super) notices: Notices,
    /// The terminal's settings before this program had it.
    before: Option<Termios>,
    /// When the window last changed its size.
    resized: Option<Instant>,
}

/// A window that has kept its size for so long is not being dragged any more.
const SETTLED: Duration = Duration::from_millis(500);

impl Console {
    /// Takes the terminal; it is as it was before when this is dropped.
    pub(super) fn start(place: &Place, cwd: &str) -> io::Result<Self> {
        let (columns, rows) = size();
        let history = History::load(place.history(), &place.old_history(), cwd);
        // Before the terminal is raw: a signal in between would leave it so.
        let signals = Signals::take()?;
        let before = tcgetattr(io::stdin()).ok();
        let notices = Notices::from_env();
        let focus = match notices.asks_focus {
            true => Focus::Told,
            false => Focus::Unknown,
        };
        Ok(Self {
            signals,
            notices,
            keys: Keys::start(focus)?,
            screen: Screen::new(io::stdout(), (columns, rows)),
            editor: Editor::new(KeyStyle::from_env(), history),
            before,
            resized: None,
        })
    }

    /// Leaves the terminal to another program.
    pub(super) fn sleep(&mut self) -> io::Result<()> {
        self.screen.leave()?;
        self.keys.sleep()
    }

    /// Takes it back; its window may have another size by now.
    pub(super) fn wake(&mut self) -> io::Result<()> {
        // Ctrl-C in the other program was meant for that one.
        self.signals.forget_keys();
        self.keys.wake()?;
        self.look();
        Ok(())
    }

    /// Puts right what another program may have left behind as it was killed. Only while asleep.
    pub(super) fn mend(&self) -> io::Result<()> {
        if let Some(before) = &self.before {
            tcsetattr(io::stdin(), OptionalActions::Now, before)?;
        }
        let mut out = io::stdout();
        out.write_all(RESET)?;
        out.flush()
    }

    /// Takes the terminal again after this process was stopped from outside: whoever had it meanwhile may have set it and
    /// written on it.
    pub(super) fn go_on(&mut self) -> io::Result<()> {
        self.keys.wake()?;
        self.look();
        self.screen.distrust();
        Ok(())
    }

    /// Looks how large the window is: it may have changed before an event said so.
    pub(super) fn look(&mut self) -> (usize, usize) {
        let size = size();
        if size != self.screen.size() {
            self.screen.resize(size.0, size.1);
            self.resized = Some(Instant::now());
        }
        size
    }

    /// Whether the window is being dragged to another size. What is drawn meanwhile may be broken into more rows by the next
    /// step, and the first ones pushed to where nothing can be drawn anew.
    pub(super) fn is_dragged(&self) -> bool {
        self.resized.is_some_and(|at| at.elapsed() < SETTLED)
    }

    /// Stops this process until the shell has it go on.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.sleep()?;
        // Without a shell that could have it go on, the system leaves it running.
        let stopped = kill_current_process_group(Sent::TSTP);
        self.wake()?;
        stopped.map_err(Into::into)
    }
}

/// Signals, as far as they concern somebody who has the terminal.
pub(super) struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
    quit: Signal,
    go_on: Signal,
    /// When another program gave the terminal back.
    had_back: Option<Instant>,
}

/// How long after that a key's signal may still be one that was meant for it: signals come by way of the runtime, which
/// may learn of the program's end first.
const LATE: Duration = Duration::from_millis(200);

/// What a signal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// The program is to end.
    End,
    /// It was stopped from outside, and goes on.
    GoOn,
}

impl Signals {
    fn take() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            go_on: signal(SignalKind::from_raw(Sent::CONT.as_raw()))?,
            had_back: None,
        })
    }

    /// The next one. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Sign {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return Sign::End,
                _ = self.hangup.recv() => return Sign::End,
                _ = self.interrupt.recv() => {}
                _ = self.quit.recv() => {}
                _ = self.go_on.recv() => return Sign::GoOn,
            }
            if self.had_back.is_none_or(|back| back.elapsed() > LATE) {
                return Sign::End;
            }
        }
    }

    /// What was meant for another program, which had the terminal.
    fn forget_keys(&mut self) {
        while self.interrupt.recv().now_or_never().is_some() {}
        while self.quit.recv().now_or_never().is_some() {}
        self.had_back = Some(Instant::now());
    }
}

fn size() -> (usize, usize) {
    crate::screen::size().unwrap_or((80, 24))
}
