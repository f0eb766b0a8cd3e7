//! A program's output on its way to the model: streamed as it comes, capped in the result, kept whole in a file.
//! Must never hold more than the cap in memory, nor split a character.

use crate::process::Sink;
use crate::toolbox::tool::Call;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::future::Future;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

/// What a model gets of one output at most, in bytes: the head, the tail, and a line about the cut between them.
pub(in crate::toolbox) const CAP: usize = 32 * 1024;
/// More short members than these an object may not have beside a long one.
const MEMBERS: usize = 8;
/// Of which the head.
const HEAD: usize = CAP / 2;
/// What is streamed to people at most; the result follows anyway.
const STREAMED: usize = 256 * 1024;
/// What a file keeps at most.
const KEPT: u64 = 64 * 1024 * 1024;
/// Files of calls older than this go when the next one is made.
const EXPIRY: Duration = Duration::from_secs(7 * 24 * 3600);

/// Takes output and gives the text for the model at the end.
pub(in crate::toolbox) struct Capture<'c> {
    call: &'c Call,
    decoder: Decoder,
    head: String,
    tail: VecDeque<u8>,
    /// Bytes of text so far.
    total: usize,
    streamed: usize,
    show: Show,
    spill: Spill,
}

/// Who sees it before the result.
#[derive(Clone, Copy, PartialEq)]
enum Show {
    People,
    Nobody,
}

impl<'c> Capture<'c> {
    pub(in crate::toolbox) fn new(call: &'c Call) -> Self {
        Self::showing(call, Show::People)
    }

    /// For what nobody needs to see as it comes.
    pub(in crate::toolbox) fn silent(call: &'c Call) -> Self {
        Self::showing(call, Show::Nobody)
    }

    fn showing(call: &'c Call, show: Show) -> Self {
        Self {
            show,
            call,
            decoder: Decoder::default(),
            head: String::new(),
            tail: VecDeque::new(),
            total: 0,
            streamed: 0,
            spill: Spill::None,
        }
    }

    /// For a text that is there already.
    pub(in crate::toolbox) async fn whole(mut self, text: &str) -> String {
        self.text(text).await;
        self.finish().await
    }

    /// The whole text, or head and tail with what was cut and where it is.
    pub(in crate::toolbox) async fn finish(mut self) -> String {
        let rest = self.decoder.finish();
        self.text(&rest).await;
        let tail = Vec::from(std::mem::take(&mut self.tail));
        if self.total == self.head.len() + tail.len() {
            return self.head + &String::from_utf8_lossy(&tail);
        }
        let line_end = self.head.rfind('\n').filter(|end| *end > HEAD / 2);
        self.head
            .truncate(line_end.map_or(self.head.len(), |end| end + 1));
        let tail = from_line_start(&tail);
        let cut = self.total - self.head.len() - tail.len();
        let place = self.spill.place();
        format!("{}\n[{cut} bytes cut here; {place}]\n{tail}", self.head)
    }

    async fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.stream(text);
        if self.total + text.len() > CAP {
            self.keep(text).await;
        }
        self.total += text.len();
        let room = HEAD.saturating_sub(self.head.len());
        // Once something went to the tail, nothing may go to the head any more.
        let room = if self.tail.is_empty() { room } else { 0 };
        let (head, tail) = text.split_at(floor(text, room));
        self.head.push_str(head);
        self.tail.extend(tail.as_bytes());
        let surplus = self.tail.len().saturating_sub(CAP - HEAD);
        self.tail.drain(..surplus);
    }

    fn stream(&mut self, text: &str) {
        if self.show == Show::Nobody || self.streamed > STREAMED {
            return;
        }
        self.streamed += text.len();
        self.call.port.output(&self.call.call, text);
        if self.streamed > STREAMED {
            let notice = "\n[the output goes on, and is no longer shown as it comes]\n";
            self.call.port.output(&self.call.call, notice);
        }
    }

    /// Appends to the file, which is made when the cap is first passed.
    async fn keep(&mut self, text: &str) {
        let spill = std::mem::replace(&mut self.spill, Spill::None);
        let mut bytes = Vec::new();
        if matches!(spill, Spill::None) {
            bytes.extend(self.head.as_bytes());
            bytes.extend(self.tail.iter());
        }
        bytes.extend(text.as_bytes());
        let folder = self.call.spill_dir.clone();
        let name = format!("{}-{}.txt", self.call.session, self.call.call).replace('/', "_");
        let kept = tokio::task::spawn_blocking(move || spill.append(&folder, &name, &bytes)).await;
        self.spill = kept.unwrap_or_else(|error| Spill::Failed(error.to_string()));
    }
}

/// What a tool outside the daemon gave, with no more of it than a model gets of any output: the one long text of an object
/// is cut where it stands, anything else that is long becomes text.
pub async fn bounded(call: &Call, mut object: Map<String, Value>) -> Map<String, Value> {
    let text = Value::Object(object.clone()).to_string();
    if text.len() <= CAP {
        return object;
    }
    let long = |value: &Value| value.to_string().len() > CAP / 8;
    let mut all_long = object.iter_mut().filter(|(_, value)| long(value));
    if let (Some((_, Value::String(one))), None) = (all_long.next(), all_long.next()) {
        *one = Capture::silent(call).whole(one).await;
        if object.len() <= MEMBERS {
            return object;
        }
    }
    let error = object.contains_key("error");
    let name = if error { "error" } else { "content" };
    let cut = Capture::silent(call).whole(&text).await;
    Map::from_iter([(name.to_owned(), cut.into())])
}

impl Sink for Capture<'_> {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            let text = self.decoder.push(bytes);
            self.text(&text).await;
        })
    }
}

/// The last boundary of a character that is not beyond `at`.
pub(super) fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Without the rest of a character, and from the beginning of a line where one is near.
fn from_line_start(tail: &[u8]) -> String {
    let start = tail.iter().position(|byte| byte & 0xc0 != 0x80);
    let mut text = String::from_utf8_lossy(&tail[start.unwrap_or(0)..]).into_owned();
    let near = floor(&text, text.len() / 2);
    if let Some(end) = text[..near].find('\n') {
        text.drain(..=end);
    }
    text
}

/// The file that keeps what does not fit.
enum Spill {
    None,
    Open {
        file: File,
        path: PathBuf,
        size: u64,
    },
    Full {
        path: PathBuf,
    },
    Failed(String),
}

impl Spill {
    fn append(self, folder: &Path, name: &str, bytes: &[u8]) -> Self {
        let opened = match self {
            Self::None => create(folder, name).map(|(file, path)| (file, path, 0)),
            Self::Open { file, path, size } => Ok((file, path, size)),
            done @ (Self::Full { .. } | Self::Failed(_)) => return done,
        };
        let (mut file, path, size) = match opened {
            Ok(opened) => opened,
            Err(error) => return Self::Failed(error.to_string()),
        };
        let room = usize::try_from(KEPT - size).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        match file.write_all(fits) {
            Err(error) => Self::Failed(error.to_string()),
            Ok(()) if fits.len() < bytes.len() => Self::Full { path },
            Ok(()) => Self::Open {
                file,
                path,
                size: size + fits.len() as u64,
            },
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Open { path, .. } => format!("the whole is in {}", path.display()),
            Self::Full { path } => {
                format!("the first {} MiB are in {}", KEPT >> 20, path.display())
            }
            Self::Failed(why) => format!("the whole could not be kept: {why}"),
            Self::None => "the whole was not kept".to_owned(),
        }
    }
}

fn create(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    sweep(folder);
    let path = folder.join(name);
    // A call runs once, so what is there is of a call whose session was deleted, or no file of ours.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    Ok((file, path))
}

/// The folder of what calls leave, for its user alone.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Removes what is too old. Best effort: the files are only a convenience.
fn sweep(folder: &Path) {
    let is_old = |file: &fs::DirEntry| {
        let changed = file.metadata().and_then(|data| data.modified());
        changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > EXPIRY))
    };
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        if file.path().extension().is_some_and(|end| end == "txt") && is_old(&file) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Text out of bytes that come in any pieces; what is no UTF-8 becomes U+FFFD.
#[derive(Default)]
struct Decoder {
    /// The beginning of a character whose rest has not come.
    open: Vec<u8>,
}

impl Decoder {
    fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = bytes;
        if !self.open.is_empty() {
            joined = [std::mem::take(&mut self.open).as_slice(), bytes].concat();
            rest = &joined;
        }
        let mut text = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, bad) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(length) = error.error_len() else {
                        self.open = bad.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &bad[length..];
                }
            }
        }
    }

    fn finish(&mut self) -> String {
        let open = std::mem::take(&mut self.open);
        if open.is_empty() {
            return String::new();
        }
        char::REPLACEMENT_CHARACTER.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    async fn capture(bench: &Bench, pieces: impl IntoIterator<Item = Vec<u8>>) -> String {
        let call = bench.call();
        let mut capture = Capture::new(&call);
        for piece in pieces {
            capture.take(&piece).await;
        }
        capture.finish().await
    }

    #[test]
    fn any_split_gives_the_same_text() {
        let bytes = "aé€😀\u{fffd}"
            .bytes()
            .chain([0xff, b'b', 0xe2, 0x82])
            .collect::<Vec<_>>();
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        for cut in 0..=bytes.len() {
            let mut decoder = Decoder::default();
            let text =
                decoder.push(&bytes[..cut]) + &decoder.push(&bytes[cut..]) + &decoder.finish();
            assert_eq!(text, whole, "cut at {cut}");
        }
        let mut decoder = Decoder::default();
        let mut text: String = bytes.iter().map(|byte| decoder.push(&[*byte])).collect();
        text += &decoder.finish();
        assert_eq!(text, whole);
    }

    #[tokio::test]
    async fn what_fits_comes_whole_and_leaves_no_file() {
        let bench = Bench::new();
        let text = "x".repeat(CAP);
        let pieces = text.as_bytes().chunks(1000).map(<[u8]>::to_vec);
        assert_eq!(capture(&bench, pieces).await, text);
        assert!(!bench.spill_dir().exists());
    }

    #[tokio::test]
    async fn what_is_cut_is_said_and_kept() {
        let bench = Bench::new();
        let text: String = (0..20_000).map(|line| format!("line {line} é\n")).collect();
        let pieces = text.as_bytes().chunks(777).map(<[u8]>::to_vec);
        let shown = capture(&bench, pieces).await;
        let path = bench.spill_dir().join("test-c1.txt");
        let (head, rest) = shown.split_once("\n[").unwrap();
        let (notice, tail) = rest.split_once("]\n").unwrap();
        let cut = text.len() - head.len() - tail.len();
        assert_eq!(
            notice,
            format!("{cut} bytes cut here; the whole is in {}", path.display())
        );
        assert!(text.starts_with(head) && text.ends_with(tail) && tail.starts_with("line "));
        assert!(head.len() + tail.len() <= CAP && head.len() + tail.len() > CAP - 100);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_made_is_said() {
        let bench = Bench::new();
        fs::write(bench.spill_dir(), "in the way").unwrap();
        let shown = capture(&bench, [vec![b'x'; CAP + 1]]).await;
        assert!(
            shown.contains("the whole could not be kept: "),
            "{}",
            &shown[HEAD..HEAD + 200]
        );
    }

    #[tokio::test]
    async fn streaming_stops_at_its_limit_and_says_so() {
        let bench = Bench::new();
        capture(&bench, (0..100).map(|_| vec![b'x'; 10_000])).await;
        let streamed = bench.output();
        assert!(streamed.len() < STREAMED + 11_000);
        assert!(streamed.ends_with("no longer shown as it comes]\n"));
    }
}
