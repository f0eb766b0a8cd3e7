//! What an expression stands for: toolboxes by name, and the one table of operators.
//! Must never give a toolkit for something that it does not know: the complaint has the path of the field.

use super::Toolkit;
use super::merge::Merge;
use super::restrict::Restrict;
use super::source::Source;
use crate::toolbox::Toolbox;
use protocol::expression::{BadExpression, Expression};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of all that a workspace has.
pub const DEFAULT: &str = "default";

/// What names stand for.
#[derive(Clone)]
pub struct Means {
    /// All that the workspace has.
    pub toolbox: Arc<Toolbox>,
    /// Names of the settings, which go before those of sources.
    pub named: Arc<BTreeMap<String, Expression>>,
}

/// The toolkit that an expression in the field `path` stands for.
pub fn toolkit(
    expression: &Expression,
    path: &str,
    means: &Means,
) -> Result<Arc<dyn Toolkit>, BadExpression> {
    Build {
        means,
        within: Vec::new(),
    }
    .of(expression, path)
}

struct Build<'a> {
    means: &'a Means,
    /// Names of the settings whose expressions are being read.
    within: Vec<&'a str>,
}

impl<'a> Build<'a> {
    fn of(
        &mut self,
        expression: &'a Expression,
        path: &str,
    ) -> Result<Arc<dyn Toolkit>, BadExpression> {
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
            Expression::Search { .. } => return absent(path, "search"),
            Expression::Code { .. } => return absent(path, "code"),
        })
    }

    fn named(&mut self, name: &'a str, path: &str) -> Result<Arc<dyn Toolkit>, BadExpression> {
        let bad = |why: String| {
            let path = path.to_owned();
            Err(BadExpression { path, why })
        };
        if let Some((name, expression)) = self.means.named.get_key_value(name)
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
        match Source::of(&self.means.toolbox, name) {
            Some(source) => Ok(Arc::new(source)),
            None => bad(format!(
                "no toolbox is named {name:?}; there are {}",
                names(self.means).join(", ")
            )),
        }
    }
}

fn absent(path: &str, operator: &str) -> Result<Arc<dyn Toolkit>, BadExpression> {
    Err(BadExpression {
        path: format!("{path}.{operator}"),
        why: "is not in this build".to_owned(),
    })
}

/// All names that there are, those of the settings first.
pub fn names(means: &Means) -> Vec<String> {
    let mut names: Vec<String> = means.named.keys().cloned().collect();
    let sources = means.toolbox.sources();
    let others = std::iter::once(DEFAULT.to_owned()).chain(sources);
    let new: Vec<String> = others.filter(|name| !names.contains(name)).collect();
    names.extend(new);
    names
}
