//! Who is told how a call gets on. Must never keep anybody after the call.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Takes a line.
pub(super) type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Calls under way by their tokens; a cheap handle. Held for a look only.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<HashMap<ProgressToken, Tell>>>);

/// While it lives, progress is told.
pub(super) struct Told {
    calls: Calls,
    token: ProgressToken,
}

impl Calls {
    pub(super) fn tell(&self, token: &ProgressToken, tell: Tell) -> Told {
        self.with(|calls| calls.insert(token.clone(), tell));
        Told {
            calls: self.clone(),
            token: token.clone(),
        }
    }

    pub(super) fn came(&self, progress: &ProgressNotificationParam) {
        let tell = self.with(|calls| calls.get(&progress.progress_token).cloned());
        if let Some(tell) = tell {
            tell(&line(progress));
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut HashMap<ProgressToken, Tell>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.calls.with(|calls| calls.remove(&self.token));
    }
}

fn line(progress: &ProgressNotificationParam) -> String {
    let amount = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{amount} {message}\n"),
        None => format!("{amount}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::Calls;
    use rmcp::model::{NumberOrString, ProgressNotificationParam, ProgressToken};
    use std::sync::{Arc, Mutex};

    #[test]
    fn progress_goes_to_its_call_and_to_nobody_behind_it() {
        let token = |number| ProgressToken(NumberOrString::Number(number));
        let (calls, heard) = (Calls::default(), Arc::new(Mutex::new(Vec::new())));
        let ears = Arc::clone(&heard);
        let told = calls.tell(
            &token(1),
            Arc::new(move |line| ears.lock().unwrap().push(line.to_owned())),
        );
        let mut progress = ProgressNotificationParam::new(token(1), 1.0);
        calls.came(&progress);
        calls.came(&ProgressNotificationParam::new(token(2), 2.0));
        progress.total = Some(4.0);
        progress.message = Some("half".to_owned());
        calls.came(&progress);
        drop(told);
        calls.came(&progress);
        assert_eq!(*heard.lock().unwrap(), ["1\n", "1/4 half\n"]);
    }
}
