//! `edit`: one exact piece of a file for another. Changes nothing unless the piece is there as often as was meant.

use super::arguments::{self, Arguments};
use super::change;
use super::file::{self, Found};
use crate::toolbox::tool::{Access, Call, Change, Outcome, Tool};
use serde_json::{Map, json};
use std::io::Read;

/// Larger files are not edited by quoting them.
const LARGEST: u64 = 64 * 1024 * 1024;

pub(super) fn tool() -> Tool {
    Tool::new(
        "edit",
        "Replace a piece of a file. `old` must be the exact text, spaces and line ends included, and must occur once; \
         give enough of what is around it, or set `all`.",
    )
    .param("path", json!({"type": "string", "description": "The file"}))
    .param("old", json!({"type": "string", "description": "The text to replace, exactly as in the file"}))
    .param("new", json!({"type": "string", "description": "The text to put there"}))
    .param("all", json!({"type": "boolean", "description": "Replace every occurrence"}))
    .required("path")
    .required("old")
    .required("new")
    .access(Access::Write)
    .path("path")
    .preview(|call, arguments| Box::pin(preview(call, arguments)))
    .handler(edit)
}

/// Which occurrences are meant.
#[derive(Clone, Copy, PartialEq)]
enum Meant {
    Only,
    All,
}

impl Meant {
    fn by(arguments: &Arguments) -> Self {
        match arguments::flag(arguments, "all") {
            true => Self::All,
            false => Self::Only,
        }
    }
}

/// What goes and what comes, with its places in the file; none of an edit that will fail.
async fn preview(call: Call, arguments: Arguments) -> Option<Change> {
    let text = |name| arguments::text(&arguments, name).to_owned();
    let (shown, old, new) = (text("path"), text("old"), text("new"));
    let path = arguments::path(&call, &shown);
    let meant = Meant::by(&arguments);
    let look = move |_: &_| {
        let content = read(&path, &shown)?;
        let places = meant_places(&content, &old, &new, meant, &shown)?;
        let ranges: Vec<_> = places.iter().map(|at| *at..at + old.len()).collect();
        let diff = change::at_places(&content, &ranges, &new);
        // What is elsewhere in the file stays, so it may become something else meanwhile, and move these lines.
        let lines = diff.iter().flat_map(|diff| diff.lines());
        let replaced: Vec<_> = lines.filter(|line| line.starts_with(['+', '-'])).collect();
        let change = Change::of(content.len() as u64, (places.len(), replaced));
        Ok(Change {
            diff,
            places: Some(places.len() as u64),
            ..change
        })
    };
    // What cannot be looked at is told when it is edited.
    arguments::blocking(&call, look).await.ok()
}

async fn edit(call: Call, arguments: Arguments) -> Outcome {
    let text = |name| arguments::text(&arguments, name).to_owned();
    let (shown, old, new) = (text("path"), text("old"), text("new"));
    let path = arguments::path(&call, &shown);
    let meant = Meant::by(&arguments);
    let work = move |_: &_| {
        let found = Found::at(&path, &shown)?;
        let (content, matches) = replaced(&read(&path, &shown)?, &old, &new, meant, &shown)?;
        found.replace(&content, &shown)?;
        Ok(Map::from_iter([
            ("matches".to_owned(), json!(matches)),
            ("bytes".to_owned(), json!(content.len())),
            ("path".to_owned(), json!(path.to_string_lossy())),
        ]))
    };
    Ok(arguments::blocking(&call, work)
        .await
        .unwrap_or_else(arguments::failure))
}

fn read(path: &std::path::Path, shown: &str) -> Result<Vec<u8>, String> {
    let (file, data) = file::open(path, shown)?;
    let mut content = Vec::new();
    if data.len() <= LARGEST {
        let read = file.take(LARGEST + 1).read_to_end(&mut content);
        read.map_err(|error| file::cannot("read", shown, &error))?;
    }
    if data.len().max(content.len() as u64) > LARGEST {
        return Err(format!(
            "{shown} is too large to edit: more than {} MiB",
            LARGEST >> 20
        ));
    }
    Ok(content)
}

/// The new content and how many places changed. Works on bytes, so what is no UTF-8 elsewhere in the file stays.
fn replaced(
    content: &[u8],
    old: &str,
    new: &str,
    meant: Meant,
    shown: &str,
) -> Result<(Vec<u8>, usize), String> {
    let places = meant_places(content, old, new, meant, shown)?;
    let mut changed = Vec::with_capacity(content.len());
    let mut rest = 0;
    for place in &places {
        changed.extend(&content[rest..*place]);
        changed.extend(new.as_bytes());
        rest = place + old.len();
    }
    changed.extend(&content[rest..]);
    Ok((changed, places.len()))
}

/// Where the old text stands, as often as was meant.
fn meant_places(
    content: &[u8],
    old: &str,
    new: &str,
    meant: Meant,
    shown: &str,
) -> Result<Vec<usize>, String> {
    if old.is_empty() {
        return Err("`old` is empty: use write to make a file".to_owned());
    }
    if old == new {
        return Err("`old` and `new` are the same".to_owned());
    }
    let places = places(content, old.as_bytes());
    match (places.len(), meant) {
        (0, _) => return Err(format!("`old` is not in {shown}{}", hint(content, old))),
        (1, _) | (_, Meant::All) => {}
        (count, Meant::Only) => {
            return Err(format!(
                "`old` is in {shown} {count} times: give more of what is around it, or set `all`"
            ));
        }
    }
    Ok(places)
}

/// Where it stands, without overlaps.
fn places(content: &[u8], old: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(content, old).collect()
}

/// What may be the matter.
fn hint(content: &[u8], old: &str) -> &'static str {
    let squeezed = |bytes: &[u8]| -> Vec<u8> {
        bytes
            .iter()
            .copied()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect()
    };
    let crlf = old.replace("\r\n", "\n").replace('\n', "\r\n");
    if !places(content, crlf.as_bytes()).is_empty() {
        return ": its lines end with CR LF, so write `\\r\\n`";
    }
    let wanted = squeezed(old.as_bytes());
    if !wanted.is_empty() && !places(&squeezed(content), &wanted).is_empty() {
        return ", though it is there with other spaces or line ends: read the file again";
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use serde_json::Value;
    use std::fs;

    async fn check(content: &[u8], arguments: Value) -> (Value, Vec<u8>) {
        let bench = Bench::new();
        let path = bench.write("f", content);
        let mut all = json!({"path": "f"});
        all.as_object_mut()
            .unwrap()
            .extend(arguments.as_object().unwrap().clone());
        let mut result = bench.run(tool, all).await;
        result.remove("path");
        assert_eq!(fs::read_dir(bench.cwd()).unwrap().count(), 1);
        (Value::Object(result), fs::read(path).unwrap())
    }

    #[tokio::test]
    async fn the_one_place_is_replaced() {
        let (result, content) =
            check(b"a\xff\nb b\n", json!({"old": "\nb", "new": "\n$0\\1"})).await;
        assert_eq!(result, json!({"matches": 1, "bytes": 10, "ok": true}));
        assert_eq!(content, b"a\xff\n$0\\1 b\n");
    }

    #[tokio::test]
    async fn several_places_are_counted_and_only_replaced_when_meant() {
        let (result, content) = check(b"aaaa", json!({"old": "aa", "new": "b"})).await;
        assert_eq!(
            result["error"],
            "`old` is in f 2 times: give more of what is around it, or set `all`"
        );
        assert_eq!(content, b"aaaa");
        let (result, content) = check(b"aaaa", json!({"old": "aa", "new": "b", "all": true})).await;
        assert_eq!(
            (&result["matches"], content.as_slice()),
            (&json!(2), &b"bb"[..])
        );
    }

    #[tokio::test]
    async fn what_is_not_there_changes_nothing_and_is_explained() {
        let cases = [
            ("x\n", "y", "`old` is not in f"),
            (
                "a  b\n",
                "a b",
                "`old` is not in f, though it is there with other spaces or line ends: read the file again",
            ),
            (
                "a\r\nb\r\n",
                "a\nb",
                "`old` is not in f: its lines end with CR LF, so write `\\r\\n`",
            ),
            ("a", "", "`old` is empty: use write to make a file"),
            ("a", "new", "`old` and `new` are the same"),
        ];
        for (before, old, error) in cases {
            let (result, content) =
                check(before.as_bytes(), json!({"old": old, "new": "new"})).await;
            assert_eq!(result["error"], error);
            assert_eq!(content, before.as_bytes());
        }
    }

    #[tokio::test]
    async fn a_missing_file_is_not_made() {
        let bench = Bench::new();
        let result = bench
            .run(tool, json!({"path": "gone", "old": "a", "new": "b"}))
            .await;
        assert_eq!(result["error"], "not found: gone");
        assert!(!bench.cwd().join("gone").exists());
    }

    #[tokio::test]
    async fn a_change_by_somebody_else_is_not_lost() {
        let bench = Bench::new();
        let path = bench.write("f", "one");
        let found = Found::at(&path, "f").unwrap();
        fs::write(&path, "other").unwrap();
        let error = found.replace(b"two", "f").unwrap_err();
        assert_eq!(
            error,
            "cannot write f: it was changed by somebody else meanwhile"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    }
}
