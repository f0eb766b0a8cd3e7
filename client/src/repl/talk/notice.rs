//! Words to a person who looks elsewhere: a bell, and a message of the desktop where the terminal can show one.

use crate::screen::Screen;
use std::io::{self, Write};
use std::time::Duration;

/// The end of a turn that took longer is told.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// Rings, unless the person wants quiet.
pub(super) fn send<W: Write>(screen: &mut Screen<W>, text: &str) -> io::Result<()> {
    let quiet = std::env::var("DWELL_NOTIFY")
        .is_ok_and(|value| matches!(value.as_str(), "0" | "off" | "no"));
    match quiet {
        true => Ok(()),
        false => screen.notify(text),
    }
}
