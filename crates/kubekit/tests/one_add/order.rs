//! One index per reference, in order, duplicates and all annotations; names; what was asked for; and
//! that nothing stays.

use crate::common::{
    CONTRAIL, NETWORKS, NodeCleanup, PLEXUS, address, apply, attachments, contrail_nad, gone,
    holds, interfaces, nad, network, network_object, on, output_of, pings, pod, ready,
};
use crate::traces::{allocated, is_there, journal, uid};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Namespace, Object, test_cluster};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const BRIDGE: &str = r#"{"cniVersion": "0.3.1", "type": "bridge", "bridge": "e2eord0",
    "capabilities": {"ips": true, "mac": true},
    "ipam": {"type": "host-local", "subnet": "10.90.0.0/24"}}"#;

#[test]
fn every_reference_is_an_interface_in_order() {
    let kube = test_cluster::shared().expect("a lab");
    let (home, other) = (
        Namespace::create(kube, "order").expect("a namespace"),
        Namespace::create(kube, "order-other").expect("a namespace"),
    );
    let (ns, far) = (home.name(), other.name());
    let _clean = NodeCleanup {
        cluster: kube,
        node: "n1",
        script: "ip link del e2eord0".to_owned(),
    };
    let spec = |cidr: &str| json!({"subnets": {"v4": {"cidr": cidr}}});
    let networks = format!(
        r#"[{{"name": "blue"}}, {{"name": "blue", "interface": "again"}},
            {{"name": "br", "mac": "02:00:00:00:90:07", "ips": ["10.90.0.77/24"]}},
            {{"name": "{far}/far"}}, {{"name": "far", "namespace": "{far}", "ips": ["10.92.0.33"], "mac": "02:00:00:00:92:07"}}]"#
    );
    let fq = format!(r#"{{"domain": "default-domain", "project": "{far}", "name": "x"}}"#);
    let asks = [
        // Written in another order than they count in.
        (PLEXUS, format!(r#"["x", "{far}/x"]"#)),
        (CONTRAIL, format!("[{fq}, {fq}]")),
        (NETWORKS, networks),
    ];
    let asks: Vec<(&str, &str)> = asks
        .iter()
        .map(|(key, text)| (*key, text.as_str()))
        .collect();
    apply(
        kube,
        &[
            contrail_nad(ns, "blue", "['10.91.0.0/24', 'fd00:91::/64']", &[]),
            nad(ns, "br", &[], BRIDGE),
            contrail_nad(far, "far", "10.92.0.0/24", &[]),
            network(ns, "x", spec("10.93.0.0/24")),
            network(far, "x", spec("10.94.0.0/24")),
            pod(ns, "p", "n1", &asks),
            pod(ns, "peer", "n2", &[(NETWORKS, &format!("blue,{far}/far"))]),
        ],
    );
    let (p, peer) = (home.pod("p"), home.pod("peer"));
    ready(kube, &[&p, &peer]);
    let found = interfaces(kube, &p);
    let expected = [
        ("eth0", "cluster-default"),
        ("net1", "blue"),
        ("again", "blue"),
        ("net3", "br"),
        ("net4", "far"),
        ("net5", "far"),
        ("eth6", "x"),
        ("eth7", "x"),
        ("net8", "x"),
        ("net9", "x"),
    ];
    let expected = expected.map(|(interface, network)| (interface.to_owned(), network.to_owned()));
    assert_eq!(found, expected);
    let record = attachments(kube, &p);
    for (index, one) in record.iter().enumerate() {
        assert_eq!(
            (&one["index"], &one["total"]),
            (&json!(index), &json!(10)),
            "{one}"
        );
        assert_eq!(one["state"], "Attached");
    }
    let spaces: Vec<&Value> = [6, 7, 8, 9]
        .map(|i| &record[i]["network"]["namespace"])
        .into();
    assert_eq!(spaces, [far, far, ns, far]);
    the_kernel_agrees(kube, &p, &record);
    the_runtime_knows_the_first_alone(kube, &p, &record);

    // What was asked for, and that each of them works.
    assert_eq!(address(kube, &p, "net3", false), "10.90.0.77");
    assert_eq!(address(kube, &p, "net5", false), "10.92.0.33");
    assert_eq!(record[3]["mac"], "02:00:00:00:90:07");
    assert_eq!(record[5]["mac"], "02:00:00:00:92:07");
    for (interface, v6) in [
        ("net1", false),
        ("again", false),
        ("again", true),
        ("net1", true),
    ] {
        let there = address(kube, &p, interface, v6);
        assert!(
            pings(kube, &peer, &format!("-I net1 {there}")),
            "{interface} {there}"
        );
    }
    assert!(pings(kube, &peer, "-I net2 10.92.0.33"));
    all_goes(kube, &p, &record);
}

fn the_kernel_agrees(kube: &dyn Cluster, pod: &Object, record: &[Value]) {
    let links = output_of(kube, pod, "ip -j addr");
    let links: Vec<Value> = serde_json::from_str(&links).expect("JSON");
    let names: BTreeSet<&str> = links
        .iter()
        .filter_map(|link| link["ifname"].as_str())
        .collect();
    let recorded = record.iter().filter_map(|one| one["interface"].as_str());
    let recorded: BTreeSet<&str> = recorded.chain(["lo"]).collect();
    assert_eq!(names, recorded);
    for one in record {
        let link = links.iter().find(|link| link["ifname"] == one["interface"]);
        let link = link.expect("the link");
        assert_eq!(link["address"], one["mac"], "{link}");
        for ip in one["ips"].as_array().expect("addresses") {
            let ip = ip
                .as_str()
                .and_then(|ip| ip.split('/').next())
                .expect("an address");
            assert!(
                link["addr_info"].to_string().contains(&format!("\"{ip}\"")),
                "{link} {ip}"
            );
        }
    }
}

/// The pod's addresses, and the runtime's, are those of eth0.
fn the_runtime_knows_the_first_alone(kube: &dyn Cluster, pod: &Object, record: &[Value]) {
    let bare = |ip: &Value| {
        let text = ip.as_str().unwrap_or_default();
        text.split('/').next().unwrap_or_default().to_owned()
    };
    let first: BTreeSet<String> = record[0]["ips"]
        .as_array()
        .expect("ips")
        .iter()
        .map(bare)
        .collect();
    let seen = kube.get(pod).expect("asked").expect("is there");
    let ips = seen["status"]["podIPs"].as_array().expect("podIPs");
    assert_eq!(
        ips.iter()
            .map(|ip| bare(&ip["ip"]))
            .collect::<BTreeSet<_>>(),
        first
    );
    let sandbox = kube.sandbox_of(pod).expect("a sandbox");
    assert_eq!(sandbox.interfaces, ["eth0"]);
}

fn all_goes(kube: &dyn Cluster, p: &Object, record: &[Value]) {
    let ns = &p.namespace;
    let sandbox = kube.sandbox_of(p).expect("a sandbox").id;
    assert!(journal(kube, "n1", &sandbox) > 0);
    // The node's ends of the pod's links.
    let ends = output_of(kube, p, "ip -o link | grep -c link-netns");
    assert!(ends.trim().parse::<u32>().expect("a number") > 0, "{ends}");
    let pod_ip = record[0]["ips"][0]
        .as_str()
        .and_then(|ip| ip.split('/').next())
        .expect("an address");
    let host_end = on(
        kube,
        "n1",
        &format!("ip -o route get {pod_ip} | grep -o 'dev [^ ]*' | cut -d' ' -f2"),
    );
    let host_end = host_end.trim();
    assert!(is_there(kube, "n1", host_end));
    let blue = kube
        .get(&network_object(ns, "blue"))
        .expect("asked")
        .expect("is there");
    let seen = kube.get(p).expect("asked").expect("is there");
    let record = Object::new("plexus.dev/v1alpha1", "PodAttachments", ns, &uid(&seen));

    gone(kube, &[p]);
    kube.wait_gone(&record, TIMEOUT).expect("its record gone");
    assert_eq!(journal(kube, "n1", &sandbox), 0);
    assert!(!is_there(kube, "n1", host_end), "{host_end}");
    assert_eq!(
        on(kube, "n1", "ip -o link show master e2eord0 | wc -l").trim(),
        "0"
    );
    assert_eq!(
        on(
            kube,
            "n1",
            "find /var/lib/cni/networks -name '10.90.0.*' | wc -l"
        )
        .trim(),
        "0"
    );
    // Two of the peer's are left.
    holds("blue's addresses freed", TIMEOUT, || {
        allocated(kube, &uid(&blue)) == 2
    });
}
