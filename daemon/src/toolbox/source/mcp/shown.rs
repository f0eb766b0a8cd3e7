//! What a server is reached with as people may see it: variables as they are written in the file, and no password or query
//! of a URL. Must never show what they stand for.

use super::config::{Config, How};
use reqwest::Url;

/// A shorter value would be found in words that have nothing to do with it, and is no key.
const SHORTEST: usize = 4;
const STARS: &str = "***";

/// What is replaced, and by what; the longest first.
#[derive(Clone, Default)]
pub struct Shown(Vec<(String, String)>);

impl Shown {
    pub fn of(config: &Config) -> Self {
        let written = config.variables.iter();
        let mut all: Vec<_> = written
            .flat_map(|(name, value)| {
                let by = format!("${{{name}}}");
                [(value.clone(), by.clone()), (encoded(value), by)]
            })
            .collect();
        if let How::Http { url, .. } = &config.how {
            // A part of it may be a variable, which says more than stars.
            let known = all.len();
            for part in secrets(url) {
                if !all[..known].iter().any(|(value, _)| *value == part) {
                    all.push((part, STARS.to_owned()));
                }
            }
        }
        all.retain(|(value, _)| value.len() >= SHORTEST);
        all.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self(all)
    }

    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, by) in &self.0 {
            text = text.replace(value, by);
        }
        text
    }
}

/// A URL for the log.
pub(super) fn plain(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return STARS.to_owned();
    };
    url.set_query(None);
    url.set_fragment(None);
    // Only a URL that can have none refuses to be without.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// As they stand in the URL, and as they are meant.
fn secrets(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else {
        return Vec::new();
    };
    let mut all = vec![url.username().to_owned()];
    all.extend(url.password().map(str::to_owned));
    for pair in url.query().unwrap_or_default().split('&') {
        let value = pair.split_once('=').map_or(pair, |(_, value)| value);
        all.push(value.to_owned());
    }
    all.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    all
}

/// As a URL's parser writes it.
fn encoded(value: &str) -> String {
    let Ok(mut url) = Url::parse("http://h/") else {
        return value.to_owned();
    };
    url.set_query(Some(value));
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::config::{Text, read};
    use super::{Shown, plain};
    use std::path::Path;

    fn shown(entry: &str, text: &str) -> String {
        let (file, folder) = (Path::new("mcp.json"), Path::new("/w"));
        let whole = format!(r#"{{"mcpServers":{{"s":{entry}}}}}"#);
        let file = Text {
            path: file,
            text: &whole,
            folder,
            start: folder,
        };
        let variable = |name: &str| match name {
            "MYKEY" => Some("s3kr3t value".to_owned()),
            "LONGER" => Some("s3kr3t value and more".to_owned()),
            "X" => Some("x".to_owned()),
            _ => None,
        };
        let listing = read(&file, &variable);
        assert_eq!(listing.problems, [""; 0]);
        Shown::of(&listing.servers[0]).text(text)
    }

    #[test]
    fn variables_are_shown_as_they_are_written_in_whatever_form_they_come() {
        let entry = r#"{"url":"http://h/mcp?key=${MYKEY}&x=${X}&more=${LONGER}"}"#;
        let text = "s3kr3t value and more, s3kr3t value, s3kr3t%20value: x";
        assert_eq!(shown(entry, text), "${LONGER}, ${MYKEY}, ${MYKEY}: x");
        let entry = r#"{"command":"/bin/${MYKEY}","args":["${LONGER}"]}"#;
        assert_eq!(shown(entry, "no /bin/s3kr3t value"), "no /bin/${MYKEY}");
    }

    #[test]
    fn password_and_query_of_a_url_are_stars_and_the_rest_stays() {
        let entry = r#"{"url":"https://somebody:passw0rd@host/mcp?key=abcdef%21&q"}"#;
        let text = "https://somebody:passw0rd@host/mcp?key=abcdef%21&q: refused abcdef!";
        assert_eq!(
            shown(entry, text),
            "https://***:***@host/mcp?key=***&q: refused ***"
        );
        assert_eq!(plain("https://u:p@host/mcp?key=abc#f"), "https://host/mcp");
        assert_eq!(plain("no url"), "***");
    }
}
