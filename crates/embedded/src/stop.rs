//! The signal that the server stops, for tasks that wait for something else.

use tokio::sync::watch;

/// Tells every task that the server is to end.
pub(crate) struct Stopper(watch::Sender<bool>);

impl Stopper {
    pub(crate) fn new() -> (Self, Stop) {
        let (say, hear) = watch::channel(false);
        (Self(say), Stop(hear))
    }

    pub(crate) fn stop(&self) {
        let _ = self.0.send_replace(true);
    }
}

/// Held by a task that is to end with the server.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Waits until the server is to end.
    pub(crate) async fn requested(&self) {
        let mut hear = self.0.clone();
        // Whoever could say it is gone: that says it too.
        drop(hear.wait_for(|stop| *stop).await);
    }
}
