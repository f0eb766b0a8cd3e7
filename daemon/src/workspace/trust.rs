//! Trust: whether a directory's own `.agents/` counts, and the decisions of people about that.
//! Must never run or believe what it looks at.

mod diff;
mod guards;
mod kept;

use super::decision::{Book, Decision};
use super::permissions;
use super::scan::{Digests, Scan, Whose, counts, digest_of};
use kept::Kept;
use protocol::approval::{Trust, TrustFile, TrustState};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// The decisions, kept in the state directory; a cheap handle.
#[derive(Clone, Debug)]
pub struct Trusts {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    book: Book,
    /// `~`, whose `.agents/` is the user's own.
    home: PathBuf,
    kept: Kept,
    digests: Digests,
    /// Directories that were looked at and wait for a decision; only for `list`.
    waiting: Mutex<BTreeSet<PathBuf>>,
}

/// Where a directory stands, with what that rests on.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) trust: Trust,
    pub(super) scan: Scan,
    /// Whether the last decision was a yes, be it for files as they were.
    pub(super) agreed: bool,
    /// Why hooks of the directory that somebody agreed to may be missing, with what to do about it.
    pub(super) lost_guards: Option<String>,
    /// Why nothing can be trusted now.
    pub(super) problem: Option<String>,
}

impl Trusts {
    pub fn open(state_dir: &Path, home: &Path) -> Self {
        let shared = Shared {
            home: home.to_owned(),
            book: Book::new(state_dir),
            kept: Kept::new(state_dir),
            digests: Digests::default(),
            waiting: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Where a directory stands now.
    pub async fn check(&self, cwd: &Path) -> Trust {
        let cwd = cwd.to_owned();
        let given = cwd.clone();
        let checked = self
            .blocking(move |trusts| trusts.shown(trusts.standing(&cwd).trust))
            .await;
        checked.unwrap_or_else(|_| undecided(&given))
    }

    #[cfg(test)]
    pub async fn answer(&self, cwd: &Path, allow: bool) -> Result<Trust, String> {
        self.answer_shown(cwd, allow, None).await
    }

    /// Decides for the files as they are now; where it is known what somebody saw of them, only if they are still the same.
    pub async fn answer_shown(
        &self,
        cwd: &Path,
        allow: bool,
        shown: Option<String>,
    ) -> Result<Trust, String> {
        let cwd = cwd.to_owned();
        self.blocking(move |trusts| trusts.decide(&cwd, allow, shown.as_deref()))
            .await?
    }

    /// A person's own command wrote this file. It joins what was agreed to, if nothing else differs from that.
    pub async fn add(&self, cwd: &Path, name: &str, content: &str) -> Result<Trust, String> {
        let (cwd, name) = (cwd.to_owned(), name.to_owned());
        let digest = digest_of(content.as_bytes());
        self.blocking(move |trusts| trusts.add_now(&cwd, &name, &digest))
            .await?
    }

    /// Directories that were decided on, and those that wait.
    pub async fn list(&self) -> Result<Vec<Trust>, String> {
        self.blocking(Self::all).await?
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, String> {
        let trusts = self.clone();
        let working = tokio::task::spawn_blocking(move || work(&trusts));
        working
            .await
            .map_err(|why| format!("looking at .agents failed: {why}"))
    }

    /// As `check`, on this thread, with the digests.
    pub(super) fn standing(&self, cwd: &Path) -> Standing {
        let cwd = real(cwd);
        let scan = self.scan(&cwd);
        let (decision, problem) = match self.shared.book.read() {
            Ok(decisions) => {
                let mut decision = decisions.directories.get(&key(&cwd)).cloned();
                let files = decision.as_mut().map(|decision| &mut decision.files);
                if let Some(files) = files {
                    files.retain(|name, _| counts(name, self.whose(&cwd)));
                }
                (decision, None)
            }
            Err(why) => (None, Some(why)),
        };
        let trust = judged(&cwd, &scan, decision.as_ref());
        let lost_guards = match &problem {
            Some(why) => guards::unknown(&scan, why),
            None => guards::lost(&self.shared.kept, decision.as_ref(), trust.state),
        };
        let agreed = decision.is_some_and(|decision| decision.allow);
        self.remember(&cwd, trust.state);
        let too_much = scan.incomplete.as_ref();
        let too_much = too_much
            .map(|why| format!("{} cannot be trusted: {why}", cwd.join(".agents").display()));
        Standing {
            trust,
            problem: problem.or(too_much),
            agreed,
            lost_guards,
            scan,
        }
    }

    /// What of a real directory's `.agents/` asks for trust.
    fn scan(&self, cwd: &Path) -> Scan {
        self.shared.digests.scan(cwd, self.whose(cwd))
    }

    fn whose(&self, cwd: &Path) -> Whose {
        match real(&self.shared.home) == *cwd {
            true => Whose::User,
            false => Whose::Directory,
        }
    }

    fn decide(&self, cwd: &Path, allow: bool, shown: Option<&str>) -> Result<Trust, String> {
        let cwd = real(cwd);
        let scan = self.scan(&cwd);
        if shown.is_some_and(|shown| shown != all_of(&scan)) {
            return Err(format!(
                "the files of {} were changed after they were shown, so nothing is decided: `dwell trust` shows them as they are",
                cwd.join(".agents").display()
            ));
        }
        if let (true, Some(why)) = (allow, &scan.incomplete) {
            return Err(format!(
                "cannot trust {}: {why}",
                cwd.join(".agents").display()
            ));
        }
        let decision = Decision {
            allow,
            decided_at: now(),
            files: scan.files.clone(),
        };
        self.shared
            .kept
            .put(scan.files.keys().map(|name| cwd.join(name)));
        let digests = self.shared.book.change(|decisions| {
            decisions.directories.insert(key(&cwd), decision.clone());
            let all = decisions.directories.values();
            let digests = all.flat_map(|decision| decision.files.values());
            let bare = digests.filter_map(|digest| kept::bare(digest));
            bare.map(str::to_owned).collect()
        })?;
        self.shared.kept.keep_only(&digests);
        let trust = judged(&cwd, &scan, Some(&decision));
        self.remember(&cwd, trust.state);
        Ok(self.shown(trust))
    }

    fn add_now(&self, cwd: &Path, name: &str, digest: &str) -> Result<Trust, String> {
        let cwd = real(cwd);
        let scan = self.scan(&cwd);
        let found = scan.files.get(name);
        let is_it = found.is_some_and(|found| found.strip_prefix("x:").unwrap_or(found) == digest);
        self.shared.book.change(|decisions| {
            let known = decisions.directories.get(&key(&cwd));
            if is_it && scan.incomplete.is_none() && is_all_that_differs(known, &scan, name) {
                let decision = Decision {
                    allow: true,
                    decided_at: now(),
                    files: scan.files.clone(),
                };
                decisions.directories.insert(key(&cwd), decision);
            }
        })?;
        self.shared.kept.put([cwd.join(name)].into_iter());
        Ok(self.shown(self.standing(&cwd).trust))
    }

    fn all(&self) -> Result<Vec<Trust>, String> {
        let decided = self.shared.book.read()?.directories;
        let mut paths: BTreeSet<PathBuf> = decided.into_keys().map(PathBuf::from).collect();
        paths.extend(
            self.shared
                .waiting
                .lock()
                .expect("no holder panics")
                .iter()
                .cloned(),
        );
        let all = paths
            .iter()
            .map(|path| self.shown(self.standing(path).trust));
        Ok(all.collect())
    }

    /// One file was rewritten by us on a person's word, after `before` was looked at. That changes what was decided for
    /// this file alone, and only if nobody else had changed it; where there was nothing before, it is the decision.
    pub(super) fn rewrote(
        &self,
        cwd: &Path,
        name: &str,
        before: &Scan,
        after: &str,
    ) -> Result<(), String> {
        let cwd = real(cwd);
        self.shared.book.change(|decisions| {
            let fresh = || Decision {
                allow: true,
                decided_at: now(),
                files: BTreeMap::new(),
            };
            let decision = decisions.directories.entry(key(&cwd)).or_insert_with(fresh);
            if before.files.is_empty() {
                *decision = fresh();
            }
            if decision.files.get(name) == before.files.get(name) {
                decision.files.insert(name.to_owned(), after.to_owned());
            }
        })
    }

    /// Keeps other writers of a directory's files away, in this daemon and others.
    pub(super) fn lock_files(&self) -> std::io::Result<std::fs::File> {
        self.shared.book.lock_files()
    }

    /// As people see it: with how small texts differ from what was decided on, and with what is wrong in a file that they may
    /// be asked to trust.
    fn shown(&self, mut trust: Trust) -> Trust {
        let cwd = PathBuf::from(&trust.cwd);
        let decided = match trust.state {
            TrustState::Changed => self.shared.book.read().ok(),
            _ => None,
        };
        let decided = decided.and_then(|mut book| book.directories.remove(&trust.cwd));
        for file in trust.files.iter_mut().filter(|file| file.changed) {
            let digest = decided.as_ref().map(|was| was.files.get(&file.path));
            if let Some(digest) = digest {
                (file.diff, file.unshown) =
                    self.difference(&cwd.join(&file.path), digest.map(String::as_str));
            }
        }
        let own_rules = |file: &&mut TrustFile| file.path == permissions::NAME;
        for file in trust.files.iter_mut().filter(own_rules) {
            file.problem = permissions::problem(&cwd);
        }
        trust
    }

    /// How a file differs from what was decided on, and what of that is not shown; of one that is new, all of it.
    fn difference(&self, path: &Path, digest: Option<&str>) -> (Option<String>, Option<String>) {
        if kept::is_secret(path) {
            let why = "passwords may stand in it, so that it is neither kept nor shown";
            return (None, Some(why.to_owned()));
        }
        let old = match digest {
            Some(digest) => match self.shared.kept.get(digest) {
                Some(old) => old,
                None => return (None, Some(kept::NOT_KEPT.to_owned())),
            },
            None => String::new(),
        };
        let Some(new) = kept::read(path) else {
            return (None, Some(kept::NOT_READ.to_owned()));
        };
        if old == new && digest.is_some() {
            let why = "the text is the same; whether it may be executed is not";
            return (None, Some(why.to_owned()));
        }
        let shown = diff::of(&old, &new);
        let old = digest.and_then(|digest| self.shared.kept.place(digest));
        let all = match old {
            Some(old) => format!("diff {} {}", old.display(), path.display()),
            None => path.display().to_string(),
        };
        let more =
            (shown.more > 0).then(|| format!("{} lines more, all are in: {all}", shown.more));
        (Some(shown.text).filter(|text| !text.is_empty()), more)
    }

    fn remember(&self, cwd: &Path, state: TrustState) {
        let mut waiting = self.shared.waiting.lock().expect("no holder panics");
        match state {
            TrustState::Undecided | TrustState::Changed => waiting.insert(cwd.to_owned()),
            TrustState::Nothing | TrustState::Trusted | TrustState::Refused => waiting.remove(cwd),
        };
    }
}

/// Whether one file aside all is as it was when it was trusted, or was nothing.
fn is_all_that_differs(known: Option<&Decision>, scan: &Scan, name: &str) -> bool {
    let without = |files: &BTreeMap<String, String>| {
        let mut files = files.clone();
        files.remove(name);
        files
    };
    match known {
        Some(known) => known.allow && without(&known.files) == without(&scan.files),
        None => scan.files.len() == 1,
    }
}

/// Pure: what a decision says of files as they are now.
fn judged(cwd: &Path, scan: &Scan, decision: Option<&Decision>) -> Trust {
    let decided = decision.map(|decision| &decision.files);
    let changed = |name: &str, digest: &str| {
        decided.is_none_or(|decided| decided.get(name).map(String::as_str) != Some(digest))
    };
    let files = scan.files.iter().map(|(name, digest)| TrustFile {
        path: name.clone(),
        changed: changed(name, digest),
        added: decided.is_some_and(|decided| !decided.contains_key(name)),
        diff: None,
        unshown: None,
        problem: None,
    });
    let gone = |name: &&String| !scan.files.contains_key(*name);
    let removed = decided.map(|decided| decided.keys().filter(gone).cloned().collect());
    let state = match decision {
        _ if scan.files.is_empty() && scan.incomplete.is_none() => TrustState::Nothing,
        None => TrustState::Undecided,
        Some(decision) if decision.files != scan.files => TrustState::Changed,
        Some(decision) if !decision.allow => TrustState::Refused,
        Some(_) if scan.incomplete.is_some() => TrustState::Changed,
        Some(_) => TrustState::Trusted,
    };
    Trust {
        cwd: key(cwd),
        state,
        files: files.collect(),
        removed: removed.unwrap_or_default(),
        decided_at: decision.map(|decision| decision.decided_at),
        digest: Some(all_of(scan)),
    }
}

/// Stands for all files with their content.
fn all_of(scan: &Scan) -> String {
    let lines = scan.files.iter();
    let lines: String = lines
        .map(|(name, digest)| format!("{name:?} {digest}\n"))
        .collect();
    digest_of(lines.as_bytes())
}

fn undecided(cwd: &Path) -> Trust {
    Trust {
        cwd: key(cwd),
        state: TrustState::Undecided,
        files: Vec::new(),
        removed: Vec::new(),
        decided_at: None,
        digest: None,
    }
}

/// The same directory by any link to it.
fn real(cwd: &Path) -> PathBuf {
    std::fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned())
}

fn key(cwd: &Path) -> String {
    cwd.to_str()
        .map_or_else(|| format!("{cwd:?}"), str::to_owned)
}

fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Trusts;
    use protocol::approval::TrustState::{Changed, Nothing, Refused, Trusted, Undecided};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;

    struct Place {
        root: TempDir,
        trusts: Trusts,
    }

    impl Place {
        fn new() -> Self {
            let root = TempDir::new().unwrap();
            fs::create_dir_all(root.path().join("work")).unwrap();
            let trusts = Trusts::open(&root.path().join("state"), root.path());
            Self { root, trusts }
        }

        fn cwd(&self) -> PathBuf {
            self.root.path().join("work")
        }

        fn book(&self) -> PathBuf {
            self.root.path().join("state/trust.json")
        }

        fn put(&self, name: &str, text: &str) {
            put(&self.cwd(), name, text);
        }

        async fn changed(&self) -> Vec<String> {
            let trust = self.trusts.check(&self.cwd()).await;
            trust
                .files
                .into_iter()
                .filter(|file| file.changed)
                .map(|file| file.path)
                .collect()
        }
    }

    fn put(cwd: &Path, name: &str, text: &str) {
        let path = cwd.join(".agents").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[tokio::test]
    async fn a_directory_goes_from_nothing_to_trusted_and_back_when_it_changes() {
        let place = Place::new();
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Nothing);
        place.put("tools/x", "one");
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Undecided);
        let trust = place.trusts.answer(&place.cwd(), true).await.unwrap();
        assert_eq!(
            (
                trust.state,
                trust.files[0].path.as_str(),
                trust.files[0].changed
            ),
            (Trusted, ".agents/tools/x", false)
        );
        place.put("tools/y", "new");
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Changed);
        assert_eq!(place.changed().await, [".agents/tools/y"]);
        place.trusts.answer(&place.cwd(), true).await.unwrap();
        place.put("tools/x", "two");
        assert_eq!(place.changed().await, [".agents/tools/x"]);
        place.put("tools/x", "one");
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Trusted);
        fs::remove_file(place.cwd().join(".agents/tools/y")).unwrap();
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Changed);
    }

    #[tokio::test]
    async fn a_file_that_a_tool_may_source_counts_wherever_it_lies() {
        let place = Place::new();
        place.put("tools/x.sh", "source ../lib/l.sh");
        place.put("lib/l.sh", "one");
        place.put("helper.inc", "one");
        let trust = place.trusts.answer(&place.cwd(), true).await.unwrap();
        let names: Vec<_> = trust.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(
            names,
            [
                ".agents/helper.inc",
                ".agents/lib/l.sh",
                ".agents/tools/x.sh"
            ]
        );
        for name in ["lib/l.sh", "helper.inc"] {
            place.put(name, "two");
            assert_eq!(place.changed().await, [format!(".agents/{name}")]);
            place.put(name, "one");
        }
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Trusted);
        place.put("skills/s/SKILL.md", "words");
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Trusted);
    }

    #[tokio::test]
    async fn what_changed_is_shown_line_by_line_and_what_came_and_went_by_name() {
        let place = Place::new();
        place.put("plugins/a.py", "one\ntwo\n");
        place.put("config.toml", "[[hooks]]\n");
        place.put("mcp.json", "{}");
        place.put("plugins/long", &"x".repeat(300 * 1024));
        place.put("plugins/other", &"old\n".repeat(400));
        place.put(".env", "PASSWORD=1");
        place.trusts.answer(&place.cwd(), true).await.unwrap();
        place.put("plugins/a.py", "one\n2\n");
        place.put("tools/new.sh", "x");
        place.put(".env", "PASSWORD=2");
        place.put("plugins/long", &"y".repeat(300 * 1024));
        place.put("plugins/other", &"new\n".repeat(400));
        fs::remove_file(place.cwd().join(".agents/mcp.json")).unwrap();
        let trust = place.trusts.check(&place.cwd()).await;
        assert_eq!(trust.state, Changed);
        assert_eq!(trust.removed, [".agents/mcp.json"]);
        let of = |name: &str| {
            let name = format!(".agents/{name}");
            let file = trust.files.iter().find(|file| file.path == name).unwrap();
            (file.changed, file.added, file.diff.as_deref())
        };
        let unshown = |name: &str| {
            let name = format!(".agents/{name}");
            let file = trust.files.iter().find(|file| file.path == name).unwrap();
            file.unshown.clone().unwrap_or_default()
        };
        assert_eq!(of("plugins/a.py"), (true, false, Some(" one\n-two\n+2")));
        assert_eq!(of("tools/new.sh"), (true, true, Some("+x")));
        assert_eq!(of("config.toml"), (false, false, None));
        assert_eq!(
            of(".env"),
            (true, false, None),
            "no password is copied or shown"
        );
        assert!(unshown(".env").starts_with("passwords may stand in it"));
        assert_eq!(unshown("plugins/a.py"), "");
        assert_eq!(of("plugins/long"), (true, false, None));
        assert!(unshown("plugins/long").starts_with("what was agreed to is not kept"));
        let all = unshown("plugins/other");
        let (count, files) = all.split_once(" lines more, all are in: diff ").unwrap();
        assert_eq!(count, "600");
        let [old, new] = files.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{files}")
        };
        assert_eq!(fs::read_to_string(old).unwrap(), "old\n".repeat(400));
        assert!(new.ends_with(".agents/plugins/other"), "{new}");
        let copies = || {
            fs::read_dir(place.root.path().join("state/trusted"))
                .unwrap()
                .count()
        };
        assert_eq!(copies(), 4);
        place.trusts.answer(&place.cwd(), true).await.unwrap();
        assert_eq!(copies(), 4, "copies that no decision rests on go");
        let again = place.trusts.check(&place.cwd()).await;
        assert_eq!((again.state, again.removed.len()), (Trusted, 0));
    }

    #[tokio::test]
    async fn what_was_shown_is_what_is_decided_on() {
        let place = Place::new();
        place.put("config.toml", "harmless");
        let shown = place.trusts.check(&place.cwd()).await.digest;
        place.put("config.toml", "hostile!");
        let answer = place.trusts.answer_shown(&place.cwd(), true, shown).await;
        assert!(answer.unwrap_err().contains("after they were shown"));
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Undecided);
        let shown = place.trusts.check(&place.cwd()).await.digest;
        let answer = place.trusts.answer_shown(&place.cwd(), true, shown).await;
        assert_eq!(answer.unwrap().state, Trusted);
    }

    #[tokio::test]
    async fn a_refusal_stands_until_something_changes() {
        let place = Place::new();
        place.put("mcp.json", "{}");
        assert_eq!(
            place
                .trusts
                .answer(&place.cwd(), false)
                .await
                .unwrap()
                .state,
            Refused
        );
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Refused);
        place.put("mcp.json", "{ }");
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Changed);
    }

    #[tokio::test]
    async fn decisions_survive_in_a_file_for_the_owner_alone() {
        let place = Place::new();
        place.put("tools/x", "one");
        place.trusts.answer(&place.cwd(), true).await.unwrap();
        let mode = fs::metadata(place.book()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Trusts::open(&place.root.path().join("state"), place.root.path());
        assert_eq!(again.check(&place.cwd()).await.state, Trusted);
        std::os::unix::fs::symlink("work", place.root.path().join("link")).unwrap();
        assert_eq!(
            again.check(&place.root.path().join("link")).await.state,
            Trusted
        );
        let listed = again.list().await.unwrap();
        assert_eq!(listed.len(), 1);
    }

    #[tokio::test]
    async fn directories_that_wait_are_listed() {
        let place = Place::new();
        place.put("tools/x", "one");
        assert_eq!(place.trusts.list().await.unwrap().len(), 0);
        place.trusts.check(&place.cwd()).await;
        let listed = place.trusts.list().await.unwrap();
        assert_eq!(
            listed.iter().map(|trust| trust.state).collect::<Vec<_>>(),
            [Undecided]
        );
    }

    #[tokio::test]
    async fn a_file_of_ones_own_joins_what_is_trusted_and_takes_nothing_else_along() {
        let place = Place::new();
        let add = async |name: &str, content: &str| {
            let added = place.trusts.add(&place.cwd(), name, content).await;
            added.unwrap().state
        };
        place.put("tools/x", "one");
        assert_eq!(add(".agents/tools/x", "other").await, Undecided);
        assert_eq!(add(".agents/tools/x", "one").await, Trusted);
        place.put("tools/y", "two");
        assert_eq!(add(".agents/tools/y", "two").await, Trusted);
        place.put("tools/z", "three");
        place.put("tools/x", "changed");
        assert_eq!(add(".agents/tools/z", "three").await, Changed);
        place.put("tools/x", "one");
        assert_eq!(add(".agents/tools/z", "three").await, Trusted);
        place.trusts.answer(&place.cwd(), false).await.unwrap();
        place.put("tools/w", "four");
        assert_eq!(add(".agents/tools/w", "four").await, Changed);
    }

    #[tokio::test]
    async fn a_damaged_book_trusts_nothing_and_is_not_overwritten() {
        let place = Place::new();
        place.put("tools/x", "one");
        place.trusts.answer(&place.cwd(), true).await.unwrap();
        fs::write(place.book(), "{\"directories\": ").unwrap();
        assert_eq!(place.trusts.check(&place.cwd()).await.state, Undecided);
        assert!(
            place
                .trusts
                .list()
                .await
                .unwrap_err()
                .contains("trust.json")
        );
        assert!(place.trusts.answer(&place.cwd(), true).await.is_err());
        assert_eq!(
            fs::read_to_string(place.book()).unwrap(),
            "{\"directories\": "
        );
    }

    #[tokio::test]
    async fn what_nobody_can_look_through_cannot_be_trusted() {
        let place = Place::new();
        place.put("tools/x", "one");
        fs::File::create(place.cwd().join(".agents/tools/large"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        assert!(
            place
                .trusts
                .answer(&place.cwd(), true)
                .await
                .unwrap_err()
                .contains("large")
        );
        assert_eq!(
            place
                .trusts
                .answer(&place.cwd(), false)
                .await
                .unwrap()
                .state,
            Refused
        );
    }

    #[tokio::test]
    async fn users_own_files_ask_for_no_trust_in_the_home_directory_but_its_hooks_do() {
        let place = Place::new();
        let home = place.root.path().to_owned();
        for name in [
            "plugins/p.py",
            "mcp.json",
            "tools/x",
            "permissions.json",
            "notes",
        ] {
            put(&home, name, "one");
        }
        let trust = place.trusts.check(&home).await;
        assert_eq!((trust.state, trust.files.len()), (Nothing, 0));
        put(&home, "config.toml", "[[hooks]]");
        let trust = place.trusts.check(&home).await;
        let files: Vec<_> = trust.files.iter().map(|file| &*file.path).collect();
        assert_eq!(
            (trust.state, files),
            (Undecided, vec![".agents/config.toml"])
        );
        let trust = place.trusts.answer(&home, true).await.unwrap();
        assert_eq!(trust.state, Trusted);
        put(&home, "plugins/p.py", "two");
        assert_eq!(place.trusts.check(&home).await.state, Trusted);
    }

    #[tokio::test]
    async fn writers_at_once_lose_no_decision() {
        let place = Place::new();
        let dirs: Vec<PathBuf> = (0..20)
            .map(|n| place.root.path().join(format!("dir{n}")))
            .collect();
        let answers = dirs.iter().map(|dir| {
            put(dir, "tools/x", "x");
            // A handle of its own, as another daemon has.
            let trusts = Trusts::open(&place.root.path().join("state"), place.root.path());
            let dir = dir.clone();
            tokio::spawn(async move { trusts.answer(&dir, true).await })
        });
        for answer in answers.collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap().unwrap().state, Trusted);
        }
        assert_eq!(place.trusts.list().await.unwrap().len(), 20);
    }
}
