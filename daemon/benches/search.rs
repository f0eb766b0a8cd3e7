//! What finding a tool among thousands costs, and what it spares: `cargo bench -p dwelld --bench search`. Each figure stands
//! beside its target, where it has one.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

use daemon::presentation::search::Search;
use daemon::presentation::search::index::Index;
use daemon::presentation::{Means, Toolkit, toolkit};
use daemon::toolbox::tool::{Access, Call, Tool};
use daemon::toolbox::{Toolbox, builtin};
use serde_json::{Map, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TOOLS: &str = include_str!("../../tests/fixtures/tool_search/tools.txt");
const QUERIES: [(&str, &str); 2] = [
    (
        "questions written before the ranking",
        include_str!("../../tests/fixtures/tool_search/queries.txt"),
    ),
    (
        "questions written after it",
        include_str!("../../tests/fixtures/tool_search/later_queries.txt"),
    ),
];
const MANY: usize = 2_000;
const ROUNDS: usize = 50;
/// What a token is taken for, in characters: vendors' tokenizers differ.
const TOKEN: usize = 4;

fn main() {
    for (what, questions) in QUERIES {
        let (found, asked) = hits(questions);
        let holds = if found >= 37 { "holds" } else { "MISSED" };
        println!("{what:56} {found:>5} of {asked} in the first five  at least 37  {holds}");
    }
    let toolbox = many();
    let tools = || {
        toolbox
            .tools()
            .iter()
            .map(|tool| (tool.name(), tool.description()))
    };
    let index = median((0..ROUNDS).map(|_| time(|| Index::new(tools()))));
    figure("index of 2,000 tools", index, Duration::from_millis(60));
    let index = Index::new(tools());
    let questions = || QUERIES.iter().flat_map(|(_, text)| lines(text, " => "));
    let asked = (0..ROUNDS).flat_map(|_| questions());
    let found = median(asked.map(|(question, _)| time(|| index.find(question))));
    figure(
        "query among 2,000 tools, median",
        found,
        Duration::from_micros(200),
    );
    let all: Arc<dyn Toolkit> = Arc::new(toolbox);
    let search = |all: &Arc<dyn Toolkit>| Search::new(Arc::clone(all), 5, Arc::default());
    let shown = median((0..ROUNDS).map(|_| time(|| search(&all).definitions())));
    figure(
        "search over 2,000 tools, made for a turn",
        shown,
        Duration::from_millis(2),
    );
    spared("264 real tools", with_builtin(real()));
    spared("2,000 tools", with_builtin(generated(MANY)));
}

/// Definitions of a turn as all are shown, and as search is chosen by itself.
fn spared(what: &str, toolbox: Toolbox) {
    let toolbox = Arc::new(toolbox);
    let characters = |toolkit: &dyn Toolkit| {
        let text = serde_json::to_string(&*toolkit.definitions()).unwrap_or_default();
        text.chars().count()
    };
    let before = characters(&*toolbox);
    let means = Means {
        toolbox,
        settings: Arc::default(),
    };
    let Ok(usual) = toolkit(None, "toolbox", &means) else {
        return println!("{what}: no toolkit");
    };
    let after = characters(&*usual);
    println!(
        "definitions sent per turn, {what} beside the built-in ones: about {} tokens before, {} after ({before} and {after} characters)",
        before / TOKEN,
        after / TOKEN
    );
}

fn hits(questions: &str) -> (usize, usize) {
    let index = Index::new(lines(TOOLS, ": "));
    let (mut found, mut asked) = (0, 0);
    for (question, answers) in lines(questions, " => ") {
        let answers: Vec<&str> = answers.split(' ').collect();
        let first = index.find(question).into_iter().take(5);
        let mut first = first.map(|at| index.names()[at].as_str());
        found += usize::from(first.any(|name| answers.contains(&name)));
        asked += 1;
    }
    (found, asked)
}

fn lines<'a>(text: &'a str, between: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| line.split_once(between))
}

fn many() -> Toolbox {
    let mut toolbox = Toolbox::new();
    generated(MANY)
        .into_iter()
        .for_each(|tool| toolbox.add(tool));
    toolbox
}

fn with_builtin(tools: Vec<Tool>) -> Toolbox {
    let mut toolbox = Toolbox::new();
    builtin::register(&mut toolbox);
    tools.into_iter().for_each(|tool| toolbox.add(tool));
    toolbox
}

fn real() -> Vec<Tool> {
    lines(TOOLS, ": ")
        .map(|(name, about)| tool(name, about))
        .collect()
}

/// The real ones, and others like them in further applications.
fn generated(count: usize) -> Vec<Tool> {
    let real: Vec<(&str, &str)> = lines(TOOLS, ": ").collect();
    let each = (0..count).map(|at| {
        let ((name, about), round) = (real[at % real.len()], at / real.len());
        match round {
            0 => tool(name, about),
            _ => tool(
                &format!("team{round}_{name}"),
                &format!("{about} For team {round}."),
            ),
        }
    });
    each.collect()
}

fn tool(name: &str, about: &str) -> Tool {
    let nothing = |_: Call, _: Map<String, serde_json::Value>| async { Ok(Map::new()) };
    let source = name.split("__").next().unwrap_or(name);
    Tool::new(name, about)
        .source(&format!("mcp {source}"))
        .param(
            "id",
            json!({"type": "string", "description": "Which one it is about."}),
        )
        .param(
            "fields",
            json!({"type": "object", "description": "What else there is to say of it."}),
        )
        .param(
            "limit",
            json!({"type": "integer", "minimum": 1, "description": "How many to give at most."}),
        )
        .required("id")
        .access(Access::Network)
        .handler(nothing)
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let begun = Instant::now();
    std::hint::black_box(work());
    begun.elapsed()
}

fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn figure(what: &str, took: Duration, target: Duration) {
    let holds = if took <= target { "holds" } else { "MISSED" };
    println!("{what:56} {took:>12.2?}  at most {target:?}  {holds}");
}
