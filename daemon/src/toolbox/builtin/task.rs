//! `task`: a session of its own works on a prompt, and its last reply is the result.

use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use serde_json::{Map, Value, json};

const ABOUT: &str = "Hand a task to a session of its own, which begins with nothing but your prompt and has the same tools and \
                     the same directory. Its last reply is the result; what it read and tried on the way costs you nothing. \
                     For searches through much text and for work that stands by itself.";

/// It changes nothing by itself: each call of the session goes through the gate.
pub(super) fn tool() -> Tool {
    let prompt = "All that the session has to know: what is wanted, where, and what to reply";
    Tool::new("task", ABOUT)
        .param("prompt", json!({"type": "string", "description": prompt}))
        .required("prompt")
        .access(Access::Nothing)
        .handler(run)
}

async fn run(call: Call, arguments: Map<String, Value>) -> Outcome {
    let prompt = arguments["prompt"].as_str().unwrap_or_default().to_owned();
    call.port
        .task(&call.call, prompt, call.cancel.clone())
        .await
}
