//! Where things are on a machine, unless flags say otherwise.

/// A directory for each lab, with its kubeconfig.
pub(crate) const LABS: &str = "/run/plexus/lab";
/// Where network namespaces have names.
pub(crate) const NETNS: &str = "/run/netns";
/// The agent's socket.
pub(crate) const SOCKET: &str = "/run/plexus/agent.sock";
/// The agent's journal.
pub(crate) const STATE: &str = "/var/lib/plexus";
/// Where runtimes look for plugins.
pub(crate) const CNI_BIN: &str = "/opt/cni/bin";
/// Where runtimes look for configurations.
pub(crate) const CNI_CONF: &str = "/etc/cni/net.d";
/// host-local's addresses.
pub(crate) const POOLS: &str = "/var/lib/cni/networks";
