//! OpenAI's Responses: reasoning shown by its summaries, and kept encrypted for the tool rounds of a turn.
//! Nothing is stored at the vendor's.

mod answer;
mod request;

use super::settings::Thinking;
use super::stream::{Answer, Peer};
use super::vendor::{Call, Dialect, Post};
use protocol::provider::ModelInfo;

/// Begins of names of models that reason; others refuse to be asked.
const REASONS: &[&str] = &["gpt-5", "gpt-6", "gpt-oss", "o1", "o3", "o4", "codex"];
/// Those that begin so and do not reason.
const PLAIN: &[&str] = &["gpt-5-chat", "gpt-5.1-chat", "gpt-5.2-chat", "gpt-5.3-chat"];

pub(super) struct Responses {
    pub(super) thinking: Option<Thinking>,
}

impl Responses {
    fn reasons(&self, model: &str) -> bool {
        let name = model.rsplit('/').next().unwrap_or(model);
        let begins = |list: &[&str]| list.iter().any(|begin| name.starts_with(begin));
        match self.thinking {
            Some(Thinking::Asked(set)) => set,
            Some(Thinking::Budget(_)) | None => begins(REASONS) && !begins(PLAIN),
        }
    }
}

impl Dialect for Responses {
    fn post(&self, call: &Call<'_>) -> Result<Post, String> {
        Ok(Post {
            path: vec!["responses".to_owned()],
            body: request::body(call, self.reasons(call.model))?,
        })
    }

    fn answer<'a>(&'a self, peer: &'a Peer) -> Box<dyn Answer + 'a> {
        Box::new(answer::Response::new(peer))
    }

    fn read_models(&self, body: &[u8]) -> Option<Vec<ModelInfo>> {
        super::openai::models(body)
    }
}
