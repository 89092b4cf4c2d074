//! What is attached when the process dies.

use plexus_testkit::{Node, config};
use serde_json::Value;

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

    /// Its configuration, with one address per pool.
    pub(crate) fn config(&self, node: &Node) -> Value {
        config::one_address(&(self.config)(node))
    }
}
