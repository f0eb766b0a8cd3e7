//! `grep`: lines that match a regular expression, over all files of a directory that are text.

use super::arguments::{self, Arguments};
use super::capture::{CAP, floor};
use super::walk::{Walk, Which, is_file};
use super::{file, glob};
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde_json::{Map, Value, json};
use std::io::{self, Read};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// A longer line is shown up to here.
const LINE: usize = 400;
/// A file with a longer line than this is not text for people.
const LONGEST: usize = 16 * 1024 * 1024;

pub(super) fn tool() -> Tool {
    Tool::new(
        "grep",
        "Search files for a regular expression (Rust's syntax). Shows `path:line:text`. Binary files and those that \
         .gitignore names are left out.",
    )
    .param("pattern", json!({"type": "string", "minLength": 1, "description": "The regular expression; matches within a line"}))
    .param("path", json!({"type": "string", "description": "The directory or file to search; the session's directory if not given"}))
    .param("glob", json!({"type": "string", "description": "Only files whose path matches this, such as `*.rs`"}))
    .param("ignore_case", json!({"type": "boolean", "description": "Take upper and lower case as the same"}))
    .param("literal", json!({"type": "boolean", "description": "Take the pattern as plain text"}))
    .param("context", json!({"type": "integer", "minimum": 0, "maximum": 50, "description": "How many lines to show before and after each match"}))
    .param("files_only", json!({"type": "boolean", "description": "Show only the paths of files with a match"}))
    .param("all", json!({"type": "boolean", "description": "Search ignored files too"}))
    .required("pattern")
    .alias("rg")
    .alias("search")
    .access(Access::Read)
    .path("path")
    .handler(grep)
}

async fn grep(call: Call, arguments: Arguments) -> Outcome {
    let shown = arguments::optional_text(&arguments, "path")
        .unwrap_or(".")
        .to_owned();
    let search = match Search::new(&call, &arguments, &shown) {
        Ok(search) => search,
        Err(error) => return Ok(arguments::failure(error)),
    };
    let work = move |cancel: &CancellationToken| search.run(&shown, cancel);
    Ok(arguments::blocking(&call, work)
        .await
        .unwrap_or_else(arguments::failure))
}

struct Search {
    walk: Walk,
    matcher: RegexMatcher,
    only: Option<globset::GlobMatcher>,
    context: usize,
    show: Show,
}

#[derive(Clone, Copy, PartialEq)]
enum Show {
    Lines,
    Files,
}

impl Search {
    fn new(call: &Call, arguments: &Arguments, shown: &str) -> Result<Self, String> {
        let pattern = arguments::text(arguments, "pattern");
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(arguments::flag(arguments, "ignore_case"))
            .fixed_strings(arguments::flag(arguments, "literal"))
            .line_terminator(Some(b'\n'));
        let matcher = builder
            .build(pattern)
            .map_err(|error| format!("cannot use the pattern {pattern}: {error}"))?;
        let only = arguments::optional_text(arguments, "glob")
            .map(glob::anywhere)
            .transpose()?;
        let root = arguments::path(call, shown);
        Ok(Self {
            walk: Walk {
                root,
                cwd: call.cwd.clone(),
                which: Which::of(arguments),
                depth: None,
            },
            matcher,
            only,
            context: arguments::count(arguments, "context").unwrap_or(0),
            show: if arguments::flag(arguments, "files_only") {
                Show::Files
            } else {
                Show::Lines
            },
        })
    }

    fn run(&self, shown: &str, cancel: &CancellationToken) -> Result<Map<String, Value>, String> {
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .heap_limit(Some(LONGEST))
            .before_context(self.context)
            .after_context(self.context)
            .build();
        let mut found = Found::default();
        for entry in self.walk.entries(shown, cancel)?.filter(is_file) {
            if found.is_cut {
                break;
            }
            self.search(&mut searcher, entry.path(), &mut found, cancel);
        }
        if cancel.is_cancelled() {
            return Err("cancelled".to_owned());
        }
        Ok(found.result())
    }

    /// What cannot be read is left out, as people expect of a search over many files.
    fn search(
        &self,
        searcher: &mut Searcher,
        path: &Path,
        found: &mut Found,
        cancel: &CancellationToken,
    ) {
        let below = path.strip_prefix(&self.walk.root).unwrap_or(path);
        // A file that was named itself has no path below it.
        let below = if below.as_os_str().is_empty() {
            path.file_name().map_or(path, Path::new)
        } else {
            below
        };
        if self.only.as_ref().is_some_and(|only| !only.is_match(below)) {
            return;
        }
        let shown = self.walk.shown(path);
        let Ok((file, _)) = file::open(path, &shown) else {
            return;
        };
        let mut lines = Lines {
            path: shown,
            show: self.show,
            matched: false,
            found,
        };
        let searched =
            searcher.search_reader(&self.matcher, UntilCancelled { file, cancel }, &mut lines);
        if searched.is_err() && !cancel.is_cancelled() {
            found.unread += 1;
        }
    }
}

/// All that was found so far.
#[derive(Default)]
struct Found {
    text: String,
    matches: u64,
    files: u64,
    /// Files that could not be searched to their end.
    unread: u64,
    is_cut: bool,
}

impl Found {
    /// False when it does not fit any more.
    fn add(&mut self, line: &str) -> bool {
        self.is_cut = self.text.len() + line.len() > CAP;
        if !self.is_cut {
            self.text.push_str(line);
        }
        !self.is_cut
    }

    fn result(self) -> Map<String, Value> {
        let mut notes = Vec::new();
        if self.is_cut {
            notes.push("cut: there are more matches; narrow the pattern, path or glob".to_owned());
        }
        if self.unread > 0 {
            notes.push(format!(
                "{} files could not be read to their end",
                self.unread
            ));
        }
        let mut result = Map::from_iter([
            ("content".to_owned(), json!(self.text)),
            ("matches".to_owned(), json!(self.matches)),
            ("files".to_owned(), json!(self.files)),
        ]);
        if !notes.is_empty() {
            result.insert("note".to_owned(), json!(notes.join("; ")));
        }
        result
    }
}

/// One file's matches.
struct Lines<'f> {
    path: String,
    show: Show,
    matched: bool,
    found: &'f mut Found,
}

impl Lines<'_> {
    fn line(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let shown = &text[..floor(text, LINE)];
        let cut = if shown.len() < text.len() {
            " [...]"
        } else {
            ""
        };
        let number = number.unwrap_or_default();
        self.found
            .add(&format!("{}{mark}{number}{mark}{shown}{cut}\n", self.path))
    }
}

impl Sink for &mut Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        if !self.matched {
            self.matched = true;
            self.found.files += 1;
        }
        self.found.matches += 1;
        Ok(match self.show {
            Show::Lines => self.line(':', matched.line_number(), matched.bytes()),
            Show::Files => {
                let path = format!("{}\n", self.path);
                self.found.add(&path);
                false
            }
        })
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.show == Show::Files || self.line('-', context.line_number(), context.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.show == Show::Files || self.found.add("--\n"))
    }
}

/// Ends a search through a huge file when nobody waits for it any more.
struct UntilCancelled<'c, R> {
    file: R,
    cancel: &'c CancellationToken,
}

impl<R: Read> Read for UntilCancelled<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    async fn check(arguments: Value) -> Map<String, Value> {
        let bench = Bench::new();
        bench.write("a.rs", "fn one() {}\nfn two() {}\n\nlast é (x)\n");
        bench.write("sub/b.txt", "Fn one\r\nnothing\n");
        bench.write("bin", b"fn one\0\n");
        bench.write("no/ignored.rs", "fn one\n");
        bench.write(".gitignore", "no\n");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            bench.cwd().join("fifo"),
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        bench.run(tool, arguments).await
    }

    #[tokio::test]
    async fn matches_come_with_path_and_line() {
        let result = check(json!({"pattern": "fn (one|two)"})).await;
        assert_eq!(
            result["content"],
            "a.rs:1:fn one() {}\na.rs:2:fn two() {}\n"
        );
        assert_eq!(
            (&result["matches"], &result["files"]),
            (&json!(2), &json!(1))
        );
    }

    #[tokio::test]
    async fn options_do_what_they_say() {
        let cases = [
            (
                json!({"pattern": "fn one", "ignore_case": true}),
                "a.rs:1:fn one() {}\nsub/b.txt:1:Fn one\n",
            ),
            (
                json!({"pattern": "(x)", "literal": true}),
                "a.rs:4:last é (x)\n",
            ),
            (
                json!({"pattern": "two", "context": 1}),
                "a.rs-1-fn one() {}\na.rs:2:fn two() {}\na.rs-3-\n",
            ),
            (
                json!({"pattern": "one", "files_only": true}),
                "a.rs\nsub/b.txt\n",
            ),
            (
                json!({"pattern": "one", "glob": "*.txt"}),
                "sub/b.txt:1:Fn one\n",
            ),
            (
                json!({"pattern": "one", "path": "sub"}),
                "sub/b.txt:1:Fn one\n",
            ),
            (
                json!({"pattern": "one", "path": "sub/b.txt"}),
                "sub/b.txt:1:Fn one\n",
            ),
            (
                json!({"pattern": "fn one$", "all": true}),
                "no/ignored.rs:1:fn one\n",
            ),
            (json!({"pattern": "nowhere"}), ""),
        ];
        for (arguments, content) in cases {
            let result = check(arguments.clone()).await;
            assert_eq!(result["content"], content, "{arguments}");
            assert_eq!(result.get("note"), None, "{arguments}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_searched_is_named() {
        let error = check(json!({"pattern": "(a"})).await["error"].clone();
        assert!(
            error
                .as_str()
                .unwrap()
                .starts_with("cannot use the pattern (a: ")
        );
        assert_eq!(
            check(json!({"pattern": "a", "path": "gone"})).await["error"],
            "not found: gone"
        );
    }

    #[tokio::test]
    async fn many_matches_are_cut_and_long_lines_shortened() {
        let bench = Bench::new();
        bench.write("a", format!("x{}\n", "é".repeat(1000)).repeat(500));
        let result = bench.run(tool, json!({"pattern": "x"})).await;
        let content = result["content"].as_str().unwrap();
        assert!(content.len() <= CAP && content.lines().all(|line| line.len() < 420));
        assert!(result["note"].as_str().unwrap().starts_with("cut: "));
    }

    #[tokio::test]
    async fn a_search_through_a_huge_file_ends_with_its_call() {
        let bench = Bench::new();
        let file = bench.write("huge", "");
        let line = "y".repeat(1000) + "\n";
        std::fs::write(&file, line.repeat(50_000)).unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let search = Search::new(
            &bench.call(),
            json!({"pattern": "x"}).as_object().unwrap(),
            ".",
        )
        .unwrap();
        assert_eq!(search.run(".", &cancel).unwrap_err(), "cancelled");
    }
}
