//! A JSON Schema that a reply must fit: what the model is told of it, and whether a reply does, which the daemon judges. Must
//! never let through what does not validate.

use crate::error::Failure;
use crate::link::Link;
use protocol::error::ErrorKind;
use protocol::validation::ValidationRpcClient;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How many faults the model is told at once.
const FAULTS: usize = 5;

/// A schema and how it stands in its file.
#[derive(Debug)]
pub(super) struct Schema {
    path: PathBuf,
    schema: Value,
    text: String,
}

impl Schema {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| unusable(path, &error))?;
        let schema = serde_json::from_str(&text).map_err(|error| unusable(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            schema,
            text,
        })
    }

    /// Finds a schema that is none before any model is asked.
    pub(super) async fn settle(&self, link: &Link) -> Result<(), Failure> {
        self.judge(link, Vec::new()).await.map(drop)
    }

    async fn judge(&self, link: &Link, values: Vec<Value>) -> Result<Vec<Vec<String>>, Failure> {
        let judged = link
            .call(async |client| {
                ValidationRpcClient::check(client, self.schema.clone(), Some(values.clone())).await
            })
            .await;
        judged.map(|judged| judged.faults).map_err(|failure| {
            match failure.kind == Some(ErrorKind::InvalidParams) {
                true => unusable(&self.path, &failure.message.trim_start_matches(REFUSED)),
                false => failure,
            }
        })
    }

    /// What is asked, and in which form the answer is wanted.
    pub(super) fn prompt(&self, text: &str) -> String {
        format!(
            "{text}\n\nAnswer with one JSON value that this JSON Schema accepts, and with nothing else:\n\n{}",
            self.text.trim_end()
        )
    }

    /// The next prompt after a reply that did not fit.
    pub(super) fn again(faults: &str) -> String {
        format!(
            "That answer does not fit the schema: {faults}\n\nAnswer again, with the corrected JSON value and nothing else."
        )
    }

    /// The value that a reply is, or what is wrong with it.
    pub(super) async fn check(
        &self,
        link: &Link,
        reply: &str,
    ) -> Result<Result<Value, String>, Failure> {
        let value: Value = match serde_json::from_str(unfenced(reply)) {
            Ok(value) => value,
            Err(error) => return Ok(Err(format!("it is no JSON: {error}"))),
        };
        let mut faults = self.judge(link, vec![value.clone()]).await?.concat();
        faults.truncate(FAULTS);
        Ok(match faults.is_empty() {
            true => Ok(value),
            false => Err(faults.join("; ")),
        })
    }
}

/// How the daemon begins what it says of a schema.
const REFUSED: &str = "cannot use the schema: ";

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot use the schema {}: {why}", path.display()))
}

/// A reply without the fence that models put around JSON, and without the words around a fence that is the only one.
fn unfenced(reply: &str) -> &str {
    let reply = reply.trim();
    let fences: Vec<usize> = lines_at(reply)
        .filter(|(_, line)| line.trim_start().starts_with("```"))
        .map(|(at, _)| at)
        .collect();
    let [open, close] = fences[..] else {
        return reply;
    };
    reply[open..close]
        .split_once('\n')
        .map_or(reply, |(_, body)| body.trim())
}

/// Lines, and where they begin.
fn lines_at(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let begins = at;
        at += line.len();
        (begins, line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_stands_bare_or_in_the_only_fence() {
        for reply in [
            "{\"n\": 1}",
            "```json\n{\"n\": 1}\n```\n",
            "Here it is:\n\n```\n{\"n\": 1}\n```\nAnything else?",
        ] {
            assert_eq!(unfenced(reply), "{\"n\": 1}", "{reply}");
        }
        assert_eq!(unfenced("\"a ``` b\""), "\"a ``` b\"");
        let two = "```\n{\"n\": 1}\n```\nor\n```\n{\"n\": 2}\n```";
        assert_eq!(unfenced(two), two, "which of them is not known");
    }
}
