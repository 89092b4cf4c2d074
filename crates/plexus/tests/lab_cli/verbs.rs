//! A session as a user has it: apply, look, diagnose, delete.

use crate::machine::Lab;
use crate::output::{captured, example, fails, golden, golden_soon, json, ok, plexus};
use std::process::Command;

fn lab(letter: char) -> Lab {
    let lab = Lab::named(letter);
    lab.ok(&["up", "--nodes", "3", "--nics", "2"]);
    lab
}

/// All pods of the lab's example run, and have records.
fn settled(lab: &Lab) {
    lab.eventually("four pods with three interfaces each", || {
        let rows = plexus(lab, &["get", "attachments", "-A"]).out;
        rows.matches("Attached").count() == 12
            && plexus(lab, &["get", "pods", "-A"])
                .out
                .matches("Running")
                .count()
                == 4
    });
}

/// A running pod keeps the routes that it has; it is described with those, another one with its own.
fn a_route_that_came_later(lab: &Lab) {
    const ROUTE: &str = "172.16.0.0/12 via 169.254.1.1";
    let later = serde_json::json!({"spec": {"routes": [{"dst": "172.16.0.0/12"}]}});
    lab.patch(
        "/apis/plexus.dev/v1alpha1/namespaces/team-a/networks/blue",
        &later,
    );
    // An agent may not have seen it yet when the first of them comes.
    let pods = ["late-1", "late-2", "late-3", "late-4", "late-5"];
    let has = |pod: &str| {
        let name = format!("team-a/{pod}");
        let mut described = String::new();
        // The record is written a moment after the pod is ready.
        lab.eventually("the pod has its record", || {
            described = plexus(lab, &["describe", "pod", &name]).out;
            described.contains("\nnet1: Attached\n")
        });
        let real = lab.ok(&["exec", pod, "-n", "team-a", "--", "ip", "route"]);
        assert_eq!(
            described.contains(ROUTE),
            real.contains(ROUTE),
            "{described}{real}"
        );
        real.contains(ROUTE)
    };
    let came = pods.iter().any(|pod| {
        lab.ok(&[
            "run",
            pod,
            "-n",
            "team-a",
            "--node",
            "n2",
            "--network",
            "team-a/blue",
        ]);
        has(pod)
    });
    assert!(came, "no pod has got the route");
    assert!(!has("web"), "a pod that ran before has got a route");
    let _ = plexus(
        lab,
        &[&["delete", "pod", "-n", "team-a"][..], &pods].concat(),
    );
}

#[test]
fn objects_are_applied_shown_and_deleted() {
    let lab = lab('v');
    let applied = ok(&lab, &["apply", "-f", &example("lab")]);
    golden("apply.txt", &applied);
    settled(&lab);
    golden_soon(&lab, "get-networks.txt", &["get", "networks", "-A"]);
    golden_soon(&lab, "get-pods.txt", &["get", "pods", "-A"]);
    golden_soon(
        &lab,
        "get-pods-wide.txt",
        &["get", "pods", "-A", "-o", "wide"],
    );
    golden_soon(&lab, "get-nodes.txt", &["get", "nodes"]);
    golden_soon(
        &lab,
        "describe-pod.txt",
        &["describe", "pod", "-n", "team-a", "web"],
    );
    golden_soon(
        &lab,
        "describe-network.txt",
        &["describe", "network", "team-a/blue"],
    );
    golden_soon(&lab, "diagnose-pod.txt", &["diagnose", "pod", "team-a/web"]);
    golden_soon(
        &lab,
        "diagnose-network.txt",
        &["diagnose", "network", "storage"],
    );
    golden_soon(
        &lab,
        "ipam-show.txt",
        &["ipam", "show", "-n", "team-a", "blue"],
    );
    // One row a block: 3 nodes on the default network and on storage, two on each overlay.
    lab.eventually("blocks, and what is used of them", || {
        let blocks = ok(&lab, &["get", "blocks"]);
        let used = blocks.contains(" 2/64 ") && blocks.contains(" 1/64 ");
        used && blocks.lines().count() == 1 + 6 + 3 + 4 + 4
    });

    // The same again changes nothing.
    let again = ok(&lab, &["apply", "-f", &example("lab")]);
    assert!(
        again.lines().all(|line| line.ends_with(" unchanged")),
        "{again}"
    );
    forms(&lab);
    servers(&lab);
    what_is_not_there(&lab);
    terminals(&lab);

    as_the_book_says(&lab);
    // As many networks as before, and another one: its interfaces stay, and that is said.
    let pod = std::fs::read_to_string(example("lab/20-pods.yaml")).unwrap();
    let pod = pod.split("---").next().unwrap();
    lab.apply(&pod.replace("blue,default/storage", "default/storage,blue"));
    lab.eventually("an edited annotation is seen", || {
        let output = plexus(&lab, &["diagnose", "pod", "team-a/web"]).out;
        output.contains("and it has net1 on team-a/blue, net2 on default/storage")
    });
    let described = ok(&lab, &["describe", "pod", "team-a/web"]);
    let edited = described.matches("no longer say so: they were edited");
    assert_eq!(edited.count(), 2, "{described}");
    lab.apply(pod);
    a_route_that_came_later(&lab);

    // A network in use goes after its pods.
    let going = ok(
        &lab,
        &["delete", "network", "-n", "team-a", "blue", "--wait=false"],
    );
    assert!(going.contains("is being deleted"), "{going}");
    lab.eventually("the reason is said", || {
        plexus(&lab, &["diagnose", "network", "team-a/blue"])
            .out
            .contains("delete those pods")
    });
    fails(
        &lab,
        &["delete", "node", "team-a/n1"],
        "nodes are in no namespace",
    );
    fails(
        &lab,
        &["delete", "pod", "team-a/web/x"],
        "write [NAMESPACE/]NAME",
    );
    fails(
        &lab,
        &["delete", "pod", "-n", "default", "team-a/web"],
        "keep one",
    );
    let gone = ok(&lab, &["delete", "pod", "team-a/web", "team-a/db"]);
    assert_eq!(gone.matches(" deleted\n").count(), 2, "{gone}");
    lab.eventually("the network is gone too", || {
        !plexus(&lab, &["get", "networks", "-A"])
            .out
            .contains("team-a")
    });
    let output = plexus(
        &lab,
        &["delete", "--ignore-not-found", "-f", &example("lab")],
    );
    assert_eq!(output.code, Some(0), "{output:#?}");
    lab.eventually("nothing of it is left", || {
        let left = plexus(&lab, &["get", "networks,pods,blocks", "-A", "-o", "name"]).out;
        !left.contains("blue") && !left.contains("web") && !left.contains("storage")
    });
}

/// The answers that the book shows on its page about the command line, word by word.
fn as_the_book_says(lab: &Lab) {
    lab.apply(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lost", "namespace": "default",
            "annotations": {"plexus.dev/networks": "storage,green"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "none"}]}}"#,
    );
    let dir = std::env::temp_dir().join(format!("px-book-{}", lab.name()));
    std::fs::create_dir_all(&dir).unwrap();
    let network = "apiVersion: plexus.dev/v1alpha1\nkind: Network\nmetadata:\n  name: green\nspec:\n  subnets:\n    \
                   a: {cidr: 10.1.0.7/24, gatway: 10.1.0.1}\n";
    std::fs::write(dir.join("net.yaml"), network).unwrap();
    let page = std::fs::read_to_string(example("../docs/src/command-line.md")).unwrap();
    for command in ["diagnose pod lost", "validate -f net.yaml"] {
        let (_, answer) = page.split_once(&format!("\n# plexus {command}\n")).unwrap();
        let lines = answer
            .lines()
            .take_while(|line| !line.starts_with(['#', '`']));
        let wanted: String = lines.map(|line| format!("{line}\n")).collect();
        let words: Vec<&str> = command.split(' ').collect();
        lab.eventually(
            &format!("{command} says what the book says:\n{wanted}"),
            || {
                let output = captured(lab.plexus(&words).current_dir(&dir).output().unwrap());
                output.out == wanted
            },
        );
    }
    std::fs::remove_dir_all(&dir).unwrap();
    lab.delete_pod("lost", 0);
}

/// `-o`.
fn forms(lab: &Lab) {
    let one = json(lab, &["get", "network", "team-a/blue", "-o", "json"]);
    assert_eq!(one["kind"], "Network");
    let several = json(lab, &["get", "pods,networks", "-n", "team-a", "-o", "json"]);
    let kinds: Vec<&str> = several["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Pod", "Pod", "Network"]);
    let yaml = ok(lab, &["get", "pod", "-n", "team-a", "web", "-o", "yaml"]);
    assert!(yaml.starts_with("apiVersion: v1\nkind: Pod\n"), "{yaml}");
    let names = ok(lab, &["get", "pods,networks", "-n", "team-a", "-o", "name"]);
    assert_eq!(names, "pod/db\npod/web\nnetwork.plexus.dev/blue\n");
    assert_eq!(
        json(lab, &["diagnose", "pod", "team-a/web", "-o", "json"])["state"],
        "ok"
    );
    let usage = json(lab, &["ipam", "show", "storage", "-o", "json"]);
    assert_eq!(usage["families"][0]["used"], 4, "{usage:#}");
    fails_to_parse(
        lab,
        &["get", "pods", "-o", "xml"],
        "possible values: json, yaml, wide, name",
    );
}

/// clap's own complaint: code 2.
fn fails_to_parse(lab: &Lab, words: &[&str], wanted: &str) {
    let output = plexus(lab, words);
    assert_eq!(output.code, Some(2), "{output:#?}");
    assert!(output.error.contains(wanted), "{output:#?}");
}

/// The same by a kubeconfig that is named, by the variable, and over the unix socket.
fn servers(lab: &Lab) {
    let (kubeconfig, socket) = (lab.file("kubeconfig"), lab.file("server.sock"));
    let wanted = ok(lab, &["get", "networks", "-A", "-o", "name"]);
    for words in [["--kubeconfig", &kubeconfig], ["--api-socket", &socket]] {
        let mut get = lab.plexus(&["get", "networks", "-A", "-o", "name"]);
        let given = captured(get.args(words).env_remove("KUBECONFIG").output().unwrap());
        assert_eq!(
            (given.code, given.out.as_str()),
            (Some(0), wanted.as_str()),
            "{given:#?}"
        );
    }
    let made = ok(
        lab,
        &[
            "create",
            "network",
            "red",
            "--subnet",
            "10.5.0.0/24",
            "--api-socket",
            &socket,
        ],
    );
    assert_eq!(made, "network.plexus.dev/red created\n");
    let deleted = ok(lab, &["delete", "network", "red", "--api-socket", &socket]);
    assert_eq!(deleted, "network.plexus.dev/red deleted\n");
    let version = ok(lab, &["version"]);
    assert!(version.contains("API server: v1."), "{version}");
}

fn what_is_not_there(lab: &Lab) {
    fails(
        lab,
        &["get", "services"],
        "is not a kind that is known here",
    );
    fails(
        lab,
        &["get", "pods", "nosuch"],
        "there is no Pod nosuch in namespace default",
    );
    fails(
        lab,
        &["get", "pods", "team-a/nosuch"],
        "there is no Pod nosuch in namespace team-a",
    );
    fails(
        lab,
        &["diagnose", "pod", "nosuch"],
        "plexus get pods -A lists all",
    );
    fails(
        lab,
        &["describe", "pod", "nosuch"],
        "there is no Pod default/nosuch",
    );
    fails(
        lab,
        &["ipam", "show", "nosuch"],
        "there is no Network default/nosuch",
    );
    fails(
        lab,
        &["delete", "network", "nosuch"],
        "network.plexus.dev/nosuch is not there",
    );
    fails(
        lab,
        &["validate", "-f", "/nonexistent.yaml"],
        "cannot read /nonexistent.yaml",
    );
    fails(
        lab,
        &["get", "pods", "--kubeconfig", "/nonexistent"],
        "does it exist",
    );
    fails(
        lab,
        &["apply", "-f", &example("seed-001/original")],
        "nothing was applied",
    );
    let error = plexus(
        lab,
        &["create", "network", "Red", "--subnet", "10.5.0.0/33"],
    )
    .error;
    assert!(
        error.contains("write red") && error.contains("10.5.0.0/33"),
        "{error}"
    );
    let twice = [
        "create",
        "network",
        "blue",
        "-n",
        "team-a",
        "--subnet",
        "10.6.0.0/24",
    ];
    fails(
        lab,
        &twice,
        "already exists; plexus apply changes what is there",
    );
    let empty = plexus(lab, &["get", "nads"]);
    assert_eq!(
        (empty.code, empty.out.as_str()),
        (Some(0), ""),
        "{empty:#?}"
    );
    assert!(empty.error.contains("-A looks in all"), "{empty:#?}");
}

/// A command on a terminal of that many columns.
fn on_terminal(lab: &Lab, columns: u16, words: &str, no_colour: &str) -> String {
    let line = format!("stty cols {columns}; exec $PLEXUS {words}");
    let mut script = Command::new("script");
    let output = script
        .args(["-qec", &line, "/dev/null"])
        .env("PLEXUS", plexus_testkit::bin(plexus_testkit::PLEXUS))
        .env("PLEXUS_CNI_BIN", plexus_testkit::bin(plexus_testkit::SHIM))
        .env("PLEXUS_LAB", lab.name())
        .env("KUBECONFIG", lab.file("kubeconfig"))
        .env("TERM", "xterm")
        .env("NO_COLOR", no_colour)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What stays on the screen: of a line that was written over, the last version.
fn listed(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let last = line.trim_end_matches('\r').rsplit('\r').next();
        last.unwrap_or_default().replace("\x1b[K", "")
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Colour and width on a terminal, neither in a pipe.
fn terminals(lab: &Lab) {
    let on_terminal = |columns, words: &str, no_colour| on_terminal(lab, columns, words, no_colour);
    for words in [
        "get networks -A",
        "get pods -A -o wide",
        "ipam show team-a/blue",
        "describe pod team-a/web",
        "diagnose pod team-a/web",
        "diagnose network team-a/blue",
        "lab status",
        "lab ping",
    ] {
        let text = listed(&on_terminal(80, words, ""));
        // The matrix is words in columns.
        let painted = text.contains("\x1b[") || words.starts_with("lab ping");
        assert!(painted, "no colour: {text:?}");
        let plain = listed(&on_terminal(80, words, "1"));
        assert!(!plain.contains('\x1b'), "colour: {plain:?}");
        // The id of a sandbox is one long word.
        let one_word = |line: &str| line.split_whitespace().any(|word| word.len() == 64);
        let wide = |line: &&str| line.trim_end().chars().count() > 80 && !one_word(line);
        assert_eq!(plain.lines().find(wide), None, "{words}:\n{plain}");
        let words: Vec<&str> = words.split(' ').collect();
        assert!(!ok(lab, &words).contains('\x1b'));
    }
    // Some of its checks fail on this machine, which is no node.
    let doctor = on_terminal(60, "doctor", "");
    assert!(doctor.contains("\x1b["), "{doctor}");
    let doctor = on_terminal(60, "doctor", "1");
    let wide = |line: &&str| line.trim_end().chars().count() > 60 && line.contains("  ");
    assert!(!doctor.contains('\x1b') && doctor.contains(" passed, "));
    assert_eq!(doctor.lines().find(wide), None, "{doctor}");
    // Addresses of blocks are of no use in part.
    let narrow = on_terminal(80, "ipam show team-a/blue", "1");
    assert!(!narrow.contains('…'), "{narrow}");
}

/// What has been reached is counted in one line on a terminal, and said at its end.
#[test]
fn progress_on_a_terminal() {
    let lab = Lab::named('u');
    let text = on_terminal(&lab, 80, "lab up --nodes 3 --nics 1", "1");
    assert!(text.contains("\r  1 of 3 agents ready\r"), "{text:?}");
    assert!(text.contains("\r  3 of 3 agents ready ("), "{text:?}");
    let text = on_terminal(&lab, 80, "lab down", "1");
    assert!(text.contains("namespaces removed: "), "{text:?}");
}

#[test]
fn the_examples_of_the_documents_wait_where_they_must() {
    let lab = Lab::up('w', 1);
    for seed in ["seed-000", "seed-001", "seed-002", "seed-003", "seed-004"] {
        ok(&lab, &["apply", "-f", &example(seed)]);
    }
    let kinds = "resourceclaims,resourceclaimtemplates,deviceclasses,cniconfigs";
    let waiting = ok(&lab, &["get", kinds, "-A"]);
    assert_eq!(waiting.matches(" waits ").count(), 6, "{waiting}");
    // Five of the DRA API and a CNIConfig name the driver.
    assert_eq!(waiting.matches("DRA driver").count(), 6, "{waiting}");
    let networks = ok(&lab, &["get", "multinicnetworks"]);
    assert!(networks.contains("WaitForConfig"), "{networks}");
    let nads = ok(&lab, &["get", "nads", "-n", "multus"]);
    assert_eq!(nads.matches(" waits ").count(), 2, "{nads}");
    assert_eq!(nads.matches("(provider eni)").count(), 2, "{nads}");
    let kind_of = |words: &[&str]| {
        let diagnosed = json(&lab, &[&["diagnose"], words, &["-o", "json"]].concat());
        let answers = diagnosed["answers"].as_array().unwrap().clone();
        assert_eq!(diagnosed["state"], "waits", "{diagnosed:#}");
        answers[0]["kind"].as_str().unwrap().to_owned()
    };
    for words in [
        ["pod", "claims-inline/demo-a"],
        ["pod", "claims-by-name/demo-c"],
        ["pod", "vpc-pod"],
        ["nad", "multus/multus-vpc-xxxx-yyyy"],
        ["resourceclaim", "claims-inline/one-macvlan-attachment"],
        ["resourceclaimtemplate", "claims-by-name/macvlan-template"],
        ["cniconfig", "macvlan-host-local"],
        ["deviceclass", "cni.networking.x-k8s.io"],
    ] {
        assert_eq!(kind_of(&words), "later", "{words:?}");
    }
    lab.eventually("the controller looks at it", || {
        let text = plexus(&lab, &["diagnose", "network", "multi-nic-sample"]).out;
        !text.contains("not looked at it")
    });
    for words in [
        ["pod", "multi-nic-pod"],
        ["multinicnetwork", "multi-nic-sample"],
    ] {
        assert_eq!(kind_of(&words), "network-pending", "{words:?}");
    }
    // The examples have two of that name, and none is in that namespace.
    let missing = "there is no ResourceClaim default/one-macvlan-attachment";
    fails(
        &lab,
        &["diagnose", "resourceclaim", "one-macvlan-attachment"],
        missing,
    );
    let claim = [
        "diagnose",
        "resourceclaim",
        "claims-by-name/one-macvlan-attachment",
    ];
    let claim = json(&lab, &[&claim[..], &["-o", "json"]].concat());
    assert_eq!(
        claim["subject"],
        "ResourceClaim claims-by-name/one-macvlan-attachment"
    );
    lab.eventually("the controller says what it waits for", || {
        plexus(&lab, &["diagnose", "network", "net1"])
            .out
            .contains("mycorp/fancy-network-provider")
    });
    assert_eq!(kind_of(&["network", "net1"]), "provider-missing");
    assert_eq!(kind_of(&["pod", "waits-for-provider"]), "provider-missing");
    lab.eventually("the others run", || {
        let pods = plexus(&lab, &["get", "pods", "-n", "my-namespace"]).out;
        pods.matches("Running").count() == 4
    });
}
