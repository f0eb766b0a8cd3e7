//! The script language: one line, one step. Pure.

use crate::provider::ProviderEvent;
use serde_json::{Map, Value};

/// What a line does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Emit {
        event: ProviderEvent,
        times: u64,
    },
    /// The first call of a round trip, which ends behind it and the `Also` that follow.
    Call(ProviderEvent),
    Also(ProviderEvent),
    Wait(u64),
    Fail(String),
    Drop(String),
}

pub(super) enum Parsed<'s> {
    Script(Script<'s>),
    /// Some line is one of a script, and some line is wrong; the message names it.
    Wrong(String),
    /// No line is one of a script.
    Prose,
}

/// A script whose every line is one. Its steps are made as they are played: a long one would weigh many times its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script<'s>(&'s str);

type Word = fn(&str) -> Result<Step, String>;

/// The words that a line may begin with, and how its rest is read.
const WORDS: &[(&str, Word)] = &[
    ("say", |rest| Ok(say(rest.to_owned()))),
    ("line", |rest| Ok(say(format!("{rest}\n")))),
    ("repeat", repeat),
    ("think", |rest| {
        Ok(once(ProviderEvent::Thinking(rest.to_owned())))
    }),
    ("do", |rest| call(rest).map(Step::Call)),
    ("also", |rest| call(rest).map(Step::Also)),
    ("wait", |rest| number(rest).map(Step::Wait)),
    ("usage", usage),
    ("fail", |rest| Ok(Step::Fail(rest.to_owned()))),
    ("drop", |rest| Ok(Step::Drop(rest.to_owned()))),
];

pub(super) fn parse(script: &str) -> Parsed<'_> {
    let lines = script.lines().zip(1..).filter(|(line, _)| !is_blank(line));
    let mut before = None;
    let mut wrong = None;
    let mut prose = true;
    for (line, number) in lines {
        let read = read(line);
        prose &= read.is_none();
        let step = read.unwrap_or_else(|| Err(unknown(line)));
        let step = step.and_then(|step| follows(before.as_ref(), step));
        match step {
            Ok(step) => before = Some(step),
            Err(message) if wrong.is_none() => {
                wrong = Some(format!("script line {number}: {message}"));
            }
            Err(_) => {}
        }
    }
    match (prose, wrong) {
        (true, _) => Parsed::Prose,
        (false, Some(message)) => Parsed::Wrong(message),
        (false, None) => Parsed::Script(Script(script)),
    }
}

impl<'s> Script<'s> {
    fn steps(self) -> impl Iterator<Item = Step> + use<'s> {
        let lines = self.0.lines().filter(|line| !is_blank(line));
        lines.filter_map(|line| read(line)?.ok())
    }

    /// The steps of the round trip that follows so many results of tools: those behind the calls that have theirs, up to
    /// the end of the next calls.
    pub(super) fn round_trip(self, results: usize) -> impl Iterator<Item = Step> + use<'s> {
        let played = self.played(results);
        let mut rest = self.steps().skip(played).peekable();
        let mut over = false;
        std::iter::from_fn(move || {
            if over {
                return None;
            }
            let step = rest.next()?;
            over = is_call(&step) && !matches!(rest.peek(), Some(Step::Also(_)));
            Some(step)
        })
    }

    /// How many steps belong to round trips whose calls all have their results.
    fn played(self, mut results: usize) -> usize {
        let mut played = 0;
        let mut calls = 0;
        let mut steps = self.steps().enumerate().peekable();
        while let Some((at, step)) = steps.next() {
            calls += usize::from(is_call(&step));
            let ends = is_call(&step) && !matches!(steps.peek(), Some((_, Step::Also(_))));
            if !ends {
                continue;
            }
            if results < calls {
                break;
            }
            results -= calls;
            calls = 0;
            played = at + 1;
        }
        played
    }
}

fn is_call(step: &Step) -> bool {
    matches!(step, Step::Call(_) | Step::Also(_))
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// `None` when the line begins with no word of a script.
fn read(line: &str) -> Option<Result<Step, String>> {
    let line = line.trim_start();
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let word = WORDS.iter().find(|(word, _)| *word == first.trim_end());
    word.map(|(_, read)| read(rest))
}

fn unknown(line: &str) -> String {
    let words: Vec<_> = WORDS.iter().map(|(word, _)| *word).collect();
    let shown: String = line.chars().take(40).collect();
    format!("{shown:?} begins with none of {}", words.join(", "))
}

fn follows(before: Option<&Step>, step: Step) -> Result<Step, String> {
    let misplaced =
        matches!(step, Step::Also(_)) && !matches!(before, Some(Step::Call(_) | Step::Also(_)));
    match misplaced {
        true => Err("also must stand right behind do or also".to_owned()),
        false => Ok(step),
    }
}

fn once(event: ProviderEvent) -> Step {
    Step::Emit { event, times: 1 }
}

fn say(text: String) -> Step {
    once(ProviderEvent::Saying(text))
}

fn repeat(rest: &str) -> Result<Step, String> {
    let (times, text) = rest.split_once(' ').unwrap_or((rest, ""));
    Ok(Step::Emit {
        event: ProviderEvent::Saying(text.to_owned()),
        times: number(times)?,
    })
}

fn usage(rest: &str) -> Result<Step, String> {
    let numbers = rest.split_whitespace().map(number);
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let (input, output, cached) = match numbers[..] {
        [input, output] => (input, output, 0),
        [input, output, cached] => (input, output, cached),
        _ => return Err("usage takes IN OUT [CACHED]".to_owned()),
    };
    Ok(once(ProviderEvent::Usage {
        input,
        output,
        cached,
    }))
}

fn number(text: &str) -> Result<u64, String> {
    let text = text.trim();
    text.parse()
        .map_err(|_| format!("{text:?} is no whole number"))
}

fn call(rest: &str) -> Result<ProviderEvent, String> {
    let rest = rest.trim();
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() {
        return Err("no tool is named: do TOOL {JSON}".to_owned());
    }
    Ok(ProviderEvent::Doing {
        id: None,
        name: name.to_owned(),
        arguments: json(arguments.trim())
            .map_err(|error| format!("the arguments of {name} are no JSON: {error}"))?,
    })
}

fn json(text: &str) -> Result<Value, serde_json::Error> {
    match text {
        "" => Ok(Value::Object(Map::new())),
        text => serde_json::from_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Vec<Step> {
        match parse(text) {
            Parsed::Script(script) => script.steps().collect(),
            Parsed::Wrong(message) => panic!("{message}"),
            Parsed::Prose => panic!("prose"),
        }
    }

    fn wrong(text: &str) -> String {
        match parse(text) {
            Parsed::Wrong(message) => message,
            Parsed::Script(script) => panic!("{script:?}"),
            Parsed::Prose => panic!("prose"),
        }
    }

    #[test]
    fn text_is_taken_to_the_byte() {
        assert_eq!(script("say  a  "), [say(" a  ".to_owned())]);
        assert_eq!(
            script("line a\r\nsay\n\n# no\n"),
            [say("a\n".to_owned()), say(String::new())]
        );
        let repeated = Step::Emit {
            event: ProviderEvent::Saying("tok ".to_owned()),
            times: 3,
        };
        assert_eq!(script("repeat 3 tok "), [repeated]);
    }

    #[test]
    fn wrong_line_is_named_with_what_is_wrong() {
        assert_eq!(
            wrong("say a\n\nwait for me"),
            "script line 3: \"for me\" is no whole number"
        );
        assert!(wrong("do").starts_with("script line 1: no tool is named"));
        assert!(wrong("do read {").starts_with("script line 1: the arguments of read are no JSON"));
        assert_eq!(
            wrong("say a\nalso b"),
            "script line 2: also must stand right behind do or also"
        );
        assert_eq!(
            wrong("usage 1"),
            "script line 1: usage takes IN OUT [CACHED]"
        );
        let unknown = wrong("tell a\nsay b");
        assert!(unknown.starts_with("script line 1: \"tell a\" begins with none of say, line, "));
    }

    #[test]
    fn a_round_trip_ends_behind_calls_and_the_next_begins_there() {
        let text = "say a\ndo x\nalso y\nsay b\ndo z\nsay c";
        let Parsed::Script(script) = parse(text) else {
            panic!("{text}");
        };
        let shown = |results: usize| -> Vec<String> {
            let name = |step| match step {
                Step::Emit {
                    event: ProviderEvent::Saying(text),
                    ..
                } => text,
                Step::Call(ProviderEvent::Doing { name, .. })
                | Step::Also(ProviderEvent::Doing { name, .. }) => name,
                other => panic!("{other:?}"),
            };
            script.round_trip(results).map(name).collect()
        };
        assert_eq!(shown(0), ["a", "x", "y"]);
        assert_eq!(shown(1), ["a", "x", "y"], "one of two is not enough");
        assert_eq!(shown(2), ["b", "z"]);
        assert_eq!(shown(3), ["c"]);
    }

    #[test]
    fn text_without_a_word_of_a_script_is_prose() {
        for text in ["what does README.md say?", "", "saying\n# say no"] {
            assert!(matches!(parse(text), Parsed::Prose), "{text}");
        }
    }

    #[test]
    fn arguments_of_a_call_may_be_any_json() {
        let call = |text: &str| match script(text).remove(0) {
            Step::Call(ProviderEvent::Doing { arguments, .. }) => arguments,
            other => panic!("{other:?}"),
        };
        assert_eq!(call("do a"), serde_json::json!({}));
        assert_eq!(call("do  a  {\"x\": [1]} "), serde_json::json!({"x": [1]}));
        assert_eq!(call("do a \"no object\""), "no object");
    }
}
