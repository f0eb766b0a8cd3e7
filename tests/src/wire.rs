//! What the document of the wire says of messages that were seen: every one that a test's client sends and receives is looked up.
//! Must never know a method: it reads the document alone.

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The document, as the types give it.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(protocol::schema::document)
}

/// What is wrong with an answered request by the document. A refused one says nothing of its parameters.
pub fn exchange(method: &str, params: &Value, response: &Value) -> Result<(), String> {
    let Some(described) = find("methods", method) else {
        return match response["error"]["code"].as_i64() {
            Some(-32601) => Ok(()),
            _ => Err(format!(
                "{method} is answered, and the document does not know it"
            )),
        };
    };
    if let Some(error) = response.get("error") {
        return fault(described, error).map_err(|why| format!("the error of {method}: {why}"));
    }
    given(described, params).map_err(|why| format!("the parameters of {method}: {why}"))?;
    let result = &described["result"]["schema"];
    fits(&format!("{method} result"), result, &response["result"])
        .map_err(|why| format!("the result of {method}: {why}"))
}

/// What is wrong with a notification of the daemon by the document.
pub fn notification(message: &Value) -> Result<(), String> {
    let method = message["method"].as_str().unwrap_or_default();
    let described = find("x-notifications", method)
        .ok_or_else(|| format!("the document does not know the notification {method:?}"))?;
    let params = &message["params"];
    given(described, params).map_err(|why| format!("the notification {method}: {why}"))?;
    let names = described["params"].as_array().into_iter().flatten();
    let known: Vec<_> = names.filter_map(|param| param["name"].as_str()).collect();
    let members = params.as_object().into_iter().flatten();
    for (name, _) in members {
        if !known.contains(&name.as_str()) {
            return Err(format!(
                "the notification {method} has an undocumented {name}"
            ));
        }
    }
    let both = known.contains(&"result") && known.contains(&"error");
    if both && params.get("result").is_some() == params.get("error").is_some() {
        return Err(format!(
            "the notification {method} has not one of result, error"
        ));
    }
    Ok(())
}

/// What the document has of a name.
pub fn find(list: &str, name: &str) -> Option<&'static Value> {
    let mut all = document()[list].as_array().into_iter().flatten();
    all.find(|one| one["name"] == name)
}

fn given(described: &Value, params: &Value) -> Result<(), String> {
    let list = described["params"].as_array().map(Vec::as_slice);
    for (at, param) in list.unwrap_or_default().iter().enumerate() {
        let name = param["name"].as_str().unwrap_or_default();
        let value = match params {
            Value::Array(all) => all.get(at),
            by_name => by_name.get(name),
        };
        match value {
            Some(value) => fits(
                &format!("{} {name}", described["name"]),
                &param["schema"],
                value,
            )
            .map_err(|why| format!("{name}: {why}"))?,
            None if param["required"] == true => return Err(format!("{name} is not optional")),
            None => {}
        }
    }
    Ok(())
}

fn fault(described: &Value, error: &Value) -> Result<(), String> {
    let whole = json!({"$ref": "#/components/schemas/Fault"});
    fits("a fault", &whole, error)?;
    let listed = described["errors"].as_array().into_iter().flatten();
    let mut listed = listed.filter_map(|one| document().pointer(&one["$ref"].as_str()?[1..]));
    match listed.any(|one| one["code"] == error["code"]) {
        true => Ok(()),
        false => Err(format!(
            "{} is not among those of the method",
            error["data"]
        )),
    }
}

/// Whether a value fits a schema of the document. `key` names the schema.
pub fn fits(key: &str, schema: &Value, value: &Value) -> Result<(), String> {
    let (key, schema) = narrow(key, schema, value);
    let validator = validator(key, &schema)?;
    let wrong = validator.iter_errors(value).next();
    let Some(wrong) = wrong else { return Ok(()) };
    let shown: String = value.to_string().chars().take(600).collect();
    Err(format!(
        "{wrong} at {:?} in {shown}",
        wrong.instance_path().as_str()
    ))
}

/// An event against the one schema of its type: what is wrong with it is then told, and it is fast.
fn narrow(key: &str, schema: &Value, value: &Value) -> (String, Value) {
    let kind = value["type"].as_str();
    let event = schema["$ref"] == "#/components/schemas/Event";
    let (Some(kind), true) = (kind, event) else {
        return (key.to_owned(), schema.clone());
    };
    let mut one = document()["components"]["schemas"]["Event"].clone();
    if let Some(Value::Array(all)) = one.get_mut("oneOf") {
        all.retain(|variant| variant["properties"]["type"]["const"] == kind);
    }
    (format!("{key} {kind}"), one)
}

fn validator(key: String, schema: &Value) -> Result<Arc<Validator>, String> {
    static BUILT: OnceLock<Mutex<HashMap<String, Arc<Validator>>>> = OnceLock::new();
    let built = BUILT.get_or_init(Mutex::default);
    let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(validator) = built.get(&key) {
        return Ok(Arc::clone(validator));
    }
    let mut whole = Map::new();
    whole.insert("allOf".into(), json!([schema]));
    whole.insert("components".into(), document()["components"].clone());
    let validator = jsonschema::draft7::new(&Value::Object(whole));
    let validator = Arc::new(validator.map_err(|error| format!("{key}: {error}"))?);
    built.insert(key, Arc::clone(&validator));
    Ok(validator)
}
