//! Peers of whom nobody knows yet who they are, or who have not said: there is room for some of them, and
//! the one who has been here longest makes room for the next. Who shows a certificate is one of them only
//! for a moment.

use super::rarely::Rarely;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The strangers that are connected.
pub(super) struct Crowd {
    room: usize,
    places: Arc<Semaphore>,
    here: Mutex<Here>,
    full: Rarely,
}

/// Who is in the crowd.
#[derive(Default)]
struct Here {
    /// How many ever came.
    came: u64,
    /// By the order in which they came; who is dropped has to leave.
    strangers: BTreeMap<u64, oneshot::Sender<()>>,
}

impl Crowd {
    /// With room for so many, at least one.
    pub(super) fn new(room: usize) -> Arc<Self> {
        let room = room.max(1);
        Arc::new(Self {
            room,
            places: Arc::new(Semaphore::new(room)),
            here: Mutex::default(),
            full: Rarely::default(),
        })
    }

    /// Lets somebody in; if there is no room, when the one who was here longest has gone. `None`: never.
    pub(super) async fn enter(self: &Arc<Self>) -> Option<Stranger> {
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => {
                self.send_one_away();
                Arc::clone(&self.places).acquire_owned().await.ok()?
            }
        };
        let (stay, leave) = oneshot::channel();
        let mut here = self.here();
        let number = here.came;
        here.came += 1;
        drop(here.strangers.insert(number, stay));
        drop(here);
        Some(Stranger {
            crowd: Arc::clone(self),
            number,
            leave,
            _place: place,
        })
    }

    fn send_one_away(&self) {
        let _ = self.here().strangers.pop_first();
        if let Some(unsaid) = self.full.now() {
            tracing::warn!(
                room = self.room,
                unsaid,
                "many connect without saying who they are: the oldest of them is cut off"
            );
        }
    }

    fn here(&self) -> MutexGuard<'_, Here> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the crowd, until it is dropped.
pub(super) struct Stranger {
    crowd: Arc<Crowd>,
    number: u64,
    leave: oneshot::Receiver<()>,
    _place: OwnedSemaphorePermit,
}

impl Stranger {
    /// Does something for as long as there is room; `None`: it had to leave.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            _ = &mut self.leave => None,
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        drop(self.crowd.here().strangers.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::Crowd;

    #[test]
    fn the_oldest_makes_room() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let crowd = Crowd::new(2);
            let mut first = crowd.enter().await.unwrap();
            let mut second = crowd.enter().await.unwrap();
            assert_eq!(first.during(async { 1 }).await, Some(1));
            let gone = async {
                assert_eq!(first.during(std::future::pending::<()>()).await, None);
                drop(first);
            };
            let (third, ()) = tokio::join!(crowd.enter(), gone);
            let mut third = third.unwrap();
            assert_eq!(second.during(async { 2 }).await, Some(2));
            drop(second);
            let _fourth = crowd.enter().await.unwrap();
            assert_eq!(third.during(async { 3 }).await, Some(3));
        });
    }
}
