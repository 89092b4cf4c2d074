//! What leaves the cluster: with SNAT under the node's address, without it nothing.

use crate::common::{
    DEFAULT_GW, NETWORKS, address, apply, contrail_nad, node_ips, output_of, pod, ready,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Namespace, Object, Output, test_cluster, wait};
use std::collections::BTreeSet;

const OUTSIDE: [&str; 2] = ["203.0.113.1", "2001:db8:113::1"];
const PORT: u16 = 34561;
const OVER: &str = "over";
const SNAT: &str = "opencontrail.org/ip_fabric_snat";
const FORWARDING: &str = "opencontrail.org/ip_fabric_forwarding";

#[test]
fn with_snat_pods_leave_under_the_nodes_address_and_without_nothing_does() {
    let kube = test_cluster::shared().expect("a lab");
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
        wait_listener(kube);
        for pod in &pods {
            send(kube, pod, &pod.name, &[String::new(), String::new()]);
        }
        // Through eth0 the same pod does reach the outside: the listener hears what there is.
        send(kube, &pods[3], "control", &control);
        let over = format!("echo -n {OVER} > /dev/udp/127.0.0.1/{PORT}");
        kube.outside(&["bash", "-c", &over])
            .and_then(Output::text)
            .expect("sent");
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
            output_of(kube, pod, &format!("ping -c1 -W2 {outside}"));
        }
    }
}

/// Everything that arrives outside until it is told that it is over: what, and from whom.
fn listen(kube: &dyn Cluster) -> BTreeSet<String> {
    let python = format!(
        "import socket\n\
         s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n\
         s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)\n\
         s.bind((\"::\", {PORT}))\n\
         while True:\n\
         \x20   text, peer = s.recvfrom(100)\n\
         \x20   if text == b\"{OVER}\": break\n\
         \x20   print(text.decode(), peer[0].removeprefix(\"::ffff:\"))\n"
    );
    let output = kube.outside(&["python3", "-c", &python]).expect("runs");
    let text = output.text().expect("listens");
    text.lines().map(str::to_owned).collect()
}

fn wait_listener(kube: &dyn Cluster) {
    let script = format!("ss -Hlun sport = :{PORT}");
    wait::until("a listener", TIMEOUT, || {
        let open = kube.outside(&["sh", "-c", &script])?.text()?;
        Ok((!open.trim().is_empty()).then_some(()))
    })
    .expect("listens");
}

/// Sends a word to the outside some times, both families, from these addresses if there are any.
fn send(kube: &dyn Cluster, pod: &Object, word: &str, from: &[String; 2]) {
    let python = format!(
        "import socket, time\n\
         for family, to, own in [(socket.AF_INET, \"{}\", \"{}\"), (socket.AF_INET6, \"{}\", \"{}\")]:\n\
         \x20   s = socket.socket(family, socket.SOCK_DGRAM)\n\
         \x20   if own: s.bind((own, 0))\n\
         \x20   for _ in range(3): s.sendto(b\"{word}\", (to, {PORT})); time.sleep(0.1)\n",
        OUTSIDE[0], from[0], OUTSIDE[1], from[1]
    );
    output_of(kube, pod, &format!("python3 -c '{python}'"));
}
