//! Merge and restrict: what is there, whose it is, and the laws that hold whatever the toolkits are.

use super::testing::{Scene, boxed, names, tool};
use super::{Toolkit, call, has_tool, merge, restrict};
use crate::toolbox::Toolbox;
use crate::toolbox::tool::Tool;
use proptest::prelude::*;
use protocol::tool::Shadowed;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

fn remember() -> Tool {
    tool("builtin", "remember", "Keeps a note").param("note", json!({"type": "string"}))
}

fn github() -> Arc<dyn Toolkit> {
    let create = tool("mcp github", "github__create_issue", "Create an issue");
    boxed([create, tool("mcp github", "remember", "Stars a repository")])
}

#[tokio::test]
async fn a_merge_has_the_tools_of_both_and_each_runs_as_its_source_wrote_it() {
    let merged = merge(boxed([remember()]), github());
    assert_eq!(names(&*merged), ["remember", "github__create_issue"]);
    let scene = Scene::new();
    let given = scene
        .gives(&merged, "github__create_issue", json!({"title": "x"}))
        .await;
    assert_eq!(
        given,
        json!({"by": "mcp github", "with": {"title": "x"}, "ok": true})
    );
}

#[tokio::test]
async fn of_two_of_one_name_the_first_is_called_and_the_other_is_told_as_shadowed() {
    let own = || boxed([remember()]);
    for (first, second, kept, dropped) in [
        (own(), github(), "builtin", "mcp github"),
        (github(), own(), "mcp github", "builtin"),
    ] {
        let merged = merge(first, second);
        let given = Scene::new().gives(&merged, "remember", json!({})).await;
        assert_eq!(given["by"], kept);
        let shadow = Shadowed {
            name: "remember".to_owned(),
            kept: kept.to_owned(),
            dropped: dropped.to_owned(),
        };
        assert_eq!(merged.shadowed(), [shadow]);
    }
}

#[tokio::test]
async fn of_three_the_second_has_a_name_that_the_second_and_third_have() {
    let one = |source: &str, name: &str| boxed([tool(source, name, "x")]);
    let merged = merge(merge(one("a", "other"), one("b", "same")), one("c", "same"));
    let given = Scene::new().gives(&merged, "same", json!({})).await;
    assert_eq!(given["by"], "b");
}

#[tokio::test]
async fn what_is_restricted_away_is_an_unknown_tool_also_by_an_alias() {
    let toolkit = boxed([remember().alias("note"), tool("builtin", "forget", "x")]);
    let some = restrict(toolkit, &set(["forget", "nothing"]));
    assert_eq!(names(&*some), ["forget"]);
    assert_eq!(some.unknown_names(), ["nothing"]);
    for name in ["remember", "note"] {
        let given = Scene::new().gives(&some, name, json!({})).await;
        let error = format!("unknown tool: {name:?}. Available: forget.");
        assert_eq!(given, json!({"error": error, "ok": false}));
    }
}

#[tokio::test]
async fn an_alias_calls_the_tool_that_is_shown_by_the_real_name() {
    let second = boxed([tool("b", "execute", "x").alias("bash")]);
    let merged = merge(boxed([tool("a", "execute", "x")]), second);
    let given = Scene::new().gives(&merged, "bash", json!({})).await;
    assert_eq!(given["by"], "a");
}

#[tokio::test]
async fn a_call_gives_the_result_or_a_failure_that_a_model_can_read() {
    let toolkit = boxed([remember()]);
    assert!(has_tool(&*toolkit, "remember") && !has_tool(&*toolkit, "note"));
    let scene = Scene::new();
    let run = |name: &str, input: Value| call(Arc::clone(&toolkit), scene.call(name, input));
    let given = run("remember", json!({"note": "n"}))
        .await
        .expect("it runs");
    assert_eq!(given["with"], json!({"note": "n"}));
    let failed = run("remember", json!({"note": 1}))
        .await
        .expect_err("no text");
    assert_eq!(failed.code, "invalid_parameters");
    assert_eq!(failed.message, "value at `/note` is not a string");
    let failed = run("nothing", json!({})).await.expect_err("no tool");
    assert_eq!((&*failed.code, failed.retryable), ("unknown_tool", false));
}

#[test]
fn what_is_made_of_a_toolbox_is_made_once_and_goes_with_its_tools() {
    let mut toolbox = Toolbox::new();
    toolbox.add(remember());
    let count = |toolbox: &Toolbox| *toolbox.derived("count", || toolbox.tools().len());
    assert_eq!(count(&toolbox), 1);
    assert_eq!(*toolbox.derived("count", || 99_usize), 1);
    let mut copy = toolbox.clone();
    copy.add(tool("a", "other", "x"));
    assert_eq!((count(&copy), count(&toolbox)), (2, 1));
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// What a model sees and what each name calls: two toolkits with the same are the same to it.
fn seen(toolkit: &Arc<dyn Toolkit>) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let scene = Scene::new();
    let mut calls = Vec::new();
    for name in NAMES.iter().chain(&ALIASES) {
        let given = runtime.block_on(scene.gives(toolkit, name, json!({"n": 1})));
        calls.push(json!([name, given]));
    }
    json!({"definitions": &*toolkit.definitions(), "aliases": first_of_each(toolkit), "calls": calls})
}

/// Of two of one alias the first counts.
fn first_of_each(toolkit: &Arc<dyn Toolkit>) -> Vec<(String, String)> {
    let mut first: Vec<(String, String)> = Vec::new();
    for (alias, real) in toolkit.aliases() {
        if !first.iter().any(|(known, _)| known == alias) {
            first.push((alias.clone(), real.clone()));
        }
    }
    first
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const ALIASES: [&str; 2] = ["x", "y"];

fn toolkits() -> impl Strategy<Value = Arc<dyn Toolkit>> {
    let one = (0..NAMES.len(), proptest::option::of(0..ALIASES.len()));
    (proptest::collection::vec(one, 0..5), "[p-r]").prop_map(|(tools, source)| {
        let tools = tools.into_iter().map(|(name, alias)| {
            let tool = tool(
                &source,
                NAMES[name],
                &format!("{source} does {}", NAMES[name]),
            );
            alias.map_or(tool.clone(), |alias| tool.alias(ALIASES[alias]))
        });
        boxed(tools)
    })
}

fn sets() -> impl Strategy<Value = BTreeSet<String>> {
    proptest::sample::subsequence(&NAMES[..], 0..=NAMES.len())
        .prop_map(|names| names.into_iter().map(str::to_owned).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn merge_is_associative(a in toolkits(), b in toolkits(), c in toolkits()) {
        let left = merge(merge(a.clone(), b.clone()), c.clone());
        let right = merge(a, merge(b, c));
        prop_assert_eq!(seen(&left), seen(&right));
        let told = |toolkit: &Arc<dyn Toolkit>| {
            let mut names: Vec<String> = toolkit.shadowed().into_iter().map(|one| one.name).collect();
            names.sort();
            names.dedup();
            names
        };
        prop_assert_eq!(told(&left), told(&right));
    }

    #[test]
    fn a_toolkit_merged_with_itself_is_itself(a in toolkits()) {
        let twice = merge(a.clone(), a.clone());
        let mut told = a.shadowed();
        told.dedup();
        prop_assert_eq!(twice.shadowed(), told);
        prop_assert_eq!(seen(&twice), seen(&a));
    }

    #[test]
    fn restricting_a_merge_is_merging_what_is_restricted(a in toolkits(), b in toolkits(), names in sets()) {
        let whole = restrict(merge(a.clone(), b.clone()), &names);
        let parts = merge(restrict(a, &names), restrict(b, &names));
        prop_assert_eq!(seen(&whole), seen(&parts));
    }

    #[test]
    fn restricting_twice_is_restricting_to_what_both_name(a in toolkits(), m in sets(), n in sets()) {
        let twice = restrict(restrict(a.clone(), &m), &n);
        let once = restrict(a, &(&m & &n));
        prop_assert_eq!(seen(&twice), seen(&once));
    }
}
