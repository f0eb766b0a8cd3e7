//! What sessions look like, event by event.

use super::*;
use crate::testing::event;
use serde_json::{Value, json};

fn rendered(paint: Paint, kinds: &[Value]) -> Vec<Chunk> {
    let mut renderer = Renderer::new(paint, Prompts::Shown).offering_keys();
    let mut out = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        out.extend(renderer.event(&event(at as u64 + 1, kind.clone())));
    }
    out
}

fn plain(kinds: &[Value]) -> String {
    rendered(Paint::Plain, kinds)
        .into_iter()
        .map(|chunk| chunk.text)
        .collect()
}

fn saying(text: &str) -> Value {
    json!({"type": "saying", "message": "m1", "offset": 0, "text": text})
}

fn doing(call: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "doing", "call": call, "name": name, "arguments": arguments})
}

fn done(call: &str, result: Value) -> Value {
    json!({"type": "done", "call": call, "result": result, "ms": 12})
}

fn ended(status: &str, reply: &str) -> Value {
    json!({"type": "turn_ended", "status": status, "reply": reply})
}

#[test]
fn a_turn_with_a_call_reads_from_top_to_bottom() {
    let text = plain(&[
        json!({"type": "turn_started", "text": "list it", "client": "dwell"}),
        json!({"type": "thinking", "message": "t1", "offset": 0, "text": "which "}),
        json!({"type": "thinking", "message": "t1", "offset": 6, "text": "tool?"}),
        saying("let me "),
        saying("check."),
        json!({"type": "said", "message": "m1", "text": ""}),
        doing("c1", "execute", json!({"command": "ls"})),
        json!({"type": "call_started", "call": "c1"}),
        json!({"type": "tool_output", "call": "c1", "offset": 0, "text": "a\nb\n"}),
        done(
            "c1",
            json!({"exit_status": 0, "content": "a\nb\n", "ok": true}),
        ),
        saying("two files.\n"),
        ended("completed", "two files.\n"),
    ]);
    assert_eq!(
        text,
        "> list it  (dwell)\nwhich tool?\nlet me check.\n-> execute ls\n  a\n  b\n  ok 12 ms\ntwo files.\n"
    );
}

#[test]
fn reply_and_progress_are_apart() {
    let chunks = rendered(
        Paint::Plain,
        &[
            json!({"type": "thinking", "message": "t1", "offset": 0, "text": "hm"}),
            saying("yes"),
            ended("completed", "yes"),
        ],
    );
    let reply: String = chunks
        .iter()
        .filter(|chunk| chunk.channel == Channel::Reply)
        .map(|chunk| chunk.text.as_str())
        .collect();
    assert_eq!(reply, "yes\n");
    assert_eq!(chunks[1].text, "\n");
    assert_eq!(chunks[1].channel, Channel::Progress);
}

#[test]
fn a_long_output_keeps_its_tail() {
    let lines: String = (1..=9).map(|n| format!("line {n}\n")).collect();
    let text = plain(&[
        doing("c1", "execute", json!({"command": "seq"})),
        json!({"type": "tool_output", "call": "c1", "offset": 0, "text": lines}),
        done("c1", json!({"exit_status": 3, "ok": true})),
    ]);
    assert_eq!(
        text,
        "-> execute seq\n  ... 4 more lines\n  line 5\n  line 6\n  line 7\n  line 8\n  line 9\n  failed exit 3 · 12 ms\n"
    );
}

#[test]
fn output_in_pieces_is_the_output_in_one() {
    let whole = "one\ntwo\nthree";
    let expected = plain(&[
        doing("c1", "x", json!({})),
        json!({"type": "tool_output", "call": "c1", "offset": 0, "text": whole}),
        done("c1", json!({"ok": true})),
    ]);
    let mut kinds = vec![doing("c1", "x", json!({}))];
    for (at, c) in whole.chars().enumerate() {
        kinds.push(
            json!({"type": "tool_output", "call": "c1", "offset": at, "text": c.to_string()}),
        );
    }
    kinds.push(done("c1", json!({"ok": true})));
    assert_eq!(plain(&kinds), expected);
    assert_eq!(expected, "-> x\n  one\n  two\n  three\n  ok 12 ms\n");
}

#[test]
fn of_several_calls_each_end_names_its_own() {
    let text = plain(&[
        doing("c1", "read", json!({"path": "a"})),
        doing("c2", "read", json!({"path": "b", "limit": 1})),
        done("c1", json!({"ok": true})),
        done("c2", json!({"ok": false, "error": "not found: b"})),
    ]);
    assert_eq!(
        text,
        "-> read a\n-> read {\"path\":\"b\",\"limit\":1}\n  ok read · 12 ms\n  failed not found: b · 12 ms\n"
    );
}

#[test]
fn a_call_within_a_call_is_indented() {
    let text = plain(&[
        doing("c1", "task", json!({"prompt": "x"})),
        json!({"type": "doing", "call": "c1/1", "name": "read", "arguments": {"path": "a"}, "parent": "c1"}),
        done("c1/1", json!({"ok": true})),
        done("c1", json!({"ok": true})),
    ]);
    assert_eq!(
        text,
        "-> task x\n  -> read a\n    ok 12 ms\n  ok task · 12 ms\n"
    );
}

#[test]
fn a_call_through_search_is_shown_as_what_it_is_under_the_one_that_hands_it_on() {
    let input = json!({"title": "x", "body": "y"});
    let text = plain(&[
        doing("c1", "search_tools", json!({"query": "open an issue"})),
        done(
            "c1",
            json!({"tools": [{}, {}], "total": 7, "more": true, "ok": true}),
        ),
        doing(
            "c2",
            "call_tool",
            json!({"name": "github__create_issue", "input": input}),
        ),
        json!({"type": "doing", "call": "c2/1", "name": "github__create_issue", "arguments": input, "parent": "c2",
               "via": "search"}),
        json!({"type": "call_started", "call": "c2/1"}),
        done("c2/1", json!({"ok": true})),
        done("c2", json!({"ok": true})),
    ]);
    assert_eq!(
        text,
        "-> search_tools open an issue\n  ok 2 of 7 tools · 12 ms\n-> call_tool github__create_issue\n  \
         -> github__create_issue {\"title\":\"x\",\"body\":\"y\"}\n    ok 12 ms\n  ok call_tool · 12 ms\n"
    );
}

#[test]
fn a_failed_turn_says_why_once() {
    let text = plain(&[saying("part"), ended("failed", "Error: no such model")]);
    assert_eq!(text, "part\nError: no such model\n");
    assert_eq!(plain(&[ended("cancelled", "")]), "cancelled\n");
    assert_eq!(
        plain(&[ended("interrupted", "interrupted: the daemon stopped")]),
        "interrupted: the daemon stopped\n"
    );
}

#[test]
fn a_reply_that_was_never_streamed_is_shown() {
    assert_eq!(plain(&[ended("completed", "done.")]), "done.\n");
    assert_eq!(
        plain(&[saying("done."), ended("completed", "done.")]),
        "done.\n"
    );
}

#[test]
fn a_question_names_the_tool_what_would_run_and_the_keys() {
    let text = plain(&[json!({
        "type": "approval_asked", "approval": "s.a1", "call": "c1", "tool": "execute",
        "arguments": {"command": "rm x"}, "why": "default"
    })]);
    assert_eq!(
        text,
        "? allow execute?\n    rm x\n  default\n  [y] once  [s] this session  [a] always  [n] no  [r REASON] no, and tell the model why\n"
    );
}

#[test]
fn a_question_of_a_task_shows_what_its_file_loses_and_the_next_one_does_not() {
    let asked = |id: &str, path: &str| {
        json!({"type": "approval_asked", "approval": id, "call": "c1", "tool": "write",
            "arguments": {"path": path, "content": "x\n"}, "why": "it changes files"})
    };
    let text = plain(&[
        doing("c1", "task", json!({"prompt": "go"})),
        json!({"type": "changing", "call": "c1", "size": 4, "diff": "@@ -1 +1 @@\n-old\n+x\n"}),
        asked("s.a1", "old.txt"),
        json!({"type": "approval_answered", "approval": "s.a1", "answer": "allow", "scope": "call", "by": "me"}),
        asked("s.a2", "new.txt"),
    ]);
    assert_eq!(text.matches("- old").count(), 1, "{text}");
    assert!(text.find("- old") < text.find("new.txt"), "{text}");
}

#[test]
fn nothing_of_a_model_reaches_the_terminal_as_a_control() {
    let chunks = rendered(
        Paint::Plain,
        &[
            saying("\u{1b}[2Ja"),
            doing("c1", "x\u{1b}[31m", json!({"a": "\u{1b}[8m"})),
            done("c1", json!({"ok": false, "error": "\u{1b}c"})),
        ],
    );
    assert!(
        chunks.iter().all(|chunk| !chunk.text.contains('\u{1b}')),
        "{chunks:?}"
    );
}

#[test]
fn an_unknown_event_is_skipped() {
    assert_eq!(plain(&[json!({"type": "sung", "song": "x"})]), "");
}

#[test]
fn times_are_for_people() {
    assert_eq!(duration(7), "7 ms");
    assert_eq!(duration(1_234), "1.2 s");
    assert_eq!(duration(61_000), "1 min 1 s");
}
