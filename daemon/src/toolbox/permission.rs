//! Permissions: what rules, grants and defaults say of one call. Pure, but for following the links in a call's paths.
//! Must never say `allow` where it does not fully understand what would run.
//!
//! What decides, in this order: a rule that denies; the policy of the whole toolbox; a grant of the session; the
//! narrowest matching rule of `permissions.json`, the stricter of two equal ones; the tool's default. Rules that forbid
//! or ask match a command by more faces than rules that allow: also without quotes, assignments, directories and
//! wrappers (see `shell`). A relative pattern on a path allows only inside the session's directory.

mod opinion;
pub mod pattern;
pub mod place;
pub mod rules;
pub mod shell;
mod suggest;

use super::tool::{About, Tool};
use opinion::{Asked, Opinion, Subject, default};
use pattern::escape;
use place::{Ground, Place};
use protocol::tool::Policy;
use rules::{Rule, Rules, Standing, Trusted, decisive, standing};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is allowed, asked and denied, for one session; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    files: Arc<Files>,
    grants: Arc<Vec<Grant>>,
    whole: Option<Policy>,
}

/// What was read of the files.
#[derive(Clone, Debug, Default)]
pub struct Files {
    pub user: Rules,
    pub workspace: Rules,
    pub trusted: Trusted,
    /// What `~` in a path or pattern stands for.
    pub home: Option<PathBuf>,
    /// Files that could not be read as rules. With any, nothing is allowed unasked.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Grant {
    tool: String,
    rule: Rule,
}

/// How long a pattern that a person names is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    Session,
    /// Written to the workspace's file.
    Always,
}

/// What becomes of a call, and which rule says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub policy: Policy,
    pub why: String,
}

impl Permissions {
    pub fn new(files: Files) -> Self {
        Self {
            files: Arc::new(files),
            ..Self::default()
        }
    }

    /// The same with one more grant of this session: `*` is every call of the tool, a pattern in which nothing varies is the
    /// very call, any other is as good as a rule that allows.
    #[must_use]
    pub fn with_grant(&self, tool: &str, pattern: &str) -> Self {
        let mut grants = Vec::clone(&self.grants);
        grants.push(Grant {
            tool: tool.to_owned(),
            rule: Rule::allow(pattern),
        });
        Self {
            grants: Arc::new(grants),
            ..self.clone()
        }
    }

    /// The same with one policy for the whole toolbox, in the place of rules that ask, grants and defaults.
    #[must_use]
    pub fn with_policy(&self, policy: Policy) -> Self {
        Self {
            whole: Some(policy),
            ..self.clone()
        }
    }

    /// Files that could not be read as permissions; nothing is allowed unasked then.
    pub fn problems(&self) -> &[String] {
        &self.files.problems
    }

    /// Names that the files guard and that fit none of these.
    pub fn guard_nothing<'a>(&'a self, names: &[&str]) -> Vec<&'a str> {
        let all = self
            .files
            .user
            .guarded()
            .chain(self.files.workspace.guarded());
        all.filter(|key| !names.iter().any(|name| rules::fits(key, name)))
            .collect()
    }

    /// What a call with these arguments may do.
    pub async fn judge(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        cwd: &Path,
        spill_dir: &Path,
    ) -> Judgement {
        let ground = self.ground(cwd, spill_dir);
        let places = places(tool, arguments, ground).await;
        self.judge_at(tool, arguments, places)
    }

    /// Whether a rule by this very name forbids a tool that otherwise never asks, as what it calls does.
    pub fn forbids(&self, name: &str) -> bool {
        let names = [name];
        let decides = decisive(&self.rules(&names), |rule| rule.pattern.text() == "*");
        decides.is_some_and(|standing| standing.own && standing.rule.policy == Policy::Deny)
    }

    /// What is said of a tool without looking at a call's arguments.
    pub fn shown(&self, tool: &Tool) -> Policy {
        let names = names(tool);
        let rules = self.rules(&names);
        let said = decisive(&rules, |rule| rule.pattern.text() == "*")
            .map(|standing| standing.rule.policy);
        let default = || default(tool.access_of(&Map::new()), &[]).policy;
        let said = said.unwrap_or_else(default);
        let every = |grant: &Grant| grant.tool == tool.name() && grant.is_all();
        let granted = self.grants.iter().any(every);
        match (said, self.whole) {
            (Policy::Deny, _) => Policy::Deny,
            (_, Some(policy)) => self.closed(policy),
            (Policy::Ask, None) if granted => self.closed(Policy::Allow),
            (policy, None) => self.closed(policy),
        }
    }

    /// The narrowest pattern that covers this call, for an answer that reaches further than it: exactly what was seen.
    pub fn suggest(tool: &Tool, arguments: &Map<String, Value>, cwd: &Path) -> String {
        match subject(tool, arguments) {
            Subject::Shell(line) => escape(line.trim()),
            Subject::Text(text) => escape(&text),
            Subject::Paths => {
                let ground = Ground {
                    cwd: cwd.to_owned(),
                    spill_dir: cwd.to_owned(),
                    home: std::env::home_dir(),
                };
                let places: Vec<Place> = paths_of(tool, arguments)
                    .iter()
                    .map(|path| ground.place(path))
                    .collect();
                let outside = places.iter().find(|place| !place.inside);
                let place = outside.or_else(|| places.first());
                place.map_or_else(|| ".".to_owned(), |place| escape(place.real.shown()))
            }
        }
    }

    /// Patterns that a person may choose from when this call is asked about: each would allow it.
    pub async fn suggestions(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        cwd: &Path,
        spill_dir: &Path,
    ) -> Vec<String> {
        let places = places(tool, arguments, self.ground(cwd, spill_dir)).await;
        self.suggestions_at(tool, arguments, &places)
    }

    fn suggestions_at(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        places: &[Place],
    ) -> Vec<String> {
        let offered = suggest::candidates(&subject(tool, arguments), places);
        let allows = |pattern: &String| {
            let then = self.with_pattern(tool.name(), pattern, Lasting::Always);
            then.judge_at(tool, arguments, places.to_vec()).policy == Policy::Allow
        };
        offered.into_iter().filter(allows).collect()
    }

    /// What would become of this call if a person's pattern held.
    pub async fn judge_with(
        &self,
        (pattern, lasting): (&str, Lasting),
        tool: &Tool,
        arguments: &Map<String, Value>,
        cwd: &Path,
        spill_dir: &Path,
    ) -> Judgement {
        let then = self.with_pattern(tool.name(), pattern, lasting);
        then.judge(tool, arguments, cwd, spill_dir).await
    }

    /// A pattern as a grant that is weighed like the rule it would be: `*` on a line for rules is not every line.
    pub fn grant_of(pattern: &str) -> &str {
        match pattern {
            "*" => "**",
            other => other,
        }
    }

    fn with_pattern(&self, tool: &str, pattern: &str, lasting: Lasting) -> Self {
        match lasting {
            Lasting::Session => self.with_grant(tool, Self::grant_of(pattern)),
            // For good is what the file says by itself, in a directory that is trusted.
            Lasting::Always => {
                let mut files = Files::clone(&self.files);
                files.workspace.allow(tool, pattern);
                files.trusted = Trusted::Yes;
                Self {
                    files: Arc::new(files),
                    ..self.clone()
                }
            }
        }
    }

    fn ground(&self, cwd: &Path, spill_dir: &Path) -> Ground {
        Ground {
            cwd: cwd.to_owned(),
            spill_dir: spill_dir.to_owned(),
            home: self.files.home.clone(),
        }
    }

    fn judge_at(
        &self,
        tool: &Tool,
        arguments: &Map<String, Value>,
        places: Vec<Place>,
    ) -> Judgement {
        let names = names(tool);
        let asked = Asked {
            tool,
            access: tool.access_of(arguments),
            subject: subject(tool, arguments),
            places,
            rules: self.rules_and_grants(tool, &names),
        };
        let opinion = self.opinion(&asked);
        let policy = self.closed(opinion.policy);
        let mut why = self.reason(opinion);
        if policy == Policy::Ask {
            for led in asked.places.iter().filter_map(Place::led) {
                why.push_str("; ");
                why.push_str(&led);
            }
        }
        Judgement { policy, why }
    }

    fn rules<'a>(&'a self, names: &'a [&str]) -> Vec<Standing<'a>> {
        standing(
            &self.files.user,
            &self.files.workspace,
            self.files.trusted,
            names,
        )
    }

    /// A grant that may cover calls which nobody has seen is weighed like a rule, so that what rules keep from patterns is
    /// kept from it too.
    fn rules_and_grants<'a>(&'a self, tool: &Tool, names: &'a [&str]) -> Vec<Standing<'a>> {
        let mut all = self.rules(names);
        let wide = self.grants.iter().filter(|grant| grant.is_wide());
        let own = wide.filter(|grant| grant.tool == tool.name());
        all.extend(own.map(|grant| Standing {
            rule: &grant.rule,
            own: true,
        }));
        all
    }

    /// With a file that could not be read nothing is allowed.
    fn closed(&self, policy: Policy) -> Policy {
        if self.files.problems.is_empty() {
            policy
        } else {
            policy.max(Policy::Ask)
        }
    }

    fn reason(&self, opinion: Opinion) -> String {
        match (opinion.policy, self.files.problems.first()) {
            (Policy::Allow, Some(problem)) => problem.clone(),
            (Policy::Ask, Some(problem)) => format!("{}; {problem}", opinion.why),
            (Policy::Deny, _) | (_, None) => opinion.why,
        }
    }
}

impl Grant {
    /// Every call of its tool.
    fn is_all(&self) -> bool {
        self.rule.pattern.text() == "*"
    }

    /// More than the very call that a person saw, and less than all.
    fn is_wide(&self) -> bool {
        !self.is_all() && self.rule.pattern.literal().is_none()
    }

    /// Whether it is for this call by what the person saw, or by being for all.
    fn covers(&self, tool: &Tool, name: &str) -> bool {
        self.tool == tool.name() && !self.is_wide() && self.rule.pattern.matches(name)
    }
}

/// A rule may stand under any name that the tool gave itself.
fn names(tool: &Tool) -> Vec<&str> {
    std::iter::once(tool.name())
        .chain(tool.aliases().iter().map(String::as_str))
        .collect()
}

fn subject(tool: &Tool, arguments: &Map<String, Value>) -> Subject {
    match tool.about {
        About::Shell(param) => Subject::Shell(text_of(arguments.get(param))),
        About::Words(params) => {
            let words = params
                .iter()
                .flat_map(|param| words_of(arguments.get(*param)));
            Subject::Text(words.collect::<Vec<_>>().join(" "))
        }
        About::Arguments if tool.paths.is_empty() => {
            Subject::Text(Value::Object(arguments.clone()).to_string())
        }
        About::Arguments => Subject::Paths,
    }
}

fn text_of(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// One word for a string, several for an array; with quotes where a space would make it look like more.
fn words_of(value: Option<&Value>) -> Vec<String> {
    let word = |value: &Value| match value {
        Value::String(text) if text.is_empty() || text.contains([' ', '\'', '\n', '\t']) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(word).collect(),
        // A string is given whole, as it stands in the call.
        Some(Value::String(text)) => vec![text.clone()],
        Some(other) => vec![word(other)],
    }
}

fn paths_of(tool: &Tool, arguments: &Map<String, Value>) -> Vec<String> {
    let mut paths = Vec::new();
    for param in &tool.paths {
        match arguments.get(*param) {
            Some(Value::Array(items)) => {
                paths.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            Some(Value::String(path)) => paths.push(path.clone()),
            Some(_) | None => {}
        }
    }
    paths
}

/// Links are read on a thread that may wait for a slow disk.
async fn places(tool: &Tool, arguments: &Map<String, Value>, ground: Ground) -> Vec<Place> {
    let paths = paths_of(tool, arguments);
    if paths.is_empty() {
        return tool.paths.iter().take(1).map(|_| ground.here()).collect();
    }
    let asked = paths.len();
    let follow = move || {
        paths
            .iter()
            .map(|path| ground.place(path))
            .collect::<Vec<_>>()
    };
    tokio::task::spawn_blocking(follow)
        .await
        .unwrap_or_else(|_| vec![Place::unknown(); asked])
}

#[cfg(test)]
mod tests;
