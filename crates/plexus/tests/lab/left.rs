//! `down` leaves nothing, whatever was left; `up` goes on from wherever it was stopped.

use crate::machine::{Lab, links};
use crate::pods::NETWORKS;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn down_leaves_nothing_though_everything_was_killed() {
    let lab = Lab::named('d');
    let before = links();
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
    assert!(lab.ok(&["down"]).contains("was not there"));
    let error = lab.fails(&["status"]);
    assert!(error.contains("there is no lab"), "{error}");
}

#[test]
fn up_goes_on_from_wherever_it_was_stopped() {
    let lab = Lab::named('c');
    for pause in [5, 20, 60, 150, 400] {
        let mut up = lab.command(&["up", "--nodes", "3", "--nics", "1"]);
        let mut child = up
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        // As Ctrl-C does.
        let id = child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &id]).status();
        child.wait().unwrap();
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
