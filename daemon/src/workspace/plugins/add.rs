//! A plugin's tools and hooks as a toolbox has them. Must never run either but when the gate asks.

use super::ask::Silence;
use super::plugin::Plugin;
use crate::stdio_rpc::raw;
use crate::toolbox::Toolbox;
use crate::toolbox::builtin::capture::bounded;
use crate::toolbox::hook::{Hook, HookCall};
use crate::toolbox::tool::{Call, Outcome, Tool};
use protocol::plugin::{Hook as HookInfo, HookParams, HookPoint, ToolParams};
use protocol::tool::ProvidedTool;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Adds all that the plugin has said.
pub(super) fn to(toolbox: &mut Toolbox, plugin: &Arc<Plugin>) {
    let setup = plugin.setup();
    toolbox.note_source(&plugin.source());
    if let Some(why) = plugin.unguarded() {
        toolbox.before(None, refusal(plugin, why));
    }
    for provided in &setup.tools {
        toolbox.add(tool(plugin, provided));
    }
    for info in &setup.hooks {
        let hook = hook(plugin, info);
        match info.point {
            HookPoint::Before => toolbox.before(info.tool.as_deref(), hook),
            HookPoint::After => toolbox.after(info.tool.as_deref(), hook),
        }
    }
    for problem in plugin.problem().into_iter().chain(plugin.faults()) {
        toolbox.problem(problem);
    }
}

/// Nobody knows what the plugin would have let pass.
fn refusal(plugin: &Plugin, why: String) -> Hook {
    let file = plugin.found.path.display();
    let error = format!(
        "{why}; it may guard calls, so none runs until it works: mend {file} and /reload, take it away, put `_` before its \
         name, or set on_failure = \"ignore\" in [plugin] of config.toml"
    );
    Hook::sync(&plugin.name, move |_: &HookCall| Err(error.clone()))
}

fn tool(plugin: &Arc<Plugin>, provided: &ProvidedTool) -> Tool {
    let (of, name) = (Arc::clone(plugin), provided.name.clone());
    let handler = move |call: Call, arguments: Map<String, Value>| {
        run(Arc::clone(&of), name.clone(), call, arguments)
    };
    Tool::provided(provided)
        .source(&plugin.source())
        .handler(handler)
}

/// A tool may take as long as it likes: whoever waits for it can cancel.
async fn run(
    plugin: Arc<Plugin>,
    name: String,
    call: Call,
    arguments: Map<String, Value>,
) -> Outcome {
    let params = raw(&ToolParams {
        session: call.session.clone(),
        call: call.call.clone(),
        name: name.clone(),
        arguments,
    });
    let origin = call.clone();
    let _working = plugin.calls.work_on(call);
    let result = plugin.ask("plugin/tool", &params).await?;
    let object = serde_json::from_str(result.get()).map_err(|error| {
        format!(
            "the plugin {} gave no object for {name}: {error}",
            plugin.name
        )
    })?;
    Ok(bounded(&origin, object).await)
}

fn hook(plugin: &Arc<Plugin>, info: &HookInfo) -> Hook {
    let name = format!("{}: {}", plugin.name, info.id);
    let (plugin, id, point) = (Arc::clone(plugin), info.id.clone(), info.point);
    Hook::new(&name, move |call: HookCall| {
        let params = raw(&HookParams {
            session: call.session,
            call: Some(call.call),
            id: id.clone(),
            point,
            tool: call.tool,
            arguments: Arc::unwrap_or_clone(call.arguments),
            result: call.result.map(Arc::unwrap_or_clone),
        });
        let plugin = Arc::clone(&plugin);
        let working = plugin.calls.work_on(call.from);
        async move {
            let _working = working;
            let limit = plugin.means.hook();
            let passed = plugin
                .ask_within(limit, Silence::Kills, "plugin/hook", &params)
                .await;
            passed.map(drop)
        }
    })
}
