//! Permissions: what rules, grants and defaults say of one call. Pure, but for following the links in a call's paths.
//! Must never say `allow` where it does not fully understand what would run.
//!
//! What decides, in this order: a rule that denies; the policy of the whole toolbox; a grant of the session; the
//! narrowest matching rule of `permissions.json`, the stricter of two equal ones; the tool's default. Rules that forbid
//! or ask match a command by more faces than rules that allow: also without quotes, assignments, directories and
//! wrappers (see `shell`). A relative pattern on a path allows only inside the session's directory.

pub mod pattern;
pub mod place;
pub mod rules;
pub mod shell;

use super::tool::{About, Access, Tool};
use pattern::{Pattern, escape};
use place::{Ground, Names, Place};
use protocol::tool::Policy;
use rules::{Reach, Rule, Rules, Standing, Trusted, decisive, standing};
use serde_json::{Map, Value};
use shell::{Command, Face};
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
    pattern: Pattern,
}

/// What becomes of a call, and which rule says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub policy: Policy,
    pub why: String,
}

/// What rules are matched against.
#[derive(Clone, Debug)]
enum Subject {
    Shell(String),
    Text(String),
    Paths,
}

/// A call as the rules see it.
struct Asked<'a> {
    tool: &'a Tool,
    access: Access,
    subject: Subject,
    places: Vec<Place>,
    rules: Vec<Standing<'a>>,
}

/// A judgement on its way.
#[derive(Clone, Debug)]
struct Opinion {
    policy: Policy,
    why: String,
    /// Allowed without looking at the arguments.
    whole: bool,
}

impl Permissions {
    pub fn new(files: Files) -> Self {
        Self {
            files: Arc::new(files),
            ..Self::default()
        }
    }

    /// The same with one more grant of this session: `*` is every call of the tool, else as `suggest` gives it.
    #[must_use]
    pub fn with_grant(&self, tool: &str, pattern: &str) -> Self {
        let mut grants = Vec::clone(&self.grants);
        grants.push(Grant {
            tool: tool.to_owned(),
            pattern: Pattern::new(pattern),
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

    /// What is said of a tool without looking at a call's arguments.
    pub fn shown(&self, tool: &Tool) -> Policy {
        let names = names(tool);
        let rules = self.rules(&names);
        let said = decisive(&rules, |rule| rule.pattern.text() == "*")
            .map(|standing| standing.rule.policy);
        let default = || default(tool.access_of(&Map::new()), &[]).policy;
        let said = said.unwrap_or_else(default);
        let every = |grant: &Grant| grant.tool == tool.name() && grant.pattern.text() == "*";
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
            rules: self.rules(&names),
        };
        let opinion = self.opinion(&asked);
        Judgement {
            policy: self.closed(opinion.policy),
            why: self.reason(opinion),
        }
    }

    fn rules<'a>(&'a self, names: &'a [&str]) -> Vec<Standing<'a>> {
        standing(
            &self.files.user,
            &self.files.workspace,
            self.files.trusted,
            names,
        )
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
            (_, _) => opinion.why,
        }
    }

    fn opinion(&self, asked: &Asked<'_>) -> Opinion {
        let by_rules = match &asked.subject {
            Subject::Shell(line) => self.shell(asked, line),
            Subject::Text(text) => self.text(asked, text),
            Subject::Paths => self.paths(asked),
        };
        match (by_rules.policy, self.whole) {
            (Policy::Deny, _) => by_rules,
            (_, Some(policy)) => Opinion {
                policy,
                why: "the policy of the whole toolbox".to_owned(),
                whole: true,
            },
            (_, None) => self.leaving(asked, by_rules),
        }
    }

    /// A command or text that is allowed by its looks is so only inside the session's directory.
    fn leaving(&self, asked: &Asked<'_>, opinion: Opinion) -> Opinion {
        let outside = asked.places.iter().find(|place| !place.inside);
        match (&asked.subject, opinion.policy, outside) {
            (Subject::Shell(_) | Subject::Text(_), Policy::Allow, Some(place))
                if !opinion.whole =>
            {
                Opinion {
                    policy: Policy::Ask,
                    why: format!("it leaves the workspace: {}", place.real.shown()),
                    whole: false,
                }
            }
            (_, _, _) => opinion,
        }
    }

    fn shell(&self, asked: &Asked<'_>, line: &str) -> Opinion {
        let split = shell::split(line);
        let opinions = split
            .commands
            .iter()
            .map(|command| self.command(asked, command));
        let none = || default(asked.access, &[]);
        let strictest = opinions.reduce(stricter).unwrap_or_else(none);
        if strictest.policy == Policy::Deny {
            return strictest;
        }
        if let Some(why) = self.exactly(asked, line.trim()) {
            return Opinion {
                policy: Policy::Allow,
                why,
                whole: false,
            };
        }
        let particular = |standing: &Standing<'_>| {
            standing.rule.policy != Policy::Allow && standing.rule.pattern.text() != "*"
        };
        match split.doubt {
            None => strictest,
            // Nothing that it may run besides would be asked or denied.
            Some(_) if strictest.whole && !asked.rules.iter().any(particular) => strictest,
            Some(doubt) => Opinion {
                policy: Policy::Ask,
                why: format!("the command cannot be judged: {doubt}"),
                whole: false,
            },
        }
    }

    /// A rule or grant for this very line, which people have seen.
    fn exactly(&self, asked: &Asked<'_>, line: &str) -> Option<String> {
        let exact = |rule: &Rule| rule.pattern.literal().as_deref() == Some(line);
        let granted = self.grants.iter().any(|grant| {
            grant.tool == asked.tool.name() && grant.pattern.literal().as_deref() == Some(line)
        });
        match decisive(&asked.rules, exact).map(|standing| standing.rule.policy) {
            Some(Policy::Allow) => Some("a rule for this very command".to_owned()),
            Some(Policy::Deny) => None,
            Some(Policy::Ask) | None => granted.then(|| "granted for this session".to_owned()),
        }
    }

    fn command(&self, asked: &Asked<'_>, command: &Command) -> Opinion {
        let own = self.simple(asked, command);
        match &command.inner {
            Some(_) if own.policy == Policy::Deny => own,
            Some(inner) => {
                let asks = |rule: &Rule| {
                    rule.policy == Policy::Ask
                        && rule.pattern.text() != "*"
                        && rule.pattern.matches(&command.written)
                };
                match decisive(&asked.rules, asks) {
                    Some(rule) => self.granted(asked, &command.written, by_rule(&rule)),
                    None => self.command(asked, inner),
                }
            }
            None => own,
        }
    }

    fn simple(&self, asked: &Asked<'_>, command: &Command) -> Opinion {
        for face in std::iter::once(&command.plain).chain(&command.also) {
            let on_face = decisive(&asked.rules, |rule| rule.pattern.matches(&face.text));
            if let Some(rule) = on_face.filter(|standing| standing.rule.policy == Policy::Deny) {
                return by_rule(&rule);
            }
        }
        let matches = |rule: &Rule| match rule.policy {
            Policy::Allow | Policy::Deny => rule.pattern.matches(&command.written),
            Policy::Ask => faces(command).any(|text| rule.pattern.matches(text)),
        };
        let opinion = match decisive(&asked.rules, matches) {
            Some(standing) => self.certain(asked, command, &standing),
            None => unruled(asked.access, &command.written),
        };
        self.granted(asked, &command.written, opinion)
    }

    /// What an expansion may turn into must not be what a narrower rule forbids.
    fn certain(&self, asked: &Asked<'_>, command: &Command, standing: &Standing<'_>) -> Opinion {
        let opinion = by_rule(standing);
        if opinion.policy != Policy::Allow {
            return opinion;
        }
        let turns = |face: &Face| {
            let forbids = asked
                .rules
                .iter()
                .filter(|rule| rule.rule.policy != Policy::Allow && rule.beats(standing));
            let mut prefixes = forbids.map(|rule| rule.rule.pattern.prefix());
            prefixes.any(|prefix| face.may_begin(&prefix))
        };
        if std::iter::once(&command.plain)
            .chain(&command.also)
            .any(turns)
        {
            return Opinion {
                policy: Policy::Ask,
                why: format!(
                    "what {:?} expands to may be another command",
                    command.written
                ),
                whole: false,
            };
        }
        opinion
    }

    fn text(&self, asked: &Asked<'_>, text: &str) -> Opinion {
        let opinion = match decisive(&asked.rules, |rule| rule.pattern.matches(text)) {
            Some(standing) => by_rule(&standing),
            None => default(asked.access, &asked.places),
        };
        self.granted(asked, text, opinion)
    }

    fn paths(&self, asked: &Asked<'_>) -> Opinion {
        let opinions = asked.places.iter().map(|place| self.path(asked, place));
        opinions
            .reduce(stricter)
            .unwrap_or_else(|| default(asked.access, &asked.places))
    }

    fn path(&self, asked: &Asked<'_>, place: &Place) -> Opinion {
        let home = self.files.home.as_deref();
        let matches = |rule: &Rule| match (rule.policy, rule.reach) {
            (_, Reach::Tool) => true,
            (Policy::Allow, Reach::Pattern) => allows(&rule.pattern, &place.real, home),
            (Policy::Ask | Policy::Deny, Reach::Pattern) => place
                .real
                .all()
                .chain(place.written.all())
                .any(|name| rule.pattern.matches(name)),
        };
        let opinion = match decisive(&asked.rules, matches) {
            Some(standing) => by_rule(&standing),
            None => default(asked.access, std::slice::from_ref(place)),
        };
        let granted = |grant: &Grant| {
            grant.tool == asked.tool.name()
                && place.real.all().any(|name| grant.pattern.matches(name))
        };
        if opinion.policy == Policy::Ask && self.grants.iter().any(granted) {
            return granted_opinion("*");
        }
        opinion
    }

    /// A grant turns a question into a yes, never a no.
    fn granted(&self, asked: &Asked<'_>, text: &str, opinion: Opinion) -> Opinion {
        let covers =
            |grant: &&Grant| grant.tool == asked.tool.name() && grant.pattern.matches(text);
        match self.grants.iter().find(covers) {
            Some(grant) if opinion.policy == Policy::Ask => granted_opinion(
                if self
                    .grants
                    .iter()
                    .any(|grant| grant.tool == asked.tool.name() && grant.pattern.text() == "*")
                {
                    "*"
                } else {
                    grant.pattern.text()
                },
            ),
            Some(_) | None => opinion,
        }
    }
}

fn granted_opinion(pattern: &str) -> Opinion {
    Opinion {
        policy: Policy::Allow,
        why: "granted for this session".to_owned(),
        whole: pattern == "*",
    }
}

fn stricter(a: Opinion, b: Opinion) -> Opinion {
    let whole = a.whole && b.whole;
    let strict = if b.policy > a.policy { b } else { a };
    Opinion { whole, ..strict }
}

fn by_rule(standing: &Standing<'_>) -> Opinion {
    let rule = standing.rule;
    let verb = match rule.policy {
        Policy::Allow => "allows it",
        Policy::Ask => "asks",
        Policy::Deny => "denies it",
    };
    Opinion {
        policy: rule.policy,
        why: format!(
            "the rule {:?} in permissions.json {verb}",
            rule.pattern.text()
        ),
        whole: rule.reach == Reach::Tool,
    }
}

fn unruled(access: Access, command: &str) -> Opinion {
    Opinion {
        why: format!("no rule covers {command:?}"),
        ..default(access, &[])
    }
}

/// Reading inside the workspace is allowed; all else asks.
fn default(access: Access, places: &[Place]) -> Opinion {
    let outside = places.iter().find(|place| !place.readable);
    let (policy, why) = match (access, outside) {
        (Access::Nothing, _) => (Policy::Allow, "it touches nothing".to_owned()),
        (Access::Read, None) => (Policy::Allow, "it reads inside the workspace".to_owned()),
        (Access::Read, Some(place)) => (
            Policy::Ask,
            format!("it reads outside the workspace: {}", place.real.absolute),
        ),
        (Access::Write, _) => (Policy::Ask, "it changes files".to_owned()),
        (Access::Execute, _) => (Policy::Ask, "it runs a command".to_owned()),
        (Access::Network, _) => (Policy::Ask, "it talks to another host".to_owned()),
        (Access::Unknown, _) => (Policy::Ask, "no rule covers this tool".to_owned()),
    };
    Opinion {
        policy,
        why,
        whole: false,
    }
}

/// A relative pattern allows inside only; others say themselves where.
fn allows(pattern: &Pattern, names: &Names, home: Option<&Path>) -> bool {
    let text = pattern.text();
    let named = match home {
        Some(_) if text.starts_with('~') => names.home.as_deref(),
        Some(_) | None if text.starts_with('/') => Some(names.absolute.as_str()),
        Some(_) | None => names.relative.as_deref(),
    };
    named.is_some_and(|name| pattern.matches(name))
}

fn faces(command: &Command) -> impl Iterator<Item = &str> {
    let also = command.also.iter().map(|face| face.text.as_str());
    [command.written.as_str(), command.plain.text.as_str()]
        .into_iter()
        .chain(also)
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
