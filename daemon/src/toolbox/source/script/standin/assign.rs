//! The assignments of one call: what argc would make of its words, made of its values instead, so that no value can be
//! taken for an option, split or changed.

use super::super::bash::{self, unescaped};
use super::super::run::dotenv;
use super::super::run::words::{one, values};
use super::Call;
use super::quote::{list, quote};
use argc::{ChoiceValue, CommandValue, DefaultValue, EnvValue, FlagOptionValue, PositionalValue};
use serde_json::Value;
use std::fmt::Write;

/// A call, and what its script declares.
pub(super) struct Asked<'c> {
    call: &'c Call,
    text: &'c str,
    root: CommandValue,
}

/// Looks a variable of the environment up.
type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

impl<'c> Asked<'c> {
    pub(super) fn of(call: &'c Call, text: &'c str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let stem = call.script.file_stem().unwrap_or_default();
        let root = bash::export(&stem.to_string_lossy(), text)
            .map_err(|problem| problem.told(&call.script))?;
        Ok(Self { call, text, root })
    }

    fn command(&self) -> Result<&CommandValue, String> {
        let name = self.call.function.as_str();
        if name.is_empty() {
            return Ok(&self.root);
        }
        let mut commands = self.root.subcommands.iter();
        commands
            .find(|command| command.name == name)
            .ok_or_else(|| format!("{} has no command {name}", self.call.script.display()))
    }

    fn envs<'r>(&'r self, command: &'r CommandValue) -> impl Iterator<Item = &'r EnvValue> {
        let own = command.envs.iter().filter(|env| !env.inherited);
        self.root.envs.iter().chain(own)
    }

    /// Whether nothing that the script may do before it asks can change the answer.
    pub(super) fn is_settled(&self, env: Environment<'_>) -> bool {
        let Ok(command) = self.command() else {
            return true;
        };
        let is_bound = command.flag_options.iter().any(|one| one.env.is_some())
            || command.positionals.iter().any(|one| one.env.is_some());
        !is_bound
            && !self.root.extra.contains_key("dotenv")
            && bash::required_tools(&self.root).is_empty()
            && self
                .envs(command)
                .all(|one| !one.required || env(&one.id).is_some())
    }

    pub(super) fn lines(&self, env: Environment<'_>) -> Result<String, String> {
        let (call, root, command) = (self.call, &self.root, self.command()?);
        if command.extra.get("command_fn").is_none_or(Value::is_null)
            && let Some(first) = command.subcommands.first()
        {
            let (name, file) = (&command.name, call.script.display());
            let first = &first.name;
            return Err(format!(
                "{name} of {file} only holds other commands ({first}, ...)"
            ));
        }
        let mut assignments = Assignments {
            text: String::new(),
            positionals: Vec::new(),
            env,
        };
        assignments.load_dotenv(root);
        for env in self.envs(command) {
            assignments.env(env)?;
        }
        require_tools(root)?;
        for option in bash::options(command, self.text) {
            assignments.option(option, call.arguments.get(&bash::property(&option.id)))?;
        }
        for positional in &command.positionals {
            let given = call.arguments.get(&bash::property(&positional.id));
            assignments.positional(positional, given)?;
        }
        assignments.end(call, root, command);
        Ok(assignments.text)
    }
}

struct Assignments<'e> {
    text: String,
    /// Quoted, in order.
    positionals: Vec<String>,
    env: Environment<'e>,
}

/// What argc calls the variable.
fn variable(id: &str) -> String {
    format!("argc_{}", id.replace(['-', '.', ':', '@'], "_"))
}

fn lacks(name: &str, variable: Option<&str>) -> String {
    match variable {
        Some(variable) => {
            format!("{name} is required, as the environment variable {variable} is not set")
        }
        None => format!("{name} is required"),
    }
}

fn is_given(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

impl Assignments<'_> {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// The environment's value, where an option names a variable.
    fn bound(&self, variable: Option<&String>) -> Option<Value> {
        (self.env)(variable?).map(Value::String)
    }

    fn option(&mut self, option: &FlagOptionValue, given: Option<&Value>) -> Result<(), String> {
        let variable = variable(&option.id);
        // As whoever called knows it.
        let name = bash::property(&option.id);
        let given = is_given(given).cloned();
        let given = given.or_else(|| self.bound(option.env.as_ref()));
        let Some(given) = given else {
            if option.required {
                return Err(lacks(&name, option.env.as_deref()));
            }
            self.default(&variable, option.default.as_ref());
            return Ok(());
        };
        if option.flag {
            if ["true", "1"].contains(&one(&given).as_str()) {
                self.line(format_args!("{variable}=1"));
            }
            return Ok(());
        }
        let all = values(&given);
        self.choices(&name, option.choice.as_ref(), &all)?;
        if option.prefixed {
            self.map(&variable, &all);
        } else if option.multiple_values || option.multiple_occurs {
            self.line(format_args!("{variable}={}", list(&all)));
        } else {
            self.line(format_args!("{variable}={}", quote(&one(&given))));
        }
        Ok(())
    }

    fn positional(
        &mut self,
        positional: &PositionalValue,
        given: Option<&Value>,
    ) -> Result<(), String> {
        let variable = variable(&positional.id);
        let given = is_given(given).cloned();
        let given = given.or_else(|| self.bound(positional.env.as_ref()));
        let Some(given) = given else {
            if positional.required {
                let name = bash::property(&positional.id);
                return Err(lacks(&name, positional.env.as_deref()));
            }
            let word = self.default(&variable, positional.default.as_ref());
            self.positionals.extend(word);
            return Ok(());
        };
        let all = values(&given);
        self.choices(
            &bash::property(&positional.id),
            positional.choice.as_ref(),
            &all,
        )?;
        if positional.multiple {
            self.line(format_args!("{variable}={}", list(&all)));
            self.positionals
                .extend(all.iter().map(|value| quote(value)));
        } else {
            let word = quote(&one(&given));
            self.line(format_args!("{variable}={word}"));
            self.positionals.push(word);
        }
        Ok(())
    }

    /// The default's word for bash; a function of the script gives it when it says so.
    fn default(&mut self, variable: &str, default: Option<&DefaultValue>) -> Option<String> {
        let word = match default? {
            DefaultValue::Value(value) => quote(&unescaped(value)),
            DefaultValue::Fn(function) => format!("\"$({function})\""),
        };
        self.line(format_args!("{variable}={word}"));
        Some(word)
    }

    /// Values that stand in the script are checked here, those that a function of it gives are checked by bash.
    fn choices(
        &mut self,
        name: &str,
        choice: Option<&ChoiceValue>,
        given: &[String],
    ) -> Result<(), String> {
        match choice {
            Some(ChoiceValue::Values(values)) => {
                let allowed: Vec<_> = values.iter().map(|value| unescaped(value)).collect();
                match given.iter().find(|value| !allowed.contains(*value)) {
                    Some(value) => Err(format!(
                        "{name} cannot be {value:?}; it can be: {}",
                        allowed.join(", ")
                    )),
                    None => Ok(()),
                }
            }
            Some(ChoiceValue::Fn(function, true)) => {
                for value in given {
                    self.checked(name, function, value);
                }
                Ok(())
            }
            Some(ChoiceValue::Fn(_, false)) | None => Ok(()),
        }
    }

    fn checked(&mut self, name: &str, function: &str, value: &str) {
        let message = quote(&format!("error: {name} cannot be {value:?}"));
        self.line(format_args!(
            "argc__known=; while IFS= read -r argc__choice || [ -n \"$argc__choice\" ]; do\n\
             if [ \"${{argc__choice%%$'\\t'*}}\" = {} ]; then argc__known=1; fi\n\
             done < <({function})\n\
             if [ -z \"$argc__known\" ]; then command printf '%s\\n' {message} >&2; exit 1; fi\n\
             unset argc__known argc__choice",
            quote(value)
        ));
    }

    /// `key=value` each; no key is ever evaluated.
    fn map(&mut self, variable: &str, given: &[String]) {
        self.line(format_args!("declare -A {variable}"));
        for word in given {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            if key.is_empty() {
                continue;
            }
            self.line(format_args!(
                "argc__key={}; {variable}[$argc__key]={}; unset argc__key",
                quote(key),
                quote(value)
            ));
        }
    }

    fn env(&mut self, env: &EnvValue) -> Result<(), String> {
        let name = &env.id;
        let loaded = format!("export {name}=");
        if let Some(value) = (self.env)(name) {
            let allowed = match &env.choice {
                Some(ChoiceValue::Values(values)) => values,
                _ => return Ok(()),
            };
            return match allowed.contains(&value) {
                true => Ok(()),
                false => Err(format!(
                    "the environment variable {name} cannot be {value:?}"
                )),
            };
        }
        if self.text.lines().any(|line| line.starts_with(&loaded)) {
            return Ok(());
        }
        match &env.default {
            Some(DefaultValue::Value(value)) => {
                self.line(format_args!(
                    "[ -n \"${{{name}+set}}\" ] || export {name}={}",
                    quote(&unescaped(value))
                ));
            }
            Some(DefaultValue::Fn(function)) => {
                self.line(format_args!(
                    "[ -n \"${{{name}+set}}\" ] || export {name}=\"$({function})\""
                ));
            }
            None if env.required => {
                return Err(format!(
                    "the environment variable {name} is not set, and the tool needs it"
                ));
            }
            None => {}
        }
        Ok(())
    }

    /// `@meta dotenv`: the file is read, never sourced.
    fn load_dotenv(&mut self, root: &CommandValue) {
        let Some(file) = root.extra.get("dotenv").and_then(Value::as_str) else {
            return;
        };
        let file = if file.is_empty() { ".env" } else { file };
        for (name, value) in dotenv::read(file.as_ref()).unwrap_or_default() {
            if (self.env)(&name).is_none() {
                self.line(format_args!("export {name}={}", quote(&value)));
            }
        }
    }

    fn end(&mut self, call: &Call, root: &CommandValue, command: &CommandValue) {
        let stem = call
            .script
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let mut words = vec![stem.into_owned()];
        words.extend(call.words.iter().cloned());
        self.line(format_args!("argc__args={}", list(&words)));
        let function = command.extra.get("command_fn").and_then(Value::as_str);
        if let Some(function) = function {
            self.line(format_args!("argc__fn={function}"));
        }
        let positionals = self.positionals.join(" ");
        self.line(format_args!("argc__positionals=( {positionals} )"));
        let hook = |name: &str| {
            root.extra
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        if let Some(before) = hook("before_hook") {
            self.line(format_args!("{before}"));
        }
        let Some(function) = function else {
            return;
        };
        self.line(format_args!("{function} {positionals}"));
        if let Some(after) = hook("after_hook") {
            self.line(format_args!("{after}"));
        }
    }
}

fn require_tools(root: &CommandValue) -> Result<(), String> {
    let missing = missing_tools(root);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("missing programs: {}", missing.join(", "))),
    }
}

fn missing_tools(root: &CommandValue) -> Vec<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there =
        |tool: &String| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    bash::required_tools(root)
        .into_iter()
        .filter(|tool| !is_there(tool))
        .collect()
}
