//! Nodes go, and what they had returns: blocks, parts of other nodes' blocks, parts that they gave away.

use crate::machine::Lab;
use crate::objects::within;
use std::time::Duration;

/// Longer than a donor waits before it takes back a part whose requester is gone.
const RETURN_TIMEOUT: Duration = Duration::from_secs(120);

const NETWORK: &str = "
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {name: small, namespace: default}
spec: {subnets: {a: {cidr: 10.71.0.0/28}}, blockSize: {ipv4: 28}}
";
const WHOLE: &str = "10.71.0.0/28";

fn owned(blocks: &[(String, String)], node: &str) -> Vec<String> {
    let own = blocks.iter().filter(|(_, owner)| owner == node);
    own.map(|(cidr, _)| cidr.clone()).collect()
}

#[track_caller]
fn eventually(lab: &Lab, what: &str, holds: impl Fn(&[(String, String)]) -> bool) {
    let mut blocks = Vec::new();
    let held = within(RETURN_TIMEOUT, || {
        blocks = lab.blocks_of("small");
        holds(&blocks)
    });
    assert!(held, "{what}: {blocks:?}");
}

#[test]
fn blocks_return_with_their_node_and_parts_with_theirs() {
    let lab = Lab::up('v', 3);
    lab.apply(NETWORK);
    lab.pod_on("giver", "n1", "small");
    lab.pod_on("asker", "n3", "small");
    let before = lab.blocks_of("small");
    assert_eq!(owned(&before, "n1"), [WHOLE], "{before:?}");
    let parts = owned(&before, "n3");
    assert!(!parts.is_empty(), "{before:?}");

    // The requester goes: its part is nobody's, then the donor's again, as a block of its own.
    lab.ok(&["remove-node", "n3"]);
    eventually(&lab, "nothing is n3's", |blocks| {
        owned(blocks, "n3").is_empty()
    });
    eventually(&lab, "the part is n1's again", |blocks| {
        parts.iter().all(|part| owned(blocks, "n1").contains(part))
    });
    for number in 0..12 {
        lab.pod_on(&format!("full{number}"), "n1", "small");
    }
    assert_eq!(lab.duplicates(), Vec::<String>::new());
    lab.all_is_true();
    for number in 0..12 {
        lab.end_pod(&format!("full{number}"), 0);
    }

    // The donor goes while somebody has a part of its block: the rest is free, and whoever claims it leaves that alone.
    let asked = lab.pod_on("asker-2", "n2", "small");
    let parts = owned(&lab.blocks_of("small"), "n2");
    assert!(!parts.is_empty());
    lab.ok(&["remove-node", "n1"]);
    let added = lab.ok(&["add-node"]);
    let newcomer = added.split(' ').next().unwrap();
    lab.pod_on("newcomer", newcomer, "");
    eventually(&lab, "nothing is n1's", |blocks| {
        owned(blocks, "n1").is_empty()
    });
    assert_eq!(owned(&lab.blocks_of("small"), "n2"), parts);
    let claimed = lab.pod_on("asker-3", newcomer, "small");
    assert_ne!(claimed, asked);
    let blocks = lab.blocks_of("small");
    assert!(
        owned(&blocks, newcomer).contains(&WHOLE.to_owned()),
        "{blocks:?}"
    );
    assert_eq!(owned(&blocks, "n2"), parts);
    assert_eq!(lab.duplicates(), Vec::<String>::new());

    // The last ones go: everything returns, and a newcomer has it all.
    lab.ok(&["remove-node", "n2"]);
    lab.end_pod("asker-3", 0);
    lab.ok(&["remove-node", newcomer]);
    eventually(&lab, "everything returns", <[_]>::is_empty);
    lab.ok(&["add-node"]);
    let nodes = lab.objects("/api/v1/nodes");
    let node = nodes[0]["metadata"]["name"].as_str().unwrap();
    lab.pod_on("last", node, "small");
    assert_eq!(
        lab.blocks_of("small"),
        [(WHOLE.to_owned(), node.to_owned())]
    );
    lab.all_is_true();
}
