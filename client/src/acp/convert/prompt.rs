//! An editor's prompt as a turn's text and pictures.

use super::error::{Error, invalid};
use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResource, EmbeddedResourceResource, ResourceLink,
};
use protocol::event::Image;

/// What a turn begins with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::acp) struct Prompt {
    pub(in crate::acp) text: String,
    pub(in crate::acp) images: Vec<Image>,
}

/// One text; files that were named stay where they were named, files that were given follow behind it.
pub(in crate::acp) fn read(blocks: Vec<ContentBlock>) -> Result<Prompt, Error> {
    let mut prompt = Prompt::default();
    let mut given = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => prompt.text.push_str(&text.text),
            ContentBlock::Image(image) => prompt.images.push(Image {
                mime_type: image.mime_type,
                data: image.data,
            }),
            ContentBlock::ResourceLink(link) => name(&mut prompt.text, &link),
            ContentBlock::Resource(resource) => match give(resource)? {
                Given::Text(text) => given.push(text),
                Given::Image(image) => prompt.images.push(image),
            },
            _ => {
                return Err(invalid(
                    "a prompt may hold text, images, links and embedded text, and nothing else",
                ));
            }
        }
    }
    for text in given {
        prompt.text.push_str(&text);
    }
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err(invalid("the prompt is empty"));
    }
    Ok(prompt)
}

/// A link, set apart from the words around it.
fn name(text: &mut String, link: &ResourceLink) {
    if !text.is_empty() && !text.ends_with(char::is_whitespace) {
        text.push(' ');
    }
    text.push_str(&path_of(&link.uri));
}

/// A file's path where the link is to a file, for tools take paths.
fn path_of(uri: &str) -> String {
    match uri.strip_prefix("file://") {
        Some(path) if path.starts_with('/') => unescape(path),
        _ => uri.to_owned(),
    }
}

/// `%20` and its like; what is no such thing stays.
fn unescape(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..2).filter(|_| first == b'%');
        let code = code.and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A file that the editor sends along.
enum Given {
    Text(String),
    Image(Image),
}

fn give(resource: EmbeddedResource) -> Result<Given, Error> {
    match resource.resource {
        EmbeddedResourceResource::TextResourceContents(text) => Ok(Given::Text(format!(
            "\n\n{}:\n{}",
            path_of(&text.uri),
            fenced(&text.text)
        ))),
        EmbeddedResourceResource::BlobResourceContents(blob) => match blob.mime_type {
            Some(mime_type) if mime_type.starts_with("image/") => Ok(Given::Image(Image {
                mime_type,
                data: blob.blob,
            })),
            _ => Err(only_text()),
        },
        _ => Err(only_text()),
    }
}

fn only_text() -> Error {
    invalid("an embedded resource must be text or an image; give other files as links")
}

/// Behind a fence that is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(blocks: Value) -> Result<Prompt, Error> {
        read(serde_json::from_value(blocks).unwrap())
    }

    #[test]
    fn links_are_paths_among_the_words_and_given_files_follow_behind() {
        let prompt = check(json!([
            {"type": "text", "text": "compare"},
            {"type": "resource_link", "uri": "file:///a/b%20c.rs", "name": "b c.rs"},
            {"type": "text", "text": " with"},
            {"type": "resource", "resource": {"uri": "file:///d.md", "text": "```x```"}},
            {"type": "resource_link", "uri": "https://example.org/%41", "name": "e"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        ]));
        let text = "compare /a/b c.rs with https://example.org/%41\n\n/d.md:\n````\n```x```\n````";
        let image = Image {
            mime_type: "image/png".into(),
            data: "aGk=".into(),
        };
        assert_eq!(
            prompt,
            Ok(Prompt {
                text: text.into(),
                images: vec![image]
            })
        );
    }

    #[test]
    fn what_no_model_is_given_is_refused_with_what_may_be_sent() {
        let sound = json!([{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]);
        let blob = json!([{"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}}]);
        for blocks in [
            sound,
            blob,
            json!([]),
            json!([{"type": "text", "text": " \n"}]),
        ] {
            assert_eq!(
                check(blocks.clone()).unwrap_err().code,
                (-32602).into(),
                "{blocks}"
            );
        }
    }

    #[test]
    fn a_percent_sign_that_begins_no_code_stays() {
        for (path, expected) in [("/a%", "/a%"), ("/%zz%4", "/%zz%4"), ("/%C3%BC", "/ü")] {
            assert_eq!(unescape(path), expected);
        }
    }
}
