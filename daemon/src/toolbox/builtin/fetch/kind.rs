//! What came: its type, and its text in whatever encoding. Must never fail on any bytes.

use reqwest::header::{CONTENT_TYPE, HeaderMap};

/// A content type, as far as it matters.
#[derive(Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) name: String,
    charset: Option<String>,
}

impl Kind {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let value = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        Self::parse(value.unwrap_or_default())
    }

    fn parse(value: &str) -> Self {
        let mut parts = value.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            key.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        Self { name, charset }
    }

    pub(super) fn is_html(&self) -> bool {
        ["text/html", "application/xhtml+xml"].contains(&self.name.as_str())
    }

    pub(super) fn is_text(&self) -> bool {
        const OTHERS: &[&str] = &[
            "json",
            "xml",
            "javascript",
            "ecmascript",
            "yaml",
            "toml",
            "x-sh",
            "sql",
            "x-ndjson",
            "graphql",
        ];
        let of_application = |rest: &str| {
            let format = rest.rsplit('+').next().unwrap_or(rest);
            OTHERS.contains(&format) || OTHERS.contains(&rest)
        };
        self.name.starts_with("text/")
            || self
                .name
                .strip_prefix("application/")
                .is_some_and(of_application)
            || self.name == "image/svg+xml"
    }
}

/// The type of what came without one.
pub(super) fn sniff(body: &[u8]) -> &'static str {
    let start = &body[..body.len().min(1024)];
    let lower = String::from_utf8_lossy(start)
        .trim_start()
        .to_ascii_lowercase();
    if start.contains(&0) {
        "application/octet-stream"
    } else if lower.starts_with("<!doctype html") || lower.starts_with("<html") {
        "text/html"
    } else {
        "text/plain"
    }
}

/// By the mark at its beginning, else as the header says, else as the page says, else UTF-8.
pub(super) fn decode(body: &[u8], kind: &Kind) -> String {
    let named = kind.charset.clone().or_else(|| {
        if kind.is_html() {
            meta_charset(body)
        } else {
            None
        }
    });
    let encoding = named.and_then(|name| encoding_rs::Encoding::for_label(name.as_bytes()));
    let (text, _, _) = encoding.unwrap_or(encoding_rs::UTF_8).decode(body);
    text.into_owned()
}

fn meta_charset(body: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(&body[..body.len().min(2048)]).to_ascii_lowercase();
    let (_, rest) = start.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'']);
    let name: String = rest
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || "-_".contains(*letter))
        .collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told_apart() {
        let text = [
            "text/csv",
            "application/json",
            "application/ld+json",
            "image/svg+xml",
            "application/x-sh",
        ];
        assert!(text.iter().all(|name| Kind::parse(name).is_text()));
        assert!(
            !["image/png", "application/pdf", "application/zip"]
                .iter()
                .any(|name| Kind::parse(name).is_text())
        );
        let kind = Kind::parse("Text/HTML; x=1; Charset=\"utf-8\"");
        assert_eq!(
            kind,
            Kind {
                name: "text/html".into(),
                charset: Some("utf-8".into())
            }
        );
        assert_eq!(
            meta_charset(b"<meta charset='koi8-r'>"),
            Some("koi8-r".into())
        );
    }
}
