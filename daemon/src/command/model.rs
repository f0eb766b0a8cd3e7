//! `/model [NAME]`: the models of the session's provider, or a switch to one.

use super::registry::{Candidates, Command, Invocation, Ran};
use super::table::table;
use protocol::provider::ModelInfo;
use std::time::Duration;

/// How long a completion may wait for a provider's server.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn command() -> Command {
    let about = "list the models of this session's provider, or switch to one";
    Command::new("model", about, run).completing(Candidates::asked(names))
}

async fn run(invocation: Invocation) -> Ran {
    let sessions = &invocation.sessions;
    let session = sessions.get(&invocation.session).await?;
    match invocation.argument() {
        None => {
            let models = sessions.models_of(&session).await?;
            Ok(all(&models, &session.provider, session.model.as_deref()))
        }
        Some(name) => {
            let model = Some(name.to_owned());
            sessions
                .switch_provider(&session.id, &session.provider, model)
                .await?;
            Ok(String::new())
        }
    }
}

async fn names(invocation: Invocation) -> Vec<String> {
    let sessions = &invocation.sessions;
    let ask = async {
        let session = sessions.get(&invocation.session).await?;
        sessions.models_of(&session).await
    };
    let answer = tokio::time::timeout(PATIENCE, ask).await;
    let models = answer.ok().and_then(Result::ok).unwrap_or_default();
    models.into_iter().map(|model| model.name).collect()
}

fn all(models: &[ModelInfo], provider: &str, current: Option<&str>) -> String {
    let listed = models
        .iter()
        .any(|model| Some(model.name.as_str()) == current);
    let unlisted = current
        .filter(|_| !listed)
        .map(|name| row(name, None, current));
    let rows = models
        .iter()
        .map(|model| row(&model.name, model.window, current));
    let rows: Vec<_> = unlisted.into_iter().chain(rows).collect();
    if rows.is_empty() {
        return format!("{provider} has no models to choose from");
    }
    table(&rows)
}

fn row(name: &str, window: Option<u64>, current: Option<&str>) -> [String; 2] {
    let mark = if Some(name) == current { "*" } else { " " };
    let window = window.map(|tokens| format!("{tokens} tokens"));
    [format!("{mark} {name}"), window.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_model_is_marked_and_shown_even_if_the_server_does_not_list_it() {
        let model = |name: &str| ModelInfo {
            name: name.to_owned(),
            window: Some(9),
            size: None,
        };
        let models = [model("a"), model("b")];
        assert_eq!(all(&models, "x", Some("b")), "  a  9 tokens\n* b  9 tokens");
        assert_eq!(all(&models[..1], "x", Some("c")), "* c\n  a  9 tokens");
        assert_eq!(all(&[], "stub", None), "stub has no models to choose from");
    }
}
