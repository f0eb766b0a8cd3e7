//! How many messages of a server are taken in a while, so that one that floods leaves the daemon's one thread to others.
//! Must never lose a message.

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Messages that may come in one `WINDOW`; the next one waits for its end.
const MOST: u32 = 200;
const WINDOW: Duration = Duration::from_millis(100);

pub(super) struct Throttle<T> {
    inner: T,
    since: Instant,
    count: u32,
}

impl<T> Throttle<T> {
    pub(super) fn new(inner: T) -> Self {
        Self {
            inner,
            since: Instant::now(),
            count: 0,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Throttle<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    /// The wait comes before the message is taken: whoever polls may drop this at any time.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if self.count >= MOST {
            sleep_until(self.since + WINDOW).await;
        }
        let message = self.inner.receive().await;
        if self.since.elapsed() >= WINDOW {
            (self.since, self.count) = (Instant::now(), 0);
        }
        self.count += 1;
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
