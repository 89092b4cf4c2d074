//! What a pod's annotations ask for. Owns every spelling that users have: the Network Plumbing
//! Working Group's `networks` (list and JSON), Contrail's fully qualified names, our own list, and
//! who has the default route.
//!
//! Never looks anything up: text and the pod's namespace go in, references or all [`Problems`] come
//! out. A value that is wrong fails the pod; the Working Group's text would ignore it.

mod contrail;
mod list;
mod name;
mod selection;
#[cfg(test)]
mod tests;

pub use contrail::contrail_networks;
pub(crate) use contrail::fq_name;
#[cfg(feature = "manifest")]
pub(crate) use name::namespace as check_namespace;
pub(crate) use name::object as check_object;
pub use selection::{Bandwidth, NetworkSelection};

use crate::Problems;
use crate::cni::DefaultGw;
use crate::problem::fault;
use serde_json::Value;

/// The Working Group's list of networks.
pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
/// Contrail's fully qualified names, on pods and on NADs.
pub const CONTRAIL_NETWORK: &str = "opencontrail.org/network";
/// Our own list of `Network` objects.
pub const PLEXUS_NETWORKS: &str = "plexus.dev/networks";
/// Which network or interface has the default route.
pub const DEFAULT_GW: &str = "opencontrail.org/default-gw";
/// Multus' replacement of the cluster-wide default network.
pub const DEFAULT_NETWORK: &str = "v1.multus-cni.io/default-network";
/// What is kept of the annotations that a runtime sends; the rest may be large.
pub const ANNOTATIONS: [&str; 5] = [
    NETWORKS,
    CONTRAIL_NETWORK,
    PLEXUS_NETWORKS,
    DEFAULT_GW,
    DEFAULT_NETWORK,
];

/// Annotations of pods that are written, not read: under either name.
const WRITTEN: [&str; 2] = [
    "k8s.v1.cni.cncf.io/network-status",
    "k8s.v1.cni.cncf.io/networks-status",
];

/// The annotation that was probably meant by one that nobody reads.
pub fn misspelt(key: &str) -> Option<&'static str> {
    if ANNOTATIONS.contains(&key) || WRITTEN.contains(&key) {
        return None;
    }
    crate::fields::nearest(key, &ANNOTATIONS)
}

/// More interfaces than anyone gives a pod.
pub const MAX_NETWORKS: usize = 64;
/// What the API server allows for all annotations together.
const MAX_TEXT: usize = 256 << 10;

/// `k8s.v1.cni.cncf.io/networks`: a JSON list of objects, or `[namespace/]name[@interface]` with
/// commas between. Whatever has `[`, `{` or `"` in it is JSON.
pub fn networks(text: &str, pod_namespace: &str) -> Result<Vec<NetworkSelection>, Problems> {
    list::read(NETWORKS, text, pod_namespace, false)
}

/// `plexus.dev/networks`: a JSON list of `[namespace/]name` or of objects as above, or the same
/// list with commas.
pub fn plexus_networks(text: &str, pod_namespace: &str) -> Result<Vec<NetworkSelection>, Problems> {
    list::read(PLEXUS_NETWORKS, text, pod_namespace, true)
}

/// `v1.multus-cni.io/default-network`: exactly one, written as in `networks`.
pub fn default_network(text: &str, namespace: &str) -> Result<NetworkSelection, Problems> {
    let found = list::read(DEFAULT_NETWORK, text, namespace, false)?;
    <[NetworkSelection; 1]>::try_from(found)
        .map(|[one]| one)
        .map_err(|found| {
            let text = format!("names {} networks: write exactly one", found.len());
            fault(DEFAULT_NETWORK, text)
        })
}

/// `opencontrail.org/default-gw`: a network's or an interface's name for both families, or
/// `{"4": …, "6": …}`.
pub fn default_gw(text: &str) -> Result<DefaultGw, Problems> {
    bounded(DEFAULT_GW, text)?;
    let text = text.trim();
    if text.is_empty() {
        let text = "is empty: write a network's or an interface's name, or remove it";
        return Err(fault(DEFAULT_GW, text));
    }
    let value = match text.starts_with(['{', '"']) {
        true => crate::document::read(text.as_bytes())
            .map_err(|cause| fault(DEFAULT_GW, format!("is not valid JSON: {cause}")))?,
        false => Value::String(text.to_owned()),
    };
    let map = serde_json::Map::from_iter([("default-gw".to_owned(), value)]);
    let mut fields = crate::Fields::new(&map, "");
    let default_gw = crate::cni::default_gw(&mut fields);
    let mut problems = fields.finish();
    for problem in &mut problems.0 {
        problem.path = problem.path.replacen("default-gw", DEFAULT_GW, 1);
    }
    problems.unless_any(default_gw)
}

fn bounded(annotation: &str, text: &str) -> Result<(), Problems> {
    match text.len() {
        0..=MAX_TEXT => Ok(()),
        size => {
            let text = format!("has {size} bytes: at most {MAX_TEXT} are read");
            Err(fault(annotation, text))
        }
    }
}
