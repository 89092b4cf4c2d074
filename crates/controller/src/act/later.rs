//! Objects that wait for a later version of Plexus. The controller reports each generation of such an object
//! with an Event, which it renews as long as the object waits.

use crate::api::Failure;
use crate::cache::Name;
use crate::engine::Engine;
use crate::events::EventSubject;

const REASON: &str = "Waiting";

impl Engine {
    /// Says of an object that it waits, and for what.
    pub(crate) async fn later(&mut self, kind: &'static str, name: &Name) -> Result<(), Failure> {
        let key = (kind, name.clone());
        let Some(waiting) = self.cache.later.waiting(&key).cloned() else {
            return Ok(());
        };
        let api_version = waiting.api_version();
        let about = EventSubject {
            api_version: &api_version,
            kind,
            name,
            id: &waiting.id,
        };
        let warned = self
            .events
            .warn_of_generation(&self.cluster, about, REASON, waiting.kind.text)
            .await;
        match warned {
            // Its namespace is gone or going, and it with that.
            Err(Failure::Request { source, .. }) if is_gone(&source) => {}
            warned => warned?,
        }
        Ok(())
    }
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 403 | 404))
}
