//! How a toolbox expression looks, for the document. Must never refuse what `Expression::parse` takes, nor refer to itself: tools
//! that put definitions in the place of references never end then.

use crate::expression::{CodeApproval, CodeLimits, Expression, HITS, USUAL_HITS};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::borrow::Cow;

impl JsonSchema for Expression {
    fn schema_name() -> Cow<'static, str> {
        "Expression".into()
    }

    fn json_schema(to: &mut SchemaGenerator) -> Schema {
        let of = to.subschema_for::<Operand>().to_value();
        let about = "Which tools a model is shown, and how: a toolbox by its name, or one operator on others.";
        forms(about, &of, &to.subschema_for::<CodeApproval>())
    }
}

/// An expression within another.
struct Operand;

impl JsonSchema for Operand {
    fn schema_name() -> Cow<'static, str> {
        "Operand".into()
    }

    fn json_schema(to: &mut SchemaGenerator) -> Schema {
        let of = json!({"description": "An Expression again."});
        let about = "An Expression within another. They may stand in each other as deep as the daemon allows; what is within this one is not described.";
        forms(about, &of, &to.subschema_for::<CodeApproval>())
    }
}

fn forms(about: &str, of: &Value, approval: &Schema) -> Schema {
    let names =
        json!({"type": "array", "items": {"type": "string"}, "description": "The names to keep."});
    let hits = json!({
        "type": "integer", "minimum": 1, "maximum": HITS,
        "description": format!("How many hits a search gives when the model does not say; {USUAL_HITS} if absent."),
    });
    let merge = json!({"type": "array", "minItems": 1, "items": of});
    let restrict = object(&json!({"of": of, "names": names}), &["of", "names"]);
    let search = object(&json!({"of": of, "limit": hits}), &["of"]);
    let code = json!({"of": of, "limits": limits(), "approval": approval});
    let code = object(&code, &["of"]);
    json_schema!({
        "description": about,
        "oneOf": [
            {"type": "string", "minLength": 1, "description": "A toolbox that has a name."},
            operator("merge", "The tools of all; of two of one name the first.", &merge),
            operator("restrict", "Only those of these names.", &restrict),
            operator("search", "Two tools in the place of all: one finds, one calls.", &search),
            operator("code", "One tool in the place of all: it runs programs that call them.", &code),
        ],
    })
}

fn operator(name: &str, description: &str, of: &Value) -> Value {
    let mut whole = object(&json!({ name: of }), &[name]);
    whole["description"] = description.into();
    whole
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    })
}

/// Bounds with their meaning, each a whole number above 0.
fn limits() -> Value {
    let derived = CodeLimits::json_schema(&mut SchemaGenerator::default()).to_value();
    let mut properties = derived["properties"].clone();
    for bound in properties
        .as_object_mut()
        .into_iter()
        .flat_map(|all| all.values_mut())
    {
        *bound = json!({"type": "integer", "minimum": 1, "description": bound["description"]});
    }
    let mut whole = object(&properties, &[]);
    whole["description"] = derived["description"].clone();
    whole
}
