//! What bash scripts expect of argc.

use super::*;

const SHOW: &str = "main() { for v in $(compgen -v argc_ | grep -v '^argc__'); do declare -p \"$v\"; done; }\n\
                    eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";

async fn check(tags: &str, arguments: Value, expected: &str) {
    let result = run(
        "t.sh",
        &format!("# @describe T.\n{tags}\n{SHOW}"),
        arguments,
    )
    .await;
    let shown = result["output"].as_str().map(str::to_owned);
    assert_eq!(shown.as_deref(), Some(expected), "{tags}: {result}");
}

async fn refused(tags: &str, arguments: Value, expected: &str) {
    let bench = Bench::new();
    let result = run_in(
        &bench,
        "t.sh",
        &format!("# @describe T.\n{tags}\n{SHOW}"),
        arguments,
    )
    .await;
    let why = result["error"].as_str().unwrap_or_default();
    assert!(why.contains(expected), "{tags}: {result}");
    assert!(!bench.cwd().join("PWNED").exists());
}

#[tokio::test]
async fn values_become_variables_of_every_form() {
    check(
        "# @option --text! T",
        json!({"text": "-rf"}),
        "declare -- argc_text=\"-rf\"",
    )
    .await;
    check(
        "# @option -n <INT> N",
        json!({"n": -5}),
        "declare -- argc_n=\"-5\"",
    )
    .await;
    check(
        "# @option --many* M",
        json!({"many": ["-a", "b"]}),
        "declare -a argc_many=([0]=\"-a\" [1]=\"b\")",
    )
    .await;
    check(
        "# @option --foo-bar F\n# @option -name S",
        json!({"foo_bar": "1", "name": "-z"}),
        "declare -- argc_foo_bar=\"1\"\ndeclare -- argc_name=\"-z\"",
    )
    .await;
    check(
        "# @option --pair <A> <B> Two",
        json!({"pair": ["-1", "2"]}),
        "declare -a argc_pair=([0]=\"-1\" [1]=\"2\")",
    )
    .await;
    check(
        "# @flag --force F\n# @flag --dry D",
        json!({"force": true, "dry": false}),
        "declare -- argc_force=\"1\"",
    )
    .await;
    check(
        "# @arg src! S\n# @arg rest* R",
        json!({"src": "-s", "rest": ["--", "--help"]}),
        "declare -a argc_rest=([0]=\"--\" [1]=\"--help\")\ndeclare -- argc_src=\"-s\"",
    )
    .await;
    check(
        "# @option --n <NUM> N",
        json!({"n": 1.0}),
        "declare -- argc_n=\"1.0\"",
    )
    .await;
    check(
        "# @option --n <NUM> N",
        json!({"n": 12_345_678_901_234_567_890_u64}),
        "declare -- argc_n=\"12345678901234567890\"",
    )
    .await;
    check(
        "# @option --tags*, T",
        json!({"tags": ["p,q", "r"]}),
        "declare -a argc_tags=([0]=\"p,q\" [1]=\"r\")",
    )
    .await;
    check(
        "# @option --dot.name D\n# @option --ns:key N",
        json!({"dot.name": "d", "ns:key": "n"}),
        "declare -- argc_dot_name=\"d\"\ndeclare -- argc_ns_key=\"n\"",
    )
    .await;
}

#[tokio::test]
async fn options_called_help_and_version_are_options() {
    check(
        "# @option --version! V\n# @option --help H",
        json!({"version": "1", "help": "x"}),
        "declare -- argc_help=\"x\"\ndeclare -- argc_version=\"1\"",
    )
    .await;
}

#[tokio::test]
async fn what_is_left_out_is_its_default_or_nothing() {
    check(
        "# @option --a=1 A\n# @option --b='x y' B\n# @option --c C",
        json!({}),
        "declare -- argc_a=\"1\"\ndeclare -- argc_b=\"x y\"",
    )
    .await;
    check(
        "# @option --a A",
        json!({"a": ""}),
        "declare -- argc_a=\"\"",
    )
    .await;
    check(
        "# @option --user=`_user` U\n_user() { echo 'no body'; }",
        json!({}),
        "declare -- argc_user=\"no body\"",
    )
    .await;
    check(
        "# @option --a[=x|y] A",
        json!({}),
        "declare -- argc_a=\"x\"",
    )
    .await;
}

#[tokio::test]
async fn choices_are_checked_before_and_by_bash() {
    let evil = "c\nEOF\ntouch PWNED\n#";
    refused(
        "# @option --pick[a|b] P",
        json!({"pick": evil}),
        "is not one of",
    )
    .await;
    let tags = "# @option --to[`_to`] T\n_to() { echo alpha; echo 'beta two'; }";
    check(
        tags,
        json!({"to": "beta two"}),
        "declare -- argc_to=\"beta two\"",
    )
    .await;
    refused(tags, json!({"to": evil}), "error: to cannot be").await;
    check(
        "# @option --a[\"x\\\"y\"|z] A",
        json!({"a": "x\"y"}),
        "declare -- argc_a=\"x\\\"y\"",
    )
    .await;
}

#[tokio::test]
async fn what_a_script_needs_is_named_when_it_is_missing() {
    refused("# @env SVC_TOKEN! T", json!({}), "SVC_TOKEN is not set").await;
    refused(
        "# @meta require-tools no-such-one,bash",
        json!({}),
        "missing programs: no-such-one",
    )
    .await;
}

#[tokio::test]
async fn environment_defaults_hooks_and_dotenv_work() {
    let bench = Bench::new();
    bench.write("extra.env", "FROM_FILE=$(touch PWNED)\n");
    let code = "# @describe T.\n# @env URL=https://x.invalid U\n# @meta dotenv extra.env\n_argc_before() { echo before; }\n\
                _argc_after() { echo after; }\nmain() { echo \"$URL $FROM_FILE\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let result = run_in(&bench, "t.sh", code, json!({})).await;
    assert_eq!(
        result["output"],
        "before\nhttps://x.invalid $(touch PWNED)\nafter"
    );
    assert!(!bench.cwd().join("PWNED").exists());
}

#[tokio::test]
async fn a_key_of_a_prefixed_option_is_never_evaluated() {
    let code = "# @describe T.\n# @option --define-* D\nmain() { for k in \"${!argc_define[@]}\"; do echo \"$k=${argc_define[$k]}\"; \
                done; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let bench = Bench::new();
    let key = "a]$(touch PWNED)";
    let result = run_in(
        &bench,
        "t.sh",
        code,
        json!({"define": [format!("{key}=v")]}),
    )
    .await;
    assert!(!bench.cwd().join("PWNED").exists(), "{result}");
}

#[tokio::test]
async fn another_script_that_a_tool_calls_is_read_by_its_words() {
    let bench = Bench::new();
    bench.write(
        "inner.sh",
        "# @option --pick[a|b] P\nmain() { echo \"inner $argc_pick\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
    );
    let code = "# @describe T.\n# @option --pick! P\nmain() { bash inner.sh --pick \"$argc_pick\"; }\n\
                eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let result = run_in(&bench, "t.sh", code, json!({"pick": "a"})).await;
    assert_eq!(result["output"], "inner a");
    let result = run_in(
        &bench,
        "t.sh",
        code,
        json!({"pick": "c\nEOF\ntouch PWNED\n#"}),
    )
    .await;
    assert_eq!(result["exit_status"], 1, "{result}");
    assert!(!bench.cwd().join("PWNED").exists());
}

#[tokio::test]
async fn a_script_that_reads_its_own_words_gets_them() {
    let code = "# @describe T.\n# @option --text! T\n# @flag --dry D\n# @arg file F\nprintf '<%s>' \"$@\"\n";
    let result = run(
        "t.sh",
        code,
        json!({"text": "a b", "dry": true, "file": "-x"}),
    )
    .await;
    assert_eq!(result["output"], "<--text=a b><--dry><--><-x>");
}

#[tokio::test]
async fn null_is_not_given_and_empty_is_given() {
    check(
        "# @option --a A\n# @option --b B",
        json!({"a": null, "b": ""}),
        "declare -- argc_b=\"\"",
    )
    .await;
    refused(
        "# @option --a! A",
        json!({"a": null}),
        "missing required properties: a",
    )
    .await;
}

#[tokio::test]
async fn a_script_that_argc_does_not_answer_is_a_failure_with_what_was_said() {
    for (asks, says) in [
        (
            "unset -f argc; PATH=/none; eval \"$(argc --argc-eval \"$0\" \"$@\")\"",
            "argc: command not found",
        ),
        (
            "eval \"$(kill -9 $BASHPID)\"; : --argc-eval",
            "argc gave no answer",
        ),
        (
            "eval \"$(argc --argc-nothing)\"; : --argc-eval",
            "--argc-nothing needs it",
        ),
        (
            "echo begun; eval \"$(/none/argc --argc-eval \"$0\" \"$@\")\"",
            "/none/argc",
        ),
    ] {
        let script = format!("# @describe T.\nmain() {{ echo ran; }}\n{asks}\n");
        let result = run("t.sh", &script, json!({})).await;
        assert_eq!(result["ok"], false, "{asks}: {result}");
        assert!(
            result["error"].as_str().unwrap().contains(says),
            "{asks}: {result}"
        );
    }
    // Who asks nobody needs no answer.
    let result = run("t.sh", "# @describe T.\n# argc --argc-eval\n:\n", json!({})).await;
    assert_eq!(result["output"], "(no output)");
}

#[tokio::test]
async fn what_a_script_does_before_it_asks_counts() {
    let script = "# @describe T.\n# @env TOKEN! T\n# @env MODE=slow M\n# @option --text $BOUND T\nexport TOKEN=secret MODE=fast BOUND=tied\n\
                  main() { echo \"$TOKEN $MODE $argc_text\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let result = run("t.sh", script, json!({})).await;
    assert_eq!(result["output"], "secret fast tied", "{result}");
}

#[tokio::test]
async fn only_the_called_script_and_its_own_words_get_the_calls_answer() {
    let script = "# @describe T.\n# @option --text! T\n\
                  main() { if [ \"$argc_text\" = again ]; then bash \"$0\" --text=other; env argc --argc-eval \"$0\" --text=third | grep -c '^argc_text=third'; \
                  bash -c 'type -t argc'; else echo \"$argc_text\"; fi; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let result = run("t.sh", script, json!({"text": "again"})).await;
    assert_eq!(result["output"], "other\n1\nfile", "{result}");
    let result = run(
        "t.sh",
        &script.replace("$(argc", "$(env argc"),
        json!({"text": "-x"}),
    )
    .await;
    assert_eq!(result["output"], "-x", "{result}");
}

#[tokio::test]
async fn the_sessions_own_beginning_of_bash_is_kept() {
    let mut bench = Bench::new();
    let own = bench.write("own.bash", "own=begun\n");
    bench
        .env
        .insert("BASH_ENV".into(), own.to_str().unwrap().into());
    let script = "# @describe T.\nmain() { echo \"$own $(bash -c 'echo $own')\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let result = run_in(&bench, "t.sh", script, json!({})).await;
    assert_eq!(result["output"], "begun begun", "{result}");
}

#[tokio::test]
async fn a_required_option_may_come_from_the_variable_that_it_is_bound_to() {
    let text = "# @describe T.\n# @option --tok! $DWELL_TEST_TOK T\nmain() { echo \"tok=$argc_tok\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let bench = Bench::new();
    let result = run_in(&bench, "b.sh", text, json!({})).await;
    let why = result["error"].as_str().unwrap_or_default();
    assert!(
        why.contains("tok is required") && why.contains("DWELL_TEST_TOK"),
        "{result}"
    );
    bench.write("my root/.env", "DWELL_TEST_TOK=from file\n");
    let result = run_in(&bench, "b.sh", text, json!({})).await;
    assert_eq!(result["output"], "tok=from file", "{result}");
    let result = run_in(&bench, "b.sh", text, json!({"tok": "given"})).await;
    assert_eq!(result["output"], "tok=given", "{result}");
}
