//! Whether a directory's own `.agents/` files count: asking once, or saying once that they don't. Must never trust
//! without an explicit yes.

use crate::ask_tty::Tty;
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::paint::{Mark, Paint, Part, one_line, spell_out};
use protocol::approval::{Trust, TrustRpcClient, TrustState};

/// A directory's standing, if its files wait for somebody's word.
pub(crate) async fn waiting(link: &Link, cwd: &str) -> Result<Option<Trust>, Failure> {
    let cwd = cwd.to_string();
    let listed = link
        .call(async |client| TrustRpcClient::trust_list(client, Some(cwd.clone())).await)
        .await?;
    let waits = |trust: &Trust| matches!(trust.state, TrustState::Undecided | TrustState::Changed);
    Ok(listed.into_iter().find(waits))
}

/// Asks on the terminal, once, before anything of the directory counts; without a terminal says how to.
pub(crate) async fn settle(
    link: &Link,
    cwd: &str,
    trust: Option<Trust>,
    tty: Option<&mut Tty>,
) -> Result<(), Failure> {
    let Some(trust) = trust.filter(|trust| !trust.files.is_empty()) else {
        return Ok(());
    };
    let paint = Paint::of(&std::io::stderr());
    let dwell = link.place().dwell();
    let Some(tty) = tty else {
        return out::note(&format!(
            "note: {} of this directory {} not count; `{dwell} trust` shows them, `{dwell} trust yes` trusts them",
            count(trust.files.len()),
            if trust.files.len() == 1 { "does" } else { "do" },
        ));
    };
    out::note(&question(paint, &trust))?;
    let line = tty.ask("trust them? [y/n] ").await?;
    match line.as_deref().map(str::trim).and_then(decide) {
        Some(allow) => {
            answer(link, cwd, allow, trust.digest.clone()).await?;
            let said = if allow {
                "trusted"
            } else {
                "they will not count until they change"
            };
            out::note(&paint.dress(Part::Quiet, said))
        }
        None => out::note(&paint.dress(
            Part::Quiet,
            &format!("not answered: they don't count for now (`{dwell} trust yes` trusts them)"),
        )),
    }
}

/// Records an answer for the files as they are now; with the digest of what was shown only if they are the same.
pub(crate) async fn answer(
    link: &Link,
    cwd: &str,
    allow: bool,
    shown: Option<String>,
) -> Result<Trust, Failure> {
    link.call(async |client| {
        TrustRpcClient::trust_answer(client, cwd.to_string(), allow, shown.clone()).await
    })
    .await
}

/// The files of a directory, one a line.
pub(crate) fn files(trust: &Trust) -> String {
    let show = |file: &protocol::approval::TrustFile| {
        let changed = match (file.added, file.changed, trust.state) {
            (true, _, TrustState::Changed) => "  (new)",
            (false, true, TrustState::Changed) => "  (changed)",
            _ => "",
        };
        let diff = file.diff.as_deref().unwrap_or_default().lines();
        let unshown = file.unshown.iter().map(|why| format!("({why})"));
        let diff: String = diff
            .map(str::to_owned)
            .chain(unshown)
            .map(|line| format!("\n        {}", spell_out(&line)))
            .collect();
        let broken = file.problem.as_deref();
        let broken =
            broken.map_or_else(String::new, |why| format!("  (broken: {})", spell_out(why)));
        format!("    {}{changed}{broken}{diff}", one_line(&file.path))
    };
    let gone = |path: &String| format!("    {}  (removed)", one_line(path));
    let files = trust.files.iter().map(show);
    let lines = files.chain(trust.removed.iter().map(gone));
    lines.collect::<Vec<_>>().join("\n")
}

fn question(paint: Paint, trust: &Trust) -> String {
    let what = match trust.state {
        TrustState::Changed => "this directory's own files have changed since they were decided on",
        _ => "this directory brings its own tools, plugins or permissions",
    };
    format!(
        "{} {}\n{}\n  {}",
        paint.mark(Mark::Ask),
        paint.dress(Part::Ask, what),
        files(trust),
        paint.dress(Part::Quiet, "what they contain may run on this machine"),
    )
}

fn count(files: usize) -> String {
    match files {
        1 => "1 file".into(),
        n => format!("{n} files"),
    }
}

/// Only an explicit word decides.
fn decide(line: &str) -> Option<bool> {
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_changed_and_went_is_shown() {
        let trust = serde_json::from_value(serde_json::json!({
            "cwd": "/w", "state": "changed", "removed": [".agents/mcp.json"],
            "files": [{"path": ".agents/plugins/a.py", "changed": true, "diff": "-one\n+two"},
                      {"path": ".agents/tools/b.sh", "changed": true, "added": true, "diff": "+x",
                       "unshown": "7 lines more"},
                      {"path": ".agents/tools/x\n    y.sh", "changed": false},
                      {"path": ".agents/tools/c.sh", "changed": false}],
        }));
        let shown = files(&trust.unwrap());
        let expected = "    .agents/plugins/a.py  (changed)\n        -one\n        +two\n    \
                        .agents/tools/b.sh  (new)\n        +x\n        (7 lines more)\n    \
                        .agents/tools/x\\n    y.sh\n    .agents/tools/c.sh\n    .agents/mcp.json  (removed)";
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_empty_line_decides_nothing() {
        assert_eq!(decide(""), None);
        assert_eq!(decide("yo"), None);
        assert_eq!(decide("Yes"), Some(true));
        assert_eq!(decide("n"), Some(false));
    }
}
