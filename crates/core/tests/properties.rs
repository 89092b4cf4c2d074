//! What holds for every plan: made twice it is the same, a kernel that has it all lacks nothing,
//! and a kernel that has anything less lacks something.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails panics"
)]

use ipnet::IpNet;
use plexus_api::cni::{
    Bridge, Dns, Ipam, Macvlan, MacvlanMode, Native, Overlay, Provider, RouteConf, Routed, Static,
};
use plexus_core::attachment::{Alias, Assigned, AssignedIp, DefaultRoute, NativeSpec};
use plexus_core::plan::{
    Facts, LinkFacts, LinkKind, LinkOwner, Observed, ObservedAddress, ObservedLink,
    ObservedNeighbour, ObservedRoute, ObservedRule, PodPlan, Underlay, build, diff_host_ends,
    diff_node, diff_pod, effective, node_plan, pod_plan, pod_text, provider_of,
};
use plexus_types::{ContainerId, Family, IfName, NetnsCookie, NetworkName};
use proptest::prelude::*;
use std::net::IpAddr;

fn provider() -> impl Strategy<Value = Provider> {
    let mode = proptest::sample::select(vec![
        MacvlanMode::Bridge,
        MacvlanMode::Vepa,
        MacvlanMode::Private,
        MacvlanMode::Passthru,
    ]);
    let macvlan = mode.prop_map(|mode| {
        Provider::Macvlan(Macvlan {
            master: None,
            mode,
            bcqueuelen: None,
        })
    });
    let bridge = any::<[bool; 6]>().prop_map(|[a, b, c, d, e, f]| {
        Provider::Bridge(Bridge {
            bridge: IfName::new("br0").unwrap(),
            is_gateway: a,
            is_default_gateway: b,
            force_address: c,
            ip_masq: d,
            hairpin_mode: e,
            promisc_mode: f,
        })
    });
    let routed = any::<[bool; 2]>().prop_map(|[ip_masq, source_check]| {
        Provider::Routed(Routed {
            ip_masq,
            not_masq: Vec::new(),
            source_check,
        })
    });
    let overlay = any::<[bool; 2]>().prop_map(|[snat, source_check]| {
        Provider::Overlay(Overlay {
            uid: "u-1".to_owned(),
            vni: 4097,
            subnets: vec![(
                "10.1.2.0/24".parse().unwrap(),
                "10.1.2.254".parse().unwrap(),
            )],
            snat,
            source_check,
        })
    });
    prop_oneof![macvlan, bridge, routed, overlay]
}

fn assigned(v4: bool, v6: bool) -> impl Strategy<Value = Assigned> {
    let ips = (1..250_u8, any::<[bool; 2]>()).prop_map(move |(host, [gateway4, gateway6])| {
        let ip = |text: String, gateway: Option<&str>| AssignedIp {
            address: text.parse().unwrap(),
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        };
        let four = v4.then(|| {
            ip(
                format!("10.1.2.{host}/24"),
                gateway4.then_some("10.1.2.254"),
            )
        });
        let six = v6.then(|| ip(format!("fd00::{host:x}/64"), gateway6.then_some("fd00::ff")));
        four.into_iter().chain(six).collect::<Vec<_>>()
    });
    let route = (0..6_usize, 0..3_u32, proptest::option::of(1..9_u32)).prop_map(
        |(which, table, priority)| RouteConf {
            dst: [
                "0.0.0.0/0",
                "::/0",
                "10.5.0.0/16",
                "10.6.7.8/24",
                "fd05::/64",
                "::/0",
            ][which]
                .parse()
                .unwrap(),
            gw: None,
            mtu: None,
            advmss: None,
            priority,
            table: [None, Some(254), Some(100)][table as usize],
            scope: None,
        },
    );
    (ips, proptest::collection::vec(route, 0..5)).prop_map(|(ips, routes)| Assigned {
        ips,
        routes,
        dns: Dns::default(),
    })
}

fn default_route() -> impl Strategy<Value = DefaultRoute> {
    prop_oneof![
        Just(DefaultRoute::AsConfigured),
        any::<[bool; 2]>().prop_map(|[v4, v6]| DefaultRoute::Only { v4, v6 }),
    ]
}

fn case() -> impl Strategy<Value = (NativeSpec, Assigned, DefaultRoute)> {
    (
        provider(),
        any::<[bool; 4]>(),
        proptest::option::of(1280..1500_u32),
    )
        .prop_flat_map(|(provider, [v4, v6, source_routing, several], mtu)| {
            let ipam = (v4 || v6).then(|| {
                Ipam::Static(Static {
                    addresses: vec![],
                    routes: vec![],
                    dns: Dns::default(),
                })
            });
            let dns = Dns::default();
            let native = Native {
                provider,
                ipam,
                mac: None,
                ips: vec![],
                mtu,
                dns,
            };
            let spec = NativeSpec {
                index: 0,
                network: NetworkName::new("blue").unwrap(),
                of_object: false,
                ifname: IfName::new("net1").unwrap(),
                native,
                source_routing,
                several,
            };
            (Just(spec), assigned(v4, v6), default_route())
        })
}

fn plan(spec: &NativeSpec, assigned: &Assigned, default_route: DefaultRoute) -> PodPlan {
    let container = ContainerId::new("c1").unwrap();
    let cni_ifname = IfName::new("eth0").unwrap();
    let owner = LinkOwner {
        node: NetnsCookie(7),
        netns: NetnsCookie(8),
        container: &container,
        cni_ifname: &cni_ifname,
    };
    let name = IfName::new("eth1").unwrap();
    let parent = LinkFacts {
        name,
        index: 3,
        mtu: 1500,
        kind: String::new(),
    };
    let facts = Facts {
        parent: Some(parent),
        bridge: None,
        underlay: Some(Underlay {
            node: "n1".to_owned(),
            address: "192.0.2.1".parse().unwrap(),
            mtu: 1550,
        }),
        device: None,
    };
    pod_plan(
        &owner,
        vec![build(spec, assigned, default_route, &owner, &facts).unwrap()],
    )
}

/// A kernel that has the plan, and something that is not in it.
fn pod_of(plan: &PodPlan) -> Observed {
    let mut observed = Observed::default();
    observed.links.push(link(1, "lo", ""));
    for (position, planned) in plan.links.iter().enumerate() {
        let index = u32::try_from(position).unwrap() + 2;
        let kind = if matches!(planned.kind, LinkKind::Veth(_)) {
            "veth"
        } else {
            "macvlan"
        };
        let mut seen = link(index, planned.name.as_str(), kind);
        seen.mac = planned.mac;
        seen.mtu = planned.mtu.unwrap_or(1500);
        let stacked = planned.kind.stacked().into_iter();
        let options = stacked.flat_map(|stacked| stacked.options());
        seen.options = options
            .map(|(option, value)| (option.attribute, value))
            .collect();
        observed.links.push(seen);
        for address in &planned.addresses {
            observed.addresses.push(ObservedAddress {
                link: index,
                net: address.net,
            });
        }
        routes(&planned.routes, index, &mut observed);
        neighbours(&planned.neighbours, index, &mut observed);
        for rule in &planned.rules {
            let (from, table, priority) = (rule.from, rule.table, rule.priority);
            observed.rules.push(ObservedRule {
                from,
                table,
                priority,
            });
        }
    }
    observed
}

fn node_of(plan: &PodPlan) -> Observed {
    let mut observed = Observed::default();
    observed.links.push(link(4, "br0", "bridge"));
    for planned in &plan.links {
        let LinkKind::Veth(end) = &planned.kind else {
            continue;
        };
        let mut seen = link(7, end.name.as_str(), "veth");
        seen.mac = Some(end.mac);
        seen.mtu = end.mtu.unwrap_or(1500);
        seen.master = end.bridge.as_ref().map(|_| 4);
        observed.links.push(seen);
        routes(&end.routes, 7, &mut observed);
        neighbours(&end.neighbours, 7, &mut observed);
    }
    observed
}

fn link(index: u32, name: &str, kind: &str) -> ObservedLink {
    ObservedLink {
        index,
        name: name.to_owned(),
        kind: kind.to_owned(),
        options: Vec::new(),
        mac: None,
        mtu: 1500,
        up: true,
        group: 0,
        alias: None,
        master: None,
        parent: None,
        parent_netns: None,
        promisc: false,
        altnames: Vec::new(),
        hardware: None,
    }
}

fn routes(planned: &[plexus_core::plan::Route], link: u32, observed: &mut Observed) {
    for route in planned {
        let v6 = Family::of(route.dst.addr()) == Family::V6;
        observed.routes.push(ObservedRoute {
            link: Some(link),
            dst: route.dst,
            via: route.via,
            src: None,
            table: route.table.unwrap_or(254),
            metric: route.metric.unwrap_or(if v6 { 1024 } else { 0 }),
            scope: route
                .scope
                .unwrap_or(if route.via.is_none() { 253 } else { 0 }),
            protocol: 80,
        });
    }
}

fn neighbours(planned: &[plexus_core::plan::Neighbour], link: u32, observed: &mut Observed) {
    for neighbour in planned {
        let (address, mac) = (neighbour.address, Some(neighbour.mac));
        observed
            .neighbours
            .push(ObservedNeighbour { link, address, mac });
    }
}

/// Everything that is one element less, or one link that is down.
fn lessened(full: &Observed, keep: &[&str]) -> Vec<Observed> {
    let mut all = Vec::new();
    for i in (0..full.links.len()).filter(|i| !keep.contains(&full.links[*i].name.as_str())) {
        let mut less = full.clone();
        less.links.remove(i);
        all.push(less);
        let mut less = full.clone();
        less.links[i].up = false;
        all.push(less);
    }
    for i in 0..full.addresses.len() {
        let mut less = full.clone();
        less.addresses.remove(i);
        all.push(less);
    }
    for i in 0..full.routes.len() {
        let mut less = full.clone();
        less.routes.remove(i);
        all.push(less);
    }
    for i in 0..full.rules.len() {
        let mut less = full.clone();
        less.rules.remove(i);
        all.push(less);
    }
    for i in 0..full.neighbours.len() {
        let mut less = full.clone();
        less.neighbours.remove(i);
        all.push(less);
    }
    all
}

proptest! {
    #[test]
    fn the_same_inputs_give_the_same_plan((spec, assigned, default_route) in case()) {
        let one = plan(&spec, &assigned, default_route);
        let two = plan(&spec, &assigned, default_route);
        prop_assert_eq!(pod_text(&one), pod_text(&two));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn a_kernel_that_has_it_all_lacks_nothing((spec, assigned, default_route) in case()) {
        let plan = plan(&spec, &assigned, default_route);
        let (pod, node) = (pod_of(&plan), node_of(&plan));
        prop_assert_eq!(diff_pod(&plan, &pod), vec![]);
        prop_assert_eq!(diff_host_ends(&plan, &node), vec![]);
        for less in lessened(&pod, &["lo"]) {
            prop_assert!(!diff_pod(&plan, &less).is_empty(), "{:?}", less);
        }
        let keep: &[&str] = match &spec.native.provider {
            Provider::Bridge(_) => &[],
            _ => &["br0"],
        };
        for less in lessened(&node, keep) {
            let bridge_is_down = less.links.iter().any(|link| link.name == "br0" && !link.up);
            // Whether the bridge is up is not for the host end to say.
            if !bridge_is_down {
                prop_assert!(!diff_host_ends(&plan, &less).is_empty(), "{:?}", less);
            }
        }
    }

    #[test]
    fn the_default_route_is_where_it_was_put((spec, assigned, default_route) in case()) {
        let plan = plan(&spec, &assigned, default_route);
        let link = &plan.links[0];
        for family in Family::ALL {
            let here = link.routes.iter().any(|route| {
                route.is_default()
                    && route.table.is_none()
                    && Family::of(route.dst.addr()) == family
            });
            if default_route.of(family) == Some(false) {
                prop_assert!(!here);
            }
            let routed = matches!(spec.native.provider, Provider::Routed(_));
            let gateway = assigned.ips.iter().any(|ip| {
                Family::of(ip.address.addr()) == family && (ip.gateway.is_some() || routed)
            });
            if default_route.of(family) == Some(true) && gateway {
                prop_assert!(here);
            }
        }
        let once = effective(&spec.native, &assigned, default_route);
        prop_assert_eq!(effective(&spec.native, &once, default_route), once);
    }

    #[test]
    fn a_link_says_which_provider_made_it((spec, assigned, default_route) in case()) {
        let plan = plan(&spec, &assigned, default_route);
        let name = spec.native.provider.name();
        prop_assert_eq!(provider_of(&plan.links[0].kind), Some(name));
    }

    #[test]
    fn the_mark_can_be_read_back((spec, assigned, default_route) in case()) {
        let plan = plan(&spec, &assigned, default_route);
        let alias = Alias::parse(&plan.links[0].alias).unwrap();
        prop_assert_eq!(alias.container, "c1");
        prop_assert_eq!(alias.cni_ifname, "eth0");
        prop_assert_eq!(alias.ifname, "net1");
        let addresses: Vec<IpNet> = assigned.ips.iter().map(|ip| ip.address).collect();
        prop_assert_eq!(alias.addresses, addresses);
    }

    #[test]
    fn a_bridge_without_its_address_is_noticed((spec, assigned, _) in case()) {
        let plan = node_plan(&spec, &assigned, &Facts::default());
        let mut observed = Observed::default();
        let mut bridge = link(4, "br0", "bridge");
        bridge.promisc = true;
        observed.links.push(bridge);
        for address in plan.bridges.iter().flat_map(|bridge| &bridge.addresses) {
            observed.addresses.push(ObservedAddress { link: 4, net: *address });
        }
        prop_assert_eq!(diff_node(&plan, &observed), vec![]);
        if observed.addresses.pop().is_some() {
            prop_assert_eq!(diff_node(&plan, &observed).len(), 1);
        }
    }
}

#[test]
fn differences_in_words() {
    let provider = Provider::Macvlan(Macvlan {
        master: None,
        mode: MacvlanMode::Bridge,
        bcqueuelen: None,
    });
    let native = Native {
        provider,
        ipam: None,
        mac: None,
        ips: vec![],
        mtu: Some(1400),
        dns: Dns::default(),
    };
    let spec = NativeSpec {
        index: 0,
        network: NetworkName::new("blue").unwrap(),
        of_object: false,
        ifname: IfName::new("net1").unwrap(),
        native,
        source_routing: true,
        several: false,
    };
    let gateway: IpAddr = "10.10.0.1".parse().unwrap();
    let ips = vec![AssignedIp {
        address: "10.10.0.9/24".parse().unwrap(),
        gateway: Some(gateway),
    }];
    let assigned = Assigned {
        ips,
        ..Assigned::default()
    };
    let plan = plan(
        &spec,
        &assigned,
        DefaultRoute::Only {
            v4: true,
            v6: false,
        },
    );
    let words = |observed: &Observed| -> Vec<String> {
        diff_pod(&plan, observed)
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(words(&Observed::default()), ["interface net1 is missing"]);
    let mut observed = pod_of(&plan);
    observed.links[1].mtu = 1500;
    observed.links[1].up = false;
    observed.links[1].options = vec![(1, 1)];
    observed.addresses[0].net = "10.10.0.9/16".parse().unwrap();
    observed.routes.clear();
    observed.rules.clear();
    assert_eq!(
        words(&observed),
        [
            "interface net1: mode is private instead of bridge",
            "interface net1: MTU is 1500 instead of 1400",
            "interface net1: link is down",
            "interface net1: address 10.10.0.9/24 is 10.10.0.9/16 instead",
            "interface net1: route default via 10.10.0.1 is missing",
            "interface net1: route 10.10.0.0/24 table 1595137214 is missing",
            "interface net1: route default via 10.10.0.1 table 1595137214 is missing",
            "interface net1: rule from 10.10.0.9/32 lookup 1595137214 priority 5080 is missing",
        ]
    );
}
