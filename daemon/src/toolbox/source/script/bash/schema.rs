//! What argc knows of an option, a flag or an argument, as a JSON Schema.

use super::{FlagOptionValue, Map, Passed, PositionalValue, Value, is_doubtful};
use crate::toolbox::source::script::is_whole;
use argc::{ChoiceValue, DefaultValue};

/// An option, flag or positional argument: what their schemas come from.
pub(super) struct Parameter<'v> {
    pub(super) id: &'v str,
    describe: &'v str,
    pub(super) required: bool,
    /// None for a positional.
    option: Option<&'v FlagOptionValue>,
    form: Form,
    item: Item,
    choice: Option<&'v ChoiceValue>,
    default: Option<&'v DefaultValue>,
    /// The variable that says it where no argument does.
    variable: Option<&'v str>,
}

#[derive(PartialEq)]
enum Form {
    Flag,
    One,
    Many,
}

#[derive(Clone, Copy, PartialEq)]
enum Item {
    Integer,
    Number,
    Text,
}

impl Item {
    /// Of the first notation.
    fn of(notation: Option<&str>) -> Self {
        match notation.map(str::to_uppercase).as_deref() {
            Some("INT") => Self::Integer,
            Some("NUM") => Self::Number,
            _ => Self::Text,
        }
    }
}

impl<'v> From<&'v FlagOptionValue> for Parameter<'v> {
    fn from(option: &'v FlagOptionValue) -> Self {
        let form = match (
            option.flag,
            option.multiple_values || option.multiple_occurs,
        ) {
            (true, _) => Form::Flag,
            (false, true) => Form::Many,
            (false, false) => Form::One,
        };
        Self {
            id: &option.id,
            describe: &option.describe,
            required: option.required,
            option: Some(option),
            form,
            item: Item::of(option.notations.first().map(String::as_str)),
            choice: option.choice.as_ref(),
            default: option.default.as_ref(),
            variable: option.env.as_deref(),
        }
    }
}

impl<'v> From<&'v PositionalValue> for Parameter<'v> {
    fn from(positional: &'v PositionalValue) -> Self {
        Self {
            id: &positional.id,
            describe: &positional.describe,
            required: positional.required,
            option: None,
            form: if positional.multiple {
                Form::Many
            } else {
                Form::One
            },
            item: Item::of(Some(&positional.notation)),
            choice: positional.choice.as_ref(),
            default: positional.default.as_ref(),
            variable: positional.env.as_deref(),
        }
    }
}

impl Parameter<'_> {
    pub(super) fn passed(&self) -> Passed {
        match self.option {
            None => Passed::Positional,
            Some(option) if option.flag => Passed::Flag(option.long_name.clone()),
            Some(option) if option.prefixed => Passed::Prefix(option.long_name.clone()),
            Some(option) => Passed::Option(option.long_name.clone()),
        }
    }

    pub(super) fn is_bound(&self) -> bool {
        self.variable.is_some()
    }

    pub(super) fn schema(&self) -> Value {
        let mut schema = Map::new();
        if self.form == Form::Flag {
            schema.insert("type".to_owned(), "boolean".into());
        } else {
            schema = self.value();
            if self.form == Form::Many {
                schema = Map::from_iter([
                    ("type".to_owned(), "array".into()),
                    ("items".to_owned(), Value::Object(schema)),
                ]);
            }
            self.add_default(&mut schema);
        }
        if !self.describe.trim().is_empty() {
            schema.insert("description".to_owned(), self.describe.trim().into());
        }
        Value::Object(schema)
    }

    /// Of one value: its type, and its choices where they are written down.
    fn value(&self) -> Map<String, Value> {
        let name = match self.item {
            Item::Integer => "integer",
            Item::Number => "number",
            Item::Text => "string",
        };
        let mut schema = Map::from_iter([("type".to_owned(), name.into())]);
        if let Some(ChoiceValue::Values(values)) = self.choice {
            let values = values.iter().map(|value| self.typed(&unescaped(value)));
            schema.insert("enum".to_owned(), values.collect());
        }
        schema
    }

    /// Where what looks like choices stands in the wrong place, the default is not what its author meant either.
    fn add_default(&self, schema: &mut Map<String, Value>) {
        let Some(DefaultValue::Value(value)) = self.default else {
            return;
        };
        if !is_doubtful(value, self.describe) {
            let value = self.typed(&unescaped(value));
            let value = match self.form {
                Form::Many => Value::Array(vec![value]),
                _ => value,
            };
            schema.insert("default".to_owned(), value);
        }
    }

    /// The default, where it is not of the type that the notation names.
    pub(super) fn odd_default(&self) -> Option<&str> {
        let Some(DefaultValue::Value(value)) = self.default else {
            return None;
        };
        let is_odd = self.form == Form::One
            && self.item != Item::Text
            && !is_doubtful(value, self.describe)
            && self.typed(&unescaped(value)).is_string();
        is_odd.then_some(value.as_str())
    }

    /// As the type says, where the text is of that type.
    fn typed(&self, text: &str) -> Value {
        let read = || serde_json::from_str::<Value>(text).ok();
        match self.item {
            Item::Integer => read().filter(is_whole),
            Item::Number => read().filter(Value::is_number),
            Item::Text => None,
        }
        .unwrap_or_else(|| text.into())
    }
}

/// argc leaves the backslash before a quote inside quotes where it is.
pub(in super::super) fn unescaped(value: &str) -> String {
    value.replace("\\\"", "\"").replace("\\'", "'")
}
