//! Which server commands reach: that of the current context, and never another one that happens to be there.

use crate::machine::Lab;
use serde_json::Value;
use std::fs;
use std::process::Output;

/// As somebody has it who works with a cluster; nobody answers there.
const THEIRS: &str = "\
apiVersion: v1
kind: Config
clusters: [{name: production, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: me, user: {token: x}}]
contexts: [{name: production, context: {cluster: production, user: me}}]
current-context: production
";

fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn after_a_lab_is_down_nothing_reaches_another_cluster() {
    let (one, other) = (Lab::named('x'), Lab::named('y'));
    let file = one.kubeconfig();
    fs::write(&file, THEIRS).unwrap();
    let run = |lab: &Lab, words: &[&str]| {
        let mut command = lab.plexus(words);
        command.env("KUBECONFIG", &file).output().unwrap()
    };
    let ok = |lab: &Lab, words: &[&str]| {
        let output = run(lab, words);
        assert!(output.status.success(), "{words:?}: {}", printed(&output));
        printed(&output)
    };
    let context = |lab: &Lab| format!("plexus-lab-{}", lab.name());
    let (first, second) = (context(&one), context(&other));
    for lab in [&one, &other] {
        let said = ok(lab, &["lab", "up", "--nodes", "1", "--nics", "0"]);
        let wanted = format!("context {} is the current one", context(lab));
        assert!(said.contains(&wanted), "{said}");
    }
    let blue = ["create", "network", "blue", "--subnet", "10.1.0.0/16"];
    assert_eq!(
        ok(&one, &blue),
        "network.plexus.dev/blue created\n",
        "the current one, and no word"
    );
    let names = ["get", "networks", "-o", "name"];
    assert!(ok(&one, &names).contains("blue"));
    let there = ok(&one, &[&names[..], &["--context", &first]].concat());
    assert!(!there.contains("blue"), "{there}");
    ok(&one, &[&blue[..], &["--context", &first]].concat());

    // The lab that was current goes: the network of that name elsewhere stays.
    ok(&other, &["lab", "down"]);
    let refused = run(&one, &["delete", "network", "blue"]);
    assert_eq!(refused.status.code(), Some(1), "{}", printed(&refused));
    assert!(
        printed(&refused).contains("no context is current"),
        "{}",
        printed(&refused)
    );
    let there = ok(&one, &[&names[..], &["--context", &first]].concat());
    assert!(there.contains("blue"), "{there}");
    let config: Value = serde_yaml_ng::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(!config.to_string().contains(&second), "{config}");
    let production = run(&one, &["get", "nodes", "--context", "production"]);
    let named = format!(
        "context production of {}: https://127.0.0.1:1\n",
        file.display()
    );
    assert!(
        printed(&production).starts_with(&named),
        "{}",
        printed(&production)
    );
    ok(&one, &["lab", "down"]);
    let left: Value = serde_yaml_ng::from_slice(&fs::read(&file).unwrap()).unwrap();
    let mut theirs: Value = serde_yaml_ng::from_str(THEIRS).unwrap();
    theirs["current-context"] = "".into();
    assert_eq!(left, theirs);
    fs::remove_file(file).unwrap();
}
