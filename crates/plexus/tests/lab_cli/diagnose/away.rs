//! Agents, nodes, runtimes and servers that are away.

use super::{FaultyLab, NETWORKS};
use crate::machine::Lab;
use crate::output::{ok, plexus};
use plexus_cli::diagnose::Reason;
use std::process::Command;

pub(super) const LEADS_TO: &[Reason] = &[
    Reason::AgentAway,
    Reason::Asking,
    Reason::Attached,
    Reason::Going,
    Reason::NoRecord,
    Reason::NodeNotReady,
    Reason::Starting,
];

#[test]
fn agents_nodes_and_servers_that_are_away() {
    let faulty = FaultyLab::up('y', 2, LEADS_TO);
    let lab = &faulty.lab;
    lab.ok(&["kill", "n2", "--hold"]);
    faulty.pod("waits", "n2", NETWORKS, "");
    faulty.comes_to(&["pod", "waits"], Reason::AgentAway, "waits");
    faulty.comes_to(&["pod", "waits"], Reason::NodeNotReady, "waits");
    lab.ok(&["start", "n2"]);
    faulty.comes_to(&["pod", "waits"], Reason::Attached, "ok");

    left(&faulty);
    asking(&faulty);
    cut_off(&faulty);
    nobody_asks(&faulty);

    lab.ok(&["remove-node", "n2"]);
    lab.eventually(
        "the pod of the node that is gone says so, or is gone too",
        || {
            let output = plexus(lab, &["diagnose", "pod", "waits", "-o", "json"]);
            output.out.contains("node-gone") || output.error.contains("there is no Pod")
        },
    );
    nobody_answers(lab);
    faulty.end();
}

/// One that the API no longer has, and its node has not seen go.
fn left(faulty: &FaultyLab) {
    let lab = &faulty.lab;
    faulty.pod("left", "n2", NETWORKS, "");
    faulty.comes_to(&["pod", "left"], Reason::Attached, "ok");
    lab.ok(&["kill", "n2", "--hold"]);
    lab.delete_pod("left", 0);
    faulty.comes_to(&["pod", "left"], Reason::Going, "waits");
    let described = ok(lab, &["describe", "pod", "left"]);
    assert!(
        described.starts_with("Pod default/left\n") && described.contains("eth0: Attached"),
        "{described}"
    );
    lab.ok(&["start", "n2"]);
    lab.eventually("its record goes", || {
        let output = plexus(lab, &["describe", "pod", "left"]);
        output.error.contains("there is no Pod default/left")
    });
}

/// The only block is the other node's, whose agent does not answer.
fn asking(faulty: &FaultyLab) {
    let lab = &faulty.lab;
    let one_block = "{subnets: {a: {cidr: 10.9.0.0/28}}, blockSize: {ipv4: 28}}";
    faulty.network("small", one_block);
    faulty.pod("owner", "n1", NETWORKS, "small");
    faulty.comes_to(&["pod", "owner"], Reason::Attached, "ok");
    lab.ok(&["kill", "n1", "--hold"]);
    faulty.pod("asker", "n2", NETWORKS, "small");
    let output = faulty.comes_to(&["network", "small"], Reason::Asking, "waits");
    assert!(
        output.to_string().contains("n2 asks other nodes"),
        "{output:#}"
    );
    lab.ok(&["start", "n1"]);
    faulty.comes_to(&["pod", "asker"], Reason::Attached, "ok");
}

/// A node that does not reach the API makes pods' networks all the same, and cannot say so.
fn cut_off(faulty: &FaultyLab) {
    faulty.lab.ok(&["cut", "n2"]);
    faulty.pod("unrecorded", "n2", NETWORKS, "");
    faulty.comes_to(&["pod", "unrecorded"], Reason::NoRecord, "waits");
    faulty.lab.ok(&["heal", "n2"]);
    faulty.comes_to(&["pod", "unrecorded"], Reason::Attached, "ok");
}

/// A runtime that hangs: nobody asks for the pod's networks.
fn nobody_asks(faulty: &FaultyLab) {
    let keeper = faulty.lab.pid("/keeper").expect("it runs").to_string();
    let signal = |signal: &str| {
        let sent = Command::new("kill").args([signal, &keeper]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    faulty.pod("unasked", "n1", NETWORKS, "");
    faulty.comes_to(&["pod", "unasked"], Reason::Starting, "waits");
    signal("-CONT");
    faulty.comes_to(&["pod", "unasked"], Reason::Attached, "ok");
}

/// The lab is gone, and whoever asks it is told.
fn nobody_answers(lab: &Lab) {
    let kept = std::env::temp_dir().join(format!("plexus-kubeconfig-{}", std::process::id()));
    std::fs::copy(lab.file("kubeconfig"), &kept).unwrap();
    lab.ok(&["down"]);
    let kubeconfig = kept.display().to_string();
    for words in [
        &["get", "networks"][..],
        &["diagnose", "pod", "default/x"],
        &["describe", "pod", "x"],
        &["delete", "pod", "x"],
    ] {
        let output = plexus(lab, &[words, &["--kubeconfig", &kubeconfig]].concat());
        assert_eq!(output.code, Some(1), "{words:?}: {output:#?}");
        assert!(
            output.error.contains("does not answer"),
            "{words:?}: {output:#?}"
        );
    }
    std::fs::remove_file(&kept).unwrap();
}
