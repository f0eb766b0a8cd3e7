//! Words of names, descriptions and questions: identifiers split, endings cut, words that say nothing left out, and which
//! general words stand for each other. Must never know any one tool or vendor.

/// Words that stand for each other in what people ask of tools. A word may stand in several rows. As written in questions:
/// endings are cut when the table is read.
const ALIKE: &[&[&str]] = &[
    &[
        "create", "open", "add", "new", "make", "insert", "compose", "register", "file", "raise",
        "post",
    ],
    &[
        "delete",
        "remove",
        "drop",
        "erase",
        "destroy",
        "purge",
        "clear",
        "discard",
        "uninstall",
        "trash",
    ],
    &[
        "get", "read", "fetch", "retrieve", "show", "view", "see", "display", "inspect",
        "describe", "tell", "look", "check", "print",
    ],
    &["list", "show", "enumerate", "all", "which", "browse", "see"],
    &[
        "search", "find", "query", "lookup", "look", "locate", "seek",
    ],
    &[
        "update", "edit", "change", "modify", "patch", "set", "alter", "adjust", "fix",
    ],
    &["write", "save", "store", "put", "record"],
    &["send", "post", "write", "publish", "submit", "share"],
    &[
        "start", "run", "launch", "execute", "begin", "trigger", "invoke", "call", "boot",
    ],
    &[
        "stop",
        "kill",
        "cancel",
        "end",
        "terminate",
        "halt",
        "abort",
        "quit",
    ],
    &[
        "close",
        "resolve",
        "finish",
        "complete",
        "done",
        "transition",
        "end",
    ],
    &["move", "rename", "transfer"],
    &["copy", "fork", "clone", "duplicate"],
    &["reply", "answer", "respond", "comment"],
    &["upload", "put", "push", "attach"],
    &["download", "save", "pull", "get", "export"],
    &["go", "navigate", "visit", "open", "browse"],
    &["type", "fill", "enter", "input"],
    &["press", "click", "tap", "push"],
    &["choose", "select", "pick"],
    &["approve", "accept", "review", "allow"],
    &["switch", "turn", "checkout", "toggle"],
    &["schedule", "plan", "book", "arrange", "create"],
    &["log", "record", "track"],
    &["count", "many", "number", "total"],
    &["folder", "directory", "dir"],
    &["repo", "repository", "project"],
    &["picture", "photo", "image", "screenshot", "snapshot"],
    &["website", "site", "page", "url", "web", "webpage", "link"],
    &["email", "mail", "inbox"],
    &["message", "chat", "dm"],
    &["meeting", "event", "appointment"],
    &[
        "bug", "issue", "ticket", "defect", "task", "item", "incident",
    ],
    &[
        "person",
        "people",
        "user",
        "member",
        "everybody",
        "everyone",
        "someone",
        "somebody",
        "colleague",
    ],
    &["customer", "client", "buyer"],
    &["db", "database"],
    &["documentation", "doc", "docs", "document", "page"],
    &["error", "exception", "crash", "fail", "failure", "problem"],
    &["job", "workflow", "pipeline", "ci", "build", "action"],
    &["spend", "spent", "cost", "expense", "billing", "price"],
    &["bill", "invoice", "charge"],
    &["hour", "time", "worklog"],
    &["slow", "performance", "fast", "speed"],
    &["free", "available", "busy"],
    &["config", "configuration", "setting", "option"],
    &["env", "environment"],
    &["k8s", "kubernetes", "kubectl", "cluster"],
    &["pr", "pull", "request"],
    &["column", "field", "schema", "structure"],
    &["song", "track", "music"],
    &["temperature", "thermostat", "heating", "warm"],
    &["way", "route", "direction", "path"],
    &["place", "location", "address"],
    &["money", "payment", "balance", "fund"],
];

/// Words of questions that say nothing of a tool. Longer questions lean on them; names never do.
const EMPTY: &[&str] = &[
    "a",
    "an",
    "and",
    "are",
    "as",
    "at",
    "be",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "for",
    "from",
    "had",
    "has",
    "have",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "just",
    "let",
    "me",
    "might",
    "mine",
    "must",
    "my",
    "need",
    "now",
    "of",
    "off",
    "on",
    "one",
    "or",
    "our",
    "please",
    "right",
    "shall",
    "should",
    "so",
    "some",
    "something",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "to",
    "tool",
    "up",
    "us",
    "use",
    "want",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "who",
    "whose",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
];

/// The words of a text or name in small letters: split where no letter or digit stands, and where a small letter meets a
/// capital (`createIssue`), or the last capital of several begins a word (`getURLScreenshot`).
pub fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let pieces = text.split(|c: char| !c.is_alphanumeric());
    pieces.flat_map(pieces_of).map(|word| word.to_lowercase())
}

fn pieces_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (word, left) = rest.split_at(end_of_word(rest));
        rest = left;
        Some(word)
    })
}

fn end_of_word(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    let Some((_, mut before)) = chars.next() else {
        return 0;
    };
    while let Some((at, c)) = chars.next() {
        let next_is_small = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
        let small_meets_capital = c.is_uppercase() && !before.is_uppercase();
        let last_of_several = c.is_uppercase() && before.is_uppercase() && next_is_small;
        if small_meets_capital || last_of_several {
            return at;
        }
        before = c;
    }
    text.len()
}

/// The word without the ending that number and time give it; short ones stay whole.
pub fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.len() < 4 {
        return word;
    }
    let word = without_s(word);
    for ending in ["ing", "ed"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= 3
            && stem.bytes().any(|b| b"aeiouy".contains(&b))
        {
            return without_y(single(stem));
        }
    }
    // `merge` and `merging`, `schedule` and `scheduled` meet without the last vowel.
    match word.strip_suffix('e') {
        Some(stem) if stem.len() >= 3 => stem,
        _ => word,
    }
}

fn without_s(word: &str) -> &str {
    let keeps = ["ss", "us", "is", "as", "os"];
    if keeps.iter().any(|end| word.ends_with(end)) {
        return word;
    }
    let es = ["sses", "xes", "ches", "shes", "zes"];
    if es.iter().any(|end| word.ends_with(end)) {
        return &word[..word.len() - 2];
    }
    match word.strip_suffix("ies") {
        // `query` loses its last letter too.
        Some(stem) if stem.len() >= 3 => stem,
        _ => without_y(word.strip_suffix('s').unwrap_or(word)),
    }
}

fn without_y(word: &str) -> &str {
    match word.strip_suffix('y') {
        Some(stem) if stem.len() >= 3 && !stem.ends_with(['a', 'e', 'o', 'u']) => stem,
        _ => word,
    }
}

/// `stopp` is `stop`, `call` stays.
fn single(stem: &str) -> &str {
    let bytes = stem.as_bytes();
    let last = bytes[bytes.len() - 1];
    let doubled = bytes.len() > 3 && bytes[bytes.len() - 2] == last && !b"lsz".contains(&last);
    if doubled {
        &stem[..stem.len() - 1]
    } else {
        stem
    }
}

/// Whether a question is about anything in this word.
pub fn says_something(word: &str) -> bool {
    !EMPTY.contains(&word)
}

/// Words that may stand for this one, with their endings cut; itself is not among them.
pub fn alike(word: &str) -> Vec<&'static str> {
    let own = stem(word);
    let rows = ALIKE
        .iter()
        .filter(|row| row.iter().any(|other| stem(other) == own));
    let mut found: Vec<&str> = rows.flat_map(|row| row.iter().map(|w| stem(w))).collect();
    found.sort_unstable();
    found.dedup();
    found.retain(|other| *other != own);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        words(text).collect()
    }

    #[test]
    fn identifiers_of_every_habit_are_split_into_the_same_words() {
        for name in [
            "createIssue",
            "create_issue",
            "CreateIssue",
            "create-issue",
            "create.issue",
            "CREATE_ISSUE",
        ] {
            assert_eq!(split(name), ["create", "issue"], "{name}");
        }
        assert_eq!(split("github__create_issue"), ["github", "create", "issue"]);
        assert_eq!(split("getURLScreenshot"), ["get", "url", "screenshot"]);
        assert_eq!(split("s3_getObject2"), ["s3", "get", "object2"]);
        assert_eq!(split("Straße_öffnen"), ["straße", "öffnen"]);
        assert_eq!(split("__"), [""; 0]);
    }

    #[test]
    fn forms_of_a_word_meet() {
        for forms in [
            ["issue", "issues", "issued"],
            ["merge", "merges", "merging"],
            ["query", "queries", "querying"],
            ["stop", "stops", "stopped"],
            ["delete", "deleted", "deleting"],
            ["call", "calls", "calling"],
            ["branch", "branches", "branched"],
            ["list", "lists", "listing"],
        ] {
            let stems = forms.map(stem);
            assert!(
                stems.iter().all(|one| *one == stems[0]),
                "{forms:?}: {stems:?}"
            );
        }
        for whole in ["status", "s3", "is", "class", "bus"] {
            assert_eq!(stem(whole), whole);
        }
    }

    #[test]
    fn a_general_word_has_others_that_stand_for_it() {
        assert!(alike("open").contains(&stem("create")));
        assert!(alike("folders").contains(&stem("directory")));
        assert_eq!(alike("github"), [""; 0]);
    }
}
