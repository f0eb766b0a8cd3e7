//! `.env` files.

use super::super::dotenv::parse;

fn check(text: &str, expected: &[(&str, &str)]) {
    let found = parse(text);
    let found: Vec<_> = found
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn one_reading_for_all_languages() {
    check(
        "A=two words\nB=\"q\"\nC=a&b\nD=$(touch PWNED)\nE=it's\nexport F=1\n  # note\nG=x # note\n",
        &[
            ("A", "two words"),
            ("B", "q"),
            ("C", "a&b"),
            ("D", "$(touch PWNED)"),
            ("E", "it's"),
            ("F", "1"),
            ("G", "x"),
        ],
    );
}

#[test]
fn each_form_is_read() {
    for (line, value) in [
        ("V=abc", "abc"),
        ("V=\"two words\"\n", "two words"),
        ("V='two words'\n", "two words"),
        ("V=a=b=c\n", "a=b=c"),
        ("V=\n", ""),
        ("V=abc#def\n", "abc#def"),
        ("V=\"a b\" # note\n", "a b"),
        ("V = abc\n", "abc"),
        ("  V=abc\n", "abc"),
        ("V= abc\n", "abc"),
        ("V=$HOME/x\n", "$HOME/x"),
        ("V=a;b\n", "a;b"),
        ("V=a\\nb\n", "a\\nb"),
        ("V=say\"hi\"\n", "say\"hi\""),
        ("V=\"a'b\"\n", "a'b"),
        ("V=grün🎉\n", "grün🎉"),
        ("V=abc\r\n", "abc"),
        ("V={\"a\":\"b c\"}\n", "{\"a\":\"b c\"}"),
        ("V=\"a\nb\"\n", "a\nb"),
        ("V=1\nV=2\n", "2"),
        ("1V=x\nV=ok\n", "ok"),
        ("A-B=x\nV=ok\n", "ok"),
        ("JUSTNAME\nV=ok\n", "ok"),
        ("\u{feff}V=x\n", "x"),
        ("V=pa$$word\n", "pa$$word"),
        ("V=`id -u`\n", "`id -u`"),
        ("V=\"open\nW=\n", "\"open"),
        ("V=\"say \\\"hi\\\"\"\n", "say \"hi\""),
        ("V=#\n", ""),
    ] {
        let found = parse(line);
        let found = found
            .iter()
            .find(|(name, _)| name == "V")
            .map(|(_, value)| value.as_str());
        assert_eq!(found, Some(value), "{line:?}");
    }
    check("V=\"a\nb\"\nW=2\n", &[("V", "a\nb"), ("W", "2")]);
}
