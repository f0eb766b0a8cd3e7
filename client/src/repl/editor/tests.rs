//! Keys in, text and wishes out.

use super::*;
use crossterm::event::KeyModifiers;
use protocol::command::Candidate;
use std::path::Path;

fn editor(style: KeyStyle, lines: &[&str]) -> Editor {
    let nowhere = Path::new("/dev/null/history.jsonl");
    let mut history = History::load(nowhere.into(), nowhere, "/w");
    lines.iter().for_each(|line| history.add(line));
    Editor::new(style, history)
}

fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) -> Asked {
    editor.event(Event::Key(KeyEvent::new(code, modifiers)))
}

fn control(editor: &mut Editor, c: char) -> Asked {
    press(editor, KeyCode::Char(c), KeyModifiers::CONTROL)
}

fn type_in(editor: &mut Editor, text: &str) {
    for c in text.chars() {
        press(editor, KeyCode::Char(c), KeyModifiers::NONE);
    }
}

fn enter(editor: &mut Editor) -> Asked {
    press(editor, KeyCode::Enter, KeyModifiers::NONE)
}

#[test]
fn a_line_is_typed_edited_and_done() {
    let mut editor = editor(KeyStyle::Emacs, &[]);
    type_in(&mut editor, "say wrld");
    control(&mut editor, 'a');
    control(&mut editor, 'k');
    control(&mut editor, 'y');
    assert_eq!(editor.text(), "say wrld");
    assert_eq!(enter(&mut editor), Asked::Line("say wrld".into()));
    assert!(editor.is_empty());
}

#[test]
fn a_backslash_and_alt_enter_go_on_in_the_next_line() {
    let mut editor = editor(KeyStyle::Emacs, &[]);
    type_in(&mut editor, "one\\");
    assert_eq!(enter(&mut editor), Asked::Nothing);
    type_in(&mut editor, "two");
    press(&mut editor, KeyCode::Enter, KeyModifiers::ALT);
    type_in(&mut editor, "three");
    control(&mut editor, 'j');
    type_in(&mut editor, "four");
    let lines = "one\ntwo\nthree\nfour";
    assert_eq!(enter(&mut editor), Asked::Line(lines.into()));
}

#[test]
fn a_large_paste_folds_and_comes_out_whole() {
    let mut editor = editor(KeyStyle::Emacs, &[]);
    let paste = "line\r\n".repeat(214);
    type_in(&mut editor, "see ");
    editor.event(Event::Paste(paste.clone()));
    editor.event(Event::Paste(paste));
    assert_eq!(editor.text(), "see [pasted 214 lines][pasted 214 lines #2]");
    let Asked::Line(line) = enter(&mut editor) else {
        panic!("a line");
    };
    assert_eq!(line, format!("see {}", "line\n".repeat(428)));
    editor.event(Event::Paste("two\nlines\u{1b}[2J".into()));
    assert_eq!(editor.text(), "two\nlines[2J");
}

#[test]
fn up_brings_lines_back_that_begin_alike_and_down_what_was_typed() {
    let mut editor = editor(KeyStyle::Emacs, &["make test", "ls", "make all"]);
    type_in(&mut editor, "make");
    press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(editor.text(), "make all");
    press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
    press(&mut editor, KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(editor.text(), "make test");
    press(&mut editor, KeyCode::Down, KeyModifiers::NONE);
    press(&mut editor, KeyCode::Down, KeyModifiers::NONE);
    assert_eq!(editor.text(), "make");
}

#[test]
fn a_search_goes_back_and_can_be_left() {
    let mut editor = editor(KeyStyle::Emacs, &["cargo test one", "ls", "cargo test two"]);
    type_in(&mut editor, "typed");
    control(&mut editor, 'r');
    type_in(&mut editor, "TEST");
    assert_eq!(editor.text(), "cargo test two");
    control(&mut editor, 'r');
    assert_eq!(editor.text(), "cargo test one");
    press(&mut editor, KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(editor.text(), "typed");
    control(&mut editor, 'r');
    type_in(&mut editor, "two");
    assert_eq!(enter(&mut editor), Asked::Nothing);
    assert_eq!(enter(&mut editor), Asked::Line("cargo test two".into()));
}

#[test]
fn vi_keys_have_their_modes() {
    let mut editor = editor(KeyStyle::Vi, &[]);
    type_in(&mut editor, "one two three");
    assert_eq!(editor.mode(), "insert");
    press(&mut editor, KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(editor.mode(), "normal");
    type_in(&mut editor, "bdw0x");
    assert_eq!(editor.text(), "ne two ");
}

#[test]
fn control_c_takes_the_text_first_and_control_d_only_leaves_an_empty_line() {
    let mut editor = editor(KeyStyle::Emacs, &[]);
    type_in(&mut editor, "x");
    control(&mut editor, 'd');
    assert_eq!(editor.text(), "x");
    assert_eq!(control(&mut editor, 'c'), Asked::Nothing);
    assert_eq!(control(&mut editor, 'c'), Asked::Interrupt);
    assert_eq!(control(&mut editor, 'd'), Asked::Detach);
}

fn found(start: usize, names: &[&str]) -> Completions {
    let candidate = |name: &&str| Candidate {
        text: (*name).to_string(),
        description: None,
    };
    Completions {
        start,
        candidates: names.iter().map(candidate).collect(),
        more: None,
    }
}

#[test]
fn a_menu_opens_by_itself_and_enter_sends_what_is_typed_unless_one_is_chosen() {
    let mut editor = editor(KeyStyle::Emacs, &[]);
    type_in(&mut editor, "/mo");
    let wish = editor.take_wish().unwrap();
    assert_eq!(wish.line, "/mo");
    editor.complete(&wish, found(0, &["/model", "/more"]));
    assert_eq!(enter(&mut editor), Asked::Line("/mo".into()));
    type_in(&mut editor, "/mo");
    let wish = editor.take_wish().unwrap();
    editor.complete(&wish, found(0, &["/model", "/more"]));
    press(&mut editor, KeyCode::Down, KeyModifiers::NONE);
    press(&mut editor, KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(enter(&mut editor), Asked::Nothing);
    assert_eq!(editor.text(), "/more ");
}

#[test]
fn a_lone_completion_is_taken_and_a_stale_one_is_not() {
    let mut editor = editor(KeyStyle::Emacs, &[]);
    type_in(&mut editor, "see REA");
    press(&mut editor, KeyCode::Tab, KeyModifiers::NONE);
    let wish = editor.take_wish().unwrap();
    type_in(&mut editor, "D");
    editor.complete(&wish, found(4, &["README.md"]));
    assert_eq!(editor.text(), "see READ");
    press(&mut editor, KeyCode::Tab, KeyModifiers::NONE);
    let wish = editor.take_wish().unwrap();
    editor.complete(&wish, found(4, &["README.md"]));
    assert_eq!(editor.text(), "see README.md ");
}

#[test]
fn the_shells_two_keys_open_the_editor_and_one_of_them_alone_does_nothing() {
    let mut editor = editor(KeyStyle::Emacs, &[]);
    type_in(&mut editor, "text");
    assert_eq!(control(&mut editor, 'x'), Asked::Nothing);
    assert_eq!(control(&mut editor, 'e'), Asked::Compose);
    assert_eq!(control(&mut editor, 'x'), Asked::Nothing);
    type_in(&mut editor, "!");
    assert_eq!(control(&mut editor, 'e'), Asked::Nothing);
    assert_eq!(editor.text(), "text!");
}

#[test]
fn a_change_is_taken_back_and_control_z_is_not_the_lines() {
    let mut editor = editor(KeyStyle::Emacs, &[]);
    type_in(&mut editor, "one two");
    control(&mut editor, 'w');
    assert_eq!(editor.text(), "one ");
    control(&mut editor, '7');
    assert_eq!(editor.text(), "one two");
    let asked = control(&mut editor, 'z');
    assert!(matches!(asked, Asked::Program(_)), "{asked:?}");
}

#[test]
fn vi_commands_with_counts_are_taken_back_and_repeated() {
    let typed = |keys: &str| {
        let mut editor = editor(KeyStyle::Vi, &[]);
        type_in(&mut editor, "one two three four");
        press(&mut editor, KeyCode::Esc, KeyModifiers::NONE);
        for c in keys.chars() {
            let shift = match c.is_uppercase() {
                true => KeyModifiers::SHIFT,
                false => KeyModifiers::NONE,
            };
            press(&mut editor, KeyCode::Char(c), shift);
        }
        editor.text().to_string()
    };
    for (keys, expected) in [
        ("dd", ""),
        ("0dw", "two three four"),
        ("0d2w", "three four"),
        ("02dw", "three four"),
        ("0cwzero", "zero two three four"),
        ("0wciwzero", "one zero three four"),
        ("0dwu", "one two three four"),
        ("0dw.", "three four"),
        ("03x", " two three four"),
        ("0x.", "e two three four"),
        ("0D", ""),
        ("0Czero", "zero"),
        ("0wD", "one "),
        ("0fts", "one wo three four"),
        ("0dtt", "two three four"),
        ("0ryA!", "yne two three four!"),
        ("0~", "One two three four"),
        ("ddP", "one two three four\n"),
        ("0dwP", "one two three four"),
        ("Iso ", "so one two three four"),
        ("0yw$p", "one two three fourone "),
        ("$F db", "one two  four"),
    ] {
        assert_eq!(typed(keys), expected, "{keys}");
    }
}

#[test]
fn a_paste_that_went_with_its_mark_comes_back_whole_at_once() {
    let long = "line\n".repeat(9);
    for around in ["", " and more"] {
        let mut editor = editor(KeyStyle::Emacs, &[]);
        editor.event(Event::Paste(long.clone()));
        type_in(&mut editor, around);
        let before = editor.text().to_owned();
        for _ in around.chars() {
            press(&mut editor, KeyCode::Left, KeyModifiers::NONE);
        }
        press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(editor.text(), around);
        control(&mut editor, '_');
        assert_eq!(editor.text(), before);
        assert_eq!(editor.whole(), format!("{long}{around}"));
    }
}

#[test]
fn a_search_says_where_nothing_more_holds_the_words() {
    let mut editor = editor(KeyStyle::Emacs, &["cargo test", "ls"]);
    let missed = |editor: &Editor| editor.search().unwrap().missed;
    control(&mut editor, 'r');
    type_in(&mut editor, "carg");
    assert!(!missed(&editor));
    assert_eq!(editor.text(), "cargo test");
    control(&mut editor, 'r');
    assert!(missed(&editor), "there is no older one");
    assert_eq!(editor.text(), "cargo test", "what was found stays");
    type_in(&mut editor, "x");
    assert!(missed(&editor));
    press(&mut editor, KeyCode::Backspace, KeyModifiers::NONE);
    assert!(!missed(&editor));
}
