//! `/tools [NAME | TOOLBOX]`: the tools a model is shown, or would be with another toolbox, or the parameters of one.

use super::registry::{Candidates, Command, Failure, Invocation, Ran};
use super::table::{first_line, table};
use crate::session::SessionError;
use protocol::expression::Expression;
use protocol::tool::{Policy, ToolInfo, ToolList};
use serde_json::Value;

/// Where complaints about an expression begin.
const FIELD: &str = "toolbox";

pub(super) fn command() -> Command {
    Command::new(
        "tools",
        "list the tools, or those of a toolbox, or one tool's parameters",
        run,
    )
    .completing(Candidates::asked(names))
}

async fn run(invocation: Invocation) -> Ran {
    let (sessions, session) = (&invocation.sessions, &invocation.session);
    let Some(argument) = invocation.argument() else {
        return Ok(all(&sessions.tools(session, None).await?));
    };
    if argument.starts_with('{') {
        let value: Value = serde_json::from_str(argument)
            .map_err(|error| Failure(format!("the toolbox is no JSON: {error}")))?;
        let expression =
            Expression::parse(FIELD, &value).map_err(|bad| Failure(bad.to_string()))?;
        return Ok(all(&sessions.tools(session, Some(&expression)).await?));
    }
    let known = sessions.all_tools(session).await?;
    let shown = sessions.tools(session, None).await?;
    let unknown = match one(&shown, argument).or_else(|_| one(&known, argument)) {
        Ok(page) => return Ok(page),
        Err(unknown) => unknown,
    };
    let named = Expression::Named(argument.to_owned());
    match sessions.tools(session, Some(&named)).await {
        Ok(list) => Ok(all(&list)),
        Err(SessionError::Toolbox(_)) => Err(unknown),
        Err(error) => Err(error.into()),
    }
}

async fn names(invocation: Invocation) -> Vec<String> {
    let list = invocation.sessions.all_tools(&invocation.session).await;
    let tools = list.map(|list| list.tools).unwrap_or_default();
    tools
        .into_iter()
        .map(|tool| tool.definition.function.name)
        .collect()
}

fn all(list: &ToolList) -> String {
    let rows = list.tools.iter().map(|tool| {
        let function = &tool.definition.function;
        let about = first_line(&function.description, 72);
        [
            function.name.clone(),
            policy(tool.approval).to_owned(),
            about,
        ]
    });
    let mut text = table(&rows.collect::<Vec<_>>());
    if text.is_empty() {
        text.push_str("no tools");
    }
    if list.reached > 0 {
        text.push_str(&format!(
            "\n{} more are found and called through these: /tools default lists them",
            list.reached
        ));
    }
    for name in &list.unknown_names {
        text.push_str(&format!("\nno tool is named {name:?}"));
    }
    for problem in &list.problems {
        text.push_str("\nproblem: ");
        text.push_str(problem);
    }
    text
}

fn one(list: &ToolList, name: &str) -> Ran {
    let is_it = |tool: &&ToolInfo| tool.definition.function.name == name;
    let is_alias = |tool: &&ToolInfo| tool.aliases.iter().any(|alias| alias == name);
    let found = list.tools.iter().find(is_it);
    match found.or_else(|| list.tools.iter().find(is_alias)) {
        Some(tool) => Ok(describe(tool)),
        None => {
            let names = list
                .tools
                .iter()
                .map(|tool| tool.definition.function.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            Err(Failure(format!(
                "unknown tool: {name:?}. Available: {names}."
            )))
        }
    }
}

fn describe(tool: &ToolInfo) -> String {
    let function = &tool.definition.function;
    let mut lines = vec![format!("{}: {}", function.name, function.description)];
    if !tool.aliases.is_empty() {
        lines.push(format!("aliases: {}", tool.aliases.join(", ")));
    }
    lines.push(format!(
        "source: {}, approval: {}",
        tool.source,
        policy(tool.approval)
    ));
    let rows = parameters(&function.parameters);
    if rows.is_empty() {
        lines.push("no parameters".to_owned());
    } else {
        lines.push(table(&rows));
    }
    lines.join("\n")
}

/// Name, type and description of each; the required ones say so.
fn parameters(schema: &Value) -> Vec<[String; 3]> {
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
    let properties = schema["properties"].as_object();
    let properties = properties.into_iter().flatten();
    let rows = properties.map(|(name, property)| {
        let mut kind = kind(property);
        if is_required(name) {
            kind.push_str(", required");
        }
        let about = property["description"].as_str().unwrap_or_default();
        [format!("  {name}"), kind, about.to_owned()]
    });
    rows.collect()
}

fn kind(property: &Value) -> String {
    let kind = match &property["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds.collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    };
    match property["enum"].as_array() {
        Some(values) => {
            let values = values.iter().map(Value::to_string);
            format!("{kind} of {}", values.collect::<Vec<_>>().join(" "))
        }
        None => kind,
    }
}

pub(super) fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Allow => "allow",
        Policy::Ask => "ask",
        Policy::Deny => "deny",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list() -> ToolList {
        let tools = json!([
            {"type": "function", "function": {"name": "wc", "description": "Count lines", "parameters": {
                "type": "object", "required": ["path"], "properties": {
                    "path": {"type": "string", "description": "File to count"},
                    "unit": {"type": "string", "enum": ["line", "word"]}}}},
             "aliases": ["count"], "source": "builtin", "approval": "allow"},
            {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {}},
             "aliases": [], "source": "script", "approval": "ask"},
        ]);
        ToolList {
            tools: serde_json::from_value(tools).unwrap(),
            ..ToolList::default()
        }
    }

    #[test]
    fn list_says_name_policy_and_description() {
        assert_eq!(
            all(&list()),
            "wc   allow  Count lines\nnow  ask    The time"
        );
    }

    #[test]
    fn one_tool_is_described_with_its_parameters_also_by_alias() {
        let text = "wc: Count lines\naliases: count\nsource: builtin, approval: allow\n  \
                    path  string, required         File to count\n  \
                    unit  string of \"line\" \"word\"";
        assert_eq!(one(&list(), "wc").unwrap(), text);
        assert_eq!(one(&list(), "count").unwrap(), text);
        assert!(one(&list(), "now").unwrap().ends_with("no parameters"));
    }

    #[test]
    fn unknown_tool_is_answered_with_all_names() {
        let failure = one(&list(), "x").unwrap_err();
        assert_eq!(failure.0, "unknown tool: \"x\". Available: wc, now.");
    }
}
