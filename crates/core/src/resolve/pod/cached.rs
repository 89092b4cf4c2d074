//! What nodes keep of the objects that users write, and how much of it at most. Agents keep it, and commands say what
//! agents do: both count alike.

use super::ANNOTATIONS;
use serde_json::Value;

/// The longest configuration of a network that nodes keep, with all that belongs to it, in bytes: an object can have
/// a megabyte, and a node keeps those of all namespaces.
pub const MAX_KEPT_CONFIG: usize = 64 << 10;

/// The kubelet's name for a static pod, which CNI has as its UID.
pub const CONFIG_HASH: &str = "kubernetes.io/config.hash";

/// How annotations begin that mean something in a NAD.
const OF_NADS: [&str; 3] = [
    "opencontrail.org/",
    "k8s.v1.cni.cncf.io/",
    "cni.soracom.io/",
];

/// Why a configuration of `size` bytes is of no use, if it is too large.
pub fn too_large(size: usize) -> Option<String> {
    (size > MAX_KEPT_CONFIG)
        .then(|| format!("it has {size} bytes, and nodes keep at most {MAX_KEPT_CONFIG}"))
}

/// Whether an annotation of that name means something in a NAD.
pub fn matters_in_nad(annotation: &str) -> bool {
    OF_NADS.iter().any(|start| annotation.starts_with(start))
}

/// Whether nodes keep an annotation of that name, whatever has it.
pub fn is_kept(annotation: &str) -> bool {
    let of_pods = ANNOTATIONS.contains(&annotation) || annotation == CONFIG_HASH;
    of_pods || matters_in_nad(annotation)
}

/// What is kept of a NAD with these annotations, in bytes. `owners` are the NADs that own it, each by its API version,
/// name and UID.
pub fn nad_size<'t>(
    config: Option<&str>,
    annotations: impl IntoIterator<Item = (&'t String, &'t String)>,
    owners: impl IntoIterator<Item = [&'t str; 3]>,
) -> usize {
    let annotations = annotations.into_iter().filter(|(key, _)| is_kept(key));
    let annotations: usize = annotations.map(|(key, text)| key.len() + text.len()).sum();
    config.map_or(0, str::len) + annotations + owners_size(owners)
}

/// The same of a Network.
pub fn network_size<'t>(spec: &Value, owners: impl IntoIterator<Item = [&'t str; 3]>) -> usize {
    serde_json::to_string(spec).map_or(0, |text| text.len()) + owners_size(owners)
}

fn owners_size<'t>(owners: impl IntoIterator<Item = [&'t str; 3]>) -> usize {
    owners.into_iter().flatten().map(str::len).sum()
}
