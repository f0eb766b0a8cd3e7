//! Folding never changes what a reader ends up with.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A reader by the rule of the protocol: of each piece it takes what lies beyond what it has.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reader {
    texts: BTreeMap<(&'static str, String), String>,
    others: Vec<u64>,
    at: u64,
}

impl Reader {
    fn take(&mut self, event: &Event) {
        assert!(event.seq > self.at, "{} after {}", event.seq, self.at);
        self.at = event.seq;
        let (kind, key, offset, text) = match &event.kind {
            EventKind::Saying {
                message,
                offset,
                text,
            } => ("say", message.to_string(), offset, text),
            EventKind::Thinking {
                message,
                offset,
                text,
            } => ("think", message.to_string(), offset, text),
            EventKind::ToolOutput { call, offset, text } => ("out", call.to_string(), offset, text),
            _ => return self.others.push(event.seq),
        };
        let known = self.texts.entry((kind, key)).or_default();
        let have = known.chars().count() as u64;
        assert!(have >= *offset, "a gap before {}", event.seq);
        known.extend(text.chars().skip((have - offset) as usize));
    }

    /// Reads on in pages of this many.
    async fn read(mut self, store: &Store, page: u32) -> Self {
        loop {
            let entries = store.read(&id("a"), self.at, page).await.unwrap();
            if entries.is_empty() {
                return self;
            }
            for entry in entries {
                assert_eq!(*entry.event, serde_json::from_str(&entry.json).unwrap());
                self.take(&entry.event);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Piece(usize, String),
    Other,
    Fold(usize),
}

const KEYS: [&str; 5] = ["m1", "m2", "t1", "c1", "c2"];

fn piece(key: usize, offset: u64, text: &str) -> EventKind {
    match key {
        0 | 1 => saying(KEYS[key], offset, text),
        2 => EventKind::Thinking {
            message: MessageId::from(KEYS[key]),
            offset,
            text: text.into(),
        },
        _ => output(KEYS[key], offset, text),
    }
}

/// Steps make a log in which a message is folded once at most, and has no pieces afterwards.
async fn play(store: &Store, steps: &[Step]) -> Vec<Event> {
    store.create(row("a")).await.unwrap();
    let mut offsets = [0; KEYS.len()];
    let mut folded = [false; KEYS.len()];
    let mut log = Vec::new();
    for step in steps {
        let kind = match step {
            Step::Fold(key) => {
                folded[*key] = true;
                store.fold(&id("a"), KEYS[*key]);
                continue;
            }
            Step::Piece(key, text) if !folded[*key] => {
                let offset = offsets[*key];
                offsets[*key] += text.chars().count() as u64;
                piece(*key, offset, text)
            }
            Step::Piece(..) | Step::Other => EventKind::Cleared,
        };
        let entry = entry("a", log.len() as u64 + 1, kind);
        log.push(Event::clone(&entry.event));
        store
            .append(
                &id("a"),
                vec![entry],
                None,
                Pace::Now,
                Durability::Committed,
            )
            .await
            .unwrap();
    }
    log
}

async fn every_cursor_ends_with_the_same(steps: &[Step], page: u32) {
    let bed = bed();
    let log = play(&bed.store, steps).await;
    settle(&bed.store).await;
    let mut whole = Reader::default();
    log.iter().for_each(|event| whole.take(event));
    let mut readers = vec![Reader::default()];
    for event in &log {
        let mut next = readers.last().unwrap().clone();
        next.take(event);
        readers.push(next);
    }
    // Folded while it was written, then all that is left, and once more by another daemon.
    for round in 0..3 {
        for reader in &readers {
            let ended = reader.clone().read(&bed.store, page).await;
            assert_eq!(ended, whole, "round {round}, from {}", reader.at);
        }
        match round {
            0 => KEYS.iter().for_each(|key| bed.store.fold(&id("a"), key)),
            _ => {
                bed.store.release(&id("a")).await;
                bed.store.lease(&id("a")).await.unwrap();
            }
        }
        settle(&bed.store).await;
    }
    assert_eq!(bed.store.row(&id("a")).await.unwrap().seq, log.len() as u64);
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..KEYS.len(), "[a-c\u{e9}\u{1F600}]{0,4}").prop_map(|(key, text)| Step::Piece(key, text)),
        2 => Just(Step::Other),
        1 => (0..KEYS.len()).prop_map(Step::Fold),
    ];
    proptest::collection::vec(step, 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn folding_changes_no_readers_text(steps in steps(), page in 1..8_u32) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(every_cursor_ends_with_the_same(&steps, page));
    }
}

#[tokio::test]
async fn a_folded_message_is_one_event_with_the_last_number() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    put(&bed.store, "a", 1, saying("m1", 0, "he")).await;
    put(&bed.store, "a", 2, saying("m1", 2, "l\u{e9}")).await;
    put(&bed.store, "a", 3, prompt("between")).await;
    put(&bed.store, "a", 4, saying("m1", 4, "o")).await;
    put(&bed.store, "a", 5, saying("m2", 0, "live")).await;
    bed.store.fold(&id("a"), "m1");
    settle(&bed.store).await;
    let read = bed.store.read(&id("a"), 0, 9).await.unwrap();
    let seqs: Vec<_> = read
        .iter()
        .map(|entry| (entry.event.first(), entry.event.seq))
        .collect();
    assert_eq!(seqs, [(3, 3), (1, 4), (5, 5)]);
    assert_eq!(read[1].event.kind, saying("m1", 0, "hel\u{e9}o"));
    let (middle, _) = bed.store.page_before(&id("a"), 5, 1).await.unwrap();
    assert_eq!(json(&middle), json(&read[1..2]));
    // A fork copies folded events as they are.
    bed.store.create(row("b")).await.unwrap();
    let copies: Vec<_> = read
        .iter()
        .map(|entry| {
            let mut event = Event::clone(&entry.event);
            event.session = id("b");
            Entry::new(event)
        })
        .collect();
    bed.store
        .append(
            &id("b"),
            copies.clone(),
            None,
            Pace::Now,
            Durability::Committed,
        )
        .await
        .unwrap();
    assert_eq!(
        json(&bed.store.read(&id("b"), 0, 9).await.unwrap()),
        json(&copies)
    );
}

#[tokio::test]
async fn pieces_with_a_gap_stay_as_they_are() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    put(&bed.store, "a", 1, saying("m1", 0, "ab")).await;
    put(&bed.store, "a", 2, saying("m1", 3, "d")).await;
    bed.store.fold(&id("a"), "m1");
    settle(&bed.store).await;
    assert_eq!(bed.store.read(&id("a"), 0, 9).await.unwrap().len(), 2);
}
