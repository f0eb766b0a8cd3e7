//! `/provider [NAME]`: the providers there are, or a switch of the running session to one.

use super::registry::{Candidates, Command, Invocation, Ran};
use super::table::table;
use protocol::provider::ProviderInfo;

pub(super) fn command() -> Command {
    let about = "list the providers, or switch this session to one";
    Command::new("provider", about, run).completing(Candidates::asked(names))
}

/// A switch takes the new provider's default model; everybody sees it as an event.
async fn run(invocation: Invocation) -> Ran {
    let (sessions, session) = (&invocation.sessions, &invocation.session);
    match invocation.argument() {
        None => {
            let current = sessions.get(session).await?.provider;
            Ok(all(&sessions.providers_of(session).await?, &current))
        }
        Some(name) => {
            sessions.switch_provider(session, name, None).await?;
            Ok(String::new())
        }
    }
}

async fn names(invocation: Invocation) -> Vec<String> {
    let providers = invocation.sessions.providers_of(&invocation.session).await;
    providers
        .unwrap_or_default()
        .into_iter()
        .map(|one| one.name)
        .collect()
}

fn all(providers: &[ProviderInfo], current: &str) -> String {
    let rows = providers.iter().map(|one| {
        let mark = if one.name == current { "*" } else { " " };
        let name = format!("{mark} {}", one.name);
        [
            name,
            one.source.clone(),
            one.default_model.clone().unwrap_or_default(),
        ]
    });
    table(&rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_provider_is_marked() {
        let info = |name: &str, model: Option<&str>| ProviderInfo {
            name: name.to_owned(),
            source: "builtin".to_owned(),
            default_model: model.map(str::to_owned),
        };
        let text = all(&[info("stub", None), info("openai", Some("m"))], "openai");
        assert_eq!(text, "  stub    builtin\n* openai  builtin  m");
    }
}
