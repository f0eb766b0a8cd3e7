//! Files that cannot be read, or only just, in a folder of tools.

use super::{TIME, definition, list, put, run, with_tools};
use harness::dwell::Dwell;
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

/// Each with what is said of it; nothing where it is a tool like others.
fn odd(folder: &std::path::Path) -> Vec<(&'static str, Option<&'static str>)> {
    fs::create_dir_all(folder).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    write("bom.sh", format!("\u{feff}{TIME}").as_bytes());
    write("crlf.sh", TIME.replace('\n', "\r\n").as_bytes());
    write(
        "marked_py.py",
        "\u{feff}def run():\r\n    \"\"\"D.\"\"\"\r\n    return 'one'\r\n".as_bytes(),
    );
    write(
        "marked_js.js",
        "\u{feff}/** D. */\r\nexports.run = () => 'one';\r\n".as_bytes(),
    );
    write("latin.sh", b"# @describe D.\n# gr\xfcn\n");
    write("nul.js", b"/** D. */\nexports.run = () => 1;\n\0\0(");
    write("empty.py", b"");
    write("broken.js", b"/** D. */\nexports.run = (;\n");
    fs::create_dir(folder.join("folder.sh")).unwrap();
    symlink("loop.sh", folder.join("loop.sh")).unwrap();
    symlink("nowhere", folder.join("dangling.py")).unwrap();
    // Whoever the user is: the first byte of it cannot be read.
    symlink("/proc/self/mem", folder.join("unreadable.py")).unwrap();
    let large = fs::File::create(folder.join("large.py")).unwrap();
    large.set_len(100 << 20).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.join("pipe.js"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    vec![
        ("bom.sh", None),
        ("crlf.sh", None),
        ("marked_py.py", None),
        ("marked_js.js", None),
        ("latin.sh", Some("line 2: not UTF-8")),
        ("nul.js", Some("line 3: syntax error")),
        ("empty.py", Some("line 1: no function run")),
        ("broken.js", Some("line 2: syntax error")),
        ("folder.sh", Some("not a file")),
        ("loop.sh", Some("symbolic links")),
        ("dangling.py", Some("No such file")),
        ("unreadable.py", Some("cannot read")),
        ("large.py", Some("line 1: larger than 1024 KiB")),
        ("pipe.js", Some("not a file")),
    ]
}

#[test]
fn each_odd_file_is_told_once_everywhere_and_takes_no_other_along() {
    let daemon = with_tools(&[("time.sh", TIME)]);
    let home = daemon.path("home");
    let expected = odd(&home.join(".agents/tools"));
    // An agent that takes some of the same files says nothing twice.
    put(&home, "agents/a/index.yaml", "instructions: A\n");
    put(
        &home,
        "agents/a/tools.txt",
        "broken.js\nlarge.py\ntime.sh\n",
    );
    let mut client = daemon.client();
    let session = client.session_with(json!({"cwd": daemon.work(), "agent": "a"}));
    let of_agent = list(&mut client, &session)["problems"].clone();
    let session = client.session(&daemon.work());
    let listed = list(&mut client, &session);
    let checked = Dwell::new(&daemon).args(["tools", "check", "--json"]).run();
    assert_eq!(checked.code, Some(1));
    let checked: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
    for problems in [&of_agent, &listed["problems"], &checked["problems"]] {
        let lines: Vec<_> = problems
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap())
            .collect();
        for (name, said) in &expected {
            let about: Vec<_> = lines
                .iter()
                .filter(|line| line.contains(&format!("/{name}:")))
                .collect();
            match (said, about.as_slice()) {
                (None, []) => {}
                (Some(said), [only]) => assert!(only.contains(said), "{only}"),
                _ => panic!("{name}: {about:?}"),
            }
        }
    }
    assert_eq!(definition(&listed, "time")["name"], "time");
    for name in ["time", "bom", "marked_py", "marked_js", "crlf"] {
        assert_eq!(
            run(&mut client, &session, name, &json!({}))["output"],
            "one",
            "{name}"
        );
    }
}

#[test]
fn what_is_created_in_a_trusted_directory_is_offered_at_once() {
    let daemon = with_tools(&[]);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let create = |name: &str| Dwell::new(&daemon).args(["tools", "create", name]).run();
    // There was nothing, and it is the person's own.
    let made = create("first.py");
    assert!(
        made.stderr.contains("from the next turn on"),
        "{}",
        made.stderr
    );
    assert_eq!(
        definition(&list(&mut client, &session), "first")["name"],
        "first"
    );
    assert!(create("second.sh").stderr.contains("from the next turn on"));
    assert_eq!(
        definition(&list(&mut client, &session), "second")["name"],
        "second"
    );
    // Something else changed meanwhile: nobody agreed to that.
    put(&daemon.work(), "tools/foreign.sh", TIME);
    let made = create("third.js");
    assert!(made.stderr.contains("dwell trust yes"), "{}", made.stderr);
    for name in ["foreign", "third", "first"] {
        assert_eq!(
            definition(&list(&mut client, &session), name),
            json!(null),
            "{name}"
        );
    }
}

#[test]
fn numbers_are_in_the_log_and_at_the_script_as_they_were_written() {
    let tool = "# @describe T.\n# @option --n* <NUM>\nmain() { echo \"{\\\"n\\\":[$(IFS=,; echo \"${argc_n[*]}\")]}\"; }\n\
                eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let daemon = with_tools(&[("numbers.sh", tool)]);
    let written = "[123456789012345678901234567890,-9223372036854775809,1.10,-0,5.0,0.1]";
    let prompt = format!("do numbers {{\"n\": {written}}}\nsay done");
    Dwell::new(&daemon)
        .args(["ask", "-p", "script", &prompt])
        .ok();
    let log = Dwell::new(&daemon).args(["log", "--json"]).ok();
    let held = log.matches(written).count();
    assert!(held >= 2, "{held}: {log}");
}

#[test]
fn a_check_names_what_the_languages_refuse_and_what_lists_name_in_vain() {
    let daemon = with_tools(&[
        ("fine.sh", TIME),
        (
            "right.mjs",
            "/** D. */\nexport const run = async () => { await 1; };\n",
        ),
        (
            "newer.js",
            "import fs from 'node:fs';\n/** D. */\nexport const run = () => fs;\n",
        ),
        (
            "open.sh",
            &TIME.replace("echo one;", "\nif true; then echo one;\n"),
        ),
        (
            "twice.js",
            "/** D. */\nexports.run = () => { let a;\nlet a; };\n",
        ),
        (
            "odd.py",
            "def run():\n    \"\"\"D.\"\"\"\n    x = 1\n    nonlocal x\n",
        ),
        ("é.sh", TIME),
    ]);
    let home = daemon.path("home");
    let agent = |name: &str, end: &str, text: &str| {
        put(
            &home,
            &format!("agents/{name}/index.yaml"),
            "description: D.\ndynamic_instructions: true\n",
        );
        if !end.is_empty() {
            put(&home, &format!("agents/{name}/tools.{end}"), text);
        }
    };
    agent("good", "py", "def _instructions():\n    return 'hi'\n");
    agent("mute", "", "");
    agent(
        "shy",
        "sh",
        "# @cmd Add.\nadd() { :; }\n_instructions() { echo hi; }\n",
    );
    put(&home, "agents.txt", "# those\ngood\ngone\n");
    put(&home, "agents/good/tools.txt", "fine.sh\nmissing.py\n");
    put(
        &home,
        "agents/said/index.yaml",
        "description: D.\ninstructions: You are {{who}} in {{__os__}}, {{ name }}.\nvariables:\n- name: name\n  default: x\nconversation_starters: ['']\n",
    );
    let checked = Dwell::new(&daemon).args(["tools", "check"]).run();
    assert_eq!(checked.code, Some(1), "{}", checked.stderr);
    for expected in [
        "open.sh: line ",
        "twice.js: line 3: Identifier 'a' has already been declared",
        "odd.py: line 4: ",
        "agents.txt: no agent is called \"gone\"",
        "missing.py: No such file",
        "mute/index.yaml: dynamic_instructions needs tools.sh",
        "shy/index.yaml: dynamic_instructions needs a function _instructions, declared by @cmd",
    ] {
        assert_eq!(
            checked.stdout.matches(expected).count(),
            1,
            "{expected}: {}",
            checked.stdout
        );
    }
    for fine in ["fine", "right", "newer.js", "good/index"] {
        assert!(!checked.stdout.contains(fine), "{fine}: {}", checked.stdout);
    }
    for expected in [
        "é.sh: models know the tool é as _",
        "{{who}} in the instructions is no variable",
        "a conversation starter is empty",
    ] {
        assert_eq!(
            checked.stderr.matches(expected).count(),
            1,
            "{expected}: {}",
            checked.stderr
        );
    }
    assert!(!checked.stderr.contains("{{name}}"), "{}", checked.stderr);
}
