//! An editor's prompt as a turn's text and pictures.

use super::error::{Error, invalid};
use agent_client_protocol_schema::v1::{ContentBlock, EmbeddedResource, EmbeddedResourceResource};
use protocol::event::Image;
use serde_json::Value;

/// Characters of a word that names what was left out.
const WORD: usize = 200;

/// What a turn begins with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::acp) struct Prompt {
    pub(in crate::acp) text: String,
    pub(in crate::acp) images: Vec<Image>,
}

/// One text; files that were named stay where they were named, files that were given follow behind it. What no model here
/// is given is named to it in brackets, and told in the second place: the person's words count all the same.
pub(in crate::acp) fn read(blocks: Vec<Value>) -> Result<(Prompt, Vec<String>), Error> {
    let mut prompt = Prompt::default();
    let (mut given, mut left_out) = (Vec::new(), Vec::new());
    for block in blocks {
        match part(block) {
            Part::Words(text) => prompt.text.push_str(&text),
            Part::Link(link) => name(&mut prompt.text, &link),
            Part::Given(text) => given.push(text),
            Part::Picture(image) => prompt.images.push(image),
            Part::Other(what) => left_out.push(what),
        }
    }
    for text in given {
        prompt.text.push_str(&text);
    }
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err(match left_out.is_empty() {
            true => invalid("the prompt is empty"),
            false => invalid(format!(
                "a prompt may hold text, pictures, links and embedded text; there is nothing but {}",
                left_out.join(", ")
            )),
        });
    }
    for what in &left_out {
        prompt.text.push_str(&format!(
            "\n\n[left out, as it cannot be shown to you: {what}]"
        ));
    }
    Ok((prompt, left_out))
}

/// What a block comes to.
enum Part {
    Words(String),
    Link(String),
    /// A file's text.
    Given(String),
    Picture(Image),
    /// Something that no model here is given, in words.
    Other(String),
}

fn part(block: Value) -> Part {
    let whole = serde_json::from_value(block.clone());
    let taken = match whole {
        Ok(ContentBlock::Text(text)) => Some(Part::Words(text.text)),
        Ok(ContentBlock::Image(image)) => picture(image.mime_type, image.data),
        Ok(ContentBlock::ResourceLink(link)) => Some(Part::Link(path_of(&link.uri))),
        Ok(ContentBlock::Resource(resource)) => give(resource),
        _ => None,
    };
    taken.unwrap_or_else(|| Part::Other(described(&block)))
}

/// None where no vendor takes it.
fn picture(mime_type: String, data: String) -> Option<Part> {
    let image = Image { mime_type, data };
    image.fault().is_none().then_some(Part::Picture(image))
}

/// What a block is, for the model and the person: its type, what it is of, and where it is.
fn described(block: &Value) -> String {
    let inner = &block["resource"];
    let word = |name: &str| block[name].as_str().or_else(|| inner[name].as_str());
    let kind = match block["type"].as_str() {
        Some(kind) => format!("a block of type {:?}", short(kind)),
        None => "a block without a type".to_owned(),
    };
    let of = word("mimeType").map(|kind| format!(" of {}", short(kind)));
    let at = word("uri").map(|uri| format!(" at {}", short(&path_of(uri))));
    [Some(kind), of, at].into_iter().flatten().collect()
}

/// A word of the editor's that stands in a line of ours.
fn short(text: &str) -> String {
    let plain = text.chars().filter(|c| !c.is_control());
    plain.take(WORD).collect()
}

/// A link, set apart from the words around it.
fn name(text: &mut String, link: &str) {
    if !text.is_empty() && !text.ends_with(char::is_whitespace) {
        text.push(' ');
    }
    text.push_str(link);
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

/// A file that the editor sends along; none where it is neither text nor a picture.
fn give(resource: EmbeddedResource) -> Option<Part> {
    match resource.resource {
        EmbeddedResourceResource::TextResourceContents(text) => Some(Part::Given(format!(
            "\n\n{}:\n{}",
            path_of(&text.uri),
            fenced(&text.text)
        ))),
        EmbeddedResourceResource::BlobResourceContents(blob) => picture(blob.mime_type?, blob.blob),
        _ => None,
    }
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
    use serde_json::json;

    fn check(blocks: Value) -> Result<Prompt, Error> {
        Ok(read(serde_json::from_value(blocks).unwrap())?.0)
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
    fn what_no_model_is_given_is_named_beside_what_it_is_given() {
        let sound = json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"});
        let blob = json!({"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}});
        let drawing = json!({"type": "image", "data": "aGk=", "mimeType": "image/svg+xml"});
        let strange = json!({"type": "video", "uri": "https://example.org/v"});
        let bare = json!({"type": "resource", "resource": {"x": 1}});
        let words = json!({"type": "text", "text": "hi"});
        let blocks = vec![sound, words, blob, drawing, strange, bare, json!(7)];
        let (prompt, left_out) = read(blocks).unwrap();
        assert_eq!(
            left_out,
            [
                "a block of type \"audio\" of audio/wav",
                "a block of type \"resource\" at /a",
                "a block of type \"image\" of image/svg+xml",
                "a block of type \"video\" at https://example.org/v",
                "a block of type \"resource\"",
                "a block without a type",
            ]
        );
        assert!(prompt.text.starts_with("hi\n\n["), "{}", prompt.text);
        assert!(left_out.iter().all(|what| prompt.text.contains(what)));
    }

    #[test]
    fn what_holds_nothing_for_a_model_is_refused_with_what_may_be_sent() {
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
