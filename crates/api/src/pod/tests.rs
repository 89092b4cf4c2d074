//! Annotations, as users and enemies write them.

use super::*;
use crate::cni::{FqName, PortMapping, Protocol};
use serde_json::json;

fn names(text: &str) -> Vec<String> {
    let found = networks(text, "here").expect(text);
    let quoted = |one: &NetworkSelection| {
        let interface = one.interface.as_ref().map(|name| format!("@{name}"));
        format!(
            "{}/{}{}",
            one.namespace,
            one.name,
            interface.unwrap_or_default()
        )
    };
    found.iter().map(quoted).collect()
}

fn refused(text: &str, cause: &str) {
    let problems = networks(text, "here").expect_err(text).to_string();
    assert!(
        problems.contains(cause),
        "{text}\nwanted {cause}\ngot    {problems}"
    );
    assert!(problems.len() < 8_000, "a message of {}", problems.len());
    assert!(problems.contains(NETWORKS), "{problems}");
}

/// One element with one key more.
fn element(key: &str, value: serde_json::Value) -> String {
    json!([{"name": "a", key: value}]).to_string()
}

#[test]
fn the_short_form() {
    assert_eq!(names("net-a,net-b"), ["here/net-a", "here/net-b"]);
    assert_eq!(
        names(" net-a , other/net-b@eth7,net-a\n"),
        ["here/net-a", "other/net-b@eth7", "here/net-a"]
    );
    assert_eq!(names("a.b"), ["here/a.b"]);
    assert!(names("").is_empty());
    assert!(names(" \n").is_empty());
}

#[test]
fn the_short_form_refused() {
    for (text, cause) in [
        ("a,", "[1]: \"\" names no network"),
        (",a", "[0]"),
        ("a,,b", "[1]"),
        ("@eth1", "names no network"),
        ("a@", "interface name"),
        ("a@b@c", "more than one @"),
        ("a/b/c", "\"b/c\""),
        ("/a", "namespace"),
        ("a/", "name of an object"),
        ("A", "\"A\""),
        ("a b", "\"a b\""),
        ("-a", "\"-a\""),
        ("a_b", "\"a_b\""),
        ("n.s/a", "\"n.s\" is not the name of a namespace"),
        ("a@0123456789abcdef", "interface name"),
        ("a@e/0", "interface name"),
        ("a@x,b@x", "[1].interface: x is asked for twice"),
        ("ä", "name of an object"),
    ] {
        refused(text, cause);
    }
    let long = "a".repeat(254);
    refused(&long, "at most 253");
    refused(
        &vec!["a"; 65].join(","),
        "names 65 networks: write at most 64",
    );
    refused(&"a,".repeat(200_000), "has 400000 bytes");
}

#[test]
fn seed_examples() {
    let text = r#"[
      { "name": "net-a" },
      { "name": "net-b" },
      { "name": "other-ns/net-c" }
    ]"#;
    assert_eq!(names(text), ["here/net-a", "here/net-b", "other-ns/net-c"]);
    assert_eq!(
        names(r#"[{"name":"ns/a","namespace":"ns"},{"name":"b","namespace":"x"}]"#),
        ["ns/a", "x/b"]
    );
}

#[test]
fn every_key_of_the_standard() {
    let text = json!([{
        "name": "a", "namespace": "ns", "interface": "data0", "interfaceRequest": "data0",
        "ips": ["10.0.0.5/24", "fd00::5"], "mac": "02:00:00:00:00:01",
        "infiniband-guid": "C2-11-22-33-44-55-66-77",
        "cni-args": {"nics": 2, "masters": ["eth1"]},
        "portMappings": [
            {"hostPort": 8080, "containerPort": 80},
            {"hostPort": 53, "containerPort": 53, "protocol": "UDP", "hostIP": "192.0.2.1"},
        ],
        "bandwidth": {"ingressRate": 10_000_000_000_u64, "ingressBurst": 1, "egressRate": 5},
        "default-route": ["10.0.0.1", "fd00::1"],
        "deviceID": "0000:03:02.1",
        "example.com/own": {"x": 1},
    }])
    .to_string();
    let found = networks(&text, "here").unwrap().remove(0);
    assert_eq!((found.namespace.as_str(), found.name.as_str()), ("ns", "a"));
    assert_eq!(found.interface.as_ref().unwrap().as_str(), "data0");
    assert_eq!(found.ips[0], ("10.0.0.5".parse().unwrap(), Some(24)));
    assert_eq!(found.ips[1], ("fd00::5".parse().unwrap(), None));
    assert_eq!(found.cni_args["nics"], 2);
    assert_eq!(found.default_route.as_ref().unwrap().len(), 2);
    assert_eq!(found.others["example.com/own"]["x"], 1);
    let ports = [
        PortMapping {
            host_port: 8080,
            container_port: 80,
            protocol: Protocol::Tcp,
            host_ip: None,
        },
        PortMapping {
            host_port: 53,
            container_port: 53,
            protocol: Protocol::Udp,
            host_ip: Some("192.0.2.1".parse().unwrap()),
        },
    ];
    assert_eq!(found.port_mappings, ports);
    let wanted = json!({
        "ips": ["10.0.0.5/24", "fd00::5"], "mac": "02:00:00:00:00:01",
        "infinibandGUID": "c2:11:22:33:44:55:66:77", "deviceID": "0000:03:02.1",
        "portMappings": [
            {"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
            {"hostPort": 53, "containerPort": 53, "protocol": "udp", "hostIP": "192.0.2.1"},
        ],
        "bandwidth": {"ingressRate": 10_000_000_000_u64, "ingressBurst": 1, "egressRate": 5},
    });
    assert_eq!(serde_json::Value::Object(found.runtime_config()), wanted);
}

#[test]
fn absent_and_empty() {
    let found = networks(&element("default-route", json!([])), "n").unwrap();
    assert_eq!(found[0].default_route, Some(Vec::new()));
    for key in [
        "ips",
        "mac",
        "interface",
        "bandwidth",
        "cni-args",
        "default-route",
    ] {
        let found = networks(&element(key, json!(null)), "n").unwrap();
        assert_eq!(found[0], NetworkSelection::named("n", "a"), "{key}");
    }
    assert_eq!(networks("[]", "n").unwrap(), []);
    let claim = networks(&element("ipam-claim-reference", json!("c1")), "n").unwrap();
    assert_eq!(claim[0].ipam_claim.as_deref(), Some("c1"));
}

#[test]
fn elements_refused() {
    for (key, value, cause) in [
        ("ips", json!([]), "[0].ips: is empty"),
        ("ips", json!("10.0.0.1"), "must be a list"),
        ("ips", json!(["x"]), "ips[0]: \"x\" is not an IP address"),
        ("ips", json!(["10.0.0.1/33"]), "10.0.0.1/33"),
        (
            "ips",
            json!(["10.0.0.1", "10.0.0.1/24"]),
            "has 10.0.0.1 twice",
        ),
        ("mac", json!("zz"), "MAC address"),
        ("mac", json!("01:00:00:00:00:00"), "unicast"),
        ("mac", json!(5), "must be a string"),
        ("interface", json!("a b"), "interface name"),
        ("interface", json!(".."), "interface name"),
        ("namespace", json!("A"), "namespace"),
        ("namespace", json!("a/b"), "namespace"),
        ("infiniband-guid", json!("c2:11"), "is not a GUID"),
        (
            "infiniband-guid",
            json!("c2:11:22:33:44:55:66:7g"),
            "is not a GUID",
        ),
        ("cni-args", json!([1]), "must be an object"),
        ("portMappings", json!([]), "is empty"),
        ("portMappings", json!([{}]), "hostPort: is missing"),
        (
            "portMappings",
            json!([{"hostPort": 0, "containerPort": 1}]),
            "is 0: write a port",
        ),
        (
            "portMappings",
            json!([{"hostPort": 1, "containerPort": 65536}]),
            "is 65536",
        ),
        (
            "portMappings",
            json!([{"hostPort": 1, "containerPort": 1, "protocol": "icmp"}]),
            "tcp, udp or sctp",
        ),
        (
            "portMappings",
            json!([{"hostPort": 1, "containerPort": 1, "hostIp": "::"}]),
            "did you mean \"hostIP\"?",
        ),
        ("bandwidth", json!({"ingressRate": 0}), "is 0"),
        ("bandwidth", json!({"egressBurst": 1}), "needs egressRate"),
        (
            "bandwidth",
            json!({"egressRate": -1}),
            "egressRate: must be",
        ),
        ("bandwidth", json!({"rate": 1}), "is not a known key"),
        ("default-route", json!("10.0.0.1"), "must be a list"),
        (
            "default-route",
            json!(["10.0.0.1/24"]),
            "is not an IP address",
        ),
        ("ipam-claim-reference", json!("a/b"), "name of an object"),
        ("deviceID", json!({}), "must be a string"),
        ("intrface", json!("x"), "did you mean \"interface\"?"),
        ("unknown", json!(1), "is not a known key"),
    ] {
        refused(&element(key, value), cause);
    }
}

#[test]
fn lists_refused() {
    for (text, cause) in [
        (r#"{"name":"a"}"#, "not a list"),
        (r#""a""#, "not a list"),
        (r#"["a"]"#, "must be an object"),
        ("[1, null]", "[1]: must be an object"),
        ("[{}]", "name: is missing"),
        (r#"[{"name":""}]"#, "name: is missing"),
        (r#"[{"name":7}]"#, "name: must be a string"),
        (r#"[{"name":"a/b/c"}]"#, "\"b/c\""),
        (
            r#"[{"name":"x/a","namespace":"y"}]"#,
            "namespace: is \"y\", but \"name\" says \"x\"",
        ),
        (r#"[{"name":"a","name":"b"}]"#, "occurs twice"),
        (r#"[{"name":"a""#, "not valid JSON"),
        ("[{'name':'a'}]", "not valid JSON"),
        ("net-a,{", "not valid JSON"),
        (r#"[{"name":"a"}] x"#, "not valid JSON"),
        (
            r#"[{"name":"a","interface":"x"},{"name":"b","interfaceRequest":"x"}]"#,
            "asked for twice",
        ),
        (
            r#"[{"name":"a","interface":"x","interfaceRequest":"y"}]"#,
            "keep one of them",
        ),
        (
            r#"[{"name":"a","default-route":[]},{"name":"b","default-route":["::1"]}]"#,
            "is in element 0 too",
        ),
        (
            r#"[{"name":"a","ips":["::1"],"ipam-claim-reference":"c"}]"#,
            "exclude each other",
        ),
    ] {
        refused(text, cause);
    }
    let many: Vec<_> = (0..65).map(|_| json!({"name": "a"})).collect();
    refused(&json!(many).to_string(), "at most 64");
    let wrong: Vec<_> = (0..64)
        .map(|_| json!({"a": 1, "b": 2, "name": "?"}))
        .collect();
    refused(&json!(wrong).to_string(), "more problems");
    refused(&"[".repeat(200_000), "recursion limit");
    refused(&format!("[\"{}\"]", "x".repeat(300_000)), "bytes");
}

#[test]
fn our_own_list() {
    for text in [
        "net1, b/net2",
        r#"["net1", "b/net2"]"#,
        r#"[{"name": "net1"}, {"name": "net2", "namespace": "b"}]"#,
        r#"["net1", {"name": "b/net2"}]"#,
    ] {
        let found = plexus_networks(text, "a").unwrap();
        let wanted = [
            NetworkSelection::named("a", "net1"),
            NetworkSelection::named("b", "net2"),
        ];
        assert_eq!(found, wanted, "{text}");
    }
    for text in [
        r#"[1]"#,
        r#"["a",]"#,
        r#"["a/b/c"]"#,
        r#"{"a":1}"#,
        "a b",
        r#"[""]"#,
    ] {
        let error = plexus_networks(text, "a").unwrap_err().to_string();
        assert!(error.starts_with(PLEXUS_NETWORKS), "{error}");
    }
}

fn fq(project: &str, name: &str) -> FqName {
    FqName {
        project: project.to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn fully_qualified_names() {
    let two = [fq("project-a", "network-a"), fq("project-b", "network-b")];
    for text in [
        r#"[
        {"domain": "default-domain", "project": "project-a", "name": "network-a"},
        {"domain": "default-domain", "project": "project-b", "name": "network-b"}
        ]"#,
        "[{'domain': 'default-domain', 'project': 'project-a', 'name': 'network-a'},
          {u'domain': u'default-domain', u'project': u'project-b', u'name': u'network-b'}]",
    ] {
        assert_eq!(contrail_networks(text).unwrap(), two, "{text}");
    }
    let one = [fq("k8s-extns", "k8s-extns-pod-network")];
    for text in [
        r#"{"domain":"default-domain", "project": "k8s-extns", "name":"k8s-extns-pod-network"}"#,
        "{'domain':'default-domain', 'project': 'k8s-extns', 'name':'k8s-extns-pod-network'}",
    ] {
        assert_eq!(contrail_networks(text).unwrap(), one, "{text}");
    }
    assert_eq!(contrail_networks("").unwrap(), []);
    assert_eq!(contrail_networks("[]").unwrap(), []);
}

#[test]
fn fully_qualified_names_refused() {
    for (text, cause) in [
        ("network-a", "not valid JSON"),
        ("'network-a'", "must be a dictionary"),
        ("['a']", "[0]: must be an object"),
        ("{}", "[0].domain: is missing"),
        (
            "{'domain': 'default-domain', 'project': 'p'}",
            "name: is missing",
        ),
        (
            "{'domain': 'd', 'project': 'p', 'name': 'n'}",
            "domain: is \"d\"",
        ),
        (
            "{'domain': 1, 'project': 'p', 'name': 'n'}",
            "domain: must be a string",
        ),
        (
            "{'domain': 'default-domain', 'project': 'P', 'name': 'n'}",
            "project: \"P\"",
        ),
        (
            "{'domain': 'default-domain', 'project': 'p/q', 'name': 'n'}",
            "project: \"p/q\"",
        ),
        (
            "{'domain': 'default-domain', 'project': 'p', 'name': '../n'}",
            "name: \"../n\"",
        ),
        (
            "{'domain': 'default-domain', 'project': 'p', 'name': 'n', 'x': 1}",
            "x: is not a known",
        ),
        (
            "{'domain': 'default-domain', 'domain': 'default-domain'}",
            "twice",
        ),
        ("[__import__('os').system('x')]", "neither JSON nor"),
    ] {
        let error = contrail_networks(text).unwrap_err().to_string();
        assert!(error.contains(cause), "{text}\n{error}");
        assert!(error.starts_with(CONTRAIL_NETWORK), "{error}");
    }
    assert!(contrail_networks(&"[".repeat(300_000)).is_err());
    let many = vec!["{'domain':'default-domain','project':'p','name':'n'}"; 65].join(",");
    let error = contrail_networks(&format!("[{many}]")).unwrap_err();
    assert!(error.to_string().contains("at most 64"));
}

#[test]
fn who_has_the_default_route() {
    let both = default_gw(" blue ").unwrap();
    assert_eq!(
        (both.v4.as_deref(), both.v6.as_deref()),
        (Some("blue"), Some("blue"))
    );
    assert_eq!(default_gw("\"blue\"").unwrap(), both);
    let one = default_gw(r#"{"4": "net1"}"#).unwrap();
    assert_eq!((one.v4.as_deref(), one.v6.as_deref()), (Some("net1"), None));
    for text in ["", "  ", r#"{"5": "x"}"#, "{", r#"{"4": 1}"#] {
        let error = default_gw(text).unwrap_err().to_string();
        assert!(error.starts_with(DEFAULT_GW), "{text}: {error}");
    }
}

#[test]
fn one_default_network() {
    let one = default_network("ns/a", "kube-system").unwrap();
    assert_eq!(one, NetworkSelection::named("ns", "a"));
    for text in ["", "a,b", "[]"] {
        let error = default_network(text, "n").unwrap_err().to_string();
        assert!(error.contains("exactly one"), "{text}: {error}");
    }
}
