//! What `mcp.json` may say, as it is read.

use super::{Config, How, Listing, Text, expand, read};
use std::path::Path;
use std::time::Duration;

fn listing(text: &str) -> Listing {
    let file = Text {
        path: Path::new("/w/.agents/mcp.json"),
        text,
        folder: Path::new("/w"),
        start: Path::new("/home/me"),
    };
    read(&file, &|name| (name == "SET").then(|| "value".to_owned()))
}

fn only(entry: &str) -> Result<Config, String> {
    let mut listing = listing(&format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#));
    match listing.problems.pop() {
        Some(problem) => Err(problem),
        None => Ok(listing.servers.remove(0)),
    }
}

#[test]
fn common_shape_is_read_with_its_variables() {
    let config = only(
        r#"{"command": "npx", "args": ["-y", "${SET}", "${NONE:-x}"], "env": {"A": "${SET}", "N": 1}, "cwd": "sub",
            "prefix": "b", "tools": ["one"], "timeout": 5, "autoApprove": ["one"]}"#,
    );
    let config = config.unwrap();
    let How::Child {
        command,
        args,
        env,
        cwd,
    } = &config.how
    else {
        panic!("a child");
    };
    assert_eq!(
        (command.as_str(), args.join(" ")),
        ("npx", "-y value x".to_owned())
    );
    assert_eq!((env["A"].as_str(), env["N"].as_str()), ("value", "1"));
    assert_eq!(cwd, Path::new("/w/sub"));
    assert_eq!(
        (config.prefix.as_str(), config.tools),
        ("b__", Some(vec!["one".to_owned()]))
    );
    assert_eq!(config.call, Some(Duration::from_millis(5)));
    let config = only(
        r#"{"type": "http", "url": "http://x/${SET}", "headers": {"A": "B ${SET}"}, "prefix": false}"#,
    );
    let config = config.unwrap();
    let How::Http { url, headers, .. } = &config.how else {
        panic!("a URL");
    };
    assert_eq!(
        (url.as_str(), headers["A"].as_str()),
        ("http://x/value", "B value")
    );
    assert_eq!(config.prefix, "");
    let config = only(r#"{"command": "x"}"#).unwrap();
    assert_eq!(config.prefix, "a__");
    let How::Child { cwd, .. } = &config.how else {
        panic!("a child");
    };
    assert_eq!(cwd, Path::new("/home/me"));
}

#[test]
fn entry_that_cannot_be_used_is_named_with_its_line_and_the_others_are_read() {
    let listing = listing(
        "{\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"b\": {\n  \"command\": 1\n},\n\"c\": {},\n\"d\": {\"command\": \"${NO}\"},\n\"e\": {\"command\": \"y\", \"disabled\": true}}}",
    );
    let names: Vec<_> = listing
        .servers
        .iter()
        .map(|server| server.name.as_str())
        .collect();
    assert_eq!(
        (names, &listing.without),
        (vec!["a"], &["b", "c", "d", "e"].map(str::to_owned).to_vec())
    );
    let expected = [
        "/w/.agents/mcp.json:4: the MCP server \"b\": invalid type: integer `1`, expected a string",
        "/w/.agents/mcp.json:6: the MCP server \"c\": it needs a command, or a url",
        "/w/.agents/mcp.json:7: the MCP server \"d\": ${NO} is not set where the daemon was started; ${NO:-} would be empty then",
    ];
    assert_eq!(listing.problems, expected);
}

#[test]
fn file_that_is_no_json_is_a_problem_with_its_line_and_an_empty_one_is_none() {
    assert_eq!(
        listing("{\n  \"mcpServers\": {,}}").problems,
        ["/w/.agents/mcp.json:2: key must be a string"]
    );
    assert_eq!(
        listing("{\"mcpServers\": []}").problems,
        ["/w/.agents/mcp.json:1: invalid type: sequence, expected an object of servers by name"]
    );
    for text in [
        "{}",
        "\u{feff}{\"mcpServers\": {}}",
        "{\"mcpServers\": null}",
    ] {
        assert_eq!(listing(text), Listing::default(), "{text}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    for (entry, why) in [
        (r#"{"command": "x", "url": "http://x"}"#, "one of them"),
        (r#"{"command": "x", "type": "http"}"#, "stdio"),
        (r#"{"url": "http://x", "type": "sse"}"#, "streamable HTTP"),
        (r#"{"url": "ftp://x"}"#, "neither"),
        (r#"{"command": " "}"#, "empty"),
    ] {
        let problem = only(entry).unwrap_err();
        assert!(problem.contains(why), "{problem}");
    }
}

#[test]
fn later_file_wins_by_name_and_can_switch_off() {
    let servers = |text: &str| listing(&format!("{{\"mcpServers\": {{{text}}}}}"));
    let mut all = servers(r#""a": {"command": "1"}, "b": {"command": "1"}, "c": {"command": "1"}"#);
    all.then(servers(r#""b": {"command": "2"}, "c": {"disabled": true}"#));
    let seen: Vec<_> = all
        .servers
        .iter()
        .map(|server| match &server.how {
            How::Child { command, .. } => format!("{} {command}", server.name),
            How::Http { .. } => String::new(),
        })
        .collect();
    assert_eq!(seen, ["a 1", "b 2"]);
}

#[test]
fn servers_that_would_share_names_get_prefixes_of_their_own_by_the_file() {
    let mut all = listing(
        r#"{"mcpServers": {"a": {"command": "1", "prefix": "k"}, "b": {"command": "1", "prefix": "k"},
            "a b": {"command": "1"}, "a_b": {"command": "1"}, "x": {"command": "1", "prefix": false},
            "y": {"command": "1", "prefix": false}}}"#,
    );
    all.part();
    let prefixes: Vec<_> = all.servers.iter().map(|one| one.prefix.as_str()).collect();
    assert_eq!(prefixes, ["k__", "b__", "a b__", "a_b_2__", "", "y__"]);
    assert_eq!(all.problems.len(), 3, "{:?}", all.problems);
    assert!(all.problems[0].contains("the MCP servers a and b"));
}

#[test]
fn variables_are_replaced_and_half_ones_stay() {
    let of = |name: &str| match name {
        "A" => Some("1".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    for (text, expected) in [
        ("x${A}y${A}", "x1y1"),
        ("${env:A}", "1"),
        ("${EMPTY}", ""),
        ("${EMPTY:-2}", "2"),
        ("${B:-}", ""),
        ("$A ${A", "$A ${A"),
        ("", ""),
    ] {
        assert_eq!(expand(text, &of).as_deref(), Ok(expected), "{text}");
    }
    assert!(expand("${B}", &of).is_err());
}
