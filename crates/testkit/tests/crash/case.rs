//! What is attached when the process dies.

use plexus_testkit::{Node, StandIn, config};
use serde_json::{Value, json};

/// A configuration to crash with.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    config: fn(&Node) -> Value,
}

impl Case {
    /// Plugin mode; addresses in files.
    pub(crate) const MACVLAN: Case = Case {
        name: "macvlan",
        config: config::macvlan,
    };
    /// Plugin mode; addresses in the journal, a bridge and nftables on the node.
    pub(crate) const BRIDGE: Case = Case {
        name: "bridge",
        config: |_| config::bridge(),
    };
    /// Standalone mode; every provider and every kind of IPAM.
    pub(crate) const FOUR: Case = Case {
        name: "four",
        config: config::four,
    };
    /// Standalone mode; nothing but a delegate.
    pub(crate) const DELEGATE: Case = Case {
        name: "delegate",
        config: |node| config::standalone("all", &[config::fake_entry(node)]),
    };
    /// Standalone mode; a delegate between native interfaces.
    pub(crate) const FOUR_WITH_DELEGATE: Case = Case {
        name: "four with delegate",
        config: config::four_with_delegate,
    };

    /// Plugin mode; a device of the node that is moved and given back, with addresses in files.
    #[allow(dead_code, reason = "another test has cases of its own")]
    pub(crate) const HOST_DEVICE: Case = Case {
        name: "host-device",
        config: |node| {
            node.take_nics();
            let device = json!({"provider": "host-device", "device": "nic1", "mtu": 1400});
            let mut config = config::macvlan(node);
            for key in ["master", "mode"] {
                config.as_object_mut().map(|config| config.remove(key));
            }
            for (key, value) in device.as_object().into_iter().flatten() {
                config[key] = value.clone();
            }
            config
        },
    };

    /// Standalone mode; a link that needs a call to somebody outside and a wait, between a native one and a delegate.
    pub(crate) const STAND_IN: Case = Case {
        name: "stand-in",
        config: |node| {
            let ipam = json!({"type": "plexus", "subnets": ["10.30.0.0/24"]});
            let entries = [
                config::macvlan_entry(node),
                StandIn::entry(node, "far", ipam),
                config::fake_entry(node),
            ];
            config::standalone("all", &entries)
        },
    };

    /// Standalone mode; a macvlan whose IPAM plugin is executed, between a native one and a delegate.
    pub(crate) const EXECUTED_IPAM: Case = Case {
        name: "executed IPAM",
        config: |node| {
            let entries = [
                config::macvlan_entry(node),
                config::executed_ipam_entry(node),
                config::fake_entry(node),
            ];
            config::standalone("all", &entries)
        },
    };

    /// A case of another test.
    #[allow(dead_code, reason = "this test has its cases above")]
    pub(crate) const fn new(name: &'static str, config: fn(&Node) -> Value) -> Self {
        Self { name, config }
    }

    /// Its configuration, with one address per pool.
    pub(crate) fn config(&self, node: &Node) -> Value {
        config::one_address(&(self.config)(node))
    }
}
