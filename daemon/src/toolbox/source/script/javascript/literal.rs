//! JavaScript's literals as JSON values: texts, numbers, truth values, lists and objects of them. What is no literal is
//! nothing. Must never go deeper than a person would write.

use serde_json::{Map, Number, Value};

const DEPTH: usize = 32;

/// None when the text is anything else than one literal.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut reader = Reader {
        rest: text,
        depth: 0,
    };
    let value = reader.value()?;
    reader.rest.trim().is_empty().then_some(value)
}

/// A string literal at the beginning, and what follows it. One that is put together while it runs is none.
pub(super) fn string(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
    let mut whole = String::new();
    let mut chars = text[1..].chars();
    loop {
        match chars.next()? {
            c if c == quote => return Some((whole, chars.as_str())),
            '$' if quote == '`' && chars.as_str().starts_with('{') => return None,
            '\\' => escape(&mut chars, &mut whole)?,
            c => whole.push(c),
        }
    }
}

fn escape(chars: &mut std::str::Chars<'_>, whole: &mut String) -> Option<()> {
    match chars.next()? {
        'n' => whole.push('\n'),
        't' => whole.push('\t'),
        'r' => whole.push('\r'),
        'b' => whole.push('\u{8}'),
        'f' => whole.push('\u{c}'),
        'v' => whole.push('\u{b}'),
        '0' => whole.push('\0'),
        '\n' => {}
        'x' => whole.push(unit(chars, 2).and_then(char::from_u32)?),
        'u' if chars.as_str().starts_with('{') => {
            let (code, rest) = chars.as_str()[1..].split_once('}')?;
            whole.push(
                u32::from_str_radix(code, 16)
                    .ok()
                    .and_then(char::from_u32)?,
            );
            *chars = rest.chars();
        }
        'u' => {
            let first = unit(chars, 4)?;
            let mut units = vec![u16::try_from(first).ok()?];
            if (0xd800..0xdc00).contains(&first) && chars.as_str().starts_with("\\u") {
                *chars = chars.as_str()[2..].chars();
                units.push(u16::try_from(unit(chars, 4)?).ok()?);
            }
            whole.push_str(&String::from_utf16_lossy(&units));
        }
        other => whole.push(other),
    }
    Some(())
}

fn unit(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<u32> {
    let code = chars.as_str().get(..digits)?;
    let read = u32::from_str_radix(code, 16).ok()?;
    *chars = chars.as_str()[digits..].chars();
    Some(read)
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let value = if self.take("[") {
            self.list()
        } else if self.take("{") {
            self.object()
        } else if let Some((text, rest)) = string(self.rest) {
            self.rest = rest;
            Some(Value::String(text))
        } else {
            self.word()
        };
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Option<Value> {
        let mut values = Vec::new();
        while !self.take("]") {
            values.push(self.value()?);
            if !self.take(",") {
                return self.take("]").then_some(Value::Array(values));
            }
        }
        Some(Value::Array(values))
    }

    fn object(&mut self) -> Option<Value> {
        let mut members = Map::new();
        while !self.take("}") {
            self.rest = self.rest.trim_start();
            let name = match string(self.rest) {
                Some((name, rest)) => {
                    self.rest = rest;
                    name
                }
                None => self.part().to_owned(),
            };
            if name.is_empty() || !self.take(":") {
                return None;
            }
            members.insert(name, self.value()?);
            if !self.take(",") {
                return self.take("}").then_some(Value::Object(members));
            }
        }
        Some(Value::Object(members))
    }

    fn part(&mut self) -> &'t str {
        let is_part = |c: char| c.is_alphanumeric() || "_$.".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (part, rest) = self.rest.split_at(end);
        self.rest = rest;
        part
    }

    fn word(&mut self) -> Option<Value> {
        let is_negative = self.take("-");
        if !is_negative {
            self.take("+");
        }
        self.rest = self.rest.trim_start();
        let begin = self.rest;
        let mut word = self.part();
        // The sign of an exponent is no part of a name.
        if word.ends_with(['e', 'E'])
            && !word.starts_with("0x")
            && self.rest.starts_with(['-', '+'])
        {
            let digits = self.rest[1..].find(|c: char| !c.is_ascii_digit());
            let end = word.len() + 1 + digits.unwrap_or(self.rest.len() - 1);
            (word, self.rest) = begin.split_at(end);
        }
        match word {
            "true" | "false" | "null" if begin.len() == self.rest.len() + word.len() => {
                Some(match word {
                    "null" => Value::Null,
                    word => Value::Bool(word == "true"),
                })
            }
            word => number(word, is_negative).map(Value::Number),
        }
    }
}

fn number(word: &str, is_negative: bool) -> Option<Number> {
    if !word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let digits = word.replace('_', "").to_ascii_lowercase();
    let based = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(mark, base)| {
            let digits = digits.strip_prefix(mark)?;
            Some(
                u64::from_str_radix(digits, base)
                    .ok()
                    .map(|whole| whole.to_string()),
            )
        });
    let plain = match based {
        Some(whole) => whole?,
        None => decimal(digits.strip_suffix('n').unwrap_or(&digits))?,
    };
    let sign = if is_negative { "-" } else { "" };
    serde_json::from_str(&format!("{sign}{plain}")).ok()
}

/// As JSON writes it: digits on both sides of a point.
fn decimal(digits: &str) -> Option<String> {
    let (number, exponent) = match digits.split_once('e') {
        Some((number, exponent)) => (number, format!("e{exponent}")),
        None => (digits, String::new()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{whole}{point}{fraction}{exponent}"))
}
