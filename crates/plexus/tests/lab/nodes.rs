//! Nodes come and go.

use crate::machine::Lab;
use serde_json::Value;

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect()
}

#[test]
fn a_node_is_added_and_another_one_is_switched_off() {
    let lab = Lab::up('n', 1);
    assert_eq!(lab.ok(&["add-node"]), "n2 ready\n");
    lab.ok(&["run", "stays", "--node", "n1"]);
    lab.ok(&["run", "goes", "--node", "n2"]);
    lab.ok(&["ping", "--all"]);
    assert_eq!(names(&lab.get(&["nodes"])), ["n1", "n2"]);

    lab.ok(&["remove-node", "n2"]);
    assert_eq!(names(&lab.get(&["nodes"])), ["n1"]);
    lab.eventually("its pod is gone", || {
        names(&lab.get(&["pods"])) == ["stays"]
    });
    let n2 = format!("px-{}-n2", lab.name());
    let left: Vec<String> = lab
        .traces()
        .into_iter()
        .filter(|line| line.contains(&n2))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    assert!(!std::fs::exists(lab.file("n2")).unwrap());
    // Its blocks return when the controller is sure: after the grace period.
    lab.eventually("its blocks return", || {
        let blocks = lab.get(&["blocks"]);
        let items = blocks["items"].as_array().cloned().unwrap_or_default();
        !items.is_empty() && items.iter().all(|block| block["spec"]["node"] == "n1")
    });
    let error = lab.fails(&["remove-node", "n2"]);
    assert!(error.contains("has no node n2: it has n1"), "{error}");
    // `up` with as many nodes as it had brings another one under that number.
    lab.ok(&["up", "--nodes", "2"]);
    lab.ok(&["run", "again", "--node", "n2"]);
    lab.ok(&["ping", "--all"]);
}
