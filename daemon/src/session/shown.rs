//! A session's tools as its model has them, as people see them, and as they are run by hand.
//! Must never decide what a tool may do.

use super::actor::Shared;
use super::{SessionError, SessionResult};
use crate::presentation::{
    FIELD, Means, SOURCE, Toolkit, merge, reached, toolkit, toolkit_there_is,
};
use crate::toolbox::Toolbox;
use crate::toolbox::permission::Permissions;
use protocol::expression::Expression;
use protocol::tool::{Policy, SourceInfo, ToolInfo, ToolList, ToolboxInfo};
use std::sync::Arc;

impl Shared {
    /// These tools as the model has them, and what is missing of what the session was made with.
    pub fn present(&self, toolbox: Arc<Toolbox>) -> (Arc<dyn Toolkit>, Vec<String>) {
        let (toolkit, missing) = toolkit_there_is(self.toolbox.as_ref(), &self.means(toolbox));
        let missing = missing.iter().map(ToString::to_string);
        (toolkit, missing.collect())
    }

    /// What the model is shown, or would be shown with this expression.
    pub async fn describe(
        &self,
        expression: Option<&Expression>,
        permissions: &Permissions,
    ) -> SessionResult<ToolList> {
        let toolbox = self.tools().await;
        let mut list = ToolList {
            tools: Vec::new(),
            ..toolbox.list(permissions)
        };
        let toolkit = match expression {
            Some(_) => toolkit(expression, FIELD, &self.means(toolbox))?,
            None => {
                let (toolkit, missing) = self.present(toolbox);
                list.problems.extend(missing);
                toolkit
            }
        };
        list.tools = shown(&*toolkit, permissions);
        list.shadowed = toolkit.shadowed();
        list.unknown_names = toolkit.unknown_names();
        list.reached = toolkit.reached();
        Ok(list)
    }

    /// All that the model has or reaches.
    pub async fn describe_all(&self, permissions: &Permissions) -> ToolList {
        let toolbox = self.tools().await;
        let list = toolbox.list(permissions);
        let toolkit = reached(self.toolbox.as_ref(), &self.means(toolbox));
        ToolList {
            tools: shown(&*toolkit, permissions),
            shadowed: toolkit.shadowed(),
            ..list
        }
    }

    /// What can be run by hand: with an expression exactly what it stands for, else all that the model has or reaches.
    pub async fn by_hand(
        &self,
        expression: Option<&Expression>,
    ) -> Result<Arc<dyn Toolkit>, SessionError> {
        let means = self.means(self.tools().await);
        if expression.is_some() {
            return Ok(toolkit(expression, FIELD, &means)?);
        }
        let direct = reached(self.toolbox.as_ref(), &means);
        let (presented, _) = toolkit_there_is(self.toolbox.as_ref(), &means);
        Ok(match presented.reached() {
            0 => presented,
            _ => merge(direct, presented),
        })
    }

    fn means(&self, toolbox: Arc<Toolbox>) -> Means {
        Means {
            toolbox,
            settings: Arc::clone(&self.services.shown),
        }
    }
}

fn shown(toolkit: &dyn Toolkit, permissions: &Permissions) -> Vec<ToolInfo> {
    let aliases_of = |name: &str| {
        let aliases = toolkit.aliases().iter();
        let of = aliases.filter(|(_, real)| real == name);
        of.map(|(alias, _)| alias.clone()).collect()
    };
    let definitions = toolkit.definitions();
    let each = toolkit.tools().iter().zip(definitions.iter());
    each.map(|(tool, definition)| ToolInfo {
        definition: definition.clone(),
        aliases: aliases_of(tool.name()),
        source: tool.origin().to_owned(),
        // They only hand on.
        approval: match tool.origin() {
            SOURCE => Policy::Allow,
            _ => permissions.shown(tool),
        },
    })
    .collect()
}

/// The toolboxes of a directory that have a name: the whole one, those of the settings, and each source.
pub(super) fn named(whole: ToolboxInfo, means: &Means) -> Vec<ToolboxInfo> {
    let of_settings = means.settings.named.iter().map(|(name, expression)| {
        let named = Expression::Named(name.clone());
        let (toolkit, missing) = toolkit_there_is(Some(&named), means);
        ToolboxInfo {
            name: name.clone(),
            cwd: whole.cwd.clone(),
            sources: sources(&*toolkit),
            expression: Some(expression.clone()),
            problem: missing.first().map(ToString::to_string),
        }
    });
    let is_named = |source: &&SourceInfo| !means.settings.named.contains_key(&source.name);
    let of_sources = whole
        .sources
        .iter()
        .filter(is_named)
        .map(|source| ToolboxInfo {
            name: source.name.clone(),
            cwd: whole.cwd.clone(),
            sources: vec![source.clone()],
            expression: None,
            problem: None,
        });
    // What else can be named: a folder of scripts, a source whose tools all have another's in their place.
    let more = means.toolbox.sources().into_iter();
    let more = more.filter(|name| whole.sources.iter().all(|source| source.name != *name));
    let more = more.filter(|name| !means.settings.named.contains_key(name));
    let of_parts = more.map(|name| {
        let tools = means.toolbox.of_source(&name);
        let tools = tools.iter().map(|tool| tool.name().to_owned()).collect();
        let source = SourceInfo {
            name: name.clone(),
            tools,
            health: "ready".to_owned(),
            problems: Vec::new(),
        };
        ToolboxInfo {
            name,
            cwd: whole.cwd.clone(),
            sources: vec![source],
            expression: None,
            problem: None,
        }
    });
    let others: Vec<ToolboxInfo> = of_settings.chain(of_sources).chain(of_parts).collect();
    std::iter::once(whole).chain(others).collect()
}

fn sources(toolkit: &dyn Toolkit) -> Vec<SourceInfo> {
    let mut sources: Vec<SourceInfo> = Vec::new();
    for tool in toolkit.tools() {
        let name = tool.name().to_owned();
        match sources
            .iter_mut()
            .find(|source| source.name == tool.origin())
        {
            Some(source) => source.tools.push(name),
            None => sources.push(SourceInfo {
                name: tool.origin().to_owned(),
                tools: vec![name],
                health: "ready".to_owned(),
                problems: Vec::new(),
            }),
        }
    }
    sources
}
