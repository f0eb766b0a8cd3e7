//! The tools that come with the daemon, one a file, one line each in the table.
//! Must never reach a session, a provider or the store: a handler has its `Call` and nothing else.

mod arguments;
pub mod capture;
mod change;
mod edit;
pub(super) mod environment;
pub(super) mod execute;
pub mod fetch;
mod file;
mod git;
mod glob;
mod grep;
mod list;
mod read;
pub mod readable;
mod task;
#[cfg(test)]
pub(super) mod testing;
mod todo;
mod walk;
mod write;

use super::Toolbox;
use super::tool::Tool;

/// In the order in which models see them.
const TOOLS: &[fn() -> Tool] = &[
    execute::tool,
    read::tool,
    write::tool,
    edit::tool,
    list::tool,
    glob::tool,
    grep::tool,
    git::tool,
    fetch::tool,
    task::tool,
    todo::tool,
];

/// Adds them all.
pub fn register(toolbox: &mut Toolbox) {
    for tool in TOOLS {
        toolbox.add(tool());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_taken_and_described() {
        let mut toolbox = Toolbox::new();
        register(&mut toolbox);
        assert_eq!(toolbox.problems(), &[] as &[String]);
        assert_eq!(toolbox.tools().len(), TOOLS.len());
        for tool in toolbox.tools() {
            assert!(tool.description().len() > 20, "{}", tool.name());
            for (name, schema) in tool.parameters() {
                assert!(schema["description"].is_string(), "{} {name}", tool.name());
            }
        }
    }
}
