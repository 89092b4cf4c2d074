//! Claiming, keeping and losing blocks.

use super::admin::BLOCKS;
use super::{BlockUse, TestNode, server, until};
use crate::cluster::{ClaimError, ClaimRequest, network_ref};
use ipnet::IpNet;
use plexus_api::cni::BlockSubnet;
use plexus_api::objects::BlockSpec;
use plexus_core::ipam::BlockSource;
use plexus_core::resolve::{NetworkObject, Objects};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn subnet(cidr: &str) -> BlockSubnet {
    let cidr: IpNet = cidr.parse().unwrap();
    BlockSubnet {
        cidr,
        gateway: cidr.hosts().last(),
        exclude: Vec::new(),
        block_length: Some(26),
    }
}

fn claim(
    node: &TestNode,
    network: &Arc<NetworkObject>,
    containing: Option<&str>,
    have: &[IpNet],
) -> Result<IpNet, ClaimError> {
    node.cluster.claim(&ClaimRequest {
        network: network_ref(network),
        subnet: subnet("10.7.0.0/25"),
        containing: containing.map(|address| address.parse().unwrap()),
        have: have.to_vec(),
        ask: false,
        until: Instant::now() + Duration::from_secs(60),
    })
}

#[test]
fn two_nodes_share_a_subnet_and_a_third_finds_nothing() {
    let admin = server();
    let team = admin.name("team");
    admin.namespace(&team);
    let uid = admin.network(
        &team,
        "blue",
        &json!({"subnets": {"a": {"cidr": "10.7.0.0/25"}}}),
    );
    let names = ["n1", "n2", "n3"].map(|name| admin.name(name));
    let nodes: Vec<TestNode> = names
        .iter()
        .map(|name| TestNode::start(&admin, name, "10.245.1.0/24", "192.0.2.1").synced())
        .collect();
    let network = nodes[0].cluster.network(&team, "blue").unwrap();

    // Eight at once get one block between them.
    let first = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| claim(&nodes[0], &network, None, &[]).unwrap()))
            .collect();
        let all: Vec<IpNet> = all.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(all.iter().all(|block| *block == all[0]), "{all:?}");
        all[0]
    });
    assert_eq!(nodes[0].cluster.blocks(&uid).own, [first]);
    let second = claim(&nodes[1], &network, None, &[]).unwrap();
    assert_ne!(first, second);
    let third = claim(&nodes[2], &network, None, &[]);
    assert!(
        matches!(third, Err(ClaimError::Exhausted { taken: 2, .. })),
        "{third:?}"
    );
    let inside = second.hosts().nth(5).unwrap().to_string();
    let elsewhere = claim(&nodes[0], &network, Some(&inside), &[first]);
    let Err(ClaimError::Elsewhere { owner, .. }) = elsewhere else {
        panic!("{elsewhere:?}");
    };
    assert_eq!(owner, names[1]);
    let block = admin.get(BLOCKS, &BlockSpec::name(&uid, &first)).unwrap();
    assert_eq!(
        block["metadata"]["labels"]["plexus.dev/node"],
        json!(names[0])
    );
    assert_eq!(
        block["metadata"]["labels"]["plexus.dev/network"],
        json!(uid)
    );
}

#[test]
fn a_block_in_use_comes_back_and_says_how_full_it_is() {
    let admin = server();
    let (n1, team) = (admin.name("n1"), admin.name("team"));
    admin.namespace(&team);
    let uid = admin.network(
        &team,
        "blue",
        &json!({"subnets": {"a": {"cidr": "10.7.0.0/25"}}}),
    );
    let node = TestNode::start(&admin, &n1, "10.245.1.0/24", "192.0.2.1").synced();
    let network = node.cluster.network(&team, "blue").unwrap();
    let cidr = claim(&node, &network, None, &[]).unwrap();
    let name = BlockSpec::name(&uid, &cidr);
    node.hooks.usage.lock().unwrap().push(BlockUse {
        network_uid: uid.clone(),
        cidr,
        allocated: 3,
    });
    admin.delete(BLOCKS, &name);
    until("the block again, with its usage", || {
        let block = admin.get(BLOCKS, &name);
        block.is_some_and(|block| block["status"]["allocated"] == json!(3))
    });
    assert_eq!(node.cluster.blocks(&uid).own, [cidr]);
    assert!(node.cluster.lost_blocks().is_empty());

    // Restored from a backup while this node was not looking, and claimed by another.
    let TestNode {
        cluster,
        hooks,
        directory,
    } = node;
    drop(cluster);
    std::thread::sleep(std::time::Duration::from_millis(300));
    admin.delete(BLOCKS, &name);
    let theirs = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block", "metadata": {"name": name},
        "spec": {"network": {"namespace": team, "name": "blue", "uid": uid}, "cidr": cidr,
            "node": "elsewhere", "nodeUID": "other"}});
    admin.create(BLOCKS, &theirs);
    let node = TestNode::again(&admin.kubeconfig, &n1, directory, hooks).synced();
    until("that it is lost", || {
        let lost = node.cluster.lost_blocks();
        lost.get(&name).is_some_and(|owner| owner == "elsewhere")
    });
    assert!(node.cluster.blocks(&uid).own.is_empty());
    until("an Event about it", || {
        let events = admin.list(&format!("/api/v1/namespaces/{team}/events"));
        events
            .iter()
            .any(|event| event["reason"] == json!("BlockLost"))
    });
}
