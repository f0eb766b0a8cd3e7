//! Tool calls as editors show them: what kind, which files, what changes.

use agent_client_protocol_schema::v1::{
    Diff, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus, ToolCallUpdateFields,
    ToolKind,
};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Of a title: the rest is in the call's input.
const TITLE: usize = 160;

/// What a file holds before a call that writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::acp) enum Old {
    /// Nobody can tell: it lies on another machine, is no text, or the call was made long ago.
    #[default]
    Unknown,
    /// There is no such file.
    None,
    /// This.
    Text(String),
}

/// A call that the model makes.
pub(super) fn begun(id: &str, tool: &str, arguments: &Value, cwd: &Path, old: &Old) -> ToolCall {
    let arguments = object(arguments);
    ToolCall::new(id.to_owned(), title(tool, &arguments))
        .kind(kind(tool))
        .status(ToolCallStatus::Pending)
        .content(changes(tool, &arguments, cwd, old))
        .locations(locations(&arguments, cwd))
        .raw_input(Value::Object(arguments))
}

/// What a person is asked about: all that would run is to be seen at the moment of the decision, and the reason beside it.
pub(in crate::acp) fn asked(
    tool: &str,
    arguments: &Value,
    why: &str,
    cwd: &Path,
    old: &Old,
) -> ToolCallUpdateFields {
    let arguments = object(arguments);
    let mut content = changes(tool, &arguments, cwd, old);
    content.push(why.into());
    ToolCallUpdateFields::new()
        .title(title(tool, &arguments))
        .kind(kind(tool))
        .content(content)
        .locations(locations(&arguments, cwd))
        .raw_input(Value::Object(arguments))
}

/// What has become of it. `shown` is what of it was shown so far: a change stays to be seen beside the result.
pub(super) fn ended(
    result: &Map<String, Value>,
    shown: Vec<ToolCallContent>,
) -> ToolCallUpdateFields {
    let status = match result.get("ok") {
        Some(Value::Bool(false)) => ToolCallStatus::Failed,
        _ => ToolCallStatus::Completed,
    };
    let mut content = shown;
    let text = text(result);
    if !text.is_empty() && (content.is_empty() || status == ToolCallStatus::Failed) {
        content.push(text.into());
    }
    ToolCallUpdateFields::new()
        .status(status)
        .content(content)
        .raw_output(Value::Object(result.clone()))
}

/// The diffs of a call that edits.
pub(super) fn changes(
    tool: &str,
    arguments: &Map<String, Value>,
    cwd: &Path,
    old: &Old,
) -> Vec<ToolCallContent> {
    let word = |name: &str| arguments.get(name).and_then(Value::as_str);
    let Some(path) = word("path").map(|path| whole(path, cwd)) else {
        return Vec::new();
    };
    let diff = match (tool, word("old"), word("new"), word("content")) {
        ("edit", Some(old), Some(new), _) => Diff::new(path, new).old_text(old.to_owned()),
        ("write", _, _, Some(content)) => match old {
            Old::None => Diff::new(path, content),
            // One that holds the new text may have been written by now.
            Old::Text(old) if old != content => Diff::new(path, content).old_text(old.clone()),
            Old::Text(_) | Old::Unknown => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    vec![diff.into()]
}

/// The file that a call writes whole.
pub(in crate::acp) fn written(tool: &str, arguments: &Value, cwd: &Path) -> Option<PathBuf> {
    let arguments = object(arguments);
    let path = arguments.get("path").and_then(Value::as_str)?;
    (tool == "write").then(|| whole(path, cwd))
}

/// Arguments as an object: a model may have written one into a string.
pub(super) fn object(arguments: &Value) -> Map<String, Value> {
    match arguments {
        Value::Object(object) => object.clone(),
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        _ => Map::new(),
    }
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" | "open" | "skill" => ToolKind::Read,
        "list" | "glob" | "grep" => ToolKind::Search,
        "write" | "edit" => ToolKind::Edit,
        "execute" | "bash" | "sh" | "exec" | "git" => ToolKind::Execute,
        "fetch" => ToolKind::Fetch,
        "todo" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// A command as it is, everything else by its tool and what it is about.
fn title(tool: &str, arguments: &Map<String, Value>) -> String {
    let word = |name: &str| arguments.get(name).and_then(Value::as_str);
    let subject = [
        "command", "path", "pattern", "url", "name", "prompt", "query",
    ]
    .into_iter()
    .find_map(word);
    let title = match (kind(tool), subject) {
        (ToolKind::Execute, Some(command)) if tool != "git" => command.to_owned(),
        (_, Some(subject)) => format!("{tool} {subject}"),
        (_, None) => tool.to_owned(),
    };
    let line = title.lines().next().unwrap_or_default();
    let more = line.chars().count() > TITLE || line.len() < title.len();
    let cut: String = line.chars().take(TITLE).collect();
    if more { format!("{cut} …") } else { cut }
}

fn locations(arguments: &Map<String, Value>, cwd: &Path) -> Vec<ToolCallLocation> {
    let Some(path) = arguments.get("path").and_then(Value::as_str) else {
        return Vec::new();
    };
    let line = arguments.get("offset").and_then(Value::as_u64);
    let line = line.and_then(|line| u32::try_from(line).ok());
    vec![ToolCallLocation::new(whole(path, cwd)).line(line)]
}

/// Editors know files by their whole paths.
fn whole(path: &str, cwd: &Path) -> PathBuf {
    match path.strip_prefix("~/").zip(std::env::home_dir()) {
        Some((rest, home)) => home.join(rest),
        None => cwd.join(path),
    }
}

/// What a result says, for people.
fn text(result: &Map<String, Value>) -> String {
    let word = |name: &str| result.get(name).and_then(Value::as_str);
    if let Some(text) = word("error").or_else(|| word("content")) {
        return text.to_owned();
    }
    let rest = result.iter().filter(|(name, _)| *name != "ok");
    let rest: Map<_, _> = rest
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    match rest.is_empty() {
        true => String::new(),
        false => serde_json::to_string_pretty(&rest).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(tool: &str, arguments: Value) -> Value {
        serde_json::to_value(begun("c1", tool, &arguments, Path::new("/w"), &Old::None)).unwrap()
    }

    #[test]
    fn an_edit_shows_its_file_and_its_change() {
        let call = check("edit", json!({"path": "a.rs", "old": "x", "new": "y"}));
        assert_eq!(call["kind"], "edit");
        assert_eq!(call["title"], "edit a.rs");
        assert_eq!(call["locations"], json!([{"path": "/w/a.rs"}]));
        let diff = json!([{"type": "diff", "path": "/w/a.rs", "oldText": "x", "newText": "y"}]);
        assert_eq!(call["content"], diff);
    }

    #[test]
    fn a_command_is_its_own_title_and_is_cut_after_its_first_line() {
        let call = check("bash", json!({"command": "make\nmake install"}));
        assert_eq!(
            (&call["title"], &call["kind"]),
            (&json!("make …"), &json!("execute"))
        );
    }

    #[test]
    fn arguments_in_a_string_are_read_and_nonsense_is_none() {
        let call = check("read", json!("{\"path\": \"/a\", \"offset\": 7}"));
        assert_eq!(call["locations"], json!([{"path": "/a", "line": 7}]));
        assert_eq!(check("read", json!("{"))["rawInput"], json!({}));
    }

    #[test]
    fn a_failed_call_keeps_its_change_and_says_why() {
        let shown = changes(
            "edit",
            &object(&json!({"path": "/a", "old": "x", "new": "y"})),
            Path::new("/"),
            &Old::None,
        );
        let result = object(&json!({"error": "no match", "ok": false}));
        let fields = serde_json::to_value(ended(&result, shown)).unwrap();
        assert_eq!(fields["status"], "failed");
        assert_eq!(fields["content"][0]["type"], "diff");
        assert_eq!(fields["content"][1]["content"]["text"], "no match");
    }

    #[test]
    fn a_file_that_is_written_over_is_shown_as_it_was() {
        let shown = |old: &Old| {
            let arguments = json!({"path": "a", "content": "two"});
            let call = begun("c1", "write", &arguments, Path::new("/w"), old);
            serde_json::to_value(call).unwrap()
        };
        let over = &shown(&Old::Text("one".into()))["content"][0];
        assert_eq!(
            (&over["oldText"], &over["newText"]),
            (&json!("one"), &json!("two"))
        );
        let new = &shown(&Old::None)["content"][0];
        assert_eq!((new.get("oldText"), &new["newText"]), (None, &json!("two")));
        for unsure in [Old::Text("two".into()), Old::Unknown] {
            assert_eq!(shown(&unsure)["content"].get(0), None);
        }
    }

    #[test]
    fn a_question_keeps_the_calls_title_and_tells_why_beside_it() {
        let arguments = json!({"command": "curl x | sh"});
        let fields = asked(
            "execute",
            &arguments,
            "no rule covers it",
            Path::new("/w"),
            &Old::None,
        );
        let fields = serde_json::to_value(fields).unwrap();
        assert_eq!(fields["title"], "curl x | sh");
        assert_eq!(fields["kind"], "execute");
        assert_eq!(fields["content"][0]["content"]["text"], "no rule covers it");
    }
}
