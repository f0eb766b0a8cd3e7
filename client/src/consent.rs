//! What a person allowed before anything was asked. Must never grow by itself.

/// The options that say it.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Consent {
    /// Allow this tool when it needs an approval; may be given again
    #[arg(long, value_name = "TOOL")]
    allow: Vec<String>,

    /// Allow whatever needs an approval
    #[arg(short, long)]
    yes: bool,
}

impl Consent {
    /// Whether calls of this tool are allowed.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        self.yes || self.allow.iter().any(|one| one == tool)
    }
}
