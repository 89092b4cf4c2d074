//! Real definitions: those that are installed, and those that come with this room.

use super::{Kind, Kinds};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Everything that the product's server has.
fn all() -> Kinds {
    // Asked at run time: clones that share a build directory share this binary too.
    let room = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let folder = Path::new(&room).join("../../deploy/crds");
    let mut kinds = Kinds::builtin().unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let definition: Value = serde_yaml_ng::from_str(&text).unwrap();
        kinds = kinds.with_crd(&definition).unwrap();
    }
    kinds.with_alias(crate::alias::CORE_NETWORK).unwrap()
}

fn kind(group: &str, version: &str, plural: &str) -> Arc<Kind> {
    Arc::clone(all().get(group, version, plural).unwrap())
}

/// What its schema drops and refuses.
fn refused(kind: &Kind, mut object: Value) -> (Vec<String>, Vec<String>) {
    let schema = kind.schema.as_ref().unwrap();
    let mut unknown = kind.prune_typed(&mut object).unwrap();
    unknown.extend(schema.prune(&mut object));
    schema.default(&mut object);
    let causes = schema.validate(&object);
    (unknown, causes.iter().map(ToString::to_string).collect())
}

#[test]
fn the_installed_definitions_are_kinds() {
    let kinds = all();
    let networks = kinds.get("plexus.dev", "v1alpha1", "networks").unwrap();
    assert!(networks.namespaced && networks.has_status && networks.has_generation);
    assert_eq!(networks.short, ["pnet"]);
    let columns: Vec<&str> = networks
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(
        columns,
        ["Provider", "Phase", "VNI", "Blocks", "Allocated", "Age"]
    );
    assert!(
        !kinds
            .get("plexus.dev", "v1alpha1", "blocks")
            .unwrap()
            .namespaced
    );
    let old = kinds
        .get("k8s.cni.cncf.io", "v1", "network-attachment-definitions")
        .unwrap();
    assert!(!old.has_status);
    for definition in crate::crds::served(&kinds) {
        assert_eq!(crate::crds::check(&kinds, &definition), []);
    }
}

#[test]
fn the_proposals_network_is_taken_as_written() {
    let kinds = all();
    let alias = kinds.get("", "v1", "networks").unwrap();
    let written = json!({
        "apiVersion": "v1", "kind": "Network", "metadata": {"name": "net1"},
        "spec": {
            "provider": "mycorp/fancy-network-provider",
            "uuid": "2a9aafcc-6041-4fb8-9006-1f6095102850",
            "subnets": {
                "subnet1": {"cidr": "192.168.0.0/24", "gateway": "192.168.0.1"},
                "subnet2": {"cidr": "192.168.1.0/24", "gateway": "192.168.1.1"},
            },
        },
    });
    let stored = crate::alias::CORE_NETWORK.inward(&written);
    let none = (Vec::<String>::new(), Vec::<String>::new());
    assert_eq!(refused(kinds.stored_as(alias), stored), none);
    assert_eq!(refused(alias, written), none);
}

#[test]
fn a_network_on_every_nic_is_taken_as_its_document_has_it() {
    let networks = kind("net.cogadvisor.io", "v1", "multinicnetworks");
    let mut network = json!({
        "apiVersion": "net.cogadvisor.io/v1", "kind": "MultiNicNetwork", "metadata": {"name": "a"},
        "spec": {
            "subnet": "192.168.0.0/16", "multiNICIPAM": true,
            "ipam": "{\"type\": \"multi-nic-ipam\", \"hostBlock\": 6, \"interfaceBlock\": 2}",
            "masterNets": ["10.0.1.0/24", "10.0.2.0/24"],
        },
    });
    assert_eq!(refused(&networks, network.clone()), (vec![], vec![]));
    network["spec"]["plugin"] = json!({"type": "ipvlan", "args": {"mode": 3}});
    network["spec"]["subnets"] = json!([]);
    let (unknown, causes) = refused(&networks, network);
    assert_eq!(unknown, ["spec.subnets"]);
    assert_eq!(causes.len(), 1, "{causes:?}");
}

#[test]
fn a_cni_configuration_is_taken_as_its_document_has_it() {
    let configs = kind("cni.networking.x-k8s.io", "v1alpha1", "cniconfigs");
    let plugin = json!({
        "type": "macvlan",
        "config": {"mode": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.10.1.0/24"}]]}},
        "arguments": [{"fieldPath": "master", "valueFrom": null, "attributeRef": "name"}],
    });
    let mut config = json!({
        "apiVersion": "cni.networking.x-k8s.io/v1alpha1", "kind": "CNIConfig",
        "metadata": {"name": "macvlan-host-local"},
        "spec": {
            "apiVersion": "cni.networking.x-k8s.io/v1alpha1", "kind": "CNI", "ifName": "net1",
            "cniVersion": "1.0.0", "plugins": [plugin],
        },
    });
    assert_eq!(refused(&configs, config.clone()), (vec![], vec![]));
    let from = json!({"configMapKeyRef": {"name": "m", "resourceSliceFieldKey": {"fieldPath": "spec.nodeName"}}});
    config["spec"]["plugins"][0]["arguments"][0]["valueFrom"] = from;
    assert_eq!(refused(&configs, config.clone()), (vec![], vec![]));
    config["spec"]["plugins"][0]["arguments"][0]["valueFrom"] = json!({"secret": 1});
    config["spec"]["plugins"][0]["type"] = Value::Null;
    let (unknown, causes) = refused(&configs, config);
    assert_eq!(unknown, ["spec.plugins[0].arguments[0].valueFrom.secret"]);
    assert_eq!(causes.len(), 1, "{causes:?}");
}
