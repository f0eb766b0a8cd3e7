//! The providers with local models: served by the executable `dwell-local`, so that neither a crash of an engine nor its
//! memory touches the daemon. Must never load a model.

use super::plugin::Executable;
use super::preset::is_key_variable;
use super::registry::{Builtin, Make, ProviderConfig, lookup};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The executable's name; it stands beside the daemon's.
const NAME: &str = "dwell-local";
/// The one that takes a pulled model.
pub(super) const DEFAULT: &str = "candle";
/// Names another one.
const VARIABLE: &str = "DWELL_LOCAL";

pub(super) const fn builtin(name: &'static str) -> Builtin {
    Builtin {
        name,
        make: Make::Local,
        has_settings: false,
        default_model: |_| None,
    }
}

/// Where it is, or would be. It needs no vendor's key, so it gets none.
pub(super) fn executable(config: &ProviderConfig) -> Executable {
    let named = lookup(&config.env, VARIABLE).map(PathBuf::from);
    let path = named.or_else(|| config.local.clone());
    let env: BTreeMap<String, String> = config
        .child_env
        .iter()
        .filter(|(name, _)| !is_key_variable(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Executable {
        name: NAME.to_owned(),
        path: path.unwrap_or_else(|| NAME.into()),
        env: Arc::new(env),
        hint: "it belongs beside dwelld; DWELL_LOCAL names another place",
    }
}
