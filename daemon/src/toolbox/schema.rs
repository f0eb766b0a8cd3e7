//! Validation of arguments, and the texts of what is wrong with them.
//! Must never see a tool: it knows a schema and a value.

mod explain;
mod order;
mod text;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError, Validator};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// A schema that is compiled once, when it is first needed.
#[derive(Clone, Default)]
pub struct Schema {
    compiled: Arc<OnceLock<Result<Compiled, String>>>,
}

struct Compiled {
    schema: Value,
    validator: Validator,
}

impl Schema {
    /// Why the schema itself cannot be used.
    pub fn check(&self, schema: impl FnOnce() -> Value) -> Result<(), String> {
        self.compiled(schema).map(|_| ()).map_err(Clone::clone)
    }

    /// What is wrong with the instance: every error, joined with `, `. Errors come in the order of the keywords as
    /// the standard's vocabularies list them (so what `properties` says of members comes before `required`), members
    /// in the schema's order, and items, or members that the schema does not name, in the instance's.
    pub fn validate(&self, schema: impl FnOnce() -> Value, instance: &Value) -> Result<(), String> {
        let compiled = self.compiled(schema).map_err(Clone::clone)?;
        if compiled.validator.is_valid(instance) {
            return Ok(());
        }
        let errors = compiled.validator.iter_errors(instance);
        Err(explain::explain(&compiled.schema, instance, errors).join(", "))
    }

    fn compiled(&self, schema: impl FnOnce() -> Value) -> Result<&Compiled, &String> {
        self.compiled
            .get_or_init(|| Compiled::new(schema()))
            .as_ref()
    }
}

/// For each value, what is wrong with it; or why the schema cannot be used.
pub fn judge(schema: &Value, values: &[Value]) -> Result<Vec<Vec<String>>, String> {
    let compiled = Compiled::new(schema.clone())?;
    let faults = |value| {
        let errors = compiled.validator.iter_errors(value);
        match compiled.validator.is_valid(value) {
            true => Vec::new(),
            false => explain::explain(&compiled.schema, value, errors),
        }
    };
    Ok(values.iter().map(faults).collect())
}

impl Compiled {
    fn new(schema: Value) -> Result<Self, String> {
        let built = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema);
        match built {
            Ok(validator) => Ok(Self { schema, validator }),
            Err(error) => {
                let at = error.instance_path().as_str().to_owned();
                let at = if at.is_empty() {
                    at
                } else {
                    format!("at {at}: ")
                };
                Err(format!("{at}{}", refusal(&error)))
            }
        }
    }
}

/// Why a schema cannot be used. One that refers to another is told what to do.
fn refusal(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => {
            format!("it refers to {uri}, and nothing is fetched: put that schema under \"$defs\"")
        }
        ValidationErrorKind::Referencing(ReferencingError::PointerToNowhere { pointer }) => {
            format!("it refers to #{pointer}, which it does not hold")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
