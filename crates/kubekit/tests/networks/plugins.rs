//! NADs of other plugins' types: done natively where every key is understood, else executed; and NADs
//! without a configuration, which is then found on the node.

use crate::common::{
    NETWORKS, NodeCleanup, PodsFirst, address, apply, event, gone, holds, interfaces, nad,
    node_ips, on, output_of, pings, pod, ready, who,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Namespace, test_cluster};

#[test]
fn macvlan_and_bridge_with_their_own_configurations() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "native").expect("a namespace");
    let ns = namespace.name();
    let _clean = NodeCleanup {
        cluster: kube,
        node: "n1",
        script: "ip link del e2enat0".to_owned(),
    };
    let macvlan = |start: &str, end: &str| {
        format!(
            r#"{{"cniVersion": "0.3.1", "type": "macvlan", "master": "eth1", "mode": "bridge", "ipam":
               {{"type": "host-local", "subnet": "10.70.0.0/24", "rangeStart": "{start}", "rangeEnd": "{end}"}}}}"#
        )
    };
    let bridge = r#"{"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "bridge": "e2enat0",
        "isGateway": true, "capabilities": {"ips": true, "mac": true}, "ipam": {"type": "host-local",
        "ranges": [[{"subnet": "10.71.0.0/24"}], [{"subnet": "fd00:71::/64"}]]}},
        {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}}]}"#;
    apply(
        kube,
        &[
            nad(ns, "mac-low", &[], &macvlan("10.70.0.10", "10.70.0.19")),
            nad(ns, "mac-high", &[], &macvlan("10.70.0.20", "10.70.0.29")),
            nad(ns, "br", &[], bridge),
            pod(ns, "a", "n1", &[(NETWORKS, "mac-low,br")]),
            pod(ns, "b", "n2", &[(NETWORKS, "mac-high")]),
            pod(
                ns,
                "c",
                "n1",
                &[(
                    NETWORKS,
                    r#"[{"name": "br", "interface": "lan",
                "mac": "02:00:00:00:71:07", "ips": ["10.71.0.77/24"]}]"#,
                )],
            ),
        ],
    );
    let [a, b, c] = ["a", "b", "c"].map(|name| namespace.pod(name));
    ready(kube, &[&a, &b, &c]);
    let kinds = output_of(kube, &a, "ip -d link show net1; ip -d link show net2");
    assert!(
        kinds.contains("macvlan mode bridge") && kinds.contains("veth"),
        "{kinds}"
    );
    let there = address(kube, &b, "net1", false);
    assert!(there.starts_with("10.70.0.2"), "{there}");
    assert!(
        pings(kube, &a, &format!("-I net1 {there}")),
        "across nodes, on the wire"
    );
    assert_eq!(address(kube, &c, "lan", false), "10.71.0.77");
    let link = output_of(
        kube,
        &c,
        "ip link show lan; sysctl net.ipv4.conf.lan.arp_filter",
    );
    assert!(
        link.contains("02:00:00:00:71:07") && link.contains("= 1"),
        "{link}"
    );
    assert_eq!(who(kube, &a, "10.71.0.77"), "c");
    assert!(pings(kube, &a, &address(kube, &c, "lan", true)));
    // Of the pods of n1: nodes of a lab keep theirs in one directory.
    let leases = "find /var/lib/cni/networks -name '10.70.0.1?' -o -name '10.71.0.*' | wc -l";
    assert_eq!(on(kube, "n1", leases).trim(), "3");
    gone(kube, &[&a, &b, &c]);
    assert_eq!(on(kube, "n1", leases).trim(), "0");
    let leases = leases.replace("10.70.0.1?", "10.70.0.2?");
    assert_eq!(on(kube, "n2", &leases).trim(), "0");
}

#[test]
fn plugins_that_are_not_understood_are_executed() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "executed").expect("a namespace");
    let ns = namespace.name();
    let bin = kube.files("n1").expect("known").plugins;
    let _clean = NodeCleanup {
        cluster: kube,
        node: "n1",
        script: format!("rm -f {bin}/e2e-witness /run/e2e-witness.log; ip link del e2eexe0"),
    };
    let _first = PodsFirst {
        cluster: kube,
        pods: vec![namespace.pod("a")],
    };
    // A plugin that nobody has heard of, which says that it was called.
    let witness = format!(
        r#"printf '#!/bin/sh\necho "$CNI_COMMAND $CNI_IFNAME" >>/run/e2e-witness.log\nexec {bin}/macvlan\n' >{bin}/e2e-witness
        chmod +x {bin}/e2e-witness"#
    );
    on(kube, "n1", &witness);
    let host_local = r#"{"type": "host-local", "subnet": "10.72.0.0/24"}"#;
    let unknown = r#"{"cniVersion": "0.4.0", "type": "e2e-witness", "master": "eth2", "ipam": {"type": "static",
        "addresses": [{"address": "10.73.0.5/24"}]}}"#;
    let ptp = format!(r#"{{"cniVersion": "0.3.1", "type": "ptp", "ipam": {host_local}}}"#);
    // A key that is nobody's, in front of a plugin that only exists as a program.
    let chain = r#"{"cniVersion": "0.4.0", "plugins": [{"type": "bridge", "bridge": "e2eexe0", "isGateway": true,
        "example.com/note": "x", "ipam": {"type": "host-local", "subnet": "10.74.0.0/24",
        "routes": [{"dst": "NODES"}]}},
        {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}]}"#;
    let node = &node_ips(kube, "n1")[0];
    let nodes = format!("{}.0/24", node.rsplit_once('.').expect("IPv4").0);
    let chain = &chain.replace("NODES", &nodes);
    let asks = r#"[{"name": "unknown", "interface": "odd0"}, {"name": "ptp"}, {"name": "chain",
        "portMappings": [{"hostPort": 34701, "containerPort": 80, "protocol": "tcp"}]}]"#;
    apply(
        kube,
        &[
            nad(ns, "unknown", &[], unknown),
            nad(ns, "ptp", &[], &ptp),
            nad(ns, "chain", &[], chain),
            nad(
                ns,
                "nowhere",
                &[],
                r#"{"cniVersion": "0.4.0", "type": "e2e-not-there"}"#,
            ),
            pod(ns, "a", "n1", &[(NETWORKS, asks)]),
            pod(ns, "b", "n1", &[(NETWORKS, "nowhere")]),
        ],
    );
    let a = namespace.pod("a");
    ready(kube, &[&a]);
    let names: Vec<String> = interfaces(kube, &a)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["eth0", "odd0", "net2", "net3"]);
    assert_eq!(address(kube, &a, "odd0", false), "10.73.0.5");
    assert_eq!(
        on(kube, "n1", "grep -v VERSION /run/e2e-witness.log").trim(),
        "ADD odd0"
    );
    let ptp_address = address(kube, &a, "net2", false);
    assert!(ptp_address.starts_with("10.72.0."), "{ptp_address}");
    on(kube, "n1", &format!("ping -c1 -W2 {ptp_address}"));
    // The port of the node leads to the pod, from another node.
    let script = &format!(
        "exec 3<>/dev/tcp/{node}/34701; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; tail -n1 <&3"
    );
    let served = kube.on_node("n2", &["bash", "-c", script]).expect("runs");
    assert_eq!(served.text().expect("served").trim(), "a");
    event(
        kube,
        &namespace.pod("b"),
        "FailedAttach",
        &["nowhere", "e2e-not-there"],
    );

    gone(kube, &[&a]);
    assert_eq!(
        on(kube, "n1", "grep -v VERSION /run/e2e-witness.log").trim(),
        "ADD odd0\nDEL odd0"
    );
    assert_eq!(
        on(
            kube,
            "n1",
            "find /var/lib/cni/networks -name '10.7[24].0.*' | wc -l"
        )
        .trim(),
        "0"
    );
    holds("the port is closed", TIMEOUT, || {
        !kube
            .on_node("n2", &["bash", "-c", script])
            .expect("runs")
            .ok()
    });
}

#[test]
fn a_nad_without_a_configuration_is_looked_for_on_the_node() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "disk").expect("a namespace");
    let ns = namespace.name();
    let name = format!("ondisk-{}", std::process::id());
    let dir = kube.files("n1").expect("known").configs;
    let _clean = NodeCleanup {
        cluster: kube,
        node: "n1",
        script: format!("rm -f {dir}/80-{name}.conf; ip link del e2edsk0"),
    };
    apply(
        kube,
        &[
            nad(ns, &name, &[], ""),
            pod(ns, "a", "n1", &[(NETWORKS, &name)]),
        ],
    );
    let a = namespace.pod("a");
    event(kube, &a, "FailedAttach", &[&name]);
    let config = format!(
        r#"{{"cniVersion": "0.3.1", "name": "{name}", "type": "bridge", "bridge": "e2edsk0", "ipam":
           {{"type": "host-local", "subnet": "10.75.0.0/24"}}}}"#
    );
    on(
        kube,
        "n1",
        &format!("cat >{dir}/80-{name}.conf <<'EOF'\n{config}\nEOF\n"),
    );
    ready(kube, &[&a]);
    assert!(address(kube, &a, "net1", false).starts_with("10.75.0."));
    // Gone again, the pod and its deletion do not need it.
    on(kube, "n1", &format!("rm {dir}/80-{name}.conf"));
    gone(kube, &[&a]);
    assert_eq!(
        on(
            kube,
            "n1",
            "find /var/lib/cni/networks -name '10.75.0.*' | wc -l"
        )
        .trim(),
        "0"
    );
}
