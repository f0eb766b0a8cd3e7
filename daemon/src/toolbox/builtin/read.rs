//! `read`: a file's text, or some lines of it. Holds no more of the file than it gives back.

use super::arguments::{self, Arguments};
use super::capture::CAP;
use super::file;
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader};
use tokio_util::sync::CancellationToken;

pub(super) fn tool() -> Tool {
    Tool::new(
        "read",
        "Read a text file. A long one comes in parts: `next_offset` in the result is where to go on.",
    )
    .param("path", json!({"type": "string", "description": "The file, relative to the session's directory, absolute, or below ~"}))
    .param("offset", json!({"type": "integer", "minimum": 0, "description": "First line to read, counted from 1"}))
    .param("limit", json!({"type": "integer", "minimum": 1, "description": "How many lines to read at most"}))
    .required("path")
    .alias("open")
    .access(Access::Read)
    .path("path")
    .handler(read)
}

async fn read(call: Call, arguments: Arguments) -> Outcome {
    let shown = arguments::text(&arguments, "path").to_owned();
    let path = arguments::path(&call, &shown);
    let first = arguments::count(&arguments, "offset").unwrap_or(1).max(1);
    let limit = arguments::count(&arguments, "limit").unwrap_or(usize::MAX);
    // What a command printed is text for whoever asks for it here, whatever bytes it holds.
    let any = path.starts_with(&call.spill_dir);
    let work = move |cancel: &CancellationToken| {
        let (file, data) = file::open(&path, &shown)?;
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let start = reader
            .fill_buf()
            .map_err(|error| file::cannot("read", &shown, &error))?;
        if !any && start.iter().take(8192).any(|byte| *byte == 0) {
            return Err(format!("{shown} is a binary file of {} bytes", data.len()));
        }
        let mut lines = Lines {
            next: 1,
            first,
            limit,
            text: Vec::new(),
            cut: None,
            in_line: false,
        };
        lines
            .fill(&mut reader, cancel)
            .map_err(|error| file::cannot("read", &shown, &error))?;
        Ok(lines.result(&path.to_string_lossy(), &shown))
    };
    let outcome = arguments::blocking(&call, work).await;
    Ok(outcome
        .and_then(|result| result)
        .unwrap_or_else(arguments::failure))
}

/// The wanted lines, as far as they fit.
struct Lines {
    /// The line that the reader stands in, counted from 1.
    next: usize,
    first: usize,
    limit: usize,
    text: Vec<u8>,
    /// Why reading stopped before the end of the file.
    cut: Option<Cut>,
    /// Whether the reader stands behind some bytes of a line without its end.
    in_line: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// All that was asked for is there.
    Limit,
    /// The line `next` does not fit any more.
    Cap,
    /// The line `next` alone is more than fits.
    LongLine,
}

impl Lines {
    fn fill(
        &mut self,
        reader: &mut impl BufRead,
        cancel: &CancellationToken,
    ) -> std::io::Result<()> {
        while !cancel.is_cancelled() {
            let block = reader.fill_buf()?;
            if block.is_empty() {
                return Ok(());
            }
            if self.next >= self.first.saturating_add(self.limit) {
                self.cut = Some(Cut::Limit);
                return Ok(());
            }
            let end = block.iter().position(|byte| *byte == b'\n');
            let piece = &block[..end.map_or(block.len(), |end| end + 1)];
            let length = piece.len();
            if self.next >= self.first && !self.take(piece) {
                return Ok(());
            }
            self.in_line = end.is_none();
            self.next += usize::from(end.is_some());
            reader.consume(length);
        }
        Ok(())
    }

    /// False when it does not fit: then the text ends with the last whole line, or within the first one.
    fn take(&mut self, piece: &[u8]) -> bool {
        if self.text.len() + piece.len() <= CAP {
            self.text.extend(piece);
            return true;
        }
        self.text.extend(&piece[..CAP - self.text.len()]);
        match self.text.iter().rposition(|byte| *byte == b'\n') {
            Some(end) if self.next > self.first => {
                self.text.truncate(end + 1);
                self.cut = Some(Cut::Cap);
            }
            _ => self.cut = Some(Cut::LongLine),
        }
        false
    }

    fn result(self, path: &str, shown: &str) -> Result<Map<String, Value>, String> {
        let count = self.next - 1 + usize::from(self.in_line);
        if self.text.is_empty() && self.first > 1 && self.first > count {
            return Err(format!(
                "{shown} has {count} lines, so there is none from line {} on",
                self.first
            ));
        }
        let (content, valid) = decode(self.text, self.cut == Some(Cut::LongLine));
        let mut result = Map::from_iter([
            ("content".to_owned(), Value::String(content)),
            ("path".to_owned(), json!(path)),
        ]);
        let mut notes = Vec::new();
        match self.cut {
            Some(Cut::Limit | Cut::Cap) => {
                result.insert("next_offset".to_owned(), json!(self.next));
            }
            Some(Cut::LongLine) => {
                notes.push(format!(
                    "line {} is longer than {CAP} bytes and was cut there",
                    self.next
                ));
                result.insert("next_offset".to_owned(), json!(self.next + 1));
            }
            None => {}
        }
        if !valid {
            notes.push("not all of it is UTF-8: other bytes are shown as U+FFFD".to_owned());
        }
        if !notes.is_empty() {
            result.insert("note".to_owned(), json!(notes.join("; ")));
        }
        Ok(result)
    }
}

/// The text, and whether all of it was UTF-8. A character that the cap cut through is left out.
fn decode(mut bytes: Vec<u8>, cut: bool) -> (String, bool) {
    if cut
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    match String::from_utf8(bytes) {
        Ok(text) => (text, true),
        Err(error) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            false,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use std::fs;

    async fn check(bench: &Bench, arguments: Value) -> Value {
        Value::Object(bench.run(tool, arguments).await)
    }

    #[tokio::test]
    async fn a_file_comes_as_it_is() {
        let bench = Bench::new();
        let path = bench.write("a.txt", "one\ntwo\r\n\nend é");
        let result = check(&bench, json!({"path": "./a.txt"})).await;
        assert_eq!(
            result,
            json!({"content": "one\ntwo\r\n\nend é", "path": path, "ok": true})
        );
        bench.write("empty", "");
        assert_eq!(check(&bench, json!({"path": "empty"})).await["content"], "");
        fs::write(bench.cwd().join("../home/h"), "at home").unwrap();
        assert_eq!(
            check(&bench, json!({"path": "~/h"})).await["content"],
            "at home"
        );
    }

    #[tokio::test]
    async fn lines_are_counted_from_1() {
        let bench = Bench::new();
        bench.write("a", "1\n2\n3\n4");
        let result = check(&bench, json!({"path": "a", "offset": 2, "limit": 2})).await;
        assert_eq!(
            (&result["content"], &result["next_offset"]),
            (&json!("2\n3\n"), &json!(4))
        );
        let result = check(&bench, json!({"path": "a", "offset": 4, "limit": 1})).await;
        assert_eq!(
            (&result["content"], &result["next_offset"]),
            (&json!("4"), &Value::Null)
        );
        let result = check(&bench, json!({"path": "a", "offset": 5})).await;
        assert_eq!(
            result["error"],
            "a has 4 lines, so there is none from line 5 on"
        );
    }

    #[tokio::test]
    async fn parts_of_a_long_file_make_the_whole() {
        let bench = Bench::new();
        let text: String = (0..9000).map(|line| format!("line {line} é\n")).collect();
        bench.write("long", &text);
        let (mut whole, mut offset) = (String::new(), json!(1));
        while !offset.is_null() {
            let part = check(&bench, json!({"path": "long", "offset": offset})).await;
            let content = part["content"].as_str().unwrap();
            assert!(content.len() <= CAP);
            whole.push_str(content);
            offset = part["next_offset"].clone();
        }
        assert_eq!(whole, text);
    }

    #[tokio::test]
    async fn a_line_that_never_ends_is_cut_and_said() {
        let bench = Bench::new();
        bench.write("long", format!("{}\nnext", "é".repeat(CAP)));
        let result = check(&bench, json!({"path": "long"})).await;
        assert_eq!(result["content"].as_str().unwrap(), "é".repeat(CAP / 2));
        assert_eq!(
            result["note"],
            format!("line 1 is longer than {CAP} bytes and was cut there")
        );
        let result = check(
            &bench,
            json!({"path": "long", "offset": result["next_offset"]}),
        )
        .await;
        assert_eq!(result["content"], "next");
    }

    #[tokio::test]
    async fn what_is_no_file_is_refused_at_once() {
        let bench = Bench::new();
        let fifo = bench.cwd().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        let errors = [
            ("gone", "not found: gone"),
            (".", ". is a directory"),
            ("fifo", "fifo is a pipe, not a file"),
            ("/dev/zero", "/dev/zero is a device, not a file"),
        ];
        for (path, error) in errors {
            assert_eq!(check(&bench, json!({"path": path})).await["error"], error);
        }
        std::os::unix::fs::symlink("loop", bench.cwd().join("loop")).unwrap();
        let result = check(&bench, json!({"path": "loop"})).await;
        assert!(
            result["error"]
                .as_str()
                .unwrap()
                .starts_with("cannot read loop: ")
        );
    }

    #[tokio::test]
    async fn binary_is_refused_and_broken_text_is_shown() {
        let bench = Bench::new();
        bench.write("bin", [1, 0, 2]);
        assert_eq!(
            check(&bench, json!({"path": "bin"})).await["error"],
            "bin is a binary file of 3 bytes"
        );
        bench.write("latin", b"caf\xe9\n");
        let result = check(&bench, json!({"path": "latin"})).await;
        assert_eq!(result["content"], "caf\u{fffd}\n");
        assert!(result["note"].is_string());
    }

    #[tokio::test]
    async fn a_huge_file_costs_only_what_is_shown() {
        let bench = Bench::new();
        let file = fs::File::create(bench.cwd().join("huge")).unwrap();
        std::io::Write::write_all(&mut &file, "x\n".repeat(10_000).as_bytes()).unwrap();
        file.set_len(10_000_000_000).unwrap();
        let result = check(&bench, json!({"path": "huge", "limit": 3})).await;
        assert_eq!(result["content"], "x\nx\nx\n");
    }
}
