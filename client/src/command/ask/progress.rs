//! What `dwell ask` tells besides the reply. On a terminal at once; elsewhere it is kept back, and goes out with the first
//! news that somebody must read. Must never write to stdout.

use crate::error::Failure;
use crate::out;
use std::io::IsTerminal;

/// What is kept at most, in bytes: the end of it tells why a turn failed.
const MOST: usize = 64 << 10;

/// Stderr, or what would have gone there.
#[derive(Debug)]
pub(super) struct Progress {
    /// None where it goes out as it comes.
    kept: Option<String>,
}

impl Progress {
    pub(super) fn new(verbose: bool) -> Self {
        let at_once = verbose || std::io::stderr().is_terminal();
        Self {
            kept: (!at_once).then(String::new),
        }
    }

    pub(super) fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.text(&format!("{text}\n"))
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), Failure> {
        let Some(kept) = &mut self.kept else {
            return out::progress(text);
        };
        kept.push_str(text);
        if kept.len() > 2 * MOST {
            let cut = kept.len() - MOST;
            let line = kept.as_bytes()[cut..].iter().position(|b| *b == b'\n');
            let from = (cut..kept.len()).find(|at| kept.is_char_boundary(*at));
            let from = line.map_or(from.unwrap_or(cut), |line| cut + line + 1);
            kept.replace_range(..from, "...\n");
        }
        Ok(())
    }

    /// Something went otherwise than was asked: what led there is told, and all that follows.
    pub(super) fn is_news(&mut self) -> Result<(), Failure> {
        match self.kept.take() {
            Some(kept) => out::progress(&kept),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_is_kept_is_kept() {
        let mut progress = Progress {
            kept: Some(String::new()),
        };
        for n in 0..40_000 {
            progress.line(&format!("line {n} ü")).unwrap();
        }
        let kept = progress.kept.unwrap();
        assert!(kept.len() <= 2 * MOST + 20 && kept.len() > MOST / 2);
        assert!(kept.starts_with("...\nline ") && kept.ends_with("line 39999 ü\n"));
    }
}
