//! Slash commands that a plugin has, as the registry keeps them. Must never know which there are.

use super::registry::{Candidates, Command, Failure};
use crate::workspace::plugins::Slash;
use std::sync::Arc;

pub(super) fn command(slash: Slash) -> Command {
    let (runs, completes) = (slash.clone(), slash.clone());
    Command {
        name: slash.name,
        description: slash.description,
        completions: match slash.completions {
            Some(words) => Candidates::Fixed(words),
            None => Candidates::Asked(Arc::new(move |invocation| {
                let slash = completes.clone();
                let partial = invocation.args.unwrap_or_default();
                Box::pin(async move { slash.complete(invocation.session, partial).await })
            })),
        },
        run: Arc::new(move |invocation| {
            let slash = runs.clone();
            Box::pin(async move {
                let ran = slash.run(invocation.session, invocation.args).await;
                ran.map_err(Failure)
            })
        }),
    }
}
