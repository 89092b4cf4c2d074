//! Descriptions of a pod and of a network, whole.

use super::*;
use serde_json::json;

fn snapshot() -> Snapshot {
    let network = json!({
        "metadata": {"name": "blue", "namespace": "team-a", "uid": "uid-blue", "generation": 3},
        "spec": {"subnets": {"a": {"cidr": "10.1.0.0/16", "exclude": ["10.1.0.0/28"]}}, "snat": true,
            "routes": [{"dst": "192.168.0.0/16"}], "allowedNamespaces": {"from": "Same"}},
        "status": {"phase": "Active", "vni": 4097, "observedGeneration": 2, "conditions": [
            {"type": "Ready", "status": "True", "reason": "Active", "message": "pods can use it",
             "lastTransitionTime": "2024-01-01T00:00:00Z"}]},
    });
    let eth0 = json!({"index": 0, "total": 2, "ordinal": 0, "id": "i0", "interface": "eth0",
        "network": {"namespace": "", "name": "cluster-default", "uuid": "cluster-default"},
        "mac": "02:00:00:00:00:01", "ips": ["10.244.1.7/24"], "gateways": ["10.244.1.1"],
        "defaultRoute": ["ipv4"], "state": "Attached",
        "routes": ["169.254.1.1/32", "default via 169.254.1.1 onlink"]});
    let net1 = json!({"index": 1, "total": 2, "ordinal": 0, "id": "i1", "interface": "net1",
        "network": {"namespace": "team-a", "name": "blue", "uuid": "uid-blue"},
        "mac": "02:00:00:00:00:02", "ips": ["10.1.0.65/16"], "gateways": ["10.1.255.254"],
        "defaultRoute": [], "state": "Attached", "rules": ["from 10.1.0.65/32 lookup 101 priority 5080"],
        "routes": ["169.254.1.1/32", "10.1.0.0/16 via 169.254.1.1 onlink"]});
    Snapshot {
        now: 1_704_067_300,
        networks: vec![network],
        nodes: vec![json!({"metadata": {"name": "n1"}, "spec": {"podCIDRs": ["10.244.1.0/24"]}})],
        blocks: vec![
            json!({"spec": {"network": {"uid": "uid-blue"}, "cidr": "10.1.0.64/26",
            "node": "n1"}, "status": {"allocated": 1}}),
        ],
        records: vec![json!({"metadata": {"name": "pod-1", "namespace": "team-a"},
            "spec": {"pod": {"name": "web", "uid": "pod-1"}, "node": "n1"},
            "status": {"sandbox": "5f10", "attachments": [eth0, net1]}})],
        events: vec![
            json!({"type": "Warning", "reason": "Odd", "message": "something",
            "involvedObject": {"kind": "Pod", "name": "web", "namespace": "team-a"},
            "lastTimestamp": "2024-01-01T00:00:00Z"}),
        ],
        ..Snapshot::default()
    }
}

fn pod() -> Value {
    json!({"metadata": {"name": "web", "namespace": "team-a", "uid": "pod-1",
            "annotations": {"plexus.dev/networks": "blue"}},
        "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})
}

#[test]
fn a_pod_with_where_everything_came_from() {
    let text = describe_pod(&snapshot(), &pod()).render(Screen::PIPE);
    for line in [
        "Pod team-a/web\n",
        "  node           n1\n",
        "  asks           plexus.dev/networks: blue\n",
        "  sandbox        5f10\n",
        "\neth0: Attached\n",
        "every pod (the cluster-wide default network, number 0 of 2)",
        "10.244.1.7/24, from podCIDR 10.244.1.0/24 of node n1",
        "  route          169.254.1.1/32\n",
        "default via 169.254.1.1 onlink",
        "\nnet1: Attached\n",
        "annotation plexus.dev/networks (number 1 of 2)",
        "Network team-a/blue, identity uid-blue",
        "  provider       overlay, VNI 4097\n",
        "10.1.0.65/16, subnet a (10.1.0.0/16), block 10.1.0.64/26 of node n1",
        "10.1.0.0/16 via 169.254.1.1 onlink",
        "  rule           from 10.1.0.65/32 lookup 101 priority 5080\n",
        "100s ago: something",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let (_, net1) = text.split_once("net1: Attached").unwrap();
    assert!(!net1.contains("default via"), "{net1}");
    // The network has got another route since.
    assert!(!net1.contains("192.168.0.0/16"), "{net1}");
    let value = describe_pod(&snapshot(), &pod()).to_json();
    assert_eq!(value["title"], "Pod team-a/web");
    let value = &value["sections"];
    assert_eq!(value[0]["title"], "Pod team-a/web");
    assert_eq!(value[2]["title"], "net1: Attached");
    let routes = value[2]["said"]["route"].as_array().unwrap();
    assert_eq!(routes.len(), 2, "{value:#}");
    assert_eq!(value[2]["said"]["MAC"], json!(["02:00:00:00:00:02"]));
}

#[test]
fn a_pod_whose_annotations_name_another_network_now() {
    let mut snapshot = snapshot();
    let mut green = snapshot.networks[0].clone();
    green["metadata"]["name"] = json!("green");
    green["metadata"]["uid"] = json!("uid-green");
    green["spec"]["routes"] = json!([{"dst": "172.16.0.0/12"}]);
    snapshot.networks.push(green);
    let mut pod = pod();
    pod["metadata"]["annotations"]["plexus.dev/networks"] = json!("green");
    let text = describe_pod(&snapshot, &pod).render(Screen::PIPE);
    let (_, net1) = text.split_once("net1: Attached").unwrap();
    assert!(
        net1.contains("no longer say so: they were edited"),
        "{net1}"
    );
    assert!(
        net1.contains("Network team-a/blue, identity uid-blue"),
        "{net1}"
    );
    assert!(
        !net1.contains("172.16.0.0/12"),
        "a route of another network: {net1}"
    );
    let own = "10.1.0.0/16 via 169.254.1.1 onlink";
    assert!(net1.contains(own), "{net1}");
}

#[test]
fn what_a_record_leaves_out_is_said() {
    let mut snapshot = snapshot();
    let one = &mut snapshot.records[0]["status"]["attachments"][1];
    one["routesLeftOut"] = json!(72);
    one["rulesLeftOut"] = json!(3);
    let text = describe_pod(&snapshot, &pod()).render(Screen::PIPE);
    let (eth0, net1) = text.split_once("net1: Attached").unwrap();
    assert!(!eth0.contains("leaves out"), "{text}");
    for more in ["and 72 more, which its", "and 3 more, which its"] {
        assert!(net1.contains(more), "{text}");
    }
}

#[test]
fn routes_that_plugins_told_or_nobody() {
    let mut snapshot = snapshot();
    snapshot.records[0]["status"]["attachments"][1]["delegated"] = json!(true);
    let first = snapshot.records[0]["status"]["attachments"][0].as_object_mut();
    first.unwrap().remove("routes");
    let text = describe_pod(&snapshot, &pod()).render(Screen::PIPE);
    let (eth0, net1) = text.split_once("net1: Attached").unwrap();
    assert!(eth0.contains("not known: its record is"), "{text}");
    assert!(net1.contains("onlink\n"), "{text}");
    assert!(
        net1.contains("as its plugins told; there may be more"),
        "{text}"
    );
}

#[test]
fn a_pod_that_has_nothing_yet() {
    let mut snapshot = snapshot();
    snapshot.records.clear();
    let text = describe_pod(&snapshot, &pod()).render(Screen::PIPE);
    assert!(text.contains("record     none"), "{text}");
    assert!(
        text.contains("net1: team-a/blue, by plexus.dev/networks"),
        "{text}"
    );
    snapshot.networks.clear();
    let text = describe_pod(&snapshot, &pod()).render(Screen::PIPE);
    assert!(
        text.contains("plexus diagnose pod tells what is missing"),
        "{text}"
    );
}

#[test]
fn what_the_server_does_not_show_is_not_known() {
    let mut snapshot = snapshot();
    snapshot.records.clear();
    snapshot.blocks.clear();
    for list in ["attachments", "blocks", "networks"] {
        snapshot.unknown.insert(list, format!("cannot list {list}"));
    }
    let text = describe_pod(&snapshot, &pod()).render(Screen::PIPE);
    for words in [
        "record     not known: cannot list attachments",
        "Whether it is attached is not known\n",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    assert!(!text.contains("Not attached"), "{text}");
    let text =
        describe_network(&snapshot, &snapshot.networks[0], Screen::PIPE).render(Screen::PIPE);
    for words in [
        "not known: cannot list attachments",
        "not known: cannot list blocks",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    snapshot.networks.clear();
    let text = describe_pod(&snapshot, &pod()).render(Screen::PIPE);
    assert!(
        text.contains("would get  not known: cannot list networks"),
        "{text}"
    );
    // Those of the pod's namespace are all that is needed.
    snapshot.known_in.insert("attachments", "team-a".to_owned());
    let text = describe_pod(&snapshot, &pod()).render(Screen::PIPE);
    assert!(text.contains("Not attached yet"), "{text}");
}

#[test]
fn a_container_by_its_name_and_by_its_id() {
    let mut snapshot = snapshot();
    let mut eth0 = snapshot.records[0]["status"]["attachments"][1].clone();
    eth0["interface"] = json!("eth0");
    eth0["index"] = json!(0);
    eth0["total"] = json!(1);
    eth0["defaultRoute"] = json!(["ipv4"]);
    snapshot.records = vec![
        json!({"metadata": {"name": "5f10aa", "namespace": "team-a"},
        "spec": {"pod": {"name": "web", "uid": "5f10aa"}, "node": "n1"},
        "status": {"sandbox": "5f10aa", "attachments": [eth0]}}),
        json!({"metadata": {"name": "5f10bb", "namespace": "team-a"},
        "spec": {"pod": {"name": "other", "uid": "5f10bb"}, "node": "n1"}, "status": {}}),
    ];
    let find = |snapshot: &Snapshot, named: &str| {
        let found = crate::holder::Holder::find(snapshot, "team-a", named).unwrap();
        found.map(|holder| describe_holder(snapshot, holder).render(Screen::PIPE))
    };
    let text = find(&snapshot, "web").unwrap();
    for line in [
        "Container team-a/web\n",
        "  sandbox        5f10aa\n",
        "\neth0: Attached\n",
        "its runtime, by the network's name (number 0 of 1)",
        "Network team-a/blue, identity uid-blue",
        "10.1.0.65/16, subnet a (10.1.0.0/16), block 10.1.0.64/26 of node n1",
        "10.1.0.0/16 via 169.254.1.1 onlink",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    assert_eq!(find(&snapshot, "5f10a"), Some(text));
    snapshot.records[1]["metadata"]["name"] = json!("ns-5f10bb");
    let by_nerdctl = find(&snapshot, "5f10b").unwrap();
    assert!(
        by_nerdctl.starts_with("Container team-a/other\n"),
        "{by_nerdctl}"
    );
    snapshot.records[1]["metadata"]["name"] = json!("5f10bb");
    let several = crate::holder::Holder::find(&snapshot, "team-a", "5f10").unwrap_err();
    assert!(several.contains("5f10aa, 5f10bb"), "{several}");
    assert_eq!(find(&snapshot, "5f"), None, "too short");
    assert_eq!(find(&snapshot, "db"), None);
    // What has an owner was a pod, which the API no longer has.
    snapshot.records[0]["metadata"]["ownerReferences"] = json!([{"kind": "Pod"}]);
    let text = find(&snapshot, "web").unwrap();
    assert!(text.starts_with("Pod team-a/web\n"), "{text}");
    assert!(text.contains("its node has not seen it end"), "{text}");
    snapshot.pods =
        vec![json!({"metadata": {"name": "web", "namespace": "team-a", "uid": "5f10aa"}})];
    assert_eq!(find(&snapshot, "web"), None, "it is a Pod");
    snapshot.pods.clear();
    snapshot.unknown.insert("pods", "forbidden".to_owned());
    assert_eq!(find(&snapshot, "web"), None, "it may be a Pod");
    snapshot.records[0]["metadata"]["ownerReferences"] = json!([]);
    assert!(find(&snapshot, "web").is_some());
}

#[test]
fn a_network_with_who_has_it() {
    let snapshot = snapshot();
    let text =
        describe_network(&snapshot, &snapshot.networks[0], Screen::PIPE).render(Screen::PIPE);
    for line in [
        "Network team-a/blue\n",
        "Active",
        "VNI",
        "the status is about an earlier spec",
        "overlay (by default)",
        "a: 10.1.0.0/16, gateway 10.1.255.254 (by default), blocks of /26, without 10.1.0.0/28",
        "to the node's address",
        "namespace team-a",
        "True, Active: pods can use it",
        "10.1.0.64/26 of node n1: 1 of 64",
        "team-a/web on node n1: 10.1.0.65/16",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let narrow = Screen {
        colour: true,
        width: Some(60),
    };
    let text = describe_network(&snapshot, &snapshot.networks[0], narrow).render(narrow);
    assert!(text.contains("\x1b[1mNetwork team-a/blue\x1b[0m"));
}
