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
        locale: "",
        tools: &tools,
    };
    let filled = facts.filled(
        "{{a}} {{ b }} {{c}} {{__cwd__}} {{__shell__}} {{__tools__}} {{",
        &variables,
    );
    assert_eq!(filled, "{{b}} no {{c}} /w zsh - one: First. {{");
}

#[test]
fn the_time_is_said_as_iso_8601_has_it() {
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00.007Z"),
        (951_782_400, "2000-02-29T00:00:00.007Z"),
        (1_722_240_684, "2024-07-29T08:11:24.007Z"),
        (4_107_542_399, "2100-02-28T23:59:59.007Z"),
        (4_107_542_400, "2100-03-01T00:00:00.007Z"),
    ] {
        assert_eq!(moment(seconds, 7), expected);
    }
    assert_eq!(
        ["de_AT.UTF-8", "C", "", "sr_RS@latin"].map(locale),
        ["de-AT", "en-US", "en-US", "sr-RS"]
    );
}
