//! Bash: argc's own reading of a script's comment tags, turned into declarations.
//! Must never run the functions that give choices and defaults, nor read a tag where bash reads none.

mod quoted;
mod schema;
mod source;

use super::{Declaration, Declared, Kind, Problem};
use argc::{CommandValue, FlagOptionValue, PositionalValue};
use schema::Parameter;
pub(super) use schema::unescaped;
use serde_json::{Map, Value};

/// How a value comes to the script, as its author would type it.
#[derive(Clone, Debug, PartialEq)]
pub enum Passed {
    Flag(String),
    Option(String),
    /// Glued to the name.
    Prefix(String),
    Positional,
}

pub(super) fn declare(kind: Kind, stem: &str, text: &str) -> Result<Declared, Problem> {
    let root = export(stem, text)?;
    match kind {
        Kind::Tool => tool(&root, stem, text),
        Kind::Agent => agent(&root, text),
    }
}

/// What argc makes of the script.
pub(super) fn export(stem: &str, text: &str) -> Result<CommandValue, Problem> {
    let prepared = source::prepared(text);
    if let Some(line) = source::line_of_long_notation(&prepared) {
        return Err(Problem::new(
            line,
            format!("a notation of more than {} characters", source::NOTATION),
        ));
    }
    // A file that its library cannot bear takes no other along.
    match std::panic::catch_unwind(|| argc::export(&prepared, stem)) {
        Ok(exported) => exported.map_err(|error| problem(&error.to_string())),
        Err(_) => Err(Problem::new(1, "too odd for argc")),
    }
}

pub(super) fn has_command(text: &str, name: &str) -> bool {
    let root = export("agent", text);
    root.is_ok_and(|root| root.subcommands.iter().any(|command| command.name == name))
}

fn tool(root: &CommandValue, stem: &str, text: &str) -> Result<Declared, Problem> {
    if root.describe.trim().is_empty() {
        return Err(Problem::new(1, "no @describe says what the tool does"));
    }
    let mut tool = declaration(root, text)?;
    tool.name = property(stem);
    // The whole of the script, not a command of it.
    tool.function.clear();
    let mut declared = Declared {
        declarations: vec![tool],
        warnings: odd_defaults(root, text),
    };
    if let Some(command) = root.subcommands.first() {
        let message = format!("its commands ({}, ...) are not offered", command.name);
        declared.warnings.push(Problem::new(1, message));
    }
    Ok(declared)
}

fn agent(root: &CommandValue, text: &str) -> Result<Declared, Problem> {
    let mut declared = Declared::default();
    let is_public = |command: &&CommandValue| !command.name.starts_with('_');
    for command in root.subcommands.iter().filter(is_public) {
        if command.describe.trim().is_empty() {
            let message = format!(
                "@cmd of {} says nothing, so it is not offered",
                command.name
            );
            let line = source::line_of_function(text, &command.name);
            declared.warnings.push(Problem::new(line, message));
            continue;
        }
        declared.declarations.push(declaration(command, text)?);
        declared.warnings.extend(odd_defaults(command, text));
    }
    if root.subcommands.is_empty() {
        declared
            .warnings
            .push(Problem::new(1, "no @cmd, so no tool"));
    }
    Ok(declared)
}

fn declaration(command: &CommandValue, text: &str) -> Result<Declaration, Problem> {
    let mut declaration = Declaration {
        name: property(&command.name),
        description: command.describe.trim().to_owned(),
        function: command.name.clone(),
        ..Declaration::default()
    };
    let options = options(command, text).map(Parameter::from);
    let positionals = command.positionals.iter().map(Parameter::from);
    for parameter in options.chain(positionals) {
        let name = property(parameter.id);
        if declaration.properties.contains_key(&name) {
            let line = source::line_of_parameter(text, parameter.id).unwrap_or(1);
            let message = format!(
                "{} and another one are both the property {name}",
                parameter.id
            );
            return Err(Problem::new(line, message));
        }
        declaration.property(&name, parameter.schema(), parameter.required);
        if parameter.required && parameter.is_bound() {
            declaration.bound.insert(name.clone());
        }
        declaration.passed.insert(name, parameter.passed());
    }
    Ok(declaration)
}

/// The defaults that are no numbers where the notation asks for one.
fn odd_defaults(command: &CommandValue, text: &str) -> Vec<Problem> {
    let options = options(command, text).map(Parameter::from);
    let positionals = command.positionals.iter().map(Parameter::from);
    let odd = options.chain(positionals).filter_map(|parameter| {
        let default = parameter.odd_default()?;
        let line = source::line_of_parameter(text, parameter.id).unwrap_or(1);
        let message = format!("the default {default:?} of {} is no number", parameter.id);
        Some(Problem::new(line, message))
    });
    odd.collect()
}

/// Without `--help` and `--version` where they are argc's own.
pub(super) fn options<'c>(
    command: &'c CommandValue,
    text: &str,
) -> impl Iterator<Item = &'c FlagOptionValue> {
    let is_own = |option: &&FlagOptionValue| {
        !(option.flag && ["help", "version"].contains(&option.id.as_str()))
            || source::line_of_parameter(text, &option.id).is_some()
    };
    command.flag_options.iter().filter(is_own)
}

/// The programs that the script says it needs.
pub(super) fn required_tools(root: &CommandValue) -> Vec<String> {
    let said = root.extra.get("require_tools").and_then(Value::as_array);
    let words = said.into_iter().flatten().filter_map(Value::as_str);
    let words = words.flat_map(|word| word.split([' ', ',']));
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Dashes are no part of a name that a program would like to use.
pub(super) fn property(name: &str) -> String {
    name.replace('-', "_")
}

/// argc says the line somewhere in its message.
fn problem(message: &str) -> Problem {
    let after = message.split_once("line ").map(|(_, rest)| rest);
    let digits = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    };
    let hint = unknown_tag(message).map_or(String::new(), |real| format!("; is @{real} meant?"));
    Problem::new(
        after.and_then(digits).unwrap_or(1),
        format!("{message}{hint}"),
    )
}

/// The tag that one which argc does not know differs from by its case, or that it begins with.
fn unknown_tag(message: &str) -> Option<&'static str> {
    const TAGS: &[&str] = &[
        "describe", "option", "flag", "arg", "env", "meta", "cmd", "alias", "version",
    ];
    let name = message.strip_prefix('@')?.split('(').next()?;
    let name = message
        .contains("unknown tag")
        .then(|| name.to_lowercase())?;
    TAGS.iter().find(|tag| name.starts_with(*tag)).copied()
}

/// A choice list in a place where argc takes it for text.
fn is_doubtful(default: &str, describe: &str) -> bool {
    default.contains('|') || describe.trim_start().starts_with('[')
}
