//! Folders of scripts: what is offered, what is said of the rest, and what it costs.

use super::*;
use std::fs;
use std::time::Instant;
use tempfile::TempDir;

struct Place {
    root: TempDir,
    scripts: Scripts,
}

const GOOD: &str = "# @describe Good.\n# @option --x X\nmain() { :; }\n";
const BROKEN: &str = "# @describe D.\n# @option --x A\n# @option --x B\n";

impl Place {
    fn new() -> Self {
        Self::with(|_| Settings::default())
    }

    fn with(settings: impl FnOnce(&Path) -> Settings) -> Self {
        let root = TempDir::new().unwrap();
        let scripts = Scripts::new(
            settings(root.path()),
            &root.path().join("home"),
            &root.path().join("state"),
        );
        Self { root, scripts }
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn list(&self, own: Own) -> Listing {
        self.scripts.list(&self.root.path().join("work"), own)
    }

    fn check(&self, env: &BTreeMap<String, String>) -> Checked {
        let cwd = self.root.path().join("work");
        self.scripts.check(&cwd, env, |name| name == "bash")
    }

    fn names(&self, own: Own) -> (Vec<String>, Vec<String>) {
        let loaded = self.scripts.load(&self.list(own), None);
        let names = loaded.tools.iter().map(|tool| tool.name().to_owned());
        (names.collect(), loaded.problems)
    }
}

#[test]
fn a_broken_file_is_told_with_its_line_and_takes_no_other_along() {
    let place = Place::new();
    place.write("home/.agents/tools/good.sh", GOOD);
    let broken = place.write("home/.agents/tools/dup.sh", BROKEN);
    let (names, problems) = place.names(Own::Ignored);
    assert_eq!(names, ["good"]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with(&format!("{}: line 3: ", broken.display())),
        "{problems:?}"
    );
}

#[test]
fn a_directorys_own_files_count_only_when_it_is_trusted() {
    let place = Place::new();
    place.write("work/.agents/tools/own.sh", GOOD);
    assert_eq!(place.names(Own::Ignored).0, Vec::<String>::new());
    assert_eq!(place.names(Own::Trusted).0, ["own"]);
}

#[test]
fn a_list_decides_what_a_named_folder_offers() {
    let place = Place::with(|root| Settings {
        roots: vec![root.join("functions"), root.join("gone")],
        ..Settings::default()
    });
    place.write(
        "functions/tools.txt",
        "web_search.sh\n# no.sh\n\nget_time.sh\n",
    );
    place.write("functions/tools/get_time.sh", GOOD);
    place.write("functions/tools/no.sh", GOOD);
    let (names, problems) = place.names(Own::Ignored);
    assert_eq!(names, ["get_time"]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("functions/tools/web_search.sh"),
        "{problems:?}"
    );
    assert!(problems[1].contains("gone/tools"), "{problems:?}");
}

#[test]
fn a_broken_edit_keeps_what_was_good_and_says_so() {
    let place = Place::new();
    let file = place.write("home/.agents/tools/edited.sh", GOOD);
    assert_eq!(
        place.names(Own::Ignored),
        (vec!["edited".to_owned()], vec![])
    );
    fs::write(&file, BROKEN).unwrap();
    let (names, problems) = place.names(Own::Ignored);
    assert_eq!(names, ["edited"]);
    assert!(
        problems[0].contains("line 3") && problems[0].ends_with("as it was before"),
        "{problems:?}"
    );
    fs::write(&file, GOOD.replace("Good", "Better")).unwrap();
    let loaded = place.scripts.load(&place.list(Own::Ignored), None);
    assert_eq!(loaded.tools[0].description(), "Better.");
    assert_eq!(loaded.problems, Vec::<String>::new());
}

#[test]
fn an_edit_that_only_the_language_itself_refuses_keeps_what_was_good() {
    let place = Place::new();
    let js = "/** D.\n * @param {Object} args */\nexports.run = () => {\n  let a;\n};\n";
    let py = "def run():\n    \"\"\"D.\"\"\"\n    pass\n";
    for (name, good, bad, line, fine) in [
        (
            "b.sh",
            GOOD,
            "# @describe D.\nmain() {\n if true; echo; }\n",
            "line 3",
            "# @describe D.\nshopt -s extglob\nmain() {\n ls !(*.txt|a)\n}\n".to_owned(),
        ),
        (
            "j.js",
            js,
            &js.replace("let a;", "let a; let a;"),
            "line 4",
            js.replace("let a", "let b"),
        ),
        (
            "p.py",
            py,
            &py.replace("pass", "break"),
            "line 3",
            py.replace("pass", "return 1"),
        ),
    ] {
        let file = place.write(&format!("home/.agents/tools/{name}"), good);
        assert_eq!(place.names(Own::Ignored).1, Vec::<String>::new(), "{name}");
        fs::write(&file, bad).unwrap();
        let reading = place.scripts.shared.known.read(&file, Kind::Tool).unwrap();
        assert_eq!(*reading.source, *good.as_bytes(), "{name}");
        let why = reading.problem.as_deref().unwrap_or_default();
        assert!(
            why.starts_with(&format!("{}: {line}: ", file.display()))
                && why.ends_with("as it was before"),
            "{name}: {why}"
        );
        fs::write(&file, &fine).unwrap();
        let reading = place.scripts.shared.known.read(&file, Kind::Tool).unwrap();
        assert_eq!(
            (&reading.problem, &*reading.source),
            (&None, fine.as_bytes()),
            "{name}"
        );
    }
}

#[test]
fn an_edit_of_the_same_length_is_seen_at_once() {
    let place = Place::new();
    let file = place.write("home/.agents/tools/t.sh", GOOD);
    let before = place.list(Own::Ignored);
    assert!(before == place.list(Own::Ignored));
    fs::write(&file, GOOD.replace("Good", "Goot")).unwrap();
    assert!(before != place.list(Own::Ignored));
}

#[test]
fn a_script_names_its_time_and_the_settings_come_before_it() {
    let place = Place::with(|_| Settings {
        timeout: Some(7),
        timeouts: BTreeMap::from([("set".to_owned(), 3)]),
        ..Settings::default()
    });
    let time = |name: &str, content: &str| {
        let file = place.write(&format!("x/{name}"), content);
        let reading = place.scripts.shared.known.read(&file, Kind::Tool).unwrap();
        let stem = file.file_stem().unwrap().to_str().unwrap().to_owned();
        place.scripts.timeout(&stem, reading.timeout)
    };
    let own = GOOD.replace("# @option", "# @meta timeout 0.5\n# @option");
    assert_eq!(time("own.sh", &own), Duration::from_millis(500));
    assert_eq!(time("set.sh", &own), Duration::from_secs(3));
    assert_eq!(time("none.sh", GOOD), Duration::from_secs(7));
    let python = "# @meta timeout 9\ndef run():\n    \"\"\"D.\"\"\"\n";
    assert_eq!(time("p.py", python), Duration::from_secs(9));
}

#[test]
fn a_check_names_what_is_missing() {
    let place = Place::new();
    place.write("work/.agents/tools/bad.py", "def run(a: str:\n");
    place.write("work/.agents/.env", "FROM_FILE=1\n");
    let needs = "# @describe N.\n# @env FROM_FILE!\n# @env SET!\n# @env MISSING!\n# @meta require-tools no-such-one\nmain() { :; }\n";
    place.write("work/.agents/tools/needs.sh", needs);
    let env = BTreeMap::from([
        ("SET".to_owned(), String::new()),
        ("PATH".to_owned(), "/none".to_owned()),
    ]);
    let checked = place.check(&env);
    assert_eq!(
        (checked.files, checked.tools),
        (2, vec!["needs".to_owned()])
    );
    let all = checked.problems.join("\n");
    for part in [
        "bad.py: line 1: syntax error",
        "MISSING is not set",
        "no-such-one is not on PATH",
        "bash is not on PATH",
        "python3 is not",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert_eq!(checked.problems.len(), 5, "{all}");
}

#[test]
fn a_check_names_what_has_a_schema_that_cannot_be_used() {
    let place = Place::new();
    let text = "/**\n * D.\n * @param {{p: {a: string, a: string}}} args\n */\nexports.run = (args) => 1;\n";
    place.write("work/.agents/tools/odd.js", text);
    place.write("work/.agents/tools/good.sh", GOOD);
    let checked = place.check(&BTreeMap::new());
    assert_eq!(checked.tools, ["good"]);
    let all = checked.problems.join("\n");
    assert!(
        all.contains("\"odd\" has a schema that cannot be used"),
        "{all}"
    );
}

#[test]
fn a_check_names_a_script_in_the_place_of_a_built_in_tool() {
    let place = Place::new();
    let file = place.write("work/.agents/tools/bash.sh", GOOD);
    place.write("work/.agents/tools/good.sh", GOOD);
    let checked = place.check(&BTreeMap::new());
    let expected = format!(
        "{}: the tool bash takes the place of the built-in one",
        file.display()
    );
    assert_eq!(checked.warnings, [expected]);
}

#[test]
fn a_check_names_a_default_that_is_no_number() {
    let place = Place::new();
    let text = "# @describe D.\n# @option --count=abc <INT> C\n# @option --size=3 <INT> S\n# @option --name=x N\nmain() { :; }\n";
    let file = place.write("work/.agents/tools/t.sh", text);
    let checked = place.check(&BTreeMap::new());
    let expected = format!(
        "{}: line 2: the default \"abc\" of count is no number",
        file.display()
    );
    assert_eq!(checked.warnings, [expected]);
    assert_eq!(checked.tools, ["t"]);
}

#[test]
fn a_time_that_is_none_is_told_with_its_line_and_the_tool_stays() {
    for said in ["soon", "-3", "0", "10 s"] {
        let place = Place::new();
        let content = GOOD.replace("# @option", &format!("# @meta timeout {said}\n# @option"));
        let file = place.write("home/.agents/tools/t.sh", &content);
        let (names, problems) = place.names(Own::Ignored);
        assert_eq!(names, ["t"]);
        let expected = format!(
            "{}: line 2: @meta timeout {said:?} is no number",
            file.display()
        );
        assert!(
            problems.len() == 1 && problems[0].starts_with(&expected),
            "{problems:?}"
        );
    }
}

/// The times are those of a release; a build for tests is some ten times slower, and the machine may be busy.
#[test]
fn two_hundred_files_are_read_once() {
    let place = Place::new();
    for number in 0..200 {
        let end = ["sh", "py", "js"][number % 3];
        let content = match end {
            "sh" => GOOD.to_owned(),
            "py" => "def run(a: str, b: int = 3):\n    \"\"\"D.\n    Args:\n        a: A\n    \"\"\"\n".to_owned(),
            _ => "/**\n * D.\n * @param {Object} args\n * @param {string} args.a - A\n */\nexports.run = () => 1;\n".to_owned(),
        };
        place.write(&format!("home/.agents/tools/t{number}.{end}"), &content);
    }
    let began = Instant::now();
    let listing = place.list(Own::Ignored);
    assert_eq!(place.scripts.load(&listing, None).tools.len(), 200);
    let cold = began.elapsed();
    let began = Instant::now();
    assert!(place.list(Own::Ignored) == listing);
    let warm = began.elapsed();
    assert!(
        cold < Duration::from_secs(3) && warm < Duration::from_millis(500),
        "{cold:?} {warm:?}"
    );
}

#[test]
fn an_agents_own_tool_comes_before_a_shared_one_of_its_name() {
    let place = Place::new();
    place.write("home/.agents/tools/good.sh", GOOD);
    place.write("home/.agents/agents/a/index.yaml", "description: A.\n");
    place.write("home/.agents/agents/a/tools.txt", "good.sh\n");
    let own = "def good():\n    \"\"\"Own.\"\"\"\n";
    place.write("home/.agents/agents/a/tools.py", own);
    let work = place.root.path().join("work");
    let (_, files) = place.scripts.agent(&work, Own::Ignored, "a").unwrap();
    let loaded = place.scripts.load(files.listing(), None);
    let last = loaded.tools.iter().rfind(|tool| tool.name() == "good");
    assert_eq!(last.unwrap().description(), "Own.");
    let warned = place.check(&BTreeMap::new()).warnings;
    let about = |warning: &&String| {
        warning.contains("a/tools.py: the agent's own tool good takes the place of the one in")
    };
    assert_eq!(warned.iter().filter(about).count(), 1, "{warned:?}");
}
