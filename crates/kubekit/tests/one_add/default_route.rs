//! Who has the default route: the first interface, or the one that was chosen, per family; the
//! cluster's own addresses stay on eth0.

use crate::common::{
    DEFAULT_GW, NETWORKS, apply, attachments, contrail_nad, event, output_of, pod, ready,
};
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Cluster, Namespace, Object, test_cluster};
use serde_json::Value;

const SNAT: (&str, &str) = ("opencontrail.org/ip_fabric_snat", "True");

/// Name, annotations, and the interfaces that have the default routes.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);

#[test]
fn the_default_route_is_the_firsts_or_the_chosens() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "default-gw").expect("a namespace");
    let ns = namespace.name();
    let npwg = r#"[{"name": "blue"}, {"name": "blue", "default-route": ["10.95.0.254", "fd00:95::ffff:ffff:ffff:fffe"]}]"#;
    let twice = r#"[{"name": "blue", "default-route": ["10.95.0.254"]}, {"name": "blue", "default-route": ["10.95.0.254"]}]"#;
    // Name, annotations, and where IPv4 and IPv6 of the outside go.
    let cases: [Case<'_>; 6] = [
        ("plain", &[(NETWORKS, "blue")], "eth0", "eth0"),
        (
            "by-network",
            &[(NETWORKS, "blue"), (DEFAULT_GW, "blue")],
            "net1",
            "net1",
        ),
        (
            "by-interface",
            &[(NETWORKS, "blue,blue@up"), (DEFAULT_GW, "up")],
            "up",
            "up",
        ),
        (
            "by-family",
            &[
                (NETWORKS, "blue"),
                (DEFAULT_GW, r#"{"4": "blue", "6": "eth0"}"#),
            ],
            "net1",
            "eth0",
        ),
        ("npwg", &[(NETWORKS, npwg)], "net2", "net2"),
        (
            "npwg-v4",
            &[(
                NETWORKS,
                r#"[{"name": "blue", "default-route": ["10.95.0.254"]}]"#,
            )],
            "net1",
            "eth0",
        ),
    ];
    let mut objects = vec![contrail_nad(
        ns,
        "blue",
        "['10.95.0.0/24', 'fd00:95::/64']",
        &[SNAT],
    )];
    for (name, annotations, ..) in &cases {
        objects.push(pod(ns, name, "n1", annotations));
    }
    objects.push(pod(
        ns,
        "wrong",
        "n1",
        &[(NETWORKS, "blue"), (DEFAULT_GW, "green")],
    ));
    let both = r#"[{"name": "blue", "default-route": ["10.95.0.254"]}]"#;
    objects.push(pod(
        ns,
        "both",
        "n1",
        &[(NETWORKS, both), (DEFAULT_GW, "eth0")],
    ));
    objects.push(pod(ns, "twice", "n1", &[(NETWORKS, twice)]));
    apply(kube, &objects);
    let pods: Vec<Object> = cases.iter().map(|(name, ..)| namespace.pod(name)).collect();
    ready(kube, &pods.iter().collect::<Vec<_>>());
    for (pod, (_, _, v4, v6)) in pods.iter().zip(&cases) {
        check(kube, pod, v4, v6);
    }
    event(
        kube,
        &namespace.pod("wrong"),
        "FailedAttach",
        &["green", "neither a network nor an interface"],
    );
    event(
        kube,
        &namespace.pod("twice"),
        "FailedAttach",
        &["default-route", "one network has"],
    );
    event(
        kube,
        &namespace.pod("both"),
        "FailedAttach",
        &["blue", "default route"],
    );
}

fn check(kube: &dyn Cluster, pod: &Object, v4: &str, v6: &str) {
    let services = test_cluster::kubernetes(Need::Services)
        .expect("a lab")
        .is_some();
    let own = if services {
        "10.96.0.1 fd00:96::1 10.244.1.1 fd00:244:0:1::1"
    } else {
        "10.244.1.1 fd00:244:0:1::1 10.244.255.1 fd00:244:0:ff::1"
    };
    let script = format!(
        "for to in 203.0.113.1 2001:db8:113::1 {own}; do \
           ip -o route get $to | grep -o 'dev [^ ]*' | cut -d' ' -f2; done; \
         ip -4 route show default | wc -l; ip -6 route show default | wc -l; \
         for to in 203.0.113.1 2001:db8:113::1; do ping -c1 -W3 $to >/dev/null && echo yes; done"
    );
    let output_of = output_of(kube, pod, &script);
    let words: Vec<&str> = output_of.split_whitespace().collect();
    let expected = [
        v4, v6, "eth0", "eth0", "eth0", "eth0", "1", "1", "yes", "yes",
    ];
    assert_eq!(words, expected, "{pod}");
    // Services still answer, through eth0.
    if services {
        let ask = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 10.96.0.1 443";
        let answer = kube.exec(pod, &["sh", "-c", ask]).expect("runs").stdout;
        assert!(answer.contains("400"), "{pod}: {answer}");
    }
    // The record says the same.
    for one in attachments(kube, pod) {
        let has = |family: &str| {
            let families = one["defaultRoute"].as_array();
            families.is_some_and(|all| all.contains(&Value::from(family)))
        };
        assert_eq!(has("ipv4"), one["interface"] == v4, "{pod} {one}");
        assert_eq!(has("ipv6"), one["interface"] == v6, "{pod} {one}");
    }
}
