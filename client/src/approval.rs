//! Questions to the person at this terminal: how one is put, and which words answer it. Only an explicit yes is a
//! yes; must never answer by itself.

mod open;

use crate::error::Failure;
use crate::link::Link;
use crate::paint::{Mark, Paint, Part, one_line, spell_out};
use crate::render::code::Highlighter;
use crate::render::cut;
use crate::render::diff::Diff;
use crate::render::styled::{clip_middle, paint_row};
pub(crate) use open::Open;
use protocol::approval::{Answer, ApprovalRpcClient, Scope};
use protocol::error::ErrorKind;
use protocol::event::{Event, EventKind};
use protocol::id::{ApprovalId, CallId};
use serde_json::Value;

/// A question, as an event or a session's list of them tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    /// Which.
    pub approval: ApprovalId,
    /// The call that waits for it.
    pub call: CallId,
    /// The tool's real name.
    pub tool: String,
    /// Exactly what would run.
    pub arguments: Value,
    /// Which rule asks.
    pub why: String,
    /// What may be allowed for good instead, the likeliest first.
    pub patterns: Vec<String>,
    /// Whether a program that the model wrote makes the call, and may make more of its kind.
    pub of_program: bool,
    /// What it makes of a file, with what is there.
    pub change: Option<Diff>,
}

impl From<&protocol::approval::Approval> for Question {
    fn from(waiting: &protocol::approval::Approval) -> Self {
        Self {
            approval: waiting.approval.clone(),
            call: waiting.call.clone(),
            tool: waiting.tool.clone(),
            arguments: waiting.arguments.clone(),
            why: waiting.why.clone(),
            patterns: waiting.patterns.clone(),
            of_program: false,
            change: change_of(waiting),
        }
    }
}

fn change_of(waiting: &protocol::approval::Approval) -> Option<Diff> {
    let mut diff = Diff::of(&waiting.arguments)?;
    if let Some(change) = &waiting.change {
        diff.replaces(change.size, change.diff.as_deref(), change.places);
    }
    Some(diff)
}

/// What a person answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Yes or no.
    pub answer: Answer,
    /// How far it reaches.
    pub scope: Scope,
    /// What the model reads with a no.
    pub reason: Option<String>,
    /// What a yes covers, where the person said it.
    pub pattern: Option<String>,
}

/// The keys, as they are offered.
const KEYS: [&str; 5] = [
    "[y] once",
    "[s] this session",
    "[a] always",
    "[n] no",
    "[r REASON] no, and tell the model why",
];

/// What a line begins with that names a pattern.
pub(crate) const ALWAYS: &str = "always";
const SESSION: &str = "session";

/// The one more that a program's call has.
const PROGRAM_KEY: &str = "[p] this program";

impl Reply {
    /// A yes for this call.
    pub(crate) fn yes() -> Self {
        Self::new(Answer::Allow, Scope::Call)
    }

    /// A no that says why.
    pub(crate) fn no(reason: impl Into<String>) -> Self {
        Self {
            reason: Some(reason.into()),
            ..Self::new(Answer::Deny, Scope::Call)
        }
    }

    fn new(answer: Answer, scope: Scope) -> Self {
        Self {
            answer,
            scope,
            reason: None,
            pattern: None,
        }
    }

    /// What a typed line answers; none for everything that is no answer, an empty line above all.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        if let Some((scope, pattern)) = named_pattern(line) {
            return (!pattern.is_empty()).then(|| Self {
                pattern: Some(pattern.to_owned()),
                ..Self::new(Answer::Allow, scope)
            });
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let word = word.trim_end_matches([',', '.', ':']).to_ascii_lowercase();
        let plain = match word.as_str() {
            "y" | "yes" => Self::new(Answer::Allow, Scope::Call),
            "p" | "program" => Self::new(Answer::Allow, Scope::Program),
            "s" | "session" => Self::new(Answer::Allow, Scope::Session),
            "a" | "always" => Self::new(Answer::Allow, Scope::Always),
            "n" | "no" | "r" | "reason" if !rest.is_empty() => return Some(Self::no(rest)),
            "n" | "no" => Self::new(Answer::Deny, Scope::Call),
            _ => return None,
        };
        // "a new plan" is no answer, and above all no yes.
        rest.is_empty().then_some(plain)
    }
}

/// How far a line reaches that names a pattern, and the pattern as far as it is typed: `always: cargo test *`.
pub(crate) fn named_pattern(line: &str) -> Option<(Scope, &str)> {
    let (word, pattern) = line.trim_start().split_once(':')?;
    let scope = match word {
        ALWAYS => Scope::Always,
        SESSION => Scope::Session,
        _ => return None,
    };
    Some((scope, pattern.trim()))
}

impl Question {
    /// The question that an event puts.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        match &event.kind {
            EventKind::ApprovalAsked {
                approval,
                call,
                tool,
                arguments,
                why,
                patterns,
            } => Some(Self {
                approval: approval.clone(),
                call: call.clone(),
                tool: tool.clone(),
                arguments: arguments.clone(),
                why: why.clone(),
                patterns: patterns.clone(),
                of_program: false,
                change: None,
            }),
            _ => None,
        }
    }

    /// Whether an event says that nobody needs to answer any more: it was answered or withdrawn, or its call has ended.
    pub(crate) fn is_settled_by(&self, event: &Event) -> bool {
        match &event.kind {
            EventKind::ApprovalAnswered { approval, .. }
            | EventKind::ApprovalWithdrawn { approval, .. } => *approval == self.approval,
            EventKind::Done { call, .. } => *call == self.call,
            _ => false,
        }
    }

    /// The question in full: nothing of what would run is cut off or hidden.
    pub(crate) fn text(&self, paint: Paint) -> String {
        let mut out = format!(
            "{} {}",
            paint.mark(Mark::Ask),
            paint.dress(Part::Ask, &format!("allow {}?", spell_out(&self.tool)))
        );
        for line in what_would_run(paint, &self.arguments, self.change.as_ref()).lines() {
            out.push_str("\n    ");
            out.push_str(line);
        }
        if !self.why.is_empty() {
            out.push_str("\n  ");
            let why = spell_out(&self.why);
            // Of a command it may repeat what would run, which stands above in full; of a file it says where that is.
            let why = match self.arguments.get("path") {
                Some(_) => why,
                None => clip_middle(&why, WHY),
            };
            out.push_str(&paint.dress(Part::Quiet, &why));
        }
        out
    }
}

impl Question {
    /// The keys that answer it.
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        let mut keys = KEYS.to_vec();
        if self.of_program {
            keys.insert(1, PROGRAM_KEY);
        }
        keys
    }

    /// The same where a line is typed for an answer: what it may say besides a key.
    pub(crate) fn line_keys(&self) -> String {
        let mut keys: Vec<String> = self.keys().iter().map(ToString::to_string).collect();
        let pattern = self.patterns.first().filter(|text| !text.contains('\n'));
        keys.extend(pattern.map(|text| format!("[{ALWAYS}: {}]", spell_out(text))));
        keys.join("  ")
    }

    /// The tool and what would run on one line, cut.
    pub(crate) fn brief_line(&self) -> String {
        let brief = one_line(self.brief().trim());
        format!("{} {}", one_line(&self.tool), cut(&brief, BRIEF))
    }

    /// What would run, for a line that has little room; the question's text has all of it.
    pub(crate) fn brief(&self) -> String {
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str);
        let known = ["command", "path", "url", "prompt"]
            .iter()
            .find_map(|name| text(name));
        known.map_or_else(|| self.arguments.to_string(), String::from)
    }
}

/// How much of what would run stands in a line about it.
const BRIEF: usize = 80;

/// How much of the reason is shown.
const WHY: usize = 120;

/// How wide the lines of a change may be before they break.
const WIDE: usize = 96;

/// A change of a file as a diff, a lone text as it is, everything else by name.
fn what_would_run(paint: Paint, arguments: &Value, change: Option<&Diff>) -> String {
    let Value::Object(members) = arguments else {
        return spell_out(&arguments.to_string());
    };
    if let Some((name, Value::String(text))) = members.iter().next().filter(|_| members.len() == 1)
    {
        return highlighted(paint, name, text);
    }
    let all_shown =
        |name: &String| matches!(name.as_str(), "path" | "old" | "new" | "content" | "all");
    let change = change.cloned().or_else(|| Diff::of(arguments));
    if let Some(change) = change.filter(|_| members.keys().all(all_shown)) {
        let rows = change.rows(paint, WIDE, usize::MAX).join("\n");
        let path = one_line(&change.path);
        let everywhere = match members.get("all") {
            Some(Value::Bool(true)) => " (wherever it stands)",
            _ => "",
        };
        return format!("{path}{everywhere}\n{rows}");
    }
    let show = |(name, value): (&String, &Value)| match value {
        Value::String(text) if text.contains('\n') => {
            format!("{name}:\n{}", indent(&spell_out(text)))
        }
        Value::String(text) => format!("{name}: {}", spell_out(text)),
        other => format!("{name}: {}", spell_out(&other.to_string())),
    };
    members.iter().map(show).collect::<Vec<_>>().join("\n")
}

/// A command with its colours; what cannot be seen is spelled out first.
fn highlighted(paint: Paint, name: &str, text: &str) -> String {
    let text = spell_out(text);
    let mut highlighter = Highlighter::new(if name == "command" { "sh" } else { "" });
    let lines = text
        .lines()
        .map(|line| paint_row(paint, &highlighter.line(line)));
    lines.collect::<Vec<_>>().join("\n")
}

fn indent(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether a pattern was refused: the question goes on waiting for a better one.
pub(crate) fn is_refused(reply: &Reply, failure: &Failure) -> bool {
    reply.pattern.is_some() && failure.kind == Some(ErrorKind::InvalidParams)
}

/// Sends an answer. Somebody else having been faster is no failure: the event says who.
pub(crate) async fn answer(
    link: &Link,
    approval: &ApprovalId,
    reply: &Reply,
) -> Result<(), Failure> {
    let sent = link
        .call(async |client| {
            ApprovalRpcClient::answer(
                client,
                approval.clone(),
                reply.answer,
                Some(reply.scope),
                reply.reason.clone(),
                reply.pattern.clone(),
            )
            .await
        })
        .await;
    match sent {
        Err(failure) if failure.kind == Some(ErrorKind::AlreadyAnswered) => Ok(()),
        other => other.map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_explicit_yes_is_a_yes() {
        for no_answer in [
            "",
            "  ",
            "yess",
            "ok",
            "yes please",
            "a new plan",
            "s s",
            "1",
            "r",
        ] {
            assert_eq!(Reply::parse(no_answer), None, "{no_answer:?}");
        }
        for (line, scope) in [
            ("y", Scope::Call),
            (" YES ", Scope::Call),
            ("p", Scope::Program),
            ("s", Scope::Session),
            ("a", Scope::Always),
        ] {
            assert_eq!(Reply::parse(line), Some(Reply::new(Answer::Allow, scope)));
        }
    }

    #[test]
    fn a_yes_may_name_the_pattern_that_it_is_for() {
        let of = |line: &str| {
            let reply = Reply::parse(line)?;
            Some((reply.answer, reply.scope, reply.pattern?))
        };
        let pattern = |scope, pattern: &str| Some((Answer::Allow, scope, pattern.to_owned()));
        assert_eq!(
            of("always: cargo test *"),
            pattern(Scope::Always, "cargo test *")
        );
        assert_eq!(of(" session:src/* "), pattern(Scope::Session, "src/*"));
        assert_eq!(of("always: a: b"), pattern(Scope::Always, "a: b"));
        for none in ["always:", "session: ", "Always: x", "always x"] {
            assert_eq!(Reply::parse(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_no_may_carry_a_reason() {
        assert_eq!(
            Reply::parse("n"),
            Some(Reply::new(Answer::Deny, Scope::Call))
        );
        assert_eq!(Reply::parse("r use  trash"), Some(Reply::no("use  trash")));
        assert_eq!(Reply::parse("No, not now"), Some(Reply::no("not now")));
    }

    fn question(arguments: Value) -> String {
        let question = Question {
            approval: "s.a1".into(),
            call: "c1".into(),
            tool: "execute".into(),
            arguments,
            why: "default: ask".into(),
            patterns: Vec::new(),
            of_program: false,
            change: None,
        };
        question.text(Paint::Plain)
    }

    #[test]
    fn a_question_shows_all_that_would_run() {
        assert_eq!(
            question(json!({"command": "echo a\nrm -r b"})),
            "? allow execute?\n    echo a\n    rm -r b\n  default: ask"
        );
        assert_eq!(
            question(json!({"path": "a", "content": "x\ny", "n": [1, "\u{1b}"]})),
            "? allow execute?\n    path: a\n    content:\n      x\n      y\n    n: [1,\"\\u001b\"]\n  default: ask"
        );
    }

    #[test]
    fn an_edit_of_every_place_says_so() {
        assert_eq!(
            question(json!({"path": "a", "old": "x", "new": "y", "all": true})),
            "? allow execute?\n    a (wherever it stands)\n    - x\n    + y\n  default: ask"
        );
    }

    #[test]
    fn a_name_forges_no_line_of_the_question() {
        let forged = question(json!({"path": "a\n    + x\n  why", "content": "y"}));
        assert!(forged.contains("\n    a\\n    + x\\n  why\n"), "{forged}");
    }
}
