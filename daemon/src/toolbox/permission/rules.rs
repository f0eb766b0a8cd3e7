//! Rule sets: `permissions.json` as rules, and which of them decides.
//! Must never guess what a malformed file meant.

use super::pattern::{Narrowness, Pattern};
use protocol::tool::Policy;
use serde_json::Value;
use std::collections::BTreeMap;

/// The key that stands for every tool.
const EVERY: &str = "*";

/// The rules of one file, by tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    tools: BTreeMap<String, Vec<Rule>>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub pattern: Pattern,
    pub policy: Policy,
    pub reach: Reach,
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The tool alone: `"execute": "allow"`.
    Tool,
    /// The command or path.
    Pattern,
}

/// A rule as it stands for one tool.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    pub rule: &'a Rule,
    /// A rule of the tool's own wins over one for every tool.
    pub own: bool,
}

impl Standing<'_> {
    /// To compare: a tool's own, the narrower, the stricter.
    fn weight(&self) -> (bool, Narrowness, Policy) {
        (self.own, self.rule.pattern.narrowness(), self.rule.policy)
    }

    /// Whether this one would decide against the other if both matched.
    pub fn beats(&self, other: &Self) -> bool {
        self.weight() > other.weight()
    }
}

impl Rules {
    /// `{"TOOL": "allow" | "ask" | "deny" | {"PATTERN": "allow" | "ask" | "deny", ...}, ...}`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|why| format!("not JSON: {why}"))?;
        let Value::Object(members) = value else {
            return Err("not an object of tools".to_owned());
        };
        let mut tools = BTreeMap::new();
        for (tool, value) in &members {
            tools.insert(tool.clone(), rules(tool, value)?);
        }
        Ok(Self { tools })
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Those of a tool, under any of its names, and those for every tool.
    fn of<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = Standing<'a>> {
        let under = |name: &str, own: bool| {
            let rules = self.tools.get(name).into_iter().flatten();
            rules.map(move |rule| Standing { rule, own })
        };
        let own = names
            .iter()
            .filter(|name| **name != EVERY)
            .flat_map(move |name| under(name, true));
        own.chain(under(EVERY, false))
    }
}

/// Whether a workspace's `allow` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trusted {
    Yes,
    #[default]
    No,
}

/// The rules of both files for a tool. The workspace's come later: for the same pattern they stand in the place of the
/// user's, unless that one forbids; an `allow` is left out where the workspace is not trusted.
pub(super) fn standing<'a>(
    user: &'a Rules,
    workspace: &'a Rules,
    trusted: Trusted,
    names: &'a [&str],
) -> Vec<Standing<'a>> {
    let counts =
        |standing: &Standing<'_>| standing.rule.policy != Policy::Allow || trusted == Trusted::Yes;
    let later: Vec<Standing<'_>> = workspace.of(names).filter(counts).collect();
    let replaced = |earlier: &Standing<'_>| {
        let same = |later: &&Standing<'_>| {
            later.own == earlier.own
                && later.rule.pattern == earlier.rule.pattern
                && (trusted == Trusted::Yes || later.rule.policy > earlier.rule.policy)
        };
        earlier.rule.policy != Policy::Deny && later.iter().any(|rule| same(&rule))
    };
    let mut all: Vec<Standing<'_>> = user.of(names).filter(|rule| !replaced(rule)).collect();
    all.extend(later);
    all
}

/// The rule that decides among those that match.
pub(super) fn decisive<'a>(
    rules: &[Standing<'a>],
    matches: impl Fn(&Rule) -> bool,
) -> Option<Standing<'a>> {
    let matching = rules.iter().filter(|standing| matches(standing.rule));
    matching.copied().max_by(|a, b| a.weight().cmp(&b.weight()))
}

fn rules(tool: &str, value: &Value) -> Result<Vec<Rule>, String> {
    match value {
        Value::String(_) => Ok(vec![Rule {
            pattern: Pattern::new("*"),
            policy: policy(value, &format!("{tool:?}"))?,
            reach: Reach::Tool,
        }]),
        Value::Object(patterns) => {
            let rule = |(pattern, value): (&String, &Value)| {
                Ok(Rule {
                    pattern: Pattern::new(pattern),
                    policy: policy(value, &format!("{tool:?}, {pattern:?}"))?,
                    reach: Reach::Pattern,
                })
            };
            patterns.iter().map(rule).collect()
        }
        other => Err(format!(
            "{tool:?} should be allow, ask, deny or an object of patterns, not {other}"
        )),
    }
}

fn policy(value: &Value, place: &str) -> Result<Policy, String> {
    serde_json::from_value(value.clone())
        .map_err(|_| format!("{place} should be allow, ask or deny, not {value}"))
}
