//! `dwell model`: models that run on this machine. Must never fetch one that was not named.

use crate::error::Failure;
use crate::local::{self, progress};
use crate::out;
use crate::place::Place;
use clap::Subcommand;
use protocol::provider::{LocalModel, ModelRpcClient};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Fetch a model; what was fetched before is gone on from
    Pull {
        /// Which one: `dwell model list` shows them
        name: String,
    },
    /// List the models that are here and those that can be pulled
    #[command(visible_alias = "ls")]
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Remove models from this machine
    Rm {
        /// Which ones: `dwell model list` shows them
        #[arg(required = true)]
        names: Vec<String>,
    },
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    match args.action {
        Action::Pull { name } => {
            let model = local::pull(&link, &name).await?;
            out::line(model.path.as_deref().unwrap_or(&model.name))
        }
        Action::List { json } => {
            let models = link.call(async |client| ModelRpcClient::model_list(client).await);
            models.await?.iter().try_for_each(|model| match json {
                true => out::json(model),
                false => out::line(&shown(model)),
            })
        }
        Action::Rm { names } => {
            for name in names {
                link.call(async |client| ModelRpcClient::model_remove(client, name.clone()).await)
                    .await?;
            }
            Ok(())
        }
    }
}

fn shown(model: &LocalModel) -> String {
    let state = match (model.damaged, &model.path) {
        (true, _) => "damaged",
        (false, Some(_)) => "here",
        (false, None) => "to pull",
    };
    let size = progress::bytes(model.size);
    let licence = model.licence.as_deref().unwrap_or("-");
    let about = model.about.as_deref().unwrap_or("");
    let line = format!(
        "{:20} {state:8} {size:>7}  {licence:11} {about}",
        model.name
    );
    line.trim_end().to_owned()
}
