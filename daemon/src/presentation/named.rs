//! What an expression stands for: toolboxes by name, and the one table of operators.
//! Must never give a toolkit for something that it does not know: the complaint has the path of the field.

use super::code_mode::{self, CodeMode, Rules};
use super::merge::Merge;
use super::restrict::Restrict;
use super::search::Search;
use super::source::Source;
use super::usual::{self, usual};
use super::{FIELD, Toolkit};
use crate::toolbox::Toolbox;
use protocol::expression::{BadExpression, Expression, USUAL_HITS};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// How many names and operators one expression may come to: each holds a list of tools.
const PARTS: usize = 256;

/// The name of all that a workspace has.
pub const DEFAULT: &str = "default";

/// What names stand for.
#[derive(Clone)]
pub struct Means {
    /// All that the workspace has.
    pub toolbox: Arc<Toolbox>,
    pub settings: Arc<Settings>,
}

/// What people set about toolboxes.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Names of their own, which go before those of sources.
    pub named: BTreeMap<String, Expression>,
    /// What a session has that names none.
    pub chosen: Option<Expression>,
    /// How tools are shown where no expression says it.
    pub usual: usual::Settings,
    pub code: code_mode::Settings,
}

/// The toolkit that an expression in the field `path` stands for; the usual one without.
pub fn toolkit(
    expression: Option<&Expression>,
    path: &str,
    means: &Means,
) -> Result<Arc<dyn Toolkit>, BadExpression> {
    let chosen = means.settings.chosen.as_ref();
    let Some(expression) = expression.or(chosen) else {
        return Ok(usual(means));
    };
    Build::new(means, Missing::Refused).of(expression, path)
}

/// As `toolkit`, for whoever goes on without what is not there any more: a name that is none's has no tools. What is
/// missing is told beside.
pub fn toolkit_there_is(
    expression: Option<&Expression>,
    means: &Means,
) -> (Arc<dyn Toolkit>, Vec<BadExpression>) {
    let chosen = means.settings.chosen.as_ref();
    let Some(expression) = expression.or(chosen) else {
        return (usual(means), Vec::new());
    };
    let mut build = Build::new(means, Missing::Empty(Vec::new()));
    let made = build.of(expression, FIELD);
    let Missing::Empty(mut missing) = build.missing else {
        return (nothing(), Vec::new());
    };
    let made = made.unwrap_or_else(|bad| {
        missing.push(bad);
        nothing()
    });
    (made, missing)
}

/// What an expression reaches, directly: its toolkit without search and programs.
pub fn reached(expression: Option<&Expression>, means: &Means) -> Arc<dyn Toolkit> {
    match expression.or(means.settings.chosen.as_ref()) {
        None => Arc::clone(&means.toolbox) as Arc<dyn Toolkit>,
        Some(expression) => toolkit_there_is(Some(&direct(expression)), means).0,
    }
}

fn direct(expression: &Expression) -> Expression {
    match expression {
        Expression::Named(_) => expression.clone(),
        Expression::Merge(all) => Expression::Merge(all.iter().map(direct).collect()),
        Expression::Restrict { of, names } => Expression::Restrict {
            of: Box::new(direct(of)),
            names: names.clone(),
        },
        Expression::Search { of, .. } | Expression::Code { of, .. } => direct(of),
    }
}

fn nothing() -> Arc<dyn Toolkit> {
    Arc::new(Merge::new(Vec::new()))
}

/// What becomes of a name that is none's.
enum Missing {
    Refused,
    Empty(Vec<BadExpression>),
}

struct Build<'a> {
    means: &'a Means,
    /// Names of the settings whose expressions are being read.
    within: Vec<&'a str>,
    /// Names and operators so far.
    parts: usize,
    missing: Missing,
}

impl<'a> Build<'a> {
    fn new(means: &'a Means, missing: Missing) -> Self {
        Self {
            means,
            within: Vec::new(),
            parts: 0,
            missing,
        }
    }

    fn of(
        &mut self,
        expression: &'a Expression,
        path: &str,
    ) -> Result<Arc<dyn Toolkit>, BadExpression> {
        self.parts += 1;
        if self.parts > PARTS {
            return Err(BadExpression {
                path: path.to_owned(),
                why: format!(
                    "there are more than {PARTS} names and operators up to here, with those that names of config.toml stand for"
                ),
            });
        }
        let inner = |operator: &str| format!("{path}.{operator}.of");
        Ok(match expression {
            Expression::Named(name) => return self.named(name, path),
            Expression::Merge(all) => {
                let each = all.iter().enumerate();
                let parts = each.map(|(at, one)| self.of(one, &format!("{path}.merge[{at}]")));
                Arc::new(Merge::new(parts.collect::<Result<_, _>>()?))
            }
            Expression::Restrict { of, names } => {
                let names = names.iter().cloned().collect();
                Arc::new(Restrict::new(self.of(of, &inner("restrict"))?, &names))
            }
            Expression::Search { of, limit } => {
                let key = format!("presentation::search {}", of.to_value());
                let cell = self.means.toolbox.derived(&key, OnceLock::new);
                Arc::new(Search::new(self.of(of, &inner("search"))?, *limit, cell))
            }
            Expression::Code {
                of,
                limits,
                approval,
            } => {
                let here = format!("{path}.code");
                let rules = Rules::of(limits, *approval, self.means.settings.code, &here)?;
                let of = self.of(of, &inner("code"))?;
                let key = expression.to_value();
                let toolbox = &self.means.toolbox;
                let face = toolbox.derived(&format!("presentation::code {key}"), OnceLock::new);
                let cell =
                    || toolbox.derived(&format!("presentation::search {key}"), OnceLock::new);
                let search =
                    |of| Arc::new(Search::in_programs(of, USUAL_HITS, cell())) as Arc<dyn Toolkit>;
                Arc::new(CodeMode::new(of, rules, &face, search))
            }
        })
    }

    fn named(&mut self, name: &'a str, path: &str) -> Result<Arc<dyn Toolkit>, BadExpression> {
        if let Some((name, expression)) = self.means.settings.named.get_key_value(name)
            && !self.within.contains(&name.as_str())
        {
            self.within.push(name);
            let made = self.of(expression, path);
            self.within.pop();
            return made;
        }
        if name == DEFAULT {
            return Ok(Arc::clone(&self.means.toolbox) as Arc<dyn Toolkit>);
        }
        if let Some(source) = Source::of(&self.means.toolbox, name) {
            return Ok(Arc::new(source));
        }
        if self.within.contains(&name) {
            let way = self.within.join(" -> ");
            return Err(BadExpression {
                path: path.to_owned(),
                why: format!(
                    "the toolbox {name:?} of config.toml leads to itself: {way} -> {name}"
                ),
            });
        }
        let known = names(self.means).join(", ");
        let bad = BadExpression {
            path: path.to_owned(),
            why: format!("no toolbox is named {name:?}; there are {known}"),
        };
        match &mut self.missing {
            Missing::Refused => Err(bad),
            Missing::Empty(missing) => {
                missing.push(bad);
                Ok(nothing())
            }
        }
    }
}

/// All names that there are, those of the settings first.
pub fn names(means: &Means) -> Vec<String> {
    let mut names: Vec<String> = means.settings.named.keys().cloned().collect();
    let sources = means.toolbox.sources();
    let others = std::iter::once(DEFAULT.to_owned()).chain(sources);
    let new: Vec<String> = others.filter(|name| !names.contains(name)).collect();
    names.extend(new);
    names
}
