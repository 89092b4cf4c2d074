//! The topologies of a routed and of an overlay network, made by hand with `ip` on the same nodes: the
//! least that does the same. Gone when dropped.

use crate::lab::without_haste;
use anyhow::{Context, Result};
use plexus_kubekit::{Cluster, Kube};

/// Where its namespaces are pinned.
const DIR: &str = "/run/bench-hand";
/// The second node.
pub(crate) const FAR: &str = "n2";
/// The node that sends.
pub(crate) const NEAR: &str = crate::lab::NODE;

/// What stands.
pub(crate) struct ManualSetup {
    kube: &'static Kube,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NetworkKind {
    Routed,
    Overlay,
}

impl NetworkKind {
    fn pod(self) -> String {
        match self {
            NetworkKind::Routed => format!("{DIR}/routed"),
            NetworkKind::Overlay => format!("{DIR}/overlay"),
        }
    }

    /// The far pod's address.
    pub(crate) fn far(self) -> &'static str {
        match self {
            NetworkKind::Routed => "10.180.2.2",
            NetworkKind::Overlay => "10.181.2.2",
        }
    }
}

impl ManualSetup {
    pub(crate) fn make(kube: &'static Kube) -> Result<Self> {
        // First, so that what a failure leaves is removed too.
        let hand = Self { kube };
        for (node, own, other) in [(NEAR, 1, 2), (FAR, 2, 1)] {
            without_haste(kube, node, &["sh", "-c", &script(own, other)])
                .with_context(|| format!("by hand on {node}"))?;
        }
        Ok(hand)
    }

    /// A command line in a pod made by hand.
    pub(crate) fn inside(way: NetworkKind, argv: &[&str]) -> Vec<String> {
        let net = format!("--net={}", way.pod());
        std::iter::once("nsenter".to_owned())
            .chain([net])
            .chain(argv.iter().map(|word| (*word).to_owned()))
            .collect()
    }
}

impl Drop for ManualSetup {
    fn drop(&mut self) {
        let script = format!(
            "ip link del hand0; ip route del 10.180.1.0/24; ip route del 10.180.2.0/24; for f in {DIR}/*; do umount $f; done; rm -rf {DIR}"
        );
        for node in [NEAR, FAR] {
            let _ = self
                .kube
                .on_node(node, &["sh", "-c", &format!("{script} 2>/dev/null; true")]);
        }
    }
}

/// As Plexus does it: pods have an address of their own and a gateway that answers for all; an overlay
/// has a router in a namespace of its own, to which the tunnel was moved.
fn script(own: u8, other: u8) -> String {
    let mac = |node: u8| format!("02:00:00:00:77:{node:02x}");
    let (own_mac, other_mac) = (mac(own), mac(other));
    format!(
        r#"set -e
mkdir -p {DIR}
for name in routed overlay router; do : > {DIR}/$name; unshare --net={DIR}/$name true; done
at() {{ name=$1; shift; nsenter --net={DIR}/$name "$@"; }}
at router sysctl -qw net.ipv4.ip_forward=1
ip link add hand0 mtu 1500 type veth peer name hand0p mtu 1500
ip link set hand0p netns {DIR}/routed name eth0
ip addr add 169.254.77.77/32 dev hand0
ip link set hand0 up
ip route add 10.180.{own}.2 dev hand0
ip route add 10.180.{other}.0/24 via 192.168.77.{other}
at routed ip addr add 10.180.{own}.2/32 dev eth0
at routed ip link set eth0 up
at routed ip route add 169.254.77.77 dev eth0
at routed ip route add default via 169.254.77.77
ip link add handvx address {own_mac} mtu 1450 type vxlan id 77 local 192.168.77.{own} dstport 4790 nolearning ttl auto
ip link set handvx netns {DIR}/router
ip link add hand1 mtu 1450 type veth peer name hand1p mtu 1450
ip link set hand1p netns {DIR}/overlay name eth0
ip link set hand1 netns {DIR}/router
at router ip link set handvx up
at router ip addr add 169.254.77.78/32 dev hand1
at router ip link set hand1 up
at router ip route add 10.181.{own}.2 dev hand1
at router ip route add 10.181.{other}.0/24 via 192.168.77.{other} dev handvx onlink
at router ip neigh add 192.168.77.{other} lladdr {other_mac} dev handvx nud permanent
at router bridge fdb add {other_mac} dev handvx dst 192.168.77.{other} self permanent
at overlay ip addr add 10.181.{own}.2/32 dev eth0
at overlay ip link set eth0 up
at overlay ip route add 169.254.77.78 dev eth0
at overlay ip route add default via 169.254.77.78
"#
    )
}
