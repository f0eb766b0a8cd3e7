//! Reading agents, their variables and documents.

use super::*;
use tempfile::TempDir;

fn agent(index: &str) -> (TempDir, Definition) {
    let root = TempDir::new().unwrap();
    let dir = root.path().join("todo");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("index.yaml"), index).unwrap();
    let definition = Definition::read(&dir).unwrap();
    (root, definition)
}

#[test]
fn an_index_is_read_with_what_people_leave_unquoted() {
    let (_root, agent) = agent(
        "name: Todo\nversion: 0.1\ninstructions: |\n  Be {{mood}}.\nvariables:\n  - name: mood\n    default: 5\n  - name: who\n\
         conversation_starters:\n  - What is open?\n",
    );
    assert_eq!(
        (agent.name.as_str(), agent.index.version.as_str()),
        ("todo", "0.1")
    );
    assert_eq!(agent.index.variables[0].default.as_deref(), Some("5"));
    let why = agent.choose(&BTreeMap::new()).unwrap_err();
    assert!(why.ends_with("needs values for: who"), "{why}");
    let given = BTreeMap::from([("who".to_owned(), "me".to_owned())]);
    assert_eq!(agent.choose(&given).unwrap().variables["mood"], "5");
    let wrong = BTreeMap::from([("whom".to_owned(), "me".to_owned())]);
    assert!(
        agent
            .choose(&wrong)
            .unwrap_err()
            .contains("no variable whom")
    );
}

#[test]
fn a_broken_index_is_told_with_its_line() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("index.yaml"), "name: x\nvariables: [\n").unwrap();
    let why = Definition::read(root.path()).unwrap_err();
    assert!(why.contains("index.yaml") && why.contains("line"), "{why}");
}

#[test]
fn variables_are_filled_in_once_and_what_is_unknown_stays() {
    let variables = BTreeMap::from([
        ("a".to_owned(), "{{b}}".to_owned()),
        ("b".to_owned(), "no".to_owned()),
    ]);
    let tools = [("one".to_owned(), "First.\nMore.".to_owned())];
    let facts = Facts {
        cwd: Path::new("/w"),
        shell: "/bin/zsh",
        tools: &tools,
    };
    let filled = facts.filled(
        "{{a}} {{ b }} {{c}} {{__cwd__}} {{__shell__}} {{__tools__}} {{",
        &variables,
    );
    assert_eq!(filled, "{{b}} no {{c}} /w zsh - one: First. {{");
}

#[test]
fn documents_of_the_folder_alone_are_read_up_to_a_budget() {
    let (root, agent) = agent("documents: [a.md, ../secret, big, gone]\n");
    fs::write(agent.dir.join("a.md"), "about a\n").unwrap();
    fs::write(root.path().join("secret"), "SECRET").unwrap();
    fs::write(agent.dir.join("big"), "é".repeat(DOCUMENTS)).unwrap();
    let text = agent.documents();
    assert!(
        text.contains("<document name=\"a.md\">\nabout a\n</document>"),
        "{text}"
    );
    assert!(!text.contains("SECRET") && text.contains("too long together"));
    assert!(text.len() < DOCUMENTS + 2_000, "{}", text.len());
}
