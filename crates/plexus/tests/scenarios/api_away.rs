//! A minute without the API: pods whose sandbox dies get another one, sandboxes that the API knows nothing of come and go,
//! an agent is killed and comes back. Afterwards everybody tells the same story.

use crate::machine::Lab;
use crate::objects::within;
use crate::runtime::Sandbox;
use plexus_testkit::{Rng, run};
use std::time::{Duration, Instant};

const OUTAGE: Duration = Duration::from_secs(60);
const NODES: [&str; 3] = ["n1", "n2", "n3"];
const NETWORK: &str = "
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {name: blue, namespace: default}
spec: {subnets: {a: {cidr: 10.72.0.0/20}, b: {cidr: 'fd00:72::/64'}}}
";

/// Its sandbox dies; gives whether another one is there in time.
fn another_sandbox(lab: &Lab, node: &str, uid: &str) -> bool {
    let of_pod = || {
        let all = lab.view().sandboxes(node).unwrap_or_default();
        all.into_iter().find(|(_, sandbox)| sandbox.uid == uid)
    };
    let Some((old, sandbox)) = of_pod() else {
        return false;
    };
    run("ip", &["netns", "del", &sandbox.space]);
    within(Duration::from_secs(40), || {
        of_pod().is_some_and(|(id, _)| id != old)
    })
}

#[test]
fn pods_come_and_go_while_the_api_is_away() {
    let (mut rng, seed) = Rng::from_env();
    println!("the seed is {seed}");
    let lab = Lab::up('a', 3);
    lab.apply(NETWORK);
    let mut pods = Vec::new();
    for (number, node) in NODES.iter().cycle().take(6).enumerate() {
        let name = format!("p{number}");
        lab.pod_on(&name, node, "blue");
        let pod = lab.pod(&name);
        pods.push((*node, pod["metadata"]["uid"].as_str().unwrap().to_owned()));
    }
    // One goes as the API does.
    lab.end_pod("p5", 30);
    lab.ok(&["kill", "server", "--hold"]);
    let start = Instant::now();
    let (mut again, mut own) = (0, 0);
    while start.elapsed() < OUTAGE {
        let (node, uid) = &pods[rng.below(5) as usize];
        assert!(
            another_sandbox(&lab, node, uid),
            "{uid} on {node} stays without a sandbox"
        );
        again += 1;
        let sandbox = Sandbox::new(&lab, node, &format!("own{own}"), "blue");
        let added = sandbox.add();
        assert!(added.is_ok(), "{added:?}");
        assert_eq!(sandbox.addresses().len(), 4, "two networks, two families");
        assert_eq!(lab.duplicates(), Vec::<String>::new());
        own += 1;
        if own == 3 {
            // It must live from what is on its disk, and the others with that.
            assert!(lab.shoot("/nodes/n2/pid"));
        }
        sandbox.end().unwrap();
    }
    println!("{again} sandboxes were made again, {own} came and went");
    assert!(again >= 5, "{again}");
    assert!(
        lab.ask("GET", "/version", &serde_json::Value::Null)
            .is_none(),
        "it was away"
    );

    lab.ok(&["start", "server"]);
    lab.eventually("the pod that was going is gone", || lab.pod("p5").is_null());
    lab.all_is_true();
    lab.all_reach();
    lab.pod_on("after", "n2", "blue");
    lab.all_is_true();
}
