//! The CustomResourceDefinitions of all kinds: ours from the Rust types, the NAD's as the standard
//! has it.

use super::{
    Block, BlockRequest, Cidr, HostInterface, IpPool, MULTI_NIC_SUCCESSOR, MultiNicNetwork,
    Network, PodAttachments,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

/// What a table of objects shows: name, type, path.
type Column = (&'static str, &'static str, &'static str);

const NETWORK: [Column; 6] = [
    ("Provider", "string", ".spec.provider"),
    ("Phase", "string", ".status.phase"),
    ("VNI", "integer", ".status.vni"),
    ("Blocks", "integer", ".status.usage.blocks"),
    ("Allocated", "integer", ".status.usage.allocated"),
    AGE,
];
const BLOCK: [Column; 6] = [
    ("Network-Namespace", "string", ".spec.network.namespace"),
    ("Network", "string", ".spec.network.name"),
    ("CIDR", "string", ".spec.cidr"),
    ("Node", "string", ".spec.node"),
    ("Allocated", "integer", ".status.allocated"),
    AGE,
];
const BLOCK_REQUEST: [Column; 5] = [
    ("Network", "string", ".spec.network.name"),
    ("Node", "string", ".spec.node"),
    ("Family", "string", ".spec.family"),
    ("Addresses", "integer", ".spec.addresses"),
    AGE,
];
const ATTACHMENTS: [Column; 4] = [
    ("Pod", "string", ".spec.pod.name"),
    ("Node", "string", ".spec.node"),
    ("Interfaces", "string", ".status.interfaces"),
    AGE,
];
const MULTI_NIC: [Column; 6] = [
    ("Subnet", "string", ".spec.subnet"),
    ("MultiNICIPAM", "boolean", ".spec.multiNICIPAM"),
    ("Config", "string", ".status.configStatus"),
    ("Routes", "string", ".status.routeStatus"),
    ("Message", "string", ".status.message"),
    AGE,
];
const CIDR: [Column; 5] = [
    ("Subnet", "string", ".spec.config.subnet"),
    ("HostBlock", "integer", ".spec.config.hostBlock"),
    ("InterfaceBlock", "integer", ".spec.config.interfaceBlock"),
    ("Mode", "string", ".spec.config.vlanMode"),
    AGE,
];
const HOST_INTERFACE: [Column; 3] = [
    ("Interfaces", "string", ".spec.interfaces[*].interfaceName"),
    ("Addresses", "string", ".spec.interfaces[*].hostIP"),
    AGE,
];
const IP_POOL: [Column; 5] = [
    ("Network", "string", ".spec.netAttachDef"),
    ("Host", "string", ".spec.hostName"),
    ("Interface", "string", ".spec.interfaceName"),
    ("CIDR", "string", ".spec.podCIDR"),
    AGE,
];
const AGE: Column = ("Age", "date", ".metadata.creationTimestamp");

/// The definitions of all kinds, as `kubectl apply` takes them: ours, then the NAD's.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let network = "Something that pods attach to.";
    let block = "A part of a network's subnet that one node hands out addresses from.";
    let request = "A node asks for addresses of a network where no block is free.";
    let attachments = "What a pod is attached to, as its node made it.";
    let ours = [
        finished(Network::crd(), network, &NETWORK),
        finished(Block::crd(), block, &BLOCK),
        finished(BlockRequest::crd(), request, &BLOCK_REQUEST),
        finished(PodAttachments::crd(), attachments, &ATTACHMENTS),
    ];
    let all = ours.into_iter().chain(multi_nic());
    all.chain(nad()).collect()
}

/// Those of multi-NIC networks.
fn multi_nic() -> Vec<CustomResourceDefinition> {
    let network = "One name for an interface on each NIC of the host.";
    let cidr =
        "The blocks of a MultiNicNetwork, by the subnet of the NICs. Nothing is decided by it.";
    let nics = "The NICs of a host.";
    let pool =
        "Who has the addresses of one host block of a MultiNicNetwork. Nothing is decided by it.";
    let networks = finished(MultiNicNetwork::crd(), network, &MULTI_NIC);
    let successor = in_group(&networks, MULTI_NIC_SUCCESSOR);
    vec![
        networks,
        successor,
        finished(Cidr::crd(), cidr, &CIDR),
        finished(HostInterface::crd(), nics, &HOST_INTERFACE),
        finished(IpPool::crd(), pool, &IP_POOL),
    ]
}

/// The same kind in another group.
fn in_group(crd: &CustomResourceDefinition, group: &str) -> CustomResourceDefinition {
    let mut other = crd.clone();
    group.clone_into(&mut other.spec.group);
    other.metadata.name = Some(format!("{}.{group}", other.spec.names.plural));
    other
}

/// Adds what the types do not say.
fn finished(
    crd: CustomResourceDefinition,
    description: &str,
    columns: &[Column],
) -> CustomResourceDefinition {
    let Ok(mut value) = serde_json::to_value(&crd) else {
        return crd;
    };
    plain_formats(&mut value);
    if let Some(version) = value.pointer_mut("/spec/versions/0") {
        let column =
            |(name, kind, path): &Column| json!({"name": name, "type": kind, "jsonPath": path});
        let columns: Vec<Value> = columns.iter().map(column).collect();
        set(version, "additionalPrinterColumns", json!(columns));
    }
    if let Some(schema) = value.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        set(schema, "description", json!(description));
        let status = schema.pointer_mut("/properties/status/properties");
        if let Some(status) = status.filter(|_| columns == ATTACHMENTS) {
            let text = "Names of the interfaces, in order, with commas between.";
            let names = json!({"type": "string", "description": text});
            set(status, "interfaces", names);
        }
    }
    serde_json::from_value(value).unwrap_or(crd)
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

/// The API server knows the signed formats only; the bounds are written beside them.
fn plain_formats(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(plain_formats),
        Value::Object(map) => {
            let format = match map.get("format").and_then(Value::as_str) {
                Some("uint8" | "uint16") => Some("int32"),
                Some("uint32" | "uint64" | "uint") => Some("int64"),
                _ => None,
            };
            if let Some(format) = format {
                map.insert("format".to_owned(), json!(format));
            }
            map.values_mut().for_each(plain_formats);
        }
        _ => {}
    }
}

fn nad() -> Option<CustomResourceDefinition> {
    let config = json!({
        "type": "string",
        "description": "A CNI configuration or configuration list, as text."
    });
    let schema = json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {"config": config}}
    }});
    let schema = json!({"openAPIV3Schema": schema});
    let names = json!({
        "plural": "network-attachment-definitions",
        "singular": "network-attachment-definition",
        "kind": "NetworkAttachmentDefinition",
        "shortNames": ["net-attach-def"]
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "network-attachment-definitions.k8s.cni.cncf.io"},
        "spec": {
            "group": "k8s.cni.cncf.io",
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]
        }
    });
    serde_json::from_value(crd).ok()
}
