//! How tools are shown when nobody names an expression: as they are, or past a number of them behind search.
//! Must never put a built-in tool out of a model's sight.

use super::search::Search;
use super::{Means, Toolkit, merge, restrict};
use crate::toolbox::Toolbox;
use protocol::expression::USUAL_HITS;
use serde::Deserialize;
use std::sync::{Arc, OnceLock};

/// The source whose tools stay in sight.
const PINNED: &str = "builtin";
/// Above how many tools, or characters of their definitions, a model finds what it needs sooner than it reads all.
const TOOLS: usize = 30;
const CHARACTERS: usize = 40_000;

/// `[presentation]` of `config.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub search: When,
    /// Above how many tools search is chosen.
    pub past_tools: usize,
    /// Above how many characters of definitions search is chosen.
    pub past_characters: usize,
}

/// Whether search is chosen by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Past the limits.
    #[default]
    Auto,
    /// Only where an expression says so.
    Never,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            search: When::Auto,
            past_tools: TOOLS,
            past_characters: CHARACTERS,
        }
    }
}

/// The whole toolbox, or its built-in tools beside a search of all.
pub fn usual(means: &Means) -> Arc<dyn Toolkit> {
    let settings = &means.settings.usual;
    let all = Arc::clone(&means.toolbox) as Arc<dyn Toolkit>;
    if settings.search == When::Never || !is_much(&means.toolbox, settings) {
        return all;
    }
    let tools = means.toolbox.tools().iter();
    let pinned = tools.filter(|tool| tool.origin() == PINNED);
    let pinned = pinned.map(|tool| tool.name().to_owned()).collect();
    let cell = means.toolbox.derived("presentation::usual", OnceLock::new);
    let search = Search::new(Arc::clone(&all), USUAL_HITS, cell);
    merge(restrict(all, &pinned), Arc::new(search))
}

fn is_much(toolbox: &Toolbox, settings: &Settings) -> bool {
    if toolbox.tools().iter().all(|tool| tool.origin() == PINNED) {
        return false;
    }
    toolbox.tools().len() > settings.past_tools
        || *toolbox.derived("presentation::characters", || characters(toolbox))
            > settings.past_characters
}

/// What all definitions come to, as they are sent.
fn characters(toolbox: &Toolbox) -> usize {
    let definitions = toolbox.definitions();
    let text = serde_json::to_string(&*definitions).unwrap_or_default();
    text.chars().count()
}
