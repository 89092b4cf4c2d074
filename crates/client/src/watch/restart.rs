//! What all watches of a process have in common: when one finds that the server went back, all list again; where a
//! process probes the server, and it was silent and answers again, all open anew: nobody hears of a connection that was
//! cut without a word before the watch is idle for too long.

use kube::Client;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Between two probes, and how long the answer may take.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes the watches of a process.
#[derive(Debug, Clone)]
pub struct Watches {
    restarts: watch::Sender<Restarts>,
}

/// How often all watches had to begin again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Restarts {
    /// With a list.
    pub(super) lists: u64,
    /// From the last version that was seen.
    pub(super) opens: u64,
}

impl Default for Watches {
    fn default() -> Self {
        Self {
            restarts: watch::Sender::new(Restarts::default()),
        }
    }
}

impl Watches {
    /// Asks the server every second whether it is there; when it is again, all watches are opened anew. Never ends.
    pub async fn probe(&self, client: Client) {
        let mut away = false;
        loop {
            sleep(PROBE_INTERVAL).await;
            let answer = timeout(PROBE_TIMEOUT, client.apiserver_version()).await;
            let answers = matches!(answer, Ok(Ok(_)));
            if answers && away {
                tracing::info!("the API server answers again: all watches are opened anew");
                self.restarts.send_modify(|restarts| restarts.opens += 1);
            }
            away = !answers;
        }
    }

    pub(super) fn list_again(&self) {
        self.restarts.send_modify(|restarts| restarts.lists += 1);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Restarts> {
        self.restarts.subscribe()
    }

    pub(super) fn now(&self) -> Restarts {
        *self.restarts.borrow()
    }
}
