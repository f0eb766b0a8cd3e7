//! Tokens, and which one follows which. Must never know how a file holds them.

/// A vocabulary with one successor for each token.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) tokens: Vec<Token>,
}

#[derive(Debug)]
pub(super) struct Token {
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Kind,
    /// The token that always follows.
    pub(super) next: usize,
}

/// What a token is, as loaders tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Never shown.
    Control,
    /// One byte, so that every text has tokens.
    Byte,
    /// Text of the answers.
    Word,
    /// Text that a tokenizer keeps whole, such as a tag.
    Tag,
}

impl Chain {
    /// The control tokens, then one token for each byte; each is followed by the first token.
    pub(super) fn bytes(control: &[&str]) -> Self {
        let control = control
            .iter()
            .map(|text| (text.as_bytes().to_vec(), Kind::Control));
        let bytes = (0..=255).map(|byte| (vec![byte], Kind::Byte));
        let all = control.chain(bytes);
        let tokens = all.map(|(bytes, kind)| Token {
            bytes,
            kind,
            next: 0,
        });
        Self {
            tokens: tokens.collect(),
        }
    }

    /// After `start` these words, each a token of its own, and then `end`.
    pub(super) fn says(&mut self, start: &str, words: &[&str], end: &str) {
        let mut last = self.id(start);
        for word in words {
            let id = self.add(word);
            self.tokens[last].next = id;
            last = id;
        }
        self.tokens[last].next = self.id(end);
    }

    /// After any byte the words, then the first token.
    pub(super) fn says_after_any_byte(&mut self, words: &[&str]) {
        let first = self.add(words[0]);
        for token in self
            .tokens
            .iter_mut()
            .filter(|token| token.kind == Kind::Byte)
        {
            token.next = first;
        }
        let mut last = first;
        for word in &words[1..] {
            let id = self.add(word);
            self.tokens[last].next = id;
            last = id;
        }
    }

    pub(super) fn id(&self, text: &str) -> usize {
        let found = self
            .tokens
            .iter()
            .position(|token| token.bytes == text.as_bytes());
        found.unwrap_or_else(|| panic!("no token {text:?}"))
    }

    fn add(&mut self, word: &str) -> usize {
        let bytes = word.as_bytes().to_vec();
        let known = self.tokens.iter().any(|token| token.bytes == bytes);
        assert!(!known, "{word:?} twice: a token has one successor");
        let kind = if word.starts_with('<') {
            Kind::Tag
        } else {
            Kind::Word
        };
        self.tokens.push(Token {
            bytes,
            kind,
            next: 0,
        });
        self.tokens.len() - 1
    }

    /// Token embeddings: token `i` is the `i`-th unit vector, in rows of `dim` values.
    pub(super) fn embeddings(&self, dim: usize) -> Vec<f32> {
        assert!(dim >= self.tokens.len(), "as many dimensions as tokens");
        let mut rows = vec![0.0; self.tokens.len() * dim];
        for id in 0..self.tokens.len() {
            rows[id * dim + id] = 1.0;
        }
        rows
    }

    /// The output matrix: row `j` has a large value where the token is one that `j` follows, so that no temperature
    /// and no penalty ever changes the choice.
    pub(super) fn transitions(&self, dim: usize) -> Vec<f32> {
        let mut rows = vec![0.0; self.tokens.len() * dim];
        for (id, token) in self.tokens.iter().enumerate() {
            rows[token.next * dim + id] = 30.0;
        }
        rows
    }
}
