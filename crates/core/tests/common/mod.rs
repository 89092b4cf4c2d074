//! The way from a configuration to plans and a result, as the agent goes it, without a kernel: the
//! node's links are given, every address is free.

use plexus_api::cni::{Args, Body, Error, Ipam, NetConf, Outcome};
use plexus_core::attachment::{Assigned, AssignedIp, Wanted};
use plexus_core::ipam::{PoolKey, Pools, assigned_static, host_local};
use plexus_core::plan::{
    Facts, LinkFacts, NodePlan, ParentQuery, Place, PodPlan, Seen, Underlay, build, facts_query,
    host_ports, node_plan, outcome, pod_plan,
};
use plexus_core::resolve::{Brings, Candidate, Resolved, choose_default, resolve};
use plexus_types::{ContainerId, IfName, NetnsCookie};
use std::convert::Infallible;

/// The node's links; the first has the default route.
pub(crate) struct Node(pub(crate) Vec<LinkFacts>);

/// What became of a configuration.
pub(crate) struct Made {
    pub(crate) pod: PodPlan,
    pub(crate) node: NodePlan,
    pub(crate) result: Outcome,
}

pub(crate) fn make(config: &[u8], node: &Node) -> Result<Made, Error> {
    make_conf(&NetConf::parse(config, &Args::default())?, node)
}

/// The same, for a configuration whose networks have been listed.
pub(crate) fn make_conf(conf: &NetConf, node: &Node) -> Result<Made, Error> {
    let container = ContainerId::new("5f10db93aabb").unwrap();
    let cni_ifname = IfName::new("eth0").unwrap();
    let place = Place {
        node: NetnsCookie(7),
        netns: NetnsCookie(8),
        container: &container,
        cni_ifname: &cni_ifname,
    };
    let mut pools = Pools::default();
    let mut natives = Vec::new();
    for resolved in resolve(conf, &cni_ifname)? {
        let Resolved::Native(wanted) = resolved else {
            panic!("a delegate has no plan")
        };
        let assigned = assign(&wanted, &mut pools)?;
        natives.push((wanted, assigned));
    }
    let candidates: Vec<Candidate<'_>> = natives
        .iter()
        .map(|(wanted, assigned)| Candidate {
            network: &wanted.network,
            ifname: &wanted.ifname,
            brings: Brings::Native(wanted, assigned),
        })
        .collect();
    let choice = match &conf.body {
        Body::All { default_gw, .. } => Some(default_gw),
        _ => None,
    };
    let defaults = choose_default(&candidates, choice)?;
    let mut links = Vec::new();
    let mut node_plans = NodePlan::default();
    let mut result = None;
    for ((wanted, assigned), default_route) in natives.iter().zip(defaults) {
        let link = build(
            wanted,
            assigned,
            default_route,
            &place,
            &facts(wanted, node),
        )?;
        let facts = facts(wanted, node);
        node_plans.merge(node_plan(&wanted.network, &wanted.native, assigned, &facts));
        let whole = choice.is_none();
        let (sandbox, seen) = ("/run/netns/x", Seen::default());
        result.get_or_insert_with(|| {
            outcome(wanted, assigned, default_route, &link, sandbox, seen, whole)
        });
        links.push(link);
    }
    let mut pod = pod_plan(&place, links);
    if let Some((_, first)) = natives.first() {
        pod.host_ports = host_ports(&conf.runtime.port_mappings, &first.ips);
    }
    Ok(Made {
        pod,
        node: node_plans,
        result: result.unwrap_or_default(),
    })
}

fn assign(wanted: &Wanted, pools: &mut Pools) -> Result<Assigned, Error> {
    match &wanted.native.ipam {
        None => Ok(Assigned::default()),
        Some(Ipam::Static(config)) => Ok(assigned_static(config)),
        Some(ipam @ Ipam::Plexus(config)) => {
            let key = PoolKey::of(ipam, &wanted.network).unwrap();
            Ok(pools.allocate(&key, config, &wanted.native.ips, wanted.ifname.as_str())?)
        }
        Some(ipam @ Ipam::Blocks(config)) => {
            let key = PoolKey::of(ipam, &wanted.network).unwrap();
            let owner = wanted.ifname.as_str();
            Ok(pools.allocate_blocks(&key, config, &wanted.native.ips, owner)?)
        }
        Some(Ipam::HostLocal(config)) => {
            let mut free = |_| Ok::<bool, Infallible>(true);
            let pick = |set: &Vec<_>| host_local::next(set, None, None, &mut free).unwrap();
            let ips = config.ranges.iter().map(pick);
            let ips = ips.map(|picked| AssignedIp {
                address: picked.address,
                gateway: Some(picked.gateway),
            });
            let routes = config.routes.clone();
            Ok(Assigned {
                ips: ips.collect(),
                routes,
                ..Assigned::default()
            })
        }
    }
}

fn facts(wanted: &Wanted, Node(links): &Node) -> Facts {
    let find = |name: &IfName| links.iter().find(|link| link.name == *name).cloned();
    let first = links.first();
    let query = facts_query(&wanted.native);
    // A routed pod takes over the node's MTU; here it is left to the kernel.
    let parent = query.parent.filter(|_| !wanted.native.provider.is_routed());
    Facts {
        parent: parent.and_then(|parent| match parent {
            ParentQuery::Named(name) => find(name),
            ParentQuery::DefaultRoute => first.cloned(),
        }),
        bridge: query.bridge.and_then(find),
        underlay: first.filter(|_| query.underlay).map(|first| Underlay {
            node: "n1".to_owned(),
            address: "192.0.2.1".parse().unwrap(),
            mtu: first.mtu,
        }),
    }
}
