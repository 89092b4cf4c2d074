//! Whoever is killed, the lab goes on: the keeper starts the others, `up` starts the keeper.

use crate::machine::Lab;
use serde_json::Value;

fn attached(lab: &Lab) -> Vec<String> {
    let status = lab.status();
    let pods = status["pods"].as_array().into_iter().flatten();
    pods.filter(|pod| pod["attached"] == true)
        .filter_map(|pod| pod["name"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn the_keeper_starts_again_what_dies() {
    let lab = Lab::up('k', 2);
    lab.ok(&["run", "one", "--node", "n1"]);
    for pointer in ["/server/pid", "/controller/pid", "/nodes/0/agent/pid"] {
        let dead = lab.kill(pointer);
        lab.eventually(&format!("{pointer} is another one, and ready"), || {
            let now = lab.pid(pointer);
            now.is_some_and(|pid| pid != dead) && lab.run(&["status"]).status.success()
        });
    }
    lab.ok(&["run", "two", "--node", "n2"]);
    lab.all_reach();
    // What they have said is one log, whoever was killed between.
    for (target, words) in [
        ("server", "the embedded API is served"),
        ("n1", "serving"),
        ("keeper", ""),
    ] {
        let last = lab.ok(&["logs", target, "--tail", "1"]);
        // It may have said more since.
        let log = lab.ok(&["logs", target]);
        assert!(log.matches(words).count() >= 2, "{target}: {log}");
        assert!(log.contains(&last) && last.lines().count() == 1, "{last}");
    }
    let error = lab.fails(&["logs", "n9"]);
    assert!(error.contains("has no node n9"), "{error}");
    let labs: Value = serde_json::from_str(&lab.ok(&["list", "-o", "json"])).unwrap();
    let is_ours = |one: &&Value| one["lab"] == lab.name();
    let ours = labs.as_array().unwrap().iter().find(is_ours).unwrap();
    assert_eq!(ours["nodes"], 2, "{labs}");
    assert!(
        lab.ok(&["list"])
            .lines()
            .any(|line| line.starts_with(lab.name()))
    );

    // An agent that is held stays dead, until it is released.
    lab.ok(&["kill", "n2", "--hold"]);
    // Held already, and no failure: that it does not run is what was asked for.
    let again = lab.ok(&["kill", "n2", "--hold"]);
    assert_eq!(again, "agent of n2 is held: it did not run\n");
    let nobody = lab.run(&["kill", "n2"]);
    let error = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(error.contains("n2-agent does not run"), "{error}");
    assert_eq!(nobody.status.code(), Some(3), "a code of its own");
    lab.eventually("it is seen dead", || {
        lab.pid("/nodes/1/agent/pid").is_none()
    });
    let error = lab.fails(&["kill", "n2"]);
    assert!(error.contains("does not run"), "{error}");
    lab.eventually("it is said how it is started", || {
        let status = String::from_utf8_lossy(&lab.run(&["status"]).stdout).into_owned();
        status.contains("start n2`")
    });
    lab.ok(&["start", "n2"]);
    lab.ok(&["status"]);

    // The controller too; and `up` releases it as well.
    let pid = lab.pid("/controller/pid");
    let killed = lab.ok(&["kill", "controller", "--hold"]);
    assert_eq!(
        killed,
        format!("controller killed (process {})\n", pid.unwrap())
    );
    lab.eventually("it is seen dead", || lab.pid("/controller/pid").is_none());
    lab.ok(&["start", "controller"]);
    lab.ok(&["status"]);
    lab.ok(&["kill", "controller", "--hold"]);
    lab.ok(&["up"]);
    lab.ok(&["status"]);
    let pid = lab.pid("/controller/pid");
    lab.ok(&["kill", "controller"]);
    lab.eventually("it is another one", || {
        let now = lab.pid("/controller/pid");
        now.is_some_and(|now| Some(now) != pid) && lab.run(&["status"]).status.success()
    });
}

#[test]
fn another_keeper_goes_on_where_the_last_one_was_killed() {
    let lab = Lab::up('r', 2);
    for (name, node) in [("stays", "n1"), ("goes", "n2"), ("forced", "n2")] {
        lab.ok(&["run", name, "--node", node]);
    }
    let (keeper, server) = (lab.kill("/keeper"), lab.pid("/server/pid"));
    lab.eventually("it is gone", || lab.pid("/keeper").is_none());
    let error = lab.fails(&["remove-node", "n2"]);
    assert!(error.contains("keeper does not run"), "{error}");
    // Nobody is there to end these: one waits, the other one is forgotten by the API.
    let phase = |name: &str| lab.get(&["pod", name])["status"]["phase"].clone();
    lab.delete_pod("goes", 30);
    lab.delete_pod("forced", 0);
    assert_eq!(phase("goes"), "Running");
    assert_eq!(phase("forced"), Value::Null);
    assert_eq!(attached(&lab), ["stays", "forced", "goes"]);

    lab.ok(&["up"]);
    assert_ne!(lab.pid("/keeper"), Some(keeper));
    assert_eq!(lab.pid("/server/pid"), server, "adopted, not started");
    lab.eventually("what has to go goes", || attached(&lab) == ["stays"]);
    lab.eventually("and the API says so", || phase("goes") == Value::Null);
    lab.ok(&["run", "new", "--node", "n2"]);
    lab.all_reach();
}
