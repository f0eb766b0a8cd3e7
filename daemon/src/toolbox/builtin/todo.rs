//! `todo`: a session's list of what is to be done. Kept beside the files of its outputs, so that it outlives a restart.

use super::arguments::{self, Arguments};
use super::file::{self, Found};
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub(super) fn tool() -> Tool {
    let item = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 1000},
            "status": {"type": "string", "enum": ["pending", "in_progress", "done"]},
        },
        "required": ["text"],
    });
    Tool::new(
        "todo",
        "Keep a list of what is to be done in this session. `items` replaces the whole list; without it the list is \
         shown. For work of several steps: write the list first, then mark each item as it begins and ends.",
    )
    .param("items", json!({"type": "array", "items": item, "maxItems": 200, "description": "The whole list, in order; `status` is pending if not given"}))
    .access(Access::Nothing)
    .handler(todo)
}

#[derive(Debug, Serialize, Deserialize)]
struct Item {
    text: String,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Pending,
    InProgress,
    Done,
}

async fn todo(call: Call, arguments: Arguments) -> Outcome {
    let items = arguments.get("items").cloned();
    let folder = call.spill_dir.clone();
    let name = format!("{}.todo.json", call.session).replace('/', "_");
    let work = move |_: &_| match items {
        Some(items) => {
            let items = serde_json::from_value(items)
                .map_err(|error| format!("cannot read `items`: {error}"))?;
            save(&folder, &name, &items)?;
            Ok(result(&items))
        }
        None => Ok(result(&load(&folder.join(name))?)),
    };
    Ok(arguments::blocking(&call, work)
        .await
        .unwrap_or_else(arguments::failure))
}

fn load(path: &Path) -> Result<Vec<Item>, String> {
    match fs::read(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map_err(|error| format!("the list is damaged: {error}"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(file::cannot("read", "the list", &error)),
    }
}

fn save(folder: &Path, name: &str, items: &Vec<Item>) -> Result<(), String> {
    super::capture::make_private(folder)
        .map_err(|error| file::cannot("keep", "the list", &error))?;
    let path: PathBuf = folder.join(name);
    let bytes =
        serde_json::to_vec(items).map_err(|error| format!("cannot keep the list: {error}"))?;
    Found::at(&path, "the list")?.replace(&bytes, "the list")
}

fn result(items: &Vec<Item>) -> Map<String, Value> {
    let line = |item: &Item| {
        let mark = match item.status {
            Status::Pending => ' ',
            Status::InProgress => '>',
            Status::Done => 'x',
        };
        format!("[{mark}] {}\n", item.text)
    };
    Map::from_iter([
        (
            "content".to_owned(),
            Value::String(items.iter().map(line).collect()),
        ),
        ("items".to_owned(), json!(items)),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[tokio::test]
    async fn the_list_is_replaced_shown_and_kept() {
        let bench = Bench::new();
        assert_eq!(bench.run(tool, json!({})).await["content"], "");
        let items = json!([{"text": "a", "status": "done"}, {"text": "b", "status": "in_progress"}, {"text": "c"}]);
        let shown = "[x] a\n[>] b\n[ ] c\n";
        assert_eq!(
            bench.run(tool, json!({"items": items})).await["content"],
            shown
        );
        let result = bench.run(tool, json!({})).await;
        assert_eq!(result["content"], shown);
        assert_eq!(
            result["items"][2],
            json!({"text": "c", "status": "pending"})
        );
    }

    #[tokio::test]
    async fn an_unknown_status_is_refused() {
        let result = Bench::new()
            .run(tool, json!({"items": [{"text": "a", "status": "soon"}]}))
            .await;
        assert!(
            result["error"].as_str().unwrap().contains("in_progress"),
            "{result:?}"
        );
    }
}
