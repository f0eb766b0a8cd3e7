//! Guards of a folder of tools: scripts that would ask on a terminal.

use super::run;
use harness::daemon::TestDaemon;
use harness::sandbox::Sandbox;
use serde_json::json;
use std::fs;

/// Asks where there is a terminal, and takes all but an n for a yes.
const ASKS: &str = "#!/usr/bin/env bash\nmain() {\n  if [ -t 1 ]; then\n    read -r -p \"${1:-Sure?} [Y/n] \" answer\n    \
                    case \"$answer\" in n|N) echo 'stopped' >&2; exit 1 ;; esac\n  fi\n}\nmain \"$@\"\n";

/// A folder as it is found elsewhere: its tools call scripts that would ask on a terminal.
fn with_guards() -> TestDaemon {
    let sandbox = Sandbox::new();
    let root = sandbox.path("my functions");
    fs::create_dir_all(root.join("tools")).unwrap();
    fs::create_dir_all(root.join("utils")).unwrap();
    for name in ["guard_operation.sh", "guard_path.sh"] {
        let path = root.join("utils").join(name);
        fs::write(&path, ASKS).unwrap();
        harness::sandbox::set_mode(&path, 0o755);
    }
    let tool = |call: &str| {
        format!(
            "# @describe T.\n# @option --path P\nmain() {{ set -e; \"$LLM_ROOT_DIR/utils/{call}; echo ran >> ran; echo done; }}\n\
             eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n"
        )
    };
    fs::write(
        root.join("tools/operate.sh"),
        tool("guard_operation.sh\" 'Really operate?'"),
    )
    .unwrap();
    fs::write(
        root.join("tools/remove.sh"),
        tool("guard_path.sh\" \"$argc_path\" \"Remove $argc_path?\""),
    )
    .unwrap();
    fs::write(
        root.join("tools/source.sh"),
        "# @describe T.\n# @option --how H\nmain() { if [ \"$argc_how\" = dot ]; then . \"$LLM_ROOT_DIR/utils/guard_operation.sh\" 'Really?'; \
         else cd \"$LLM_ROOT_DIR/utils\"; source guard_operation.sh 'Really?'; fi; cd \"$OLDPWD\"; echo ran >> \"$RAN\"; }\n\
         eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
    )
    .unwrap();
    fs::write(
        root.join("tools/past.sh"),
        tool("guard_operation.sh\" 'Really?'").replace("set -e; ", "set -e; env -i "),
    )
    .unwrap();
    fs::write(
        root.join("tools/borrow.sh"),
        "# @describe T.\nmain() { set -- a 'b c'; source \"$LLM_ROOT_DIR/utils/lib.sh\"; . \"$LLM_ROOT_DIR/utils/words.sh\" own words; \
         echo \"${map[k]} $count $said $# $?\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
    )
    .unwrap();
    fs::write(
        root.join("utils/lib.sh"),
        "declare -A map=([k]=v)\ncount=$#\n",
    )
    .unwrap();
    fs::write(root.join("utils/words.sh"), "said=\"$1-$2\"\nreturn 0\n").unwrap();
    fs::write(
        root.join(".env"),
        format!("FROM_ENV=1\nRAN={}\n", sandbox.work().join("ran").display()),
    )
    .unwrap();
    let config = format!("[script_tools]\nroots = [{root:?}]\n");
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    sandbox.permissions(
        &json!({"operate": "allow", "remove": "allow", "source": "allow", "borrow": "allow", "past": "allow"}),
    );
    TestDaemon::start_in(sandbox)
}

#[test]
fn a_guard_asks_through_an_approval_and_only_a_yes_is_one() {
    let daemon = with_guards();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    for (answer, ran) in [("deny", ""), ("allow", "ran\n")] {
        let id = client.send(
            "tool/run",
            json!({"session": session, "name": "operate", "arguments": {}}),
        );
        let asked = client.until_type("approval_asked").last().clone();
        assert_eq!(
            (&asked["tool"], &asked["why"]),
            (&json!("guard_operation"), &json!("Really operate?"))
        );
        client.answer(&asked["approval"], answer).unwrap();
        let result = client.response(id).unwrap();
        assert_eq!(result["ok"], answer == "allow", "{result}");
        assert_eq!(daemon.read("ran"), ran, "{result}");
    }
}

#[test]
fn a_guard_of_paths_asks_about_what_lies_outside_by_components_and_links() {
    let daemon = with_guards();
    fs::create_dir_all(daemon.path("work-secret")).unwrap();
    std::os::unix::fs::symlink("/etc", daemon.work().join("link")).unwrap();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    for inside in ["a%sb", "new/file"] {
        let result = run(&mut client, &session, "remove", &json!({"path": inside}));
        assert_eq!(result["output"], "done", "{inside}: {result}");
    }
    for outside in ["../work-secret/a", "link/passwd", "~/x"] {
        let arguments = json!({"path": outside});
        let id = client.send(
            "tool/run",
            json!({"session": session, "name": "remove", "arguments": arguments}),
        );
        let asked = client.until_type("approval_asked").last().clone();
        assert_eq!(asked["why"], format!("Remove {outside}?"));
        client.answer(&asked["approval"], "deny").unwrap();
        assert_eq!(client.response(id).unwrap()["ok"], false, "{outside}");
    }
}

#[test]
fn a_guard_that_is_sourced_asks_too() {
    let daemon = with_guards();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    for (how, answer, ran) in [
        ("dot", "deny", ""),
        ("dot", "allow", "ran\n"),
        ("source", "deny", "ran\n"),
        ("source", "allow", "ran\nran\n"),
    ] {
        let id = client.send(
            "tool/run",
            json!({"session": session, "name": "source", "arguments": {"how": how}}),
        );
        let asked = client.until_type("approval_asked").last().clone();
        assert_eq!(
            (&asked["tool"], &asked["why"]),
            (&json!("guard_operation"), &json!("Really?"))
        );
        client.answer(&asked["approval"], answer).unwrap();
        let result = client.response(id).unwrap();
        assert_eq!(result["ok"], answer == "allow", "{how}: {result}");
        assert_eq!(daemon.read("ran"), ran, "{how}: {result}");
    }
}

#[test]
fn what_is_sourced_beside_guards_is_as_it_was() {
    let daemon = with_guards();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let result = run(&mut client, &session, "borrow", &json!({}));
    assert_eq!(result["output"], "v 2 own-words 2 0", "{result}");
}

#[test]
fn a_tool_that_may_pass_its_guards_unseen_asks_before_it_runs() {
    let daemon = with_guards();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    for (answer, ran) in [("deny", ""), ("allow", "ran\n")] {
        let id = client.send(
            "tool/run",
            json!({"session": session, "name": "past", "arguments": {}}),
        );
        let asked = client.until_type("approval_asked").last().clone();
        assert_eq!(asked["tool"], "guard");
        let why = asked["why"].as_str().unwrap();
        assert!(why.contains("(line 3 of past.sh)"), "{why}");
        client.answer(&asked["approval"], answer).unwrap();
        let result = client.response(id).unwrap();
        assert_eq!(result["ok"], answer == "allow", "{result}");
        assert_eq!(daemon.read("ran"), ran, "{result}");
    }
}
