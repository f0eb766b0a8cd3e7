//! Toolboxes as a command line names them: a name, or an expression in JSON. Must never know which there are.

use protocol::expression::Expression;
use serde_json::Value;

/// What `--toolbox` was given.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Toolbox {
    /// Which tools, and how they are shown: a toolbox's name, or an expression such as
    /// '{"restrict": {"of": "default", "names": ["read"]}}'
    #[arg(long, value_name = "TOOLBOX", value_parser = read)]
    toolbox: Option<Expression>,
}

impl Toolbox {
    /// As it travels.
    pub(crate) fn value(&self) -> Option<Value> {
        self.toolbox.as_ref().map(Expression::to_value)
    }
}

fn read(text: &str) -> Result<Expression, String> {
    let value = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?,
        false => Value::String(text.to_owned()),
    };
    Expression::parse("toolbox", &value).map_err(|bad| bad.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolbox_is_a_name_or_an_expression() {
        assert_eq!(
            read("mcp github"),
            Ok(Expression::Named("mcp github".to_owned()))
        );
        let merged = read(r#" {"merge": ["a", "b"]}"#);
        assert!(matches!(merged, Ok(Expression::Merge(all)) if all.len() == 2));
        let why = read(r#"{"merge": []}"#).unwrap_err();
        assert_eq!(why, "toolbox.merge: must have at least one toolbox");
        assert!(read("{").unwrap_err().starts_with("it is no JSON"));
    }
}
