//! Where one message ends and the next begins: newline-delimited JSON and `Content-Length` headers, without IO.
//! Must never look past the end of a frame, nor hold more than the limit and one push.

use std::io::Write as _;

/// The largest frame unless configured otherwise: 16 MiB.
pub const DEFAULT_LIMIT: usize = 16 << 20;

/// How much of a frame over the limit is kept, for a reader that wants to find its id.
pub const HEAD: usize = 512;

/// All headers of one frame together; editors send some 50 bytes.
const HEADERS_LIMIT: usize = 8 << 10;

/// The longest header name that is waited for before a peer counts as not speaking this protocol.
const NAME_LIMIT: usize = 64;

/// One message's bytes, without what delimits it.
pub type Frame = Vec<u8>;

/// How a connection's frames are delimited; both directions use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One JSON text a line.
    Lines,
    /// `Content-Length: N`, an empty line, N bytes.
    Headers,
}

/// What is wrong with the bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame over the limit. It is skipped and the next one is read as usual.
    #[error("frame over the limit of {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
        /// The frame's first bytes, at most [`HEAD`].
        head: Vec<u8>,
    },
    /// Nobody can say any more where the next frame begins; all further bytes are ignored.
    #[error("{0}")]
    Lost(String),
}

/// Appends a message and what delimits it. With [`Style::Lines`] the JSON must hold no raw line break, which is true
/// of everything that `serde_json` writes compactly.
pub fn encode(style: Style, json: &[u8], out: &mut Vec<u8>) {
    match style {
        Style::Lines => {
            out.reserve(json.len() + 1);
            out.extend_from_slice(json);
            out.push(b'\n');
        }
        Style::Headers => {
            out.reserve(json.len() + 40);
            // Writing to a Vec cannot fail.
            let _ = write!(out, "Content-Length: {}\r\n\r\n", json.len());
            out.extend_from_slice(json);
        }
    }
}

/// Cuts a stream of bytes into frames. After each [`Decoder::push`], call [`Decoder::next_frame`] until it gives
/// `Ok(None)`: then no more than the limit is held, and nothing at all between frames.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    style: Option<Style>,
    state: State,
    buffer: Vec<u8>,
    /// Where in `buffer` the unread bytes begin.
    start: usize,
    /// How many of the unread bytes are known to hold no line break.
    scanned: usize,
}

/// Where in a frame the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a line, or before the first byte of all.
    Line,
    /// In a line over the limit.
    SkipLine,
    /// In the headers of a frame: the length, if it was named, and the size of the headers so far.
    Headers { length: Option<u64>, size: usize },
    /// In a body of this length.
    Body(u64),
    /// In a body over the limit, with so much left of it.
    SkipBody(u64),
    /// Beyond repair.
    Lost,
}

const NO_HEADERS: State = State::Headers {
    length: None,
    size: 0,
};

impl Decoder {
    /// For a peer whose first byte decides: `{` or `[` is [`Style::Lines`], anything else [`Style::Headers`].
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            style: None,
            state: State::Line,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
        }
    }

    /// For a peer whose style is known.
    pub fn with_style(limit: usize, style: Style) -> Self {
        let mut decoder = Self::new(limit);
        decoder.choose(style);
        decoder
    }

    /// The style, once the first byte has decided it.
    pub fn style(&self) -> Option<Style> {
        self.style
    }

    /// Takes bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.state == State::Lost {
            return;
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.grow_for(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, or `None` until more bytes are pushed. Blank lines are no frames.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.style.is_none() && !self.decide() {
            return Ok(None);
        }
        loop {
            let step = match self.state {
                State::Line => self.line()?,
                State::SkipLine => self.skip_line(),
                State::Headers { length, size } => self.header(length, size)?,
                State::Body(length) => self.body(length)?,
                State::SkipBody(left) => self.skip_body(left),
                State::Lost => Step::Starved,
            };
            match step {
                Step::Frame(frame) => return Ok(Some(frame)),
                Step::Again => {}
                Step::Starved => return Ok(None),
            }
        }
    }

    /// What is left when the peer has closed its side: a last line without a line break is a frame, half a frame with
    /// headers is not.
    pub fn finish(&mut self) -> Result<Option<Frame>, FrameError> {
        let rest = self.buffer.split_off(self.start.min(self.buffer.len()));
        let state = self.state;
        self.buffer = Vec::new();
        self.start = 0;
        self.scanned = 0;
        match state {
            State::Line if is_blank(&rest) => Ok(None),
            State::Line => Ok(Some(rest)),
            State::SkipLine | State::Lost => Ok(None),
            State::Headers { size: 0, .. } if is_blank(&rest) => Ok(None),
            State::Headers { .. } | State::Body(_) | State::SkipBody(_) => {
                Err(self.lose("the connection ended inside a frame"))
            }
        }
    }

    /// Whether a frame over the limit has been announced and its first bytes, where its id stands, have not come yet.
    pub fn awaits_head(&self) -> bool {
        let fits = |length| usize::try_from(length).is_ok_and(|length: usize| length <= self.limit);
        matches!(self.state, State::Body(length) if !fits(length))
    }

    /// Refuses such a frame by what there is of it, for a peer that sends no more.
    pub fn refuse(&mut self) -> Option<FrameError> {
        let State::Body(length) = self.state else {
            return None;
        };
        if !self.awaits_head() {
            return None;
        }
        self.state = State::SkipBody(length);
        Some(self.too_long())
    }

    /// Bytes of memory held now.
    pub fn held(&self) -> usize {
        self.buffer.capacity()
    }

    fn choose(&mut self, style: Style) {
        self.style = Some(style);
        self.state = match style {
            Style::Lines => State::Line,
            Style::Headers => NO_HEADERS,
        };
    }

    /// Looks for the first byte that is no blank; false while there is none.
    fn decide(&mut self) -> bool {
        let unread = self.unread();
        let blanks = unread
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        let first = unread.get(blanks).copied();
        self.consume(blanks);
        match first {
            None => return false,
            Some(b'{' | b'[') => self.choose(Style::Lines),
            Some(_) => self.choose(Style::Headers),
        }
        true
    }

    fn line(&mut self) -> Result<Step, FrameError> {
        let unread = self.unread();
        let Some(found) = memchr::memchr(b'\n', &unread[self.scanned..]) else {
            self.scanned = unread.len();
            if self.scanned <= self.limit {
                return Ok(Step::Starved);
            }
            let error = self.too_long();
            self.consume(self.scanned);
            self.state = State::SkipLine;
            return Err(error);
        };
        let length = self.scanned + found;
        if length > self.limit {
            let error = self.too_long();
            self.consume(length + 1);
            return Err(error);
        }
        if is_blank(&self.unread()[..length]) {
            self.consume(length + 1);
            return Ok(Step::Again);
        }
        Ok(Step::Frame(self.take(length, 1)))
    }

    fn skip_line(&mut self) -> Step {
        match memchr::memchr(b'\n', self.unread()) {
            Some(found) => {
                self.consume(found + 1);
                self.state = State::Line;
                Step::Again
            }
            None => {
                self.consume(self.unread().len());
                Step::Starved
            }
        }
    }

    fn header(&mut self, length: Option<u64>, size: usize) -> Result<Step, FrameError> {
        let unread = self.unread();
        let Some(found) = memchr::memchr(b'\n', unread) else {
            return match check_partial(unread, size) {
                Ok(()) => Ok(Step::Starved),
                Err(why) => Err(self.lose(why)),
            };
        };
        let line = unread[..found].trim_ascii();
        let next = if line.is_empty() {
            end_of_headers(length, size)
        } else {
            read_header(line, length, size + found + 1)
        };
        match next {
            Ok(state) => {
                self.consume(found + 1);
                self.state = state;
                Ok(Step::Again)
            }
            Err(why) => Err(self.lose(why)),
        }
    }

    fn body(&mut self, length: u64) -> Result<Step, FrameError> {
        let have = self.unread().len();
        let within = usize::try_from(length)
            .ok()
            .filter(|length| *length <= self.limit);
        if let Some(length) = within {
            if have < length {
                return Ok(Step::Starved);
            }
            self.state = NO_HEADERS;
            return Ok(Step::Frame(self.take(length, 0)));
        }
        // A body over the limit is refused as soon as its id can be looked for.
        if have < self.head() {
            return Ok(Step::Starved);
        }
        self.state = State::SkipBody(length);
        Err(self.too_long())
    }

    fn skip_body(&mut self, left: u64) -> Step {
        let have = self.unread().len();
        let skipped = usize::try_from(left).map_or(have, |left| have.min(left));
        self.consume(skipped);
        let left = left - skipped as u64;
        if left == 0 {
            self.state = NO_HEADERS;
            Step::Again
        } else {
            self.state = State::SkipBody(left);
            Step::Starved
        }
    }

    /// How much of a frame over the limit is shown: what any split of the bytes has at hand by then.
    fn head(&self) -> usize {
        HEAD.min(self.limit)
    }

    fn too_long(&self) -> FrameError {
        FrameError::TooLong {
            limit: self.limit,
            head: self.unread()[..self.head().min(self.unread().len())].to_vec(),
        }
    }

    fn lose(&mut self, why: impl Into<String>) -> FrameError {
        self.state = State::Lost;
        self.buffer = Vec::new();
        self.start = 0;
        self.scanned = 0;
        FrameError::Lost(why.into())
    }

    fn unread(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Forgets unread bytes; between frames that frees the buffer, so that an idle connection holds none.
    fn consume(&mut self, count: usize) {
        self.start += count;
        self.scanned = 0;
        if self.start >= self.buffer.len() {
            self.buffer = Vec::new();
            self.start = 0;
        }
    }

    /// Takes a frame and the delimiter behind it. A frame that is all there is leaves without a copy.
    fn take(&mut self, length: usize, delimiter: usize) -> Frame {
        let mut frame = if self.start == 0 && self.buffer.len() == length + delimiter {
            let mut frame = std::mem::take(&mut self.buffer);
            frame.truncate(length);
            self.scanned = 0;
            frame
        } else {
            let frame = self.unread()[..length].to_vec();
            self.consume(length + delimiter);
            frame
        };
        if delimiter > 0 && frame.last() == Some(&b'\r') {
            frame.pop();
        }
        frame
    }

    /// Doubles like a Vec, but not beyond the limit: a frame near it must not cost twice as much.
    fn grow_for(&mut self, more: usize) {
        let need = self.buffer.len() + more;
        if need > self.buffer.capacity() {
            let doubled = (self.buffer.capacity() * 2).min(self.limit);
            let target = need.max(doubled);
            self.buffer.reserve_exact(target - self.buffer.len());
        }
    }
}

/// What one look at the unread bytes gave.
enum Step {
    Frame(Frame),
    Again,
    Starved,
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Whether an unfinished line can still become a header.
fn check_partial(line: &[u8], size: usize) -> Result<(), String> {
    if size + line.len() > HEADERS_LIMIT {
        return Err(format!("headers over {HEADERS_LIMIT} bytes"));
    }
    let line = line.trim_ascii_start();
    let seen = &line[..line.len().min(NAME_LIMIT)];
    match memchr::memchr(b':', seen) {
        Some(end) => check_name(&seen[..end]),
        None if seen.len() == NAME_LIMIT => Err(no_header(line)),
        None => check_name(seen.trim_ascii_end()),
    }
}

fn check_name(name: &[u8]) -> Result<(), String> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'_';
    if name.iter().all(fits) {
        Ok(())
    } else {
        Err(no_header(name))
    }
}

fn no_header(line: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&line[..line.len().min(40)]);
    format!("neither JSON nor a Content-Length header: {shown:?}")
}

fn read_header(line: &[u8], length: Option<u64>, size: usize) -> Result<State, String> {
    if size > HEADERS_LIMIT {
        return Err(format!("headers over {HEADERS_LIMIT} bytes"));
    }
    let colon = memchr::memchr(b':', line).ok_or_else(|| no_header(line))?;
    let name = line[..colon].trim_ascii();
    if name.is_empty() {
        return Err(no_header(line));
    }
    check_name(name)?;
    if !name.eq_ignore_ascii_case(b"content-length") {
        return Ok(State::Headers { length, size });
    }
    let value = read_length(line[colon + 1..].trim_ascii())?;
    match length {
        Some(other) if other != value => {
            Err(format!("two lengths for one frame, {other} and {value}"))
        }
        _ => Ok(State::Headers {
            length: Some(value),
            size,
        }),
    }
}

fn read_length(digits: &[u8]) -> Result<u64, String> {
    std::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            let shown = String::from_utf8_lossy(&digits[..digits.len().min(40)]);
            format!("a Content-Length that is no number: {shown:?}")
        })
}

fn end_of_headers(length: Option<u64>, size: usize) -> Result<State, String> {
    match length {
        Some(length) => Ok(State::Body(length)),
        None if size == 0 => Ok(NO_HEADERS),
        None => Err("headers without Content-Length".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Seen = Vec<Result<String, FrameError>>;

    fn drain(decoder: &mut Decoder, seen: &mut Seen) {
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => seen.push(Ok(String::from_utf8(frame).unwrap())),
                Ok(None) => return,
                Err(error) => seen.push(Err(error)),
            }
        }
    }

    fn decode(limit: usize, pieces: &[&[u8]]) -> Seen {
        let mut decoder = Decoder::new(limit);
        let mut seen = Seen::new();
        for piece in pieces {
            decoder.push(piece);
            drain(&mut decoder, &mut seen);
        }
        match decoder.finish() {
            Ok(Some(frame)) => seen.push(Ok(String::from_utf8(frame).unwrap())),
            Ok(None) => {}
            Err(error) => seen.push(Err(error)),
        }
        seen
    }

    fn check(input: &str, expected: &[&str]) {
        let expected: Seen = expected.iter().map(|text| Ok((*text).into())).collect();
        assert_eq!(decode(1 << 20, &[input.as_bytes()]), expected, "{input:?}");
        for at in 0..=input.len() {
            let (left, right) = input.as_bytes().split_at(at);
            assert_eq!(decode(1 << 20, &[left, right]), expected, "split at {at}");
        }
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(decode(1 << 20, &bytes), expected, "byte by byte");
    }

    fn lost(input: &[u8]) -> String {
        match decode(1 << 20, &[input]).pop() {
            Some(Err(FrameError::Lost(why))) => why,
            other => panic!("expected to be lost, got {other:?}"),
        }
    }

    #[test]
    fn lines_come_out_at_every_split() {
        check(
            "{\"a\":1}\n{\"b\":\"ü😀\"}\n[1]\n",
            &["{\"a\":1}", "{\"b\":\"ü😀\"}", "[1]"],
        );
    }

    #[test]
    fn blank_lines_and_carriage_returns_are_no_frames() {
        check("\r\n \n\t{}\r\n\r\n\n{}\n \r\n", &["{}", "{}"]);
    }

    #[test]
    fn a_last_line_needs_no_line_break() {
        check("{}\n[]", &["{}", "[]"]);
    }

    #[test]
    fn headers_come_in_any_order_and_case() {
        check(
            "content-LENGTH:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}\
             Content-Type: x\r\nContent-Length: 4\r\n\r\n[1]\n",
            &["{}", "[1]\n"],
        );
    }

    #[test]
    fn headers_end_lines_with_or_without_carriage_return() {
        check(
            "Content-Length: 2\n\n{}\r\n\r\nContent-Length: 0\r\n\r\nContent-Length: 2\n\r\n[]",
            &["{}", "", "[]"],
        );
    }

    #[test]
    fn a_body_may_hold_what_looks_like_a_header() {
        check(
            "Content-Length: 21\r\n\r\nContent-Length: 1\r\n\r\nContent-Length: 2\r\n\r\n{}",
            &["Content-Length: 1\r\n\r\n", "{}"],
        );
    }

    #[test]
    fn what_is_neither_loses_the_frame_at_once() {
        assert!(lost(b"GET / HTTP/1.1\r\n").contains("neither JSON"));
        assert!(lost(&[0xff; 70]).contains("neither JSON"));
        assert!(lost(&[b'a'; 70]).contains("neither JSON"));
        assert!(lost(b"\x00").contains("neither JSON"));
        assert!(lost(b"Content-Length: -1\r\n").contains("no number"));
        assert!(lost(b"Content-Length: \r\n").contains("no number"));
        assert!(lost(b"Content-Length: 99999999999999999999\r\n").contains("no number"));
        assert!(lost(b"Content-Length: 1\nContent-Length: 2\n").contains("two lengths"));
        assert!(lost(b"X: 1\r\n\r\n").contains("without Content-Length"));
        assert!(lost(b"Content-Length: 5\r\n\r\n{}").contains("inside a frame"));
        let long = format!("X: {}\r\n", "y".repeat(HEADERS_LIMIT));
        assert!(lost(long.as_bytes()).contains("headers over"));
    }

    #[test]
    fn bytes_after_a_lost_frame_are_ignored() {
        let mut decoder = Decoder::new(100);
        decoder.push(b"what?\n");
        assert!(decoder.next_frame().is_err());
        decoder.push(b"{}\nContent-Length: 2\r\n\r\n{}");
        assert_eq!(decoder.next_frame(), Ok(None));
        assert_eq!(decoder.held(), 0);
    }

    #[test]
    fn a_line_over_the_limit_is_reported_once_and_skipped() {
        let long = format!("{{\"id\":7,\"x\":\"{}\"}}\n{{}}\n", "y".repeat(5000));
        for chunk in [1, 7, 999, 20_000] {
            let pieces: Vec<&[u8]> = long.as_bytes().chunks(chunk).collect();
            let seen = decode(1000, &pieces);
            assert_eq!(seen.len(), 2, "{seen:?}");
            let Err(FrameError::TooLong { limit: 1000, head }) = &seen[0] else {
                panic!("{seen:?}");
            };
            assert_eq!(head.len(), HEAD);
            assert!(head.starts_with(b"{\"id\":7"));
            assert_eq!(seen[1], Ok("{}".into()));
        }
    }

    #[test]
    fn a_body_over_the_limit_is_reported_once_and_skipped() {
        for size in [1001, 5000] {
            let input = format!(
                "Content-Length: {size}\r\n\r\n{}Content-Length: 2\r\n\r\n{{}}",
                "y".repeat(size)
            );
            for chunk in [1, 7, 999, 20_000] {
                let pieces: Vec<&[u8]> = input.as_bytes().chunks(chunk).collect();
                let seen = decode(1000, &pieces);
                assert_eq!(seen.len(), 2, "{seen:?}");
                assert!(
                    matches!(&seen[0], Err(FrameError::TooLong { head, .. }) if head.len() == HEAD)
                );
                assert_eq!(seen[1], Ok("{}".into()));
            }
        }
    }

    #[test]
    fn a_frame_of_exactly_the_limit_passes() {
        let line = format!("[{}]", "1".repeat(98));
        assert_eq!(decode(100, &[line.as_bytes(), b"\n"]), [Ok(line.clone())]);
        let framed = format!("Content-Length: 100\r\n\r\n{line}");
        assert_eq!(decode(100, &[framed.as_bytes()]), [Ok(line)]);
    }

    #[test]
    fn no_more_than_the_limit_and_a_push_is_held() {
        let mut decoder = Decoder::new(64 << 10);
        let piece = [b'['; 4096];
        let mut errors = 0;
        for _ in 0..1000 {
            decoder.push(&piece);
            while decoder
                .next_frame()
                .map_err(|_| errors += 1)
                .unwrap_or_default()
                .is_some()
            {}
            assert!(decoder.held() <= (64 << 10) + 4096, "{}", decoder.held());
        }
        assert_eq!(errors, 1);
    }

    #[test]
    fn a_promised_body_costs_nothing_before_it_comes() {
        let mut decoder = Decoder::new(DEFAULT_LIMIT);
        decoder.push(b"Content-Length: 16000000\r\n\r\n{");
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(decoder.held() < 1024);
    }

    #[test]
    fn nothing_is_held_between_frames() {
        let mut decoder = Decoder::new(DEFAULT_LIMIT);
        let big = format!("[\"{}\"]\n[]\n", "x".repeat(1 << 20));
        for piece in big.as_bytes().chunks(8192) {
            decoder.push(piece);
            while decoder.next_frame().unwrap().is_some() {}
        }
        assert_eq!(decoder.held(), 0);
    }

    #[test]
    fn both_styles_encode_what_they_decode() {
        for style in [Style::Lines, Style::Headers] {
            let mut bytes = Vec::new();
            encode(style, b"{\"a\":1}", &mut bytes);
            encode(style, b"[]", &mut bytes);
            let mut decoder = Decoder::new(100);
            decoder.push(&bytes);
            assert_eq!(decoder.next_frame(), Ok(Some(b"{\"a\":1}".to_vec())));
            assert_eq!(decoder.style(), Some(style));
            assert_eq!(decoder.next_frame(), Ok(Some(b"[]".to_vec())));
            assert_eq!(decoder.next_frame(), Ok(None));
        }
    }

    fn messages() -> impl Strategy<Value = Vec<String>> {
        let text = prop_oneof!["[ -~äß😀]{0,40}", "[a]{400,700}"];
        prop::collection::vec(
            text.prop_map(|text| serde_json::json!([text]).to_string()),
            1..8,
        )
    }

    fn cut<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        places.sort_unstable();
        places.push(bytes.len());
        let mut from = 0;
        let piece = |to: usize| &bytes[std::mem::replace(&mut from, to)..to];
        places.into_iter().map(piece).collect()
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_frames(
            texts in messages(),
            headers in any::<bool>(),
            cuts in prop::collection::vec(any::<usize>(), 0..20),
        ) {
            let style = if headers { Style::Headers } else { Style::Lines };
            let mut bytes = Vec::new();
            for text in &texts {
                encode(style, text.as_bytes(), &mut bytes);
            }
            let whole = decode(300, &[&bytes]);
            prop_assert_eq!(whole.len(), texts.len());
            prop_assert_eq!(&decode(300, &cut(&bytes, &cuts)), &whole);
            let fits: Vec<_> = whole.into_iter().filter_map(Result::ok).collect();
            let short: Vec<_> = texts.into_iter().filter(|text| text.len() <= 300).collect();
            prop_assert_eq!(fits, short);
        }

        #[test]
        fn random_bytes_neither_panic_nor_pile_up(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..40),
            first in prop_oneof![Just(&b""[..]), Just(&b"{"[..]), Just(&b"Content-Length: 30\r\n\r\n"[..])],
        ) {
            let mut decoder = Decoder::new(256);
            decoder.push(first);
            for piece in &pieces {
                decoder.push(piece);
                while !matches!(decoder.next_frame(), Ok(None)) {}
                prop_assert!(decoder.held() <= HEADERS_LIMIT + 256);
            }
            let _ = decoder.finish();
        }

        #[test]
        fn random_header_text_is_split_safe(
            text in "(Content-Length: [0-9]{1,3}\r?\n|[A-Za-z-]{1,5}: x\r?\n|\r?\n|[a-z{}]{1,9}){0,12}",
            cuts in prop::collection::vec(any::<usize>(), 0..20),
        ) {
            let whole = decode(50, &[text.as_bytes()]);
            prop_assert_eq!(decode(50, &cut(text.as_bytes(), &cuts)).len(), whole.len());
        }
    }
}
