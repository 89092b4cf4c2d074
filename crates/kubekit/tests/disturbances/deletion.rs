//! A pod is deleted and nothing of it stays, whoever was away at the time; what comes after it under
//! the same name never meets it.

use crate::common;
use crate::disturb;
use crate::disturb::{
    NodeWithoutAgent, Scenario, pod_of_three, record_of, three_networks, uid_of, wait_agent,
};
use plexus_kubekit::cluster::TIMEOUT;
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Breakable, Cluster, Kube, Namespace, Object, breakable};
use serde_json::{Value, json};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::anywhere("everybody is there", everybody_is_there),
        Scenario::anywhere("the agent is away", no_agent),
        Scenario::anywhere("the node cannot be asked", no_answer),
        Scenario::with(Need::Kinds, "a StatefulSet here and elsewhere", stateful),
        Scenario::with(Need::Power, "the power was off", no_power),
        Scenario::anywhere("the Node is registered again", registered_again),
        Scenario::with(Need::Power, "the Node is removed", no_node),
    ]
}

fn everybody_is_there(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "deleted");
    three_networks(cluster, namespace.name());
    let (pod, record) = start(cluster, &namespace, "p", "n1");
    cluster.delete(&pod).expect("deleted");
    cluster.wait_gone(&pod, TIMEOUT).expect("gone");
    cluster.wait_gone(&record, TIMEOUT).expect("gone");
}

/// The shim queues what nobody does, so that the pod can go; its record waits.
fn no_agent(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "agentless");
    three_networks(cluster, namespace.name());
    let (pod, record) = start(cluster, &namespace, "p", "n2");
    let away = NodeWithoutAgent::send(cluster, "n2");
    cluster.delete(&pod).expect("deleted");
    cluster.wait_gone(&pod, TIMEOUT).expect("gone");
    let left = cluster.get(&record).expect("asked");
    drop(away);
    assert!(left.is_some(), "nobody could know that it is gone");
    cluster.wait_gone(&record, TIMEOUT).expect("gone");
}

/// The pod is gone from the API, and its node does not know (on Kubernetes it still runs): its record stays until
/// the node has seen it end. Its successor on the same node wants the same address.
fn no_answer(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "headless");
    three_networks(cluster, namespace.name());
    let (pod, record) = start_static(cluster, &namespace, "n1");
    cluster.cut_off("n1").expect("cut off");
    cluster.api().delete(&pod, Some(0)).expect("deleted");
    cluster.wait_gone(&pod, TIMEOUT).expect("gone");
    let (successor, _) = apply_static(cluster, &namespace, "n1");
    let left = cluster.get(&record).expect("asked");
    cluster.rejoin("n1").expect("joined");
    assert!(left.is_some(), "nobody has seen it end");
    cluster.wait_gone(&record, TIMEOUT).expect("gone");
    disturb::wait_ready(cluster, &successor, TIMEOUT * 2);
    assert_eq!(common::address(cluster, &successor, "net1", false), STATIC);
}

fn stateful(kube: &Kube) {
    let namespace = disturb::namespace(kube, "stateful");
    three_networks(kube, namespace.name());
    let mut template = pod_of_three(namespace.name(), "x", "n1");
    let meta =
        json!({"labels": {"app": "web"}, "annotations": template["metadata"]["annotations"]});
    let mut spec = template["spec"].take();
    spec.as_object_mut().expect("a spec").remove("nodeName");
    spec["nodeSelector"] = json!({"kubernetes.io/hostname": "n1"});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": namespace.name()},
        "spec": {"replicas": 1, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": meta, "spec": spec}},
    });
    common::apply(kube, &[set]);
    let pod = namespace.pod("web-0");
    let object = Object::new("apps/v1", "StatefulSet", namespace.name(), "web");
    let mut seen = Vec::new();
    for node in ["n1", "n1", "n2", "n1"] {
        let selector = json!({"kubernetes.io/hostname": node});
        let patch = json!({"spec": {"template": {"spec": {"nodeSelector": selector}}}});
        kube.lab().api().merge(&object, &patch).expect("patched");
        if !seen.is_empty() {
            kube.delete(&pod).expect("deleted");
        }
        let ready = kube.wait_for(&pod, TIMEOUT, &|pod| {
            let new = pod["metadata"]["uid"]
                .as_str()
                .is_some_and(|uid| !seen.contains(&uid.to_owned()));
            new && pod["spec"]["nodeName"] == node && plexus_kubekit::cluster::is_ready(pod)
        });
        let ready = ready.expect("ready");
        assert_eq!(common::attachments(kube, &pod).len(), 4);
        for before in &seen {
            kube.wait_gone(&record_of(namespace.name(), before), TIMEOUT)
                .expect("gone");
        }
        seen.push(ready["metadata"]["uid"].as_str().expect("a UID").to_owned());
    }
    // Its own controller would make it again.
    common::gone(kube, &[&object, &pod]);
}

/// The node confirms when it is back: nothing that it had is left.
fn no_power(kube: &Kube) {
    let namespace = disturb::namespace(kube, "dark");
    three_networks(kube, namespace.name());
    let (pod, record) = start(kube, &namespace, "p", "n2");
    let (stays, _) = start(kube, &namespace, "stays", "n2");
    kube.lab().power_off("n2").expect("off");
    kube.lab().api().delete(&pod, Some(0)).expect("deleted");
    kube.wait_gone(&pod, TIMEOUT).expect("gone");
    let left = kube.get(&record).expect("asked");
    kube.lab().power_on("n2").expect("on");
    assert!(left.is_some(), "nobody has confirmed it");
    wait_agent(kube, "n2");
    kube.wait_gone(&record, TIMEOUT).expect("gone");
    // Its kernel state went with the power; it gets all of it anew.
    disturb::wait_ready(kube, &stays, TIMEOUT * 2);
    assert_eq!(common::attachments(kube, &stays).len(), 4);
}

/// A static address stays with the pod that had it as long as its node may come back.
fn no_node(kube: &Kube) {
    let namespace = disturb::namespace(kube, "removed");
    three_networks(kube, namespace.name());
    let (pod, record) = start_static(kube, &namespace, "n2");
    let node = kube
        .get(&Object::new("v1", "Node", "", "n2"))
        .expect("asked")
        .expect("is there");
    let blocks = || -> Vec<Value> {
        let all = kube
            .list("plexus.dev/v1alpha1", "Block", "")
            .expect("blocks");
        let own = |block: &Value| block["spec"]["nodeUID"] == node["metadata"]["uid"];
        all.into_iter().filter(own).collect()
    };
    assert!(!blocks().is_empty());
    kube.lab().power_off("n2").expect("off");
    kube.lab().api().delete(&pod, Some(0)).expect("deleted");
    kube.wait_gone(&pod, TIMEOUT).expect("gone");
    let (elsewhere, _) = apply_static(kube, &namespace, "n1");
    common::event(kube, &elsewhere, "FailedAttach", &[STATIC, "n2"]);
    assert!(kube.get(&record).expect("asked").is_some());

    kube.delete(&Object::new("v1", "Node", "", "n2"))
        .expect("deleted");
    force_away(kube, "n2");
    kube.wait_gone(&record, TIMEOUT).expect("gone");
    common::holds("the blocks return", TIMEOUT, || blocks().is_empty());
    let got = disturb::wait_ready(kube, &elsewhere, TIMEOUT * 2);
    assert_eq!(got["spec"]["nodeName"], "n1");
    assert_eq!(common::address(kube, &elsewhere, "net1", false), STATIC);

    kube.lab().power_on("n2").expect("on");
    kube.lab().wait_nodes(&["n2"]).expect("ready");
    wait_agent(kube, "n2");
    let (again, _) = start(kube, &namespace, "again", "n2");
    assert_eq!(common::attachments(kube, &again).len(), 4);
}

/// The machine is the same and so are its blocks: of a network with one block, new pods get addresses.
fn registered_again(cluster: &dyn Breakable) {
    let namespace = disturb::namespace(cluster, "again");
    let space = namespace.name();
    let subnets = json!({"provider": "routed", "subnets": {"a": {"cidr": "10.71.0.0/26"}}});
    let pod = |name: &str| common::pod(space, name, "n1", &[(common::PLEXUS, "tiny")]);
    common::apply(
        cluster,
        &[common::network(space, "tiny", subnets), pod("before")],
    );
    let (before, _) = ready(cluster, &namespace.pod("before"));
    cluster.register_again("n1").expect("registered");
    wait_agent(cluster, "n1");
    common::apply(cluster, &[pod("after")]);
    let after = namespace.pod("after");
    disturb::wait_ready(cluster, &after, TIMEOUT * 2);
    let blocks = cluster
        .list("plexus.dev/v1alpha1", "Block", "")
        .expect("blocks");
    let tiny: Vec<&Value> = blocks
        .iter()
        .filter(|block| block["spec"]["cidr"] == "10.71.0.0/26")
        .collect();
    let now = cluster.get(&breakable::node("n1"));
    let now = now.expect("asked").expect("there");
    assert_eq!(tiny.len(), 1);
    assert_eq!(tiny[0]["spec"]["nodeUID"], now["metadata"]["uid"]);
    if cluster.get(&before).expect("asked").is_some() {
        let one = common::address(cluster, &before, "net1", false);
        assert_ne!(one, common::address(cluster, &after, "net1", false));
    }
}

const STATIC: &str = "10.1.7.7";

/// A pod on all three networks, ready, and its record.
fn start(
    cluster: &dyn Breakable,
    namespace: &Namespace<'_>,
    name: &str,
    node: &str,
) -> (Object, Object) {
    common::apply(cluster, &[pod_of_three(namespace.name(), name, node)]);
    ready(cluster, &namespace.pod(name))
}

fn start_static(
    cluster: &dyn Breakable,
    namespace: &Namespace<'_>,
    node: &str,
) -> (Object, Object) {
    let (pod, _) = apply_static(cluster, namespace, node);
    let (pod, record) = ready(cluster, &pod);
    assert_eq!(common::address(cluster, &pod, "net1", false), STATIC);
    (pod, record)
}

/// A pod of always the same name that wants always the same address.
fn apply_static(
    cluster: &dyn Breakable,
    namespace: &Namespace<'_>,
    node: &str,
) -> (Object, String) {
    let asked = json!([{"name": "blue", "ips": [STATIC]}]).to_string();
    let annotations = [(common::PLEXUS, asked.as_str())];
    common::apply(
        cluster,
        &[common::pod(namespace.name(), "static", node, &annotations)],
    );
    let pod = namespace.pod("static");
    let uid = uid_of(cluster, &pod);
    (pod, uid)
}

fn ready(cluster: &dyn Breakable, pod: &Object) -> (Object, Object) {
    common::ready(cluster, &[pod]);
    common::attachments(cluster, pod);
    let uid = uid_of(cluster, pod);
    (pod.clone(), record_of(&pod.namespace, &uid))
}

/// Deletes the pods that are bound to a Node that is gone: the collector of the cluster would take
/// its time.
fn force_away(kube: &Kube, node: &str) {
    for pod in kube.list("v1", "Pod", "").expect("pods") {
        if pod["spec"]["nodeName"] == node {
            let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default().to_owned();
            let pod = Object::pod(&text("namespace"), &text("name"));
            kube.lab().api().delete(&pod, Some(0)).expect("deleted");
        }
    }
}
