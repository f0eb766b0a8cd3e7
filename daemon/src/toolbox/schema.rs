//! Validation of arguments, and the texts of what is wrong with them.
//! Must never see a tool: it knows a schema and a value.

mod explain;
mod order;
mod text;

use jsonschema::Validator;
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
                Err(format!("{at}{error}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
