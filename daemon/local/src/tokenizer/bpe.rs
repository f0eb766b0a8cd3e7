//! Byte-level pair encoding as GPT-2 began it, with each family's way of cutting text into words.
//! Must never see control tokens.

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::{SplitDelimiterBehavior, Tokenizer};

pub(super) struct Bpe(Tokenizer);

/// Contractions, then words with what stands before them, numbers of so many digits, signs, line ends, spaces.
macro_rules! words {
    ($digits:literal) => {
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|",
            $digits,
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
    };
}

impl Bpe {
    pub(super) fn new(tokens: Vec<String>, merges: &[String], pre: &str) -> Result<Self, String> {
        let merges = merges.iter().map(|merge| {
            let pair = merge.split_once(' ');
            pair.map(|(a, b)| (a.to_owned(), b.to_owned()))
                .ok_or_else(|| format!("its merge {merge:?} is no pair"))
        });
        let merges = merges.collect::<Result<Vec<_>, _>>()?;
        let vocabulary: Vocab = tokens.into_iter().zip(0..).collect();
        let model = BPE::builder().vocab_and_merges(vocabulary, merges);
        // Families with such a cut also take a word whole where the vocabulary has it.
        let model = model.ignore_merges(pre.starts_with("llama")).build();
        let model = model.map_err(|error| format!("its tokenizer is damaged: {error}"))?;
        let mut tokenizer = Tokenizer::new(model);
        tokenizer.with_pre_tokenizer(Some(cut(pre)?));
        if pre.starts_with("qwen") {
            let normalizer = tokenizer.with_normalizer(Some(NFC));
            normalizer.map_err(|error| error.to_string())?;
        }
        Ok(Self(tokenizer))
    }

    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), String> {
        let encoding = self.0.encode(text, false);
        let encoding = encoding.map_err(|error| format!("the text has no tokens: {error}"))?;
        ids.extend_from_slice(encoding.get_ids());
        Ok(())
    }
}

fn cut(pre: &str) -> Result<PreTokenizerWrapper, String> {
    let by_words = |pattern: &str| {
        let pattern = SplitPattern::Regex(pattern.to_owned());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
        split.map_err(|error| error.to_string())
    };
    let bytes = ByteLevel::new(false, false, false);
    let parts = match pre {
        "qwen2" | "deepseek-r1-qwen" => vec![by_words(words!(r"\p{N}"))?.into(), bytes.into()],
        "llama3" | "llama-v3" | "llama-bpe" | "smaug-bpe" | "lfm2" => {
            vec![by_words(words!(r"\p{N}{1,3}"))?.into(), bytes.into()]
        }
        "smollm" | "starcoder" | "refact" | "command-r" | "codeshell" | "exaone" => {
            vec![
                Digits::new(true).into(),
                ByteLevel::new(false, false, true).into(),
            ]
        }
        _ => vec![ByteLevel::new(false, false, true).into()],
    };
    Ok(Sequence::new(parts).into())
}

/// The bytes that a token stands for: each is written as a letter that can be seen.
pub(super) fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            Some(byte) => out.push(byte),
            None => out.extend(c.to_string().as_bytes()),
        }
    }
    out
}

fn byte(c: char) -> Option<u8> {
    let code = u32::from(c);
    match code {
        33..=126 | 161..=172 | 174..=255 => u8::try_from(code).ok(),
        // The rest, in their order, from the first letter beyond Latin-1.
        256..=288 => u8::try_from(code - 256).ok(),
        289..=322 => u8::try_from(code - 289 + 127).ok(),
        323 => Some(173),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_letter() {
        let mut all: Vec<u8> = (33..=323)
            .filter_map(|code| byte(char::from_u32(code).expect("a letter")))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, (0..=255).collect::<Vec<u8>>());
        assert_eq!(bytes("\u{120}the\u{10a}"), b" the\n");
    }

    fn words(pre: &str, text: &str) -> Vec<String> {
        use tokenizers::tokenizer::{
            OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
        };
        let mut cut_text = PreTokenizedString::from(text);
        cut(pre)
            .expect("a cut")
            .pre_tokenize(&mut cut_text)
            .expect("cut");
        let parts = cut_text.get_splits(OffsetReferential::Original, OffsetType::Byte);
        parts
            .iter()
            .map(|(part, ..)| String::from_utf8(bytes(part)).expect("text"))
            .collect()
    }

    #[test]
    fn families_cut_digits_their_own_way() {
        assert_eq!(words("smollm", "a 123"), ["a", " ", "1", "2", "3"]);
        assert_eq!(words("qwen2", "a 123"), ["a", " ", "1", "2", "3"]);
        assert_eq!(words("llama-bpe", "a 1234"), ["a", " ", "123", "4"]);
        assert_eq!(words("default", "a 1234"), ["a", " 1234"]);
        assert_eq!(
            words("smollm", "it's\n\nme"),
            ["it", "'s", "\n", "\n", "me"]
        );
    }
}
