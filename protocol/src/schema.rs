//! The document of the wire in the OpenRPC form, made from the types and the methods' own declarations. It is written to
//! `openrpc.json`, which ships; must never be part of what ships itself.

mod errors;
mod examples;
mod expression;
mod shape;

use crate::error::ErrorKind;
use crate::id::SessionId;
use crate::version::{PROTOCOL, RELEASE};
use crate::{
    approval, command, daemon, notification, provider, session, table, tool, turn, validation,
};
use examples::Examples;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shape::Direction;

/// Of the specification, and old enough for every tool that reads it.
const OPENRPC: &str = "1.3.2";
/// Where the schemas stand in the document.
const SCHEMAS: &str = "/components/schemas";

/// The document as it stands in the file.
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", document())
}

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut to = Builder::new();
    to.resource::<daemon::HandshakeRpc>();
    to.resource::<daemon::DaemonRpc>();
    to.resource::<session::SessionRpc>();
    to.resource::<session::QueueRpc>();
    to.resource::<turn::TurnRpc>();
    to.resource::<approval::ApprovalRpc>();
    to.resource::<approval::TrustRpc>();
    to.resource::<tool::ToolRpc>();
    to.resource::<tool::ToolboxRpc>();
    to.resource::<command::CommandRpc>();
    to.resource::<provider::ProviderRpc>();
    to.resource::<provider::ModelRpc>();
    to.resource::<provider::AgentRpc>();
    to.resource::<validation::ValidationRpc>();
    to.discover();
    notification::describe(&mut to);
    to.finish()
}

/// A trait of methods.
pub(crate) trait Resource {
    /// Its doc comment, a line each.
    const DOC: &'static [&'static str];

    /// Adds its methods.
    fn describe(to: &mut Builder);
}

/// An object, or what some languages write for an empty one.
pub(crate) fn members(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [
        {"type": "object", "additionalProperties": true},
        {"type": "array", "maxItems": 0},
        {"type": "null"},
    ]})
}

/// Names a subscription of its connection.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
struct Subscription(String);

/// A document that grows.
pub(crate) struct Builder {
    /// Schemas of what a client sends, and of what it is sent.
    taken: SchemaGenerator,
    given: SchemaGenerator,
    methods: Vec<Value>,
    notifications: Vec<Value>,
    examples: Examples,
    /// What the methods that are added now belong to.
    tag: Value,
}

impl Builder {
    fn new() -> Self {
        let settings =
            || SchemaSettings::draft07().with(|all| all.definitions_path = SCHEMAS.into());
        Self {
            taken: settings().for_deserialize().into_generator(),
            given: settings().for_serialize().into_generator(),
            methods: Vec::new(),
            notifications: Vec::new(),
            examples: Examples::read(),
            tag: Value::Null,
        }
    }

    fn resource<R: Resource>(&mut self) {
        let first = self.methods.len();
        R::describe(self);
        let name = |method: &Value| method["name"].as_str().map(str::to_owned);
        let added = self.methods.get(first).and_then(name).unwrap_or_default();
        let tag = added.split('/').next().unwrap_or_default();
        self.tag = json!([{"name": tag, "description": prose(R::DOC)}]);
        for method in &mut self.methods[first..] {
            method["tags"] = self.tag.clone();
        }
    }

    /// A parameter. Who writes its type as an option may leave it out or send null, as jsonrpsee reads it too.
    pub(crate) fn param<T: JsonSchema>(&mut self, name: &str, written: &str) -> Value {
        let optional = written.starts_with("Option");
        // It is read by hand, so that a mistake in it is told with its place.
        let mut schema = match name {
            "toolbox" => self
                .taken
                .subschema_for::<Option<crate::expression::Expression>>(),
            _ => self.taken.subschema_for::<T>(),
        };
        self.taken
            .transforms_mut()
            .for_each(|transform| transform.transform(&mut schema));
        let mut schema = shape::plain(schema.to_value(), Direction::Taken);
        if table::NAMES.contains(&name) && schema.get("type").is_some() {
            schema = json!({"anyOf": [schema, {"type": "array", "maxItems": 0}]});
        }
        json!({"name": name, "required": !optional, "schema": schema})
    }

    /// A result.
    pub(crate) fn result<T: JsonSchema>(&mut self) -> Value {
        json!({"name": "result", "required": true, "schema": self.given::<T>()})
    }

    fn given<T: JsonSchema>(&mut self) -> Value {
        let mut schema = self.given.subschema_for::<T>();
        self.given
            .transforms_mut()
            .for_each(|transform| transform.transform(&mut schema));
        shape::plain(schema.to_value(), Direction::Given)
    }

    /// A method that is answered.
    pub(crate) fn method(&mut self, name: &str, doc: &[&str], params: Vec<Value>, result: Value) {
        let examples = self.examples.calls(name, &params);
        let errors = errors::of(name, &params);
        let mut method = described(name, doc);
        method.insert("paramStructure".into(), "either".into());
        method.insert("params".into(), params.into());
        method.insert("result".into(), result);
        method.insert("errors".into(), errors);
        method.insert("examples".into(), examples);
        self.methods.push(method.into());
    }

    /// A method that begins a stream of notifications, the notification, and the method that ends it.
    pub(crate) fn subscription<T: JsonSchema>(
        &mut self,
        [begin, event, end]: [&str; 3],
        doc: &[&str],
        params: Vec<Value>,
    ) {
        let began = self.result::<Subscription>();
        let named = json!({"name": "subscription", "required": true, "schema": began["schema"]});
        self.method(begin, doc, params.clone(), began);

        let of_session = params.iter().any(|param| param["name"] == "session");
        let mut ending = vec![named.clone()];
        let mut doc = vec![" Ends a subscription; true when there was one."];
        if of_session {
            ending = vec![
                self.param::<Option<Subscription>>("subscription", "Option"),
                self.param::<Option<SessionId>>("session", "Option"),
            ];
            doc.push(" Named by its id, or all of this connection's to a session by that.");
        }
        let ended = self.result::<bool>();
        self.method(end, &doc, ending, ended);

        let item = json!({"name": "result", "required": false, "schema": self.given::<T>()});
        let error =
            json!({"name": "error", "required": false, "schema": self.given::<errors::Fault>()});
        let doc = [
            format!(" What `{begin}` sends: `result`, each in its turn."),
            " Or, as the last of a subscription that the daemon ends, `error`.".to_owned(),
        ];
        let doc = doc.each_ref().map(String::as_str);
        self.add_notification(event, &doc, vec![named, item, error]);
    }

    /// What the daemon tells unasked.
    pub(crate) fn notification<T: JsonSchema>(&mut self, name: &str, doc: &[&str]) {
        let reference = self.given::<T>();
        let own = reference["$ref"]
            .as_str()
            .and_then(|text| text.rsplit('/').next());
        let schema = own
            .and_then(|own| self.given.definitions().get(own))
            .cloned();
        let mut schema = Schema::try_from(schema.unwrap_or_default()).unwrap_or_default();
        self.given
            .transforms_mut()
            .for_each(|transform| transform.transform(&mut schema));
        let schema = shape::plain(schema.to_value(), Direction::Given);
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let properties = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        let params = properties.into_iter().map(|(name, schema)| {
            json!({"name": name, "required": required.contains(&json!(name)), "schema": schema})
        });
        self.add_notification(name, doc, params.collect());
    }

    fn add_notification(&mut self, name: &str, doc: &[&str], params: Vec<Value>) {
        let mut notification = described(name, doc);
        notification.insert("paramStructure".into(), "by-name".into());
        notification.insert(
            "examples".into(),
            self.examples.notifications(name, &params),
        );
        notification.insert("params".into(), params.into());
        self.notifications.push(notification.into());
    }

    /// The method that gives this document.
    fn discover(&mut self) {
        let doc = [" This document: all methods and notifications, in the OpenRPC form."];
        let schema = json!({
            "type": "object", "title": "OpenRPC", "required": ["openrpc", "info", "methods"],
            "additionalProperties": true,
            "description": "As specified at https://spec.open-rpc.org; what the daemon sends unasked stands in `x-notifications`.",
        });
        let result = json!({"name": "result", "required": true, "schema": schema});
        self.method("rpc.discover", &doc, Vec::new(), result);
    }

    fn finish(mut self) -> Value {
        let mut schemas = Map::new();
        // To be referred to, though no method does by itself.
        self.given::<ErrorKind>();
        for (mut generator, direction) in [
            (self.taken, Direction::Taken),
            (self.given, Direction::Given),
        ] {
            for (name, schema) in generator.take_definitions(true) {
                let mut schema = shape::plain(schema, direction);
                shape::title(&mut schema, &name);
                if let Some(other) = schemas.insert(name.clone(), schema.clone()) {
                    assert_eq!(
                        other, schema,
                        "{name} is one thing when sent and another when received"
                    );
                }
            }
        }
        schemas.sort_keys();
        json!({
            "openrpc": OPENRPC,
            "info": {
                "title": "dwell",
                "version": RELEASE,
                "description": ABOUT,
                "license": {"name": "MIT"},
            },
            "servers": [{
                "name": "socket",
                "url": "unix:${socket}",
                "description": "The socket of this user's daemon; `dwell daemon status` names it.",
                "variables": {"socket": {"default": "/run/user/1000/dwell/dwell.sock", "description": "An absolute path."}},
            }],
            "methods": self.methods,
            "x-notifications": self.notifications,
            "x-protocol": PROTOCOL,
            "components": {"schemas": schemas, "errors": errors::components()},
        })
    }
}

/// What a reader has to know besides.
const ABOUT: &str = "JSON-RPC 2.0 over a Unix stream socket, one JSON text a line, or each behind `Content-Length` headers: \
the first byte that a client sends decides. Parameters by name or by position; absent, null, `[]` and `{}` all mean none. \
Members, methods, notifications and types of events that a reader does not know are to be ignored. `x-notifications` holds what \
the daemon sends unasked, in the form of methods; `x-protocol` is the number to give in `initialize`.";

fn described(name: &str, doc: &[&str]) -> Map<String, Value> {
    let whole = prose(doc);
    let first = whole
        .split_once(". ")
        .map_or(whole.as_str(), |(first, _)| first);
    let mut method = Map::new();
    method.insert("name".into(), name.into());
    method.insert("summary".into(), first.trim_end_matches('.').into());
    if first.len() + 1 < whole.len() {
        method.insert("description".into(), whole.clone().into());
    }
    method
}

/// A doc comment as one text.
fn prose(doc: &[&str]) -> String {
    let lines = doc.iter().map(|line| line.trim());
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}
