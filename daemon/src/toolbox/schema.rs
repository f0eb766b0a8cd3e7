//! Validation of arguments, and the texts of what is wrong with them.
//! Must never see a tool: it knows a schema and a value.

use jsonschema::Validator;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// A schema that is compiled once, when it is first needed.
#[derive(Clone, Default)]
pub struct Schema {
    compiled: Arc<OnceLock<Result<Compiled, String>>>,
}

struct Compiled {
    validator: Validator,
}

impl Schema {
    /// Why the schema itself cannot be used.
    pub fn check(&self, value: impl FnOnce() -> Value) -> Result<(), String> {
        self.compiled(value).map(|_| ()).map_err(Clone::clone)
    }

    /// What is wrong, in one line.
    pub fn validate(&self, value: impl FnOnce() -> Value, instance: &Value) -> Result<(), String> {
        let compiled = self.compiled(value).map_err(Clone::clone)?;
        if compiled.validator.is_valid(instance) {
            return Ok(());
        }
        let errors: Vec<String> = compiled
            .validator
            .iter_errors(instance)
            .map(|error| error.to_string())
            .collect();
        Err(errors.join(", "))
    }

    fn compiled(&self, value: impl FnOnce() -> Value) -> Result<&Compiled, &String> {
        self.compiled
            .get_or_init(|| {
                let validator = jsonschema::options()
                    .build(&value())
                    .map_err(|error| error.to_string())?;
                Ok(Compiled { validator })
            })
            .as_ref()
    }
}
