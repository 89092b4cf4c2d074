//! Networks that NADs describe in Contrail's words, and Networks that NADs and pods refer to.

use crate::common::{
    CONTRAIL, CONTRAIL_CONFIG, NETWORKS, address, apply, attachments, contrail_nad, event, gone,
    interfaces, nad, nad_object, network, network_object, output_of, pings, pod, ready,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Namespace, test_cluster};
use serde_json::{Value, json};

const FORWARDING: &str = "opencontrail.org/ip_fabric_forwarding";
const SNAT: &str = "opencontrail.org/ip_fabric_snat";

#[test]
fn a_nad_makes_the_network_that_its_annotations_describe() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "nads").expect("a namespace");
    let ns = namespace.name();
    let plexus = r#"{"cniVersion": "1.0.0", "type": "plexus-cni"}"#;
    let several = "['10.54.0.0/30', '10.54.1.0/24', 'fd00:54::/64']";
    apply(
        kube,
        &[
            contrail_nad(ns, "one", "10.55.0.0/24", &[]),
            nad(ns, "several", &[("opencontrail.org/cidr", several)], plexus),
            contrail_nad(
                ns,
                "fabric",
                "['10.56.0.0/24', 'fd00:56::/64']",
                &[(FORWARDING, "True"), (SNAT, "True")],
            ),
            pod(ns, "a", "n1", &[(NETWORKS, "one,several,fabric")]),
            pod(ns, "b", "n2", &[(NETWORKS, "one,fabric")]),
        ],
    );
    let (a, b) = (namespace.pod("a"), namespace.pod("b"));
    ready(kube, &[&a, &b]);
    for (name, provider, snat, subnets) in [
        ("one", "overlay", false, 1),
        ("several", "overlay", false, 3),
        ("fabric", "routed", false, 2),
    ] {
        let active = |net: &Value| net["status"]["phase"] == "Active";
        let net = kube.wait_for(&network_object(ns, name), TIMEOUT, &active);
        let net = net.expect("Active");
        assert_eq!(net["spec"]["provider"], provider, "{net}");
        assert_eq!(net["spec"]["snat"], snat, "{net}");
        assert_eq!(
            net["spec"]["subnets"].as_object().map(serde_json::Map::len),
            Some(subnets)
        );
        assert_eq!(
            net["metadata"]["ownerReferences"][0]["kind"],
            "NetworkAttachmentDefinition"
        );
        assert_eq!(net["metadata"]["ownerReferences"][0]["name"], name);
    }
    let gateways: Vec<Value> = attachments(kube, &a)[1..]
        .iter()
        .map(|one| one["gateways"][0].clone())
        .collect();
    // The last usable address, of the subnet that the address is from.
    assert_eq!(gateways, ["10.55.0.254", "10.54.0.2", "10.56.0.254"]);
    for gateway in ["-I net1 10.55.0.254", "-I net2 10.54.0.2"] {
        assert!(pings(kube, &a, gateway), "{gateway}");
    }
    // Of several, the first that has room; of IPv6 too.
    assert_eq!(address(kube, &a, "net2", false), "10.54.0.1");
    assert!(address(kube, &a, "net2", true).starts_with("fd00:54:"));
    apply(kube, &[pod(ns, "c", "n1", &[(NETWORKS, "several")])]);
    let c = namespace.pod("c");
    ready(kube, &[&c]);
    assert!(address(kube, &c, "net1", false).starts_with("10.54.1."));
    assert!(pings(kube, &c, &address(kube, &a, "net2", true)));

    // Forwarded by the fabric: pods and nodes reach it, across nodes, and see its own address.
    for v6 in [false, true] {
        let fabric_b = address(kube, &b, "net2", v6);
        assert!(
            pings(kube, &a, &format!("-I net3 {fabric_b}")),
            "{fabric_b}"
        );
        for node in ["n1", "n2"] {
            let reached = kube.on_node(node, &["ping", "-c1", "-W2", &fabric_b]);
            assert!(reached.expect("runs").ok(), "{node} {fabric_b}");
        }
        assert!(
            pings(kube, &c, &fabric_b),
            "from the cluster's network to {fabric_b}"
        );
    }
    assert!(pings(
        kube,
        &a,
        &format!("-I net1 {}", address(kube, &b, "net1", false))
    ));

    // The network goes with its NAD and its pods.
    gone(kube, &[&a, &b, &c]);
    gone(kube, &[&nad_object(ns, "one")]);
    kube.wait_gone(&network_object(ns, "one"), TIMEOUT)
        .expect("gone");
}

#[test]
fn networks_by_their_fully_qualified_names() {
    let kube = test_cluster::shared().expect("a lab");
    let (home, project) = (
        Namespace::create(kube, "home").expect("a namespace"),
        Namespace::create(kube, "project").expect("a namespace"),
    );
    let (ns, other) = (home.name(), project.name());
    let fq = |name: &str| {
        format!(r#"{{"domain": "default-domain", "project": "{other}", "name": "{name}"}}"#)
    };
    let list = format!("[{}, {}]", fq("x"), fq("y"));
    let python = format!("{{'domain': 'default-domain', 'project': '{other}', 'name': 'x'}}");
    let spec = |cidr: &str| json!({"subnets": {"v4": {"cidr": cidr}}});
    apply(
        kube,
        &[
            network(other, "x", spec("10.57.0.0/24")),
            network(other, "y", spec("10.58.0.0/24")),
            nad(ns, "by-nad", &[(CONTRAIL, &fq("x"))], CONTRAIL_CONFIG),
            pod(ns, "by-nad", "n1", &[(NETWORKS, "by-nad")]),
            pod(ns, "by-one", "n2", &[(CONTRAIL, &python)]),
            pod(ns, "by-list", "n1", &[(CONTRAIL, &list)]),
            pod(ns, "wrong", "n1", &[(CONTRAIL, &fq("z"))]),
        ],
    );
    let pods = ["by-nad", "by-one", "by-list"].map(|name| home.pod(name));
    ready(kube, &pods.iter().collect::<Vec<_>>());
    let names = |pod| {
        let all = interfaces(kube, pod).into_iter().skip(1);
        all.map(|(interface, network)| format!("{interface}={network}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&pods[0])[0].split('=').next(), Some("net1"));
    assert_eq!(names(&pods[1]), ["eth1=x"]);
    assert_eq!(names(&pods[2]), ["eth1=x", "eth2=y"]);
    // All three are on one network.
    let one = address(kube, &pods[1], "eth1", false);
    assert!(one.starts_with("10.57.0."), "{one}");
    assert!(pings(kube, &pods[0], &format!("-I net1 {one}")));
    assert!(pings(kube, &pods[2], &format!("-I eth1 {one}")));
    // A NAD that refers makes no network of its own.
    assert!(
        kube.get(&network_object(ns, "by-nad"))
            .expect("asked")
            .is_none()
    );
    event(kube, &home.pod("wrong"), "FailedAttach", &["z", other]);
}

#[test]
fn typographic_quotes_are_read_and_said() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "quotes").expect("a namespace");
    let ns = namespace.name();
    let config =
        "{ \u{201c}cniVersion\u{201d}: \u{201c}0.3.0\u{201d}, \"type\": \"contrail-k8s-cni\" }";
    let bridge = "{\u{201c}type\u{201d}: \u{201c}bridge\u{201d}, \"cniVersion\": \"0.3.1\", \"bridge\": \"quotes0\"}";
    apply(
        kube,
        &[
            nad(
                ns,
                "curly",
                &[("opencontrail.org/cidr", "['10.59.0.0/24']")],
                config,
            ),
            nad(ns, "curly-bridge", &[], bridge),
            pod(ns, "p", "n1", &[(NETWORKS, "curly,curly-bridge")]),
        ],
    );
    ready(kube, &[&namespace.pod("p")]);
    assert!(pings(kube, &namespace.pod("p"), "-I net1 10.59.0.254"));
    output_of(kube, &namespace.pod("p"), "ip link show net2");
    for name in ["curly", "curly-bridge"] {
        event(
            kube,
            &nad_object(ns, name),
            "ConfigWarning",
            &["typographic quotes"],
        );
    }
    gone(kube, &[&namespace.pod("p")]);
    let removed = kube.on_node("n1", &["ip", "link", "del", "quotes0"]);
    removed.expect("runs").text().expect("removed");
}

#[test]
fn a_network_of_somebody_else_is_not_taken_for_the_nads() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "taken").expect("a namespace");
    let ns = namespace.name();
    let spec = json!({"subnets": {"v4": {"cidr": "10.60.0.0/24"}}});
    apply(kube, &[network(ns, "same", spec)]);
    apply(kube, &[contrail_nad(ns, "same", "10.64.0.0/24", &[])]);
    apply(kube, &[pod(ns, "p", "n1", &[(NETWORKS, "same")])]);
    event(
        kube,
        &nad_object(ns, "same"),
        "NameTaken",
        &["refers to nothing"],
    );
    event(kube, &namespace.pod("p"), "FailedAttach", &["same"]);
}
