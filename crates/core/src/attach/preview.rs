//! What a request would come to on a node that is only described: without a kernel, and without anyone being told.
//! Every address counts as free. Goes the way of the agent, with a description in the place of the node.

use super::{Attach, AttachError, AttachRequest, Sandbox, Step};
use crate::attachment::NativeSpec;
use crate::ipam::{self, AddressStore, BlockSource, NodeBlocks, Pools, Unreadable};
use crate::plan::{
    Device, Facts, LinkFacts, NodePlan, ObservedMacs, ParentQuery, PodPlan, Underlay, facts_query,
};
use plexus_api::cni::{DeviceKey, DeviceQuery};
use plexus_types::{IfName, Invalid, NetnsCookie};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::DerefMut;

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
        let owner = format!("{container}/{}", spec.ifname);
        let mut store = Described {
            spec: &spec,
            blocks,
            issued,
        };
        let assigned = ipam::choose(&spec, &owner, &mut store)?;
        attach.set_addresses(index, assigned, None);
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

/// The addresses that a node would have given out.
struct Described<'a> {
    spec: &'a NativeSpec,
    blocks: &'a dyn BlockSource,
    issued: &'a mut Issued,
}

impl Described<'_> {
    fn in_directory(&self, address: IpAddr) -> ((String, bool), IpAddr) {
        let network = (self.spec.network.to_string(), self.spec.of_object);
        (network, address)
    }
}

impl AddressStore for Described<'_> {
    fn pools(&mut self) -> Box<dyn DerefMut<Target = Pools> + '_> {
        Box::new(&mut self.issued.pools)
    }

    fn blocks(&self, network_uid: &str) -> NodeBlocks {
        self.blocks.blocks(network_uid)
    }

    fn last_reserved(&mut self, _set: usize) -> Option<IpAddr> {
        None
    }

    fn is_free(&self, address: IpAddr) -> Result<bool, Unreadable> {
        Ok(!self.issued.host_local.contains(&self.in_directory(address)))
    }

    fn reserve(&mut self, _set: usize, address: IpAddr) {
        let reserved = self.in_directory(address);
        self.issued.host_local.insert(reserved);
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
        let request = AttachRequest::of(conf, sandbox(container).unwrap());
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
    fn what_an_agent_would_refuse_of_host_local_is_refused() {
        let config = |ip: &str| {
            let text = r#"{"cniVersion":"1.1.0","name":"x","type":"plexus-cni","provider":"macvlan",
                "master":"eth1","ipam":{"type":"host-local","ranges":[[{"subnet":"10.10.0.0/30"}]]},
                "capabilities":{"ips":true},"runtimeConfig":{"ips":[IPS]}}"#;
            let text = text.replace("IPS", ip);
            NetConf::parse(text.as_bytes(), &Args::default()).unwrap()
        };
        let mut issued = Issued::default();
        let mut refused = |container: &str, ip: &str| {
            let made = previewed(&config(ip), container, &mut issued);
            made.map(drop).map_err(|error| plexus_types::chain(&error))
        };
        for (ip, why) in [
            (
                "\"10.11.0.2\"",
                "failed to allocate all requested IPs: 10.11.0.2",
            ),
            (
                "\"10.10.0.1\"",
                "requested ip 10.10.0.1 is subnet's gateway",
            ),
        ] {
            let error = refused("c1", ip).unwrap_err();
            assert_eq!(error, format!("host-local: {why}"));
        }
        refused("c1", "").unwrap();
        let error = refused("c2", "").unwrap_err();
        assert!(error.contains("no IP addresses available"), "{error}");
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
