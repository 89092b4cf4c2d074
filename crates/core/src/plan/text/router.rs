//! The router of an overlay network.

use super::Lines;
use crate::fabric::VXLAN_PORT;
use crate::plan::{PROTOCOL, Router};
use ipnet::IpNet;

impl Lines {
    pub(super) fn router(&mut self, router: &Router) {
        let name = &router.name;
        self.line(format_args!("ip netns add {name}"));
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            self.line(format_args!("ip netns exec {name} sysctl -w net/{key}=1"));
        }
        self.line(format_args!("ip -n {name} link set lo up"));
        for gateway in &router.gateways {
            self.line(format_args!(
                "ip -n {name} address add {} dev lo",
                IpNet::from(*gateway)
            ));
        }
        for subnet in &router.subnets {
            self.line(format_args!(
                "ip -n {name} route add unreachable {subnet} protocol {PROTOCOL}"
            ));
        }
        self.line(format_args!(
            "ip link add vxlan0 netns {name} address {} mtu {} type vxlan id {} local {} dstport {VXLAN_PORT} nolearning",
            router.mac, router.mtu, router.vni, router.local
        ));
        self.line(format_args!("ip -n {name} link set vxlan0 up"));
        if router.snat {
            self.line(format_args!(
                "# an uplink from {name} to the node: what leaves by it leaves under the node's address, and only answers come back in"
            ));
        }
    }
}
