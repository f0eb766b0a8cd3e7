//! The last line of a file that dwell wrote, by which it knows the file again. What was changed since has another sum, and must
//! never be taken for its own.

const SAYS: &str = "as dwell wrote it: ";

/// How a comment begins and ends.
pub(super) type Comment = (&'static str, &'static str);

/// The text with its mark.
pub(super) fn marked(text: String, (begin, end): Comment) -> String {
    let sum = sum(&text);
    format!("{text}{begin}{SAYS}{sum:016x}{end}\n")
}

/// Whether a text is as it was written, by whichever release.
pub(super) fn is_ours(text: &str, (begin, end): Comment) -> bool {
    let whole = text.strip_suffix('\n').unwrap_or_default();
    let (before, last) = match whole.rfind('\n') {
        Some(at) => whole.split_at(at + 1),
        None => ("", whole),
    };
    let said = last
        .strip_prefix(begin)
        .and_then(|rest| rest.strip_prefix(SAYS)?.strip_suffix(end));
    said.is_some_and(|said| said == format!("{:016x}", sum(before)))
}

/// FNV-1a: it tells a change that a person made, and nobody means to deceive it.
fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_makes_a_file_somebody_elses() {
        for comment in [("# ", ""), ("<!-- ", " -->")] {
            let text = marked("[Service]\nExecStart=/a\n".into(), comment);
            assert!(is_ours(&text, comment), "{text}");
            for at in 0..text.len() {
                let mut other = text.clone();
                other.remove(at);
                assert!(!is_ours(&other, comment), "{at}");
            }
            assert!(!is_ours(&format!("{text}# mine\n"), comment));
            assert!(!is_ours("", comment));
        }
    }
}
