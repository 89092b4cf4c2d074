//! `down` leaves nothing, whatever was left; `up` goes on from wherever it was stopped.

use crate::machine::{Lab, host, links};
use crate::nodes::{lan, pod_on_lan};
use crate::pods::NETWORKS;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn down_leaves_nothing_though_everything_was_killed() {
    let lab = Lab::named('d');
    let before = links();
    let machine = host();
    assert_eq!(lab.traces(), Vec::<String>::new());
    lab.ok(&["up", "--nodes", "2", "--nics", "1"]);
    lab.apply(NETWORKS);
    for (name, node) in [("one", "n1"), ("two", "n2")] {
        lab.ok(&["run", name, "--node", node, "--network", "blue"]);
    }
    // Namespaces of the fabric, two nodes, two pods; routers are pinned below the nodes' directories.
    let there = lab.traces();
    let of = |what: &str| there.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!((of("namespace"), of("process")), (5, 5), "{there:#?}");
    assert!(
        there.iter().any(|line| line.contains("/routers/")),
        "{there:#?}"
    );
    assert_eq!(links(), before, "a lab's links are in its namespaces");

    // Somebody is in a pod while all of it ends.
    let mut inside = lab
        .command(&["exec", "one", "--", "sleep", "60"])
        .spawn()
        .unwrap();
    for pointer in [
        "/keeper",
        "/server/pid",
        "/controller/pid",
        "/nodes/0/agent/pid",
        "/nodes/1/agent/pid",
    ] {
        lab.kill(pointer);
    }
    assert!(lab.ok(&["down"]).contains("is gone"));
    let ended = inside.wait().unwrap();
    assert!(!ended.success(), "it was ended");
    assert_eq!(lab.traces(), Vec::<String>::new());
    assert_eq!(links(), before);
    assert_eq!(host(), machine);
    assert!(lab.ok(&["down"]).contains("was not there"));
    let error = lab.fails(&["status"]);
    assert!(error.contains("there is no lab"), "{error}");
}

/// A plugin that keeps a file of its own for each container.
const KEEPER: &str = r#"#!/bin/sh
case $CNI_COMMAND in
ADD) cat > "DIR/$CNI_CONTAINERID"; echo '{"cniVersion": "1.0.0", "interfaces": []}' ;;
DEL) rm -f "DIR/$CNI_CONTAINERID" ;;
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
esac
"#;

#[test]
fn down_leaves_nothing_of_what_plugins_keep() {
    let lab = Lab::named('p');
    let dir = std::env::temp_dir().join(format!("px-lab-plugins-{}", lab.name()));
    let kept = dir.join("kept");
    std::fs::create_dir_all(&kept).unwrap();
    let plugin = dir.join("keeps");
    let script = KEEPER.replace("DIR", &kept.display().to_string());
    std::fs::write(&plugin, script).unwrap();
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["up", "--nodes", "2", "--nics", "1", "--delegate-bin-dir"];
    lab.ok(&[&words[..], &[&dir.display().to_string()]].concat());
    lab.apply(&lan(lab.name()));
    lab.apply(&pod_on_lan(lab.name()));
    lab.apply(
        r#"{"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "keeps", "namespace": "default"},
            "spec": {"config": "{\"cniVersion\": \"1.0.0\", \"name\": \"keeps\", \"type\": \"keeps\"}"}}"#,
    );
    lab.apply(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kept", "namespace": "default",
            "annotations": {"k8s.v1.cni.cncf.io/networks": "keeps"}},
            "spec": {"containers": [{"name": "main", "image": "none"}]}}"#,
    );
    for name in ["goes", "kept"] {
        lab.eventually(&format!("{name} runs"), || {
            lab.get(&["pod", name])["status"]["phase"] == "Running"
        });
    }
    let count = || std::fs::read_dir(&kept).unwrap().count();
    assert_eq!(count(), 1, "the plugin was executed");
    lab.ok(&["down"]);
    let (left, traces) = (count(), lab.traces());
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(left, 0, "DEL was called");
    assert_eq!(traces, Vec::<String>::new());
}

#[test]
fn up_goes_on_from_wherever_it_was_stopped() {
    let lab = Lab::named('c');
    for pause in [5, 20, 60, 150, 400] {
        let mut up = lab.command(&["up", "--nodes", "3", "--nics", "1"]);
        let mut child = up
            .process_group(0)
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        interrupt(&mut child, pause);
        if pause == 60 {
            // Or not to go on.
            lab.ok(&["down"]);
            assert_eq!(lab.traces(), Vec::<String>::new());
        }
    }
    lab.ok(&["up", "--nodes", "3", "--nics", "1"]);
    lab.ok(&["run", "one", "--node", "n3"]);
    let error = lab.fails(&["up", "--nics", "2"]);
    assert!(error.contains("--nics cannot be changed"), "{error}");
    // Two labs do not meet.
    let other = Lab::up('e', 1);
    other.ok(&["run", "one", "--node", "n1"]);
    lab.ok(&["down"]);
    assert_eq!(lab.traces(), Vec::<String>::new());
    other.ok(&["status"]);
    other.ok(&["run", "two"]);
}

#[test]
fn down_goes_on_from_wherever_it_was_stopped() {
    let lab = Lab::named('i');
    lab.ok(&["up", "--nodes", "3", "--nics", "1"]);
    lab.ok(&["run", "one", "--node", "n3"]);
    for pause in [3, 15, 40, 90] {
        let mut down = lab.command(&["down"]);
        let mut child = down.process_group(0).stdout(Stdio::null()).spawn().unwrap();
        interrupt(&mut child, pause);
        if pause == 40 {
            // Or it is wanted after all.
            lab.ok(&["up", "--nodes", "3", "--nics", "1"]);
            lab.ok(&["run", "two", "--node", "n1"]);
            lab.ok(&["run", "three", "--node", "n2"]);
            lab.ok(&["ping", "--all"]);
        }
    }
    lab.ok(&["down"]);
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
fn up_says_how_far_it_is_and_a_second_one_changes_nothing() {
    let lab = Lab::named('q');
    let words = ["up", "--nodes", "2", "--nics", "2"];
    let output = lab.run(&words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut rest = said.as_str();
    // In this order, each with the time that it took.
    for step in [
        "2 nodes joined by 6 wires (",
        "server ready (",
        "2 of 2 agents ready (",
    ] {
        let at = rest
            .find(step)
            .unwrap_or_else(|| panic!("{step:?} is not next in {said}"));
        rest = &rest[at..];
    }
    assert!(!said.contains('\r'), "nobody counts on a pipe: {said:?}");
    lab.ok(&["run", "one", "--node", "n2"]);
    let (before, there) = (lab.status(), lab.traces());
    lab.ok(&words);
    lab.ok(&["up"]);
    assert_eq!(lab.status(), before, "the same processes, the same pods");
    assert_eq!(lab.traces(), there);
}

/// As Ctrl-C does, after some milliseconds: to the whole process group. What the lab has started is not in
/// it.
fn interrupt(child: &mut std::process::Child, pause: u64) {
    std::thread::sleep(Duration::from_millis(pause));
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-INT", "--", &group]).output();
    child.wait().unwrap();
}
