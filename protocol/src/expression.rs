//! Toolbox expressions: which tools a model is shown, and how. A name, or one operator on others.
//! Must never accept what it does not understand: each complaint has the path of the field it is about.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// How deep operators may stand in each other.
pub const NESTING: usize = 8;
/// How many hits a search may give at most.
pub const HITS: u64 = 20;
/// How many hits a search gives when nobody says.
pub const USUAL_HITS: u64 = 5;

/// `"dev"`, `{"merge": [E, ...]}`, `{"restrict": {"of": E, "names": [...]}}`, `{"search": {"of": E, "limit"?: 1..20}}` or
/// `{"code": {"of": E, "limits"?: {...}, "approval"?: "ask" | "refuse"}}`.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A toolbox that has a name.
    Named(String),
    /// The tools of all; of two of one name the first.
    Merge(Vec<Expression>),
    /// Only those of these names.
    Restrict {
        /// Of what.
        of: Box<Expression>,
        /// The names, as written.
        names: Vec<String>,
    },
    /// Two tools in the place of all: one finds, one calls.
    Search {
        /// Of what.
        of: Box<Expression>,
        /// How many hits a search gives when the model does not say.
        limit: u64,
    },
    /// One tool in the place of all: it runs programs that call them.
    Code {
        /// Of what.
        of: Box<Expression>,
        /// Bounds of a program, each below the daemon's own.
        limits: CodeLimits,
        /// What becomes of a call that needs an approval.
        approval: CodeApproval,
    },
}

/// Bounds of one program; what is absent is the daemon's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeLimits {
    /// From its beginning to its end, waits for people apart, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Of a processor, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Of its heap, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Of its stack, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<u64>,
    /// Of its text, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<u64>,
    /// Calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Calls that run at once; further ones wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u64>,
    /// Of one call's input, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Of one call's result, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Of what it logs, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<u64>,
    /// Of the value it returns, in nested objects and arrays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
}

/// What becomes of a program's call that needs an approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CodeApproval {
    /// It waits for a person.
    #[default]
    Ask,
    /// It fails; such tools are called directly.
    Refuse,
}

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct BadExpression {
    /// The field, as in `toolbox.merge[1].restrict.names[0]`.
    pub path: String,
    /// What is wrong with it.
    pub why: String,
}

/// The names of the limits, in the order of `CodeLimits`.
const LIMITS: [&str; 11] = [
    "wall_ms",
    "cpu_ms",
    "memory",
    "stack",
    "source",
    "calls",
    "in_flight",
    "input",
    "output",
    "logs",
    "depth",
];

impl Expression {
    /// Reads one that stands in the field `path`.
    pub fn parse(path: &str, value: &Value) -> Result<Self, BadExpression> {
        At(path.to_owned(), 0).expression(value)
    }

    /// As it travels.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Named(name) => json!(name),
            Self::Merge(all) => json!({"merge": all}),
            Self::Restrict { of, names } => json!({"restrict": {"of": of, "names": names}}),
            Self::Search { of, limit } => json!({"search": {"of": of, "limit": limit}}),
            Self::Code {
                of,
                limits,
                approval,
            } => json!({"code": {"of": of, "limits": limits, "approval": approval}}),
        }
    }

    /// The names of toolboxes in it, each with the path of its field, where the whole stands in `path`.
    pub fn names(&self, path: &str) -> Vec<(String, String)> {
        match self {
            Self::Named(name) => vec![(path.to_owned(), name.clone())],
            Self::Merge(all) => {
                let each = all.iter().enumerate();
                each.flat_map(|(at, one)| one.names(&format!("{path}.merge[{at}]")))
                    .collect()
            }
            Self::Restrict { of, .. } => of.names(&format!("{path}.restrict.of")),
            Self::Search { of, .. } => of.names(&format!("{path}.search.of")),
            Self::Code { of, .. } => of.names(&format!("{path}.code.of")),
        }
    }
}

/// A place in an expression: its path, and how many operators stand around it.
struct At(String, usize);

impl At {
    fn bad<T>(&self, why: impl Into<String>) -> Result<T, BadExpression> {
        Err(BadExpression {
            path: self.0.clone(),
            why: why.into(),
        })
    }

    fn field(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0), self.1)
    }

    fn item(&self, at: usize) -> Self {
        Self(format!("{}[{at}]", self.0), self.1)
    }

    fn expression(&self, value: &Value) -> Result<Expression, BadExpression> {
        let operator = match value {
            Value::String(name) if name.is_empty() => {
                return self.bad("a toolbox has a name, and this is empty");
            }
            Value::String(name) => return Ok(Expression::Named(name.clone())),
            Value::Object(operator) => operator,
            _ => {
                return self.bad(format!(
                    "must be a toolbox's name or an object with one of merge, restrict, search, code, not {}",
                    kind(value)
                ));
            }
        };
        let mut members = operator.iter();
        let (Some((name, of)), None) = (members.next(), members.next()) else {
            return self.bad(format!(
                "must have exactly one of merge, restrict, search, code, and has {} members",
                operator.len()
            ));
        };
        if self.1 == NESTING {
            return self.bad(format!(
                "operators stand in each other more than {NESTING} deep"
            ));
        }
        let inner = Self(format!("{}.{name}", self.0), self.1 + 1);
        match name.as_str() {
            "merge" => inner.merge(of),
            "restrict" => inner.restrict(of),
            "search" => inner.search(of),
            "code" => inner.code(of),
            _ => inner.bad("is none of merge, restrict, search, code"),
        }
    }

    fn merge(&self, value: &Value) -> Result<Expression, BadExpression> {
        let all = self.array(value, "of toolboxes")?;
        if all.is_empty() {
            return self.bad("must have at least one toolbox");
        }
        let each = all.iter().enumerate();
        let all: Result<_, _> = each
            .map(|(at, one)| self.item(at).expression(one))
            .collect();
        all.map(Expression::Merge)
    }

    fn restrict(&self, value: &Value) -> Result<Expression, BadExpression> {
        let members = self.members(value, &["of", "names"])?;
        let of = self.of(members)?;
        let names = self.field("names");
        let Some(given) = members.get("names") else {
            return names.bad("is missing: the names of the tools to keep");
        };
        let given = names.array(given, "of tools' names")?.iter().enumerate();
        let text = |(at, name): (usize, &Value)| match name {
            Value::String(name) => Ok(name.clone()),
            other => names
                .item(at)
                .bad(format!("must be a tool's name, not {}", kind(other))),
        };
        let names = given.map(text).collect::<Result<_, _>>()?;
        Ok(Expression::Restrict { of, names })
    }

    fn search(&self, value: &Value) -> Result<Expression, BadExpression> {
        let members = self.members(value, &["of", "limit"])?;
        let of = self.of(members)?;
        let limit = match members.get("limit") {
            None => USUAL_HITS,
            Some(limit) => match limit.as_u64().filter(|limit| (1..=HITS).contains(limit)) {
                Some(limit) => limit,
                None => {
                    return self.field("limit").bad(format!(
                        "must be a whole number from 1 to {HITS}, not {limit}"
                    ));
                }
            },
        };
        Ok(Expression::Search { of, limit })
    }

    fn code(&self, value: &Value) -> Result<Expression, BadExpression> {
        let members = self.members(value, &["of", "limits", "approval"])?;
        let of = self.of(members)?;
        let limits = match members.get("limits") {
            None => CodeLimits::default(),
            Some(limits) => self.field("limits").limits(limits)?,
        };
        let approval = match members.get("approval").map(Value::as_str) {
            None | Some(Some("ask")) => CodeApproval::Ask,
            Some(Some("refuse")) => CodeApproval::Refuse,
            Some(_) => return self.field("approval").bad("must be \"ask\" or \"refuse\""),
        };
        Ok(Expression::Code {
            of,
            limits,
            approval,
        })
    }

    fn limits(&self, value: &Value) -> Result<CodeLimits, BadExpression> {
        let members = self.members(value, &LIMITS)?;
        for (name, limit) in members {
            if limit.as_u64().is_none_or(|limit| limit == 0) {
                let why = format!("must be a whole number above 0, not {limit}");
                return self.field(name).bad(why);
            }
        }
        serde_json::from_value(value.clone()).or_else(|error| self.bad(error.to_string()))
    }

    fn of(&self, members: &Map<String, Value>) -> Result<Box<Expression>, BadExpression> {
        let of = self.field("of");
        match members.get("of") {
            Some(value) => of.expression(value).map(Box::new),
            None => of.bad("is missing: the toolbox that this is about"),
        }
    }

    fn members<'a>(
        &self,
        value: &'a Value,
        known: &[&str],
    ) -> Result<&'a Map<String, Value>, BadExpression> {
        let Value::Object(members) = value else {
            return self.bad(format!("must be an object, not {}", kind(value)));
        };
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(members),
            Some(odd) => self
                .field(odd)
                .bad(format!("is none of {}", known.join(", "))),
        }
    }

    fn array<'a>(&self, value: &'a Value, of: &str) -> Result<&'a [Value], BadExpression> {
        match value {
            Value::Array(all) => Ok(all),
            other => self.bad(format!("must be an array {of}, not {}", kind(other))),
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::parse("toolbox", &value).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(value: Value, path: &str, why: &str) {
        let complaint = Expression::parse("toolbox", &value).expect_err(path);
        assert_eq!(complaint.path, path, "{complaint}");
        assert!(complaint.why.contains(why), "{complaint}");
    }

    fn deep(operators: usize) -> Value {
        (0..operators).fold(json!("dev"), |inner, _| json!({"merge": [inner]}))
    }

    #[test]
    fn every_form_is_read_and_written_alike() {
        for value in [
            json!("dev"),
            json!({"merge": ["a", {"search": {"of": "b", "limit": 20}}]}),
            json!({"restrict": {"of": "a", "names": []}}),
            json!({"code": {"of": "a", "limits": {"wall_ms": 500}, "approval": "refuse"}}),
            deep(NESTING),
        ] {
            let read = Expression::parse("toolbox", &value).expect("fits");
            assert_eq!(read.to_value(), value);
            assert_eq!(serde_json::from_value::<Expression>(value).ok(), Some(read));
        }
        let usual = Expression::parse("toolbox", &json!({"search": {"of": "a"}}));
        assert!(matches!(usual, Ok(Expression::Search { limit: 5, .. })));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_path_of_the_field() {
        bad(json!(1), "toolbox", "not a number");
        bad(json!(""), "toolbox", "empty");
        bad(json!({}), "toolbox", "exactly one");
        bad(
            json!({"merge": ["a"], "search": {"of": "a"}}),
            "toolbox",
            "has 2 members",
        );
        bad(json!({"union": ["a"]}), "toolbox.union", "none of merge");
        bad(json!({"merge": []}), "toolbox.merge", "at least one");
        bad(json!({"merge": "a"}), "toolbox.merge", "not a string");
        bad(
            json!({"merge": ["a", 2]}),
            "toolbox.merge[1]",
            "not a number",
        );
        bad(
            json!({"search": {"limit": 5}}),
            "toolbox.search.of",
            "missing",
        );
        for limit in [
            json!(0),
            json!(21),
            json!(-1),
            json!(1.5),
            json!("5"),
            json!(null),
        ] {
            let search = json!({"search": {"of": "a", "limit": limit}});
            bad(search, "toolbox.search.limit", "from 1 to 20");
        }
        bad(
            json!({"search": {"of": "a", "top": 5}}),
            "toolbox.search.top",
            "none of of, limit",
        );
        bad(
            json!({"restrict": {"of": "a"}}),
            "toolbox.restrict.names",
            "missing",
        );
        let names = json!({"merge": ["a", {"restrict": {"of": "b", "names": ["x", 7]}}]});
        bad(names, "toolbox.merge[1].restrict.names[1]", "not a number");
        bad(
            json!({"code": {"of": "a", "approval": "never"}}),
            "toolbox.code.approval",
            "refuse",
        );
        bad(
            json!({"code": {"of": "a", "limits": {"wall_ms": 0}}}),
            "toolbox.code.limits.wall_ms",
            "above 0",
        );
        bad(
            json!({"code": {"of": "a", "limits": {"fuel": 1}}}),
            "toolbox.code.limits.fuel",
            "none of wall_ms",
        );
        let path = format!("toolbox{}", ".merge[0]".repeat(NESTING));
        bad(deep(NESTING + 1), &path, "more than 8 deep");
    }

    #[test]
    fn names_know_their_places() {
        let value =
            json!({"merge": ["a", {"search": {"of": {"restrict": {"of": "b", "names": []}}}}]});
        let names = Expression::parse("toolbox", &value)
            .expect("fits")
            .names("toolbox");
        let named = |path: &str, name: &str| (path.to_owned(), name.to_owned());
        assert_eq!(
            names,
            [
                named("toolbox.merge[0]", "a"),
                named("toolbox.merge[1].search.of.restrict.of", "b")
            ]
        );
    }
}
