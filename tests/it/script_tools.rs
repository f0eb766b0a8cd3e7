//! Scripts as tools, as a person has them: files in folders, `tool/list`, turns and the command line.

mod files;
mod guards;
mod watch;

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const TIME: &str =
    "# @describe Time.\nmain() { echo one; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(".agents").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A daemon in a home with these tools, all of which may run.
fn with_tools(tools: &[(&str, &str)]) -> TestDaemon {
    let sandbox = Sandbox::new();
    for (name, text) in tools {
        put(&sandbox.path("home"), &format!("tools/{name}"), text);
    }
    sandbox.permissions(&json!({"*": "allow", "execute": "allow"}));
    TestDaemon::start_in(sandbox)
}

fn definition(list: &Value, name: &str) -> Value {
    let tools = list["tools"].as_array().unwrap();
    let found = tools.iter().find(|tool| tool["function"]["name"] == name);
    found.map_or(Value::Null, |tool| tool["function"].clone())
}

fn list(client: &mut TestClient, session: &str) -> Value {
    client.call("tool/list", json!({"session": session}))
}

fn run(client: &mut TestClient, session: &str, name: &str, arguments: &Value) -> Value {
    let params = json!({"session": session, "name": name, "arguments": arguments});
    client.call("tool/run", params)
}

/// What the seed says of the three tools; only bash has no way to require a flag.
fn expected(name: &str, description: &str) -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let list =
        |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
    let is_bash = name == "demo_sh";
    let flag = if is_bash {
        "Define a boolean property"
    } else {
        "Define a required boolean property"
    };
    let mut required = json!([
        "string",
        "string_enum",
        "boolean",
        "integer",
        "number",
        "array"
    ]);
    if is_bash {
        required.as_array_mut().unwrap().remove(2);
    }
    json!({
        "name": name,
        "description": description,
        "parameters": {
            "type": "object",
            "properties": {
                "string": text("Define a required string property"),
                "string_enum": {"type": "string", "enum": ["foo", "bar"], "description": "Define a required string property with enum"},
                "string_optional": text("Define a optional string property"),
                "boolean": {"type": "boolean", "description": flag},
                "integer": {"type": "integer", "description": "Define a required integer property"},
                "number": {"type": "number", "description": "Define a required number property"},
                "array": list("Define a required string array property"),
                "array_optional": list("Define a optional string array property"),
            },
            "required": required,
        },
    })
}

#[test]
fn the_three_demonstrations_are_declared_and_run() {
    let daemon = with_tools(&[
        (
            "demo_sh.sh",
            include_str!("../fixtures/seed_tools/demo_sh.sh"),
        ),
        (
            "demo_js.js",
            include_str!("../fixtures/seed_tools/demo_js.js"),
        ),
        (
            "demo_py.py",
            include_str!("../fixtures/seed_tools/demo_py.py"),
        ),
    ]);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let listed = list(&mut client, &session);
    assert_eq!(listed["problems"], json!([]));
    for (name, language) in [
        ("demo_sh", "Bash and how to use comment tags"),
        ("demo_js", "Javascript and how to use comments"),
        ("demo_py", "Python and how to use comments"),
    ] {
        let description = format!("Demonstrate how to create a tool using {language}.");
        assert_eq!(definition(&listed, name), expected(name, &description));
    }
    let arguments = json!({
        "string": "-5 \"quoted\" $HOME\nnext", "string_enum": "bar", "boolean": true, "integer": -5, "number": 1.5,
        "array": ["a b", "--help"],
    });
    let result = run(&mut client, &session, "demo_sh", &arguments);
    assert_eq!(
        result["output"],
        "-5 \"quoted\" $HOME\nnext|bar||1|-5|1.5|a b --help|"
    );
    let mut same = arguments.clone();
    same["ok"] = true.into();
    assert_eq!(run(&mut client, &session, "demo_js", &arguments), same);
    same["string_optional"] = Value::Null;
    same["array_optional"] = Value::Null;
    assert_eq!(run(&mut client, &session, "demo_py", &arguments), same);
}

#[test]
fn a_broken_file_is_listed_with_its_line_and_the_others_load() {
    let broken = "# @describe D.\n# @option --x A\n# @option --x B\n";
    let daemon = with_tools(&[
        ("time.sh", TIME),
        ("dup.sh", broken),
        ("bad.py", "x = 1\ndef run(:\n"),
    ]);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let listed = list(&mut client, &session);
    assert_eq!(definition(&listed, "time")["description"], "Time.");
    let problems = listed["problems"].to_string();
    assert!(
        problems.contains("dup.sh: line 3") && problems.contains("bad.py: line 2"),
        "{problems}"
    );
}

#[test]
fn a_directorys_own_tools_count_once_it_is_trusted() {
    let daemon = with_tools(&[]);
    put(&daemon.work(), "tools/own.sh", TIME);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    assert_eq!(definition(&list(&mut client, &session), "own"), Value::Null);
    client.call("trust/answer", json!({"cwd": daemon.work(), "allow": true}));
    assert_eq!(
        definition(&list(&mut client, &session), "own")["name"],
        "own"
    );
    assert_eq!(
        run(&mut client, &session, "own", &json!({}))["output"],
        "one"
    );
    put(&daemon.work(), "tools/own.sh", &TIME.replace("one", "two"));
    assert_eq!(definition(&list(&mut client, &session), "own"), Value::Null);
}

#[test]
fn an_edited_tool_is_there_at_the_next_turn_and_a_broken_edit_is_told() {
    let daemon = with_tools(&[("time.sh", TIME)]);
    let mut client = daemon.client();
    let session = client.session_with(json!({"cwd": daemon.work(), "provider": "script"}));
    client.attach(&session, None);
    let output = |client: &mut TestClient| {
        client.start(&session, "do time {}\nsay done");
        client.until_ended().of("done")[0]["result"]["output"].clone()
    };
    assert_eq!(output(&mut client), "one");
    put(
        &daemon.path("home"),
        "tools/time.sh",
        &TIME.replace("one", "two"),
    );
    assert_eq!(output(&mut client), "two");
    put(
        &daemon.path("home"),
        "tools/time.sh",
        "# @describe T.\n# @nonsense\n",
    );
    let listed = list(&mut client, &session);
    assert_eq!(definition(&listed, "time")["description"], "Time.");
    assert!(
        listed["problems"].to_string().contains("time.sh: line 2"),
        "{}",
        listed["problems"]
    );
}

#[test]
fn a_failing_tool_is_a_result_and_the_turn_goes_on() {
    let fails = "# @describe F.\nmain() { echo 'no such city' >&2; exit 3; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let daemon = with_tools(&[("t_fail.sh", fails)]);
    let mut client = daemon.client();
    let session = client.session_with(json!({"cwd": daemon.work(), "provider": "script"}));
    client.attach(&session, None);
    client.start(&session, "do t_fail {}\nsay went on");
    let events = client.until_ended();
    let result = &events.of("done")[0]["result"];
    assert_eq!(result["exit_status"], 3);
    assert_eq!(result["stderr"], "no such city\n");
    assert_eq!(events.last()["status"], "completed");
}

#[test]
fn a_script_asks_before_it_runs() {
    let sandbox = Sandbox::new();
    put(&sandbox.path("home"), "tools/time.sh", TIME);
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let listed = list(&mut client, &session);
    let tool = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["function"]["name"] == "time");
    assert_eq!(
        (&tool.unwrap()["approval"], &tool.unwrap()["source"]),
        (&json!("ask"), &json!("script"))
    );
}

#[test]
fn a_folder_that_the_settings_name_is_read() {
    let sandbox = Sandbox::new();
    let root = sandbox.path("my functions");
    fs::create_dir_all(root.join("tools")).unwrap();
    fs::write(root.join("tools/time.sh"), TIME).unwrap();
    fs::write(root.join("tools/other.sh"), TIME).unwrap();
    fs::write(root.join("tools.txt"), "time.sh\ngone.sh\n").unwrap();
    let config = format!("[script_tools]\nroots = [{root:?}]\n");
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let listed = list(&mut client, &session);
    assert_eq!(definition(&listed, "time")["name"], "time");
    assert_eq!(definition(&listed, "other"), Value::Null);
    assert!(
        listed["problems"].to_string().contains("gone.sh"),
        "{}",
        listed["problems"]
    );
}

#[test]
fn what_is_created_loads_and_runs() {
    let daemon = with_tools(&[]);
    for end in ["sh", "js", "py"] {
        let name = format!("_made.{end}");
        let made = Dwell::new(&daemon)
            .args([
                "tools",
                "create",
                "--user",
                "--description",
                "Made.",
                &name,
                "foo",
                "bar!",
                "baz+",
                "qux*",
            ])
            .ok();
        assert!(
            made.trim_end().ends_with(&format!(".agents/tools/{name}")),
            "{made}"
        );
        let again = Dwell::new(&daemon)
            .args(["tools", "create", "--user", &name])
            .run();
        assert_eq!(again.code, Some(1), "{}", again.stderr);
        let mut client = daemon.client();
        let session = client.session(&daemon.work());
        let listed = list(&mut client, &session);
        let parameters = &definition(&listed, "_made")["parameters"];
        assert_eq!(parameters["required"], json!(["bar", "baz"]), "{listed}");
        assert_eq!(parameters["properties"]["qux"]["items"]["type"], "string");
        let result = run(
            &mut client,
            &session,
            "_made",
            &json!({"bar": "b", "baz": ["c", "d"]}),
        );
        assert!(
            result.to_string().contains('d') && result["ok"] == true,
            "{end}: {result}"
        );
        fs::remove_file(daemon.path("home").join(".agents/tools").join(&name)).unwrap();
    }
}

#[test]
fn a_check_fails_when_something_is_wrong_and_names_it() {
    let daemon = with_tools(&[("time.sh", TIME)]);
    let fine = Dwell::new(&daemon).args(["tools", "check"]).run();
    assert_eq!(
        (fine.code, fine.stdout.as_str()),
        (Some(0), ""),
        "{}",
        fine.stderr
    );
    put(
        &daemon.work(),
        "tools/bad.js",
        "/** D. */\nexports.run = (;\n",
    );
    put(
        &daemon.work(),
        "tools/needs.sh",
        &format!("# @env NOT_SET!\n{TIME}"),
    );
    let wrong = Dwell::new(&daemon).args(["tools", "check"]).run();
    assert_eq!(wrong.code, Some(1));
    assert!(
        wrong.stdout.contains("bad.js: line 2: syntax error"),
        "{}",
        wrong.stdout
    );
    assert!(
        wrong.stdout.contains("NOT_SET is not set"),
        "{}",
        wrong.stdout
    );
}

#[test]
fn a_parameter_that_vendors_refuse_has_another_name_for_models() {
    let tool = "def run(größe: str):\n    \"\"\"D.\"\"\"\n    return größe\n";
    let daemon = with_tools(&[("g.py", tool), ("zeit@örtlich.sh", TIME)]);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for name in ["zeit__rtlich", "zeit@örtlich"] {
        assert_eq!(
            run(&mut client, &session, name, &json!({}))["output"],
            "one"
        );
    }
    for name in ["größe", "gr__e"] {
        let result = run(&mut client, &session, "g", &json!({name: "x"}));
        assert_eq!(result["output"], "x", "{result}");
    }
}

const TODO: &str = "# @cmd Add an item\n# @option --text! The text\nadd() { echo \"$LLM_AGENT_NAME $LLM_AGENT_FUNC $LLM_AGENT_VAR_MOOD \
                    $argc_text\"; }\n\n# @cmd Say who it is\n_instructions() { echo \"You are {{mood}} in {{__cwd__}}.\"; }\n\n\
                    eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
const INDEX: &str = "name: Todo\ndescription: Keeps a list.\nversion: 0.1.0\ndynamic_instructions: true\nvariables:\n  - name: mood\n    \
                     description: how it feels\n  - name: pace\n    default: slow\nconversation_starters:\n  - say from the starter\n\
                     documents: [notes.md]\n";

/// A daemon with an agent that has tools of its own and takes one shared tool of two.
fn with_agent() -> TestDaemon {
    let daemon = with_tools(&[("time.sh", TIME), ("other.sh", TIME)]);
    let home = daemon.path("home");
    put(&home, "agents/todo/index.yaml", INDEX);
    put(&home, "agents/todo/tools.sh", TODO);
    put(&home, "agents/todo/tools.txt", "time.sh\n");
    put(&home, "agents/todo/notes.md", "The notes.\n");
    daemon
}

#[test]
fn an_agent_has_its_own_tools_its_words_and_its_beginnings() {
    let daemon = with_agent();
    let mut client = daemon.client();
    let cwd = daemon.work();
    let listed = client.call("agent/list", json!({"cwd": cwd}));
    assert_eq!(listed["agents"][0]["name"], "todo");
    assert_eq!(listed["agents"][0]["version"], "0.1.0");
    let params =
        json!({"cwd": cwd, "provider": "script", "agent": "todo", "vars": {"mood": "calm"}});
    let session = client.session_with(params);
    let listed = list(&mut client, &session);
    let has = |name: &str| definition(&listed, name) != Value::Null;
    assert!(
        has("add") && has("time") && has("read") && !has("other"),
        "{listed}"
    );
    let result = run(&mut client, &session, "other", &json!({}));
    assert!(
        result["error"].as_str().unwrap().contains("unknown tool"),
        "what is not offered does not run: {result}"
    );
    let result = run(&mut client, &session, "add", &json!({"text": "milk"}));
    assert_eq!(result["output"], "todo add calm milk");
    let context = client
        .call(
            "command/run",
            json!({"session": session, "line": "/context json"}),
        )
        .to_string();
    let words = format!("You are calm in {}.", cwd.display());
    assert!(
        context.contains(&words) && context.contains("The notes."),
        "{context}"
    );
    client.attach(&session, None);
    client.call(
        "command/run",
        json!({"session": session, "line": "/starter 1"}),
    );
    assert_eq!(client.until_ended().said(), "from the starter");
    let about = client
        .call("command/run", json!({"session": session, "line": "/agent"}))
        .to_string();
    assert!(
        about.contains("Keeps a list.")
            && about.contains("mood = calm")
            && about.contains("pace = slow"),
        "{about}"
    );
}

#[test]
fn an_agent_that_lacks_something_is_refused_with_what_it_lacks() {
    let daemon = with_agent();
    let mut client = daemon.client();
    let create = |client: &mut TestClient, agent: &str, vars: Value| {
        client
            .fault(
                "session/create",
                json!({"cwd": daemon.work(), "agent": agent, "vars": vars}),
            )
            .message
    };
    assert!(create(&mut client, "todo", json!({})).contains("needs values for: mood"));
    assert!(
        create(&mut client, "todo", json!({"mood": "x", "colour": "y"}))
            .contains("no variable colour")
    );
    assert!(create(&mut client, "../todo", json!({})).contains("no agent is called"));
    assert!(create(&mut client, "tod", json!({})).contains("there are: todo"));
}

#[test]
fn a_person_begins_a_session_as_an_agent() {
    let daemon = with_agent();
    let made = Dwell::new(&daemon)
        .args(["new", "--agent", "todo", "--var", "mood=calm"])
        .ok();
    let mut client = daemon.client();
    let listed = list(&mut client, made.trim());
    assert_eq!(definition(&listed, "add")["name"], "add");
    let lacks = Dwell::new(&daemon).args(["new", "--agent", "todo"]).run();
    assert_eq!(lacks.code, Some(1));
    assert!(
        lacks.stderr.contains("needs a value for mood")
            && lacks.stderr.contains("--var mood=VALUE"),
        "{}",
        lacks.stderr
    );
    let unknown = Dwell::new(&daemon).args(["new", "--agent", "nobody"]).run();
    assert_eq!(unknown.code, Some(4), "{}", unknown.stderr);
}

#[test]
fn a_call_that_a_model_writes_as_text_is_text() {
    let daemon = with_tools(&[("time.sh", TIME)]);
    let mut client = daemon.client();
    let session = client.session_with(json!({"cwd": daemon.work(), "provider": "script"}));
    client.attach(&session, None);
    client.start(&session, "say {\"name\": \"time\", \"parameters\": {}}");
    let events = client.until_ended();
    assert_eq!(events.said(), "{\"name\": \"time\", \"parameters\": {}}");
    assert!(events.of("doing").is_empty());
}
