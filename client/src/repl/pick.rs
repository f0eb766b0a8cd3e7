//! Choosing a session: a list that narrows as one types, and how the chosen one ends. Must never change a session.

use super::console::{Console, Sign};
use crate::attach::View;
use crate::error::Failure;
use crate::link::Link;
use crate::listing::{self, cells, dressed, table};
use crate::paint::{Paint, Part};
use crate::render::styled::clip;
use crate::render::{Prompts, Renderer};
use crate::screen::Panel;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use protocol::id::SessionId;
use protocol::session::{Session, SessionList, SessionRpcClient};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// How many sessions one request asks for; the first are shown before the rest has come.
const PAGE: u32 = 500;

/// How many events a preview reads.
const EVENTS: u32 = 120;

/// What became of the list.
pub(super) enum Chosen {
    Session(Box<Session>),
    /// The person left it.
    Nothing,
    /// A signal ended the program.
    Ended,
}

/// Has a person choose a session.
pub(super) async fn pick(link: &Rc<Link>, console: &mut Console) -> Result<Chosen, Failure> {
    let first = page(Rc::clone(link), None).await?;
    let mut pick = Pick::new(first.sessions, Paint::of(&std::io::stdout()));
    let mut reading: Option<Reading> = None;
    let mut listing = next_page(link, first.cursor);
    let chosen = loop {
        if let Some(session) = pick.wants_preview().cloned() {
            pick.asked = Some(session.id.clone());
            let (columns, _) = console.screen.size();
            let paint = pick.paint;
            reading = Some(Box::pin(read(Rc::clone(link), session, paint, columns)));
        }
        let size = console.look();
        console.screen.draw(pick.panel(size))?;
        tokio::select! {
            key = console.keys.next() => match pick.press(&key?) {
                Did::Nothing => {}
                Did::Leave => break Chosen::Nothing,
                Did::Choose(session) => break Chosen::Session(session),
            },
            (id, rows) = wait(&mut reading) => {
                reading = None;
                pick.preview = Some((id, rows));
            }
            list = wait(&mut listing) => {
                let list = list?;
                pick.all.extend(list.sessions);
                listing = next_page(link, list.cursor);
            }
            sign = console.signals.next() => match sign {
                Sign::End => break Chosen::Ended,
                Sign::GoOn => console.go_on()?,
            },
        }
    };
    console.screen.leave()?;
    Ok(chosen)
}

type Later<T> = Pin<Box<dyn Future<Output = T>>>;
type Reading = Later<(SessionId, Vec<String>)>;
type Listing = Later<Result<SessionList, Failure>>;

async fn wait<T>(later: &mut Option<Later<T>>) -> T {
    match later {
        Some(later) => later.await,
        None => std::future::pending().await,
    }
}

fn next_page(link: &Rc<Link>, cursor: Option<String>) -> Option<Listing> {
    let listing = cursor.map(|cursor| page(Rc::clone(link), Some(cursor)));
    listing.map(|listing| Box::pin(listing) as Listing)
}

async fn page(link: Rc<Link>, cursor: Option<String>) -> Result<SessionList, Failure> {
    link.call(async |client| {
        SessionRpcClient::list(client, None, None, None, Some(PAGE), cursor.clone()).await
    })
    .await
}

/// The end of a session, as it looks when one attaches. What cannot be read is shown as nothing.
async fn read(
    link: Rc<Link>,
    session: Session,
    paint: Paint,
    columns: usize,
) -> (SessionId, Vec<String>) {
    let before = Some(session.seq + 1);
    let page = link
        .call_once(async |client| {
            SessionRpcClient::history(client, session.id.clone(), None, before, Some(EVENTS)).await
        })
        .await;
    let mut renderer = Renderer::new(paint, Prompts::Own).rich(columns.saturating_sub(3));
    let mut view = View::default();
    let mut text = String::new();
    let events = page.map(|page| page.events).unwrap_or_default();
    for event in events.into_iter().filter_map(|event| view.take(event)) {
        let chunks = renderer.event(&event);
        chunks.iter().for_each(|chunk| text.push_str(&chunk.text));
    }
    let chunks = renderer.finish();
    chunks.iter().for_each(|chunk| text.push_str(&chunk.text));
    (session.id, text.lines().map(str::to_string).collect())
}

/// What a key did.
enum Did {
    Nothing,
    Leave,
    Choose(Box<Session>),
}

/// How a typed word fits what is told of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// It stands there.
    Whole,
    /// Its letters do, in their order.
    Letters,
}

fn fit(word: &str, texts: &[String]) -> Option<Fit> {
    let letters = |text: &String| {
        let mut left = text.chars();
        word.chars().all(|c| left.any(|other| other == c))
    };
    if texts.iter().any(|text| text.contains(word)) {
        return Some(Fit::Whole);
    }
    texts.iter().any(letters).then_some(Fit::Letters)
}

/// The list as it stands.
struct Pick {
    paint: Paint,
    all: Vec<Session>,
    /// When the list was made, in milliseconds since the Unix epoch.
    now: u64,
    typed: String,
    chosen: usize,
    /// The session whose preview was asked for.
    asked: Option<SessionId>,
    preview: Option<(SessionId, Vec<String>)>,
}

impl Pick {
    fn new(all: Vec<Session>, paint: Paint) -> Self {
        Self {
            paint,
            all,
            now: listing::now(),
            typed: String::new(),
            chosen: 0,
            asked: None,
            preview: None,
        }
    }

    /// Those that hold every word that is typed, newest first; behind them those that have its letters in their order.
    fn fitting(&self) -> Vec<&Session> {
        let typed = self.typed.to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().collect();
        if words.is_empty() {
            return self.all.iter().collect();
        }
        let how = |session: &Session| {
            // As it is shown, only where it is asked for so: there may be thousands.
            let cwd = match typed.contains('~') {
                true => listing::directory(&session.cwd),
                false => session.cwd.clone(),
            };
            let texts = [
                session.id.as_str().to_lowercase(),
                session.title.to_lowercase(),
                cwd.to_lowercase(),
                session.state.as_str().to_owned(),
            ];
            let mut fits = words.iter().map(|word| fit(word, &texts));
            fits.try_fold(Fit::Whole, |worst, fit| Some(worst.max(fit?)))
        };
        let found: Vec<(Fit, &Session)> = self
            .all
            .iter()
            .filter_map(|session| Some((how(session)?, session)))
            .collect();
        let of = |wanted: Fit| {
            let those = found.iter().filter(move |(fit, _)| *fit == wanted);
            those.map(|(_, session)| *session)
        };
        of(Fit::Whole).chain(of(Fit::Letters)).collect()
    }

    fn current(&self) -> Option<&Session> {
        self.fitting().get(self.chosen).copied()
    }

    /// The chosen session, if it is another one than before.
    fn wants_preview(&self) -> Option<&Session> {
        self.current()
            .filter(|session| self.asked.as_ref() != Some(&session.id))
    }

    fn press(&mut self, event: &Event) -> Did {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            _ => Did::Nothing,
        }
    }

    fn key(&mut self, key: &KeyEvent) -> Did {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Did::Leave,
            KeyCode::Char('c' | 'd') if control => return Did::Leave,
            KeyCode::Enter => {
                return self.current().map_or(Did::Nothing, |session| {
                    Did::Choose(Box::new(session.clone()))
                });
            }
            KeyCode::Up => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Char('p') if control => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down => self.down(),
            KeyCode::Char('n') if control => self.down(),
            KeyCode::Char('u') if control => self.type_anew(String::clear),
            KeyCode::Backspace => self.type_anew(|typed| {
                typed.pop();
            }),
            KeyCode::Char(c) if !control => self.type_anew(|typed| typed.push(c)),
            _ => {}
        }
        Did::Nothing
    }

    fn down(&mut self) {
        self.chosen = (self.chosen + 1).min(self.fitting().len().saturating_sub(1));
    }

    fn type_anew(&mut self, change: impl Fn(&mut String)) {
        change(&mut self.typed);
        self.chosen = 0;
    }

    fn panel(&self, (columns, rows): (usize, usize)) -> Panel {
        let room = columns.saturating_sub(1);
        let fitting = self.fitting();
        let prompt = format!("session: {}", self.typed);
        let cursor = (0, crate::render::styled::width(&prompt));
        let mut all = vec![prompt];
        let most = (rows.saturating_sub(4) / 2).max(1);
        let first = (self.chosen + 1).saturating_sub(most);
        let shown: Vec<&Session> = fitting.iter().skip(first).take(most).copied().collect();
        all.extend(self.lines(&shown, self.chosen - first, room));
        if fitting.is_empty() {
            all.push(self.paint.dress(Part::Quiet, "  none fits"));
        }
        let keys = format!(
            "{} of {} · Enter attaches · Esc leaves",
            fitting.len(),
            self.all.len()
        );
        all.push(self.paint.dress(Part::Quiet, &clip(&keys, room)));
        let left = rows.saturating_sub(all.len() + 1);
        all.extend(self.preview_rows(left));
        Panel { rows: all, cursor }
    }

    fn lines(&self, shown: &[&Session], chosen: usize, room: usize) -> Vec<String> {
        // Columns stay where they are while the list narrows.
        let padded = |session: &&Session| {
            let [id, state, age, title, directory] = cells(session, self.now);
            let (state, age) = (format!("{state:7}"), format!("{age:3}"));
            [id, state, age, title, directory]
        };
        let rows: Vec<_> = shown.iter().map(padded).collect();
        let rows = table(&rows, Some(room.saturating_sub(2)));
        let line = |(at, (row, session)): (usize, (&String, &&Session))| {
            let (mark, part) = match at == chosen {
                true => ("▸", Part::Prompt),
                false => (" ", Part::Tool),
            };
            let row = dressed(self.paint, row, session, Some(part));
            format!("{mark} {row}")
        };
        rows.iter().zip(shown).enumerate().map(line).collect()
    }

    fn preview_rows(&self, most: usize) -> Vec<String> {
        let current = self.current().map(|session| &session.id);
        match &self.preview {
            Some((id, rows)) if Some(id) == current => {
                let shown = rows[rows.len().saturating_sub(most)..].iter();
                shown
                    .map(|row| format!("│ {row}").trim_end().to_string())
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(id: &str, title: &str, state: &str) -> Session {
        serde_json::from_value(json!({
            "id": id, "title": title, "cwd": "/w", "state": state, "provider": "script",
            "created_at": 0, "updated_at": 0, "seq": 1
        }))
        .unwrap()
    }

    fn pick() -> Pick {
        let all = vec![
            session("calm-otter", "mend the parser", "idle"),
            session("red-fox", "write docs", "waiting"),
        ];
        let mut pick = Pick::new(all, Paint::Plain);
        pick.now = 61_000;
        pick
    }

    fn press(pick: &mut Pick, code: KeyCode) -> Did {
        pick.press(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn the_list_narrows_as_one_types_and_enter_takes_the_chosen_one() {
        let mut pick = pick();
        "WAIT doc".chars().for_each(|c| {
            press(&mut pick, KeyCode::Char(c));
        });
        assert_eq!(
            pick.panel((60, 20)).rows,
            [
                "session: WAIT doc",
                "▸ red-fox  waiting  1m   write docs  /w",
                "1 of 2 · Enter attaches · Esc leaves"
            ]
        );
        let Did::Choose(chosen) = press(&mut pick, KeyCode::Enter) else {
            panic!("one is chosen");
        };
        assert_eq!(chosen.id.as_str(), "red-fox");
    }

    #[test]
    fn rows_stand_in_columns_with_age_and_directory() {
        assert_eq!(
            pick().panel((60, 20)).rows[1..3],
            [
                "▸ calm-otter  idle     1m   mend the parser  /w",
                "  red-fox     waiting  1m   write docs       /w",
            ]
        );
    }

    #[test]
    fn a_few_letters_in_their_order_find_what_no_word_does() {
        let mut pick = pick();
        "cmotr idl".chars().for_each(|c| {
            press(&mut pick, KeyCode::Char(c));
        });
        let found = |pick: &Pick| -> Vec<String> {
            let all = pick.fitting();
            all.iter().map(|one| one.id.to_string()).collect()
        };
        assert_eq!(found(&pick), ["calm-otter"]);
        pick.typed = "ed".into();
        assert_eq!(found(&pick), ["red-fox", "calm-otter"], "whole words first");
    }

    #[test]
    fn moving_stays_within_the_list_and_an_empty_one_chooses_nothing() {
        let mut pick = pick();
        press(&mut pick, KeyCode::Up);
        (0..5).for_each(|_| {
            press(&mut pick, KeyCode::Down);
        });
        assert_eq!(pick.current().unwrap().id.as_str(), "red-fox");
        press(&mut pick, KeyCode::Char('q'));
        assert!(matches!(press(&mut pick, KeyCode::Enter), Did::Nothing));
    }

    #[test]
    fn the_preview_is_the_end_of_the_chosen_one_and_fits() {
        let mut pick = pick();
        let rows = (0..50).map(|n| format!("row {n}")).collect();
        pick.preview = Some(("calm-otter".into(), rows));
        let panel = pick.panel((40, 15));
        assert!(panel.rows.len() < 15);
        assert_eq!(panel.rows.last().unwrap(), "│ row 49");
        press(&mut pick, KeyCode::Down);
        assert!(
            !pick
                .panel((40, 15))
                .rows
                .iter()
                .any(|row| row.contains("row"))
        );
    }
}
