//! What an ADD answers for one attachment.

use super::Link;
use crate::attachment::{Assigned, DefaultRoute, Wanted};
use plexus_api::cni::Outcome;
use plexus_types::Mac;

/// What only the kernel knows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// MAC of the bridge.
    pub bridge_mac: Option<Mac>,
    /// MAC of the pod's interface, where the plan leaves it open (macvlan passthru).
    pub pod_mac: Option<Mac>,
}

/// The result of one attachment. `sandbox` is CNI_NETNS; `whole` adds the bridge (plugin mode),
/// standalone mode answers with the interface and its host end alone.
pub fn outcome(
    wanted: &Wanted,
    assigned: &Assigned,
    default_route: DefaultRoute,
    link: &Link,
    sandbox: &str,
    seen: Seen,
    whole: bool,
) -> Outcome {
    let _ = (wanted, assigned, default_route, link, sandbox, seen, whole);
    Outcome::default()
}
