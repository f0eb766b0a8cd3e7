//! The prompt of `dwell ask`: the words of the command line and what is piped in. Must never wait for a terminal.

use crate::error::Failure;
use crate::out;
use std::io::{IsTerminal, Read};

/// More than any model reads.
const LIMIT: u64 = 8 << 20;

/// What is piped to stdin, if anything is.
pub(super) fn piped() -> Result<Option<String>, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    stdin.lock().take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        return Err(
            Failure::usage(format!("stdin has more than {} MiB", LIMIT >> 20))
                .hint("name a file instead: the model reads of it what it needs"),
        );
    }
    let text = text_of(bytes)?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Text, with a word on stderr where bytes of it are none; what holds zeros is no text at all.
fn text_of(bytes: Vec<u8>) -> Result<String, Failure> {
    if bytes.contains(&0) {
        return Err(Failure::usage("stdin is no text: it has zero bytes")
            .hint("pipe in what a model can read, or name the file instead"));
    }
    String::from_utf8(bytes).or_else(|wrong| {
        let at = wrong.utf8_error().valid_up_to();
        out::note(&format!(
            "stdin is no UTF-8 (byte {} is the first that is none): the model sees U+FFFD in its place",
            at + 1
        ))?;
        Ok(String::from_utf8_lossy(wrong.as_bytes()).into_owned())
    })
}

/// The words, and behind them what was piped, fenced so that a model can tell them apart.
pub(super) fn assemble(words: &str, piped: Option<String>) -> Result<String, Failure> {
    match (words.trim().is_empty(), piped) {
        (false, None) => Ok(words.to_string()),
        (true, Some(text)) => Ok(text),
        (false, Some(text)) => {
            let fence = fence(&text);
            let end = if text.ends_with('\n') { "" } else { "\n" };
            Ok(format!("{words}\n\n{fence}\n{text}{end}{fence}\n"))
        }
        (true, None) => Err(Failure::usage("nothing to ask")
            .hint("`dwell ask \"what does README.md say?\"`, or pipe something in")),
    }
}

/// Longer than any run of backticks in the text.
fn fence(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_piped_stands_fenced_behind_the_words() {
        let text = assemble("explain", Some("a\nb".into())).unwrap();
        assert_eq!(text, "explain\n\n```\na\nb\n```\n");
    }

    #[test]
    fn a_fence_is_longer_than_those_inside() {
        let text = assemble("x", Some("````\ny\n````\n".into())).unwrap();
        assert_eq!(text, "x\n\n`````\n````\ny\n````\n`````\n");
    }

    #[test]
    fn what_is_piped_alone_is_the_prompt() {
        assert_eq!(assemble("", Some("hi\n".into())).unwrap(), "hi\n");
        assert!(assemble(" ", None).is_err());
    }
}
