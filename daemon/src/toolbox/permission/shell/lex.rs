//! Cuts a line into commands of words, knowing quotes and operators as a POSIX shell does.
//! Must never drop a character that could run something without leaving a doubt.

use protocol::unseen::is_unseen;

/// Words by command, and why they may not be the whole truth.
#[derive(Debug, Default)]
pub(super) struct Lexed {
    pub(super) commands: Vec<Vec<Word>>,
    pub(super) doubt: Option<&'static str>,
}

/// One word.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    /// As written, with quotes.
    pub(super) written: String,
    /// Without quotes; expansions as written.
    pub(super) plain: String,
    /// Where in `plain` the first expansion begins.
    pub(super) uncertain: Option<usize>,
    /// The first quote or escape in `plain`.
    quoted: Option<usize>,
}

impl Word {
    /// `NAME=value` with nothing quoted before the `=`.
    pub(super) fn is_assignment(&self) -> bool {
        let Some(equals) = self.plain.find('=') else {
            return false;
        };
        let name = self.plain[..equals].trim_end_matches('+');
        let name = name.split('[').next().unwrap_or(name);
        self.quoted.is_none_or(|quote| quote > equals)
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// Without its directory.
    pub(super) fn base(&self) -> &str {
        match self.plain.rsplit('/').next() {
            Some("") | None => &self.plain,
            Some(base) => base,
        }
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    out: Lexed,
    words: Vec<Word>,
    word: Option<Word>,
}

pub(super) fn lex(line: &str) -> Lexed {
    let mut lexer = Lexer {
        chars: line.chars().collect(),
        at: 0,
        out: Lexed::default(),
        words: Vec::new(),
        word: None,
    };
    lexer.run();
    lexer.out
}

impl Lexer {
    fn run(&mut self) {
        while let Some(c) = self.next() {
            self.one(c);
        }
        self.end_command();
    }

    fn one(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            // `&>` too: some shells read it as one operator, others as the end of a command.
            '\n' | ';' | '|' | '&' => self.end_command(),
            '<' | '>' => self.redirection(c),
            '(' | ')' => {
                self.doubt("it has a subshell, a function or a pattern");
                self.end_command();
            }
            '`' => {
                self.doubt("it substitutes what another command prints");
                self.end_command();
            }
            '\'' => self.single(),
            '"' => self.double(),
            '\\' => self.escape(),
            '$' => self.dollar(),
            '#' if self.word.is_none() => {
                self.doubt("it has a comment");
                self.end_command();
                while self.peek().is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            }
            '*' | '?' | '[' | '{' | '~' => self.vary(c),
            c if c.is_control() || (c.is_whitespace() && !c.is_ascii()) => {
                self.doubt("it has characters that cannot be seen");
                self.end_command();
            }
            c if self.is_unseen(c) => {
                self.doubt("it has characters that cannot be seen");
                self.push(c);
            }
            c => self.push(c),
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Whether the character that was taken last leaves no trace, or moves what stands beside it.
    fn is_unseen(&self, c: char) -> bool {
        let before = self.at.checked_sub(2).and_then(|at| self.chars.get(at));
        is_unseen(before.copied(), c)
    }

    fn doubt(&mut self, why: &'static str) {
        self.out.doubt.get_or_insert(why);
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    fn push(&mut self, c: char) {
        let word = self.word();
        word.written.push(c);
        word.plain.push(c);
    }

    /// A character of the writing that the command does not get.
    fn quote(&mut self, c: char) {
        let word = self.word();
        word.quoted.get_or_insert(word.plain.len());
        word.written.push(c);
    }

    fn uncertain(&mut self) {
        let word = self.word();
        word.uncertain.get_or_insert(word.plain.len());
    }

    /// A character that the shell may put other text in the place of; `~` only where a path may begin.
    fn vary(&mut self, c: char) {
        let begins = self
            .word
            .as_ref()
            .is_none_or(|word| word.plain.ends_with(['=', ':']));
        if c != '~' || begins {
            self.uncertain();
        }
        self.push(c);
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.out.commands.push(std::mem::take(&mut self.words));
        }
    }

    fn single(&mut self) {
        self.quote('\'');
        loop {
            match self.next() {
                Some('\'') => return self.quote('\''),
                Some(c) => self.quoted_char(c),
                None => return self.doubt("its quotes do not end"),
            }
        }
    }

    fn quoted_char(&mut self, c: char) {
        if c != '\n' && c != '\t' && (c.is_control() || self.is_unseen(c)) {
            self.doubt("it has characters that cannot be seen");
        }
        self.push(c);
    }

    fn double(&mut self) {
        self.quote('"');
        loop {
            match self.next() {
                Some('"') => return self.quote('"'),
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => {
                        self.quote('\\');
                        self.push(c);
                    }
                    Some(c) => {
                        self.push('\\');
                        self.quoted_char(c);
                    }
                    None => return self.doubt("its quotes do not end"),
                },
                Some('`') => {
                    self.doubt("it substitutes what another command prints");
                    self.end_command();
                }
                Some('$') => self.dollar_in_quotes(),
                Some(c) => self.quoted_char(c),
                None => return self.doubt("its quotes do not end"),
            }
        }
    }

    fn escape(&mut self) {
        match self.next() {
            // The line goes on; nothing stands for the two.
            Some('\n') => {}
            Some(c) => {
                self.quote('\\');
                self.quoted_char(c);
            }
            None => self.doubt("it ends with a backslash"),
        }
    }

    fn dollar(&mut self) {
        match self.peek() {
            Some('(') => {
                self.doubt("it substitutes what another command prints");
                self.end_command();
            }
            Some('\'' | '"') => {
                self.doubt("it has text in a form of the shell's own");
                self.vary('$');
            }
            Some('{' | '[') => {
                // `${x:=`..`}` and arithmetic evaluate what is inside.
                self.doubt("it expands more than a name");
                self.vary('$');
            }
            _ => self.vary('$'),
        }
    }

    fn dollar_in_quotes(&mut self) {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.doubt("it substitutes what another command prints");
                self.end_command();
            }
            Some('{' | '[') => {
                self.doubt("it expands more than a name");
                self.vary('$');
            }
            _ => self.vary('$'),
        }
    }

    /// Streams joined to each other and `/dev/null` are harmless and no words; all else is a doubt.
    fn redirection(&mut self, first: char) {
        let before = self
            .at
            .checked_sub(2)
            .and_then(|at| self.chars.get(at).copied());
        self.end_descriptor();
        let mut operator = String::from(first);
        while let Some(c) = self
            .peek()
            .filter(|c| matches!(c, '<' | '>' | '&' | '|' | '-'))
        {
            operator.push(c);
            self.at += 1;
        }
        if operator.starts_with("<<") {
            // What follows is text for a command, up to a mark that only a shell can find.
            self.at = self.chars.len();
            return self.doubt("it has a here document");
        }
        if self.peek() == Some('(') {
            return self.doubt("it substitutes a process");
        }
        let target = self.target();
        // Behind `&> file` some shells go on with the command, and others begin one.
        let parted = before == Some('&') && !self.at_end();
        let joined = operator.ends_with('&') && matches!(target.as_str(), "0" | "1" | "2");
        let closed = operator.ends_with("&-") && target.is_empty();
        let nowhere = matches!(operator.as_str(), ">" | ">>" | "<" | ">&") && target == "/dev/null";
        if parted || !(joined || closed || nowhere) {
            self.doubt("it reads or writes a file or text as a stream");
        }
    }

    /// The number of a stream stands right before the operator and is no word of the command. Shells agree on one
    /// digit only.
    fn end_descriptor(&mut self) {
        let number =
            |word: &Word| word.quoted.is_none() && word.plain.chars().all(|c| c.is_ascii_digit());
        match self.word.take_if(|word| number(word)) {
            Some(word) if word.plain.len() > 1 => {
                self.doubt("it reads or writes a file or text as a stream")
            }
            Some(_) => {}
            None => self.end_word(),
        }
    }

    /// Whether nothing more of this command comes.
    fn at_end(&self) -> bool {
        let rest = self.chars[self.at..]
            .iter()
            .find(|c| !matches!(c, ' ' | '\t'));
        rest.is_none_or(|c| matches!(c, '\n' | ';' | '|' | '&'))
    }

    fn target(&mut self) -> String {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        let mut target = String::new();
        while let Some(c) = self.peek() {
            if !(c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-')) {
                break;
            }
            target.push(c);
            self.at += 1;
        }
        // `>/dev/null$x`: the word goes on.
        let ends = self
            .peek()
            .is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '|' | '&' | ')'));
        if ends { target } else { String::new() }
    }
}
