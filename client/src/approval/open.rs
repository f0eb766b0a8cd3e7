//! The questions that wait, and which of them is answered next. Must never answer one.

use super::Question;
use protocol::event::Event;

/// The questions that wait, oldest first, and which of them is answered next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open {
    questions: Vec<Question>,
    at: usize,
}

impl Open {
    /// The one that is answered next.
    pub(crate) fn first(&self) -> Option<&Question> {
        self.questions.get(self.at)
    }

    /// Takes the one that is answered next.
    pub(crate) fn take_first(&mut self) -> Option<Question> {
        let taken = (self.at < self.questions.len()).then(|| self.questions.remove(self.at));
        self.go_round();
        taken
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.questions.len()
    }

    /// Which of them the one is that is answered next, from 1 on.
    pub(crate) fn number(&self) -> usize {
        self.at + 1
    }

    /// Goes on to the next, and from the last to the oldest.
    pub(crate) fn rotate(&mut self) {
        self.at += 1;
        self.go_round();
    }

    fn go_round(&mut self) {
        if self.at >= self.questions.len() {
            self.at = 0;
        }
    }

    /// One back that was taken, as the one that is answered next.
    pub(crate) fn put_back(&mut self, question: Question) {
        self.questions.insert(self.at, question);
    }

    /// One more.
    pub(crate) fn push(&mut self, question: Question) {
        self.questions.push(question);
    }

    /// Forgets those that an event settles.
    pub(crate) fn settle(&mut self, event: &Event) {
        let settled = |question: &&Question| question.is_settled_by(event);
        self.at -= self.questions[..self.at].iter().filter(settled).count();
        self.questions
            .retain(|question| !question.is_settled_by(event));
        self.go_round();
    }
}

impl FromIterator<Question> for Open {
    fn from_iter<I: IntoIterator<Item = Question>>(questions: I) -> Self {
        Self {
            questions: questions.into_iter().collect(),
            at: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_goes_with_its_answer_or_with_its_call() {
        use crate::testing::event;
        let asked = |n: u64| {
            let kind = json!({"type": "approval_asked", "approval": format!("s.a{n}"), "call": format!("c{n}"),
                              "tool": "x", "arguments": {}, "why": ""});
            Question::of(&event(n, kind)).unwrap()
        };
        let mut open: Open = [asked(1), asked(2)].into_iter().collect();
        let done = json!({"type": "done", "call": "c1", "result": {"ok": false}, "ms": 0});
        open.settle(&event(3, done));
        assert_eq!(open.first(), Some(&asked(2)));
        let withdrawn = json!({"type": "approval_withdrawn", "approval": "s.a2", "why": "x"});
        open.settle(&event(4, withdrawn));
        assert_eq!(open.first(), None);
        let mut open: Open = (1..=4).map(asked).collect();
        open.rotate();
        open.rotate();
        let done = json!({"type": "done", "call": "c1", "result": {"ok": true}, "ms": 0});
        open.settle(&event(5, done));
        assert_eq!((open.first(), open.number()), (Some(&asked(3)), 2));
        open.rotate();
        assert_eq!(open.take_first(), Some(asked(4)));
        assert_eq!((open.first(), open.number()), (Some(&asked(2)), 1));
    }
}
