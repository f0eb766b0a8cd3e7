//! As much of Python's expressions as hints and defaults are made of.
//! Must never go deeper than a person would write.

use super::literal::one;
use crate::toolbox::source::script::is_whole;
use serde_json::Value;

const DEPTH: usize = 32;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    /// The last part of a dotted name.
    Name(String),
    Text(String),
    /// `None`, a truth value or a number.
    Value(Value),
    /// `a[b, c]`
    Of(Box<Expression>, Vec<Expression>),
    /// `a | b`
    Either(Vec<Expression>),
    /// A list or a tuple.
    List(Vec<Expression>),
    Pairs(Vec<(Expression, Expression)>),
    /// `f(a, b=c)`: what is not named has no name.
    Call(String, Vec<(String, Expression)>),
}

/// None when it is anything else.
pub(super) fn read(text: &str) -> Option<Expression> {
    let mut reader = Reader {
        rest: text,
        depth: 0,
    };
    let expression = reader.either()?;
    reader.skip();
    reader.rest.is_empty().then_some(expression)
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl Reader<'_> {
    /// Blanks, line ends, joined lines and comments mean nothing here.
    fn skip(&mut self) {
        loop {
            let rest = self
                .rest
                .trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
            self.rest = rest;
            match rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => return,
            }
        }
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn either(&mut self) -> Option<Expression> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let mut parts = vec![self.part()?];
        while self.take("|") {
            parts.push(self.part()?);
        }
        self.depth -= 1;
        match parts.len() {
            1 => parts.pop(),
            _ => Some(Expression::Either(parts)),
        }
    }

    fn part(&mut self) -> Option<Expression> {
        let mut expression = self.atom()?;
        loop {
            if self.take("[") {
                let parts = self.list("]")?;
                expression = Expression::Of(Box::new(expression), parts);
            } else if self.take("(") {
                let Expression::Name(name) = expression else {
                    return None;
                };
                expression = Expression::Call(name, self.arguments()?);
            } else {
                return Some(expression);
            }
        }
    }

    fn atom(&mut self) -> Option<Expression> {
        if self.take("[") {
            return self.list("]").map(Expression::List);
        }
        if self.take("(") {
            return self.parentheses();
        }
        if self.take("{") {
            return self.pairs();
        }
        if self.take("...") {
            return Some(Expression::Name("...".to_owned()));
        }
        self.text()
            .or_else(|| self.number())
            .or_else(|| self.name())
    }

    fn text(&mut self) -> Option<Expression> {
        self.skip();
        let letters = self
            .rest
            .chars()
            .take_while(char::is_ascii_alphabetic)
            .count();
        let quoted = self.rest.get(letters..)?.starts_with(['"', '\'']);
        if letters > 2 || !quoted {
            return None;
        }
        let mut whole = String::new();
        loop {
            let (part, rest) = one(self.rest)?;
            whole.push_str(&part);
            self.rest = rest;
            self.skip();
            if !self.rest.starts_with(['"', '\'']) {
                return Some(Expression::Text(whole));
            }
        }
    }

    fn number(&mut self) -> Option<Expression> {
        let digits = self.rest.strip_prefix(['-', '+']).unwrap_or(self.rest);
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
        let length = digits.find(|c| !is_part(c)).unwrap_or(digits.len());
        let mut end = self.rest.len() - digits.len() + length;
        let exponent = &self.rest[end..];
        if self.rest[..end].ends_with(['e', 'E']) && exponent.starts_with(['-', '+']) {
            let more = exponent[1..].find(|c: char| !c.is_ascii_digit());
            end += 1 + more.unwrap_or(exponent.len() - 1);
        }
        let value = number(&self.rest[..end].replace('_', ""))?;
        self.rest = &self.rest[end..];
        Some(Expression::Value(value))
    }

    fn word(&mut self) -> Option<String> {
        self.skip();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then(|| word.to_owned())
    }

    fn name(&mut self) -> Option<Expression> {
        let mut word = self.word()?;
        while self.rest.starts_with('.') && !self.rest.starts_with("...") {
            self.rest = &self.rest[1..];
            word = self.word()?;
        }
        Some(match word.as_str() {
            "None" => Expression::Value(Value::Null),
            "True" => Expression::Value(true.into()),
            "False" => Expression::Value(false.into()),
            _ => Expression::Name(word),
        })
    }

    fn list(&mut self, end: &str) -> Option<Vec<Expression>> {
        let mut parts = Vec::new();
        while !self.take(end) {
            parts.push(self.either()?);
            if !self.take(",") {
                self.take(end).then_some(())?;
                break;
            }
        }
        Some(parts)
    }

    /// A tuple, or what is only put in parentheses.
    fn parentheses(&mut self) -> Option<Expression> {
        let before = self.rest;
        let mut parts = self.list(")")?;
        let inner = &before[..before.len() - self.rest.len() - 1];
        let is_tuple = parts.len() != 1 || inner.trim_end().ends_with(',');
        if is_tuple {
            Some(Expression::List(parts))
        } else {
            parts.pop()
        }
    }

    fn pairs(&mut self) -> Option<Expression> {
        let mut pairs = Vec::new();
        while !self.take("}") {
            let key = self.either()?;
            self.take(":").then_some(())?;
            pairs.push((key, self.either()?));
            if !self.take(",") {
                self.take("}").then_some(())?;
                break;
            }
        }
        Some(Expression::Pairs(pairs))
    }

    fn arguments(&mut self) -> Option<Vec<(String, Expression)>> {
        let mut arguments = Vec::new();
        while !self.take(")") {
            let before = self.rest;
            match self.word().filter(|_| self.take("=")) {
                Some(name) => arguments.push((name, self.either()?)),
                None => {
                    self.rest = before;
                    arguments.push((String::new(), self.either()?));
                }
            }
            if !self.take(",") {
                self.take(")").then_some(())?;
                break;
            }
        }
        Some(arguments)
    }
}

fn number(text: &str) -> Option<Value> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.trim_start_matches('+')),
    };
    let coded = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(prefix, base)| {
            let digits = digits.to_lowercase();
            i64::from_str_radix(digits.strip_prefix(prefix)?, base).ok()
        });
    if let Some(value) = coded {
        return Some((sign * value).into());
    }
    // What JSON writes in the same way stays as it is written, however long.
    if let Ok(value) = serde_json::from_str::<Value>(text.trim_start_matches('+'))
        && (is_whole(&value) || value.as_f64().is_some())
    {
        return Some(value);
    }
    let value: f64 = text.parse().ok()?;
    serde_json::Number::from_f64(value).map(Value::Number)
}
