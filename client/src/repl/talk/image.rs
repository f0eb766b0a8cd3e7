//! Pictures that a prompt names by their path: they go along with it. Must never send a file that is no picture.

use protocol::event::Image;
use std::path::{Path, PathBuf};

/// A larger file would not be taken by any vendor.
const LARGEST: u64 = 5 << 20;

/// How many go along.
const MOST: usize = 8;

/// Pictures that go along, and why others that were named do not.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Named {
    pub(super) images: Vec<Image>,
    pub(super) left: Vec<String>,
}

/// The pictures that a prompt names: `@path`, or a path from the root, the home directory or a `file://` address, as a
/// terminal types it for a file that is dropped on it.
pub(super) fn named(text: &str, cwd: &Path) -> Named {
    let mut named = Named::default();
    let mut seen = Vec::new();
    for path in paths(text, cwd) {
        if seen.contains(&path) {
            continue;
        }
        match read(&path) {
            Ok(_) if named.images.len() == MOST => {
                let why = format!(
                    "{}: {MOST} pictures go along with one prompt",
                    path.display()
                );
                named.left.push(why);
            }
            Ok(image) => named.images.push(image),
            Err(why) => named.left.push(format!("{}: {why}", path.display())),
        }
        seen.push(path);
    }
    named
}

/// Files that are there and are called like pictures.
fn paths(text: &str, cwd: &Path) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let find = |word: &str| {
        // What ends a sentence, or closes what stands around, may belong to the name.
        let bare = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '>', '\'', '"']);
        let open = bare.trim_start_matches(['(', '[', '<']);
        let candidates = [word, bare, open].into_iter();
        candidates
            .filter_map(|word| path_of(word, cwd, home.as_deref()))
            .find(|path| is_called_picture(path) && path.is_file())
    };
    // A path that was dropped alone has its spaces as they are.
    let whole = text.trim();
    if whole.contains(' ')
        && !whole.contains('\n')
        && let Some(path) = find(whole)
    {
        return vec![path];
    }
    words(text).iter().filter_map(|word| find(word)).collect()
}

fn path_of(word: &str, cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if let Some(address) = word.strip_prefix("file://") {
        let path = address.strip_prefix("localhost").unwrap_or(address);
        return path.starts_with('/').then(|| unescaped(path).into());
    }
    let (path, mentioned) = match word.strip_prefix('@') {
        Some(path) => (path, true),
        None => (word, false),
    };
    match (path.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => Some(home.join(below)),
        _ if mentioned => Some(cwd.join(path)),
        _ => path.starts_with('/').then(|| path.into()),
    }
}

/// Without the `%20` of addresses.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let hex = |byte: &u8| char::from(*byte).to_digit(16);
        match (first, more) {
            (b'%', [high, low, after @ ..]) if hex(high).is_some() && hex(low).is_some() => {
                let byte = hex(high).unwrap_or(0) * 16 + hex(low).unwrap_or(0);
                bytes.push(byte as u8);
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
            ('\'' | '"', None) if word.is_empty() || word == "@" => quote = Some(c),
            (c, None) if c.is_whitespace() => all.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    all.push(word);
    // A quote that nothing closes quotes nothing.
    if quote.is_some()
        && let Some(last) = all.pop()
    {
        all.extend(last.split_whitespace().map(str::to_owned));
    }
    all.retain(|word| !word.is_empty());
    all
}

fn is_called_picture(path: &Path) -> bool {
    let kind = path.extension().and_then(|kind| kind.to_str());
    let kind = kind.map(str::to_ascii_lowercase).unwrap_or_default();
    matches!(kind.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp")
}

fn read(path: &Path) -> Result<Image, String> {
    let about = std::fs::metadata(path).map_err(|why| why.to_string())?;
    if about.len() > LARGEST {
        let (size, most) = (about.len().div_ceil(1 << 20), LARGEST >> 20);
        return Err(format!("{size} MiB, and a picture may have {most}"));
    }
    let bytes = std::fs::read(path).map_err(|why| why.to_string())?;
    Ok(Image {
        mime_type: kind_of(&bytes)
            .ok_or("it is called a picture and is none (PNG, JPEG, GIF, WebP)")?
            .to_string(),
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
    fn pictures_go_along_however_they_are_named_and_others_are_told() {
        let folder = std::env::temp_dir().join(format!("dwell-image-{}", crate::open::token()));
        std::fs::create_dir(&folder).unwrap();
        let png = [0x89, b'P', b'N', b'G', 1];
        for name in ["a b.png", "d.png", "ü.PNG", "don't.png"] {
            std::fs::write(folder.join(name), png).unwrap();
        }
        std::fs::write(folder.join("lie.png"), "secret").unwrap();
        std::fs::write(folder.join("c.txt"), png).unwrap();
        let at = folder.display();
        let count = |text: &str| named(text, &folder).images.len();
        for (text, expected) in [
            (format!("see {at}/a\\ b.png there"), 1),
            (format!("{at}/a b.png"), 1),
            (format!("'{at}/a b.png'"), 1),
            (format!("\"{at}/a b.png\" and @d.png"), 2),
            (format!("file://{at}/a%20b.png"), 1),
            (format!("file://{at}/%C3%BC.PNG"), 1),
            ("see @d.png, (@d.png) and @d.png.".to_owned(), 1),
            ("@\"a b.png\" @'a b.png' @a\\ b.png".to_owned(), 1),
            ("it's 'bout @d.png".to_owned(), 1),
            ("@don\\'t.png @don't.png".to_owned(), 1),
            ("@c.txt @none.png d.png a@d.png".to_owned(), 0),
            ("@\u{fc}.PNG".to_owned(), 1),
        ] {
            assert_eq!(count(&text), expected, "{text}");
        }
        let lie = named("@lie.png", &folder);
        assert_eq!((lie.images.len(), lie.left.len()), (0, 1));
        assert!(
            lie.left[0].ends_with("is none (PNG, JPEG, GIF, WebP)"),
            "{lie:?}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
