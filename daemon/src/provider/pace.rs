//! A pause that a vendor asked of one session, kept by all sessions that talk to it.
//! Must never try anything again: that is the turn's business.

use super::{BoxFuture, ErrorClass, Provider, ProviderError, ProviderEvent, Request};
use protocol::provider::ModelInfo;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep_until};

/// The longest pause that is kept for the others.
const LONGEST: Duration = Duration::from_secs(60);

/// One provider's pause.
#[derive(Default)]
pub(super) struct Pace {
    /// Held for a look only, never across a wait.
    until: Mutex<Option<Until>>,
}

#[derive(Clone, Copy)]
struct Until {
    instant: Instant,
    /// In milliseconds since the Unix epoch.
    at: u64,
}

impl Pace {
    /// When the pause ends, in milliseconds since the Unix epoch; none when there is none.
    pub(super) fn until(&self) -> Option<u64> {
        let until = *self.lock();
        until
            .filter(|until| until.instant > Instant::now())
            .map(|until| until.at)
    }

    async fn wait(&self) {
        let until = *self.lock();
        if let Some(until) = until {
            sleep_until(until.instant).await;
        }
    }

    /// Notes the pause that an error asks for.
    fn note(&self, error: &ProviderError) {
        let ErrorClass::Status {
            retry_after_ms: Some(ms),
            ..
        } = error.class
        else {
            return;
        };
        let pause = Duration::from_millis(ms).min(LONGEST);
        let at = SystemTime::now() + pause;
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        *self.lock() = Some(Until {
            instant: Instant::now() + pause,
            at: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
        });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Until>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A provider that keeps the pauses of its name.
pub(super) struct Paced {
    pub(super) name: String,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) pace: Arc<Pace>,
}

impl Provider for Paced {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> Option<&str> {
        self.provider.model()
    }

    fn window(&self) -> Option<u64> {
        self.provider.window()
    }

    fn fetch<'a>(
        &'a self,
        request: Request<'a>,
        emit: &'a mut (dyn FnMut(ProviderEvent) + Send),
    ) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            self.pace.wait().await;
            let ended = self.provider.fetch(request, emit).await;
            ended.inspect_err(|error| self.pace.note(error))
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        self.provider.models()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses with a pause of so many milliseconds.
    struct Refusing(Option<u64>);

    impl Provider for Refusing {
        fn fetch<'a>(
            &'a self,
            _: Request<'a>,
            _: &'a mut (dyn FnMut(ProviderEvent) + Send),
        ) -> BoxFuture<'a, Result<(), ProviderError>> {
            let class = ErrorClass::Status {
                code: 429,
                retry_after_ms: self.0,
            };
            let message = String::new();
            Box::pin(std::future::ready(Err(ProviderError { class, message })))
        }
    }

    async fn elapsed_of_a_fetch(pace: &Arc<Pace>, pause: Option<u64>) -> Duration {
        let before = Instant::now();
        let paced = Paced {
            name: String::new(),
            provider: Arc::new(Refusing(pause)),
            pace: pace.clone(),
        };
        let request = Request {
            messages: &[],
            tools: &[],
        };
        assert!(paced.fetch(request, &mut |_| {}).await.is_err());
        before.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn pause_asked_of_one_is_kept_by_the_others_and_ends() {
        let pace = Arc::new(Pace::default());
        assert_eq!(elapsed_of_a_fetch(&pace, Some(2_000)).await, Duration::ZERO);
        assert!(pace.until().is_some());
        let second = elapsed_of_a_fetch(&pace, None).await;
        assert_eq!(second, Duration::from_secs(2));
        assert_eq!(pace.until(), None);
        assert_eq!(elapsed_of_a_fetch(&pace, None).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn no_pause_is_longer_than_a_minute() {
        let pace = Arc::new(Pace::default());
        elapsed_of_a_fetch(&pace, Some(u64::MAX)).await;
        let second = elapsed_of_a_fetch(&pace, None).await;
        assert_eq!(second, LONGEST);
    }
}
