//! The examples of the documents: corrected ones are valid, and what of them waits is said; as they
//! were written, everything that an API server would refuse is found, with its line; and plans can
//! be made of those whose networks are all there.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

use plexus_api::cni::{Args, NetConf};
use plexus_api::manifest::{Level, read};
use plexus_cli::input::{Source, sources};
use plexus_cli::plan::{DescribedNode, Planned, plan};
use plexus_cli::text::Screen;
use plexus_cli::validate::{Report, validate};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// This crate.
fn here() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap().into()
}

fn examples(name: &str) -> PathBuf {
    here().join("../../examples").join(name)
}

fn report(path: &Path) -> Report {
    validate(&sources(&[path.to_owned()], false).unwrap(), "default")
}

/// Problems, warnings, waiting, notes.
fn counts(report: &Report) -> [usize; 4] {
    [Level::Problem, Level::Warning, Level::Waiting, Level::Note].map(|level| report.count(level))
}

#[test]
fn the_examples_are_valid() {
    for (seed, wanted) in [
        // Three definitions with typographic quotes.
        ("seed-000", [0, 3, 0, 0]),
        // A device class, three claims, a template, a configuration (of which only the metadata is known), and three
        // pods.
        ("seed-001", [0, 0, 9, 1]),
        ("seed-002", [0, 0, 0, 0]),
        // Two definitions, by type and by profile, and a pod with a profile.
        ("seed-003", [0, 0, 5, 0]),
        ("seed-004", [0, 0, 0, 0]),
    ] {
        let report = report(&examples(seed));
        let text = report.render(Screen::PIPE);
        assert_eq!(counts(&report), wanted, "{seed}:\n{text}");
    }
}

#[test]
fn originals_that_are_taken_are_said_to_be_read_as_something_else() {
    let report = report(&examples("seed-004/original"));
    let text = report.render(Screen::PIPE);
    assert_eq!(counts(&report), [0, 0, 0, 2], "{text}");
    assert!(
        text.contains("v1 has no Network: read as plexus.dev/v1alpha1"),
        "{text}"
    );
    assert!(
        text.contains("spec.networks: is no field of a Pod"),
        "{text}"
    );
}

/// What the README of the examples says.
#[test]
fn all_of_them_have_four_problems() {
    let report = validate(
        &sources(&[here().join("../../examples")], true).unwrap(),
        "default",
    );
    let text = report.only(&[Level::Problem]).render(Screen::PIPE);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    for words in [
        "seed-001/original/claim.yaml:3: problem: ResourceClaim one-macvlan-attachment: apiVersion",
        "seed-001/original/claim-by-name.yaml:2: problem: ResourceClaim one-macvlan-attachment: apiVersion",
        "ResourceClaim one-macvlan-attachment is written twice",
        "Network net1 is written twice",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}

/// The blocks in a language of the README and of the pages of the book, with the files that have them.
fn blocks(language: &str) -> Vec<(PathBuf, String)> {
    let root = here().join("../..");
    let pages = std::fs::read_dir(root.join("docs/src")).unwrap();
    let mut files: Vec<PathBuf> = pages.map(|page| page.unwrap().path()).collect();
    files.push(root.join("README.md"));
    files.sort();
    let fence = format!("```{language}\n");
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for block in text.split(&fence).skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            found.push((file.clone(), block.to_owned()));
        }
    }
    found
}

#[test]
fn the_manifests_of_readme_and_book_are_valid() {
    let all = blocks("yaml");
    assert!(all.len() >= 4, "{all:#?}");
    for (file, text) in all {
        let manifest = read(&text);
        assert!(
            !manifest.objects.is_empty(),
            "{file:?}: no object in\n{text}"
        );
        let source = Source {
            name: file.display().to_string(),
            objects: manifest.objects,
            faults: manifest.faults,
        };
        let report = validate(&[source], "default");
        let said = report.render(Screen::PIPE);
        assert_eq!(counts(&report), [0, 0, 0, 0], "{said}\nin\n{text}");
    }
}

#[test]
fn the_cni_configurations_of_the_book_are_understood() {
    let all = blocks("json");
    assert!(all.len() >= 3, "{all:#?}");
    for (file, text) in all {
        let conf: Value = serde_json::from_str(&text).unwrap();
        // As a runtime hands on the elements of a list.
        let plugins = conf["plugins"].as_array().cloned();
        for mut plugin in plugins.unwrap_or_else(|| vec![conf.clone()]) {
            plugin["cniVersion"] = conf["cniVersion"].clone();
            plugin["name"] = conf["name"].clone();
            let understood = NetConf::parse(plugin.to_string().as_bytes(), &Args::default());
            assert!(understood.is_ok(), "{file:?}: {understood:?} in\n{text}");
        }
    }
}

#[test]
fn the_same_object_in_both_ways_is_written_twice() {
    let paths = ["seed-004", "seed-004/original"].map(examples);
    let report = validate(&sources(&paths, false).unwrap(), "default");
    let text = report.render(Screen::PIPE);
    let twice = "Network net1 is written twice in these files";
    assert!(text.contains(twice), "{text}");
}

/// Each finding as `line: level: … path … text`, without the file's name.
fn lines(name: &str) -> Vec<String> {
    let path = here().join("tests/as-written").join(name);
    let text = report(&path).render(Screen::PIPE);
    let start = format!("{}:", path.display());
    let lines = text.lines().filter_map(|line| line.strip_prefix(&start));
    lines.map(str::to_owned).collect()
}

#[track_caller]
fn finds(name: &str, wanted: &[&str]) {
    let found = lines(name);
    assert_eq!(found.len(), wanted.len(), "{name}: {found:#?}");
    for wanted in wanted {
        let (location, words) = wanted.split_once(' ').unwrap();
        let fits = |line: &&String| line.starts_with(location) && line.contains(words);
        assert!(
            found.iter().any(|line| fits(&line)),
            "{name}: {wanted}: {found:#?}"
        );
    }
}

#[test]
fn what_was_written_before_kubernetes_was_stricter() {
    finds("000-crd-tabs.yaml", &["10: tabs do not indent"]);
    finds(
        "000-crd.yaml",
        &[
            "1: apiVersion: \"apiextensions.k8s.io/v1beta1\" is no longer served",
            "10: spec.version: is not a field",
            "23: spec.validation: is not a field",
        ],
    );
    finds(
        "000-network-template.yaml",
        &[
            "4: metadata.name",
            "5: metadata.namespace",
            "7: metadata.annotations.opencontrail.org/cidr: must be text, not a list",
            "8: opencontrail.org/ip_fabric_snat: is \"<True/False>\"",
            "9: opencontrail.org/ip_fabric_forwarding: is \"<True/False>\"",
            "11: typographic quotes",
        ],
    );
    finds(
        "000-network-a.yaml",
        &[
            "6: metadata.annotations.opencontrail.org/cidr: must be text, not a list",
            "7: opencontrail.org/ip_fabric_snat: must be text, not false: write \"False\"",
            "8: opencontrail.org/ip_fabric_forwarding: must be text, not true: write \"True\"",
            "10: typographic quotes",
        ],
    );
    finds("000-extns-network.yaml", &["8: typographic quotes"]);
    for (pod, containers) in [("000-my-pod.yaml", 12), ("000-my-pod-contrail.yaml", 11)] {
        let containers = format!("{containers}: spec.containers: is empty");
        let version = "1: apiVersion: is missing: for Pod write v1";
        finds(pod, &[version, &containers]);
    }
    for pod in [
        "000-multi-network-pod.yaml",
        "000-multi-network-pod-contrail.yaml",
    ] {
        finds(
            pod,
            &["4: metadata.name: \"multiNetworkPod\" has upper case: write multinetworkpod"],
        );
    }
}

#[test]
fn the_other_documents_as_written() {
    for claim in ["001-claim.yaml", "001-claim-by-name.yaml"] {
        finds(
            claim,
            &["1: resource.k8s.io/v1, where what is asked", "2: waits"],
        );
    }
    finds(
        "001-status.yaml",
        &["1: resource.k8s.io/v1", "5: ... ends the document"],
    );
    finds(
        "001-cni-config.yaml",
        &[
            "1: apiVersion: is missing: for CNIConfig write cni.networking.x-k8s.io/v1alpha1",
            "1: waits",
            "4: spec: only its metadata",
        ],
    );
    finds(
        "002-spec.yaml",
        &[
            "1: kind: is missing",
            "1: apiVersion: is missing",
            "1: metadata: is missing",
        ],
    );
    for nad in ["003-whereabouts.yaml", "003-static.yaml"] {
        finds(nad, &["7: waits", "9: waits"]);
    }
    finds("004-network.yaml", &["1: note"]);
}

fn planned(paths: &[PathBuf]) -> Planned {
    planned_with(paths, None)
}

fn planned_with(paths: &[PathBuf], another: Option<Value>) -> Planned {
    let objects = sources(paths, false).unwrap().into_iter();
    let objects = objects.flat_map(|source| source.objects);
    let described = DescribedNode {
        node: "n1".to_owned(),
        node_ip: "192.0.2.1".parse().unwrap(),
        uplink: "eth0".parse().unwrap(),
        mtu: 1500,
        pod_cidrs: vec!["10.244.0.0/24".parse().unwrap()],
        cluster_cidrs: vec!["10.244.0.0/16".parse().unwrap()],
        cluster_name: "k8s".to_owned(),
    };
    plan(
        objects
            .map(|written| written.object)
            .chain(another)
            .collect(),
        &described,
        Screen::PIPE,
    )
}

#[test]
fn every_pod_of_the_first_document_has_a_plan() {
    let planned = planned(&[examples("seed-000")]);
    assert_eq!((planned.pods, planned.failed), (8, 0), "{}", planned.text);
    let text = planned.text;
    for words in [
        "# pod my-namespace/my-pod on node n1\n",
        "# net3: other-ns/net-c, by k8s.v1.cni.cncf.io/networks: overlay, 10.2.3.",
        "# eth1: project-a/network-a, by opencontrail.org/network: overlay, 10.3.1.",
        "# net1: default/network-a, by k8s.v1.cni.cncf.io/networks: routed, 10.1.1.",
        "ip -n pod address add 10.1.1.",
        "type vxlan id 4097 local 192.0.2.1",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}

#[test]
fn overlapping_networks_and_one_that_waits() {
    let planned = planned(&[examples("seed-004"), examples("seed-004/original/pod.yaml")]);
    assert_eq!((planned.pods, planned.failed), (4, 1), "{}", planned.text);
    let text = planned.text;
    assert!(
        text.contains("its provider mycorp/fancy-network-provider is external"),
        "{text}"
    );
    assert!(
        text.contains("net1: tenant-b/private, by plexus.dev/networks: overlay, 192.168.0."),
        "{text}"
    );
}

#[test]
fn what_waits_is_said_as_diagnose_says_it() {
    for (seed, pods, words) in [
        ("seed-001", 3, "it would wait: ResourceClaim"),
        (
            "seed-003",
            2,
            "NICs in other VPCs (provider eni) are not part",
        ),
    ] {
        let planned = planned(&[examples(seed)]);
        let text = planned.text;
        assert_eq!((planned.pods, planned.failed), (pods, pods), "{text}");
        assert!(text.contains(words), "no {words:?} in\n{text}");
        assert!(!text.contains("it would not start"), "{text}");
        assert!(!text.contains("ip -n pod"), "{text}");
    }
    // What is wrong besides is said too.
    let asks = json!({"k8s.v1.cni.cncf.io/networks": "multus/multus-vpc-xxxx-yyyy,nowhere"});
    let two = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "two", "namespace": "default", "annotations": asks},
        "spec": {"containers": [{"name": "a", "image": "b"}]}});
    let sample = examples("seed-003/10-whereabouts.yaml");
    let text = planned_with(&[sample], Some(two)).text;
    for words in ["it would wait: ", "it would not start: ", "default/nowhere"] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}

const EXECUTED_IPAM: &str = r#"
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: wide, namespace: default}
spec:
  config: '{"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1", "ipam": {"type": "whereabouts"}}'
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: default, annotations: {k8s.v1.cni.cncf.io/networks: wide}}
spec: {containers: [{name: a, image: b}]}
"#;

#[test]
fn an_ipam_plugin_that_is_executed_is_named() {
    let dir = std::env::temp_dir().join(format!("plexus-ipam-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("wide.yaml");
    std::fs::write(&file, EXECUTED_IPAM).unwrap();
    let report = report(&file);
    let planned = planned(&[file]);
    let _ = std::fs::remove_dir_all(&dir);
    let text = report.render(Screen::PIPE);
    assert!(
        text.contains("gets its addresses by executing whereabouts"),
        "{text}"
    );
    let text = planned.text;
    assert_eq!((planned.pods, planned.failed), (1, 0), "{text}");
    let words = "net1: default/wide, by k8s.v1.cni.cncf.io/networks: macvlan, addresses by executing whereabouts;";
    assert!(text.contains(words), "{text}");
    assert!(text.contains("dev eth0"), "the first is known: {text}");
}

/// Files in which an administrator's class leads to our driver, after the claim that names it.
const BY_CLASS: &str = r#"
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: nic}
spec: {devices: {requests: [{name: nic, exactly: {deviceClassName: fast-nic}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: both}
spec:
  resourceClaims: [{name: nic, resourceClaimName: nic}, {name: gpu, resourceClaimName: gpu}]
  containers: [{name: a, image: b}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fast-nic}
spec: {selectors: [{cel: {expression: device.driver == "cni.dra.networking.x-k8s.io"}}]}
"#;

#[test]
fn claims_wait_by_a_class_of_the_same_files() {
    let dir = std::env::temp_dir().join(format!("plexus-classes-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("claims.yaml");
    std::fs::write(&file, BY_CLASS).unwrap();
    let report = report(&file);
    let planned = planned(&[file]);
    let _ = std::fs::remove_dir_all(&dir);
    let text = report.render(Screen::PIPE);
    // The claim, the pod and the class; nothing of the other claim.
    assert_eq!(counts(&report), [0, 0, 3, 0], "{text}");
    assert!(
        text.contains("ResourceClaim nic: kind: it is kept"),
        "{text}"
    );
    let text = planned.text;
    assert!(
        text.contains("it would wait: ResourceClaim default/nic: "),
        "{text}"
    );
    let unclear = "not known: whether it would wait for ResourceClaim default/gpu: DeviceClass gpu.example.com";
    assert!(text.contains(unclear), "{text}");
}

/// The lines of a plan that give the pods addresses.
fn addresses(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("ip -n pod address add"))
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn pods_of_one_node_do_not_share_addresses_nor_repeat_what_the_node_keeps() {
    let planned = planned(&[examples("lab")]);
    assert_eq!((planned.pods, planned.failed), (4, 0), "{}", planned.text);
    let text = planned.text;
    // Both of n1 are on storage: the same block, another address.
    for words in [
        "# pod team-a/db on node n2\n",
        "ip -n pod address add 10.10.4.128/16 dev net2",
        "ip -n pod address add 10.10.4.129/16 dev net2",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let (first, rest) = text.split_once("# pod team-a/db").unwrap();
    let on_n1: Vec<&str> = [first, rest.split_once("# pod team-b/web").unwrap().1].to_vec();
    let (_, second) = on_n1.split_at(1);
    let second = second[0].split_once("# pod team-b/db").unwrap().0;
    let (one, two) = (addresses(first), addresses(second));
    assert_eq!((one.len(), two.len()), (4, 4), "{text}");
    // Their overlays are two networks, which may have the same addresses.
    let shared: Vec<_> = one.iter().filter(|line| two.contains(line)).collect();
    assert!(
        shared
            .iter()
            .all(|line| line.ends_with("net1") || line.contains("dev net1"))
    );
    assert!(
        first.contains("sysctl -w net/ipv4/ip_forward=1\nnft"),
        "{first}"
    );
    assert!(
        !second.contains("\nsysctl -w net/ipv4/ip_forward=1"),
        "{second}"
    );
}

#[test]
fn plans_say_what_plugins_do_and_what_is_missing() {
    let dir = std::env::temp_dir().join(format!("plexus-plan-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("all.yaml");
    let text = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: x}\n\
                spec: {config: '{\"type\": \"macvlan\", \"master\": \"eth1\", \"ipam\": {\"type\": \"dhcp\"}}'}\n\
                ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    \
                metadata: {annotations: {k8s.v1.cni.cncf.io/networks: x}}\n    spec:\n      containers:\n      \
                - {name: a, image: b, ports: [{containerPort: 80, hostPort: 8080}]}\n---\napiVersion: v1\n\
                kind: Pod\nmetadata: {name: lost, annotations: {plexus.dev/networks: nowhere}}\n---\n\
                apiVersion: v1\nkind: Pod\nmetadata: {name: host}\nspec: {hostNetwork: true}\n";
    std::fs::write(&file, text).unwrap();
    let planned = planned(&[file]);
    let _ = std::fs::remove_dir_all(&dir);
    assert_eq!((planned.pods, planned.failed), (3, 1), "{}", planned.text);
    for words in [
        "# pod default/web-0 on node n1\n",
        "net1: default/x, by k8s.v1.cni.cncf.io/networks: made by executing macvlan",
        "8080",
        "it would not start: network default/nowhere (number 1, annotation plexus.dev/networks)",
        "next: create it",
        "hostNetwork: it has the node's interfaces",
    ] {
        assert!(
            planned.text.contains(words),
            "no {words:?} in\n{}",
            planned.text
        );
    }
}
