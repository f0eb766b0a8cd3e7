//! `list`: what is in a directory.

use super::arguments::{self, Arguments};
use super::walk::{Listing, Walk, Which};
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use ignore::DirEntry;
use serde_json::{Map, Value, json};

pub(super) fn tool() -> Tool {
    Tool::new(
        "list",
        "List a directory. Folders end with `/`, links show where they lead. Files that .gitignore names are left out.",
    )
    .param("path", json!({"type": "string", "description": "The directory; the session's if not given"}))
    .param("depth", json!({"type": "integer", "minimum": 1, "description": "How many levels to show; 1 if not given"}))
    .param("all", json!({"type": "boolean", "description": "Show ignored files too"}))
    .alias("ls")
    .access(Access::Read)
    .path("path")
    .handler(list)
}

async fn list(call: Call, arguments: Arguments) -> Outcome {
    let shown = arguments::optional_text(&arguments, "path")
        .unwrap_or(".")
        .to_owned();
    let root = arguments::path(&call, &shown);
    let depth = Some(arguments::count(&arguments, "depth").unwrap_or(1));
    let walk = Walk {
        cwd: root.clone(),
        root,
        which: Which::of(&arguments),
        depth,
    };
    let work = move |cancel: &_| {
        if !walk.root.is_dir() && walk.root.exists() {
            return Err(format!("{shown} is not a directory"));
        }
        let mut listing = Listing::new();
        for entry in walk.entries(&shown, cancel)? {
            if !listing.add(line(&walk, &entry)) {
                break;
            }
        }
        Ok(result(&walk, listing))
    };
    Ok(arguments::blocking(&call, work)
        .await
        .unwrap_or_else(arguments::failure))
}

fn line(walk: &Walk, entry: &DirEntry) -> String {
    let path = walk.shown(entry.path());
    match entry.file_type() {
        Some(kind) if kind.is_dir() => path + "/",
        Some(kind) if kind.is_symlink() => match std::fs::read_link(entry.path()) {
            Ok(target) => format!("{path} -> {}", target.to_string_lossy()),
            Err(_) => path,
        },
        _ => path,
    }
}

fn result(walk: &Walk, listing: Listing) -> Map<String, Value> {
    let mut result = Map::from_iter([("path".to_owned(), json!(walk.root.to_string_lossy()))]);
    let note = format!(
        "cut after {} entries: list a folder below, or use glob",
        listing.len()
    );
    let is_cut = listing.is_cut();
    result.insert("entries".to_owned(), json!(listing.into_lines()));
    if is_cut {
        result.insert("note".to_owned(), json!(note));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    fn bench() -> Bench {
        let bench = Bench::new();
        for name in [
            "b.txt",
            "a/in.txt",
            ".hidden",
            "target/x",
            ".git/config",
            "a/deep/er",
        ] {
            bench.write(name, "");
        }
        bench.write(".gitignore", "target\n");
        std::os::unix::fs::symlink("..", bench.cwd().join("up")).unwrap();
        bench
    }

    #[tokio::test]
    async fn entries_come_sorted_without_the_ignored() {
        let bench = bench();
        let result = bench.run(tool, json!({})).await;
        assert_eq!(
            result["entries"],
            json!([".gitignore", ".hidden", "a/", "b.txt", "up -> .."])
        );
        assert_eq!(result["path"], json!(bench.cwd()));
        let result = bench.run(tool, json!({"all": true})).await;
        assert_eq!(
            result["entries"],
            json!([
                ".gitignore",
                ".hidden",
                "a/",
                "b.txt",
                "target/",
                "up -> .."
            ])
        );
    }

    #[tokio::test]
    async fn levels_below_are_shown_when_asked_and_links_not_followed() {
        let result = bench().run(tool, json!({"path": "a", "depth": 2})).await;
        assert_eq!(result["entries"], json!(["deep/", "deep/er", "in.txt"]));
        let result = bench().run(tool, json!({"depth": 50})).await;
        assert_eq!(result["entries"].as_array().unwrap().len(), 8);
    }

    #[tokio::test]
    async fn what_is_no_directory_is_said() {
        assert_eq!(
            bench().run(tool, json!({"path": "b.txt"})).await["error"],
            "b.txt is not a directory"
        );
        assert_eq!(
            bench().run(tool, json!({"path": "gone"})).await["error"],
            "not found: gone"
        );
    }

    #[tokio::test]
    async fn a_long_list_is_cut_and_says_so() {
        let bench = Bench::new();
        for count in 0..400 {
            bench.write(&format!("{}{count:03}", "x".repeat(200)), "");
        }
        let result = bench.run(tool, json!({})).await;
        assert!(result["entries"].as_array().unwrap().len() < 200);
        assert!(result["note"].as_str().unwrap().starts_with("cut after "));
    }
}
