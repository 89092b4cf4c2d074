//! The answers, field by field, from records as the journal has them.

use super::*;
use crate::journal::Details;
use plexus_types::NetnsCookie;

const UID: &str = "40936d96-cf0e-11e8-9892-002590aaa964";
const BLUE: &str = "f95af4cc-e4ba-44c8-9936-269d891e0ee9";

fn attachments() -> Vec<AttachmentRecord> {
    let native = |network: &str,
                  ifname: &str,
                  (end, mac): (&str, &str),
                  routes: Value,
                  ips: Value| {
        let link = json!({"name": ifname, "alias": "", "mac": mac, "routes": routes,
            "kind": {"veth": {"name": end, "mac": "02:00:00:00:00:01", "alias": ""}}});
        json!({"network": network, "ifname": ifname, "backend": {"native": {
            "provider": "routed", "addresses": {"ips": ips, "routes": [], "dns": {}}, "link": link}}})
    };
    let origin = |mut attachment: Value, origin: Value| {
        attachment["origin"] = origin;
        attachment
    };
    let eth0 = native(
        "cluster-default",
        "eth0",
        ("pxaaaa", "02:b8:6a:c0:68:cf"),
        json!([{"dst": "0.0.0.0/0", "via": "169.254.1.1"}]),
        json!([{"address": "10.47.255.250/32", "gateway": "169.254.1.1"}]),
    );
    let net1 = native(
        "blue",
        "net1",
        ("pxbbbb", "02:d8:da:c0:68:aa"),
        json!([]),
        json!([{"address": "30.1.1.252/24", "gateway": "30.1.1.254"}, {"address": "fd00::7/64", "gateway": "fd00::1"}]),
    );
    let net2 = json!({"network": "red", "ifname": "net2", "backend": {"plugins": {"version": "1.0.0",
        "plugins": [], "runtime": {}, "begun": 1, "results": [{
            "interfaces": [{"name": "veth9", "mac": null, "mtu": null, "sandbox": null, "socket_path": null, "pci_id": null},
                {"name": "net2", "mac": "02:00:00:00:00:09", "mtu": null, "sandbox": "/n", "socket_path": null, "pci_id": null}],
            "ips": [], "routes": [], "dns": {"nameservers": ["2001:db8::53"]}}]}}});
    let all = [
        origin(
            eth0,
            json!({"index": 0, "total": 3, "namespace": "", "name": "cluster-default", "uuid": "cluster-default", "source": "",
                "subnets": [["10.32.0.0/12", "10.47.255.254"]]}),
        ),
        origin(
            net1,
            json!({"index": 1, "total": 3, "namespace": "team-a", "name": "blue", "uuid": BLUE, "source": "k8s.v1.cni.cncf.io/networks"}),
        ),
        origin(
            net2,
            json!({"index": 2, "total": 3, "namespace": "team-b", "name": "red", "uuid": "", "source": "plexus.dev/networks"}),
        ),
    ];
    let read = |(reference, value)| AttachmentRecord {
        reference,
        ..serde_json::from_value(value).unwrap()
    };
    all.into_iter().enumerate().map(read).collect()
}

fn stored(state: State) -> Stored {
    Stored {
        record: Record {
            container: "c1".parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
            network: "plexus".parse().unwrap(),
            pod_uid: Some(UID.to_owned()),
            boot: "boot".to_owned(),
            cookie: NetnsCookie(1),
            netns: "/run/netns/c1".to_owned(),
            details: Details {
                pod: Some("team-a/web".to_owned()),
                ..Details::default()
            },
            attachments: attachments(),
        },
        state,
        result: None,
    }
}

fn ask(path: &str, stored: &[Stored]) -> Option<Value> {
    let response = answer(&question(path).unwrap(), stored, "k8s");
    match response.status {
        200 => Some(serde_json::from_str(&response.body).unwrap()),
        404 => None,
        status => panic!("{status}: {}", response.body),
    }
}

#[test]
fn which_interfaces_a_pod_is_to_have() {
    let all = ask(&format!("/vm-cfg/{UID}"), &[stored(State::Done)]).unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 3);
    let id = all[1]["id"].as_str().unwrap();
    let expected = json!({
        "id": id, "instance-id": UID, "vm-uuid": UID, "vn-id": BLUE, "vn-name": "blue",
        "mac-address": "02:d8:da:c0:68:aa", "sub-interface": false, "vlan-id": 65535,
        "annotations": {
            "index": "1/3", "network": "blue", "network-namespace": "team-a", "interface": "net1",
            "default-gw": "false", "cluster": "k8s", "kind": "Pod", "namespace": "team-a", "name": "web",
        },
    });
    assert_eq!(all[1], expected);
    assert_eq!(all[0]["annotations"]["network"], "default");
    assert_eq!(all[0]["annotations"]["default-gw"], "true");
    for one in all {
        for field in ["id", "vn-id"] {
            let uuid = one[field].as_str().unwrap();
            assert_eq!(
                (uuid.len(), uuid.matches('-').count()),
                (36, 4),
                "{field}: {uuid}"
            );
        }
    }
    assert_ne!(all[0]["vn-id"], all[2]["vn-id"]);
}

#[test]
fn which_interfaces_a_pod_has() {
    let pod = [stored(State::Done)];
    let all = ask(&format!("/vm/{UID}"), &pod).unwrap();
    let first = &all[0];
    for (field, value) in [
        ("instance-id", json!(UID)),
        ("vhostuser-mode", json!(0)),
        ("system-name", json!("pxaaaa")),
        ("mac-address", json!("02:b8:6a:c0:68:cf")),
        ("rx-vlan-id", json!(65535)),
        ("tx-vlan-id", json!(65535)),
        ("ip-address", json!("10.47.255.250")),
        ("plen", json!(12)),
        ("dns-server", json!("")),
        ("gateway", json!("10.47.255.254")),
        ("v6-ip-address", json!("::")),
        ("v6-plen", json!(0)),
        ("v6-dns-server", json!("::")),
        ("v6-gateway", json!("::")),
        ("vm-project-id", json!(NO_PROJECT)),
    ] {
        assert_eq!(first[field], value, "{field}");
    }
    assert_eq!(all[1]["v6-ip-address"], "fd00::7");
    assert_eq!(all[1]["v6-plen"], 64);
    assert_eq!(all[1]["v6-gateway"], "fd00::1");
    assert_eq!(all[1]["gateway"], "30.1.1.254");
    assert_eq!(all[2]["system-name"], "veth9");
    assert_eq!(all[2]["ip-address"], "0.0.0.0");
    assert_eq!(all[2]["v6-dns-server"], "2001:db8::53");
    let id = all[2]["id"].as_str().unwrap();
    let one = ask(&format!("/vm/{UID}/{id}"), &pod).unwrap();
    assert_eq!(one["mac-address"], "02:00:00:00:00:09");
    assert_eq!(ask(&format!("/vm/{UID}/{NO_PROJECT}"), &pod), None);
}

#[test]
fn all_or_nothing() {
    let path = format!("/vm/{UID}");
    assert_eq!(ask(&path, &[]), None);
    assert_eq!(ask(&path, &[stored(State::Intent)]), None);
    assert_eq!(ask(&path, &[stored(State::Deleting)]), None);
    assert_eq!(
        ask(&path, &[stored(State::Done), stored(State::Intent)]),
        None
    );
    let old_and_new = [stored(State::Deleting), stored(State::Done)];
    assert_eq!(
        ask(&path, &old_and_new).unwrap().as_array().unwrap().len(),
        3
    );
}

#[test]
fn paths() {
    let uid = Pod::Uid("x");
    for (path, meant) in [
        ("/vm-cfg/x", Some(Question::Config(uid))),
        (
            "/vm-cfg/k8s__ns__pod",
            Some(Question::Config(Pod::Name("k8s", "ns", "pod"))),
        ),
        ("/vm-cfg/a__b", Some(Question::Config(Pod::Uid("a__b")))),
        (
            "/vm-cfg/a__b__c__d",
            Some(Question::Config(Pod::Uid("a__b__c__d"))),
        ),
        ("/vm/x", Some(Question::State(uid, None))),
        ("/vm/x/y", Some(Question::State(uid, Some("y")))),
        ("/vm/x/", None),
        ("/vm/x/y/z", None),
        ("/vm/", None),
        ("/vm", None),
        ("/vm-cfg/", None),
        ("/vm-cfg/x/y", None),
        ("/vm//y", None),
        ("/port/x", None),
    ] {
        assert_eq!(question(path), meant, "{path}");
    }
}

#[test]
fn times_are_written_as_contrail_does() {
    assert_eq!(
        time(Duration::new(426_404 * 3600 + 56 * 60 + 19, 863_169_000)),
        "426404:56:19.863169"
    );
}
