//! `glob`: files by a pattern of their path.

use super::arguments::{self, Arguments};
use super::walk::{Listing, Walk, Which, is_file};
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Map, Value, json};
use std::path::Path;

pub(super) fn tool() -> Tool {
    Tool::new(
        "glob",
        "Find files by a pattern such as `src/**/*.rs` or `*.{js,ts}`. A pattern without `/` matches names in every \
         folder. Files that .gitignore names are left out.",
    )
    .param("pattern", json!({"type": "string", "minLength": 1, "description": "The pattern; `*` stays within a folder, `**` does not"}))
    .param("path", json!({"type": "string", "description": "The directory to look in; the session's if not given"}))
    .param("all", json!({"type": "boolean", "description": "Find ignored files too"}))
    .required("pattern")
    .access(Access::Read)
    .path("path")
    .path("pattern")
    .handler(glob)
}

async fn glob(call: Call, arguments: Arguments) -> Outcome {
    let given = arguments::optional_text(&arguments, "path").unwrap_or(".");
    let (folder, pattern) = split(arguments::text(&arguments, "pattern"));
    let shown = match folder {
        "" => given.to_owned(),
        _ if folder.starts_with(['~', '/']) => folder.to_owned(),
        _ => Path::new(given).join(folder).to_string_lossy().into_owned(),
    };
    let matcher = match folder {
        "" => anywhere(pattern),
        _ => anchored(pattern),
    };
    let matcher = match matcher {
        Ok(matcher) => matcher,
        Err(error) => return Ok(arguments::failure(error)),
    };
    let walk = Walk {
        root: arguments::path(&call, &shown),
        cwd: call.cwd.clone(),
        which: Which::of(&arguments),
        depth: None,
    };
    let work = move |cancel: &_| {
        let mut listing = Listing::new();
        for entry in walk.entries(&shown, cancel)?.filter(is_file) {
            let below = entry
                .path()
                .strip_prefix(&walk.root)
                .unwrap_or(entry.path());
            if matcher.is_match(below) && !listing.add(walk.shown(entry.path())) {
                break;
            }
        }
        Ok(result(listing))
    };
    Ok(arguments::blocking(&call, work)
        .await
        .unwrap_or_else(arguments::failure))
}

/// The folders before the first wildcard, which say where to look, and the rest.
fn split(pattern: &str) -> (&str, &str) {
    let wild = pattern
        .find(['*', '?', '[', '{', '\\'])
        .unwrap_or(pattern.len());
    match pattern[..wild].rfind('/') {
        Some(0) => ("/", &pattern[1..]),
        Some(end) => (&pattern[..end], &pattern[end + 1..]),
        None => ("", pattern),
    }
}

/// Matches paths below a folder; a name alone matches at any depth.
pub(super) fn anywhere(pattern: &str) -> Result<GlobMatcher, String> {
    match pattern.contains('/') {
        true => anchored(pattern),
        false => anchored(&format!("**/{pattern}")),
    }
}

fn anchored(pattern: &str) -> Result<GlobMatcher, String> {
    match GlobBuilder::new(pattern).literal_separator(true).build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(format!(
            "cannot use the pattern {pattern}: {}",
            error.kind()
        )),
    }
}

fn result(listing: Listing) -> Map<String, Value> {
    let note = format!("cut after {} files: use a narrower pattern", listing.len());
    let is_cut = listing.is_cut();
    let mut result = Map::from_iter([("paths".to_owned(), json!(listing.into_lines()))]);
    if is_cut {
        result.insert("note".to_owned(), json!(note));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    async fn check(arguments: Value) -> Value {
        let bench = Bench::new();
        for name in [
            "a.rs",
            "src/b.rs",
            "src/deep/c.rs",
            "src/d.js",
            "target/e.rs",
            ".github/w.yml",
        ] {
            bench.write(name, "");
        }
        bench.write("src/.gitignore", "ignored.rs\n");
        bench.write("src/ignored.rs", "");
        bench.write(".gitignore", "/target/\n");
        std::os::unix::fs::symlink(".", bench.cwd().join("src/loop")).unwrap();
        let mut result = bench.run(tool, arguments).await;
        result.remove("ok");
        result.remove("paths").unwrap_or(Value::Object(result))
    }

    #[tokio::test]
    async fn a_name_matches_in_every_folder_and_a_path_only_there() {
        assert_eq!(
            check(json!({"pattern": "*.rs"})).await,
            json!(["a.rs", "src/b.rs", "src/deep/c.rs"])
        );
        assert_eq!(
            check(json!({"pattern": "src/*.rs"})).await,
            json!(["src/b.rs"])
        );
        assert_eq!(
            check(json!({"pattern": "src/**/*.{rs,js}"})).await,
            json!(["src/b.rs", "src/d.js", "src/deep/c.rs"])
        );
        assert_eq!(
            check(json!({"pattern": "**/*.yml"})).await,
            json!([".github/w.yml"])
        );
        assert_eq!(check(json!({"pattern": "./a.rs"})).await, json!(["a.rs"]));
    }

    #[tokio::test]
    async fn the_folder_may_be_given_apart() {
        assert_eq!(
            check(json!({"pattern": "*.rs", "path": "src/deep"})).await,
            json!(["src/deep/c.rs"])
        );
        assert_eq!(
            check(json!({"pattern": "deep/*", "path": "src"})).await,
            json!(["src/deep/c.rs"])
        );
        assert_eq!(
            check(json!({"pattern": "*", "path": "gone"})).await["error"],
            "not found: gone"
        );
    }

    #[tokio::test]
    async fn ignored_files_are_found_when_asked() {
        let all = json!([
            "a.rs",
            "src/b.rs",
            "src/deep/c.rs",
            "src/ignored.rs",
            "target/e.rs"
        ]);
        assert_eq!(check(json!({"pattern": "*.rs", "all": true})).await, all);
    }

    #[tokio::test]
    async fn a_pattern_outside_the_directory_gives_whole_paths() {
        assert_eq!(
            check(json!({"pattern": "/etc/host[n]ame"})).await,
            json!(["/etc/hostname"])
        );
    }

    #[tokio::test]
    async fn a_broken_pattern_is_named() {
        let error = check(json!({"pattern": "a[b"})).await["error"].clone();
        assert!(
            error
                .as_str()
                .unwrap()
                .starts_with("cannot use the pattern "),
            "{error}"
        );
    }
}
