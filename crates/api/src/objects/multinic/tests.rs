//! The objects as they are written: the seed's, the original's, and ours.

use super::*;
use serde_json::{Value, json};

fn back<T: serde::Serialize + serde::de::DeserializeOwned>(value: &Value) -> Value {
    let read: T = serde_json::from_value(value.clone()).unwrap();
    serde_json::to_value(read).unwrap()
}

#[test]
fn the_seeds_network_is_read_and_written_as_it_is() {
    let spec = json!({
        "subnet": "192.168.0.0/16",
        "ipam": "{\"type\": \"multi-nic-ipam\", \"hostBlock\": 6, \"interfaceBlock\": 2, \"vlanMode\": \"l3\"}",
        "multiNICIPAM": true,
        "masterNets": ["10.0.1.0/24", "10.0.2.0/24"],
    });
    assert_eq!(back::<MultiNicNetworkSpec>(&spec), spec);
    let full = json!({
        "ipam": "{}", "namespaces": ["a"], "onNicDown": "skip",
        "plugin": {"cniVersion": "0.3.0", "type": "macvlan", "capabilities": {"mac": true},
            "dns": {"nameservers": ["10.0.0.53"]}, "args": {"mode": "bridge"}},
        "attachPolicy": {"strategy": "none", "target": "10Gbps"},
    });
    assert_eq!(back::<MultiNicNetworkSpec>(&full), full);
    let plain: MultiNicNetworkSpec =
        serde_json::from_value(json!({"ipam": "{}", "plugin": {}})).unwrap();
    assert_eq!(plain.plugin, Some(PluginSpec::default()));
}

#[test]
fn a_host_interface_has_the_originals_fields_and_ours() {
    let originals = json!({"hostName": "n1", "interfaces": [{"interfaceName": "eth1",
        "netAddress": "10.0.1.0/24", "hostIP": "10.0.1.1", "vendor": "1d0f", "product": "efa1",
        "pciAddress": "0000:08:00.0"}]});
    assert_eq!(back::<HostInterfaceSpec>(&originals), originals);
    let read: HostInterfaceSpec = serde_json::from_value(originals).unwrap();
    let addresses = read.interfaces[0].all_addresses();
    assert_eq!(addresses, ["10.0.1.1/24".parse().unwrap()]);
    let ours = json!({"hostName": "n1", "interfaces": [{"interfaceName": "bond0", "netAddress": "10.0.1.0/24",
        "hostIP": "10.0.1.1", "addresses": ["10.0.1.1/24", "fd00::1/64"], "mac": "02:00:00:00:00:01",
        "speed": 100_000, "mtu": 9000, "numaNode": 1, "state": "down"}]});
    assert_eq!(back::<HostInterfaceSpec>(&ours), ours);
    // As Go writes what it does not know.
    let empty = json!({"hostName": "n1", "interfaces": [{"interfaceName": "ib0", "netAddress": "", "hostIP": ""}]});
    let read: HostInterfaceSpec = serde_json::from_value(empty).unwrap();
    assert_eq!(read.interfaces[0].net_address, None);
    assert!(read.interfaces[0].all_addresses().is_empty());
}

#[test]
fn renderings_have_the_originals_fields() {
    let cidr = json!({
        "config": {"name": "a", "type": "multi-nic-ipam", "subnet": "192.168.0.0/16", "masterNets": [],
            "hostBlock": 6, "interfaceBlock": 2, "excludeCIDRs": [], "vlanMode": "l3"},
        "cidr": [{"netAddress": "10.0.1.0/24", "interfaceIndex": 0, "vlanCIDR": "192.168.0.0/18", "numOfHosts": 1,
            "hosts": [{"hostIndex": 0, "hostName": "n1", "interfaceName": "eth1", "hostIP": "10.0.1.1",
                "podCIDR": "192.168.0.0/24", "ippool": "a-192.168.0.0-24"}]}],
    });
    assert_eq!(back::<CidrSpec>(&cidr), cidr);
    let pool = json!({"podCIDR": "192.168.0.0/24", "vlanCIDR": "192.168.0.0/18", "netAttachDef": "a",
        "hostName": "n1", "interfaceName": "eth1", "excludes": [],
        "allocations": [{"pod": "p", "namespace": "default", "index": 1, "address": "192.168.0.1"}]});
    assert_eq!(back::<IpPoolSpec>(&pool), pool);
}

fn network(change: &Value) -> MultiNicNetworkSpec {
    let mut spec = json!({"subnet": "192.168.0.0/16", "masterNets": ["10.0.1.0/24", "10.0.2.0/24"], "multiNICIPAM": true,
        "ipam": ipam(&json!({}))});
    for (key, value) in change.as_object().unwrap() {
        spec[key] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

fn ipam(change: &Value) -> String {
    let mut ipam =
        json!({"type": "multi-nic-ipam", "hostBlock": 6, "interfaceBlock": 2, "vlanMode": "l3"});
    for (key, value) in change.as_object().unwrap() {
        ipam[key] = value.clone();
    }
    ipam.to_string()
}

#[test]
fn the_seeds_network_means_what_it_says() {
    let meaning = network(&json!({})).meaning().unwrap();
    assert_eq!(meaning.subnets, ["192.168.0.0/16".parse().unwrap()]);
    assert_eq!(meaning.master_nets.len(), 2);
    assert_eq!(meaning.plugin, MultiNicPlugin::Ipvlan);
    let bits = meaning.bits().unwrap();
    assert_eq!((bits.interface, bits.host, bits.mode), (2, 6, VlanMode::L3));
}

#[test]
fn what_is_accepted_beside_the_seeds() {
    for change in [
        // The daemon's address and port have no meaning here.
        json!({"ipam": ipam(&json!({"daemonIP": "10.0.0.1", "daemonPort": 11000}))}),
        json!({"ipam": ipam(&json!({"excludeCIDRs": ["192.168.0.0/24", "192.168.1.1"],
            "routes": [{"dst": "10.9.0.0/16", "gw": "192.168.0.1"}], "dns": {"nameservers": ["10.0.0.53"]}}))}),
        json!({"ipam": ipam(&json!({"routes": [{"dst": "10.9.0.0/16"}, {"dst": "0.0.0.0/0", "gw": "10.9.0.1"}]}))}),
        json!({"multiNICIPAM": null}),
        json!({"subnet": "10.0.0.0/8", "ipam": ipam(&json!({"excludeCIDRs": ["10.0.0.0/16"]}))}),
        // Pods have a part of the NICs' subnet to themselves.
        json!({"subnet": "10.0.1.128/25", "ipam": ipam(&json!({"hostBlock": 2, "interfaceBlock": 0}))}),
        json!({"subnet": "192.168.0.0/16,fd00:1::/48"}),
        json!({"subnet": "fd00:1::/48"}),
        // The least that is left: two bits.
        json!({"ipam": ipam(&json!({"hostBlock": 12}))}),
        json!({"ipam": ipam(&json!({"hostBlock": 14, "interfaceBlock": null}))}),
        json!({"plugin": {"type": "macvlan"}, "ipam": ipam(&json!({"vlanMode": "l2"}))}),
        json!({"subnet": "", "multiNICIPAM": false, "ipam": "{\"type\": \"whereabouts\", \"range\": \"10.0.0.0/24\"}"}),
        json!({"attachPolicy": {"strategy": "none"}, "namespaces": ["team-a"]}),
    ] {
        let read = network(&change).meaning();
        assert!(read.is_ok(), "{change}: {}", read.unwrap_err());
    }
}

#[test]
fn what_is_refused_and_why() {
    for (change, path, text) in [
        (json!({"subnet": ""}), "spec.subnet", "is missing"),
        (
            json!({"subnet": "fd00:1::/48,10.0.0.0/8"}),
            "spec.subnet",
            "10.0.0.0/8 contains 10.0.2.0/24 of masterNets",
        ),
        (
            json!({"subnet": "10.0.1.0/24", "ipam": ipam(&json!({"hostBlock": 2}))}),
            "spec.subnet",
            "write a subnet that no host has addresses of",
        ),
        (
            json!({"subnet": "192.168.1.0/16"}),
            "spec.subnet",
            "host bits",
        ),
        (
            json!({"subnet": "192.168.0.0"}),
            "spec.subnet",
            "prefix length",
        ),
        (
            json!({"subnet": "192.168.0.0/16,10.0.0.0/8"}),
            "spec.subnet",
            "each family",
        ),
        (
            json!({"ipam": ipam(&json!({"hostBlock": 0}))}),
            "spec.ipam.hostBlock",
            "share one block",
        ),
        (
            json!({"ipam": ipam(&json!({"hostBlock": null}))}),
            "spec.ipam.hostBlock",
            "is missing",
        ),
        (
            json!({"ipam": ipam(&json!({"hostBlock": 13}))}),
            "spec.subnet",
            "leave less than 2",
        ),
        (
            json!({"ipam": ipam(&json!({"hostBlock": "6"}))}),
            "spec.ipam.hostBlock",
            "whole number",
        ),
        (
            json!({"ipam": ipam(&json!({"interfaceBlock": 9}))}),
            "spec.ipam.interfaceBlock",
            "at most 8",
        ),
        (
            json!({"ipam": ipam(&json!({"vlanMode": "l4"}))}),
            "spec.ipam.vlanMode",
            "l2, l3 or l3s",
        ),
        (
            json!({"ipam": ipam(&json!({"hostblock": 6}))}),
            "spec.ipam.hostblock",
            "did you mean",
        ),
        (
            json!({"ipam": ipam(&json!({"excludeCIDRs": ["10.0.0.0/24"]}))}),
            "spec.ipam.excludeCIDRs[0]",
            "not inside",
        ),
        (
            json!({"ipam": ipam(&json!({"excludeCIDRs": ["192.168.0.0/8"]}))}),
            "spec.ipam.excludeCIDRs[0]",
            "not inside",
        ),
        (
            json!({"ipam": ipam(&json!({"routes": [{"dst": "10.9.0.0/16"}, {"dst": "10.8.0.0/16", "gw": "10.8.0.1"}]}))}),
            "spec.ipam.routes[1].gw",
            "inside the subnet",
        ),
        (json!({"ipam": "{"}), "spec.ipam", "is not JSON"),
        (json!({"ipam": "[]"}), "spec.ipam", "is not a JSON object"),
        (json!({"ipam": "{}"}), "spec.ipam.type", "is missing"),
        (
            json!({"ipam": "{\"type\": \"multi-config\"}"}),
            "spec.ipam.type",
            "one MultiNicNetwork for each NIC",
        ),
        (
            json!({"ipam": "{\"type\": \"host-device-ipam\"}"}),
            "spec.ipam.type",
            "NetworkAttachmentDefinition",
        ),
        (
            json!({"ipam": "{\"type\": \"whereabouts\"}"}),
            "spec.multiNICIPAM",
            "write false",
        ),
        (
            json!({"multiNICIPAM": false}),
            "spec.multiNICIPAM",
            "write true",
        ),
        (
            json!({"plugin": {"type": "sriov"}}),
            "spec.plugin.type",
            "SR-IOV network operator",
        ),
        (
            json!({"plugin": {"type": "aws-ipvlan"}}),
            "spec.plugin.type",
            "vlanMode l3",
        ),
        (
            json!({"plugin": {"type": "mellanox"}}),
            "spec.plugin.type",
            "host-device",
        ),
        (
            json!({"plugin": {"type": "bridge"}}),
            "spec.plugin.type",
            "ipvlan, macvlan or host-device",
        ),
        (
            json!({"plugin": {"type": "macvlan"}}),
            "spec.ipam.vlanMode",
            "write l2",
        ),
        (
            json!({"plugin": {"type": "ipvlan", "args": {"mode": "l2"}}}),
            "spec.plugin.args.mode",
            "vlanMode is l3",
        ),
        (
            json!({"attachPolicy": {"strategy": "topology"}}),
            "spec.attachPolicy.strategy",
            "ResourceClaim",
        ),
        (
            json!({"attachPolicy": {"strategy": "costOpt"}}),
            "spec.attachPolicy.strategy",
            "write none",
        ),
        (
            json!({"masterNets": ["10.0.1.1/24"]}),
            "spec.masterNets[0]",
            "host bits",
        ),
        (
            json!({"masterNets": ["10.0.1.0/24", "10.0.1.0/24"]}),
            "spec.masterNets[1]",
            "once",
        ),
        (
            json!({"namespaces": ["Team"]}),
            "spec.namespaces[0]",
            "no namespace's name",
        ),
    ] {
        let problems = network(&change).meaning().unwrap_err();
        let named = problems
            .0
            .iter()
            .find(|one| one.path == path && one.text.contains(text));
        assert!(named.is_some(), "{change}: {problems}");
    }
}

#[test]
fn all_problems_at_once() {
    let problems = network(
        &json!({"subnet": "x", "masterNets": ["y"], "plugin": {"type": "sriov"},
        "ipam": ipam(&json!({"hostBlock": 0, "vlanMode": "l9", "nonsense": 1}))}),
    )
    .meaning()
    .unwrap_err();
    let paths: Vec<&str> = problems.0.iter().map(|one| one.path.as_str()).collect();
    for path in [
        "spec.subnet",
        "spec.masterNets[0]",
        "spec.plugin.type",
        "spec.ipam.hostBlock",
        "spec.ipam.vlanMode",
        "spec.ipam.nonsense",
    ] {
        assert!(paths.contains(&path), "{path}: {paths:?}");
    }
}

#[test]
fn the_definitions_configuration() {
    let config: Value = serde_json::from_str(&network(&json!({})).nad_config("sample")).unwrap();
    assert_eq!(
        config,
        json!({"cniVersion": "0.3.1", "name": "sample", "type": "multi-nic",
            "ipam": {"type": "multi-nic-ipam", "hostBlock": 6, "interfaceBlock": 2, "vlanMode": "l3"},
            "plugin": {"type": "ipvlan"}, "subnet": "192.168.0.0/16",
            "masterNets": ["10.0.1.0/24", "10.0.2.0/24"], "multiNICIPAM": true})
    );
}
