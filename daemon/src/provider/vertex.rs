//! Anthropic's models in Google's cloud: the same Messages, another address, and a token in place of a key.

mod credentials;
mod jwt;
mod token;

use super::anthropic::{Host, Messages, window};
use super::failure::Hints;
use super::registry::{Build, Builtin, Make, ProviderConfig, lookup};
use super::stream::Peer;
use super::vendor::{Auth, Vendor, base_url};
use super::{BoxFuture, Provider, preset};
use std::sync::Arc;
use token::Tokens;

const NAME: &str = "vertex";
/// Variables with the project, and with the region, the first first.
const PROJECT: &[&str] = &["ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"];
const REGION: &[&str] = &["CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"];
const MODEL: &str = "VERTEX_MODEL";
/// In place of Google's own address.
const BASE: &str = "VERTEX_BASE_URL";
/// Where no region is set.
const EVERYWHERE: &str = "global";

pub(super) const BUILTIN: Builtin = Builtin {
    name: NAME,
    make: Make::Later(|build| Box::pin(make(build)) as BoxFuture<'static, _>),
    has_settings: true,
    default_model: |config| Some(model_of(config)),
};

fn model_of(config: &ProviderConfig) -> String {
    let set = lookup(&config.env, MODEL);
    let set = set.or_else(|| config.settings.of(NAME).model);
    set.unwrap_or_else(|| preset::model_of("anthropic").to_owned())
}

async fn make(build: Build) -> Result<Arc<dyn Provider>, String> {
    let named = build.settings.of(NAME);
    let first = |names: &[&str]| names.iter().find_map(|name| build.variable(name));
    let credentials = credentials::find(&build)?;
    let project = first(PROJECT)
        .or_else(|| named.project.clone())
        .or_else(|| credentials.project());
    let project =
        project.ok_or_else(|| format!("{NAME} has no project: set {}", PROJECT.join(" or ")))?;
    let region = first(REGION).or_else(|| named.region.clone());
    let region = region.unwrap_or_else(|| EVERYWHERE.to_owned());
    let base = build.variable(BASE).or_else(|| named.base_url.clone());
    let base = base.unwrap_or_else(|| address(&region));
    let mut base = base_url(BASE, &base)?;
    if let Ok(mut path) = base.path_segments_mut() {
        path.pop_if_empty();
        path.extend(["projects", &project, "locations", &region]);
        path.extend(["publishers", "anthropic"]);
    }
    let model = build.model.clone().or_else(|| build.variable(MODEL));
    let model = model.or_else(|| named.model.clone());
    let model = model.unwrap_or_else(|| preset::model_of("anthropic").to_owned());
    let dialect = Messages {
        host: Host::Vertex,
        ..Messages::new(&named)
    };
    Ok(Arc::new(Vendor {
        name: NAME.to_owned(),
        http: build.http.clone(),
        peer: Peer::new(&base, build.idle_timeout()),
        base,
        auth: Auth::Token(Arc::new(Tokens::new(credentials, build.http.clone()))),
        hints: Hints {
            key: "the account's rights and its quota project".to_owned(),
            base: "the project and the region".to_owned(),
        },
        window: named.window.or_else(|| window(&model)),
        set_window: named.window,
        model,
        dialect: Box::new(dialect),
    }))
}

fn address(region: &str) -> String {
    match region {
        EVERYWHERE => "https://aiplatform.googleapis.com/v1".to_owned(),
        region => format!("https://{region}-aiplatform.googleapis.com/v1"),
    }
}

#[cfg(test)]
mod tests;
