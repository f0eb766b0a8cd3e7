//! HTML as Markdown, made in a process of its own: what a page can do to a parser (memory without end, a stack that
//! overflows, minutes of time) it does to that process alone.

use crate::process::{Exit, Spawn, run};
use htmd::HtmlToMarkdown;
use htmd::options::{BulletListMarker, Options};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The first argument that makes this executable the converter.
const ARGUMENT: &str = "readable";
const TIMEOUT: Duration = Duration::from_secs(10);
/// Address space in bytes and processor time in seconds, which is what deep or wide pages use up; and no core dump.
const LIMITS: &[(Resource, u64)] = &[
    (Resource::As, 1024 * 1024 * 1024),
    (Resource::Cpu, 10),
    (Resource::Core, 0),
];
/// Pages nest deeper than most stacks bear.
const STACK: usize = 256 * 1024 * 1024;
/// Markdown beyond this is of no use to anybody.
const LARGEST: usize = 8 * 1024 * 1024;

/// What is never read as text.
const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "iframe", "head", "nav", "form", "button",
    "select", "dialog",
];

/// The page as Markdown, or why not.
pub(super) async fn markdown(html: String, cancel: &CancellationToken) -> Result<String, String> {
    convert_within(TIMEOUT, html, cancel).await
}

async fn convert_within(
    timeout: Duration,
    html: String,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let spawn = Spawn {
        program: "/proc/self/exe".into(),
        args: vec![ARGUMENT.into()],
        cwd: "/".into(),
        env: Default::default(),
        stdin: Some(html.into_bytes()),
        timeout: Some(timeout),
    };
    let mut output = Vec::new();
    let mut take = |bytes: &[u8]| {
        let room = LARGEST - output.len();
        output.extend(&bytes[..bytes.len().min(room)]);
    };
    match run(spawn, cancel, &mut take).await {
        Exit::Code(0) => Ok(String::from_utf8_lossy(&output).into_owned()),
        Exit::Code(_) | Exit::Signal(_) => Err("it is too large or too deep".to_owned()),
        Exit::TimedOut => Err("it takes too long".to_owned()),
        Exit::Cancelled => Err("cancelled".to_owned()),
        Exit::NotStarted(why) => Err(why),
    }
}

/// Becomes the converter and never returns, if that is what this process was started for.
pub fn main_if_asked() {
    if std::env::args_os().nth(1).as_deref() == Some(OsStr::new(ARGUMENT)) {
        let limited = LIMITS.iter().try_for_each(|(resource, most)| {
            let limit = Rlimit {
                current: Some(*most),
                maximum: Some(*most),
            };
            setrlimit(*resource, limit)
        });
        let converted = limited.is_ok()
            && std::thread::Builder::new()
                .stack_size(STACK)
                .spawn(convert)
                .is_ok_and(|thread| thread.join().is_ok_and(|done| done.is_ok()));
        std::process::exit(i32::from(!converted));
    }
}

fn convert() -> io::Result<()> {
    let mut html = String::new();
    io::stdin().lock().read_to_string(&mut html)?;
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder()
        .options(options)
        .skip_tags(SKIPPED.to_vec())
        .build();
    let markdown = converter.convert(&html)?;
    let mut output = io::stdout().lock();
    if let Some(title) = title(&html)
        && !markdown.contains(&format!("# {title}\n"))
    {
        writeln!(output, "# {title}\n")?;
    }
    output.write_all(markdown.as_bytes())?;
    output.flush()
}

/// The page's title, which is in its head and so not among what is converted.
fn title(html: &str) -> Option<String> {
    let start = html.find("<title")?;
    let (_, rest) = html[start..].split_once('>')?;
    let (title, _) = rest.split_once("</title")?;
    let plain = HtmlToMarkdown::new().convert(title).ok()?;
    let title = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test binary's `main` is not ours to change: this runs before it.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static CONVERT: extern "C" fn() = {
        extern "C" fn convert() {
            main_if_asked();
        }
        convert
    };

    async fn check(html: &str) -> Result<String, String> {
        markdown(html.to_owned(), &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn a_page_becomes_markdown_without_its_programs() {
        let html = "<html><head><title>A &amp; B</title><style>x{}</style></head><body><nav>menu</nav><h2>Head</h2>\
             <p>Some <b>bold</b> <a href='/x'>link</a>.</p><ul><li>one<li>two</ul><script>alert(1)</script>\
             <pre><code>let a = 1;\n</code></pre></body></html>";
        let markdown = check(html).await.unwrap();
        assert_eq!(
            markdown.trim_end(),
            "# A & B\n\n## Head\n\nSome **bold** [link](/x).\n\n- one\n- two\n\n```\nlet a = 1;\n```"
        );
    }

    #[tokio::test]
    async fn a_page_that_breaks_parsers_breaks_nothing_here() {
        let wide = (0..20_000).map(|count| format!("<b a={count}><p>"));
        for page in ["<div>".repeat(100_000), wide.collect()] {
            let limit = Duration::from_millis(300);
            let converted = convert_within(limit, page, &CancellationToken::new()).await;
            assert!(converted.is_err());
        }
    }
}
