//! Rule sets: `permissions.json` as rules, and which of them decides.
//! Must never guess what a malformed file meant.

use super::pattern::{Narrowness, Pattern};
use protocol::tool::Policy;
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

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

impl Rule {
    /// One that allows what the pattern matches.
    pub fn allow(pattern: &str) -> Self {
        Self {
            pattern: Pattern::new(pattern),
            policy: Policy::Allow,
            reach: Reach::Pattern,
        }
    }
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
        // By a visitor, so that what is wrong is told with its line.
        match serde_json::from_str::<Self>(text) {
            Ok(rules) => Ok(rules),
            Err(why) if why.is_data() => Err(why.to_string()),
            Err(why) => Err(format!("not JSON: {why}")),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// One more that allows, in the place of one for the same pattern; as it would be read if the file were written so.
    pub fn allow(&mut self, tool: &str, pattern: &str) {
        let rules = self.tools.entry(tool.to_owned()).or_default();
        rules.retain(|rule| rule.pattern.text() != pattern);
        for rule in &mut *rules {
            rule.reach = Reach::Pattern;
        }
        rules.push(Rule::allow(pattern));
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
        // What is said of many by a pattern counts where nothing is said of the tool itself.
        let is_named = names.iter().any(|name| self.tools.contains_key(*name));
        let patterns = self.tools.iter().filter(move |(key, _)| {
            !is_named && *key != EVERY && names.iter().any(|name| fits(key, name))
        });
        let many =
            patterns.flat_map(|(_, rules)| rules.iter().map(|rule| Standing { rule, own: true }));
        own.chain(many).chain(under(EVERY, false))
    }

    /// Names and patterns that something is forbidden or asked under, but that for every tool.
    pub fn guarded(&self) -> impl Iterator<Item = &str> {
        let guards = |rules: &[Rule]| rules.iter().any(|rule| rule.policy != Policy::Allow);
        let tools = self.tools.iter();
        tools
            .filter(move |(key, rules)| *key != EVERY && guards(rules))
            .map(|(key, _)| key.as_str())
    }
}

/// Whether a key of a file is this name, or with `*` in it fits it.
pub(super) fn fits(key: &str, name: &str) -> bool {
    let mut parts = key.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        rest = match parts.peek() {
            None => return rest.ends_with(part),
            Some(_) => match rest.split_once(part) {
                Some((_, rest)) => rest,
                None => return false,
            },
        };
    }
    true
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

impl<'de> Deserialize<'de> for Rules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tools)
    }
}

/// The whole file.
struct Tools;

impl<'de> Visitor<'de> for Tools {
    type Value = Rules;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tools")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rules, A::Error> {
        let mut tools = BTreeMap::new();
        while let Some(tool) = map.next_key::<String>()? {
            let rules = map.next_value_seed(OfTool(&tool))?;
            tools.insert(tool, rules);
        }
        Ok(Rules { tools })
    }
}

/// One tool's policy or patterns.
struct OfTool<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for OfTool<'_> {
    type Value = Vec<Rule>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Rule>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OfTool<'_> {
    type Value = Vec<Rule>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "allow, ask, deny or an object of patterns for {:?}",
            self.0
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<Rule>, E> {
        Ok(vec![Rule {
            pattern: Pattern::new("*"),
            policy: policy(text, &format!("{:?}", self.0))?,
            reach: Reach::Tool,
        }])
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Rule>, A::Error> {
        // Of a pattern that stands there twice the later counts, as of any member of an object.
        let mut rules: Vec<Rule> = Vec::new();
        while let Some(pattern) = map.next_key::<String>()? {
            let place = format!("{:?}, {pattern:?}", self.0);
            let rule = Rule {
                policy: map.next_value_seed(OfPattern(&place))?,
                pattern: Pattern::new(&pattern),
                reach: Reach::Pattern,
            };
            rules.retain(|earlier| earlier.pattern.text() != pattern);
            rules.push(rule);
        }
        Ok(rules)
    }
}

/// What a pattern is given; the words name the place.
struct OfPattern<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for OfPattern<'_> {
    type Value = Policy;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Policy, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for OfPattern<'_> {
    type Value = Policy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allow, ask or deny for {}", self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Policy, E> {
        policy(text, self.0)
    }
}

fn policy<E: Error>(text: &str, place: &str) -> Result<Policy, E> {
    let word: StrDeserializer<'_, E> = text.into_deserializer();
    Policy::deserialize(word).map_err(|_| {
        E::custom(format!(
            "{place} should be allow, ask or deny, not {text:?}"
        ))
    })
}
