//! Which networks a pod or a container refers to, by its annotations and by what the cluster knows. Never looks at a
//! kernel or a file: what is written and what is cached goes in, a list of networks with their origins comes out.

mod pod;

pub use pod::{
    ANNOTATIONS, CLUSTER_DEFAULT, CONFIG_HASH, Examined, HOME, Instead, MAX_KEPT_CONFIG,
    MultiNicError, MultiNicObject, NadObject, Named, NamespaceRules, NetworkObject, Networks,
    NodeNic, Objects, ParsedNad, PodFacts, PodNetworks, ReadOnce, Reference, ResolveError,
    ResolvedReference, Settings, block_network, by_fq_name, container_network, examine, is_first,
    is_kept, matters_in_nad, nad_network, nad_size, name_of, named_network, network_size,
    pod_cidr_network, pod_networks, runtime_name, too_large,
};
