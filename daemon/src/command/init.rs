//! `/init`: a turn in which the model writes the directory's `AGENTS.md`.

use super::registry::{Command, Invocation, Ran};
use crate::session::Prompt;

const ASK: &str = "Look through this directory and write AGENTS.md in it, for agents that will work here and have not \
                   seen it before: how to build, test and lint it, with the commands to type; how it is laid out, where \
                   that is not plain to see; and the conventions that its code keeps to. Only what you have found here, \
                   in at most 60 lines. When there is an AGENTS.md already, better it and keep what people wrote.";

pub(super) fn command() -> Command {
    Command::new(
        "init",
        "let the model write this directory's AGENTS.md",
        run,
    )
}

/// The turn is everybody's to see, and is not waited for.
async fn run(invocation: Invocation) -> Ran {
    let prompt = Prompt {
        text: ASK.to_owned(),
        client: Some("/init".to_owned()),
        ..Prompt::default()
    };
    invocation
        .sessions
        .start(&invocation.session, prompt)
        .await?;
    Ok(String::new())
}
