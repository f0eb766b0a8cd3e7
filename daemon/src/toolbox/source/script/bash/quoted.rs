//! Which lines of a bash script begin inside a here-document or a quotation, where nothing is a comment.
//! Reads as much of bash as that needs; where it loses its way it says that nothing is inside.

/// For every line, whether bash reads it as text.
pub(super) fn inside(text: &str) -> Vec<bool> {
    let lines: Vec<_> = text.lines().collect();
    let mut scan = Scan::default();
    let mut inside = Vec::with_capacity(lines.len());
    let mut at = 0;
    let mut opened = None;
    while at < lines.len() {
        let was = scan.quote.is_some();
        inside.push(was);
        if was && opened.is_none() {
            opened = Some(at);
        } else if !was {
            opened = None;
        }
        let documents = scan.line(lines[at]);
        at += 1;
        for document in documents {
            let Some(length) = lines[at..].iter().position(|line| document.ends(line)) else {
                continue;
            };
            inside.extend(std::iter::repeat_n(true, length + 1));
            at += length + 1;
        }
    }
    // A quotation that never ends is one that was misread.
    if let Some(opened) = opened.filter(|_| scan.quote.is_some()) {
        inside[opened..].fill(false);
    }
    inside
}

/// A here-document that begins after this line.
struct Document {
    delimiter: String,
    /// `<<-`: the delimiter may be indented by tabs.
    tabs: bool,
}

impl Document {
    fn ends(&self, line: &str) -> bool {
        let line = if self.tabs {
            line.trim_start_matches('\t')
        } else {
            line
        };
        line == self.delimiter
    }
}

#[derive(Default)]
struct Scan {
    quote: Option<char>,
}

impl Scan {
    fn line(&mut self, line: &str) -> Vec<Document> {
        let mut documents = Vec::new();
        let mut chars = line.char_indices().peekable();
        let mut before = ' ';
        while let Some((at, c)) = chars.next() {
            match (self.quote, c) {
                (Some('\''), '\'') => self.quote = None,
                (Some('\''), _) => {}
                // In `$'...'` and everywhere else a backslash takes the next character with it.
                (_, '\\') => drop(chars.next()),
                (Some('"'), '"') => self.quote = None,
                (Some('$'), '\'') => self.quote = None,
                (Some(_), _) => {}
                (None, '\'') if before == '$' => self.quote = Some('$'),
                (None, '\'' | '"') => self.quote = Some(c),
                (None, '#') if before.is_whitespace() || ";(&|".contains(before) => {
                    return documents;
                }
                (None, '<') if line[at..].starts_with("<<") => {
                    let is_string = line[at..].starts_with("<<<") || before == '<';
                    if !is_string && let Some(document) = document(&line[at + 2..]) {
                        documents.push(document);
                    }
                }
                (None, _) => {}
            }
            before = c;
        }
        documents
    }
}

/// The delimiter after `<<`.
fn document(rest: &str) -> Option<Document> {
    let (rest, tabs) = match rest.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let rest = rest.trim_start_matches([' ', '\t']);
    let mut delimiter = String::new();
    let mut quote = None;
    for c in rest.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => delimiter.push(c),
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '\\' => {}
            None if c.is_whitespace() || "<>;&|()".contains(c) => break,
            None => delimiter.push(c),
        }
    }
    (!delimiter.is_empty()).then_some(Document { delimiter, tabs })
}
