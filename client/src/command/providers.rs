//! `dwell providers`: the names that `-p` takes, and a provider's models.

use crate::error::Failure;
use crate::out;
use crate::place::Place;
use protocol::provider::ProviderRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// One JSON object a line
    #[arg(long)]
    json: bool,

    /// The models of this one
    name: Option<String>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let here = link.place().here()?;
    let Some(name) = args.name else {
        let all = link
            .call(async |client| ProviderRpcClient::list(client, Some(here.clone())).await)
            .await?;
        return all.iter().try_for_each(|one| {
            let model = one.default_model.as_deref().unwrap_or("");
            match args.json {
                true => out::json(one),
                false => {
                    out::line(format!("{:12}  {:10}  {model}", one.name, one.source).trim_end())
                }
            }
        });
    };
    let models = link
        .call(async |client| {
            ProviderRpcClient::models(client, name.clone(), Some(here.clone())).await
        })
        .await?;
    models.iter().try_for_each(|one| match args.json {
        true => out::json(one),
        false => out::line(&one.name),
    })
}
