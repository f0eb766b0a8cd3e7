//! From the validator's errors to texts: nested ones are taken apart to what failed, those of one keyword are joined.
//! Must never add an error that the validator did not find.

use super::order::{Route, rank, route};
use super::text::{missing, text};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

/// A text and where it stands.
struct Said {
    key: Vec<usize>,
    text: String,
}

struct Explanation<'a> {
    schema: &'a Value,
    instance: &'a Value,
    said: Vec<Said>,
}

/// An error's keyword and places.
struct Fault<'a> {
    route: Route,
    /// Where in the instance.
    place: &'a str,
    /// What is there.
    instance: &'a Value,
    /// The keyword's own value.
    value: &'a Value,
}

/// Texts for all errors, in order.
pub(super) fn explain<'a>(
    schema: &Value,
    instance: &Value,
    errors: impl Iterator<Item = ValidationError<'a>>,
) -> Vec<String> {
    let mut explanation = Explanation {
        schema,
        instance,
        said: Vec::new(),
    };
    for error in errors {
        explanation.error(&error, error.instance_path().as_str());
    }
    let mut said = explanation.said;
    said.sort_by(|a, b| a.key.cmp(&b.key));
    // An error that several branches or several missing names lead to is said once for each place it has.
    said.dedup_by(|a, b| a.key == b.key && a.text == b.text);
    let mut texts: Vec<String> = said.into_iter().map(|said| said.text).collect();
    if texts.is_empty() {
        texts.push(text("", "", &Value::Null));
    }
    texts
}

impl Explanation<'_> {
    fn error(&mut self, error: &ValidationError<'_>, place: &str) {
        let evaluation = error.evaluation_path().as_str();
        let fault = Fault {
            route: route(self.schema, self.instance, evaluation, place),
            place,
            instance: self.instance.pointer(place).unwrap_or(&Value::Null),
            value: self
                .schema
                .pointer(error.schema_path().as_str())
                .unwrap_or(&Value::Null),
        };
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.branches(context, fault)
            }
            // The name stands for itself: its error is one of the object.
            Kind::PropertyNames { error } => self.error(error, place),
            Kind::Required { .. } => self.required(fault),
            Kind::AdditionalProperties { unexpected } => self.additional(unexpected, fault),
            Kind::UnevaluatedProperties { unexpected } => self.unevaluated(unexpected, fault),
            Kind::UnevaluatedItems { unexpected } => self.unevaluated_items(unexpected, fault),
            Kind::Contains => self.contains(fault),
            Kind::FalseSchema => self.nothing_fits(fault),
            Kind::Referencing(why) => {
                self.say(fault.route.key, format!("value cannot be validated: {why}"))
            }
            Kind::AdditionalItems { .. }
            | Kind::BacktrackLimitExceeded { .. }
            | Kind::RegexEngineFailure { .. }
            | Kind::Constant { .. }
            | Kind::ContentEncoding { .. }
            | Kind::ContentMediaType { .. }
            | Kind::Custom { .. }
            | Kind::Enum { .. }
            | Kind::ExclusiveMaximum { .. }
            | Kind::ExclusiveMinimum { .. }
            | Kind::Format { .. }
            | Kind::FromUtf8 { .. }
            | Kind::MaxItems { .. }
            | Kind::Maximum { .. }
            | Kind::MaxLength { .. }
            | Kind::MaxProperties { .. }
            | Kind::MinItems { .. }
            | Kind::Minimum { .. }
            | Kind::MinLength { .. }
            | Kind::MinProperties { .. }
            | Kind::MultipleOf { .. }
            | Kind::Not { .. }
            | Kind::OneOfMultipleValid { .. }
            | Kind::Pattern { .. }
            | Kind::Type { .. }
            | Kind::UniqueItems => self.keyword(error.kind().keyword(), fault),
        }
    }

    fn say(&mut self, key: Vec<usize>, text: String) {
        self.said.push(Said { key, text });
    }

    fn keyword(&mut self, keyword: &str, fault: Fault<'_>) {
        self.say(fault.route.key, text(keyword, fault.place, fault.value));
    }

    /// What failed in the branches says more than that none fits.
    fn branches(&mut self, context: &[Vec<ValidationError<'static>>], fault: Fault<'_>) {
        let mut any = false;
        for error in context.iter().flatten() {
            any = true;
            self.error(error, error.instance_path().as_str());
        }
        if !any {
            let keyword = fault.route.keyword.clone().unwrap_or_default();
            self.keyword(&keyword, fault);
        }
    }

    /// The validator tells one missing name at a time, of three keywords.
    fn required(&mut self, fault: Fault<'_>) {
        match fault.route.keyword.as_deref() {
            Some("dependentRequired") => self.dependent(fault, "dependentRequired"),
            Some("dependencies") | None => self.dependent(fault, "dependencies"),
            Some(_) => {
                let names = absent(fault.value, fault.instance);
                self.say(fault.route.key, missing(fault.place, &names));
            }
        }
    }

    fn dependent(&mut self, fault: Fault<'_>, keyword: &str) {
        for (index, (name, needed)) in fault.value.as_object().into_iter().flatten().enumerate() {
            if fault.instance.get(name).is_none() || absent(needed, fault.instance).is_empty() {
                continue;
            }
            let place = match keyword {
                "dependentRequired" => join(fault.place, name),
                _ => fault.place.to_owned(),
            };
            self.say(
                below(&fault.route.key, index),
                text(keyword, &place, fault.value),
            );
        }
    }

    fn additional(&mut self, unexpected: &[String], fault: Fault<'_>) {
        for (index, name) in named(fault.instance, unexpected) {
            let text = text(
                "additionalProperties",
                &join(fault.place, name),
                fault.value,
            );
            self.say(below(&fault.route.key, index), text);
        }
    }

    fn unevaluated(&mut self, unexpected: &[String], fault: Fault<'_>) {
        if *fault.value != Value::Bool(false) {
            return self.keyword("unevaluatedProperties", fault);
        }
        for (index, name) in named(fault.instance, unexpected) {
            let text = text("", &join(fault.place, name), fault.value);
            self.say(below(&fault.route.key, index), text);
        }
    }

    fn unevaluated_items(&mut self, unexpected: &[String], fault: Fault<'_>) {
        if *fault.value != Value::Bool(false) {
            return self.keyword("unevaluatedItems", fault);
        }
        for index in indices(fault.instance, unexpected) {
            let text = text("", &join(fault.place, &index.to_string()), fault.value);
            self.say(below(&fault.route.key, index), text);
        }
    }

    /// Too few items fail `contains` itself, and `minContains` where it says how many.
    fn contains(&mut self, fault: Fault<'_>) {
        let keyword = fault.route.keyword.clone().unwrap_or_default();
        if keyword == "minContains" {
            let mut key = fault.route.key.clone();
            if let Some(last) = key.last_mut() {
                *last = rank("contains");
            }
            self.say(key, text("contains", fault.place, fault.value));
        }
        self.keyword(&keyword, fault);
    }

    /// A `false` schema: of a condition, of each of an object's names, or of a value.
    fn nothing_fits(&mut self, fault: Fault<'_>) {
        match fault.route.keyword.clone().as_deref() {
            Some(keyword @ ("then" | "else")) => self.keyword(keyword, fault),
            Some("propertyNames") => {
                for index in 0..fault.instance.as_object().map_or(0, serde_json::Map::len) {
                    self.say(
                        below(&fault.route.key, index),
                        text("", fault.place, fault.value),
                    );
                }
            }
            Some("additionalProperties") => self.keyword("additionalProperties", fault),
            Some(_) | None => self.keyword("", fault),
        }
    }
}

/// Names that should be there.
fn absent(needed: &Value, instance: &Value) -> Vec<String> {
    let names = needed
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    names
        .filter(|name| instance.get(name).is_none())
        .map(str::to_owned)
        .collect()
}

/// The members of those names, in the instance's order.
fn named<'a>(
    instance: &'a Value,
    names: &'a [String],
) -> impl Iterator<Item = (usize, &'a String)> {
    let members = instance
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys().enumerate());
    members.filter(|(_, name)| names.contains(name))
}

/// Where those items are, told only by their JSON; counted from the end, where what nothing covers usually is.
fn indices(instance: &Value, items: &[String]) -> Vec<usize> {
    let mut wanted = items.iter().rev().peekable();
    let mut found = Vec::new();
    let all = instance.as_array().map_or(&[][..], Vec::as_slice);
    for (index, item) in all.iter().enumerate().rev() {
        let shown = item.to_string();
        if wanted.peek() == Some(&&shown) {
            wanted.next();
            found.push(index);
        }
    }
    found.reverse();
    found
}

fn join(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn below(key: &[usize], index: usize) -> Vec<usize> {
    let mut key = key.to_vec();
    key.push(index);
    key
}
