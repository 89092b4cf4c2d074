//! Ports of the node that lead to a pod.

use super::Lines;
use crate::plan::{HostPort, Protocol};
use plexus_types::Family;

impl Lines {
    pub(super) fn host_port(&mut self, port: &HostPort) {
        let ip = match Family::of(port.to.ip()) {
            Family::V4 => "ip",
            Family::V6 => "ip6",
        };
        let at = match port.host_ip {
            Some(address) => format!("{ip} daddr {address}"),
            None => "fib daddr type local".to_owned(),
        };
        let protocol = match port.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        };
        self.line(format_args!(
            "nft add rule inet plexus hostports {at} {protocol} dport {} dnat {ip} to {}",
            port.port, port.to
        ));
    }
}
