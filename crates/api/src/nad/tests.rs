//! Definitions, as the seed writes them and as they go wrong.

use super::*;
use crate::pod::CONTRAIL_NETWORK;
use std::collections::BTreeMap;

fn annotations(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    list.iter().map(owned).collect()
}

#[test]
fn both_quotings_of_the_seed() {
    let typographic = "{\n    “cniVersion”: “0.3.0”,\n    \"type\": \"contrail-k8s-cni\"\n}";
    let straight = r#"{"cniVersion": "0.3.0", "type": "contrail-k8s-cni"}"#;
    let (config, warnings) = super::config(typographic).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("typographic quotes"), "{warnings:?}");
    assert_eq!(super::config(straight).unwrap(), (config.clone(), vec![]));
    assert!(is_named(&config));
    assert_eq!(named(&config).unwrap(), None);
}

#[test]
fn quotes_inside_of_text_stay() {
    let text = r#"{"type": "x", "note": "a “word”"}"#;
    let (config, warnings) = config(text).unwrap();
    assert_eq!(config["note"], "a “word”");
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn hostile_configurations() {
    for (text, cause) in [
        ("", "is empty"),
        (" \n", "is empty"),
        ("[]", "not an object"),
        ("\"x\"", "not an object"),
        ("{", "not valid JSON"),
        ("{“a”: ”}", "not valid JSON"),
        (r#"{"type":"a","type":"b"}"#, "occurs twice"),
        ("{“type”: “a”, \"type\": \"b\"}", "occurs twice"),
        ("{'type': 'a'}", "not valid JSON"),
    ] {
        let error = config(text).unwrap_err().to_string();
        assert!(error.contains(cause), "{text}: {error}");
        assert!(error.starts_with("spec.config: "), "{error}");
    }
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_CONFIG));
    assert!(config(&large).unwrap_err().to_string().contains("bytes"));
    assert!(config(&"[".repeat(100_000)).is_err());
}

#[test]
fn a_list_of_one_is_that_one() {
    let text = r#"{"cniVersion":"0.3.1","name":"n","plugins":[{"type":"plexus-cni"}]}"#;
    let (config, _) = config(text).unwrap();
    assert_eq!(config["type"], "plexus-cni");
    assert_eq!(config["name"], "n");
    assert!(is_named(&config));
}

#[test]
fn what_only_names_a_network() {
    let read = |text: &str| config(text).unwrap().0;
    for (text, wanted) in [
        (r#"{"type":"plexus-cni"}"#, true),
        (
            r#"{"type":"contrail-k8s-cni","contrail":{"mtu":1500}}"#,
            true,
        ),
        (
            r#"{"type":"plexus-cni","capabilities":{"mac":true},"args":{}}"#,
            true,
        ),
        (
            r#"{"type":"plexus-cni","network":{"domain":"default-domain"}}"#,
            true,
        ),
        (r#"{"type":"plexus-cni","foo":1}"#, true),
        (r#"{"type":"plexus-cni","provider":"macvlan"}"#, false),
        (r#"{"type":"plexus-cni","Provider":"macvlan"}"#, false),
        (r#"{"type":"plexus-cni","provder":"macvlan"}"#, false),
        (r#"{"type":"plexus-cni","master":"eth1"}"#, false),
        (r#"{"type":"plexus-cni","ipam":{}}"#, false),
        (r#"{"type":"plexus-cni","network":[]}"#, false),
        (r#"{"type":"plexus-cni","networks":"pod"}"#, false),
        (r#"{"type":"macvlan"}"#, false),
        (r#"{"type":"multi-nic","subnet":"10.0.0.0/8"}"#, true),
        (r#"{"type":"multi-nic","provider":"macvlan"}"#, false),
        (
            r#"{"plugins":[{"type":"plexus-cni"},{"type":"tuning"}]}"#,
            false,
        ),
        ("{}", false),
    ] {
        assert_eq!(is_named(&read(text)), wanted, "{text}");
    }
    let fq =
        r#"{"type":"plexus-cni","network":{"domain":"default-domain","project":"p","name":"n"}}"#;
    assert_eq!(named(&read(fq)).unwrap().unwrap().project, "p");
    for (text, cause) in [
        (
            r#"{"type":"plexus-cni","foo":1}"#,
            "spec.config.foo: is not a known key",
        ),
        (
            r#"{"type":"plexus-cni","network":"n"}"#,
            "network: must be an object",
        ),
        (
            r#"{"type":"plexus-cni","network":{"name":"n"}}"#,
            "network.domain: is missing",
        ),
        (
            r#"{"type":"plexus-cni","contrail":{"vif":1}}"#,
            "contrail.vif: is not a known key",
        ),
        (
            r#"{"type":"plexus-cni","contrail":7}"#,
            "contrail: must be an object",
        ),
        (
            r#"{"type":"plexus-cni","cniVersion":"7.0.0"}"#,
            "cniVersion",
        ),
        (
            r#"{"type":"plexus-cni","sourceRouting":true}"#,
            "sourceRouting",
        ),
    ] {
        let error = named(&read(text)).unwrap_err().to_string();
        assert!(error.contains(cause), "{text}: {error}");
    }
}

#[test]
fn options_of_the_original_are_warned_about() {
    let text = r#"{"type":"contrail-k8s-cni","contrail":{"cluster-name":"k8s","mode":"k8s",
        "meta-plugin":"multus","vif-type":"veth","parent-interface":"eth0","mtu":1500,
        "vrouter-ip":"127.0.0.1","vrouter-port":9091,"config-dir":"/var/lib/contrail/ports/vm",
        "poll-timeout":3,"poll-retries":20,"log-level":"4","log-file":"/var/log/x"}}"#;
    let (config, warnings) = config(text).unwrap();
    assert!(warnings[0].contains("no meaning here"), "{warnings:?}");
    assert_eq!(named(&config).unwrap(), None);
}

#[test]
fn contrail_annotations() {
    let read = Contrail::read(&annotations(&[
        (CIDR, "['10.1.1.0/24']"),
        (SNAT, "False"),
        (FORWARDING, "True"),
        ("other.org/x", "y"),
    ]))
    .unwrap();
    assert_eq!(read.cidrs, ["10.1.1.0/24".parse().unwrap()]);
    assert_eq!((read.snat, read.forwarding), (false, true));
    assert_eq!(read.warnings, Vec::<String>::new());
    let spec = read.spec();
    assert_eq!(spec.provider.as_deref(), Some("routed"));
    assert!(spec.problems().0.is_empty(), "{}", spec.problems());
    for text in [
        "10.1.1.0/24,fd00::/64",
        "[10.1.1.0/24, fd00::/64]",
        "['10.1.1.0/24', \"fd00::/64\",]",
        "[“10.1.1.0/24”,‘fd00::/64’]",
    ] {
        let read = Contrail::read(&annotations(&[(CIDR, text), (SNAT, "true")])).unwrap();
        assert_eq!(read.cidrs.len(), 2, "{text}");
        let spec = read.spec();
        assert_eq!(spec.provider.as_deref(), Some("overlay"));
        assert!(spec.snat && spec.source_check);
        let cidrs: Vec<_> = spec.subnets.values().map(|subnet| subnet.cidr).collect();
        assert_eq!(cidrs, read.cidrs);
    }
    assert_eq!(
        Contrail::read(&annotations(&[])).unwrap(),
        Contrail::default()
    );
    let there =
        r#"{"domain":"default-domain", "project": "k8s-extns", "name":"k8s-extns-pod-network"}"#;
    let read = Contrail::read(&annotations(&[(CONTRAIL_NETWORK, there)])).unwrap();
    assert_eq!(read.network.unwrap().project, "k8s-extns");
    let read = Contrail::read(&annotations(&[("opencontrail.org/fip-pool", "x")])).unwrap();
    assert!(read.warnings[0].contains("fip-pool"));
}

#[test]
fn hostile_contrail_annotations() {
    let dictionary = "{'domain':'default-domain','project':'p','name':'n'}";
    for (list, cause) in [
        (vec![(CIDR, "")], "must have 1 to 64"),
        (vec![(CIDR, "[]")], "must have 1 to 64"),
        (vec![(CIDR, "10.1.1.0")], "cidr[0]"),
        (vec![(CIDR, "10.1.1.7/24")], "write 10.1.1.0/24"),
        (vec![(CIDR, "10.1.1.0/24,10.1.1.0/24")], "occurs twice"),
        (vec![(CIDR, "['10.1.1.0/24")], "is not an address"),
        (vec![(SNAT, "yes")], "ip_fabric_snat: is \"yes\""),
        (vec![(FORWARDING, "")], "ip_fabric_forwarding: is \"\""),
        (vec![(CONTRAIL_NETWORK, "[]")], "exactly one"),
        (
            vec![(CONTRAIL_NETWORK, dictionary), (CIDR, "10.0.0.0/8")],
            "exclude each other",
        ),
        (
            vec![(CIDR, "x"), (SNAT, "y"), (FORWARDING, "z")],
            "ip_fabric_forwarding: is \"z\"",
        ),
    ] {
        let error = Contrail::read(&annotations(&list)).unwrap_err().to_string();
        assert!(error.contains(cause), "{list:?}: {error}");
    }
    let flood = "10.0.0.0/8,".repeat(20_000);
    let error = Contrail::read(&annotations(&[(CIDR, &flood)])).unwrap_err();
    assert!(error.to_string().len() < 500);
}
