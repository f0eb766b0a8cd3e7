//! One line of a docstring that says something of a parameter.

use super::Told;

/// `name (type): text`, `name: text`, `name type: text`, `name - text` or the name alone.
pub(super) fn google(line: &str) -> Option<Told> {
    let (name, rest) = name(line.trim_start_matches('*'))?;
    let mut told = Told {
        name: name.to_owned(),
        ..Told::default()
    };
    let rest = rest.trim_start();
    if let Some((kind, rest)) = parentheses(rest) {
        typed(&mut told, kind);
        rest.trim_start()
            .trim_start_matches(':')
            .trim()
            .clone_into(&mut told.text);
        return Some(told);
    }
    if let Some(text) = rest.strip_prefix([':', '-', '–', '—']) {
        text.trim().clone_into(&mut told.text);
        return Some(told);
    }
    match rest.split_once(": ").or_else(|| rest.split_once(':')) {
        Some((kind, text)) if is_type(kind) => {
            typed(&mut told, kind);
            text.trim().clone_into(&mut told.text);
        }
        _ if rest.is_empty() => {}
        _ => return None,
    }
    Some(told)
}

/// `name : type, optional` or `a, b : type`.
pub(super) fn numpy(line: &str) -> Vec<Told> {
    let (names, kind) = match line.split_once(':') {
        Some((names, kind)) => (names, Some(kind)),
        None => (line, None),
    };
    let mut all = Vec::new();
    for name in names.split(',') {
        let mut told = Told {
            name: name.trim().trim_start_matches('*').to_owned(),
            ..Told::default()
        };
        if let Some(kind) = kind {
            typed(&mut told, kind);
        }
        all.push(told);
    }
    all
}

pub(super) enum Field<'l> {
    Parameter {
        name: &'l str,
        kind: Option<&'l str>,
    },
    Type {
        name: &'l str,
    },
    Other,
}

/// `:param a: text`, `:param str a: text`, `:type a: str`; `:returns:` and others are fields too.
pub(super) fn field(line: &str) -> Option<(Field<'_>, &str)> {
    let rest = line.trim_start().strip_prefix(':')?;
    let (head, value) = rest.split_once(':')?;
    let (tag, about) = match head.split_once(' ') {
        Some((tag, about)) => (tag, about.trim()),
        None => (head, ""),
    };
    let field = match tag {
        "param" | "parameter" | "arg" | "argument" | "key" | "keyword" if !about.is_empty() => {
            let (kind, name) = match about.rsplit_once(' ') {
                Some((kind, name)) => (Some(kind.trim()), name),
                None => (None, about),
            };
            let name = name.trim_start_matches('*');
            Field::Parameter { name, kind }
        }
        "type" if !about.is_empty() => Field::Type { name: about },
        "return" | "returns" | "rtype" | "raise" | "raises" | "except" | "exception" | "yield"
        | "yields" | "var" | "ivar" | "cvar" | "vartype" | "meta" => Field::Other,
        _ => return None,
    };
    Some((field, value))
}

fn typed(told: &mut Told, kind: &str) {
    let kind = kind.trim();
    let lower = kind.to_lowercase();
    told.optional = lower.split([',', ' ']).any(|word| word == "optional")
        || lower.starts_with("optional[")
        || lower.contains("none");
    let bare = lower.strip_suffix("optional").map_or(kind.len(), |rest| {
        rest.trim_end().trim_end_matches(',').len()
    });
    let bare = kind.get(..bare).unwrap_or(kind).trim();
    told.kind = (!bare.is_empty()).then(|| bare.to_owned());
}

fn name(line: &str) -> Option<(&str, &str)> {
    let end = line.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    (!name.is_empty()).then_some((name, rest))
}

fn parentheses(rest: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
        if depth == 0 {
            return Some((&rest[1..at], &rest[at + 1..]));
        }
    }
    None
}

/// One word, or words inside brackets.
fn is_type(kind: &str) -> bool {
    let mut depth = 0_i32;
    !kind.is_empty()
        && kind.chars().all(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            !c.is_whitespace() || depth > 0
        })
}
