//! A node with its pods, and plans to apply to them.

use ipnet::IpNet;
use plexus_core::attachment::Alias;
use plexus_core::plan::{
    Address, Bridge, HostEnd, Link, LinkKind, Neighbour, NodePlan, Parent, PodPlan, Route, Setting,
    Stacked, diff_host_ends, diff_pod,
};
use plexus_kernel::pod::{self, Applied};
use plexus_kernel::{Netns, NodeSide, observe};
use plexus_testkit::{NetNs, Node};
use plexus_types::{IfName, Mac, MacvlanMode, NetnsCookie};

pub(crate) struct Lab {
    pub(crate) node: Node,
    pub(crate) side: NodeSide,
    /// Index of the uplink `eth1`, which carries macvlans.
    pub(crate) uplink: u32,
}

/// A pod's namespace, by its name and as we hold it.
pub(crate) struct Pod {
    pub(crate) ns: NetNs,
    pub(crate) netns: Netns,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let node = Node::new();
        let side = NodeSide::new(Netns::open(node.ns().path()).unwrap());
        let uplink = side
            .with_socket(|s| observe::link_by_name(s, "eth1"))
            .unwrap()
            .unwrap()
            .index;
        Self { node, side, uplink }
    }

    pub(crate) fn pod(&self, name: &str) -> Pod {
        let ns = NetNs::create(&format!("{}-{name}", self.node.ns().name()));
        let netns = Netns::open(ns.path()).unwrap();
        Pod { ns, netns }
    }

    pub(crate) fn apply(&self, plan: &PodPlan, pod: &Pod) -> Applied {
        let applied = pod::apply(plan, &pod.netns, &self.side).unwrap_or_else(|error| {
            panic!(
                "{error}: {:?}",
                std::error::Error::source(&error).map(ToString::to_string)
            )
        });
        assert_eq!(applied.warnings, Vec::<String>::new());
        assert_eq!(diff_pod(plan, &applied.pod), []);
        assert_eq!(diff_host_ends(plan, &applied.node), []);
        applied
    }

    pub(crate) fn macvlan(&self, container: &str, name: &str, addresses: &[&str]) -> Link {
        let parent = Parent {
            name: ifname("eth1"),
            index: self.uplink,
        };
        let kind = LinkKind::Stacked(Stacked {
            parent,
            kind: "macvlan".to_owned(),
            options: [("mode".to_owned(), MacvlanMode::Bridge.number())].into(),
        });
        link(container, name, kind, addresses)
    }
}

/// A port of `bridge`.
pub(crate) fn port(container: &str, name: &str, bridge: &str, addresses: &[&str]) -> Link {
    let mut end = host_end(container, name);
    end.bridge = Some(ifname(bridge));
    link(container, name, LinkKind::Veth(end), addresses)
}

/// As the provider `routed` does it: /32 and /128, link-local gateways with known MACs.
pub(crate) fn routed(container: &str, name: &str, addresses: &[&str]) -> Link {
    let mut end = host_end(container, name);
    let mut made = link(container, name, LinkKind::Veth(end.clone()), addresses);
    let pod_mac = made.mac.unwrap();
    for address in made.addresses.iter().map(|a| a.net.addr()) {
        let gateway = if address.is_ipv4() {
            "169.254.1.1"
        } else {
            "fe80::1"
        };
        let gateway = gateway.parse().unwrap();
        let everything = if address.is_ipv4() {
            "0.0.0.0/0"
        } else {
            "::/0"
        };
        let mut default = Route::new(net(everything), Some(gateway));
        default.onlink = true;
        made.routes.push(default);
        made.neighbours.push(Neighbour {
            address: gateway,
            mac: end.mac,
        });
        end.routes.push(Route::new(IpNet::from(address), None));
        end.neighbours.push(Neighbour {
            address,
            mac: pod_mac,
        });
    }
    made.kind = LinkKind::Veth(end);
    made
}

pub(crate) fn host_end(container: &str, name: &str) -> HostEnd {
    HostEnd {
        name: IfName::host_end(container, "eth0", name),
        mac: Mac::derived(&[container, name, "node"]),
        mtu: None,
        alias: alias(container, name),
        router: None,
        bridge: None,
        hairpin: false,
        source_check: false,
        settings: vec![],
        routes: vec![],
        neighbours: vec![],
    }
}

pub(crate) fn link(container: &str, name: &str, kind: LinkKind, addresses: &[&str]) -> Link {
    let macvlan = kind.stacked().is_some();
    let setting = |family: &str, key: &str, value: &str| Setting {
        key: format!("net/{family}/conf/{name}/{key}"),
        value: value.into(),
    };
    let mut settings = vec![
        setting("ipv6", "accept_ra", "0"),
        setting("ipv4", "arp_notify", "1"),
    ];
    if macvlan {
        settings.push(setting("ipv6", "ndisc_notify", "1"));
    } else {
        settings.push(setting("ipv6", "accept_dad", "0"));
    }
    Link {
        name: ifname(name),
        kind,
        mac: Some(Mac::derived(&[container, name, "pod"])),
        mtu: None,
        alias: alias(container, name),
        settings,
        addresses: addresses.iter().map(|a| Address { net: net(a) }).collect(),
        neighbours: vec![],
        routes: vec![],
        rules: vec![],
    }
}

pub(crate) fn set_option(link: &mut Link, name: &str, value: u32) {
    let LinkKind::Stacked(stacked) = &mut link.kind else {
        panic!("{link:?} is not on a link of the node");
    };
    stacked.options.insert(name.to_owned(), value);
}

pub(crate) fn plan(group: u32, links: Vec<Link>) -> PodPlan {
    PodPlan {
        group: 0x8000_0000 | group,
        links,
        host_ports: vec![],
    }
}

pub(crate) fn bridge(name: &str, addresses: &[&str]) -> Bridge {
    let accept_ra = Setting {
        key: format!("net/ipv6/conf/{name}/accept_ra"),
        value: "0".to_owned(),
    };
    Bridge {
        name: ifname(name),
        mtu: None,
        promisc: false,
        addresses: addresses.iter().map(|a| net(a)).collect(),
        force_address: false,
        settings: vec![accept_ra],
    }
}

pub(crate) fn node_plan(bridges: Vec<Bridge>) -> NodePlan {
    NodePlan {
        bridges,
        settings: forwarding(),
        ..NodePlan::default()
    }
}

pub(crate) fn forwarding() -> Vec<Setting> {
    ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"]
        .map(|key| Setting {
            key: key.into(),
            value: "1".into(),
        })
        .to_vec()
}

/// The node in the marks of these tests.
pub(crate) const HERE: NetnsCookie = NetnsCookie(7);

pub(crate) fn alias(container: &str, name: &str) -> String {
    Alias {
        node: HERE,
        container: container.into(),
        cni_ifname: "eth0".into(),
        network: "blue".into(),
        ifname: name.into(),
        pool: "-".into(),
        moved: None,
        addresses: vec![],
    }
    .render()
}

pub(crate) fn ifname(text: &str) -> IfName {
    text.parse().unwrap()
}

pub(crate) fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}
