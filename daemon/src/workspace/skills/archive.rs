//! Reads a `.tar.gz` in memory: regular files alone, by paths that stay in a skill's folder. Must never write, nor grow
//! beyond its bound whatever an archive claims.

use super::published::check_path;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use std::collections::BTreeMap;

const BLOCK: usize = 512;
const FILES: usize = 64;

/// The files of an archive; a single folder around all of them is left out.
pub(super) fn unpack(bytes: &[u8], limit: usize) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let packed = body(bytes).ok_or("it is no .tar.gz")?;
    let tar = decompress_to_vec_with_limit(packed, limit)
        .map_err(|error| format!("its archive cannot be unpacked: {error}"))?;
    let files = files(&tar)?;
    Ok(match files.contains_key("SKILL.md") {
        true => files,
        false => without_folder(files),
    })
}

/// What lies between the head and the sum of a gzip file.
fn body(bytes: &[u8]) -> Option<&[u8]> {
    let head = bytes.get(..10)?;
    if head[..3] != [0x1f, 0x8b, 8] {
        return None;
    }
    let flags = head[3];
    let mut rest = &bytes[10..];
    if flags & 4 != 0 {
        let length = usize::from(u16::from_le_bytes([*rest.first()?, *rest.get(1)?]));
        rest = rest.get(2 + length..)?;
    }
    for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
        let end = rest.iter().position(|byte| *byte == 0)?;
        rest = &rest[end + 1..];
    }
    if flags & 2 != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}

fn files(tar: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let cut = || "its archive is cut off".to_owned();
    let mut files = BTreeMap::new();
    let mut at = 0;
    while let Some(head) = tar.get(at..at + BLOCK) {
        if head.iter().all(|byte| *byte == 0) {
            break;
        }
        let size = octal(&head[124..136]).ok_or("its archive cannot be read")?;
        let begin = at + BLOCK;
        let end = begin.checked_add(size).ok_or_else(cut)?;
        let content = tar.get(begin..end).ok_or_else(cut)?;
        let name = name(head);
        match head[156] {
            b'0' | 0 => {
                check_path(&name)?;
                files.insert(name, content.to_vec());
            }
            // Folders, and what says more about the next entry than its name and size.
            b'5' | b'x' | b'g' => {}
            _ => return Err(format!("{name:?} in its archive is no plain file")),
        }
        if files.len() > FILES {
            return Err(format!("it has more than {FILES} files"));
        }
        at = begin + size.div_ceil(BLOCK) * BLOCK;
    }
    Ok(files)
}

fn name(head: &[u8]) -> String {
    let text = |bytes: &[u8]| {
        let end = bytes
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let own = text(&head[..100]);
    let own = own.strip_prefix("./").unwrap_or(&own).to_owned();
    let before = match &head[257..262] == b"ustar" {
        true => text(&head[345..500]),
        false => String::new(),
    };
    match before.strip_prefix("./").unwrap_or(&before) {
        "" => own,
        before => format!("{before}/{own}"),
    }
}

fn octal(digits: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(digits).ok()?;
    let text = text.trim_matches([' ', '\0']);
    usize::from_str_radix(text, 8).ok()
}

fn without_folder(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    let folder = |path: &String| path.split_once('/').map(|(folder, _)| folder.to_owned());
    let Some(first) = files.keys().next().and_then(folder) else {
        return files;
    };
    if !files
        .keys()
        .all(|path| folder(path).as_ref() == Some(&first))
    {
        return files;
    }
    let inner = |(path, bytes): (String, Vec<u8>)| (path[first.len() + 1..].to_owned(), bytes);
    files.into_iter().map(inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut head = vec![0; BLOCK];
        head[..name.len()].copy_from_slice(name.as_bytes());
        let size = format!("{:011o}", content.len());
        head[124..135].copy_from_slice(size.as_bytes());
        head[156] = kind;
        head.extend(content);
        head.resize(head.len().div_ceil(BLOCK) * BLOCK, 0);
        head
    }

    fn packed(tar: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3];
        bytes.extend(b"name.tar\0");
        bytes.extend(miniz_oxide::deflate::compress_to_vec(tar, 6));
        bytes.extend([0; 8]);
        bytes
    }

    #[test]
    fn plain_files_are_unpacked_without_the_folder_around_them() {
        let tar = [
            entry("./pdf/", b'5', b""),
            entry("./pdf/SKILL.md", b'0', b"text"),
            entry("pdf/scripts/run.py", 0, &[7; 700]),
            vec![0; 2 * BLOCK],
        ];
        let files = unpack(&packed(&tar.concat()), 1 << 20).unwrap();
        assert_eq!(
            files.keys().collect::<Vec<_>>(),
            ["SKILL.md", "scripts/run.py"]
        );
        assert_eq!(files["scripts/run.py"], [7; 700]);
    }

    #[test]
    fn links_ways_out_bombs_and_nonsense_are_refused() {
        let refused = |tar: &[u8]| unpack(&packed(tar), 1 << 16).unwrap_err();
        assert!(refused(&entry("../x", b'0', b"")).contains("no path"));
        assert!(refused(&entry("/etc/x", b'0', b"")).contains("no path"));
        for kind in [b'1', b'2', b'3', b'6', b'L'] {
            assert!(refused(&entry("a", kind, b"")).contains("no plain file"));
        }
        assert!(refused(&vec![b'x'; 1 << 20]).contains("cannot be unpacked"));
        assert!(refused(&entry("a", b'0', &[1; 900])[..BLOCK + 9]).contains("cut off"));
        let many: Vec<u8> = (0..=FILES)
            .flat_map(|n| entry(&format!("f{n}"), b'0', b""))
            .collect();
        assert!(refused(&many).contains("more than 64 files"));
        for bytes in [&b""[..], b"PK\x03\x04", b"\x1f\x8b\x08"] {
            assert!(unpack(bytes, 1 << 16).is_err());
        }
        let whole = packed(&entry("a", b'0', b"x"));
        for end in 0..whole.len() {
            // Any cut is an answer, never a panic.
            let _ = unpack(&whole[..end], 1 << 16);
        }
    }
}
