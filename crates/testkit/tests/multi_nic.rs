//! A MultiNicNetwork on `plexus up`: hosts whose NICs are known get their blocks, the CIDR says so, definitions come and go.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod common;

use common::{eventually, plexus, text};
use plexus_testkit::{Node, Up, examples};
use serde_json::{Value, json};

const GROUP: &str = "/apis/net.cogadvisor.io/v1";
const BLOCKS: &str = "/apis/plexus.dev/v1alpha1/blocks";

fn host(up: &Up<'_>, name: &str, last: u8) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    up.create("/api/v1/nodes", &node);
    let nic = |index: u8| {
        json!({"interfaceName": format!("eth{index}"), "netAddress": format!("10.0.{index}.0/24"),
            "hostIP": format!("10.0.{index}.{last}"), "addresses": [format!("10.0.{index}.{last}/24")]})
    };
    let interfaces = json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "HostInterface",
        "metadata": {"name": name}, "spec": {"hostName": name, "interfaces": [nic(1), nic(2)]}});
    up.create(&format!("{GROUP}/hostinterfaces"), &interfaces);
}

/// `host nic block via`, sorted; of blocks for NICs.
fn blocks(up: &Up<'_>) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let all = up.list(BLOCKS).into_iter();
    let mut blocks: Vec<String> = all
        .filter(|block| block["spec"]["nic"].is_object())
        .map(|block| {
            let (spec, nic) = (&block["spec"], &block["spec"]["nic"]);
            [&spec["node"], &nic["interface"], &spec["cidr"], &nic["via"]]
                .map(text)
                .join(" ")
        })
        .collect();
    blocks.sort();
    blocks
}

#[test]
fn the_seeds_example_gives_the_seeds_cidrs() {
    let node = Node::new();
    let up = Up::start(&node);
    let files = examples();
    let file = files
        .iter()
        .find(|file| file.ends_with("seed-002/10-multi-nic-network.yaml"));
    let file = file.unwrap().display().to_string();
    let applied = plexus(&node, &["apply", "-f", &file]);
    assert!(applied.status.success(), "{}", text(&applied.stderr));
    host(&up, "host1", 1);
    host(&up, "host2", 2);
    let wanted = [
        "host1 eth1 192.168.0.0/24 10.0.1.1",
        "host1 eth2 192.168.64.0/24 10.0.2.1",
        "host2 eth1 192.168.1.0/24 10.0.1.2",
        "host2 eth2 192.168.65.0/24 10.0.2.2",
    ];
    eventually("the seed's blocks", || blocks(&up) == wanted);

    let cidr = format!("{GROUP}/cidrs/multi-nic-sample");
    eventually("the CIDR has them", || {
        let spec = up.api("GET", &cidr, None).json()["spec"].clone();
        let outer = |i: usize| spec["cidr"][i]["vlanCIDR"].clone();
        outer(0) == "192.168.0.0/18"
            && outer(1) == "192.168.64.0/18"
            && spec["cidr"][1]["hosts"][1]["podCIDR"] == "192.168.65.0/24"
    });
    let network = format!("{GROUP}/multinicnetworks/multi-nic-sample");
    eventually("the network says so", || {
        let status = up.api("GET", &network, None).json()["status"].clone();
        status["configStatus"] == "Success"
            && status["computeResults"][1] == json!({"netAddress": "10.0.2.0/24", "numOfHosts": 2})
    });

    // A definition in each namespace, also in one that comes.
    let definition = |namespace: &str| {
        let nads = "network-attachment-definitions/multi-nic-sample";
        up.api(
            "GET",
            &format!("/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/{nads}"),
            None,
        )
    };
    up.create(
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}}),
    );
    for namespace in ["default", "later"] {
        eventually("its definition", || definition(namespace).status == 200);
    }
    let config = definition("later").json()["spec"]["config"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(
        (&config["type"], &config["ipam"]["hostBlock"]),
        (&json!("multi-nic"), &json!(6))
    );

    // A new address is a new way there, and the block stays.
    let path = format!("{GROUP}/hostinterfaces/host2");
    let mut renumbered = up.api("GET", &path, None).json();
    let nic = &mut renumbered["spec"]["interfaces"][0];
    nic["hostIP"] = "10.0.1.99".into();
    nic["addresses"] = json!(["10.0.1.99/24"]);
    let answer = up.api("PUT", &path, Some(&renumbered));
    assert_eq!(answer.status, 200, "{}", answer.body);
    eventually("the other way", || {
        blocks(&up).contains(&"host2 eth1 192.168.1.0/24 10.0.1.99".to_owned())
    });

    let gone = up.api("DELETE", &network, None);
    assert_eq!(gone.status, 200, "{}", gone.body);
    eventually("nothing is left of it", || {
        let kept = [&network, &cidr].map(|path| up.api("GET", path, None).status);
        blocks(&up).is_empty() && kept == [404, 404] && definition("default").status == 404
    });
    assert!(up.stop().success());
}

#[test]
fn what_is_wrong_is_said() {
    let node = Node::new();
    let up = Up::start(&node);
    let network = |name: &str, host_block: u8| {
        let ipam = json!({"type": "multi-nic-ipam", "hostBlock": host_block}).to_string();
        let network = json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "MultiNicNetwork",
            "metadata": {"name": name}, "spec": {"subnet": "10.77.0.0/16", "ipam": ipam}});
        up.create(&format!("{GROUP}/multinicnetworks"), &network);
        let path = format!("{GROUP}/multinicnetworks/{name}");
        move |up: &Up<'_>| up.api("GET", &path, None).json()["status"].clone()
    };
    let none = network("none", 0);
    eventually("no host bits", || {
        let status = none(&up);
        let message = status["message"].as_str().unwrap_or_default();
        status["configStatus"] == "Failed" && message.contains("spec.ipam.hostBlock: is 0")
    });
    // That one means nothing: the next has the addresses. Of two of one second the UID decides.
    let (first, second) = (network("first", 6), network("second", 7));
    eventually("one of them overlaps the other", || {
        let overlaps = |status: &Value| {
            let message = status["message"].as_str().unwrap_or_default();
            message.contains("overlaps 10.77.0.0/16 of MultiNicNetwork")
        };
        overlaps(&first(&up)) != overlaps(&second(&up))
    });
    assert!(up.stop().success());
}
