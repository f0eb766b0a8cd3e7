//! `dwell tools`: what the model of a session is shown, and what a person does about scripts that are tools.

mod check;
mod create;

use crate::error::{Exit, Failure};
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use crate::render::first_line;
use crate::toolbox::Toolbox;
use protocol::tool::{Policy, ToolInfo, ToolRpcClient};
use serde_json::Value;

/// The toolbox of everything, each tool by itself.
const ALL: &str = "default";

#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,

    /// Whose [default: this directory's newest session, or one that is made for this]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,

    #[command(flatten)]
    toolbox: Toolbox,

    /// One JSON object a line
    #[arg(long)]
    json: bool,

    /// All about this one
    name: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Write a script to begin a tool with
    Create(create::Args),
    /// Name what is wrong with this directory's scripts and with what they need
    Check(check::Args),
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    match args.action {
        Some(Action::Create(args)) => return create::run(&args, place).await,
        Some(Action::Check(args)) => return check::run(args, place).await,
        None => {}
    }
    let link = super::link(place).await?;
    let session = super::run::session_for(&link, args.session.as_deref()).await?;
    let list = link
        .call(async |client| {
            ToolRpcClient::list(client, session.clone(), args.toolbox.value()).await
        })
        .await?;
    let matches = |tool: &&ToolInfo| args.name.as_ref().is_none_or(|name| is_called(tool, name));
    let mut shown: Vec<&ToolInfo> = list.tools.iter().filter(matches).collect();
    // Who names one wants to read of it, however a model comes to it.
    let behind = match (&args.name, shown.is_empty() && list.reached > 0) {
        (Some(_), true) => {
            let all = Some(Value::from(ALL));
            let list = link
                .call(async |client| {
                    ToolRpcClient::list(client, session.clone(), all.clone()).await
                })
                .await?;
            list.tools
        }
        _ => Vec::new(),
    };
    let is_behind = shown.is_empty();
    shown.extend(behind.iter().filter(matches));
    if is_behind && !shown.is_empty() {
        out::note(
            "a model is not shown this one: it finds and calls it through tools that it is shown",
        )?;
    }
    if let (Some(name), true) = (&args.name, shown.is_empty()) {
        let names: Vec<&str> = list.tools.iter().map(name_of).collect();
        return Err(Failure::new(format!("no tool is called \"{name}\""))
            .hint(format!("there are {}", names.join(", ")))
            .exit(Exit::NotFound));
    }
    let paint = Paint::of(&std::io::stdout());
    for tool in shown {
        match (args.json, &args.name) {
            (true, _) => out::json(tool)?,
            (false, None) => out::line(&line(paint, tool))?,
            (false, Some(_)) => out::line(&page(paint, tool))?,
        }
    }
    if list.reached > 0 && args.name.is_none() {
        out::note(&format!(
            "{} more are found and called through these: dwell tools --toolbox default",
            list.reached
        ))?;
    }
    for name in &list.unknown_names {
        out::note(&format!("warning: no tool is named \"{name}\""))?;
    }
    list.problems
        .iter()
        .try_for_each(|problem| out::note(&format!("warning: {problem}")))
}

fn name_of(tool: &ToolInfo) -> &str {
    &tool.definition.function.name
}

fn is_called(tool: &ToolInfo, name: &str) -> bool {
    name_of(tool) == name || tool.aliases.iter().any(|alias| alias == name)
}

fn policy(tool: &ToolInfo) -> &'static str {
    match tool.approval {
        Policy::Allow => "allow",
        Policy::Ask => "ask",
        Policy::Deny => "deny",
    }
}

fn line(paint: Paint, tool: &ToolInfo) -> String {
    let name = format!("{:12}", name_of(tool));
    let about = first_line(&tool.definition.function.description);
    let source = match tool.source.as_str() {
        "builtin" => String::new(),
        other => paint.dress(Part::Quiet, &format!("  ({other})")),
    };
    format!(
        "{}  {:5}  {about}{source}",
        paint.dress(Part::Tool, &name),
        policy(tool)
    )
}

fn page(paint: Paint, tool: &ToolInfo) -> String {
    let function = &tool.definition.function;
    let parameters = serde_json::to_string_pretty(&function.parameters).unwrap_or_default();
    let mut out = format!(
        "{}\n{}\n",
        paint.dress(Part::Tool, &function.name),
        function.description
    );
    if !tool.aliases.is_empty() {
        out.push_str(&format!("aliases: {}\n", tool.aliases.join(", ")));
    }
    out.push_str(&format!(
        "source: {}\napproval: {}\n{parameters}",
        tool.source,
        policy(tool)
    ));
    out
}
