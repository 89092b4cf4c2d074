//! Peers that have not authenticated, or not yet. The server accepts a bounded number of them and
//! disconnects the oldest to make room for the next. A peer with a certificate is one of them only
//! during its handshake.

use super::log_limit::LogLimit;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// All unauthenticated peers that are connected.
pub(super) struct UnauthenticatedPeers {
    room: usize,
    slots: Arc<Semaphore>,
    connected: Mutex<ConnectedPeers>,
    full: LogLimit,
}

/// The peers that are connected now.
#[derive(Default)]
struct ConnectedPeers {
    /// How many peers have ever connected.
    arrivals: u64,
    /// Senders in the order in which the peers connected. Dropping a sender disconnects its peer.
    unauthenticated: BTreeMap<u64, oneshot::Sender<()>>,
}

impl UnauthenticatedPeers {
    /// With room for so many, at least one.
    pub(super) fn new(room: usize) -> Arc<Self> {
        let room = room.max(1);
        Arc::new(Self {
            room,
            slots: Arc::new(Semaphore::new(room)),
            connected: Mutex::default(),
            full: LogLimit::default(),
        })
    }

    /// Accepts a peer. If there is no free slot, it waits until the oldest peer is gone. `None`: never.
    pub(super) async fn admit(self: &Arc<Self>) -> Option<UnauthenticatedPeer> {
        let slot = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(slot) => slot,
            Err(_) => {
                self.disconnect_oldest();
                Arc::clone(&self.slots).acquire_owned().await.ok()?
            }
        };
        let (stay, leave) = oneshot::channel();
        let mut connected = self.connected();
        let number = connected.arrivals;
        connected.arrivals += 1;
        drop(connected.unauthenticated.insert(number, stay));
        drop(connected);
        Some(UnauthenticatedPeer {
            unauthenticated: Arc::clone(self),
            number,
            leave,
            _slot: slot,
        })
    }

    fn disconnect_oldest(&self) {
        let _ = self.connected().unauthenticated.pop_first();
        if let Some(unsaid) = self.full.now() {
            tracing::warn!(
                room = self.room,
                unsaid,
                "many connect without saying who they are: the oldest of them is cut off"
            );
        }
    }

    fn connected(&self) -> MutexGuard<'_, ConnectedPeers> {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// One unauthenticated peer; dropping it frees its slot.
pub(super) struct UnauthenticatedPeer {
    unauthenticated: Arc<UnauthenticatedPeers>,
    number: u64,
    leave: oneshot::Receiver<()>,
    _slot: OwnedSemaphorePermit,
}

impl UnauthenticatedPeer {
    /// Does something for as long as there is room; `None`: it had to leave.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            _ = &mut self.leave => None,
        }
    }
}

impl Drop for UnauthenticatedPeer {
    fn drop(&mut self) {
        drop(
            self.unauthenticated
                .connected()
                .unauthenticated
                .remove(&self.number),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::UnauthenticatedPeers;

    #[test]
    fn the_oldest_makes_room() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let unauthenticated = UnauthenticatedPeers::new(2);
            let mut first = unauthenticated.admit().await.unwrap();
            let mut second = unauthenticated.admit().await.unwrap();
            assert_eq!(first.during(async { 1 }).await, Some(1));
            let gone = async {
                assert_eq!(first.during(std::future::pending::<()>()).await, None);
                drop(first);
            };
            let (third, ()) = tokio::join!(unauthenticated.admit(), gone);
            let mut third = third.unwrap();
            assert_eq!(second.during(async { 2 }).await, Some(2));
            drop(second);
            let _fourth = unauthenticated.admit().await.unwrap();
            assert_eq!(third.during(async { 3 }).await, Some(3));
        });
    }
}
