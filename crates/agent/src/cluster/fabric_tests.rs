//! Which blocks may get routes, by what objects say.

use super::*;
use plexus_core::fabric::{ExistingRoutes, block_routes, own};
use serde_json::{Value, json};

/// Nodes `n1` and `n2`, and what users and controller write.
#[derive(Default)]
struct Cluster(State);

impl Cluster {
    fn new() -> Self {
        let mut state = State::default();
        for (name, address) in [("n1", "192.0.2.1"), ("n2", "192.0.2.2")] {
            let node = NodeFacts {
                uid: name.to_owned(),
                pod_cidrs: Vec::new(),
                addresses: vec![address.parse().unwrap()],
            };
            state.nodes.put(name, Arc::new(node));
        }
        Self(state)
    }

    /// A `routed` Network, and a Block of it on each node.
    fn network(&mut self, name: &str, cidr: &str, blocks: [&str; 2], status: &Value) {
        let wire = json!({"metadata": {"namespace": "a", "name": name, "uid": name}, "status": status,
            "spec": {"provider": "routed", "subnets": {"a": {"cidr": cidr}}}});
        let network = cached::network(&serde_json::from_value(wire).unwrap()).unwrap();
        self.0.networks.put(&key("a", name), Arc::new(network));
        for (cidr, node) in blocks.into_iter().zip(["n1", "n2"]) {
            let wire = json!({"metadata": {"name": format!("{name}-{node}"), "uid": node,
                    "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"network": {"namespace": "a", "name": name, "uid": name}, "cidr": cidr,
                    "node": node, "nodeUID": node}});
            let block = cached::block(&serde_json::from_value(wire).unwrap()).unwrap();
            let name = BlockSpec::name(name, &block.spec.cidr);
            self.0.blocks.put(&name, Arc::new(block));
        }
    }

    fn fabric(&self) -> Fabric {
        self.0.fabric(false, &AllowedSubnets::default())
    }

    /// Routes of `n1` to blocks of `n2`, and what it keeps for itself.
    fn routes(&self, existing: &ExistingRoutes) -> Vec<String> {
        let fabric = self.fabric();
        let (routes, _) = block_routes("n1", &fabric.nodes, &fabric.routed, existing);
        let routes = routes.iter().map(|route| route.dst.to_string());
        let own = own("n1", &fabric.routed, existing).into_iter();
        routes.chain(own.map(|own| own.to_string())).collect()
    }
}

const BLOCKS: [&str; 2] = ["10.1.0.0/26", "10.1.0.64/26"];

#[test]
fn a_new_route_needs_an_active_network_and_those_that_are_there_stay() {
    let mut existing = ExistingRoutes::default();
    for status in [
        json!({}),
        json!({"phase": "Initializing"}),
        json!({"phase": "Pending"}),
        json!({"phase": "Failed"}),
        json!({"phase": "Terminating"}),
        json!({"phase": "Later"}),
    ] {
        let mut cluster = Cluster::new();
        cluster.network("blue", "10.1.0.0/16", BLOCKS, &status);
        assert!(cluster.routes(&existing).is_empty(), "{status}");
    }
    let mut cluster = Cluster::new();
    cluster.network("blue", "10.1.0.0/16", BLOCKS, &json!({"phase": "Active"}));
    assert_eq!(cluster.routes(&existing), ["10.1.0.64/26", "10.1.0.0/26"]);

    // Its status is lost, by a restored API server for example; and it gets a block more.
    let fabric = cluster.fabric();
    let (routes, _) = block_routes("n1", &fabric.nodes, &fabric.routed, &existing);
    existing.to_blocks = routes.into_iter().collect();
    existing.own = own("n1", &fabric.routed, &existing).into_iter().collect();
    for status in [json!({}), json!({"phase": "Terminating"})] {
        let more = ["10.1.1.0/26", "10.1.1.64/26"];
        cluster.network("blue", "10.1.0.0/16", more, &status);
        assert_eq!(cluster.routes(&existing), ["10.1.0.64/26", "10.1.0.0/26"]);
    }
}

#[test]
fn blocks_are_as_old_as_the_api_server_says() {
    let mut cluster = Cluster::new();
    cluster.network("blue", "10.1.0.0/16", BLOCKS, &json!({"phase": "Active"}));
    let fabric = cluster.fabric();
    let second = ClaimAge::Made(1_767_225_600);
    assert!(fabric.routed.iter().all(|block| block.claimed == second));
}

/// Whoever writes a status can make it Active; its routes are made by nodes.
#[test]
fn an_active_network_outside_of_what_is_allowed_gets_no_route() {
    let blocks = ["8.8.8.0/26", "8.8.8.64/26"];
    let active = json!({"phase": "Active"});
    let mut cluster = Cluster::new();
    cluster.network("theirs", "8.8.8.0/24", blocks, &active);
    assert!(cluster.routes(&ExistingRoutes::default()).is_empty());
    // The administrator lets it: and it gets them.
    let allowed = AllowedSubnets::new(vec!["8.8.8.0/24".parse().unwrap()]);
    let fabric = cluster.0.fabric(false, &allowed);
    let none = ExistingRoutes::default();
    let (routes, _) = block_routes("n1", &fabric.nodes, &fabric.routed, &none);
    assert_eq!(routes.len(), 1, "{routes:?}");
}

/// The prefix of a block need not contain it: that of its network does.
#[test]
fn a_network_around_an_address_of_the_cluster_gets_no_route() {
    let active = json!({"phase": "Active"});
    let none = ExistingRoutes::default();
    let blue = || {
        let mut cluster = Cluster::new();
        cluster.network("blue", "10.1.0.0/16", BLOCKS, &active);
        cluster
    };
    assert_eq!(blue().routes(&none).len(), 2);
    let server: IpAddr = "10.1.200.7".parse().unwrap();

    let mut reached = blue();
    reached.0.api_server = vec![server];
    assert!(reached.routes(&none).is_empty());

    let mut listed = blue();
    listed
        .0
        .api_servers
        .put("default/kubernetes", Arc::new(vec![server]));
    assert!(listed.routes(&none).is_empty());
    let why = listed.0.taken_within(&"10.1.0.0/16".parse().unwrap());
    assert!(
        why.unwrap_or_default()
            .contains("10.1.200.7 of the API server")
    );

    let mut node = blue();
    let facts = NodeFacts {
        uid: "n3".to_owned(),
        pod_cidrs: Vec::new(),
        addresses: vec![server],
    };
    node.0.nodes.put("n3", Arc::new(facts));
    assert!(node.routes(&none).is_empty());
    // Routes that are there stay: taking them away would cut pods off that nothing is wrong with.
    let fabric = blue().fabric();
    let (routes, _) = block_routes("n1", &fabric.nodes, &fabric.routed, &none);
    let existing = ExistingRoutes {
        to_blocks: routes.into_iter().collect(),
        ..none
    };
    assert_eq!(reached.routes(&existing), ["10.1.0.64/26"]);
}
