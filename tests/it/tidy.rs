//! The repository's rules as tests: first lines, imports, lengths, one integration binary, dependencies, links.
//! Each rule is a function from sources to complaints, and is tried on a bad sample too: a rule that cannot fail is none.

mod source;

use harness::binaries::{cargo, root};
use serde_json::Value;
use source::{Source, sources, walk, without_comments_and_strings};
use std::fs;
use std::path::Path;

/// Lines of shipped code above which a file is on the list of those to split, and above which it is refused.
const LONG: usize = 500;
const TOO_LONG: usize = 800;

/// Which module of the daemon may name which others: a path is allowed when it begins with one of these.
/// A module may always name itself and what lies below it. `main`, `lib` and `daemon` build everything.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    // What the file may set, in the types of those it is for.
    (
        "config",
        &[
            "model::Settings",
            "presentation::code_mode::Settings",
            "presentation::usual::Settings",
            "provider::settings::Named",
            "provider::settings::Settings",
            "session::conversation::History",
            "toolbox::source::script::load::Settings",
            "transport::Limits",
            "workspace::hooks::ShellHook",
            "workspace::plugins::Settings",
            "workspace::servers::Settings",
        ],
    ),
    ("log", &[]),
    ("memory", &[]),
    ("own_dir", &[]),
    ("shutdown", &[]),
    ("transport", &["shutdown", "config", "memory"]),
    (
        "rpc",
        &[
            "session",
            "workspace",
            "command",
            "model",
            // The port through which a client's tools run, which a connection stands behind.
            "toolbox::source::client::Offerer",
            "toolbox::source::script::agent",
            // Pure, and knows no tool.
            "toolbox::schema",
            "transport::Context",
            "shutdown",
            "store::ListQuery",
            "store::StoreError",
            "transport::Connections",
            "transport::Context",
        ],
    ),
    // Of a provider only its face: what a vendor calls things stays in the vendor's file.
    (
        "session",
        &[
            "memory",
            "turn",
            "presentation",
            "store",
            "workspace",
            "toolbox",
            "shutdown",
            "config",
            "provider::registry",
            "provider::Message",
            "provider::Provider",
            "provider::ProviderEvent",
            "provider::Signed",
            "provider::ToolCall",
        ],
    ),
    (
        "turn",
        &[
            "session::state",
            "provider",
            "toolbox",
            "presentation",
            "config",
        ],
    ),
    ("toolbox", &["process", "stdio_rpc"]),
    ("presentation", &["toolbox", "process"]),
    ("provider", &["process", "stdio_rpc", "config"]),
    (
        "command",
        &[
            "session",
            "toolbox",
            "provider",
            "workspace",
            "store::ListQuery",
            "turn::compaction::ASK",
            "turn::compaction::BY",
        ],
    ),
    ("workspace", &["toolbox", "process", "stdio_rpc", "config"]),
    ("model", &["process"]),
    ("store", &[]),
    ("process", &[]),
    ("stdio_rpc", &["process"]),
];

/// What no shipped path may begin with, whatever the table above allows.
const NEVER: &[(&str, &str)] = &[("rpc", "session::state"), ("turn", "session::actor")];

/// Crates of the workspace and the crates of the workspace that each may depend on.
const MAY_DEPEND: &[(&str, &[&str])] = &[
    ("dwell-protocol", &[]),
    ("dwelld", &["dwell-protocol"]),
    ("dwell-local", &["dwell-protocol"]),
    ("dwell", &["dwell-protocol"]),
    ("dwell-tests", &["dwell-protocol", "dwelld", "dwell"]),
];

/// What the client's dependencies must not name: it stays thin.
const NOT_IN_THE_CLIENT: &[&str] = &[
    "dwelld",
    "rusqlite",
    "libsqlite3-sys",
    "reqwest",
    "hyper",
    "hyper-util",
    "ureq",
    "rustls",
];

#[test]
fn every_file_says_first_what_it_owns() {
    assert_none(&no_first_line(&sources(root())));
    let bad = [
        Source::sample("daemon/src/a.rs", "use std::fs;\n"),
        Source::sample("daemon/src/b.rs", "//!\n"),
    ];
    assert_eq!(no_first_line(&bad).len(), 2);
}

fn no_first_line(sources: &[Source]) -> Vec<String> {
    let speaks = |text: &str| {
        text.strip_prefix("//! ")
            .is_some_and(|rest| rest.lines().next().is_some_and(|line| line.len() > 8))
    };
    sources
        .iter()
        .filter(|source| !speaks(&source.text))
        .map(|source| format!("{}: the first line is no `//! ...`", source.name))
        .collect()
}

#[test]
fn modules_import_along_the_arrows_only() {
    assert_none(&wrong_imports(&sources(root())));
    let bad = [
        Source::sample("daemon/src/transport/peer.rs", "use crate::store::Store;"),
        Source::sample("daemon/src/store.rs", "use super::session::Sessions;"),
        Source::sample(
            "daemon/src/toolbox/gate.rs",
            "use crate::{process::run, session::{Sessions as S, state}};",
        ),
        Source::sample(
            "daemon/src/rpc/turn.rs",
            "fn f() { crate::session::state::fold(); }",
        ),
        Source::sample("daemon/src/drawer.rs", "use crate::process::run;"),
    ];
    let complaints = wrong_imports(&bad);
    assert_eq!(complaints.len(), 6, "{complaints:#?}");
    let good = [
        Source::sample(
            "daemon/src/store/fold.rs",
            "use super::writer; use crate::store::schema;\n// crate::rpc::x",
        ),
        Source::sample(
            "daemon/src/process.rs",
            "#[cfg(test)]\nmod tests {\n use crate::store::Store;\n}",
        ),
        Source::sample(
            "daemon/src/daemon.rs",
            "use crate::rpc; use crate::store::Store;",
        ),
        Source::sample(
            "daemon/src/provider/sse.rs",
            "const TEXT: &str = \"crate::rpc::x\";",
        ),
    ];
    assert_none(&wrong_imports(&good));
}

fn wrong_imports(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources
        .iter()
        .filter(|source| source.name.starts_with("daemon/src/"))
    {
        let module = source.module();
        let Some(from) = module.first().filter(|from| **from != "daemon") else {
            continue;
        };
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| name == from) else {
            complaints.push(format!(
                "{}: module {from} is not in the table of who may import whom",
                source.name
            ));
            continue;
        };
        for path in source.crate_paths() {
            let fits = |prefix: &str| path == prefix || path.starts_with(&format!("{prefix}::"));
            let never = NEVER
                .iter()
                .any(|(module, path)| module == from && fits(path));
            let may = fits(from) || path.is_empty() || allowed.iter().any(|prefix| fits(prefix));
            if never || !may {
                complaints.push(format!("{}: {from} may not import {path}", source.name));
            }
        }
    }
    complaints
}

#[test]
fn crates_depend_along_the_arrows_only() {
    let metadata = json_of(&[
        "metadata",
        "--no-deps",
        "--offline",
        "--locked",
        "--format-version",
        "1",
    ]);
    assert_none(&wrong_dependencies(&metadata));
    let bad = serde_json::json!({"packages": [
        {"name": "dwell", "dependencies": [{"name": "dwelld"}, {"name": "dwell-protocol"}, {"name": "tokio"}]},
        {"name": "dwell-drawer", "dependencies": []},
    ]});
    assert_eq!(wrong_dependencies(&bad).len(), 2);
}

fn wrong_dependencies(metadata: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some((_, allowed)) = MAY_DEPEND.iter().find(|(known, _)| *known == name) else {
            complaints.push(format!(
                "crate {name} is not in the table of who may depend on whom"
            ));
            continue;
        };
        let of_workspace = |name: &str| MAY_DEPEND.iter().any(|(known, _)| *known == name);
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            if of_workspace(other) && !allowed.contains(&other) {
                complaints.push(format!("crate {name} may not depend on {other}"));
            }
        }
    }
    complaints
}

#[test]
fn the_client_stays_thin() {
    let tree = output_of(&[
        "tree",
        "-p",
        "dwell",
        "-e",
        "normal",
        "--offline",
        "--locked",
        "--prefix",
        "none",
    ]);
    assert!(tree.contains("dwell-protocol"), "{tree}");
    assert_none(&not_thin(&tree));
    assert_eq!(
        not_thin("dwell v0.1.0\nrusqlite v0.43.0\nhyper v1.0.0 (*)\nhyperlink v1.0.0").len(),
        2
    );
}

fn not_thin(tree: &str) -> Vec<String> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    let bad = names.filter(|name| NOT_IN_THE_CLIENT.contains(name));
    bad.map(|name| format!("the client depends on {name}"))
        .collect()
}

#[test]
fn files_stay_short() {
    let sources = sources(root());
    for (name, lines) in sources
        .iter()
        .map(length)
        .filter(|(_, lines)| *lines > LONG)
    {
        eprintln!("{name} has {lines} lines; files are split at {LONG}");
    }
    assert_none(&too_long(&sources));
    let bad = Source::sample("daemon/src/a.rs", &"fn f() {}\n".repeat(TOO_LONG + 1));
    let good = Source::sample(
        "daemon/src/a.rs",
        &format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(TOO_LONG)),
    );
    assert_eq!(too_long(&[bad, good]).len(), 1);
}

fn length(source: &Source) -> (&str, usize) {
    (&source.name, source.shipped().lines().count())
}

fn too_long(sources: &[Source]) -> Vec<String> {
    let long = sources
        .iter()
        .map(length)
        .filter(|(_, lines)| *lines > TOO_LONG);
    long.map(|(name, lines)| format!("{name} has {lines} lines, more than {TOO_LONG}"))
        .collect()
}

#[test]
fn modules_are_files_beside_their_folder() {
    assert_none(&named_mod(&sources(root())));
    assert_eq!(
        named_mod(&[Source::sample("daemon/src/rpc/mod.rs", "")]).len(),
        1
    );
}

fn named_mod(sources: &[Source]) -> Vec<String> {
    let bad = sources
        .iter()
        .filter(|source| source.name.ends_with("/mod.rs"));
    bad.map(|source| format!("{}: modules are foo.rs beside foo/", source.name))
        .collect()
}

#[test]
fn no_test_file_is_forgotten() {
    let sources = sources(root());
    assert_none(&forgotten(&sources));
    assert_none(&other_binaries(&sources));
    let bad = [
        Source::sample("tests/it/main.rs", "mod one;\n// mod two;\n"),
        Source::sample("tests/it/one.rs", ""),
        Source::sample("tests/it/two.rs", ""),
        Source::sample("tests/it/one/part.rs", ""),
        Source::sample("daemon/tests/more.rs", ""),
    ];
    assert_eq!(forgotten(&bad).len(), 2);
    assert_eq!(other_binaries(&bad).len(), 1);
}

/// Files under `tests/it` that no `mod` line leads to.
fn forgotten(sources: &[Source]) -> Vec<String> {
    let inside = sources
        .iter()
        .filter(|source| source.name.starts_with("tests/it/") && source.name != "tests/it/main.rs");
    let listed = |source: &&Source| {
        let (folder, file) = source.name.rsplit_once('/').unwrap();
        let parent = if folder == "tests/it" {
            "tests/it/main.rs".into()
        } else {
            format!("{folder}.rs")
        };
        let line = format!("mod {};", file.trim_end_matches(".rs"));
        sources.iter().any(|other| {
            other.name == parent && without_comments_and_strings(&other.text).contains(&line)
        })
    };
    inside
        .filter(|source| !listed(source))
        .map(|source| format!("{}: no mod line leads to it", source.name))
        .collect()
}

fn other_binaries(sources: &[Source]) -> Vec<String> {
    let bad = sources
        .iter()
        .filter(|source| source.name.contains("/tests/") && !source.name.contains("/src/"));
    bad.map(|source| format!("{}: there is one integration binary, tests/it", source.name))
        .collect()
}

#[test]
fn shipped_code_does_not_unwrap_or_postpone() {
    assert_none(&careless(&sources(root())));
    let bad = Source::sample(
        "client/src/a.rs",
        "//! A sample.\nfn f() { x.unwrap(); }\nfn g() { y(); } // .unwrap()\n#[cfg(test)]\nmod tests {\n fn h() { x.unwrap(); }\n}\n",
    );
    assert_eq!(careless(&[bad]), ["client/src/a.rs:2: unwrap()"]);
    let later = format!("//! A sample.\n// TO{}: later\n", "DO");
    assert_eq!(
        careless(&[Source::sample("client/src/a.rs", &later)]).len(),
        1
    );
}

fn careless(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources {
        let code = without_comments_and_strings(source.shipped());
        for (number, line) in code.lines().enumerate() {
            for word in ["unwrap()", "todo!(", "unimplemented!("] {
                if line.contains(&format!(".{word}"))
                    || (word.ends_with("!(") && line.contains(word))
                {
                    complaints.push(format!("{}:{}: {word}", source.name, number + 1));
                }
            }
        }
        for (number, line) in source.text.lines().enumerate() {
            for word in [
                concat!("TO", "DO"),
                concat!("FIX", "ME"),
                concat!("XX", "X"),
            ] {
                if line.contains(&format!("// {word}")) {
                    complaints.push(format!("{}:{}: {word}", source.name, number + 1));
                }
            }
        }
    }
    complaints
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let mut files = Vec::new();
    walk(root(), &mut files);
    let texts = files.iter().filter_map(|path| {
        Some((
            path.strip_prefix(root()).ok()?,
            fs::read_to_string(path).ok()?,
        ))
    });
    assert_none(
        &texts
            .flat_map(|(path, text)| machine(path, &text))
            .collect::<Vec<_>>(),
    );
    assert_eq!(
        machine(Path::new("a.md"), &format!("see /{}/main\n", "work")).len(),
        1
    );
}

fn machine(path: &Path, text: &str) -> Vec<String> {
    let words = [
        concat!("/wo", "rk/main"),
        concat!("/wo", "rk/wt"),
        concat!("/wo", "rk/shared"),
        concat!("/ro", "ot/"),
    ];
    let found = words.iter().filter(|word| text.contains(**word));
    found
        .map(|word| format!("{}: names {word}", path.display()))
        .collect()
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let mut files = Vec::new();
    walk(root(), &mut files);
    let documents = files
        .iter()
        .filter(|path| path.extension().is_some_and(|ext| ext == "md"));
    let complaints: Vec<_> = documents
        .flat_map(|path| dead_links(path, &fs::read_to_string(path).unwrap()))
        .collect();
    assert_none(&complaints);
    let here = root().join("README.md");
    assert_eq!(
        dead_links(
            &here,
            "[a](Cargo.toml#x) [b](no/such/file) [c](https://example.org) [d](#run)"
        )
        .len(),
        1
    );
}

fn dead_links(document: &Path, text: &str) -> Vec<String> {
    let targets = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#']).next());
    let local = targets
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '));
    let dead = local.filter(|target| !document.parent().unwrap().join(target).exists());
    dead.map(|target| format!("{}: no {target}", document.display()))
        .collect()
}

#[test]
fn the_table_of_faults_names_tests_that_exist() {
    let table = fs::read_to_string(root().join("tests/FAULTS.md")).unwrap();
    assert_none(&missing_tests(&table, &sources(root())));
    assert_eq!(
        missing_tests("| a | `tidy::no_such_test` |", &sources(root())).len(),
        1
    );
}

#[test]
fn the_table_of_screens_names_tests_that_exist_at_each_size() {
    let readme = fs::read_to_string(root().join("tests/README.md")).unwrap();
    let (_, table) = readme.split_once("## Screens").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    assert!(table.contains("_at_SIZE`"), "it says for which sizes");
    for size in ["80_by_24", "120_by_40", "40_by_15"] {
        let table = table.replace("SIZE", size);
        assert_none(&missing_tests(&table, &sources(root())));
    }
}

/// Names in the form `file::test` that no test of `tests/it` has.
fn missing_tests(table: &str, sources: &[Source]) -> Vec<String> {
    let names = table.split('`').skip(1).step_by(2);
    let names = names
        .filter_map(|name| Some((name, name.rsplit_once("::")?)))
        .filter(|(_, (_, test))| !test.is_empty());
    let exists = |file: &str, test: &str| {
        let name = format!("tests/it/{}.rs", file.replace("::", "/"));
        sources
            .iter()
            .any(|source| source.name == name && source.text.contains(&format!("fn {test}()")))
    };
    names
        .filter(|(_, (file, test))| !exists(file, test))
        .map(|(name, _)| format!("a table names no test: {name}"))
        .collect()
}

#[track_caller]
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn output_of(args: &[&str]) -> String {
    let done = cargo().args(args).output().unwrap();
    assert!(
        done.status.success(),
        "cargo {args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

fn json_of(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(args)).unwrap()
}
