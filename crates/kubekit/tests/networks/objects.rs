//! Definitions, validation, phases, deletion, conflicts.

use crate::common::{
    PLEXUS, apply, event, gone, holds, inside, network, network_object, pod, ready,
};
use plexus_kubekit::cluster::{TIMEOUT, has_condition};
use plexus_kubekit::test_cluster::Need;
use plexus_kubekit::{Cluster, Namespace, Object, test_cluster};
use serde_json::{Value, json};

fn nad_definition() -> Object {
    let name = "network-attachment-definitions.k8s.cni.cncf.io";
    Object::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        name,
    )
}

#[test]
fn the_nad_is_defined_and_a_controller_that_starts_leaves_it_as_it_is() {
    let Some(kube) = test_cluster::kubernetes(Need::Containers).expect("a lab") else {
        return;
    };
    let definition = nad_definition();
    let before = kube.get(&definition).expect("asked").expect("is defined");
    assert_eq!(before["spec"]["names"]["shortNames"][0], "net-attach-def");
    assert!(has_condition(&before, "Established"), "{before}");
    // A mark that only somebody else would make.
    let mark = |value: Value| json!({"metadata": {"annotations": {"example.com/foreign": value}}});
    let marked = kube.api().merge(&definition, &mark(json!("yes")));
    marked.expect("marked");

    // Another replica looks for the definition before it asks for the lease.
    let replica = Object::pod("plexus-system", "second-controller");
    let manifest = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": replica.name, "namespace": replica.namespace},
        "spec": {
            "serviceAccountName": "plexus-controller", "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "controller", "image": "localhost/plexus:dev",
                "command": ["/bin/plexus", "controller"],
                "args": ["--identity=second-controller", "--health-address=127.0.0.1:9092"],
            }],
        },
    });
    apply(kube, &[manifest]);
    let looked = kube.wait_ready(&replica, TIMEOUT).and_then(|_| {
        plexus_kubekit::wait::until("definitions looked at", TIMEOUT, || {
            let script = "exec 3<>/dev/tcp/127.0.0.1/9092; printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
            let output_of = kube.in_netns(&replica, &["bash", "-c", script])?.text()?;
            Ok((output_of.contains("HTTP/1.") && !output_of.contains("crds")).then_some(()))
        })
    });
    let after = kube.get(&definition);
    gone(kube, &[&replica]);
    let unmarked = kube.api().merge(&definition, &mark(Value::Null));
    looked.expect("looked at");
    unmarked.expect("unmarked");
    let after = after.expect("asked").expect("is defined");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(
        after["metadata"]["annotations"]["example.com/foreign"],
        "yes"
    );
}

#[test]
fn what_cannot_be_is_refused_when_it_is_applied() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "valid").expect("a namespace");
    let refused = [
        (
            json!({"subnets": {"a": {"cidr": "10.1.0.1/16"}}}),
            "without host bits",
        ),
        (
            json!({"subnets": {"a": {"cidr": "ten"}}}),
            "without host bits",
        ),
        (
            json!({"subnets": {"a": {"cidr": "10.1.0.0/16", "gateway": "10.2.0.1"}}}),
            "gateway must be an address of cidr",
        ),
        (
            json!({"subnets": {"a": {"cidr": "10.1.0.0/16", "exclude": ["10.3.0.0/24"]}}}),
            "inside cidr",
        ),
        (
            json!({"provider": "carrier-pigeon"}),
            "provider is not known",
        ),
        (
            json!({"routes": [{"dst": "10.0.0.0/8", "gw": "fd00::1"}]}),
            "family of dst",
        ),
        (
            json!({"allowedNamespaces": {"from": "Selector"}}),
            "selector must be there",
        ),
        (json!({"allowedNamespaces": {"from": "Nobody"}}), "Nobody"),
        (json!({"mtu": 1}), "mtu"),
        (json!({"blockSize": {"ipv4": 33}}), "33"),
        (json!({"colour": "blue"}), "colour"),
        (
            json!({"subnets": {"a": {"cidr": "10.1.0.0/16", "dns": "no"}}}),
            "dns",
        ),
    ];
    for (spec, why) in refused {
        let text = network(namespace.name(), "bad", spec.clone()).to_string();
        let server_side = kube.apply(&text).expect_err(&text);
        let server_side = format!("{server_side:#}");
        assert!(server_side.contains(why), "{spec}: {server_side}");
        let kubectl = kube.kubectl(&["apply", "-f", "-"], &text).expect("runs");
        assert!(!kubectl.ok() && kubectl.stderr.contains(why), "{kubectl:?}");
    }
    let good = json!({"subnets": {"a": {"cidr": "10.1.0.0/16"}}, "blockSize": {"ipv4": 28}});
    apply(kube, &[network(namespace.name(), "good", good)]);
    let object = network_object(namespace.name(), "good");
    for (patch, why) in [
        (
            json!({"spec": {"provider": "routed"}}),
            "provider cannot be changed",
        ),
        (
            json!({"spec": {"blockSize": {"ipv4": 27}}}),
            "blockSize cannot be changed",
        ),
        (
            json!({"spec": {"blockSize": null}}),
            "blockSize cannot be changed",
        ),
    ] {
        let error = kube.api().merge(&object, &patch).expect_err(why);
        assert!(format!("{error:#}").contains(why), "{error:#}");
    }
    let columns = kube.kubectl(&["get", "-n", namespace.name(), "networks"], "");
    let columns = columns.expect("runs").text().expect("succeeds");
    assert!(
        columns.contains("PROVIDER") && columns.contains("PHASE"),
        "{columns}"
    );
}

#[test]
fn a_network_in_use_waits_and_says_who_uses_it() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "phases").expect("a namespace");
    let ns = namespace.name();
    let spec = json!({"subnets": {"a": {"cidr": "10.61.0.0/24"}, "b": {"cidr": "fd00:61::/64"}}});
    apply(
        kube,
        &[
            network(ns, "blue", spec),
            pod(ns, "user", "n1", &[(PLEXUS, "blue")]),
        ],
    );
    let (blue, user) = (network_object(ns, "blue"), namespace.pod("user"));
    ready(kube, &[&user]);
    let used = |net: &Value| net["status"]["usage"]["allocated"] == 1;
    let active = kube.wait_for(&blue, TIMEOUT, &used).expect("used");
    assert_eq!(active["status"]["phase"], "Active");
    assert!(has_condition(&active, "Ready"), "{active}");
    let vni = active["status"]["vni"].as_u64().expect("a VNI");
    assert!((4097..1 << 24).contains(&vni), "{vni}");
    assert_eq!(active["status"]["usage"]["blocks"], 2);
    let uid = active["metadata"]["uid"]
        .as_str()
        .expect("a UID")
        .to_owned();

    kube.delete(&blue).expect("deleted");
    let ends = |net: &Value| net["status"]["phase"] == "Terminating" && has_condition(net, "InUse");
    let ending = kube.wait_for(&blue, TIMEOUT, &ends).expect("Terminating");
    let output_of = ending["status"]["conditions"].to_string();
    assert!(output_of.contains(&format!("{ns}/user")), "{output_of}");
    apply(kube, &[pod(ns, "late", "n1", &[(PLEXUS, "blue")])]);
    let late = namespace.pod("late");
    event(kube, &late, "FailedAttach", &["blue", "Terminating"]);
    // The user has what it had, until it is gone.
    let links = inside(kube, &user, "ip -br addr show net1");
    assert!(links.stdout.contains("10.61.0."), "{links:?}");
    assert!(kube.get(&blue).expect("asked").is_some());

    gone(kube, &[&user, &late]);
    kube.wait_gone(&blue, TIMEOUT).expect("gone");
    holds("its blocks gone", TIMEOUT, || blocks_of(kube, &uid) == 0);
}

fn blocks_of(kube: &dyn Cluster, uid: &str) -> usize {
    let blocks = kube
        .list("plexus.dev/v1alpha1", "Block", "")
        .expect("Blocks");
    let of = |block: &&Value| block["spec"]["network"]["uid"] == uid;
    blocks.iter().filter(of).count()
}

#[test]
fn subnets_that_would_collide_are_reported_and_wait() {
    let kube = test_cluster::shared().expect("a lab");
    let namespace = Namespace::create(kube, "conflict").expect("a namespace");
    let ns = namespace.name();
    let spec = |provider: &str, cidr: &str| json!({"provider": provider, "subnets": {"a": {"cidr": cidr}}});
    let active = |net: &Value| net["status"]["phase"] == "Active";
    apply(
        kube,
        &[
            network(ns, "first", spec("routed", "10.62.0.0/16")),
            pod(ns, "user", "n1", &[(PLEXUS, "first")]),
        ],
    );
    let (first, user) = (network_object(ns, "first"), namespace.pod("user"));
    ready(kube, &[&user]);
    // It is used: nothing that comes later takes its place.
    let used = |net: &Value| active(net) && net["status"]["usage"]["blocks"] == 1;
    kube.wait_for(&first, TIMEOUT, &used).expect("Active");
    apply(
        kube,
        &[
            network(ns, "second", spec("routed", "10.62.7.0/24")),
            network(ns, "apart", spec("overlay", "10.62.0.0/16")),
        ],
    );
    let conflict =
        |net: &Value| net["status"]["phase"] == "Pending" && has_condition(net, "SubnetConflict");
    let mut rivals = vec![("second", "10.62.0.0/16 of Network")];
    if test_cluster::kubernetes(Need::Services)
        .expect("a lab")
        .is_some()
    {
        let services = spec("routed", "10.96.0.0/24");
        apply(kube, &[network(ns, "services", services)]);
        rivals.push(("services", "ServiceCIDR"));
    }
    for (name, rival) in rivals {
        let object = network_object(ns, name);
        let waits = kube.wait_for(&object, TIMEOUT, &conflict).expect("waits");
        let output_of = waits["status"]["conditions"].to_string();
        assert!(output_of.contains(rival), "{output_of}");
    }
    let apart = kube.wait_for(&network_object(ns, "apart"), TIMEOUT, &active);
    assert!(!has_condition(&apart.expect("Active"), "SubnetConflict"));
    apply(kube, &[pod(ns, "p", "n1", &[(PLEXUS, "second")])]);
    event(
        kube,
        &namespace.pod("p"),
        "FailedAttach",
        &["second", "overlaps"],
    );

    // The first goes, the second's turn has come, and so has the pod's that waited for it.
    gone(kube, &[&user]);
    gone(kube, &[&first]);
    let second = network_object(ns, "second");
    kube.wait_for(&second, TIMEOUT, &active).expect("Active");
    ready(kube, &[&namespace.pod("p")]);
}
