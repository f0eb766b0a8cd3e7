//! The model's list of what is to be done, as an editor's plan.

use agent_client_protocol_schema::v1::{Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus};
use serde_json::{Map, Value};

/// The tool whose results hold the list.
const TOOL: &str = "todo";

/// The plan that a call's result shows, if it shows one.
pub(super) fn of(tool: &str, result: &Map<String, Value>) -> Option<Plan> {
    let items = result.get("items").filter(|_| tool == TOOL)?.as_array()?;
    Some(Plan::new(items.iter().map(entry).collect()))
}

fn entry(item: &Value) -> PlanEntry {
    let status = match item["status"].as_str() {
        Some("in_progress") => PlanEntryStatus::InProgress,
        Some("done") => PlanEntryStatus::Completed,
        _ => PlanEntryStatus::Pending,
    };
    let text = item["text"].as_str().unwrap_or_default();
    PlanEntry::new(text, PlanEntryPriority::Medium, status)
}
