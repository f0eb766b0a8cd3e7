//! What must not be shown of a child's words: keys that it was given, or that lie about. Must never show one itself.

use secrecy::zeroize::Zeroize;
use secrecy::{ExposeSecret, SecretString};
use std::sync::{Arc, PoisonError, RwLock};

/// What stands where a key stood.
const STARS: &str = "***";
/// A shorter value would make stars of half of what is said, and is no key.
const SHORTEST: usize = 4;

/// Values that are hidden; a cheap handle.
#[derive(Clone, Debug, Default)]
pub struct Mask(Arc<Vec<SecretString>>);

/// Keys that became known while the daemon runs, which every mask of the process hides. Held for a look only.
static LEARNED: RwLock<Vec<SecretString>> = RwLock::new(Vec::new());

/// Hides this value too from now on, in whatever any mask is put over.
pub fn learn(value: &str) {
    let value = value.trim();
    if value.len() < SHORTEST {
        return;
    }
    let mut learned = LEARNED.write().unwrap_or_else(PoisonError::into_inner);
    if !learned.iter().any(|known| known.expose_secret() == value) {
        learned.push(SecretString::from(value));
        learned.sort_by_key(|value| std::cmp::Reverse(value.expose_secret().len()));
    }
}

impl Mask {
    /// Each line of a value is hidden by itself, since words come line by line.
    pub fn of(values: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<SecretString> = Vec::new();
        for mut value in values {
            let lines = value.lines().map(str::trim);
            let long = lines.filter(|line| line.len() >= SHORTEST);
            all.extend(long.map(SecretString::from));
            value.zeroize();
        }
        // One that begins with another goes first, or its end would stay.
        all.sort_by_key(|value| std::cmp::Reverse(value.expose_secret().len()));
        Self(Arc::new(all))
    }

    /// The same with more.
    #[must_use]
    pub fn and(&self, values: impl IntoIterator<Item = String>) -> Self {
        let known = self.0.iter().map(|value| value.expose_secret().to_owned());
        Self::of(known.chain(values))
    }

    /// The text with stars for what is hidden.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let learned = LEARNED.read().unwrap_or_else(PoisonError::into_inner);
        for value in self.0.iter().chain(learned.iter()) {
            if text.contains(value.expose_secret()) {
                text = text.replace(value.expose_secret(), STARS);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Mask, learn};

    #[test]
    fn keys_become_stars_the_longest_first_and_short_values_stay() {
        let values = ["key-1", "key-1-and-more", "", "ab", " spaced-key \n"];
        let mask = Mask::of(values.map(str::to_owned));
        let shown = mask.hide("ab: key-1-and-more, key-1 and spaced-key");
        assert_eq!(shown, "ab: ***, *** and ***");
        assert!(!format!("{mask:?}").contains("key-1"));
    }

    #[test]
    fn key_that_is_learned_later_is_hidden_by_masks_that_are_there_already() {
        let mask = Mask::of([]);
        assert_eq!(
            mask.hide("it says k3y-by-command"),
            "it says k3y-by-command"
        );
        learn(" k3y-by-command\n");
        learn("k3y");
        assert_eq!(mask.hide("it says k3y-by-command, k3y"), "it says ***, k3y");
    }
}
