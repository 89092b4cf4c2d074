//! What `doctor` looks at: the list of its checks. Each has a test that produces its fault.

use plexus_kernel::Feature;
use std::fmt;

crate::listed! {
    /// What a check is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Subject {
        /// Whether this is root.
        Root,
        /// What root may do.
        Capabilities,
        /// Features of the kernel that are there, together.
        Kernel,
        /// Links of kind veth.
        Veth,
        /// Links of kind bridge.
        Bridge,
        /// Links of kind macvlan.
        Macvlan,
        /// Links of kind ipvlan.
        Ipvlan,
        /// Links of kind vlan.
        Vlan,
        /// Links of kind vxlan.
        Vxlan,
        /// Links of kind vrf.
        Vrf,
        /// Links of kind dummy.
        Dummy,
        /// nftables with masquerading.
        Masquerade,
        /// Cookies of network namespaces.
        NetnsCookie,
        /// Network namespaces that outlive a process.
        RouterNetns,
        /// Whether sysctls can be written.
        Sysctls,
        /// Whether pods' namespaces appear here.
        PodNamespaces,
        /// Whether routers outlive a container.
        RouterMounts,
        /// The state directory.
        StateDirectory,
        /// Room on its disk.
        StateRoom,
        /// The journal.
        Journal,
        /// The agent's socket.
        AgentSocket,
        /// Whether the agent is ready.
        AgentReady,
        /// What a ready agent warns of.
        AgentWarning,
        /// DELs that wait for the agent.
        AgentQueue,
        /// Our plugin in the runtime's directory.
        Plugin,
        /// The file beside it that names a socket.
        PluginSocket,
        /// The configuration that a CRI runtime uses.
        FirstConfiguration,
        /// Configurations and the plugins that they name.
        Configuration,
        /// The API server.
        ApiServer,
        /// Its definitions of our kinds.
        Definitions,
        /// The controller.
        Controller,
        /// This node's Node.
        Node,
        /// Whether leaks can be told at all.
        Leaks,
        /// Marked links without a record.
        LeakedLinks,
        /// Ports of the node that lead to nobody.
        LeakedPorts,
        /// host-local's files without a container.
        LeakedAddresses,
        /// Routers without a Network.
        LeakedRouters,
        /// Namespaces of labs that are no more.
        LeakedLabs,
    }
}

impl Subject {
    /// As it is shown: `kernel.vxlan`, `agent.socket`.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Root => "rights.root",
            Subject::Capabilities => "rights.capabilities",
            Subject::Kernel => "kernel",
            Subject::Veth => "kernel.veth",
            Subject::Bridge => "kernel.bridge",
            Subject::Macvlan => "kernel.macvlan",
            Subject::Ipvlan => "kernel.ipvlan",
            Subject::Vlan => "kernel.vlan",
            Subject::Vxlan => "kernel.vxlan",
            Subject::Vrf => "kernel.vrf",
            Subject::Dummy => "kernel.dummy",
            Subject::Masquerade => "kernel.masquerade",
            Subject::NetnsCookie => "kernel.netns-cookie",
            Subject::RouterNetns => "kernel.pinned-netns",
            Subject::Sysctls => "mounts.sysctl",
            Subject::PodNamespaces => "mounts.netns",
            Subject::RouterMounts => "mounts.routers",
            Subject::StateDirectory => "state.directory",
            Subject::StateRoom => "state.room",
            Subject::Journal => "state.journal",
            Subject::AgentSocket => "agent.socket",
            Subject::AgentReady => "agent.ready",
            Subject::AgentWarning => "agent.warning",
            Subject::AgentQueue => "agent.queue",
            Subject::Plugin => "cni.plugin",
            Subject::PluginSocket => "cni.socket",
            Subject::FirstConfiguration => "cni.first",
            Subject::Configuration => "cni.configuration",
            Subject::ApiServer => "api.server",
            Subject::Definitions => "api.definitions",
            Subject::Controller => "api.controller",
            Subject::Node => "api.node",
            Subject::Leaks => "leaks",
            Subject::LeakedLinks => "leaks.links",
            Subject::LeakedPorts => "leaks.ports",
            Subject::LeakedAddresses => "leaks.host-local",
            Subject::LeakedRouters => "leaks.routers",
            Subject::LeakedLabs => "leaks.labs",
        }
    }

    /// The check of a feature.
    pub(super) fn of(feature: Feature) -> Self {
        match feature {
            Feature::Veth => Subject::Veth,
            Feature::Bridge => Subject::Bridge,
            Feature::Macvlan => Subject::Macvlan,
            Feature::Ipvlan => Subject::Ipvlan,
            Feature::Vlan => Subject::Vlan,
            Feature::Vxlan => Subject::Vxlan,
            Feature::Vrf => Subject::Vrf,
            Feature::Dummy => Subject::Dummy,
            Feature::Masquerade => Subject::Masquerade,
            Feature::NetnsCookie => Subject::NetnsCookie,
            Feature::RouterNetns => Subject::RouterNetns,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
