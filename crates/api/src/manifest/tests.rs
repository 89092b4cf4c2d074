//! Manifests as people write them, and what is found in them.

use super::*;
use crate::later::Classes;
use serde_json::{Value, json};

fn one(text: &str) -> Value {
    let manifest = read(text);
    assert_eq!(manifest.faults, [], "{text}");
    assert_eq!(manifest.objects.len(), 1, "{text}");
    manifest.objects[0].object.clone()
}

/// Every finding as `line path: text`, with its level's first letter.
fn found(text: &str) -> Vec<String> {
    let manifest = read(text);
    let mut lines: Vec<String> = manifest
        .faults
        .iter()
        .map(|fault| format!("F{} {}", fault.line, fault.text))
        .collect();
    let classes = Classes::of(manifest.objects.iter().map(|written| &written.object));
    for written in &manifest.objects {
        let each = check(written, &classes).into_iter();
        lines.extend(each.map(|f| {
            let level = &format!("{:?}", f.level)[..1];
            format!("{level}{} {}: {}", f.line, f.path, f.text)
        }));
    }
    lines
}

#[track_caller]
fn finds(text: &str, wanted: &[&str]) {
    let found = found(text);
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        let (begins, has) = wanted.split_once(" … ").unwrap_or((wanted, ""));
        assert!(
            found.starts_with(begins) && found.contains(has),
            "wanted {wanted:?}\n   got {found:?}"
        );
    }
}

#[test]
fn documents_as_kubectl_takes_them() {
    let same = json!({"a": {"b": [1, "x"]}});
    for text in [
        "a: {b: [1, x]}",
        "a:\n  b:\n  - 1\n  - x\n",
        "a:\r\n  b:\r\n  - 1\r\n  - x\r\n",
        "\u{feff}a:\n  b: [1, x]\n",
        "# first\n---\n# then\na:   # why\n  b: [1, 'x']\n---\n",
        "---\n---\na: {b: [1, x]}\n...\n# the end\n",
        "{\"a\": {\"b\": [1, \"x\"]}}",
        "\n {\"a\": {\n\t\"b\": [1, \"x\"]}}\n",
        "a: &list\n  b: [1, x]\n",
        "a:\n  <<: [{b: [1, x]}, {b: 7}]\n",
    ] {
        assert_eq!(one(text), same, "{text}");
    }
    let merged = one("base: &base {x: 1, z: 2}\nown: {<<: *base, z: 3}\nalias: *base\n");
    assert_eq!(merged["own"], json!({"x": 1, "z": 3}));
    assert_eq!(merged["alias"], json!({"x": 1, "z": 2}));
    assert_eq!(one("{1: a, true: b}"), json!({"1": "a", "true": "b"}));
    assert!(read("").objects.is_empty() && read("# nothing\n---\n").objects.is_empty());
}

#[test]
fn several_objects_and_lists() {
    let text = "kind: A\n---\napiVersion: v1\nkind: List\nitems:\n- kind: B\n- kind: C\n\
                --- # comment\nkind: D\n";
    let manifest = read(text);
    let kinds: Vec<_> = manifest
        .objects
        .iter()
        .map(|o| o.object["kind"].clone())
        .collect();
    assert_eq!(kinds, ["A", "B", "C", "D"]);
    let lines: Vec<_> = manifest.objects.iter().map(|o| o.line("kind")).collect();
    assert_eq!(lines, [1, 6, 7, 9]);
    let text = "{\"kind\": \"A\"}\n{\"kind\": \"PodList\",\n \"items\": [\n  {\"kind\": \"B\"}]}";
    let manifest = read(text);
    let lines: Vec<_> = manifest.objects.iter().map(|o| o.line("kind")).collect();
    assert_eq!(lines, [1, 4]);
}

#[test]
fn what_cannot_be_read_has_its_line_and_does_not_hide_the_rest() {
    for (text, wanted) in [
        ("a: 1\n---\nb: [1\n---\nkind: C\n", "F4 is not YAML"),
        ("a: 1\nb: 2\na: 3\n", "F3 the key \"a\" occurs twice"),
        (
            "a: 1\n---\nb:\n  c: {d: 1,\n    d: 2}\n",
            "F5 the key \"d\" occurs twice",
        ),
        ("%YAML 1.1\n---\na: 1\n", "F1 is not YAML"),
        ("a: 1\n--- {b: 2}\n", "F2 --- divides documents"),
        ("a: .inf\n", "F1 is not YAML: a: a number that is infinite"),
        ("~: 2\n", "F1 is not YAML: null cannot be a key"),
        ("a:\n \tb: 1\n", "F2 is not YAML"),
        ("a: 1\n...\nb: 2\n", "F2 ... ends the document"),
        ("{\"a\": 1,\n \"a\": 2}", "F2 the key \"a\" occurs twice"),
        ("a: *nobody\n", "F1 is not YAML"),
    ] {
        let manifest = read(text);
        let faults: Vec<String> = manifest
            .faults
            .iter()
            .map(|fault| format!("F{} {}", fault.line, fault.text))
            .collect();
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        assert!(faults[0].starts_with(wanted), "{text}: {faults:?}");
    }
    // What else is wrong is told too.
    finds(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  name: B\nspeck: 1\n",
        &[
            "F5 the key \"name\" occurs twice … only the last counts",
            "P4 metadata.name: \"B\" has upper case",
            "P6 speck: is not a field",
        ],
    );
    let tabs = "spec:\n  names:\n \tplural: x\n \tsingular: y\n";
    assert!(
        read(tabs).faults[0].text.contains("tabs"),
        "{:?}",
        read(tabs).faults
    );
    let bomb = (0..40).fold("a0: &a0 x\n".to_owned(), |text, i| {
        format!("{text}a{}: &a{} [*a{i}, *a{i}]\n", i + 1, i + 1)
    });
    assert_eq!(read(&bomb).faults.len(), 1);
    assert_eq!(read(&"[".repeat(100_000)).faults.len(), 1);
    assert_eq!(read(&"{\"a\":".repeat(100_000)).faults.len(), 1);
}

#[test]
fn fields_are_found_again() {
    let text = "# one\nkind: X\nmetadata:\n  annotations:\n    a.b/c: x\n    'd.e/f': '[\n      {\n\
                \x20       \"name\": 1 }\n    ]'\nspec:\n  list:\n  - {a: 1}\n  -\n    a:\n      b: 2\n";
    let written = &read(text).objects[0];
    for (path, line) in [
        ("kind", 2),
        ("metadata.annotations.a.b/c", 5),
        ("metadata.annotations.d.e/f[0].name", 8),
        ("metadata.annotations.d.e/f[7].name", 6),
        ("spec.list[0].a", 12),
        ("spec.list[1].a.b", 15),
        ("spec.list[1].a.nothing", 14),
        ("spec.list[9]", 11),
        ("nothing", 2),
    ] {
        assert_eq!(written.line(path), line, "{path}");
    }
    let text = "spec:\n  config: |\n    {\n      \"type\": \"x\",\n      \"ipam\": {\n        \"a\": 1}\n    }\n";
    let written = &read(text).objects[0];
    assert_eq!(written.line("spec.config.ipam.a"), 6);
    assert_eq!(written.line("spec.config.ipam.b"), 5);
    assert_eq!(written.line("spec.config"), 2);
}

const NETWORK: &str = "apiVersion: plexus.dev/v1alpha1\nkind: Network\nmetadata: {name: blue}\n";

#[test]
fn a_network_has_all_of_its_problems_with_their_lines() {
    let text = format!(
        "{NETWORK}spec:\n  provider: overlay\n  subnets:\n    a:\n      cidr: 10.1.0.7/24\n      \
         gateway: nowhere\n    b: {{cidr: 10.2.0.0/33, extra: 1}}\n  mtu: lots\n  blockSize:\n    \
         ipv4: 77\n  routes:\n  - gw: 10.1.0.1\n  allowedNamespaces: {{from: Some}}\n  colour: red\n"
    );
    finds(
        &text,
        &[
            "P8 spec.subnets.a.cidr: 10.1.0.7/24 has host bits set",
            "P9 spec.subnets.a.gateway: … nowhere",
            "P10 spec.subnets.b.cidr: … 10.2.0.0/33",
            "P10 spec.subnets.b.extra: is not a known key",
            "P11 spec.mtu: must be a whole number",
            "P13 spec.blockSize.ipv4: is 77",
            "P15 spec.routes[0].dst: is missing",
            "P16 spec.allowedNamespaces.from: is \"Some\"",
            "P17 spec.colour: is not a known key",
        ],
    );
    let text = format!(
        "{NETWORK}spec:\n  subnets:\n    a: {{cidr: 10.1.0.7/24}}\n    b: {{cidr: 10.1.0.0/16}}\n"
    );
    finds(
        &text,
        &[
            "P6 spec.subnets.a.cidr: 10.1.0.7/24 has host bits set",
            "P7 spec.subnets.b.cidr: 10.1.0.0/16 overlaps",
        ],
    );
    finds(NETWORK, &["P1 spec: is missing"]);
    finds(&format!("{NETWORK}spec: {{}}\n"), &[]);
    finds(
        &format!("{NETWORK}spec: {{provider: bridg}}\n"),
        &["P4 spec.provider: … did you mean"],
    );
    finds(
        &format!("{}spec: {{}}\n", NETWORK.replace("Network", "Netwrk")),
        &["P2 kind: … did you mean \"Network\"?"],
    );
}

#[test]
fn the_reader_of_networks_reads_what_the_api_reads() {
    for spec in [
        json!({}),
        json!({"provider": "bridge", "uuid": "u", "mtu": 1400, "snat": true, "sourceCheck": false,
            "subnets": {"a": {"cidr": "10.1.0.0/16", "gateway": "10.1.0.1",
                "exclude": ["10.1.0.0/28", "10.1.0.99"]}, "b": {"cidr": "fd00::/48"}},
            "blockSize": {"ipv4": 26}, "routes": [{"dst": "10.0.0.0/8", "gw": "10.1.0.1"}, {"dst": "fd01::/64"}],
            "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}]}},
            "config": {"bridge": "br0"}}),
    ] {
        let text = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
            "metadata": {"name": "n"}, "spec": spec});
        let (read, problems) = check::read_network(spec.as_object().unwrap());
        assert!(problems.0.is_empty(), "{problems}");
        assert_eq!(read.unwrap(), serde_json::from_value(spec).unwrap());
        assert_eq!(found(&text.to_string()), Vec::<String>::new());
    }
}

#[test]
fn identity_and_metadata() {
    finds(
        "a: 1\n",
        &[
            "P1 kind: is missing",
            "P1 apiVersion: is missing",
            "P1 metadata: is missing",
        ],
    );
    finds("- 1\n", &["P1 : is not an object"]);
    finds(
        "kind: Pod\nmetadata: {name: a}\n",
        &[
            "P1 apiVersion: is missing: for Pod write v1",
            "P1 spec: is missing",
        ],
    );
    finds(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: A\n  namespace: b\n  labels: {x: 1}\n  nmae: c\n",
        &[
            "P4 metadata.name: \"A\" has upper case: write a",
            "P5 metadata.namespace: is not for this kind",
            "P6 metadata.labels.x: must be text, not 1: write \"1\"",
            "P7 metadata.nmae: is not a field",
        ],
    );
    finds(
        "apiVersion: plexus.dev/v1\nkind: Network\nmetadata: {name: a}\n",
        &[
            "P1 apiVersion: … write plexus.dev/v1alpha1",
            "P1 spec: is missing",
        ],
    );
    finds(
        "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {x: 1}\n",
        &["N2 kind: example.com/v1 Gadget is unknown here"],
    );
}

#[test]
fn types_of_kubernetes() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n";
    finds(
        &format!("{pod}  containers:\n  - name: a\n    image: b\n    imagePolicy: c\n"),
        &["P8 spec.containers[0].imagePolicy: is not a field"],
    );
    finds(
        &format!(
            "{pod}  containers:\n  - name: a\n    image: b\n    ports:\n    - containerPort: http\n"
        ),
        &["P9 spec.containers[0].ports[0].containerPort: has the wrong type"],
    );
    // One wrong value hides no other, and no unknown field.
    finds(
        &format!(
            "{pod}  containers:\n  - name: a\n    image: b\n    ports:\n    - containerPort: http\n      \
             hostPort: 80.5\n    imagePolicy: c\n    tty:\n    ttyy:\n    command: [a, 1, b, 2]\n  - name: b\n    \
             image: c\n    ready: false\n  nodename: x\n"
        ),
        &[
            "P9 spec.containers[0].ports[0].containerPort: has the wrong type",
            "P10 spec.containers[0].ports[0].hostPort: has the wrong type",
            "P11 spec.containers[0].imagePolicy: is not a field",
            "P13 spec.containers[0].ttyy: is not a field",
            "P14 spec.containers[0].command[1]: has the wrong type",
            "P14 spec.containers[0].command[3]: has the wrong type",
            "P17 spec.containers[1].ready: is not a field",
            "P18 spec.nodename: is not a field",
        ],
    );
    finds(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  finalizers: x\n  ownerReferences:\n  - nmae: a\n",
        &[
            "P5 metadata.finalizers: has the wrong type",
            "P7 metadata.ownerReferences[0].nmae: is not a field",
        ],
    );
    let many: String = (0..130).map(|i| format!("  k{i}: {i}\n")).collect();
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{many}");
    let found = found(&map);
    assert_eq!(found.len(), 101);
    assert!(found.iter().any(|one| one.contains("30 more fields")));
    finds(
        &format!("{pod}  containers:\n"),
        &["P5 spec.containers: is empty"],
    );
    finds(
        &format!("{pod}  hostNetwork: false\n  containers: [{{name: A_b}}]\n"),
        &[
            "P6 spec.containers[0].image: is missing",
            "P6 spec.containers[0].name: … is not the name",
        ],
    );
    let set = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a}\nspec:\n  selector: {}\n";
    finds(set, &["P4 spec.template: is missing"]);
    finds(
        &format!(
            "{set}  template:\n    metadata:\n      annotations:\n        k8s.v1.cni.cncf.io/networks: 'a b'\n    \
                  spec:\n      containers: [{{name: a, image: b}}]\n"
        ),
        &["P9 k8s.v1.cni.cncf.io/networks[0]: … \"a b\""],
    );
}

#[test]
fn our_own_kinds_have_all_of_their_problems_too() {
    finds(
        "apiVersion: plexus.dev/v1alpha1\nkind: BlockRequest\nmetadata: {name: a}\nspec:\n  family: ipv5\n  \
         node: [n1]\n  addresses: 0\n  network:\n    name: blue\n    colour: red\nextra: 1\n",
        &[
            "P5 spec.family: is \"ipv5\"",
            "P6 spec.node: has the wrong type",
            "P7 spec.addresses: is 0",
            "P8 spec.network.uid: is missing",
            "P10 spec.network.colour: is not a field",
            "P11 extra: is not a field",
        ],
    );
    finds(
        "apiVersion: plexus.dev/v1alpha1\nkind: Block\nmetadata: {name: a}\nspec:\n  node: n1\n  nodeUID: u\n  cidr: x\n  \
         network: {name: a, uid: b}\n",
        &["P4 spec: … x"],
    );
    finds(
        "apiVersion: plexus.dev/v1alpha1\nkind: Block\nmetadata: {name: a}\nspec:\n  node: n1\n  nodeUID: u\n  \
         cidr: 10.0.0.0/26\n  network: {name: a, uid: b}\n",
        &[],
    );
}

#[test]
fn a_version_that_is_gone_hides_nothing() {
    finds(
        "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n\
         spec:\n  group: b\n  version: v1\n  validation: {}\n",
        &[
            "P1 apiVersion: … is no longer served",
            "P6 spec.version: is not a field",
            "P7 spec.validation: is not a field",
        ],
    );
    let claim = |field: &str| {
        format!(
            "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {{name: a}}\nspec:\n  devices:\n    \
             requests:\n    - name: nic\n      {field}: x\n"
        )
    };
    // In that version it is right.
    let gone = "P1 apiVersion: … --runtime-config";
    finds(&claim("deviceClassName"), &[gone]);
    finds(
        &claim("exactly"),
        &[gone, "P8 spec.devices.requests[0].exactly: is not a field"],
    );
    finds(
        "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: a}\nspec: {replica: 1}\n",
        &[
            "P1 apiVersion: … write apps/v1",
            "P4 spec.template: is missing",
            "P4 spec.replica: is not a field",
        ],
    );
}

#[test]
fn pods_ask_for_networks() {
    let pod = |annotations: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n{annotations}spec:\n  \
                 containers: [{{name: a, image: b}}]\n{spec}"
        )
    };
    finds(
        &pod(
            "    plexus.dev/networks: 'a,,b'\n    opencontrail.org/network: '[{}]'\n",
            "",
        ),
        &[
            "P6 plexus.dev/networks[1]: … names no network",
            "P7 opencontrail.org/network[0].domain: is missing",
            "P7 opencontrail.org/network[0].project: is missing",
            "P7 opencontrail.org/network[0].name: is missing",
        ],
    );
    finds(
        &pod(
            "    plexus.dev/network: a\n    k8s.v1.cni.cncf.io/networks-status: x\n    opencontrail.org/networks: b\n",
            "",
        ),
        &[
            "W6 metadata.annotations.plexus.dev/network: … did you mean \"plexus.dev/networks\"?",
            "W8 metadata.annotations.opencontrail.org/networks: … did you mean \"opencontrail.org/network\"?",
        ],
    );
    finds(
        &pod("    plexus.dev/networks: a\n", "  hostNetwork: true\n"),
        &["W6 metadata.annotations.plexus.dev/networks: has no effect"],
    );
    finds(
        &pod(
            "    cni.soracom.io/multus-multivpc-profile: p\n",
            "  resourceClaims: [{name: a, resourceClaimName: b}]\n",
        ),
        &[
            "W6 metadata.annotations.cni.soracom.io/multus-multivpc-profile: it is kept, and waits",
            "W9 spec.resourceClaims: names claims",
        ],
    );
    finds(
        &pod("    a: b\n", "  networks: [net1, other/net2]\n"),
        &["N9 spec.networks: spec.networks is no field of a Pod"],
    );
    finds(
        &pod("    a: b\n", "  networks: net1\n"),
        &["P9 spec.networks: must be a list"],
    );
}

#[test]
fn objects_that_are_written_twice() {
    let text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\n\
                kind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\n\
                metadata: {name: a, namespace: default}\n---\napiVersion: v1\nkind: ConfigMap\n\
                metadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n";
    let manifest = read(text);
    let all: Vec<&Written> = manifest.objects.iter().collect();
    let found = check_all(&all, "default");
    let twice: Vec<(usize, usize)> = found.iter().map(|(n, f)| (*n, f.line)).collect();
    assert_eq!(twice, [(1, 7), (3, 15)]);
    assert!(found[0].1.text.contains("Namespace a is written twice"));
    // Elsewhere the ConfigMap without a namespace is another one.
    let found = check_all(&all, "team-a");
    let twice: Vec<(usize, usize)> = found.iter().map(|(n, f)| (*n, f.line)).collect();
    assert_eq!(twice, [(1, 7)]);
}

#[test]
fn claims_wait_by_a_class_of_the_same_files() {
    let claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\nspec:\n  \
                 devices: {requests: [{name: nic, exactly: {deviceClassName: fast-nic}}]}\n";
    let class = |driver: &str| {
        format!(
            "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: fast-nic}}\n\
             spec: {{selectors: [{{cel: {{expression: device.driver == \"{driver}\"}}}}]}}\n"
        )
    };
    let ours = class("cni.dra.networking.x-k8s.io");
    finds(
        &format!("{claim}{ours}"),
        &[
            "W2 kind: it is kept, and waits",
            "W8 kind: it is kept, and waits",
        ],
    );
    finds(&format!("{claim}{}", class("gpu.example.com")), &[]);
    finds(claim, &[]);
}

#[test]
fn definitions_say_what_is_done_with_them() {
    let nad = |config: &str| {
        format!(
            "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n\
                 metadata: {{name: a}}\nspec:\n  config: {config}\n"
        )
    };
    finds(&nad("'{\"type\": \"macvlan\", \"master\": \"eth1\"}'"), &[]);
    finds(
        &nad("'{\n    \"type\": \"macvlan\",\n    \"mode\": \"loud\"}'"),
        &["P7 spec.config.mode: … loud"],
    );
    finds(&nad("{type: macvlan}"), &["P5 spec.config: must be text"]);
    finds(
        &nad("'{\"type\": \"calico\"}'"),
        &["N5 spec.config: is done by executing calico"],
    );
    finds(
        &nad(
            "'{\"type\": \"macvlan\", \"master\": \"eth1\", \"ipam\": {\"type\": \"whereabouts\", \"range\": \"10.0.0.0/24\"}}'",
        ),
        &["N5 spec.config: gets its addresses by executing whereabouts: every node"],
    );
    finds(
        &nad("'{“type”: “plexus-cni”}'"),
        &["W5 spec.config: spec.config has typographic quotes"],
    );
    finds(&nad("'{\"type\": \"multi-nic\"}'"), &[]);
    finds(
        &nad("'{\"type\": \"multi-nic-ipam\"}'"),
        &["W5 spec.config: it is kept, and waits"],
    );
    finds(&nad("'{'"), &["P5 spec.config: is not valid JSON"]);
}

#[test]
fn aliases_may_repeat_a_little_but_not_gigabytes() {
    let text = "a: &a {x: 1}\nb: [*a, *a]\nc:\n  <<: *a\n";
    let value = json!({"a": {"x": 1}, "b": [{"x": 1}, {"x": 1}], "c": {"x": 1}});
    assert_eq!(one(text), value);
    let long = "x".repeat(1 << 20);
    let text = format!("kind: &a {long}\nb: [{}]\n", "*a,".repeat(600_000));
    finds(
        &text,
        &["F1 is not YAML … its aliases stand for far more than its text"],
    );
}
