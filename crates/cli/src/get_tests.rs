//! Tables of every kind.

use super::*;
use crate::kinds;
use serde_json::json;

const NOW: i64 = 1_704_067_300;

fn render_lines(
    word: &str,
    objects: &[Value],
    snapshot: &Snapshot,
    options: TableOptions,
) -> Vec<String> {
    let kind = kinds::find(word).unwrap();
    let all: Vec<&Value> = objects.iter().collect();
    let text = render(&table(&kind, &all, snapshot, options), Screen::PIPE);
    let lines = text.lines();
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

fn snapshot() -> Snapshot {
    Snapshot {
        now: NOW,
        ..Snapshot::default()
    }
}

fn meta(name: &str) -> Value {
    json!({"name": name, "namespace": "a", "uid": format!("uid-{name}"),
        "creationTimestamp": "2024-01-01T00:00:00Z"})
}

const WIDE: TableOptions = TableOptions {
    wide: true,
    namespaces: true,
    watch: false,
};

#[test]
fn networks() {
    let list = [
        json!({"metadata": meta("blue"), "spec": {"subnets": {"a": {"cidr": "10.1.0.0/16"}}, "mtu": 1400},
            "status": {"phase": "Active", "vni": 4097,
                "usage": {"blocks": 3, "allocated": 41, "capacity": 65520}}}),
        json!({"metadata": meta("red"), "spec": {"provider": "bridge"}, "status": {"phase": "Failed",
            "conditions": [{"type": "Ready", "status": "False", "message": "spec.mtu"}]}}),
        json!({"metadata": meta("new"), "spec": {}}),
    ];
    // Blocks that are not there have no addresses in use; of those that cannot be seen the status tells.
    let lines = render_lines("networks", &list, &snapshot(), TableOptions::default());
    assert_eq!(lines[1], "blue overlay Active 10.1.0.0/16 0/65533 100s -");
    let mut both = list.clone();
    both[0]["spec"]["subnets"]["b"] = json!({"cidr": "fd00::/48"});
    let lines = render_lines("networks", &both, &snapshot(), TableOptions::default());
    assert!(lines[1].contains(" 0/65533 "), "{lines:?}");
    let mut snapshot = snapshot();
    snapshot.unknown.insert("blocks", "forbidden".to_owned());
    let lines = render_lines("networks", &list, &snapshot, TableOptions::default());
    assert_eq!(lines[0], "NAME PROVIDER PHASE SUBNETS USED AGE WHY");
    assert_eq!(lines[1], "blue overlay Active 10.1.0.0/16 41/65520 100s -");
    assert_eq!(lines[2], "red bridge Failed - - 100s spec.mtu");
    assert_eq!(lines[3], "new overlay Initializing - - 100s -");
    let wide = render_lines("networks", &list, &snapshot, WIDE);
    assert_eq!(
        wide[0],
        "NAMESPACE NAME PROVIDER PHASE SUBNETS USED AGE VNI BLOCKS MTU FROM WHY"
    );
    assert_eq!(
        wide[1],
        "a blue overlay Active 10.1.0.0/16 41/65520 100s 4097 3 1400 - -"
    );
    assert!(wide[2].ends_with("spec.mtu"));
}

#[test]
fn pods_and_attachments() {
    let record = json!({"metadata": {"name": "uid-web", "namespace": "a"},
        "spec": {"pod": {"name": "web", "uid": "uid-web"}, "node": "n1"},
        "status": {"attachments": [
            {"interface": "eth0", "network": {"name": "cluster-default"}, "ips": ["10.244.0.2/24"], "state": "Attached"},
            {"interface": "net1", "network": {"namespace": "a", "name": "blue"}, "mac": "02:00:00:00:00:01",
             "ips": ["10.1.0.5/16", "fd00::5/64"], "gateways": ["10.1.0.1"], "defaultRoute": ["ipv6"],
             "id": "x", "state": "Attached"}]}});
    let mut snapshot = snapshot();
    snapshot.records.push(record.clone());
    let pods = [
        json!({"metadata": meta("web"), "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}),
        json!({"metadata": meta("late"), "spec": {}, "status": {"phase": "Pending"}}),
    ];
    let lines = render_lines("pods", &pods, &snapshot, TableOptions::default());
    assert_eq!(lines[1], "web Running n1 eth0,net1 100s");
    assert_eq!(lines[2], "late Pending - - 100s");
    let wide = render_lines("pods", &pods, &snapshot, WIDE);
    assert_eq!(
        wide[1],
        "a web Running n1 eth0,net1 100s 10.244.0.2,10.1.0.5+fd00::5 cluster-default,a/blue"
    );
    let lines = render_lines("attachments", &[record], &snapshot, WIDE);
    assert_eq!(
        lines[1],
        "a web eth0 cluster-default 10.244.0.2/24 n1 Attached - - - -"
    );
    assert_eq!(
        lines[2],
        "a web net1 a/blue 10.1.0.5/16,fd00::5/64 n1 Attached 02:00:00:00:00:01 10.1.0.1 ipv6 x"
    );
}

#[test]
fn blocks_nodes_and_requests() {
    let mut snapshot = snapshot();
    snapshot.networks.push(
        json!({"metadata": meta("blue"), "spec": {"subnets": {"a": {"cidr": "10.1.0.0/16"}}}}),
    );
    let spec = json!({"network": {"namespace": "a", "name": "blue", "uid": "uid-blue"}, "cidr": "10.1.0.64/26", "node": "n1"});
    let block = json!({"metadata": meta("b"), "spec": spec, "status": {"allocated": 3,
        "given": [{"cidr": "10.1.0.96/32", "node": "n2"}]}});
    let lines = render_lines("blocks", std::slice::from_ref(&block), &snapshot, WIDE);
    assert_eq!(
        lines[1],
        "10.1.0.64/26 a/blue n1 3/63 100s 10.1.0.96/32→n2 b"
    );
    snapshot.blocks.push(block);
    let node = json!({"metadata": meta("n1"), "spec": {"podCIDRs": ["10.244.0.0/24"]}, "status": {
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": "x"}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let lines = render_lines(
        "nodes",
        &[node, json!({"metadata": meta("n2")})],
        &snapshot,
        TableOptions::default(),
    );
    assert_eq!(lines[1], "n1 Ready 192.0.2.1 10.244.0.0/24 1 0 100s");
    assert_eq!(lines[2], "n2 Unknown - - 0 0 100s");
    let request = json!({"metadata": meta("r"), "spec": {"network": {"namespace": "a", "name": "blue"},
        "node": "n2", "family": "ipv4", "addresses": 1}});
    let lines = render_lines(
        "blockrequests",
        &[request],
        &snapshot,
        TableOptions::default(),
    );
    assert_eq!(lines[1], "a/blue n2 ipv4 1 100s");
}

#[test]
fn definitions_and_what_waits() {
    let nad =
        |name: &str, config: &str| json!({"metadata": meta(name), "spec": {"config": config}});
    let list = [
        nad("native", r#"{"type":"macvlan","master":"eth1"}"#),
        nad("exec", r#"{"type":"calico"}"#),
        nad("named", r#"{"type":"plexus-cni"}"#),
        nad("rails", r#"{"type":"multi-nic"}"#),
        nad("later", r#"{"type":"multus-multivpc-cni"}"#),
        nad("broken", "{"),
        nad("odd", r#"{"type":"macvlan","mode":"x"}"#),
        json!({"metadata": meta("bare")}),
    ];
    let lines = render_lines("nads", &list, &snapshot(), TableOptions::default());
    let done = lines[1..].iter().map(|line| {
        let words: Vec<&str> = line.split(' ').take(4).collect();
        words.join(" ")
    });
    let done: Vec<String> = done.collect();
    assert_eq!(
        done,
        [
            "native macvlan plexus 100s",
            "exec calico plugins 100s",
            "named plexus-cni Network 100s",
            "rails multi-nic MultiNicNetwork 100s",
            "later multus-multivpc-cni waits 100s",
            "broken - nobody 100s",
            "odd macvlan nobody 100s",
            "bare - Network 100s",
        ]
    );
    assert_eq!(lines[0], "NAME TYPE DONE-BY AGE NOTE");
    let claim = |class: &str| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta(class),
            "spec": {"devices": {"requests": [{"exactly": {"deviceClassName": class}}]}}})
    };
    let list = [
        claim("cni.networking.x-k8s.io"),
        claim("gpu.example.com"),
        claim("fast-nic"),
    ];
    let lines = render_lines(
        "resourceclaims",
        &list,
        &snapshot(),
        TableOptions::default(),
    );
    assert_eq!(lines[0], "NAME STATE AGE WHY");
    assert!(
        lines[1].starts_with(
            "cni.networking.x-k8s.io waits 100s it is kept, and waits: the DRA driver"
        )
    );
    let missing = "is not there: until it is, nobody serves the claim";
    let message = format!("fast-nic not known 100s DeviceClass fast-nic {missing}");
    assert_eq!(lines[3], message);
    let others = "100s it is for another driver than ours, if there is one";
    let class = |name: &str, driver: &str| {
        let expression = format!("device.driver == \"{driver}\"");
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": meta(name),
            "spec": {"selectors": [{"cel": {"expression": expression}}]}})
    };
    let known = Snapshot {
        waiting: vec![
            class("fast-nic", "cni.dra.networking.x-k8s.io"),
            class("gpu.example.com", "gpu.example.com"),
        ],
        ..snapshot()
    };
    let lines = render_lines("resourceclaims", &list, &known, TableOptions::default());
    assert_eq!(lines[2], format!("gpu.example.com not ours {others}"));
    assert!(lines[3].starts_with("fast-nic waits 100s it is kept, and waits: the DRA driver"));
    let lines = render_lines("resourceclaims", &list, &snapshot(), WIDE);
    assert_eq!(lines[0], "NAMESPACE NAME STATE AGE WHY");
    let network = |phase: &str, status: &str| {
        json!({"metadata": meta("blue"), "spec": {}, "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": status, "message": "no such provider"}]}})
    };
    let lines = render_lines(
        "networks",
        &[network("Pending", "False")],
        &snapshot(),
        TableOptions::default(),
    );
    assert!(lines[0].ends_with(" AGE WHY"), "{lines:?}");
    assert!(lines[1].ends_with(" no such provider"), "{lines:?}");
    let lines = render_lines(
        "networks",
        &[network("Active", "True")],
        &snapshot(),
        TableOptions::default(),
    );
    assert!(
        lines[0].ends_with(" AGE"),
        "nothing to say, no column: {lines:?}"
    );
}

#[test]
fn objects_are_chosen_by_namespace_and_name() {
    let kind = kinds::find("networks").unwrap();
    let list = [
        json!({"metadata": {"name": "b", "namespace": "x"}}),
        json!({"metadata": {"name": "a", "namespace": "x"}}),
        json!({"metadata": {"name": "a", "namespace": "y"}}),
    ];
    let names = |namespace: Option<&str>, wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        chosen(&kind, &list, namespace, &wanted).map(|found| {
            found
                .iter()
                .map(|o| format!("{}/{}", namespace_of(o), name(o)))
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(names(None, &[]).unwrap(), ["x/a", "x/b", "y/a"]);
    assert_eq!(names(Some("x"), &[]).unwrap(), ["x/a", "x/b"]);
    assert_eq!(names(Some("x"), &["b", "a"]).unwrap(), ["x/b", "x/a"]);
    let error = names(Some("y"), &["b"]).unwrap_err();
    assert_eq!(error, "there is no Network b in namespace y");
    assert!(none(&kind, Some("y")).contains("-A"));
}

fn namespace_of(object: &Value) -> &str {
    namespace(object)
}
