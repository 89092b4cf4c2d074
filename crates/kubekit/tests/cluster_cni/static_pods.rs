//! Pods that kubelet runs by itself: CNI hears another UID than the API has, and the record carries
//! the API's.

use crate::common;
use crate::stage;
use crate::web::{HttpClient, answer, pod, pod_ips};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Cluster, Object};
use serde_json::Value;
use std::path::PathBuf;

#[test]
fn a_static_pod_has_its_networks_and_its_record_has_the_mirrors_uid() {
    stage!("static" => Need::Kubelet, kube, namespace, nodes);
    let ns = namespace.name();
    let subnets = serde_json::json!({"subnets": {"a": {"cidr": "10.55.1.0/24"}}});
    common::apply(
        kube,
        &[
            common::network(ns, "blue", subnets),
            pod(ns, "other", &nodes[1], &[]),
        ],
    );
    let object = common::network_object(ns, "blue");
    let active = |network: &Value| network["status"]["phase"] == "Active";
    kube.wait_for(&object, TIMEOUT, &active).expect("active");
    let mut manifest = pod(ns, "alone", &nodes[0], &[(common::PLEXUS, "blue")]);
    manifest["spec"]["nodeName"] = Value::Null;
    let file = StaticPod::write(
        kube.lab()
            .layout()
            .static_pods(&nodes[0])
            .join(format!("{ns}.json")),
        &manifest,
    );
    let mirror = namespace.pod(&format!("alone-{}", nodes[0]));
    common::ready(kube, &[&mirror, &namespace.pod("other")]);

    let seen = kube.get(&mirror).expect("asked").expect("is there");
    let uid = seen["metadata"]["uid"].as_str().expect("a UID").to_owned();
    let of_kubelet = &seen["metadata"]["annotations"]["kubernetes.io/config.hash"];
    assert_ne!(of_kubelet, uid.as_str(), "two UIDs");
    let names = common::interfaces(kube, &mirror);
    let expected = [("eth0", "cluster-default"), ("net1", "blue")];
    assert_eq!(names, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let record = Object::new("plexus.dev/v1alpha1", "PodAttachments", ns, &uid);
    let written = kube.get(&record).expect("asked").expect("is there");
    assert_eq!(written["spec"]["pod"]["uid"], uid.as_str());
    assert_eq!(
        written["metadata"]["ownerReferences"][0]["uid"],
        uid.as_str()
    );
    let annotated = kube.wait_for(&mirror, TIMEOUT, &|pod| {
        pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"].is_string()
    });
    annotated.expect("network-status");
    for address in pod_ips(kube, &mirror) {
        let seen = answer(kube, HttpClient::Pod(&namespace.pod("other")), &address, 80);
        assert_eq!(seen.name, mirror.name);
    }

    drop(file);
    kube.wait_gone(&mirror, TIMEOUT).expect("gone");
    kube.wait_gone(&record, TIMEOUT).expect("the record too");
}

/// kubelet runs it as long as the file is there.
struct StaticPod(PathBuf);

impl StaticPod {
    fn write(path: PathBuf, manifest: &Value) -> Self {
        let partial = path.with_extension("partial");
        // kubelet reads every file: it must not see half of one, nor this one twice.
        let aside = partial
            .parent()
            .and_then(|dir| dir.parent())
            .expect("a directory")
            .join("static-pod");
        std::fs::write(&aside, manifest.to_string()).expect("written");
        std::fs::rename(&aside, &path).expect("renamed");
        Self(path)
    }
}

impl Drop for StaticPod {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}
