//! Agents, nodes, runtimes and servers that are away.

use super::{NETWORKS, Scene};
use crate::machine::Lab;
use crate::said::{ok, plexus};
use plexus_cli::explain::Because;
use std::process::Command;

pub(super) const LEADS_TO: &[Because] = &[
    Because::AgentAway,
    Because::Asking,
    Because::Attached,
    Because::Going,
    Because::NoRecord,
    Because::NodeNotReady,
    Because::Starting,
];

#[test]
fn agents_nodes_and_servers_that_are_away() {
    let scene = Scene::up('y', 2, LEADS_TO);
    let lab = &scene.lab;
    lab.ok(&["kill-agent", "n2", "--hold"]);
    scene.pod("waits", "n2", NETWORKS, "");
    scene.comes_to(&["pod", "waits"], Because::AgentAway, "waits");
    scene.comes_to(&["pod", "waits"], Because::NodeNotReady, "waits");
    lab.ok(&["start-agent", "n2"]);
    scene.comes_to(&["pod", "waits"], Because::Attached, "ok");

    left(&scene);
    asking(&scene);
    cut_off(&scene);
    nobody_asks(&scene);

    lab.ok(&["remove-node", "n2"]);
    lab.eventually(
        "the pod of the node that is gone says so, or is gone too",
        || {
            let said = plexus(lab, &["explain", "pod", "waits", "-o", "json"]);
            said.out.contains("node-gone") || said.error.contains("there is no Pod")
        },
    );
    nobody_answers(lab);
    scene.end();
}

/// One that the API no longer has, and its node has not seen go.
fn left(scene: &Scene) {
    let lab = &scene.lab;
    scene.pod("left", "n2", NETWORKS, "");
    scene.comes_to(&["pod", "left"], Because::Attached, "ok");
    lab.ok(&["kill-agent", "n2", "--hold"]);
    lab.delete_pod("left", 0);
    scene.comes_to(&["pod", "left"], Because::Going, "waits");
    let described = ok(lab, &["describe", "pod", "left"]);
    assert!(
        described.starts_with("Pod default/left\n") && described.contains("eth0: Attached"),
        "{described}"
    );
    lab.ok(&["start-agent", "n2"]);
    lab.eventually("its record goes", || {
        let said = plexus(lab, &["describe", "pod", "left"]);
        said.error.contains("there is no Pod default/left")
    });
}

/// The only block is the other node's, whose agent does not answer.
fn asking(scene: &Scene) {
    let lab = &scene.lab;
    let one_block = "{subnets: {a: {cidr: 10.9.0.0/28}}, blockSize: {ipv4: 28}}";
    scene.network("small", one_block);
    scene.pod("owner", "n1", NETWORKS, "small");
    scene.comes_to(&["pod", "owner"], Because::Attached, "ok");
    lab.ok(&["kill-agent", "n1", "--hold"]);
    scene.pod("asker", "n2", NETWORKS, "small");
    let said = scene.comes_to(&["network", "small"], Because::Asking, "waits");
    assert!(said.to_string().contains("n2 asks other nodes"), "{said:#}");
    lab.ok(&["start-agent", "n1"]);
    scene.comes_to(&["pod", "asker"], Because::Attached, "ok");
}

/// A node that does not reach the API makes pods' networks all the same, and cannot say so.
fn cut_off(scene: &Scene) {
    scene.lab.ok(&["partition", "n2"]);
    scene.pod("unrecorded", "n2", NETWORKS, "");
    scene.comes_to(&["pod", "unrecorded"], Because::NoRecord, "waits");
    scene.lab.ok(&["partition", "n2", "--heal"]);
    scene.comes_to(&["pod", "unrecorded"], Because::Attached, "ok");
}

/// A runtime that hangs: nobody asks for the pod's networks.
fn nobody_asks(scene: &Scene) {
    let keeper = scene.lab.pid("/keeper").expect("it runs").to_string();
    let signal = |signal: &str| {
        let sent = Command::new("kill").args([signal, &keeper]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    scene.pod("unasked", "n1", NETWORKS, "");
    scene.comes_to(&["pod", "unasked"], Because::Starting, "waits");
    signal("-CONT");
    scene.comes_to(&["pod", "unasked"], Because::Attached, "ok");
}

/// The lab is gone, and whoever asks it is told.
fn nobody_answers(lab: &Lab) {
    let kept = std::env::temp_dir().join(format!("plexus-kubeconfig-{}", std::process::id()));
    std::fs::copy(lab.file("kubeconfig"), &kept).unwrap();
    lab.ok(&["down"]);
    let kubeconfig = kept.display().to_string();
    for words in [
        &["get", "networks"][..],
        &["explain", "pod", "default/x"],
        &["describe", "pod", "x"],
        &["delete", "pod", "x"],
    ] {
        let said = plexus(lab, &[words, &["--kubeconfig", &kubeconfig]].concat());
        assert_eq!(said.code, Some(1), "{words:?}: {said:#?}");
        assert!(
            said.error.contains("does not answer"),
            "{words:?}: {said:#?}"
        );
    }
    std::fs::remove_file(&kept).unwrap();
}
