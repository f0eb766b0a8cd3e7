//! Which calls may run.

use super::pattern::escape;
use super::place::{Ground, Place};
use super::rules::{Rules, Trusted};
use super::{Files, Permissions};
use crate::toolbox::tool::{Access, Tool};
use proptest::prelude::*;
use protocol::tool::Policy::{self, Allow, Ask, Deny};
use serde_json::{Map, Value, json};

fn execute() -> Tool {
    Tool::new("execute", "")
        .alias("bash")
        .access(Access::Execute)
        .shell("command")
        .path("cwd")
}

fn read() -> Tool {
    Tool::new("read", "").access(Access::Read).path("path")
}

fn write() -> Tool {
    Tool::new("write", "").access(Access::Write).path("path")
}

fn ground() -> Ground {
    Ground {
        cwd: "/srv/here".into(),
        spill_dir: "/spill".into(),
        home: Some("/home/me".into()),
    }
}

fn parsed(rules: &Value) -> Rules {
    Rules::parse(&rules.to_string()).unwrap()
}

fn user(rules: &Value) -> Permissions {
    let home = Some("/home/me".into());
    Permissions::new(Files {
        user: parsed(rules),
        home,
        ..Files::default()
    })
}

fn both(user: &Value, workspace: &Value, trusted: Trusted) -> Permissions {
    let (user, workspace) = (parsed(user), parsed(workspace));
    Permissions::new(Files {
        user,
        workspace,
        trusted,
        ..Files::default()
    })
}

fn judge(permissions: &Permissions, tool: &Tool, arguments: &Value) -> Policy {
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    let place = |param: &&str| {
        arguments
            .get(*param)
            .and_then(Value::as_str)
            .map(|path| ground().place(path))
    };
    let places: Vec<Place> = tool.paths.iter().filter_map(place).collect();
    permissions.judge_at(tool, &arguments, places).policy
}

fn run(permissions: &Permissions, command: &str) -> Policy {
    judge(permissions, &execute(), &json!({"command": command}))
}

fn check(rules: &Value, table: &[(&str, Policy)]) {
    let permissions = user(rules);
    for (command, expected) in table {
        assert_eq!(
            run(&permissions, command),
            *expected,
            "{command:?} under {rules}"
        );
    }
}

#[test]
fn without_rules_reading_inside_is_allowed_and_all_else_asks() {
    let none = user(&json!({}));
    assert_eq!(judge(&none, &read(), &json!({"path": "src/a.rs"})), Allow);
    assert_eq!(
        judge(&none, &read(), &json!({"path": "/spill/c1.txt"})),
        Allow
    );
    for path in ["../x", "/etc/passwd", "~/.ssh/id", "src/../../x"] {
        assert_eq!(judge(&none, &read(), &json!({"path": path})), Ask, "{path}");
    }
    assert_eq!(judge(&none, &write(), &json!({"path": "a"})), Ask);
    assert_eq!(run(&none, "true"), Ask);
    assert_eq!(run(&none, ""), Ask);
    assert_eq!(judge(&none, &Tool::new("other", ""), &json!({})), Ask);
    assert_eq!(
        judge(
            &none,
            &Tool::new("todo", "").access(Access::Nothing),
            &json!({})
        ),
        Allow
    );
}

#[test]
fn the_narrowest_pattern_wins_and_a_tie_takes_the_stricter() {
    let rules = json!({"execute": {"git status*": "allow", "rm *": "deny", "*": "ask"}});
    check(
        &rules,
        &[
            ("git status", Allow),
            ("git status -s", Allow),
            ("rm x", Deny),
            ("rm", Deny),
            ("ls", Ask),
            ("git push", Ask),
        ],
    );
    let tie = json!({"execute": {"git pus?": "allow", "git *ush": "deny"}});
    check(&tie, &[("git push", Deny)]);
    let narrow = json!({"execute": {"rm *": "deny", "rm build/*": "allow"}});
    check(
        &narrow,
        &[
            ("rm build/x", Allow),
            ("rm x", Deny),
            ("rm build/x y; rm z", Deny),
        ],
    );
}

#[test]
fn a_list_is_as_strict_as_its_strictest_command() {
    let rules =
        json!({"execute": {"git status*": "allow", "ls*": "allow", "rm *": "deny", "*": "ask"}});
    check(
        &rules,
        &[
            ("git status && ls", Allow),
            ("git status; rm -rf ~", Deny),
            ("git status\nrm -rf ~", Deny),
            ("git status & rm x", Deny),
            ("git status | rm x", Deny),
            ("git status || rm x", Deny),
            ("git status;rm x", Deny),
            ("git status && make", Ask),
            ("git status 2>&1 | ls", Allow),
            ("git status '; rm x'", Allow),
        ],
    );
}

#[test]
fn nothing_slips_through_a_pattern_that_allows() {
    let rules = json!({"execute": {"git status*": "allow"}});
    let lines = [
        "git status $(rm x)",
        "git status `rm x`",
        "git status \"$(rm x)\"",
        "git status <(rm x)",
        "git status > ~/.bashrc",
        "git status >> x",
        "git status 2> x",
        "git status &>/dev/null rm x",
        "git status\nrm x",
        "git status\r\nrm x",
        "git status\u{2028}rm x",
        "git status <<EOF\nEOF\nrm x",
        "git status # \nrm x",
        "git status \\\n; rm x",
        "git status '\nrm x",
        "git status \"\\\" ; rm x",
        "git status ${IFS}",
        "FOO=bar git status",
        "PATH=/tmp git status",
        "/tmp/git status",
        "./git status",
        "env git status",
        "sudo git status",
        "xargs git status",
        "sh -c 'git status'",
        "eval git status",
        "git\u{a0}status",
        "'git status'",
        "git 'status'",
        "(git status)",
        "if git status; then rm x; fi",
        "git status & (rm x)",
        "alias git=rm",
        "git() { rm x; }",
    ];
    let permissions = user(&rules);
    for line in lines {
        assert_eq!(run(&permissions, line), Ask, "{line:?}");
    }
}

#[test]
fn nothing_slips_past_a_pattern_that_forbids() {
    let rules = json!({"execute": {"*": "allow", "rm *": "deny", "git push*": "ask"}});
    let denied = [
        "rm x",
        "r'm' x",
        "\\rm x",
        "/bin/rm x",
        "FOO=bar rm x",
        "rm\tx",
        "true; rm x",
        "echo $(rm x)",
        "echo `rm x`",
        "sudo rm x",
        "sudo -u bob rm x",
        "env A=1 rm x",
        "sh -c 'rm x'",
        "xargs -n1 rm",
        "timeout 5 rm x",
        "nohup nice rm x",
        "find . -exec rm {} +",
        "x86_64 rm x",
        "if true; then rm x; fi",
        "(rm x)",
    ];
    for line in denied {
        check(&rules, &[(line, Deny)]);
    }
    let asked = [
        "git push",
        "git  push",
        "git p'us'h",
        "/usr/bin/git push",
        "git --no-pager push",
        "git -p push o",
        "/usr/bin/git --literal-pathspecs -p push o",
        "git -C . push o",
        "npm exec x",
        "rustup run stable x",
        "x86_64 ls",
        "A=1 git push",
        "git pu$x",
        "git $x",
        "git pus*",
        "git pus?",
        "git {push,x}",
        "$x",
        "X=rm; $X y",
        "timeout 5 git push",
        "echo $(echo)",
        "bash x.sh",
        "echo x > y",
    ];
    for line in asked {
        check(&rules, &[(line, Ask)]);
    }
    check(
        &rules,
        &[
            ("echo $HOME", Allow),
            ("ls *.rs", Allow),
            ("git status", Allow),
            ("git --no-pager log", Allow),
            ("timeout 5 make", Allow),
        ],
    );
}

#[test]
fn a_wildcard_allows_what_destroys_only_where_it_names_it() {
    let rules = json!({"execute": {
        "find *": "allow",
        "find build * -delete": "allow",
        "git *": "allow",
        "git push --force*": "deny",
        "git clean -n*": "allow",
        "git mine *": "allow",
        "tar *": "allow",
        "sort -o a b": "allow",
    }});
    check(
        &rules,
        &[
            ("find . -name x", Allow),
            ("find . -delete", Ask),
            ("find . -fprint x", Ask),
            ("find build -name x -delete", Allow),
            ("find build -name x -delete -fprint y", Ask),
            ("find . -exec rm {} +", Ask),
            ("find build -exec rm {} + -delete", Ask),
            ("timeout 5 find . -delete", Ask),
            ("ls; find . -delete", Ask),
            ("git status", Allow),
            ("git reset --hard", Ask),
            ("git push -f", Ask),
            ("git push --force", Deny),
            ("git clean -n", Allow),
            ("git clean -fd", Ask),
            ("git -c core.pager=x log", Ask),
            ("tar tf a.tar", Allow),
            ("tar xf a.tar", Ask),
            ("find -- build -delete", Ask),
            ("find -- . -exec rm {} +", Ask),
            ("git zz", Ask),
            ("git mine x", Allow),
            ("git checkout -- .", Ask),
            ("tar xf a.tar --to-command=x", Ask),
            ("sort -o a b", Allow),
        ],
    );
    check(
        &json!({"execute": "allow"}),
        &[("find . -delete", Allow), ("find . -exec rm {} +", Allow)],
    );
    let granted = user(&json!({"execute": {"find *": "allow"}}))
        .with_grant("execute", &escape("find . -delete"));
    assert_eq!(run(&granted, "find . -delete"), Allow);
    assert_eq!(run(&granted, "find /tmp -delete"), Ask);
}

#[test]
fn a_tool_that_is_allowed_as_a_whole_is_not_looked_at() {
    check(
        &json!({"execute": "allow"}),
        &[("echo $(x) > y", Allow), ("sudo x", Allow)],
    );
    check(
        &json!({"execute": {"*": "allow"}}),
        &[("echo x", Allow), ("echo $(x)", Ask)],
    );
    check(
        &json!({"execute": "deny"}),
        &[("echo x", Deny), ("", Deny), ("(", Deny)],
    );
    let mixed = both(
        &json!({"execute": "allow"}),
        &json!({"execute": {"rm *": "deny"}}),
        Trusted::No,
    );
    for (line, expected) in [
        ("ls", Allow),
        ("rm x", Deny),
        ("echo $(rm x)", Deny),
        ("echo $(x)", Ask),
    ] {
        assert_eq!(run(&mixed, line), expected, "{line}");
    }
}

#[test]
fn a_rule_for_this_very_line_allows_what_cannot_be_split() {
    let rules = json!({"execute": {"for x in a; do echo $x; done": "allow", "echo \\*": "allow"}});
    check(
        &rules,
        &[
            ("for x in a; do echo $x; done", Allow),
            ("for x in a; do rm $x; done", Ask),
            ("echo *", Allow),
            ("echo x", Ask),
        ],
    );
}

#[test]
fn a_rule_may_stand_under_an_alias() {
    check(&json!({"bash": "deny"}), &[("ls", Deny)]);
}

#[test]
fn rules_for_every_tool_give_way_to_a_tools_own() {
    let permissions = user(&json!({"*": "deny", "execute": "allow"}));
    assert_eq!(run(&permissions, "ls"), Allow);
    assert_eq!(judge(&permissions, &read(), &json!({"path": "a"})), Deny);
}

#[test]
fn a_command_elsewhere_asks_unless_the_tool_is_allowed_as_a_whole() {
    let elsewhere = json!({"command": "make", "cwd": "/tmp"});
    assert_eq!(
        judge(
            &user(&json!({"execute": {"make": "allow"}})),
            &execute(),
            &elsewhere
        ),
        Ask
    );
    assert_eq!(
        judge(&user(&json!({"execute": "allow"})), &execute(), &elsewhere),
        Allow
    );
    assert_eq!(
        judge(
            &user(&json!({"execute": {"make": "deny"}})),
            &execute(),
            &elsewhere
        ),
        Deny
    );
    let here = json!({"command": "make", "cwd": "src"});
    assert_eq!(
        judge(
            &user(&json!({"execute": {"make": "allow"}})),
            &execute(),
            &here
        ),
        Allow
    );
}

#[test]
fn relative_patterns_allow_inside_only_and_forbid_everywhere() {
    let rules = json!({"write": {"*": "allow", "*.env": "deny", "/tmp/*": "allow", "~/notes/*": "allow", "secrets/*": "ask"}});
    let permissions = user(&rules);
    let table = [
        ("src/a", Allow),
        ("../a", Ask),
        ("/etc/a", Ask),
        ("/tmp/a", Allow),
        ("/tmp/../etc/a", Ask),
        ("~/notes/a", Allow),
        ("~/other", Ask),
        (".env", Deny),
        ("/etc/x.env", Deny),
        ("a/../.env", Deny),
        ("secrets/a", Ask),
        ("./secrets/../secrets/a", Ask),
    ];
    for (path, expected) in table {
        assert_eq!(
            judge(&permissions, &write(), &json!({"path": path})),
            expected,
            "{path}"
        );
    }
}

#[test]
fn links_do_not_smuggle_a_path_into_a_pattern_that_allows() {
    let root = tempfile::TempDir::new().unwrap();
    std::os::unix::fs::symlink("/etc", root.path().join("src")).unwrap();
    let ground = Ground {
        cwd: root.path().to_owned(),
        spill_dir: "/spill".into(),
        home: None,
    };
    let permissions = user(&json!({"write": {"src/*": "allow"}}));
    let places = vec![ground.place("src/passwd")];
    assert_eq!(
        permissions.judge_at(&write(), &Map::new(), places).policy,
        Ask
    );
}

#[test]
fn a_workspace_may_forbid_always_and_allow_only_when_trusted() {
    let (allow, deny) = (
        json!({"execute": {"ls": "allow"}}),
        json!({"execute": {"ls": "deny"}}),
    );
    let (none, ask) = (json!({}), json!({"execute": "ask"}));
    let table = [
        (&none, &allow, Trusted::No, Ask),
        (&none, &allow, Trusted::Yes, Allow),
        (&none, &deny, Trusted::No, Deny),
        (&allow, &deny, Trusted::No, Deny),
        (&deny, &allow, Trusted::Yes, Deny),
        (&ask, &allow, Trusted::Yes, Allow),
        (&allow, &ask, Trusted::No, Allow),
    ];
    for (user, workspace, trusted, expected) in table {
        let permissions = both(user, workspace, trusted);
        assert_eq!(
            run(&permissions, "ls"),
            expected,
            "{user} then {workspace}, {trusted:?}"
        );
    }
}

#[test]
fn a_trusted_workspace_has_the_last_word_on_the_same_pattern_but_not_over_a_no() {
    let (allow, ask, deny) = (
        json!({"execute": "allow"}),
        json!({"execute": "ask"}),
        json!({"execute": "deny"}),
    );
    let table = [
        (&ask, &allow, Trusted::Yes, Allow),
        (&ask, &allow, Trusted::No, Ask),
        (&allow, &ask, Trusted::Yes, Ask),
        (&allow, &ask, Trusted::No, Ask),
        (&deny, &allow, Trusted::Yes, Deny),
        (&allow, &deny, Trusted::No, Deny),
    ];
    for (user, workspace, trusted, expected) in table {
        assert_eq!(
            run(&both(user, workspace, trusted), "ls"),
            expected,
            "{user} {workspace} {trusted:?}"
        );
    }
}

#[test]
fn a_grant_turns_a_question_into_a_yes_and_never_a_no() {
    let rules = json!({"execute": {"rm *": "deny", "git push*": "ask"}});
    let permissions = user(&rules)
        .with_grant("execute", "git push")
        .with_grant("execute", "make");
    for (line, expected) in [
        ("git push", Allow),
        ("git push -f", Ask),
        ("make", Allow),
        ("make; ls", Ask),
        ("make && git push", Allow),
        ("make $(x)", Ask),
        ("rm x", Deny),
    ] {
        assert_eq!(run(&permissions, line), expected, "{line}");
    }
    let all = user(&rules).with_grant("execute", "*");
    for (line, expected) in [
        ("git push", Allow),
        ("ls", Allow),
        ("rm x", Deny),
        ("echo $(x)", Ask),
        ("sudo rm x", Deny),
    ] {
        assert_eq!(run(&all, line), expected, "{line}");
    }
    let free = user(&json!({})).with_grant("execute", "*");
    assert_eq!(run(&free, "echo $(x)"), Allow);
    assert_eq!(judge(&free, &write(), &json!({"path": "a"})), Ask);
}

#[test]
fn a_policy_for_the_whole_toolbox_leaves_only_what_is_denied() {
    let rules = json!({"execute": {"rm *": "deny", "*": "ask"}});
    let permissions = user(&rules).with_policy(Allow);
    for (line, expected) in [("ls", Allow), ("echo $(x)", Allow), ("rm x", Deny)] {
        assert_eq!(run(&permissions, line), expected, "{line}");
    }
    assert_eq!(
        judge(
            &user(&rules).with_policy(Ask),
            &read(),
            &json!({"path": "a"})
        ),
        Ask
    );
    assert_eq!(
        judge(
            &user(&rules).with_policy(Deny),
            &read(),
            &json!({"path": "a"})
        ),
        Deny
    );
}

#[test]
fn a_file_that_cannot_be_read_closes_everything_but_a_no() {
    let files = Files {
        user: parsed(&json!({"execute": {"ls": "allow", "rm *": "deny"}})),
        problems: vec!["~/.agents/permissions.json: not JSON".to_owned()],
        ..Files::default()
    };
    let permissions = Permissions::new(files).with_grant("read", "*");
    assert_eq!(run(&permissions, "ls"), Ask);
    assert_eq!(run(&permissions, "rm x"), Deny);
    assert_eq!(judge(&permissions, &read(), &json!({"path": "a"})), Ask);
    assert_eq!(permissions.shown(&read()), Ask);
}

#[test]
fn files_that_are_not_rules_are_refused_with_the_place() {
    let table = [
        ("", "not JSON"),
        ("[]", "expected an object of tools"),
        (
            r#"{"execute": "alow"}"#,
            r#""execute" should be allow, ask or deny, not "alow" at line 1"#,
        ),
        (
            "{\"read\": \"ask\",\n \"execute\": {\n  \"rm *\": \"never\"}}",
            r#""execute", "rm *" should be allow, ask or deny, not "never" at line 3"#,
        ),
        (
            r#"{"execute": {"rm *": true}}"#,
            r#"expected allow, ask or deny for "execute", "rm *" at line 1"#,
        ),
        (
            "{\n\"execute\": 1}",
            r#"expected allow, ask, deny or an object of patterns for "execute" at line 2"#,
        ),
        ("{\n\n\"execute\": }", "not JSON: expected value at line 3"),
    ];
    for (text, expected) in table {
        let said = Rules::parse(text).expect_err(text);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_is_shown_of_a_tool_needs_no_arguments() {
    let permissions = user(
        &json!({"execute": {"*": "deny", "ls": "allow"}, "write": {"a": "allow"}, "read": "ask"}),
    );
    assert_eq!(permissions.shown(&execute()), Deny);
    assert_eq!(permissions.shown(&write()), Ask);
    assert_eq!(permissions.shown(&read()), Ask);
    assert_eq!(user(&json!({})).shown(&read()), Allow);
    assert_eq!(
        user(&json!({})).with_grant("write", "*").shown(&write()),
        Allow
    );
}

#[test]
fn a_suggestion_covers_the_call_it_was_made_for_and_no_other() {
    let cwd = std::path::Path::new("/srv/here");
    let none = user(&json!({}));
    let calls = [
        (
            execute(),
            json!({"command": "rm *"}),
            json!({"command": "rm x"}),
        ),
        (
            execute(),
            json!({"command": "echo $(date) > x"}),
            json!({"command": "echo $(date) > y"}),
        ),
        (
            execute(),
            json!({"command": " ls; make "}),
            json!({"command": "ls; make x"}),
        ),
        (write(), json!({"path": "src/a"}), json!({"path": "src/b"})),
        (read(), json!({"path": "../a"}), json!({"path": "../b"})),
        (
            Tool::new("git", "").words(&["command", "args"]),
            json!({"command": "log", "args": ["a b"]}),
            json!({"command": "log", "args": ["a", "b"]}),
        ),
        (Tool::new("other", ""), json!({"a": 1}), json!({"a": 2})),
    ];
    for (tool, arguments, other) in calls {
        assert_eq!(judge(&none, &tool, &arguments), Ask, "{arguments}");
        let pattern = Permissions::suggest(&tool, arguments.as_object().unwrap(), cwd);
        let granted = none.with_grant(tool.name(), &pattern);
        assert_eq!(
            judge(&granted, &tool, &arguments),
            Allow,
            "{arguments} by {pattern}"
        );
        assert_eq!(judge(&granted, &tool, &other), Ask, "{other} by {pattern}");
    }
}

#[test]
fn a_wide_grant_is_held_to_what_a_rule_is_held_to() {
    let permissions = user(
        &json!({"execute": {"git push*": "ask", "git reset*": "deny"}, "write": {"src/*": "ask"}}),
    );
    let granted = permissions
        .with_grant("execute", "git *")
        .with_grant("execute", "find *")
        .with_grant("write", "src/a/*");
    let table = [
        ("git status", Allow),
        ("git status; git log", Allow),
        ("git push", Ask),
        ("git reset --hard", Deny),
        ("git $x", Ask),
        ("git -c a=b status", Ask),
        ("git status > x", Ask),
        ("git status; ls", Ask),
        ("git status && $(x)", Ask),
        ("sudo git status", Ask),
        ("find . -name x", Allow),
        ("find . -delete", Ask),
        ("find . -exec x {} +", Ask),
    ];
    for (line, expected) in table {
        assert_eq!(run(&granted, line), expected, "{line}");
    }
    let write_to = |path: &str| judge(&granted, &write(), &json!({"path": path}));
    assert_eq!(write_to("src/a/b"), Allow);
    assert_eq!(write_to("src/b"), Ask);
    assert_eq!(write_to("src/a/../../../x"), Ask);
}

#[test]
fn a_pattern_covers_what_is_hidden_only_by_its_name() {
    let rules = json!({"write": {"src/*": "allow", "/opt/*": "allow", ".github/*": "allow"}});
    let hidden = [
        "src/.git/hooks/pre-commit",
        "src/a/.git/config",
        "src/.envrc",
        "src/.agents/permissions.json",
        "src/../src/./.cargo/config.toml",
        "/opt/.x",
        ".github/.git/x",
    ];
    let by_rule = user(&rules);
    let granted = user(&json!({}))
        .with_grant("write", "src/*")
        .with_grant("write", "/opt/*")
        .with_grant("write", ".github/*");
    let write_to = |permissions: &Permissions, path: &str| {
        judge(permissions, &write(), &json!({"path": path}))
    };
    for permissions in [&by_rule, &granted] {
        for path in hidden {
            assert_eq!(write_to(permissions, path), Ask, "{path}");
        }
        for path in ["src/a.rs", "/opt/x", ".github/workflows/x.yml"] {
            assert_eq!(write_to(permissions, path), Allow, "{path}");
        }
        let named = permissions.with_grant("write", "src/.cargo/*");
        assert_eq!(write_to(&named, "src/.cargo/config.toml"), Allow);
    }
    for all in [json!({"write": "allow"}), json!({"write": {"*": "allow"}})] {
        assert_eq!(write_to(&user(&all), ".git/config"), Allow, "{all}");
    }
    let reads = user(&json!({"read": {"src/*": "allow"}}));
    assert_eq!(judge(&reads, &read(), &json!({"path": "src/.x"})), Allow);
}

#[test]
fn what_is_suggested_allows_the_call_and_nothing_that_is_hidden_behind_it() {
    let permissions = user(&json!({"execute": {"ls *": "allow"}}));
    let of = |line: &str| {
        let arguments = json!({"command": line});
        let arguments = arguments.as_object().unwrap();
        permissions.suggestions_at(&execute(), arguments, &[ground().here()])
    };
    assert_eq!(
        of("ls && cargo test x"),
        ["cargo test *", "ls && cargo test x"]
    );
    assert_eq!(
        of("cargo fmt && cargo test"),
        ["cargo fmt && cargo test"],
        "no one pattern covers both"
    );
    assert_eq!(of("pytest --basetemp x"), ["pytest --basetemp x"]);
    for line in [
        "cargo test",
        "npm run build",
        "git add x",
        "pytest x",
        "ls -l",
    ] {
        for pattern in of(line) {
            let granted = user(&json!({"execute": {pattern.as_str(): "allow"}}));
            for more in [
                "; rm x", " && rm x", " | sh", " $(rm x)", " `rm x`", " > x", "\nrm x", " & rm x",
                " <(rm x)",
            ] {
                let line = format!("{line}{more}");
                assert_eq!(run(&granted, &line), Ask, "{line} by {pattern}");
            }
            for before in ["sudo ", "env ", "sh -c ", "X=1 ", "xargs ", "nohup env "] {
                let line = format!("{before}{line}");
                assert_eq!(run(&granted, &line), Ask, "{line} by {pattern}");
            }
        }
    }
}

const RULES: &str = r#"{"execute": {"git status*": "allow", "ls*": "allow", "echo *": "allow", "rm *": "deny", "git push*": "ask"}}"#;

fn policy(line: &str) -> Policy {
    static RULED: std::sync::LazyLock<Permissions> =
        std::sync::LazyLock::new(|| user(&serde_json::from_str(RULES).unwrap()));
    run(&RULED, line)
}

/// Commands, harmless and not, as a model or an attacker may write them.
fn simple() -> impl Strategy<Value = String> {
    let words = [
        "git status",
        "ls",
        "ls -l",
        "echo a",
        "rm x",
        "git push",
        "make",
        "r\\m x",
        "'rm' x",
        "FOO=1 rm x",
        "/bin/rm x",
        "echo \"a;b\"",
        "echo 'rm x'",
    ];
    proptest::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_joint_is_less_strict_than_its_commands(
        commands in proptest::collection::vec(simple(), 1..5),
        joints in proptest::collection::vec(proptest::sample::select(vec![";", " && ", "||", "|", "\n", " & ", " ;\n", "|&", "&>/dev/null "]), 5),
    ) {
        let mut line = String::new();
        for (command, joint) in commands.iter().zip(&joints) {
            line.push_str(command);
            line.push_str(joint);
        }
        let strictest = commands.iter().map(|command| policy(command)).max().unwrap_or(Allow);
        // A dangling `&&` or `|` is the shell's to refuse; what counts is that it is never less strict.
        prop_assert!(policy(&line) >= strictest, "{line:?}: {:?} < {strictest:?}", policy(&line));
    }

    #[test]
    fn what_is_put_around_a_forbidden_command_never_allows_it(
        before in proptest::sample::select(vec!["", "ls; ", "echo $(", "echo \"$(", "echo `", "(", "{ ", "if true; then ", "env ", "sudo ", "X=1 ", "git status \n", "! ", "exec ", "time ", "echo a | xargs ", "ls &&", "eval ", "sh -c '", "echo \"a\" & "]),
        command in proptest::sample::select(vec!["rm x", "\\rm x", "r'm' x", "git push"]),
        after in proptest::sample::select(vec!["", ")", "`", "; }", "; fi", "'", "\n", " #", "\")"]),
    ) {
        let line = format!("{before}{command}{after}");
        prop_assert_ne!(policy(&line), Allow, "{:?}", line);
    }

    #[test]
    fn any_text_is_judged_without_a_panic(line in "\\PC{0,60}", rough in "[ -~\n\t]{0,60}") {
        policy(&line);
        policy(&rough);
    }

    #[test]
    fn random_shell_text_is_allowed_only_when_every_cut_of_it_is(line in "(git status|ls|rm x|echo a|;|&|\\||\n|'|\"|\\\\| |\\$|`|\\(|\\)|#|<|>|=|x){1,12}") {
        // Whatever the quotes, a line that is allowed holds nothing that a shell could take for a substitution,
        // a group, a stream to a file or a comment, but inside single quotes or behind a backslash.
        if policy(&line) == Allow {
            let bare = unquoted(&line);
            for mark in ["$(", "`", "(", ")", " #"] {
                prop_assert!(!bare.contains(mark), "{line:?} has {mark:?} in {bare:?}");
            }
        }
    }
}

/// What is left of a line without what is in quotes or escaped.
fn unquoted(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => drop(chars.by_ref().find(|c| *c == '\'')),
            '\\' => drop(chars.next()),
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => drop(chars.next()),
                        '$' | '`' => out.push(c),
                        _ => {}
                    }
                }
            }
            c => out.push(c),
        }
    }
    out
}
