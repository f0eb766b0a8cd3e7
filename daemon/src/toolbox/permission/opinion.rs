//! Opinions: how rules, grants and defaults are weighed for one call.
//! Must never look at anything but what it is given.

use super::pattern::Pattern;
use super::place::{Names, Place};
use super::rules::{Reach, Rule, Standing, decisive};
use super::shell::{self, Command, Face};
use super::{Grant, Permissions};
use crate::toolbox::tool::{Access, Tool};
use protocol::tool::Policy;
use std::path::Path;

/// What rules are matched against.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    Shell(String),
    Text(String),
    Paths,
}

/// A call as the rules see it.
pub(super) struct Asked<'a> {
    pub(super) tool: &'a Tool,
    pub(super) access: Access,
    pub(super) subject: Subject,
    pub(super) places: Vec<Place>,
    pub(super) rules: Vec<Standing<'a>>,
}

/// A judgement on its way.
#[derive(Clone, Debug)]
pub(super) struct Opinion {
    pub(super) policy: Policy,
    pub(super) why: String,
    /// Allowed without looking at the arguments.
    whole: bool,
}

impl Permissions {
    pub(super) fn opinion(&self, asked: &Asked<'_>) -> Opinion {
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
        // Where no command can be told, what is said of the tool alone still holds.
        let whole = || decisive(&asked.rules, |rule| rule.reach == Reach::Tool);
        let none = || whole().map_or_else(|| default(asked.access, &[]), |rule| by_rule(&rule));
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
            let literal = grant.rule.pattern.literal();
            grant.tool == asked.tool.name() && literal.as_deref() == Some(line)
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
        let unnamed = command.changes.iter().find(|word| {
            standing.rule.reach == Reach::Pattern && !standing.rule.pattern.names(word)
        });
        if let Some(word) = unnamed {
            return Opinion {
                policy: Policy::Ask,
                why: format!(
                    "{word:?} may destroy, write or reach further, and the rule {:?} in permissions.json does not name it",
                    standing.rule.pattern.text()
                ),
                whole: false,
            };
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
            None => unhidden(asked, place, home)
                .unwrap_or_else(|| default(asked.access, std::slice::from_ref(place))),
        };
        let granted = |grant: &Grant| place.real.all().any(|name| grant.covers(asked.tool, name));
        if opinion.policy == Policy::Ask && self.grants.iter().any(granted) {
            return granted_opinion("*");
        }
        opinion
    }

    /// A grant turns a question into a yes, never a no.
    fn granted(&self, asked: &Asked<'_>, text: &str, opinion: Opinion) -> Opinion {
        let covers = |grant: &&Grant| grant.covers(asked.tool, text);
        let all = |grant: &Grant| grant.tool == asked.tool.name() && grant.is_all();
        match self.grants.iter().find(covers) {
            Some(_) if opinion.policy != Policy::Ask => opinion,
            Some(_) if self.grants.iter().any(all) => granted_opinion("*"),
            Some(grant) => granted_opinion(grant.rule.pattern.text()),
            None => opinion,
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
pub(super) fn default(access: Access, places: &[Place]) -> Opinion {
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

/// Why it asks about a path that a rule would allow but for what is hidden in it.
fn unhidden(asked: &Asked<'_>, place: &Place, home: Option<&Path>) -> Option<Opinion> {
    let usual = default(asked.access, std::slice::from_ref(place));
    if usual.policy != Policy::Ask {
        return None;
    }
    let allowing = |standing: &&Standing<'_>| {
        let pattern = &standing.rule.pattern;
        standing.rule.policy == Policy::Allow
            && name_for(pattern, &place.real, home).is_some_and(|name| pattern.matches(name))
    };
    let rule = asked.rules.iter().find(allowing)?.rule;
    Some(Opinion {
        why: format!(
            "it is hidden, and the rule {:?} in permissions.json does not name it",
            rule.pattern.text()
        ),
        ..usual
    })
}

/// A relative pattern allows inside only; others say themselves where. What is hidden has to be named.
fn allows(pattern: &Pattern, names: &Names, home: Option<&Path>) -> bool {
    name_for(pattern, names, home).is_some_and(|name| pattern.matches_path(name))
}

/// The name of a path that a pattern is written for.
fn name_for<'a>(pattern: &Pattern, names: &'a Names, home: Option<&Path>) -> Option<&'a str> {
    let text = pattern.text();
    match home {
        Some(_) if text.starts_with('~') => names.home.as_deref(),
        Some(_) | None if text.starts_with('/') => Some(names.absolute.as_str()),
        Some(_) | None => names.relative.as_deref(),
    }
}

fn faces(command: &Command) -> impl Iterator<Item = &str> {
    let also = command.also.iter().map(|face| face.text.as_str());
    [command.written.as_str(), command.plain.text.as_str()]
        .into_iter()
        .chain(also)
}
