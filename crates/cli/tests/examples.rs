//! The examples are those of the documents: all of them, with the corrections that their files name and no others, and with the
//! objects that they presuppose.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

use plexus_cli::input::{Source, sources};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// An example of a document.
struct Example {
    /// Where the document has it.
    lines: &'static str,
    /// The file in `examples/`.
    file: &'static str,
    /// Its kind and name there.
    object: &'static str,
    /// The file in `tests/as-written/`; empty for what is only quoted, or no YAML at all as it is written.
    original: &'static str,
    /// The fields that differ from it.
    corrected: &'static [&'static str],
}

const fn example(
    lines: &'static str,
    file: &'static str,
    object: &'static str,
    original: &'static str,
    corrected: &'static [&'static str],
) -> Example {
    Example {
        lines,
        file,
        object,
        original,
        corrected,
    }
}

const FLAGS: &[&str] = &[
    "metadata.annotations.opencontrail.org/cidr",
    "metadata.annotations.opencontrail.org/ip_fabric_forwarding",
    "metadata.annotations.opencontrail.org/ip_fabric_snat",
];

const TEMPLATE: &[&str] = &[
    FLAGS[0],
    FLAGS[1],
    FLAGS[2],
    "metadata.name",
    "metadata.namespace",
];

const EXAMPLES: &[Example] = &[
    example(
        "392-420",
        "seed-000/10-crd.yaml",
        "CustomResourceDefinition network-attachment-definitions.k8s.cni.cncf.io",
        "000-crd.yaml",
        &[
            "apiVersion",
            "spec.validation",
            "spec.version",
            "spec.versions",
        ],
    ),
    example(
        "301-314",
        "seed-000/20-network-template.yaml",
        "NetworkAttachmentDefinition my-namespace/snat-network",
        "000-network-template.yaml",
        TEMPLATE,
    ),
    example(
        "430-443",
        "seed-000/21-network-a.yaml",
        "NetworkAttachmentDefinition default/network-a",
        "000-network-a.yaml",
        FLAGS,
    ),
    example(
        "450-461",
        "seed-000/22-extns-network.yaml",
        "NetworkAttachmentDefinition default/extns-network",
        "000-extns-network.yaml",
        &[],
    ),
    example(
        "337-350",
        "seed-000/30-my-pod.yaml",
        "Pod my-namespace/my-pod",
        "000-my-pod.yaml",
        &["apiVersion", "spec.containers"],
    ),
    example(
        "365-377",
        "seed-000/31-my-pod-contrail.yaml",
        "Pod my-namespace/my-pod-contrail",
        "000-my-pod-contrail.yaml",
        &["apiVersion", "metadata.name", "spec.containers"],
    ),
    example(
        "477-498",
        "seed-000/32-multi-network-pod.yaml",
        "Pod default/multi-network-pod",
        "000-multi-network-pod.yaml",
        &["metadata.name"],
    ),
    example(
        "503-524",
        "seed-000/33-multi-network-pod-contrail.yaml",
        "Pod default/multi-network-pod-contrail",
        "000-multi-network-pod-contrail.yaml",
        &["metadata.name"],
    ),
    example(
        "610-622",
        "seed-000/34-short-form.yaml",
        "Pod my-namespace/short-form",
        "",
        &[],
    ),
    example(
        "126-158",
        "seed-001/20-claim.yaml",
        "ResourceClaim claims-inline/one-macvlan-attachment",
        "001-claim.yaml",
        CLAIM,
    ),
    example(
        "171-241",
        "seed-001/21-claim-with-status.yaml",
        "ResourceClaim claims-inline/macvlan-eth0-attachment",
        "001-status.yaml",
        &[
            "apiVersion",
            "metadata.namespace",
            "spec",
            "status.devices[0].conditions[0].lastHeartbeatTime",
            "status.devices[0].data",
        ],
    ),
    example(
        "285-304",
        "seed-001/30-cni-config.yaml",
        "CNIConfig macvlan-host-local",
        "001-cni-config.yaml",
        &["apiVersion"],
    ),
    example(
        "308-325",
        "seed-001/31-claim-by-name.yaml",
        "ResourceClaim claims-by-name/one-macvlan-attachment",
        "001-claim-by-name.yaml",
        CLAIM,
    ),
    example(
        "67-79",
        "seed-002/10-multi-nic-network.yaml",
        "MultiNicNetwork multi-nic-sample",
        "002-spec.yaml",
        &["apiVersion", "kind", "metadata"],
    ),
    example(
        "178-202",
        "seed-003/10-whereabouts.yaml",
        "NetworkAttachmentDefinition multus/multus-vpc-xxxx-yyyy",
        "003-whereabouts.yaml",
        &[],
    ),
    example(
        "208-234",
        "seed-003/11-static.yaml",
        "NetworkAttachmentDefinition multus/multus-vpc-xxxx-yyyy-static",
        "003-static.yaml",
        &[],
    ),
    example(
        "177-190",
        "seed-004/10-network.yaml",
        "Network default/net1",
        "004-network.yaml",
        &["apiVersion"],
    ),
    // As written, for servers that take them so.
    example(
        "126-158",
        "seed-001/original/claim.yaml",
        "ResourceClaim default/one-macvlan-attachment",
        "001-claim.yaml",
        &[],
    ),
    example(
        "308-325",
        "seed-001/original/claim-by-name.yaml",
        "ResourceClaim default/one-macvlan-attachment",
        "001-claim-by-name.yaml",
        &[],
    ),
    example(
        "177-190",
        "seed-004/original/network.yaml",
        "Network default/net1",
        "004-network.yaml",
        &[],
    ),
    example(
        "163-169",
        "seed-004/original/pod.yaml",
        "Pod tenant-a/pod-with-networks",
        "",
        &[],
    ),
];

const CLAIM: &[&str] = &[
    "apiVersion",
    "metadata.namespace",
    "spec.devices.requests[0].allocationMode",
    "spec.devices.requests[0].count",
    "spec.devices.requests[0].deviceClassName",
    "spec.devices.requests[0].exactly",
];

/// What the documents presuppose, by file.
const COMPANIONS: &[(&str, &[&str])] = &[
    (
        "seed-000/00-namespaces.yaml",
        &[
            "Namespace my-namespace",
            "Namespace other-ns",
            "Namespace project-a",
            "Namespace project-b",
            "Namespace k8s-extns",
        ],
    ),
    (
        "seed-000/23-companion-nads.yaml",
        &[
            "NetworkAttachmentDefinition default/network-b",
            "NetworkAttachmentDefinition my-namespace/net-a",
            "NetworkAttachmentDefinition my-namespace/net-b",
            "NetworkAttachmentDefinition other-ns/net-c",
        ],
    ),
    (
        "seed-000/25-networks.yaml",
        &[
            "Network project-a/network-a",
            "Network project-b/network-b",
            "Network k8s-extns/k8s-extns-pod-network",
        ],
    ),
    (
        "seed-000/35-extns-pod.yaml",
        &[
            "Pod default/extns-pod",
            "Pod default/extns-pod-contrail",
            "Pod my-namespace/snat-pod",
        ],
    ),
    (
        "seed-001/00-namespaces.yaml",
        &["Namespace claims-inline", "Namespace claims-by-name"],
    ),
    (
        "seed-001/10-device-class.yaml",
        &["DeviceClass cni.networking.x-k8s.io"],
    ),
    (
        "seed-001/40-pods.yaml",
        &[
            "Pod claims-inline/demo-a",
            "Pod claims-by-name/demo-b",
            "ResourceClaimTemplate claims-by-name/macvlan-template",
            "Pod claims-by-name/demo-c",
        ],
    ),
    ("seed-002/20-pod.yaml", &["Pod default/multi-nic-pod"]),
    ("seed-003/00-namespace.yaml", &["Namespace multus"]),
    (
        "seed-003/20-pods.yaml",
        &["Pod default/vpc-pod", "Pod default/vpc-pod-static"],
    ),
    ("seed-004/11-second-network.yaml", &["Network default/net2"]),
    (
        "seed-004/20-tenants.yaml",
        &[
            "Namespace tenant-a",
            "Namespace tenant-b",
            "Network tenant-a/private",
            "Network tenant-b/private",
        ],
    ),
    (
        "seed-004/30-pods.yaml",
        &[
            "Pod default/waits-for-provider",
            "Pod tenant-a/web",
            "Pod tenant-b/web",
        ],
    ),
];

/// Of these kinds objects have no namespace.
const CLUSTER_WIDE: [&str; 5] = [
    "Namespace",
    "CustomResourceDefinition",
    "DeviceClass",
    "CNIConfig",
    "MultiNicNetwork",
];

fn here() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}

fn read(path: &Path) -> Source {
    let mut all = sources(&[path.to_owned()], false).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// Kind and name.
fn called(object: &Value) -> String {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    let namespace = match text(object, "/metadata/namespace") {
        _ if CLUSTER_WIDE.contains(&kind) => return format!("{kind} {name}"),
        "" => "default",
        namespace => namespace,
    };
    format!("{kind} {namespace}/{name}")
}

#[test]
fn every_file_is_in_the_list_and_has_what_that_says() {
    let mut wanted: BTreeSet<(String, String)> = BTreeSet::new();
    for one in EXAMPLES {
        wanted.insert((one.file.to_owned(), one.object.to_owned()));
    }
    for (file, objects) in COMPANIONS {
        wanted.extend(
            objects
                .iter()
                .map(|object| ((*file).to_owned(), (*object).to_owned())),
        );
    }
    let root = here().join("../../examples");
    let mut found = BTreeSet::new();
    for number in 0..5 {
        let seed = format!("seed-00{number}");
        let sources = sources(&[root.join(&seed)], true).unwrap();
        for source in sources {
            assert!(
                source.faults.is_empty(),
                "{}: {:?}",
                source.name,
                source.faults
            );
            let file = Path::new(&source.name).strip_prefix(&root).unwrap();
            let file = file.to_str().unwrap().to_owned();
            found.extend(
                source
                    .objects
                    .iter()
                    .map(|one| (file.clone(), called(&one.object))),
            );
        }
    }
    assert_eq!(found, wanted);
}

/// Fields in which two objects differ.
fn differences(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    let inner = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or_default()
                };
                differences(&inner(key), &of(one), &of(other), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (number, (one, other)) in one.iter().zip(other).enumerate() {
                differences(&format!("{path}[{number}]"), one, other, found);
            }
        }
        (Value::String(one), Value::String(other)) if trimmed(one) == trimmed(other) => {}
        (one, other) if one == other => {}
        _ => found.push(path.to_owned()),
    }
}

/// Without blanks at the ends of lines, which nobody can see.
fn trimmed(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

/// The object of a document, which may stand for what it leaves out by `...`: that would end the YAML.
fn as_written(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.replace("\n...\n", "\n");
    plexus_api::manifest::read(&text).objects[0].object.clone()
}

/// Every correction is in the file's own words too.
#[test]
fn what_is_corrected_is_noted() {
    for one in EXAMPLES.iter().filter(|one| !one.corrected.is_empty()) {
        let path = here().join("../../examples").join(one.file);
        let text = std::fs::read_to_string(path).unwrap();
        let header: Vec<&str> = text
            .lines()
            .map_while(|line| line.strip_prefix('#'))
            .collect();
        let header = header.join(" ").to_lowercase();
        let words = |field: &str| match field {
            "apiVersion" | "kind" => vec!["apiversion", "v1"],
            "metadata.namespace" => vec!["namespace", "filled in"],
            "metadata.name" | "metadata" => vec!["name", "filled in"],
            "spec.containers" => vec!["container"],
            "spec.validation" | "spec.version" | "spec.versions" => vec!["`versions`"],
            field if field.contains("annotations") => vec!["quoted"],
            field if field.contains("requests[0]") => vec!["`exactly`"],
            field if field.ends_with("lastHeartbeatTime") => vec!["lastheartbeattime"],
            field if field.ends_with("data") => vec!["`data`"],
            "spec" => vec!["spec"],
            field => panic!("{field} of {} has no words to look for", one.file),
        };
        for field in one.corrected {
            let noted = words(field).iter().any(|word| header.contains(word));
            assert!(noted, "{}: {field} is not noted: {header}", one.file);
        }
    }
}

#[test]
fn nothing_is_corrected_that_the_list_does_not_name() {
    for one in EXAMPLES.iter().filter(|one| !one.original.is_empty()) {
        let ours = read(&here().join("../../examples").join(one.file));
        let original = as_written(&here().join("tests/as-written").join(one.original));
        let ours = &ours.objects[0].object;
        let original = match one.original {
            // The document shows the spec alone.
            "002-spec.yaml" => serde_json::json!({"spec": original["spec"]}),
            _ => original,
        };
        let mut found = Vec::new();
        differences("", &original, ours, &mut found);
        assert_eq!(found, one.corrected, "{}", one.file);
    }
}

#[test]
fn every_file_says_where_it_is_from_and_what_was_corrected() {
    for one in EXAMPLES {
        let path = here().join("../../examples").join(one.file);
        let text = std::fs::read_to_string(&path).unwrap();
        let head: String = text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .collect();
        assert!(
            head.contains(one.lines),
            "{}: no lines {}",
            one.file,
            one.lines
        );
        if !one.corrected.is_empty() {
            assert!(head.contains("Corrected: "), "{}", one.file);
        } else if !one.original.is_empty() {
            assert!(head.contains("as written"), "{}", one.file);
        }
    }
    for (file, _) in COMPANIONS {
        let path = here().join("../../examples").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# Companion"), "{file}");
    }
    let readme = std::fs::read_to_string(here().join("../../examples/README.md")).unwrap();
    for number in 0..5 {
        assert!(readme.contains(&format!("## seed-00{number}")));
    }
}
