//! `write`: a whole file, made or replaced at once. Never leaves half of one.

use super::arguments::{self, Arguments};
use super::change;
use super::file::{self, Found};
use crate::toolbox::tool::{Access, Call, Change, Outcome, Tool};
use serde_json::{Map, json};
use std::io::Read;

/// The most bytes of either side that are compared.
const COMPARED: u64 = 1 << 20;

pub(super) fn tool() -> Tool {
    Tool::new(
        "write",
        "Write a file whole: makes it and its folders, or replaces all of it. To change a part of a file use edit.",
    )
    .param("path", json!({"type": "string", "description": "The file, relative to the session's directory, absolute, or below ~"}))
    .param("content", json!({"type": "string", "description": "All that the file is to hold"}))
    .required("path")
    .required("content")
    .access(Access::Write)
    .path("path")
    .preview(|call, arguments| Box::pin(preview(call, arguments)))
    .handler(write)
}

/// What of the file that is there goes and what comes; none of one that is new, or stays as it is.
async fn preview(call: Call, arguments: Arguments) -> Option<Change> {
    let shown = arguments::text(&arguments, "path").to_owned();
    let new = arguments::text(&arguments, "content").to_owned();
    let path = arguments::path(&call, &shown);
    let look = move |_: &_| {
        let (mut file, data) = file::open(&path, &shown)?;
        let size = data.len();
        if size > COMPARED || new.len() as u64 > COMPARED {
            let written = data.modified().ok();
            return Ok(Some(Change::of(size, (written, size))));
        }
        let mut old = Vec::new();
        file.read_to_end(&mut old)
            .map_err(|error| file::cannot("read", &shown, &error))?;
        let change = Change::of(size, &old);
        Ok((old != new.as_bytes()).then(|| Change {
            diff: String::from_utf8(old)
                .ok()
                .and_then(|old| change::whole(&old, &new)),
            ..change
        }))
    };
    // What cannot be looked at is told when it is written.
    arguments::blocking(&call, look).await.ok().flatten()
}

async fn write(call: Call, arguments: Arguments) -> Outcome {
    let shown = arguments::text(&arguments, "path").to_owned();
    let content = arguments::text(&arguments, "content").to_owned();
    let path = arguments::path(&call, &shown);
    let work = move |_: &_| {
        if shown.ends_with('/') {
            return Err(format!("{shown} names a directory"));
        }
        Found::at(&path, &shown)?.replace(content.as_bytes(), &shown)?;
        Ok(Map::from_iter([
            ("bytes".to_owned(), json!(content.len())),
            ("path".to_owned(), json!(path.to_string_lossy())),
        ]))
    };
    Ok(arguments::blocking(&call, work)
        .await
        .unwrap_or_else(arguments::failure))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use serde_json::Value;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    async fn check(bench: &Bench, path: &str, content: &str) -> Value {
        Value::Object(
            bench
                .run(tool, json!({"path": path, "content": content}))
                .await,
        )
    }

    #[tokio::test]
    async fn folders_are_made_and_nothing_else_is_left() {
        let bench = Bench::new();
        let result = check(&bench, "a/b/c.txt", "é\n").await;
        let path = bench.cwd().join("a/b/c.txt");
        assert_eq!(result, json!({"bytes": 3, "path": path, "ok": true}));
        assert_eq!(fs::read_to_string(&path).unwrap(), "é\n");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn the_mode_is_kept_and_a_new_file_has_the_usual_one() {
        let bench = Bench::new();
        let path = bench.write("run.sh", "old");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        check(&bench, "run.sh", "new").await;
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o751
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let usual = fs::metadata(bench.write("usual", ""))
            .unwrap()
            .permissions();
        check(&bench, "fresh", "").await;
        assert_eq!(
            fs::metadata(bench.cwd().join("fresh"))
                .unwrap()
                .permissions(),
            usual
        );
    }

    #[tokio::test]
    async fn a_link_stays_a_link() {
        let bench = Bench::new();
        bench.write("real", "old");
        symlink("real", bench.cwd().join("link")).unwrap();
        symlink("sub/new", bench.cwd().join("dangling")).unwrap();
        check(&bench, "link", "new").await;
        check(&bench, "dangling", "made").await;
        assert_eq!(fs::read_to_string(bench.cwd().join("real")).unwrap(), "new");
        assert_eq!(
            fs::read_to_string(bench.cwd().join("sub/new")).unwrap(),
            "made"
        );
        assert!(bench.cwd().join("link").is_symlink());
    }

    #[tokio::test]
    async fn what_is_no_file_is_refused() {
        let bench = Bench::new();
        bench.write("file", "");
        symlink("loop", bench.cwd().join("loop")).unwrap();
        let errors = [
            (".", ". is a directory"),
            ("new/", "new/ names a directory"),
            ("/dev/null", "/dev/null is a device, not a file"),
            ("file/below", "cannot write file/below: "),
            ("loop", "cannot write loop: "),
        ];
        for (path, error) in errors {
            let result = check(&bench, path, "x").await;
            assert!(
                result["error"].as_str().unwrap().starts_with(error),
                "{result}"
            );
        }
    }
}
