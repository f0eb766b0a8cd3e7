//! Pictures that a prompt names by their path: they go along with it. Must never send a file that is no picture.

use protocol::event::Image;
use std::path::{Path, PathBuf};

/// A larger file would not be taken by any vendor.
const LARGEST: u64 = 5 << 20;

/// How many go along.
const MOST: usize = 8;

/// The pictures that a prompt names: `@path`, or a path from the root, as a terminal types it for a file that is dropped
/// on it.
pub(super) fn named(text: &str, cwd: &Path) -> Vec<Image> {
    let paths = words(text)
        .into_iter()
        .filter_map(|word| path_of(&word, cwd));
    paths.filter_map(|path| read(&path)).take(MOST).collect()
}

fn path_of(word: &str, cwd: &Path) -> Option<PathBuf> {
    match word.strip_prefix('@') {
        Some(path) => Some(cwd.join(path)),
        None => word.starts_with('/').then(|| word.into()),
    }
}

/// Words as a shell takes them apart, so that a path with spaces stays whole.
fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quote, mut escaped) = (Vec::new(), String::new(), None, false);
    for c in text.chars() {
        match (c, quote) {
            (c, _) if escaped => {
                word.push(c);
                escaped = false;
            }
            ('\\', None) => escaped = true,
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) if word.is_empty() => quote = Some(c),
            (c, None) if c.is_whitespace() => all.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all
}

fn read(path: &Path) -> Option<Image> {
    let kind = path.extension()?.to_str()?.to_ascii_lowercase();
    if !matches!(kind.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp") {
        return None;
    }
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > LARGEST {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    Some(Image {
        mime_type: kind_of(&bytes)?.to_string(),
        data: base64(&bytes),
    })
}

/// By how the bytes begin: a name may lie.
fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            match at <= group.len() {
                true => out.push(char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize])),
                false => out.push('='),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn pictures_go_along_and_other_files_do_not() {
        let folder = std::env::temp_dir().join(format!("dwell-image-{}", crate::open::token()));
        std::fs::create_dir(&folder).unwrap();
        let png = [0x89, b'P', b'N', b'G', 1];
        std::fs::write(folder.join("a b.png"), png).unwrap();
        std::fs::write(folder.join("lie.png"), "secret").unwrap();
        std::fs::write(folder.join("c.txt"), png).unwrap();
        let escaped = folder.join("a\\ b.png");
        let text = format!(
            "see {} and @lie.png @c.txt '@a b.png' @none.png",
            escaped.display()
        );
        let found = named(&text, &folder);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|image| image.mime_type == "image/png"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
