//! Which errors a method answers with, from the one table of codes. Must never know a code that the table does not.

use crate::error::ErrorKind;
use crate::withdrawal;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// An error.
#[derive(Serialize, JsonSchema)]
pub(super) struct Fault {
    /// One for several kinds at times; branch on `data.kind`.
    code: i32,
    /// What was attempted and on what, for a person.
    message: String,
    /// What to branch on.
    data: FaultData,
}

/// What an error says besides: `kind`, and by the kind more.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("additionalProperties" = true))]
pub(super) struct FaultData {
    /// What went wrong.
    kind: ErrorKind,
}

/// What any method may answer.
const ANY: &[ErrorKind] = &[
    ErrorKind::InvalidRequest,
    ErrorKind::InvalidParams,
    ErrorKind::Internal,
    ErrorKind::Overloaded,
    ErrorKind::Storage,
];

/// What a method answers that is about something which may not be there, be busy, or be another daemon's.
const NAMED: &[ErrorKind] = &[ErrorKind::NotFound, ErrorKind::Busy, ErrorKind::Held];
/// The parameters that name such a thing.
const NAMES: &[&str] = &["session", "turn", "approval", "call", "name"];

/// What methods may answer besides.
const BESIDES: &[(ErrorKind, &[&str])] = &[
    (ErrorKind::Version, &["initialize"]),
    (ErrorKind::AlreadyAnswered, &["approval/answer"]),
    (ErrorKind::CursorBeyond, &["session/attach", "session/fork"]),
    (
        ErrorKind::NotAllowed,
        &[
            "session/rename",
            "session/archive",
            "session/delete",
            "session/clear",
            "session/replace",
            "session/say",
            "queue/remove",
            "turn/start",
            "turn/steer",
            "turn/cancel",
            "approval/answer",
            "tool/run",
            "tool/cancel",
            "tool/provide",
            "command/run",
            "provider/switch",
        ],
    ),
    (
        ErrorKind::Provider,
        &[
            "session/create",
            "session/fork",
            "turn/start",
            "provider/switch",
            "provider/models",
            "model/pull",
        ],
    ),
    (ErrorKind::Withdrawn, withdrawal::METHODS),
    (
        ErrorKind::Refused,
        &["daemon/reload", "daemon/watch", "session/attach"],
    ),
];

/// References to the errors of a method.
pub(super) fn of(method: &str, params: &[Value]) -> Value {
    let mut kinds = ANY.to_vec();
    let mut names = params.iter().filter_map(|param| param["name"].as_str());
    if names.any(|name| NAMES.contains(&name)) {
        kinds.extend(NAMED);
    }
    let besides = BESIDES.iter().filter(|(_, of)| of.contains(&method));
    kinds.extend(besides.map(|(kind, _)| *kind));
    let mut codes: Vec<_> = kinds.iter().map(|kind| kind.code()).collect();
    codes.sort_unstable_by(|one, other| other.cmp(one));
    codes.dedup();
    codes
        .iter()
        .map(|code| json!({"$ref": format!("#/components/errors/E{}", -code)}))
        .collect()
}

/// All errors, by their codes.
pub(super) fn components() -> Value {
    let mut by_code: BTreeMap<i32, Vec<(String, String)>> = BTreeMap::new();
    for (kind, name, about) in kinds() {
        by_code.entry(-kind.code()).or_default().push((name, about));
    }
    let all = by_code.into_iter().map(|(code, kinds)| {
        let about: Vec<_> = kinds
            .iter()
            .map(|(name, about)| format!("{name}: {about}"))
            .collect();
        let data: Vec<_> = kinds
            .iter()
            .map(|(name, _)| json!({"kind": name}))
            .collect();
        let data = if let [one] = data.as_slice() {
            one.clone()
        } else {
            json!({"oneOf": data})
        };
        let error = json!({"code": -code, "message": about.join("; "), "data": data});
        (format!("E{code}"), error)
    });
    Value::Object(all.collect::<Map<_, _>>())
}

/// Each kind with its name on the wire and what its comment says of it, the code apart.
fn kinds() -> Vec<(ErrorKind, String, String)> {
    let schema = ErrorKind::json_schema(&mut SchemaGenerator::default()).to_value();
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let read = variants.into_iter().map(|variant| {
        let name = variant["const"]
            .as_str()
            .expect("an error's kind has a name")
            .to_owned();
        let kind: ErrorKind =
            serde_json::from_value(name.as_str().into()).expect("it is one of the kinds");
        let about = variant["description"]
            .as_str()
            .expect("an error's kind has a comment");
        let (code, about) = about
            .split_once(": ")
            .expect("a kind's comment begins with its code");
        assert_eq!(
            code,
            kind.code().to_string(),
            "the comment of {name} has another code"
        );
        (kind, name, about.trim_end_matches('.').to_owned())
    });
    read.collect()
}
