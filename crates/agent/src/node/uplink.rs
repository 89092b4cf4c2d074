//! The link by which the node reaches the world: routed pods take its MTU. Finding it means
//! reading all routes, of which every pod has some, so it is looked up once in a while.

use crate::sync::lock;
use plexus_core::plan::ObservedLink;
use plexus_kernel::{NetlinkError, Socket, observe};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long an answer is good for.
const CACHE_LIFETIME: Duration = Duration::from_secs(10);

/// The link of the default route, as last seen.
#[derive(Debug, Default)]
pub(crate) struct Uplink(Mutex<Option<(Instant, Option<ObservedLink>)>>);

impl Uplink {
    /// The link; none if the node has no default route.
    pub(crate) fn get(&self, socket: &mut Socket) -> Result<Option<ObservedLink>, NetlinkError> {
        let mut cached = lock(&self.0);
        if let Some((when, link)) = &*cached
            && when.elapsed() < CACHE_LIFETIME
        {
            return Ok(link.clone());
        }
        let link = observe::default_route_link(socket)?;
        *cached = Some((Instant::now(), link.clone()));
        Ok(link)
    }
}
