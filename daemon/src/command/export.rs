//! `/export [markdown|json]`: this session as a document.

use super::registry::{Candidates, Command, Failure, Invocation, Ran};
use protocol::session::ExportFormat;

pub(super) fn command() -> Command {
    Command::new("export", "print this session as Markdown or JSON", run)
        .completing(Candidates::fixed(&["markdown", "json"]))
}

async fn run(invocation: Invocation) -> Ran {
    let format = format(invocation.argument())?;
    let export = invocation
        .sessions
        .export(&invocation.session, format)
        .await?;
    Ok(export.text)
}

fn format(argument: Option<&str>) -> Result<ExportFormat, Failure> {
    match argument {
        None | Some("markdown") => Ok(ExportFormat::Markdown),
        Some("json") => Ok(ExportFormat::Json),
        Some(other) => Err(Failure(format!(
            "no export format {other:?}: markdown or json"
        ))),
    }
}
