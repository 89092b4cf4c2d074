//! What networks keep on the node.

use super::effective::effective;
use super::{Bridge, Facts, Masquerade, NodePlan, Router, RouterName, provider};
use crate::attachment::{Assigned, DefaultRoute, NativeSpec};
use crate::ipam;
use crate::resolve::CLUSTER_DEFAULT;
use crate::stable::hash64;
use ipnet::IpNet;
use plexus_types::NetworkName;

/// What one attachment of a network needs on the node.
///
/// With IPAM `plexus` or blocks it is what the network needs: gateways and masquerading of all its subnets,
/// whichever of them the attachment's addresses are from. So it is the same for every pod, and
/// nothing changes on the node when a subnet is full and the next one is begun.
pub fn node_plan(spec: &NativeSpec, assigned: &Assigned, facts: &Facts) -> NodePlan {
    let (native, of_object) = (&spec.native, spec.of_object);
    let network = &kept_as(&spec.network, of_object);
    let whole = native.block_ipam().is_some();
    let ipam = native.ipam.as_ref();
    let every = ipam.and_then(|ipam| ipam::of(ipam).every_subnet());
    let every = every.map(|ips| Assigned {
        ips,
        ..Assigned::default()
    });
    let assigned = every.as_ref().unwrap_or(assigned);
    let assigned = effective(native, assigned, DefaultRoute::AsConfigured);
    let plan = provider::of(&native.provider).node_plan(network, native, &assigned, facts);
    plan.map_or_else(NodePlan::default, |plan| NodePlan {
        whole,
        of_object,
        ..plan
    })
}

/// Whose it is that a network keeps on the node. A Network is called `<namespace>.<name>`, the cluster's own network may
/// be `cluster-default`, and anybody may call a configuration so: what such a one keeps is under another name, which
/// neither can have.
pub(crate) fn kept_as(network: &NetworkName, of_object: bool) -> NetworkName {
    if of_object || !is_like_object(network) {
        return network.clone();
    }
    let named = |what: &str| NetworkName::new(&format!("config..{what}"));
    let hashed = || named(&format!("{:016x}", hash64(&[network.as_str()])));
    let name = named(network.as_str()).or_else(|_| hashed());
    name.unwrap_or_else(|_| network.clone())
}

/// Whether an object of the API may have that name.
pub(crate) fn is_like_object(network: &NetworkName) -> bool {
    network.as_str().contains('.') || network.as_str() == CLUSTER_DEFAULT
}

impl NodePlan {
    /// Whose it is on the node. Plans that an earlier agent journaled say only by `whole` that an object is meant.
    pub fn kept_as(&self, network: &NetworkName) -> NetworkName {
        kept_as(network, self.is_of_object())
    }

    /// Whether it goes with an object of the API.
    pub fn is_of_object(&self) -> bool {
        self.of_object || self.whole
    }

    /// Adds what another attachment needs: each thing once, in order of appearance.
    pub fn merge(&mut self, other: NodePlan) {
        self.of_object |= other.of_object;
        add_new(&mut self.settings, other.settings);
        add_new(&mut self.masquerades, other.masquerades);
        add_new(&mut self.routers, other.routers);
        for bridge in other.bridges {
            match self
                .bridges
                .iter_mut()
                .find(|mine| mine.name == bridge.name)
            {
                Some(mine) => {
                    add_new(&mut mine.addresses, bridge.addresses);
                    add_new(&mut mine.settings, bridge.settings);
                    mine.promisc |= bridge.promisc;
                    mine.force_address |= bridge.force_address;
                    mine.mtu = mine.mtu.or(bridge.mtu);
                }
                None => self.bridges.push(bridge),
            }
        }
    }

    /// What is kept once `newer` is there too. Networks of two namespaces may have one name, so
    /// what one brings takes nothing from the other; of one thing the newer description counts.
    pub fn renewed_by(&self, newer: &NodePlan) -> NodePlan {
        if newer.whole {
            return newer.clone();
        }
        let mut plan = self.clone();
        let renewed = |mine: &Router, other: &Router| other.name == mine.name && other != mine;
        plan.routers
            .retain(|mine| !newer.routers.iter().any(|other| renewed(mine, other)));
        let renewed = |mine: &Masquerade, other: &Masquerade| {
            (&other.network, other.source) == (&mine.network, mine.source) && other != mine
        };
        plan.masquerades
            .retain(|mine| !newer.masquerades.iter().any(|other| renewed(mine, other)));
        let renewed = |mine: &Bridge, other: &Bridge| {
            other.name == mine.name && other.force_address && other != mine
        };
        plan.bridges
            .retain(|mine| !newer.bridges.iter().any(|other| renewed(mine, other)));
        plan.merge(newer.clone());
        plan
    }

    /// Whether it masquerades something that `newer` does not.
    pub fn masquerades_more_than(&self, newer: &NodePlan) -> bool {
        let is_in_newer = |mine: &&Masquerade| {
            let mut others = newer.masquerades.iter();
            others.any(|other| (&other.network, other.source) == (&mine.network, mine.source))
        };
        !self.masquerades.iter().all(|mine| is_in_newer(&mine))
    }

    /// What is kept once a router is gone: nothing, if it was all there was.
    pub fn without_router(&self, name: &RouterName) -> NodePlan {
        let mut plan = self.clone();
        plan.routers.retain(|router| router.name != *name);
        plan
    }
}

/// One per subnet of the addresses, if they are `spec`.
pub(super) fn masquerades(
    spec: bool,
    except: &[IpNet],
    network: &NetworkName,
    assigned: &Assigned,
) -> Vec<Masquerade> {
    let mut masquerades = Vec::new();
    for ip in assigned.ips.iter().filter(|_| spec) {
        let source = ip.address.trunc();
        add_new(
            &mut masquerades,
            vec![Masquerade {
                network: network.clone(),
                source,
                except: except.to_vec(),
            }],
        );
    }
    masquerades
}

/// Adds what is not there yet.
pub(super) fn add_new<T: PartialEq>(to: &mut Vec<T>, from: Vec<T>) {
    for item in from {
        if !to.contains(&item) {
            to.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Bridge, NodePlan};
    use super::{CLUSTER_DEFAULT, Masquerade};

    fn bridge(name: &str, addresses: &[&str], force_address: bool) -> NodePlan {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let bridge = Bridge {
            name: name.parse().unwrap(),
            mtu: None,
            promisc: false,
            addresses,
            force_address,
            settings: Vec::new(),
        };
        NodePlan {
            bridges: vec![bridge],
            ..NodePlan::default()
        }
    }

    #[test]
    fn two_networks_of_one_name_keep_both_their_bridges() {
        let (one, two) = (bridge("br1", &[], true), bridge("br2", &[], false));
        let plan = one.renewed_by(&two);
        let names: Vec<&str> = plan.bridges.iter().map(|b| b.name.as_str()).collect();
        assert_eq!(names, ["br1", "br2"]);
        assert_eq!(plan.renewed_by(&one), plan);
        assert_eq!(plan.renewed_by(&two), plan);
    }

    /// A configuration may have the name that a Network is given, or what it is kept under.
    #[test]
    fn a_configuration_is_never_taken_for_a_network() {
        let long = "x.".repeat(100);
        let objects = ["team-a.blue", CLUSTER_DEFAULT, &long].map(|name| (name, true));
        let taken = ["team-a.blue", CLUSTER_DEFAULT, &long];
        let kept = ["config..team-a.blue", "config..cluster-default"];
        let configs = [&taken[..], &kept, &["blue"]].concat();
        let configs = configs.into_iter().map(|name| (name, false));
        let all: Vec<_> = configs.chain(objects).collect();
        let kept: std::collections::BTreeSet<_> = all
            .iter()
            .map(|(name, of_object)| super::kept_as(&name.parse().unwrap(), *of_object))
            .collect();
        assert_eq!(kept.len(), all.len(), "{kept:?}");
    }

    #[test]
    fn a_forced_address_takes_the_place_of_the_one_before() {
        let before = bridge("br1", &["10.1.0.1/24"], false);
        let further = before.renewed_by(&bridge("br1", &["10.2.0.1/24"], false));
        assert_eq!(further.bridges[0].addresses.len(), 2);
        let forced = bridge("br1", &["10.3.0.1/24"], true);
        assert_eq!(further.renewed_by(&forced), forced);
    }

    #[test]
    fn what_a_whole_plan_does_not_name_is_over() {
        let masquerade = Masquerade {
            network: "blue".parse().unwrap(),
            source: "10.1.0.0/24".parse().unwrap(),
            except: Vec::new(),
        };
        let before = NodePlan {
            masquerades: vec![masquerade],
            whole: true,
            ..NodePlan::default()
        };
        let after = NodePlan {
            whole: true,
            ..NodePlan::default()
        };
        assert!(before.masquerades_more_than(&after) && !after.masquerades_more_than(&before));
        assert_eq!(before.renewed_by(&after), after);
    }

    #[test]
    fn of_one_masqueraded_subnet_the_newer_exceptions_count() {
        let except = |except: &str| NodePlan {
            masquerades: vec![Masquerade {
                network: "blue".parse().unwrap(),
                source: "10.1.0.0/24".parse().unwrap(),
                except: vec![except.parse().unwrap()],
            }],
            ..NodePlan::default()
        };
        let (older, newer) = (except("10.0.0.0/8"), except("172.16.0.0/12"));
        assert_eq!(older.renewed_by(&newer), newer);
    }
}
