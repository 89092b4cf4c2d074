//! Ports of the node that lead to a pod, and what keeps the pod from the node's loopback meanwhile.

use super::Lines;
use crate::plan::{HostPort, PodPlan};
use plexus_types::{Family, IfName};
use std::collections::BTreeSet;
use std::net::IpAddr;

impl Lines {
    /// Rules a port; the node has entries instead, in maps and sets that a few rules look into.
    pub(super) fn host_ports(&mut self, plan: &PodPlan) {
        if plan.host_ports.is_empty() {
            return;
        }
        self.table();
        self.chain("ports-guard", "filter", "prerouting priority raw");
        for which in ["saddr", "daddr"] {
            self.line(format_args!(
                "nft add rule inet plexus ports-guard iifname != lo ip {which} 127.0.0.0/8 drop"
            ));
        }
        self.chain("ports-in", "nat", "prerouting priority dstnat + 5");
        // nft has no name for this priority here.
        self.chain("ports-out", "nat", "output priority -95");
        self.chain("ports-back", "nat", "postrouting priority srcnat - 5");
        for port in &plan.host_ports {
            self.host_port(port);
        }
        let pods: BTreeSet<IpAddr> = plan.host_ports.iter().map(|port| port.to.ip()).collect();
        for pod in pods {
            self.way_back(pod);
        }
        let links = plan
            .host_ports
            .iter()
            .filter_map(|port| plan.loopback_link(port));
        let links: BTreeSet<&IfName> = links.collect();
        for link in links {
            self.line(format_args!(
                "sysctl -w net/ipv4/conf/{link}/route_localnet=1"
            ));
        }
    }

    fn host_port(&mut self, port: &HostPort) {
        let (ip, loopback) = match Family::of(port.to.ip()) {
            Family::V4 => ("ip", "127.0.0.0/8"),
            Family::V6 => ("ip6", "::1"),
        };
        let own = "fib daddr type local";
        let (everyone, by_loopback) = match port.host_ip {
            Some(at) if at.is_loopback() => (None, Some(at)),
            Some(at) => (Some(format!("{ip} daddr {at} {own}")), None),
            None => (
                Some(format!("{ip} daddr != {loopback} {own}")),
                Some(IpAddr::from([127, 0, 0, 1])),
            ),
        };
        // The kernel leads nobody from `::1` to elsewhere.
        let by_loopback = by_loopback.filter(|at| at.is_ipv4() && port.to.is_ipv4());
        let by_loopback = by_loopback.map(|at| format!("{ip} daddr {at}"));
        let (chain_in, chain_out) = ("ports-in", "ports-out");
        let both = everyone
            .iter()
            .flat_map(|at| [(chain_in, at), (chain_out, at)]);
        for (chain, at) in both.chain(by_loopback.iter().map(|at| (chain_out, at))) {
            self.line(format_args!(
                "nft add rule inet plexus {chain} {at} {} dport {} dnat {ip} to {}",
                port.protocol.as_str(),
                port.port,
                port.to
            ));
        }
    }

    /// For a pod that calls itself, and for the node's loopback.
    fn way_back(&mut self, pod: IpAddr) {
        let callers = match pod {
            IpAddr::V4(_) => vec![
                format!("ip saddr {pod} ip"),
                "ip saddr 127.0.0.0/8 ip".to_owned(),
            ],
            IpAddr::V6(_) => vec![format!("ip6 saddr {pod} ip6")],
        };
        for caller in callers {
            self.line(format_args!(
                "nft add rule inet plexus ports-back ct status dnat {caller} daddr {pod} masquerade"
            ));
        }
    }
}
