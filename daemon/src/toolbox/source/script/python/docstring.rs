//! Docstrings in the forms of Google, NumPy and Sphinx: what a function does, and what its parameters are.
//! Knows nothing of types: what stands in the place of one is passed on as it is.

mod entry;

use super::super::trimmed;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Doc {
    pub(super) description: String,
    parameters: Vec<Told>,
}

/// What is said of one parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    name: String,
    pub(super) kind: Option<String>,
    pub(super) optional: bool,
    pub(super) text: String,
}

impl Doc {
    pub(super) fn parameter(&self, name: &str) -> Option<&Told> {
        self.parameters.iter().find(|told| told.name == name)
    }

    fn told(&mut self, name: &str) -> &mut Told {
        let known = self.parameters.iter().position(|told| told.name == name);
        let at = known.unwrap_or_else(|| {
            self.parameters.push(Told {
                name: name.to_owned(),
                ..Told::default()
            });
            self.parameters.len() - 1
        });
        &mut self.parameters[at]
    }
}

pub(super) fn read(docstring: &str) -> Doc {
    let lines = clean(docstring);
    let mut doc = Doc::default();
    let mut description = Vec::new();
    let mut at = 0;
    let mut is_description = true;
    while at < lines.len() {
        let section = Section::begins(&lines, at);
        match section {
            Some(Section::Google) => at = google(&lines, at + 1, &mut doc),
            Some(Section::Numpy) => at = numpy(&lines, at + 2, &mut doc),
            Some(Section::Field) => at = sphinx(&lines, at, &mut doc),
            Some(Section::Other) => at += 1,
            None => {
                if is_description {
                    description.push(lines[at].as_str());
                }
                at += 1;
            }
        }
        is_description &= section.is_none();
    }
    doc.description = description.join("\n").trim().to_owned();
    doc
}

/// Without the indentation that the code gives it.
fn clean(docstring: &str) -> Vec<String> {
    let tabs = |line: &str| {
        let body = line.trim_start_matches([' ', '\t']);
        let mut width = 0;
        for c in line[..line.len() - body.len()].chars() {
            width = if c == '\t' {
                (width / 8 + 1) * 8
            } else {
                width + 1
            };
        }
        (width, body.trim_end().to_owned())
    };
    let lines: Vec<_> = docstring.lines().map(tabs).collect();
    let rest = lines.iter().skip(1).filter(|(_, body)| !body.is_empty());
    let margin = rest.map(|(width, _)| *width).min().unwrap_or(0);
    let mut cleaned = Vec::with_capacity(lines.len());
    for (at, (width, body)) in lines.into_iter().enumerate() {
        let indent = if at == 0 || body.is_empty() {
            0
        } else {
            width - margin
        };
        cleaned.push(format!("{}{body}", " ".repeat(indent.min(256))));
    }
    cleaned
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    /// `Args:`
    Google,
    /// `Parameters` underlined.
    Numpy,
    /// `:param a:` and its kin.
    Field,
    /// What is not about parameters.
    Other,
}

impl Section {
    fn begins(lines: &[String], at: usize) -> Option<Self> {
        const PARAMETERS: &[&str] = &[
            "args",
            "arguments",
            "params",
            "parameters",
            "keyword args",
            "keyword arguments",
            "other parameters",
        ];
        const OTHERS: &[&str] = &[
            "returns",
            "return",
            "yields",
            "yield",
            "raises",
            "raise",
            "attributes",
            "example",
            "examples",
            "note",
            "notes",
            "see also",
            "references",
            "warns",
            "warnings",
            "todo",
        ];
        let line = lines[at].as_str();
        let lower = line.trim().to_lowercase();
        let is_underlined = lines.get(at + 1).is_some_and(|next| {
            let next = next.trim();
            next.len() >= 3 && next.chars().all(|c| c == '-')
        });
        if is_underlined && PARAMETERS.contains(&lower.as_str()) {
            return Some(Self::Numpy);
        }
        if is_underlined && OTHERS.contains(&lower.as_str()) {
            return Some(Self::Other);
        }
        if entry::field(line).is_some() {
            return Some(Self::Field);
        }
        // A section stands at the margin.
        if indent(line) > 0 {
            return None;
        }
        match lower.strip_suffix(':') {
            Some(name) if PARAMETERS.contains(&name) => Some(Self::Google),
            Some(name) if OTHERS.contains(&name) => Some(Self::Other),
            _ => None,
        }
    }
}

/// Entries are indented alike; what is indented deeper goes on with the entry before it.
fn google(lines: &[String], from: usize, doc: &mut Doc) -> usize {
    let first = lines[from..].iter().find(|line| !line.is_empty());
    let margin = first.map_or(0, |line| indent(line));
    if margin == 0 {
        return from;
    }
    let mut at = from;
    let mut open: Option<Told> = None;
    while let Some(line) = lines
        .get(at)
        .filter(|line| line.is_empty() || indent(line) > 0)
    {
        at += 1;
        let begins =
            (!line.is_empty() && indent(line) <= margin).then(|| entry::google(line.trim()));
        match (begins.flatten(), &mut open) {
            (Some(told), _) => close(doc, open.replace(told)),
            (None, Some(told)) => more(told, line),
            (None, None) => {}
        }
    }
    close(doc, open);
    at
}

/// Entries stand at the margin, their texts are indented.
fn numpy(lines: &[String], from: usize, doc: &mut Doc) -> usize {
    let mut at = from;
    let mut open: Option<Vec<Told>> = None;
    while at < lines.len() && Section::begins(lines, at).is_none() {
        let line = &lines[at];
        at += 1;
        if line.is_empty() || indent(line) > 0 {
            for told in open.iter_mut().flatten() {
                more(told, line);
            }
        } else {
            let told = entry::numpy(line);
            for told in open.replace(told).into_iter().flatten() {
                close(doc, Some(told));
            }
        }
    }
    for told in open.into_iter().flatten() {
        close(doc, Some(told));
    }
    at
}

/// One field and the lines that go on with it.
fn sphinx(lines: &[String], from: usize, doc: &mut Doc) -> usize {
    let mut at = from + 1;
    let mut text = vec![];
    while at < lines.len() && Section::begins(lines, at).is_none() && !lines[at].is_empty() {
        text.push(lines[at].as_str());
        at += 1;
    }
    let Some((field, value)) = entry::field(&lines[from]) else {
        return at;
    };
    match field {
        entry::Field::Parameter { name, kind } => {
            let told = doc.told(name);
            told.text = trimmed(std::iter::once(value).chain(text));
            if let Some(kind) = kind {
                told.kind = Some(kind.to_owned());
            }
        }
        entry::Field::Type { name } => {
            let told = doc.told(name);
            told.optional |= value.contains("optional");
            told.kind = Some(value.trim().to_owned());
        }
        entry::Field::Other => {}
    }
    at
}

fn more(told: &mut Told, line: &str) {
    told.text.push('\n');
    told.text.push_str(line);
}

fn close(doc: &mut Doc, told: Option<Told>) {
    let Some(mut told) = told else {
        return;
    };
    told.text = trimmed(told.text.lines());
    let known = doc.told(&told.name);
    *known = told;
}
