//! What leaves the cluster: with SNAT under the node's address, without it nothing.

use crate::common::{
    DEFAULT_GW, NETWORKS, address, apply, contrail_nad, node_ips, pod, ready, said,
};
use plexus_kubekit::{Cluster, Namespace, Object, ground};
use std::collections::BTreeSet;

const OUTSIDE: [&str; 2] = ["203.0.113.1", "2001:db8:113::1"];
const PORT: u16 = 34561;
const SNAT: &str = "opencontrail.org/ip_fabric_snat";
const FORWARDING: &str = "opencontrail.org/ip_fabric_forwarding";

#[test]
fn with_snat_pods_leave_under_the_nodes_address_and_without_nothing_does() {
    let kube = ground::shared().expect("a lab");
    let namespace = Namespace::create(kube, "outside").expect("a namespace");
    let ns = namespace.name();
    let both = |number: u8| format!(r#"["10.{number}.0.0/24", "fd00:{number}::/64"]"#);
    let asks = |network| [(NETWORKS, network), (DEFAULT_GW, network)];
    apply(
        kube,
        &[
            contrail_nad(
                ns,
                "snat",
                &both(52),
                &[(SNAT, "True"), (FORWARDING, "False")],
            ),
            contrail_nad(ns, "plain", &both(53), &[(SNAT, "False")]),
            contrail_nad(ns, "twin", &both(52), &[(SNAT, "True")]),
            pod(ns, "snat1", "n1", &asks("snat")),
            pod(ns, "snat2", "n2", &asks("snat")),
            pod(ns, "twin1", "n1", &asks("twin")),
            pod(ns, "plain1", "n1", &asks("plain")),
            pod(ns, "plain2", "n2", &asks("plain")),
        ],
    );
    let pods = ["snat1", "snat2", "twin1", "plain1", "plain2"].map(|name| namespace.pod(name));
    ready(kube, &pods.iter().collect::<Vec<_>>());

    let control = [false, true].map(|v6| address(kube, &pods[3], "eth0", v6));
    let arrived = std::thread::scope(|scope| {
        let listener = scope.spawn(|| listen(kube));
        for _ in 0..3 {
            for pod in &pods {
                send(kube, pod, &pod.name, &[String::new(), String::new()]);
            }
            // Through eth0 the same pod does reach the outside: the listener hears what there is.
            send(kube, &pods[3], "control", &control);
        }
        listener.join().expect("listened")
    });
    let expected = [
        ("snat1", "n1"),
        ("snat2", "n2"),
        ("twin1", "n1"),
        ("control", "n1"),
    ];
    let each = expected.iter().flat_map(|(what, node)| {
        let from = node_ips(kube, node).into_iter();
        from.map(move |from| format!("{what} {from}"))
    });
    assert_eq!(arrived, each.collect::<BTreeSet<String>>());

    // An answer finds its way back, to the right one of two networks with the same addresses.
    for pod in &pods[..3] {
        for outside in OUTSIDE {
            said(kube, pod, &format!("ping -c1 -W2 {outside}"));
        }
    }
}

/// Everything that arrives outside within some seconds: what, and from whom.
fn listen(kube: &dyn Cluster) -> BTreeSet<String> {
    let python = format!(
        "import socket, time\n\
         s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n\
         s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)\n\
         s.bind((\"::\", {PORT}))\n\
         end = time.monotonic() + 12\n\
         while time.monotonic() < end:\n\
         \x20   s.settimeout(max(end - time.monotonic(), 0.01))\n\
         \x20   try: text, peer = s.recvfrom(100)\n\
         \x20   except TimeoutError: break\n\
         \x20   print(text.decode(), peer[0].removeprefix(\"::ffff:\"))\n"
    );
    let output = kube.outside(&["python3", "-c", &python]).expect("runs");
    let text = output.text().expect("listens");
    text.lines().map(str::to_owned).collect()
}

/// Sends a word to the outside, both families, from these addresses if there are any.
fn send(kube: &dyn Cluster, pod: &Object, word: &str, from: &[String; 2]) {
    let python = format!(
        "import socket\n\
         for family, to, own in [(socket.AF_INET, \"{}\", \"{}\"), (socket.AF_INET6, \"{}\", \"{}\")]:\n\
         \x20   s = socket.socket(family, socket.SOCK_DGRAM)\n\
         \x20   if own: s.bind((own, 0))\n\
         \x20   s.sendto(b\"{word}\", (to, {PORT}))\n",
        OUTSIDE[0], from[0], OUTSIDE[1], from[1]
    );
    said(kube, pod, &format!("python3 -c '{python}'"));
}
