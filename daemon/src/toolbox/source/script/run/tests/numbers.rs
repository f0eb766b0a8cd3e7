//! Numbers arrive and come back as they are written, or somebody is told.

use super::*;

const AS_WRITTEN: &str =
    "[12345678901234567890123, 9007199254740993, -9007199254740993, 1.10, -0, 5.0, 0.1, 7]";

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

async fn output(name: &str, content: &str, arguments: &str) -> String {
    let result = run(name, content, read(arguments)).await;
    assert_eq!(result["ok"], true, "{name}: {result}");
    result["output"].to_string()
}

#[tokio::test]
async fn bash_reads_each_number_as_it_is_written() {
    let tool = "# @describe T.\n# @option --n* <NUM>\nmain() { (IFS=,; echo \"[${argc_n[*]}]\"); }\n\
                eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    let given = AS_WRITTEN.replace(", 7]", ", 1e400, 1e-7, 7]");
    let printed = output("t.sh", tool, &format!("{{\"n\": {given}}}")).await;
    let printed = printed.replace("e+", "e").replace(',', ", ");
    assert_eq!(printed, given);
}

#[tokio::test]
async fn javascript_gets_long_whole_numbers_whole_and_gives_them_back() {
    let tool = |body: &str| {
        format!(
            "/** T.\n * @param {{Object}} args\n * @param {{number[]}} args.n\n * @param {{Object}} [args.o] */\n\
             exports.run = ({{ n, o }}) => {{ {body} }};\n"
        )
    };
    let given =
        format!("{{\"n\": {AS_WRITTEN}, \"o\": {{\"id\": {{\"in\": 18446744073709551616}}}}}}");
    let check = async |body: &str, expected: &str| {
        let said = output("t.js", &tool(body), &given).await;
        assert_eq!(said, expected, "{body}");
    };
    check("return n.map(String)", r#"["12345678901234567890123","9007199254740993","-9007199254740993","1.1","0","5","0.1","7"]"#).await;
    check("return [n[0], { o }, `${n[1]}`, -n[2], typeof n[7]]", r#"[12345678901234567890123,{"o":{"id":{"in":18446744073709551616}}},"9007199254740993",9007199254740993,"number"]"#).await;
    let text = output(
        "t.js",
        &tool("return 'text: ' + JSON.stringify({ n: n[1] })"),
        &given,
    )
    .await;
    assert!(text.contains("9007199254740993"), "{text}");
}

#[tokio::test]
async fn python_gets_long_whole_numbers_whole_and_gives_them_back() {
    let tool = "def run(n: list[float]):\n    \"\"\"T.\"\"\"\n    return [n[0], n[1] + 1, n[3], type(n[5]).__name__, n[7]]\n";
    let given = format!("{{\"n\": {AS_WRITTEN}}}");
    assert_eq!(
        output("t.py", tool, &given).await,
        r#"[12345678901234567890123,9007199254740994,1.1,"float",7]"#
    );
}

#[tokio::test]
async fn a_number_that_a_language_does_not_have_is_refused_by_name() {
    for (name, content) in [
        (
            "t.js",
            "/** T.\n * @param {Object} args\n * @param {number[]} args.n */\nexports.run = () => 'ran';\n",
        ),
        (
            "t.py",
            "def run(n: list[float]):\n    \"\"\"T.\"\"\"\n    return 'ran'\n",
        ),
    ] {
        let result = run(name, content, read(r#"{"n": [1, 1e400]}"#)).await;
        let why = result["error"].as_str().unwrap();
        assert!(why.contains("\"n\"") && why.contains("1e+400"), "{why}");
    }
}

#[tokio::test]
async fn what_a_script_prints_is_not_written_anew() {
    for text in [
        r#"{"id":12345678901234567890123,"price":1.10,"none":-0,"whole":5.0}"#,
        "12345678901234567890123",
        "1.10",
    ] {
        let tool = format!(
            "# @describe T.\nmain() {{ echo '{text}'; }}\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n"
        );
        let mut result = run("t.sh", &tool, json!({})).await;
        result.as_object_mut().unwrap().remove("ok");
        let said = match text.starts_with('{') {
            true => result.to_string(),
            false => result["output"].to_string(),
        };
        assert_eq!(said, text);
    }
}
