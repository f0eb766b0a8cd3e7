//! Server-sent events, or lines of JSON, out of bytes cut anywhere. Does no input or output, and never keeps more than one event.

use std::mem;

/// The largest event, so that a server without line ends costs no more memory than this.
const LIMIT: usize = 32 * 1024 * 1024;

/// One event: its name, empty when it has none, and its data lines joined by newlines.
#[derive(Debug, PartialEq)]
pub(super) struct Event<'a> {
    pub(super) name: &'a str,
    pub(super) data: &'a [u8],
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// What stands between two events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    #[default]
    Events,
    /// Every line that is not blank is the data of one.
    Lines,
}

#[derive(Default)]
pub(super) struct Parser {
    framing: Framing,
    /// The begin of a line whose end has not come.
    partial: Vec<u8>,
    name: String,
    data: Vec<u8>,
    has_data: bool,
    /// The last line ended with a carriage return: a newline that follows belongs to it.
    after_return: bool,
    past_mark: bool,
    /// Bytes of data lines so far.
    received: u64,
}

impl Parser {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            ..Self::default()
        }
    }

    /// Bytes of data lines so far: what counts as a sign of life, as comments and blank lines do not.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Takes more bytes and tells each event that they complete.
    pub(super) fn feed<E: From<TooLarge>>(
        &mut self,
        mut bytes: &[u8],
        each: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                return self.keep(bytes).map_err(E::from);
            };
            self.after_return = bytes[end] == b'\r';
            let line = &bytes[..end];
            bytes = &bytes[end + 1..];
            if self.partial.is_empty() {
                self.line(line, each)?;
            } else {
                self.keep(line)?;
                let line = mem::take(&mut self.partial);
                self.line(&line, each)?;
                self.partial = line;
                self.partial.clear();
            }
        }
        Ok(())
    }

    /// No more bytes come: an event that lacks its end is told as well.
    pub(super) fn finish<E: From<TooLarge>>(
        &mut self,
        each: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = mem::take(&mut self.partial);
        if !line.is_empty() {
            self.line(&line, each)?;
        }
        self.dispatch(each)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.partial.len() + self.data.len() + bytes.len() > LIMIT {
            return Err(TooLarge);
        }
        self.partial.extend_from_slice(bytes);
        if self.framing == Framing::Lines || self.partial.starts_with(b"data") {
            self.received += bytes.len() as u64;
        }
        Ok(())
    }

    fn line<E: From<TooLarge>>(
        &mut self,
        mut line: &[u8],
        each: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !mem::replace(&mut self.past_mark, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(each);
        }
        if self.framing == Framing::Lines {
            self.received += line.len() as u64;
            return each(Event {
                name: "",
                data: line,
            });
        }
        // A comment is a field without a name.
        match field(line) {
            (b"data", value) => self.add(value)?,
            (b"event", value) => self.name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, value: &[u8]) -> Result<(), TooLarge> {
        if self.data.len() + value.len() > LIMIT {
            return Err(TooLarge);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
        self.received += 1 + value.len() as u64;
        Ok(())
    }

    fn dispatch<E>(&mut self, each: &mut dyn FnMut(Event<'_>) -> Result<(), E>) -> Result<(), E> {
        let told = match mem::take(&mut self.has_data) {
            true => each(Event {
                name: &self.name,
                data: &self.data,
            }),
            false => Ok(()),
        };
        self.name.clear();
        self.data.clear();
        told
    }
}

/// A line's name and value, without the one space that may stand before the value.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Told = Vec<(String, Vec<u8>)>;

    fn parse(pieces: &[&[u8]]) -> Told {
        let mut told = Told::new();
        let mut each = |event: Event<'_>| {
            told.push((event.name.to_owned(), event.data.to_vec()));
            Ok::<(), TooLarge>(())
        };
        let mut parser = Parser::default();
        for piece in pieces {
            parser.feed(piece, &mut each).unwrap();
        }
        parser.finish(&mut each).unwrap();
        told
    }

    fn event(name: &str, data: &str) -> (String, Vec<u8>) {
        (name.to_owned(), data.as_bytes().to_vec())
    }

    const STREAM: &str = "\u{feff}: hello\n\ndata: {\"a\":\"€é😀\"}\n\nevent: error\r\ndata:no space\r\n\r\n\
                          data: one\ndata:  two\ndata\nid: 7\nretry: 9\n\n\r\n:ping\n\nevent: lost\n\n\
                          data: by return\r\rdata: [DONE]";

    fn told() -> Told {
        vec![
            event("", "{\"a\":\"€é😀\"}"),
            event("error", "no space"),
            event("", "one\n two\n"),
            event("", "by return"),
            event("", "[DONE]"),
        ]
    }

    #[test]
    fn stream_cut_at_any_byte_tells_the_same_events() {
        let bytes = STREAM.as_bytes();
        assert_eq!(parse(&[bytes]), told());
        for cut in 0..=bytes.len() {
            assert_eq!(
                parse(&[&bytes[..cut], &bytes[cut..]]),
                told(),
                "cut at {cut}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&single), told());
    }

    #[test]
    fn lines_cut_at_any_byte_are_the_same_events() {
        let bytes = "{\"a\":\"€\"}\r\n\n{\"b\": 1}\n{\"last\":\"data: x\"}".as_bytes();
        let lines = |cut: usize| {
            let mut told = Vec::new();
            let mut each = |event: Event<'_>| {
                told.push(String::from_utf8(event.data.to_vec()).unwrap());
                Ok::<(), TooLarge>(())
            };
            let mut parser = Parser::new(Framing::Lines);
            for piece in [&bytes[..cut], &bytes[cut..]] {
                parser.feed(piece, &mut each).unwrap();
            }
            parser.finish(&mut each).unwrap();
            told
        };
        for cut in 0..=bytes.len() {
            let expected = ["{\"a\":\"€\"}", "{\"b\": 1}", "{\"last\":\"data: x\"}"];
            assert_eq!(lines(cut), expected, "cut at {cut}");
        }
    }

    #[test]
    fn only_data_counts_as_a_sign_of_life() {
        let mut parser = Parser::default();
        let mut each = |_: Event<'_>| Ok::<(), TooLarge>(());
        for piece in [": ping\n\n", "\n", "event: ping\n", ": pi", "ng\n\n"] {
            parser.feed(piece.as_bytes(), &mut each).unwrap();
        }
        assert_eq!(parser.received(), 0);
        parser.feed(b"data: a long li", &mut each).unwrap();
        assert_ne!(parser.received(), 0);
    }

    #[test]
    fn endless_line_is_an_error_and_not_memory() {
        let mut parser = Parser::default();
        let mut each = |_: Event<'_>| Ok::<(), TooLarge>(());
        let piece = vec![b'x'; LIMIT / 4];
        let fed = (0..5).map(|_| parser.feed(&piece, &mut each));
        assert_eq!(fed.last().unwrap(), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn any_bytes_cut_anywhere_tell_the_same_events(
            bytes in proptest::collection::vec(
                prop_oneof![
                    Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), Just(b'a'), Just(b't'), any::<u8>()
                ],
                0..200,
            ),
            cuts in proptest::collection::vec(0usize..200, 0..5),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            pieces.push(&bytes[from..]);
            prop_assert_eq!(parse(&pieces), parse(&[&bytes]));
        }
    }
}
