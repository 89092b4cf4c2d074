//! What the end-to-end tests share: manifests in few words, and what a pod has got.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file uses some of it, and a test that cannot go on ends"
)]

use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::{Cluster, Object, Output, wait};
use serde_json::{Value, json};
use std::time::Duration;

pub const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
pub const CONTRAIL: &str = "opencontrail.org/network";
pub const PLEXUS: &str = "plexus.dev/networks";
pub const DEFAULT_GW: &str = "opencontrail.org/default-gw";

/// A pod that serves its own name on port 80, IPv4 and IPv6.
pub fn pod(namespace: &str, name: &str, node: &str, annotations: &[(&str, &str)]) -> Value {
    let script = "mkdir /www; hostname >/www/index.html; exec httpd -f -h /www";
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": texts(annotations)},
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "localhost/busybox:1", "command": ["sh", "-c", script]}],
        },
    })
}

/// A Network.
pub fn network(namespace: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "Network",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}

/// A NAD; an empty `config` is none at all.
pub fn nad(namespace: &str, name: &str, annotations: &[(&str, &str)], config: &str) -> Value {
    let spec = match config {
        "" => json!({}),
        config => json!({"config": config}),
    };
    json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": namespace, "annotations": texts(annotations)},
        "spec": spec,
    })
}

/// The configuration that a Contrail NAD has.
pub const CONTRAIL_CONFIG: &str = r#"{"cniVersion": "0.3.1", "type": "contrail-k8s-cni"}"#;

/// A Contrail NAD with subnets.
pub fn contrail_nad(namespace: &str, name: &str, cidrs: &str, more: &[(&str, &str)]) -> Value {
    let mut annotations = vec![("opencontrail.org/cidr", cidrs)];
    annotations.extend(more);
    nad(namespace, name, &annotations, CONTRAIL_CONFIG)
}

pub fn network_object(namespace: &str, name: &str) -> Object {
    Object::new("plexus.dev/v1alpha1", "Network", namespace, name)
}

pub fn nad_object(namespace: &str, name: &str) -> Object {
    Object::new(
        "k8s.cni.cncf.io/v1",
        "NetworkAttachmentDefinition",
        namespace,
        name,
    )
}

/// Creates or changes all of them.
pub fn apply(cluster: &dyn Cluster, objects: &[Value]) {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    cluster.apply(&texts.join("\n---\n")).expect("applied");
}

/// Waits until all pods are ready.
pub fn ready(cluster: &dyn Cluster, pods: &[&Object]) {
    for pod in pods {
        if let Err(error) = cluster.wait_ready(pod, TIMEOUT) {
            panic!("{pod}: {error:#}; {:?}", messages(cluster, pod));
        }
    }
}

/// The pod's record, in index order.
pub fn attachments(cluster: &dyn Cluster, pod: &Object) -> Vec<Value> {
    let seen = cluster.get(pod).expect("asked").expect("is there");
    let uid = seen["metadata"]["uid"].as_str().expect("a UID");
    let record = Object::new("plexus.dev/v1alpha1", "PodAttachments", &pod.namespace, uid);
    let found = cluster.wait_for(&record, TIMEOUT, &|record| {
        record["status"]["attachments"].is_array()
    });
    let found = found.expect("a record");
    found["status"]["attachments"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

/// `(interface, network)` of every attachment of the pod, in index order.
pub fn interfaces(cluster: &dyn Cluster, pod: &Object) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = attachments(cluster, pod);
    let each = all
        .iter()
        .map(|one| (text(&one["interface"]), text(&one["network"]["name"])));
    each.collect()
}

/// The address of an interface, of IPv6 if it says so; without its length.
pub fn address(cluster: &dyn Cluster, pod: &Object, interface: &str, v6: bool) -> String {
    let all = attachments(cluster, pod);
    let one = all.iter().find(|one| one["interface"] == interface);
    let one = one.unwrap_or_else(|| panic!("{pod} has no {interface}: {all:?}"));
    let mut ips = one["ips"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let found = ips.find(|ip| ip.contains(':') == v6);
    let found = found.unwrap_or_else(|| panic!("{interface} of {pod} has no such address: {one}"));
    found.split('/').next().unwrap_or_default().to_owned()
}

/// The node's addresses, IPv4 first.
pub fn node_ips(cluster: &dyn Cluster, node: &str) -> Vec<String> {
    let object = Object::new("v1", "Node", "", node);
    let seen = cluster.get(&object).expect("asked").expect("is there");
    let listed = seen["status"]["addresses"].as_array();
    let internal = listed
        .into_iter()
        .flatten()
        .filter(|entry| entry["type"] == "InternalIP");
    let mut ips: Vec<String> = internal
        .filter_map(|entry| Some(entry["address"].as_str()?.to_owned()))
        .collect();
    ips.sort_by_key(|ip| ip.contains(':'));
    ips
}

/// A shell script of the node in the pod's network namespace.
pub fn inside(cluster: &dyn Cluster, pod: &Object, script: &str) -> Output {
    cluster
        .in_netns(pod, &["sh", "-c", script])
        .expect("it runs")
}

/// What the script prints; it must succeed.
pub fn output_of(cluster: &dyn Cluster, pod: &Object, script: &str) -> String {
    match inside(cluster, pod, script).text() {
        Ok(text) => text,
        Err(error) => panic!("{pod}: {script}: {error:#}"),
    }
}

/// Whether a ping with these arguments is answered. The first may wait for a neighbour or a remote
/// block: an answer to any of them counts.
pub fn pings(cluster: &dyn Cluster, pod: &Object, arguments: &str) -> bool {
    inside(
        cluster,
        pod,
        &format!("ping -n -c 100 -i 0.2 -w 20 {arguments} | grep -q -m1 'bytes from'"),
    )
    .ok()
}

/// Whether none of three pings is answered.
pub fn silent(cluster: &dyn Cluster, pod: &Object, arguments: &str) -> bool {
    !inside(
        cluster,
        pod,
        &format!("ping -n -c 3 -i 0.2 -W 1 -w 1 {arguments}"),
    )
    .ok()
}

/// How many echo requests a pod has received: exact, whoever sent them.
pub fn echoes(cluster: &dyn Cluster, pod: &Object) -> u64 {
    let script = "awk '/^Icmp:/ && !n {for (i = 1; i <= NF; i++) if ($i == \"InEchos\") n = i; next} \
                  /^Icmp:/ {print $n}' /proc/net/snmp; awk '/^Icmp6InEchos /{print $2}' /proc/net/snmp6";
    let text = output_of(cluster, pod, script);
    text.split_whitespace()
        .map(|word| word.parse::<u64>().expect("a number"))
        .sum()
}

/// Who serves this address, as the pod sees it; empty: nobody.
pub fn who(cluster: &dyn Cluster, pod: &Object, address: &str) -> String {
    let script = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {address} 80 | tail -n1");
    let output = cluster.exec(pod, &["sh", "-c", &script]).expect("it runs");
    output.stdout.trim().to_owned()
}

/// The Events about an object: reason and message.
pub fn messages(cluster: &dyn Cluster, object: &Object) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = cluster
        .list("v1", "Event", &object.namespace)
        .expect("Events");
    let about = all.iter().filter(|event| {
        let involved = &event["involvedObject"];
        involved["kind"] == object.kind.as_str() && involved["name"] == object.name.as_str()
    });
    about
        .map(|event| (text(&event["reason"]), text(&event["message"])))
        .collect()
}

/// Waits for an Event with this reason and all of these words; gives its message.
pub fn event(cluster: &dyn Cluster, object: &Object, reason: &str, words: &[&str]) -> String {
    let mut seen = Vec::new();
    let found = wait::until(&format!("Event {reason}"), TIMEOUT, || {
        seen = messages(cluster, object);
        let fits = |(why, text): &&(String, String)| {
            why == reason && words.iter().all(|word| text.contains(word))
        };
        Ok(seen.iter().find(fits).map(|(_, text)| text.clone()))
    });
    found.unwrap_or_else(|error| panic!("{object}: {words:?}: {error:#}; {seen:?}"))
}

/// Deletes the objects and waits until they are gone; of pods also their records, which end when
/// everything on the node has.
pub fn gone(cluster: &dyn Cluster, objects: &[&Object]) {
    let record = |pod: &&&Object| {
        let seen = cluster.get(pod).expect("asked")?;
        let uid = seen["metadata"]["uid"].as_str()?;
        let (version, namespace) = ("plexus.dev/v1alpha1", &pod.namespace);
        Some(Object::new(version, "PodAttachments", namespace, uid))
    };
    let pods = objects.iter().filter(|object| object.kind == "Pod");
    let records: Vec<Object> = pods.filter_map(|pod| record(&pod)).collect();
    for object in objects {
        cluster.delete(object).expect("deleted");
    }
    for object in objects.iter().copied().chain(&records) {
        cluster.wait_gone(object, TIMEOUT).expect("gone");
    }
}

/// Waits until it holds.
pub fn holds(what: &str, timeout: Duration, mut look: impl FnMut() -> bool) {
    wait::until(what, timeout, || Ok(look().then_some(()))).expect("holds");
}

fn texts(pairs: &[(&str, &str)]) -> Value {
    let each = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)));
    Value::Object(each.collect())
}

/// What a shell script prints on a node; it must succeed.
pub fn on(cluster: &dyn Cluster, node: &str, script: &str) -> String {
    let output = cluster
        .on_node(node, &["sh", "-c", script])
        .expect("it runs");
    match output.text() {
        Ok(text) => text,
        Err(error) => panic!("{node}: {script}: {error:#}"),
    }
}

/// A script that a node runs when the test is over, however it ends.
pub struct NodeCleanup<'a> {
    pub cluster: &'a dyn Cluster,
    pub node: &'a str,
    pub script: String,
}

impl Drop for NodeCleanup<'_> {
    fn drop(&mut self) {
        let run = self.cluster.on_node(self.node, &["sh", "-c", &self.script]);
        if let Err(error) = run.and_then(Output::text) {
            eprintln!("{}: {}: {error:#}", self.node, self.script);
        }
    }
}

/// Pods that must be gone before what they need is, however the test ends. Declare it after what takes
/// that away.
pub struct PodsFirst<'a> {
    pub cluster: &'a dyn Cluster,
    pub pods: Vec<Object>,
}

impl Drop for PodsFirst<'_> {
    fn drop(&mut self) {
        let uid = |pod: &Object| {
            let seen = self.cluster.get(pod).ok()??;
            Some(seen["metadata"]["uid"].as_str()?.to_owned())
        };
        for pod in &self.pods {
            let Some(uid) = uid(pod) else {
                continue;
            };
            let (version, kind) = ("plexus.dev/v1alpha1", "PodAttachments");
            let record = Object::new(version, kind, &pod.namespace, &uid);
            let deleted = self.cluster.delete(pod);
            if let Err(error) = deleted.and_then(|()| self.cluster.wait_gone(&record, TIMEOUT)) {
                eprintln!("{pod} stays: {error:#}");
            }
        }
    }
}
