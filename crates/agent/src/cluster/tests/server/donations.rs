//! Parts of blocks that nodes give each other, and what becomes of them when either side dies.

use super::admin::{Admin, BLOCKS};
use super::{TestNode, server, until};
use crate::cluster::{ClaimError, ClaimRequest, network_ref};
use ipnet::IpNet;
use plexus_api::cni::{BlockIpam, BlockSubnet, Ipam};
use plexus_api::objects::{BlockRequestSpec, BlockSpec};
use plexus_core::ipam::{BlockSource, Donation, PoolKey};
use plexus_core::resolve::Objects;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const REQUESTS: &str = "/apis/plexus.dev/v1alpha1/blockrequests";

/// A network of two blocks, and nodes of which the first two have one each.
struct Stage {
    admin: Admin,
    uid: String,
    team: String,
    nodes: Vec<TestNode>,
    names: Vec<String>,
    blocks: [IpNet; 2],
}

impl Stage {
    fn new() -> Self {
        let admin = server();
        let team = admin.name("team");
        admin.namespace(&team);
        let subnets = json!({"a": {"cidr": "10.7.0.0/25"}});
        let uid = admin.network(&team, "blue", &json!({"subnets": subnets}));
        let names = ["n1", "n2", "n3"].map(|name| admin.name(name));
        let start = |name: &String| TestNode::start(&admin, name, "10.245.1.0/24", "192.0.2.1");
        let nodes: Vec<TestNode> = names.iter().map(|name| start(name).synced()).collect();
        let mut stage = Self {
            uid,
            team,
            nodes,
            names: names.to_vec(),
            blocks: [IpNet::default(); 2],
            admin,
        };
        stage.blocks = [0, 1].map(|n| stage.claim(n, false).unwrap());
        until("that the third sees both", || {
            let network = stage.nodes[2].cluster.fabric().overlay;
            network.get(&stage.uid).is_some_and(|all| all.len() == 2)
        });
        stage
    }

    fn claim(&self, n: usize, ask: bool) -> Result<IpNet, ClaimError> {
        let cluster = &self.nodes[n].cluster;
        let network = cluster.network(&self.team, "blue").unwrap();
        cluster.claim(&ClaimRequest {
            network: network_ref(&network),
            subnet: subnet(),
            containing: None,
            have: cluster.blocks(&self.uid).own,
            ask,
            until: Instant::now() + Duration::from_secs(60),
        })
    }

    fn config(&self) -> BlockIpam {
        BlockIpam {
            uid: self.uid.clone(),
            subnets: vec![subnet()],
            routes: Vec::new(),
            assigned: false,
        }
    }

    /// Takes every address that a node has; how many.
    fn fill(&self, n: usize) -> usize {
        let (config, own) = (self.config(), self.nodes[n].cluster.blocks(&self.uid));
        let network = "team.blue".parse().unwrap();
        let key = PoolKey::of(&Ipam::Blocks(config.clone()), &network, true).unwrap();
        let mut pools = self.nodes[n].hooks.pools.lock().unwrap();
        let mut take = |i: usize| pools.allocate_blocks(&key, &config, &own, &[], &format!("o{i}"));
        (0..200).take_while(|i| take(*i).is_ok()).count()
    }

    fn block(&self, cidr: &IpNet) -> Option<Value> {
        let name = BlockSpec::name(&self.uid, cidr);
        self.admin.get(BLOCKS, &name)
    }

    fn donated_parts(&self, cidr: &IpNet) -> Value {
        let block = self.block(cidr).unwrap_or_default();
        block["status"]["given"].clone()
    }

    fn request(&self, n: usize) -> Option<Value> {
        let name = BlockRequestSpec::name(&self.uid, &self.names[n]);
        self.admin.get(REQUESTS, &name)
    }

    /// Stops a node's API side and starts it again, with what its journal has by then.
    fn restart(&mut self, n: usize, between: impl FnOnce(&Self)) {
        let name = self.names[n].clone();
        let TestNode {
            cluster,
            hooks,
            directory,
        } = self.nodes.remove(n);
        drop(cluster);
        std::thread::sleep(Duration::from_millis(300));
        between(self);
        let node = TestNode::again(&self.admin.kubeconfig, &name, directory, hooks).synced();
        self.nodes.insert(n, node);
    }
}

fn subnet() -> BlockSubnet {
    let cidr: IpNet = "10.7.0.0/25".parse().unwrap();
    BlockSubnet {
        cidr,
        gateway: cidr.hosts().last(),
        exclude: Vec::new(),
        block_length: Some(26),
    }
}

#[test]
fn a_node_without_a_block_is_given_a_part_of_another_s() {
    let stage = Stage::new();
    let none = stage.claim(2, false);
    assert!(
        matches!(none, Err(ClaimError::Exhausted { .. })),
        "{none:?}"
    );
    let begun = Instant::now();
    let part = stage.claim(2, true).unwrap();
    println!("given after {:?}", begun.elapsed());
    assert_eq!(part.prefix_len(), 29, "eight addresses: {part}");
    let giver = usize::from(stage.blocks[1].contains(&part));
    let whole = stage.blocks[giver];
    assert!(whole.contains(&part));
    let expected = json!([{"cidr": part, "node": stage.names[2]}]);
    assert_eq!(stage.donated_parts(&whole), expected);
    let block = stage.block(&part).unwrap();
    assert_eq!(block["spec"]["node"], json!(stage.names[2]));
    let labels = &block["metadata"]["labels"];
    assert_eq!(labels["plexus.dev/from"], json!(stage.names[giver]));
    assert!(stage.request(2).is_none(), "it is withdrawn");
    assert_eq!(stage.nodes[2].cluster.blocks(&stage.uid).own, [part]);
    until("that the giver knows what became of it", || {
        let network = stage.nodes[giver].cluster.fabric().overlay;
        network[&stage.uid].iter().any(|block| block.cidr == part)
    });
    assert_eq!(
        stage.nodes[giver].cluster.blocks(&stage.uid).donated,
        [part]
    );
    // Of both together, each address once: two are set apart, one is the gateway's.
    let all: usize = (0..3).map(|n| stage.fill(n)).sum();
    assert_eq!((stage.fill(2), all), (8, 128 - 3));
    // All is in use: who was asked is said, and that took a bounded time.
    let begun = Instant::now();
    let error = stage.claim(2, true).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(15));
    let ClaimError::NotGiven { owners, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*owners, stage.names[..2]);
    let text = error.to_string();
    assert!(
        text.contains("2 are taken") && text.contains("were asked for a part"),
        "{text}"
    );
    assert!(stage.request(2).is_none());
}

#[test]
fn a_giver_that_dies_before_it_says_so_says_so_later() {
    let mut stage = Stage::new();
    let whole = stage.blocks[0];
    let part = whole.subnets(30).unwrap().nth(3).unwrap();
    let given = Donation {
        network: stage.uid.clone(),
        block: whole,
        part,
        node: stage.names[2].clone(),
    };
    stage.restart(0, |stage| {
        assert_eq!(stage.donated_parts(&whole), Value::Null);
    });
    // As the journal of the last agent has it.
    stage.nodes[0]
        .hooks
        .donations
        .lock()
        .unwrap()
        .push(given.clone());
    stage.restart(0, |_| ());
    until("that the third has it, though it never asked", || {
        stage.nodes[2].cluster.blocks(&stage.uid).own == [part]
    });
    assert_eq!(
        stage.donated_parts(&whole),
        json!([{"cidr": part, "node": stage.names[2]}])
    );
    // The journal is lost: what the API knows is in it again, and nothing is issued from it meanwhile.
    stage.restart(0, |_| ());
    stage.nodes[0].hooks.donations.lock().unwrap().clear();
    assert_eq!(stage.nodes[0].cluster.blocks(&stage.uid).donated, [part]);
    stage.restart(0, |_| ());
    until("that it is journaled again", || {
        *stage.nodes[0].hooks.donations.lock().unwrap() == [given.clone()]
    });
    // Somebody takes it out of the status: the journal knows better.
    let name = BlockSpec::name(&stage.uid, &whole);
    let nothing = json!({"status": {"given": null}});
    stage.admin.edit_status(BLOCKS, &name, &nothing);
    until("that it is said again", || {
        stage.donated_parts(&whole) != Value::Null
    });
}

#[test]
fn an_asker_that_dies_takes_what_it_was_given_when_it_is_back() {
    let mut stage = Stage::new();
    let (whole, asker) = (stage.blocks[1], stage.names[2].clone());
    let part = whole.subnets(29).unwrap().nth(2).unwrap();
    stage.restart(2, |stage| {
        // It died while it asked.
        let name = BlockRequestSpec::name(&stage.uid, &asker);
        let network = json!({"namespace": stage.team, "name": "blue", "uid": stage.uid});
        let request = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "BlockRequest",
            "metadata": {"name": name},
            "spec": {"network": network, "node": asker, "family": "ipv4", "addresses": 8}});
        stage.admin.create(REQUESTS, &request);
        until("that it is answered", || {
            let mut given = stage.blocks.iter().map(|block| stage.donated_parts(block));
            given.any(|given| given != Value::Null)
        });
        assert!(stage.block(&part).is_none());
    });
    until("that it has it", || {
        !stage.nodes[2].cluster.blocks(&stage.uid).own.is_empty()
    });
    until("that the request is gone", || stage.request(2).is_none());
    let own = stage.nodes[2].cluster.blocks(&stage.uid).own;
    let size = |block: &IpNet| 1_usize << (32 - block.prefix_len());
    assert_eq!(stage.fill(2), own.iter().map(size).sum::<usize>());
}

#[test]
fn what_was_given_to_a_node_that_is_gone_is_the_giver_s_again() {
    let stage = Stage::new();
    let part = stage.claim(2, true).unwrap();
    let giver = usize::from(stage.blocks[1].contains(&part));
    let (whole, before) = (stage.blocks[giver], stage.fill(giver));
    stage.admin.delete("/api/v1/nodes", &stage.names[2]);
    std::thread::sleep(Duration::from_secs(3));
    // The controller has not returned its block: nobody else may have it.
    assert_eq!(
        stage.block(&part).unwrap()["spec"]["node"],
        json!(stage.names[2])
    );
    assert_eq!(stage.fill(giver), before);
    stage
        .admin
        .delete(BLOCKS, &BlockSpec::name(&stage.uid, &part));
    let giver_name = json!(stage.names[giver]);
    until("that it is the giver's", || {
        let block = stage.block(&part);
        block.is_some_and(|block| block["spec"]["node"] == giver_name)
    });
    until("that its status says so", || {
        stage.donated_parts(&whole) == json!([{"cidr": part, "node": stage.names[giver]}])
    });
    let own = stage.nodes[giver].cluster.blocks(&stage.uid).own;
    assert!(own.contains(&whole) && own.contains(&part), "{own:?}");
    assert_eq!(stage.fill(giver), before + 8);
}

#[test]
fn a_part_that_is_not_given_is_not_used() {
    let stage = Stage::new();
    let part = stage.claim(2, true).unwrap();
    let giver = usize::from(stage.blocks[1].contains(&part));
    let whole = stage.blocks[giver];
    let name = BlockSpec::name(&stage.uid, &whole);
    let object = stage.block(&whole).unwrap();
    // Its block is another's all of a sudden, who knows nothing of donations.
    stage.admin.delete(BLOCKS, &name);
    let mut spec = object["spec"].clone();
    spec["node"] = json!(stage.admin.name("elsewhere"));
    let theirs = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
        "metadata": {"name": name}, "spec": spec});
    let made = stage.admin.try_create(BLOCKS, &theirs);
    if made.is_err() {
        // The giver was faster and made it again, with all that it says.
        until("that it says so again", || {
            stage.donated_parts(&whole) != Value::Null
        });
        return;
    }
    until("that the third sees it", || {
        stage.nodes[2].cluster.blocks(&stage.uid).own.is_empty()
    });
    stage.admin.edit_status(
        BLOCKS,
        &name,
        &json!({"status": {"given": [{"cidr": part, "node": stage.names[2]}]}}),
    );
    until("that it is given by the new owner", || {
        stage.nodes[2].cluster.blocks(&stage.uid).own == [part]
    });
}
