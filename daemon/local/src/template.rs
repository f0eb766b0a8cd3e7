//! From a conversation to the text that a model reads: its own template, run in a sandbox of a template engine.
//! Must never let a template see more than the conversation.

use minijinja::{Environment, Error, ErrorKind, Value, context};
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

/// For models that know the marks of ChatML, and have no template.
const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// For models that know no marks at all.
const TALK: &str = "{% for message in messages %}{% if message.role == 'system' %}{{ message.content }}\n\n{% else %}{{ message.role | capitalize }}: {{ message.content }}\n{% endif %}{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}";

/// For models that only go on with a text: the last words of the person.
const TEXT: &str = "{{ messages[-1].content }}";

/// What a render may compute before it counts as endless.
const FUEL: u64 = 20_000_000;

pub struct Template {
    environment: Environment<'static>,
    pub knows_tools: bool,
}

/// Where a template comes from.
pub enum Source<'a> {
    File(&'a str),
    ChatMl,
    Talk,
    Text,
}

impl Template {
    pub fn new(source: &Source<'_>) -> Result<Self, String> {
        let text = match source {
            Source::File(text) => text,
            Source::ChatMl => CHATML,
            Source::Talk => TALK,
            Source::Text => TEXT,
        };
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(FUEL));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| {
            Err::<Value, _>(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", |format: String| {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            date(&format, now.as_secs())
        });
        environment.add_filter("tojson", to_json);
        let added = environment.add_template_owned("chat", text.to_owned());
        added.map_err(|error| format!("its chat template is damaged: {error}"))?;
        Ok(Self {
            environment,
            knows_tools: text.contains("tools"),
        })
    }

    /// The prompt up to where the model is to go on.
    pub fn render(
        &self,
        messages: &[serde_json::Value],
        tools: &[serde_json::Value],
        begin: &str,
        end: &str,
    ) -> Result<String, String> {
        let messages: Vec<_> = messages.iter().map(seen).collect();
        let tools = Some(tools).filter(|tools| !tools.is_empty());
        let tools: Option<Vec<_>> = tools.map(|tools| tools.iter().map(seen).collect());
        let rendered = self.environment.get_template("chat").and_then(|template| {
            template.render(context! {
                messages, tools, bos_token => begin, eos_token => end, add_generation_prompt => true, enable_thinking => false,
            })
        });
        rendered.map_err(|error| {
            format!("the model's chat template cannot take this conversation: {error}")
        })
    }
}

/// Taken over member by member: the reader of JSON keeps numbers as they were written, which it can hand over to itself alone.
fn seen(value: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::from(()),
        Json::Bool(is) => Value::from(*is),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(seen).collect(),
        Json::Object(members) => members
            .iter()
            .map(|(name, member)| (Value::from(name.as_str()), seen(member)))
            .collect(),
        Json::Number(number) => number
            .as_i64()
            .map(Value::from)
            .or_else(|| number.as_u64().map(Value::from))
            .or_else(|| number.as_f64().map(Value::from))
            .unwrap_or_else(|| Value::from(number.to_string())),
    }
}

/// JSON as Python writes it, which is what the models were trained on.
fn to_json(value: &Value) -> Result<Value, Error> {
    let mut out = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut out, Spaced);
    let written = value.serialize(&mut writer);
    written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let text = String::from_utf8_lossy(&out).into_owned();
    Ok(Value::from_safe_string(text))
}

/// A space behind each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
];

/// The time in UTC, in the letters of `strftime` that templates use.
fn date(format: &str, seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('Y') => out.push_str(&year.to_string()),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('B') => out.push_str(MONTHS[month - 1]),
            Some('b') => out.push_str(&MONTHS[month - 1][..3]),
            Some('A') => out.push_str(DAYS[(days % 7) as usize]),
            Some('a') => out.push_str(&DAYS[(days % 7) as usize][..3]),
            Some('H') => out.push_str(&format!("{:02}", rest / 3600)),
            Some('M') => out.push_str(&format!("{:02}", rest / 60 % 60)),
            Some('S') => out.push_str(&format!("{:02}", rest % 60)),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// Year, month and day of a count of days since 1970.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dates_are_right_over_leap_years() {
        assert_eq!(date("%d %b %Y %A", 0), "01 Jan 1970 Thursday");
        assert_eq!(
            date("%Y-%m-%d %H:%M:%S", 1_709_210_096),
            "2024-02-29 12:34:56"
        );
        assert_eq!(date("%B %d 100%", 4_102_444_799), "December 31 100");
    }

    fn rendered(template: &str) -> Result<String, String> {
        let tools = [
            json!({"type": "function", "function": {"name": "read <x>", "parameters": {}}}),
            json!({"least": 5, "most": 1.5, "size": u64::MAX}),
        ];
        let messages = [json!({"role": "user", "content": " hi "})];
        Template::new(&Source::File(template))
            .and_then(|template| template.render(&messages, &tools, "<s>", "</s>"))
    }

    #[test]
    fn templates_have_what_those_of_models_use() {
        assert_eq!(
            rendered("{{ messages[0].content.strip() }}{{ bos_token }}").expect("fine"),
            "hi<s>"
        );
        assert_eq!(
            rendered("{{ tools[0] | tojson }}").expect("fine"),
            r#"{"type": "function", "function": {"name": "read <x>", "parameters": {}}}"#
        );
        assert_eq!(
            rendered("{{ tools[1] | tojson }}{{ tools[1].least + 1 }}").expect("fine"),
            r#"{"least": 5, "most": 1.5, "size": 18446744073709551615}6"#
        );
        let raised = rendered("{{ raise_exception('roles must alternate') }}").expect_err("raised");
        assert!(raised.contains("roles must alternate"), "{raised}");
    }

    #[test]
    fn a_template_without_end_is_stopped() {
        let endless =
            "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
        assert!(rendered(endless).is_err());
    }
}
