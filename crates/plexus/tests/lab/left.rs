//! `down` leaves nothing, whatever was left; `up` goes on from wherever it was stopped.

use crate::machine::{Lab, host, links};
use crate::nodes::{lan, pod_on_lan};
use crate::pods::NETWORKS;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
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
    let program = format!("/proc/{}/comm", inside.id());
    lab.eventually("the program runs", || {
        std::fs::read_to_string(&program).is_ok_and(|name| name == "sleep\n")
    });
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
    for verb in ["status", "kubeconfig"] {
        let error = lab.fails(&[verb]);
        assert!(error.contains("there is no lab"), "{verb}: {error}");
    }
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
fn whoever_is_interrupted_is_told_what_becomes_of_the_lab() {
    let lab = Lab::named('t');
    let mut up = lab.command(&["up", "--nodes", "3", "--nics", "1"]);
    let mut child = up
        .process_group(0)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = printed.next().unwrap().unwrap();
    assert!(first.contains("3 nodes joined"), "{first}");
    interrupt(&mut child, 0);
    let rest: Vec<String> = printed.map(Result::unwrap).collect();
    let (up, down) = ("lab --lab", "down` removes it");
    let is_reported = |line: &String| {
        line.starts_with("interrupted: ") && line.contains(up) && line.ends_with(down)
    };
    assert!(rest.iter().any(is_reported), "{rest:#?}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    lab.ok(&["down"]);
    assert_eq!(lab.traces(), Vec::<String>::new());
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
            lab.all_reach();
        }
    }
    lab.ok(&["down"]);
    assert_eq!(lab.traces(), Vec::<String>::new());
}

#[test]
fn up_says_how_far_it_is_and_a_second_one_changes_nothing() {
    let lab = Lab::named('q');
    let words = ["up", "--nodes", "2", "--nics", "2"];
    // Each with the time that it took.
    let steps = [
        "2 nodes joined by 6 wires (",
        "server ready (",
        "2 of 2 agents ready (",
    ];
    says_in_order(&lab.run(&words), &steps);
    lab.ok(&["run", "one", "--node", "n2"]);
    let (before, there) = (lab.status(), lab.traces());
    lab.ok(&words);
    lab.ok(&["up"]);
    assert_eq!(lab.status(), before, "the same processes, the same pods");
    assert_eq!(lab.traces(), there);
}

#[test]
fn what_comes_and_goes_is_said_step_by_step_and_only_the_end_on_stdout() {
    let lab = Lab::named('y');
    lab.ok(&["up", "--nodes", "1", "--nics", "1"]);
    let added = lab.run(&["add-node"]);
    let steps = ["2 nodes joined by 4 wires (", "2 of 2 agents ready ("];
    says_in_order(&added, &steps);
    assert_eq!(String::from_utf8_lossy(&added.stdout), "n2 ready\n");
    let removed = lab.run(&["remove-node", "n2"]);
    says_in_order(&removed, &["removing n2\n", "n2 is switched off ("]);
    assert_eq!(String::from_utf8_lossy(&removed.stdout), "n2 is gone\n");
    let error = lab.fails(&["remove-node", "n2"]);
    assert!(!error.contains("removing"), "it is not there: {error}");

    lab.ok(&["run", "one", "--node", "n1"]);
    let down = lab.run(&["down"]);
    let begun = format!("removing lab {}\n", lab.name());
    // Keeper, server, controller, an agent; the fabric, a node, a pod.
    let steps = [
        begun.as_str(),
        "pods whose plugins were told: 1 of 1 (",
        "processes ended: 4 (",
        "namespaces removed: 3 (",
    ];
    says_in_order(&down, &steps);
    let gone = format!("lab {} is gone\n", lab.name());
    assert_eq!(String::from_utf8_lossy(&down.stdout), gone);
    let again = lab.run(&["down"]);
    assert_eq!(String::from_utf8_lossy(&again.stderr), "", "nothing to do");
}

/// That a command succeeded and told its steps on stderr, in this order, as it does to a pipe.
#[track_caller]
fn says_in_order(output: &Output, steps: &[&str]) {
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    let mut rest = printed.as_str();
    for step in steps {
        let at = rest
            .find(*step)
            .unwrap_or_else(|| panic!("{step:?} is not next in {printed}"));
        rest = &rest[at..];
    }
    assert!(
        !printed.contains('\r'),
        "nobody counts on a pipe: {printed:?}"
    );
}

/// As Ctrl-C does, after some milliseconds: to the whole process group. What the lab has started is not in
/// it.
fn interrupt(child: &mut std::process::Child, pause: u64) {
    std::thread::sleep(Duration::from_millis(pause));
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-INT", "--", &group]).output();
    child.wait().unwrap();
}
