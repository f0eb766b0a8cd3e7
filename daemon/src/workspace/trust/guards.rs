//! Guards that people agreed to: whether some may be among what does not count any more. Must never take what cannot be
//! known for nothing.

use super::kept::Kept;
use crate::workspace::decision::Decision;
use crate::workspace::plugins::may_guard;
use crate::workspace::scan::Scan;
use protocol::approval::TrustState;
use std::path::Path;

const LOST: &str = "files in .agents were changed since they were trusted, and with them went hooks that may guard calls, so \
     none runs until somebody agrees again: `dwell trust` shows what changed, `dwell trust yes` agrees to it, `dwell trust no` \
     goes on without";

/// Why files that were agreed to and could refuse a call are ignored: something of the directory changed. Adding a file
/// would otherwise be a way to get rid of a guard.
pub(super) fn lost(kept: &Kept, decision: Option<&Decision>, state: TrustState) -> Option<String> {
    let ignored = match state {
        TrustState::Changed | TrustState::Nothing => true,
        TrustState::Trusted | TrustState::Undecided | TrustState::Refused => false,
    };
    let agreed = decision.filter(|decision| ignored && decision.allow);
    let mut files = agreed.iter().flat_map(|decision| &decision.files);
    let lost = files.any(|(name, digest)| is_one(name, || kept.get(digest)));
    lost.then(|| LOST.to_owned())
}

/// Where the decisions cannot be read, whatever could be a guard may have been agreed to.
pub(super) fn unknown(scan: &Scan, why: &str) -> Option<String> {
    let mut names = scan.files.keys();
    let may_be = names.any(|name| is_one(name, || None));
    may_be.then(|| {
        format!("{why}; hooks of this directory may guard calls, so none runs until that is mended")
    })
}

fn is_one(name: &str, text: impl FnOnce() -> Option<String>) -> bool {
    if name == ".agents/config.toml" {
        return text().is_none_or(|text| text.contains("hooks"));
    }
    name.starts_with(".agents/plugins/") && may_guard(Path::new(name), text)
}

#[cfg(test)]
mod tests {
    use super::is_one;

    #[test]
    fn what_cannot_be_known_may_be_a_guard_and_what_is_no_plugin_is_none() {
        let is = |name: &str, text: Option<&str>| is_one(name, || text.map(str::to_owned));
        assert!(is(".agents/config.toml", Some("[[hooks]]")));
        assert!(is(".agents/config.toml", None));
        assert!(!is(".agents/config.toml", Some("# nothing")));
        assert!(is(".agents/plugins/a.py", Some("toolbox.before()")));
        assert!(is(".agents/plugins/_lib/b", None));
        assert!(!is(".agents/plugins/a.py", Some("toolbox.add()")));
        assert!(!is(".agents/plugins/notes.md", Some("before you begin")));
        assert!(!is(".agents/tools/before.sh", None));
    }
}
