//! A JSDoc block taken apart: its text, and its tags with theirs.
//! Knows nothing of what a tag means.

use super::super::trimmed;

/// One block of a file.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) line: usize,
    text: Vec<String>,
    pub(super) tags: Vec<Tag>,
}

#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) line: usize,
    /// What follows the name, over all its lines.
    pub(super) body: String,
}

impl Block {
    /// None when the comment is no JSDoc.
    pub(super) fn read(comment: &str, line: usize) -> Option<Self> {
        let inner = comment.strip_prefix("/**")?.strip_suffix("*/")?;
        let mut block = Self {
            line,
            text: Vec::new(),
            tags: Vec::new(),
        };
        for (at, raw) in inner.lines().enumerate() {
            block.push(bare(raw, at), line + at);
        }
        Some(block)
    }

    fn push(&mut self, content: &str, line: usize) {
        if let Some((name, body)) = tag(content) {
            self.tags.push(Tag {
                name: name.to_owned(),
                line,
                body: body.to_owned(),
            });
        } else if let Some(open) = self.tags.last_mut() {
            open.body.push('\n');
            open.body.push_str(content);
        } else {
            self.text.push(content.to_owned());
        }
    }

    /// The text before the tags, or that of `@description`.
    pub(super) fn description(&self) -> String {
        let text = trimmed(self.text.iter().map(String::as_str));
        if !text.is_empty() {
            return text;
        }
        let names = ["description", "desc", "summary"];
        let found = self
            .tags
            .iter()
            .find(|tag| names.contains(&tag.name.as_str()));
        found
            .map(|tag| trimmed(tag.body.lines()))
            .unwrap_or_default()
    }
}

/// A line without the star that leads it; the first has none.
fn bare(raw: &str, at: usize) -> &str {
    let line = raw.trim();
    match line.strip_prefix('*') {
        Some(rest) if at > 0 => rest.trim(),
        _ => line,
    }
}

/// A tag stands at the beginning of a line.
fn tag(content: &str) -> Option<(&str, &str)> {
    let rest = content.strip_prefix('@')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, body) = rest.split_at(end.unwrap_or(rest.len()));
    (!name.is_empty()).then(|| (name, body.trim()))
}
