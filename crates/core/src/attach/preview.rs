//! What a request would come to on a node that is only described: without a kernel, and without anyone being told.
//! Every address counts as free. Goes the way of the agent, with a description in the place of the node.

use super::{Attach, AttachError, AttachRequest, Sandbox, Step};
use crate::attachment::{Assigned, AssignedIp, NativeSpec};
use crate::ipam::{AllocateError, BlockSource, PoolKey, Pools, assigned_static, host_local};
use crate::plan::{
    Device, Facts, LinkFacts, NodePlan, ObservedMacs, ParentQuery, PodPlan, Underlay, facts_query,
};
use plexus_api::cni::{DeviceKey, DeviceQuery, Ipam, Native, Range};
use plexus_types::{ContainerId, IfName, Invalid, NetnsCookie};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::IpAddr;

/// A node of which only its uplink is known. A link that a network names is taken to be there.
#[derive(Debug, Clone)]
pub struct Uplink {
    /// The node's name and its address on the underlay.
    pub underlay: Underlay,
    /// The link of its default route.
    pub uplink: LinkFacts,
}

/// What a preview gives.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The request, with its attachments planned. What plugins would do stays unknown.
    pub attach: Attach,
    /// What the pod gets.
    pub pod: PodPlan,
    /// What its networks keep on the node.
    pub node: NodePlan,
}

/// The addresses that earlier previews on the same node have given out.
#[derive(Debug, Clone, Default)]
pub struct Issued {
    pools: Pools,
    host_local: BTreeSet<((String, bool), IpAddr)>,
}

/// The sandbox of a container whose namespace is nowhere.
pub fn sandbox(container: &str) -> Result<Sandbox, Invalid> {
    Ok(Sandbox {
        container: container.parse()?,
        ifname: "eth0".parse()?,
        path: String::new(),
        cookie: NetnsCookie(2),
        node: NetnsCookie(1),
    })
}

/// All that a request comes to on a node that has given out some addresses already; a container of the same name is
/// the same. `facts` says what a plan is told of the node.
pub fn preview(
    request: AttachRequest,
    facts: &dyn Fn(&NativeSpec) -> Facts,
    blocks: &dyn BlockSource,
    issued: &mut Issued,
) -> Result<Preview, AttachError> {
    let mut attach = Attach::new(request)?;
    let container = attach.request().sandbox.container.clone();
    let natives: Vec<(usize, NativeSpec)> = attach
        .natives()
        .map(|(index, native)| (index, native.spec.clone()))
        .collect();
    for (index, spec) in natives {
        attach.set_facts(index, facts(&spec));
        attach.set_addresses(index, assign(&spec, &container, blocks, issued)?, None);
    }
    while let Some(step) = attach.begin_step()? {
        match step {
            Step::Links(range) => attach.links_made(range, |_| ObservedMacs::default()),
            Step::Prepare { attachment, .. } | Step::Plugin { attachment, .. } => {
                attach.skip(attachment);
            }
        }
    }
    let mut node = NodePlan::default();
    for (_, native) in attach.natives() {
        node.merge(native.node.clone());
    }
    Ok(Preview {
        pod: attach.pod_plan(0..attach.attachments().len()),
        node,
        attach,
    })
}

fn assign(
    spec: &NativeSpec,
    container: &ContainerId,
    blocks: &dyn BlockSource,
    issued: &mut Issued,
) -> Result<Assigned, AllocateError> {
    let Native {
        ipam, ips: asked, ..
    } = &spec.native;
    let owner = &format!("{container}/{}", spec.ifname);
    let Issued { pools, host_local } = issued;
    let key = ipam
        .as_ref()
        .and_then(|ipam| PoolKey::of(ipam, &spec.network, spec.of_object));
    match (ipam, key) {
        (Some(Ipam::Static(config)), _) => Ok(assigned_static(config)),
        (Some(Ipam::Plexus(config)), Some(key)) => pools.allocate(&key, config, asked, owner),
        (Some(Ipam::Blocks(config)), Some(key)) => {
            let own = blocks.blocks(&config.uid);
            pools.allocate_blocks(&key, config, &own, asked, owner)
        }
        (Some(Ipam::HostLocal(config)), _) => {
            let network = (spec.network.to_string(), spec.of_object);
            let mut ips = Vec::new();
            for set in &config.ranges {
                let taken = |ip| host_local.contains(&(network.clone(), ip));
                let Some(picked) = from_ranges(set, asked, taken) else {
                    continue;
                };
                host_local.insert((network.clone(), picked.address.addr()));
                ips.push(picked);
            }
            Ok(Assigned {
                ips,
                routes: config.routes.clone(),
                ..Assigned::default()
            })
        }
        // Nobody knows what a plugin gives before it is executed.
        _ => Ok(Assigned::default()),
    }
}

/// The address that was asked for, if it is in one of the ranges; else the first.
fn from_ranges(
    set: &[Range],
    asked: &[(IpAddr, Option<u8>)],
    taken: impl Fn(IpAddr) -> bool,
) -> Option<AssignedIp> {
    let mut asked = asked.iter();
    let asked = asked.find_map(|(ip, _)| Some((host_local::range_of(set, *ip)?, *ip)));
    match asked {
        Some((range, ip)) => Some(host_local::assigned(range, ip)),
        None => {
            let mut free = |ip| Ok::<bool, Infallible>(!taken(ip));
            host_local::next(set, None, None, &mut free).ok()
        }
    }
}

impl Uplink {
    /// What a plan is told of the node.
    pub fn facts(&self, spec: &NativeSpec) -> Facts {
        let Self { underlay, uplink } = self;
        let query = facts_query(&spec.native);
        Facts {
            parent: query.parent.map(|parent| match parent {
                ParentQuery::Named(name) => LinkFacts {
                    name: name.clone(),
                    ..uplink.clone()
                },
                ParentQuery::DefaultRoute => uplink.clone(),
            }),
            bridge: None,
            underlay: query.underlay.then(|| underlay.clone()),
            device: query.device.and_then(|query| described(query, uplink)),
        }
    }
}

/// A device as the configuration names it; none if it does not.
fn described(query: &DeviceQuery, uplink: &LinkFacts) -> Option<Device> {
    let name = match query.key.as_ref()? {
        DeviceKey::Name(name) => name.clone(),
        _ => IfName::new("device").ok()?,
    };
    Some(Device {
        name,
        index: 0,
        altnames: Vec::new(),
        mac: None,
        mtu: uplink.mtu,
        up: true,
        promisc: false,
        alias: None,
        kind: String::new(),
        hardware: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::Backend;
    use crate::ipam::NodeBlocks;
    use crate::plan::{node_text, pod_text};
    use crate::resolve::pod_cidr_network;
    use plexus_api::cni::{Args, Body, NetConf};

    fn node() -> Uplink {
        Uplink {
            underlay: Underlay {
                node: "n1".to_owned(),
                address: "192.0.2.1".parse().unwrap(),
                mtu: 1500,
            },
            uplink: LinkFacts {
                name: "eth0".parse().unwrap(),
                index: 2,
                mtu: 1500,
                kind: String::new(),
            },
        }
    }

    fn previewed(
        conf: &NetConf,
        container: &str,
        issued: &mut Issued,
    ) -> Result<Preview, AttachError> {
        let request = AttachRequest::of(conf, &[], sandbox(container).unwrap());
        preview(
            request,
            &|spec| node().facts(spec),
            &NodeBlocks::default(),
            issued,
        )
    }

    fn alone(config: &str) -> Result<Preview, AttachError> {
        let conf = NetConf::parse(config.as_bytes(), &Args::default()).unwrap();
        previewed(&conf, "c1", &mut Issued::default())
    }

    #[test]
    fn natives_have_a_plan_and_delegates_are_named() {
        let made = alone(
            r#"{"cniVersion":"1.1.0","name":"x","type":"plexus-cni","networks":[
                {"name":"pods","provider":"bridge","bridge":"px0","isGateway":true,
                 "ipam":{"type":"plexus","subnets":["10.9.0.0/24"]}},
                {"name":"blue","provider":"macvlan","master":"eth7",
                 "ipam":{"type":"host-local","ranges":[[{"subnet":"10.10.0.0/24"}]]}},
                {"name":"other","plugins":[{"type":"calico"}]}]}"#,
        )
        .unwrap();
        let pod = pod_text(&made.pod);
        assert!(
            pod.contains("ip -n pod address add 10.9.0.2/24 dev eth0"),
            "{pod}"
        );
        assert!(
            pod.contains("ip link add net1 link eth7 netns pod"),
            "{pod}"
        );
        assert!(pod.contains("10.10.0.2/24 dev net1"), "{pod}");
        assert!(pod.contains("default via 10.9.0.1"), "{pod}");
        assert!(node_text(&made.node).contains("px0"));
        assert!(
            matches!(&made.attach.attachments()[2], one if one.ifname.as_str() == "net2"
                && matches!(one.backend, Backend::Plugins(_)))
        );
    }

    #[test]
    fn an_address_that_is_asked_for_is_taken() {
        let made = alone(
            r#"{"cniVersion":"1.1.0","name":"x","type":"plexus-cni","provider":"macvlan",
                "master":"eth1","ipam":{"type":"host-local","ranges":[[{"subnet":"10.10.0.0/24"}]]},
                "capabilities":{"ips":true},"runtimeConfig":{"ips":["10.10.0.77"]}}"#,
        )
        .unwrap();
        let pod = pod_text(&made.pod);
        assert!(pod.contains("10.10.0.77/24"), "{pod}");
    }

    #[test]
    fn the_next_pod_on_a_node_gets_the_next_address() {
        let config = r#"{"cniVersion":"1.1.0","name":"x","type":"plexus-cni","networks":[
            {"name":"pods","provider":"bridge","bridge":"px0","isGateway":true,
             "ipam":{"type":"plexus","subnets":["10.9.0.0/24"]}},
            {"name":"blue","provider":"macvlan","master":"eth7",
             "ipam":{"type":"host-local","ranges":[[{"subnet":"10.10.0.0/24"}]]}}]}"#;
        let conf = NetConf::parse(config.as_bytes(), &Args::default()).unwrap();
        let mut issued = Issued::default();
        let mut addresses = |container: &str| {
            let made = previewed(&conf, container, &mut issued).unwrap();
            let links = made.pod.links.iter();
            let each = links.flat_map(|link| &link.addresses);
            each.map(|one| one.net.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(addresses("c1"), ["10.9.0.2/24", "10.10.0.2/24"]);
        assert_eq!(addresses("c2"), ["10.9.0.3/24", "10.10.0.3/24"]);
    }

    #[test]
    fn what_cannot_be_made_says_why() {
        let full = r#"{"cniVersion":"1.1.0","name":"x","type":"plexus-cni","provider":"bridge",
            "ipam":{"type":"plexus","subnets":["10.9.0.0/24"]},
            "capabilities":{"ips":true},"runtimeConfig":{"ips":["10.8.0.1"]}}"#;
        let error = alone(full).unwrap_err().to_string();
        assert!(error.contains("10.8.0.1 is outside"), "{error}");
    }

    #[test]
    fn the_cluster_network_is_routed() {
        let cidrs = [
            "10.244.1.0/24".parse().unwrap(),
            "fd00:244:1::/64".parse().unwrap(),
        ];
        let (network, reference) = pod_cidr_network(&cidrs, &[]).unwrap();
        assert_eq!(reference.subnets.len(), 2);
        let conf = NetConf {
            body: Body::All {
                networks: vec![network],
                default_gw: Default::default(),
            },
            ..NetConf::parse(
                br#"{"cniVersion":"1.1.0","name":"x","type":"plexus-cni","networks":"pod"}"#,
                &Args::default(),
            )
            .unwrap()
        };
        let made = previewed(&conf, "c1", &mut Issued::default()).unwrap();
        let pod = pod_text(&made.pod);
        assert!(
            pod.contains("ip -n pod address add 10.244.1.2/32 dev eth0"),
            "{pod}"
        );
        assert!(pod.contains("fd00:244:1::2/128"), "{pod}");
    }
}
