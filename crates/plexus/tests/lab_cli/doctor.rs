//! What is wrong with a node, each fault made for real on a node of a lab.

use crate::machine::Lab;
use crate::{kernel, mounts};
use plexus_cli::doctor::Subject;
use plexus_testkit::{PLEXUS, answers, bin};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The checks that faults on a node of a lab are found by.
const ON_A_NODE: &[&str] = &[
    "rights.root",
    "rights.capabilities",
    "kernel",
    "state.directory",
    "state.room",
    "state.journal",
    "agent.socket",
    "agent.ready",
    "agent.warning",
    "agent.queue",
    "cni.plugin",
    "cni.socket",
    "cni.first",
    "cni.configuration",
    "api.server",
    "api.node",
    "leaks",
    "leaks.links",
    "leaks.ports",
    "leaks.host-local",
    "leaks.routers",
    "leaks.labs",
];

/// What no kernel that is to be had here lacks: its fault is invented, in a unit test.
const NOWHERE: &[&str] = &["kernel.netns-cookie"];

#[test]
fn every_check_has_a_fault_that_is_made_for_real() {
    let produced = [
        ON_A_NODE,
        kernel::CHECKS,
        mounts::CHECKS,
        answers::CHECKS_OF_A_BARE_API_SERVER,
        NOWHERE,
    ];
    let produced: BTreeSet<&str> = produced.concat().into_iter().collect();
    let all: BTreeSet<&str> = Subject::ALL.iter().map(|check| check.name()).collect();
    assert_eq!(produced, all);
}

thread_local! {
    /// The checks that the test of this thread has seen fail.
    static FAULTS: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// Those of this thread are the ones that were to be found.
#[track_caller]
pub(crate) fn found(wanted: &[&str]) {
    let wanted: BTreeSet<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    FAULTS.with_borrow(|faults| assert_eq!(*faults, wanted));
}

fn note(name: &str, verdict: &str) {
    if verdict != "pass" {
        FAULTS.with_borrow_mut(|faults| faults.insert(name.to_owned()));
    }
}

/// `plexus doctor` of node n1, in its network namespace, with further flags.
fn doctor(lab: &Lab, further: &[&str]) -> Value {
    let node_file = |name: &str| lab.file(&format!("n1/{name}"));
    let program = bin(PLEXUS).display().to_string();
    let (socket, state) = (node_file("agent.sock"), node_file("state"));
    let (plugins, configurations) = (node_file("cni/bin"), node_file("cni/net.d"));
    let server = lab.file("server.sock");
    let mut words = vec![
        "exec", "--node", "n1", "--", &program, "doctor", "-o", "json",
    ];
    for (flag, value) in [
        ("--socket", &socket),
        ("--state-dir", &state),
        ("--cni-bin-dir", &plugins),
        ("--cni-conf-dir", &configurations),
        ("--api-socket", &server),
    ] {
        if !further.contains(&flag) {
            words.extend([flag, value]);
        }
    }
    words.extend(further);
    let output = lab.run(&words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}: {output:?}"))
}

/// The verdict and the text of a check.
pub(crate) fn check(report: &Value, name: &str) -> Option<(String, String)> {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().filter(|check| check["name"] == name);
    let worst = found.max_by_key(|check| match check["verdict"].as_str() {
        Some("fail") => 2,
        Some("warn") => 1,
        _ => 0,
    })?;
    let word = |key: &str| worst[key].as_str().unwrap().to_owned();
    Some((
        word("verdict"),
        format!("{} next: {}", word("found"), word("next")),
    ))
}

/// Whether a check says that.
fn says(report: &Value, name: &str, verdict: &str, words: &str) -> bool {
    let found = check(report, name);
    let says = found.is_some_and(|found| found.0 == verdict && found.1.contains(words));
    if says {
        note(name, verdict);
    }
    says
}

#[track_caller]
pub(crate) fn finds(report: &Value, name: &str, verdict: &str, words: &str) {
    let found = check(report, name).unwrap_or_else(|| panic!("no {name}: {report:#}"));
    assert!(
        found.0 == verdict && found.1.contains(words),
        "{name}: {found:?}"
    );
    note(name, verdict);
}

/// A directory, and mounts in it, that are gone afterwards.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("plexus-lab-cli-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file system of its own.
    fn tmpfs(&self, name: &str, options: &str) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&path)
            .status();
        assert!(mounted.unwrap().success());
        path.display().to_string()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        for name in ["read-only", "full"] {
            let path = self.0.join(name);
            if path.exists() {
                let _ = Command::new("umount").arg(&path).output();
            }
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn faults_of_a_node_are_found_and_are_gone_when_they_are() {
    let lab = Lab::up('z', 1);
    lab.ok(&["run", "one", "--node", "n1"]);
    let well = doctor(&lab, &["--node", "n1"]);
    for name in [
        "rights.root",
        "kernel",
        "mounts.sysctl",
        "state.directory",
        "state.room",
        "state.journal",
        "agent.socket",
        "agent.ready",
        "agent.queue",
        "cni.plugin",
        "api.server",
        "api.definitions",
        "api.controller",
        "api.node",
        "leaks.links",
        "leaks.ports",
        "leaks.routers",
    ] {
        let found = check(&well, name).unwrap_or_else(|| panic!("no {name}: {well:#}"));
        assert_eq!(found.0, "pass", "{name}: {found:?}");
    }
    finds(
        &doctor(&lab, &["--node", "n9"]),
        "api.node",
        "fail",
        "there is no Node n9",
    );
    rights(&lab);
    disks(&lab);
    leftovers(&lab);
    router_and_port_of_nobody(&lab);
    configurations(&lab);
    sockets(&lab);
    found(ON_A_NODE);
}

/// Others than root, and root without what it needs.
fn rights(lab: &Lab) {
    // Directories in which programs are built are often closed to others than root.
    let dir = Dir::new();
    let program = dir.0.join(PLEXUS);
    fs::copy(bin(PLEXUS), &program).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        let command = command.args(words).arg(&program);
        let output = command
            .args(["doctor", "--no-api", "-o", "json"])
            .output()
            .unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    finds(
        &run(&["--bounding-set", "-sys_admin"]),
        "rights.capabilities",
        "fail",
        "CAP_SYS_ADMIN",
    );
    let other = run(&["--reuid", "65534", "--clear-groups"]);
    finds(&other, "rights.root", "fail", "this is user 65534");
    finds(
        &other,
        "kernel",
        "fail",
        "nothing that networks are made of",
    );
    // A server that is not there.
    let away = doctor(lab, &["--api-socket", "/nonexistent.sock"]);
    finds(&away, "api.server", "fail", "does not answer");
}

/// Disks that are full, read-only, or hold something else.
fn disks(lab: &Lab) {
    let dir = Dir::new();
    let read_only = dir.tmpfs("read-only", "ro");
    let report = doctor(lab, &["--state-dir", &read_only]);
    finds(&report, "state.directory", "fail", "cannot be written");
    let full = dir.tmpfs("full", "size=64k");
    assert!(fs::write(Path::new(&full).join("filler"), vec![1; 1 << 20]).is_err());
    finds(
        &doctor(lab, &["--state-dir", &full]),
        "state.room",
        "fail",
        "is full",
    );
    let damaged = dir.0.join("damaged");
    fs::create_dir_all(&damaged).unwrap();
    fs::write(
        damaged.join("journal.db"),
        "nothing that a database begins with",
    )
    .unwrap();
    let report = doctor(lab, &["--state-dir", &damaged.display().to_string()]);
    finds(&report, "state.journal", "fail", "is damaged");
    // host-local's files, and plugins that are not there.
    let pools = dir.0.join("pools/blue");
    fs::create_dir_all(&pools).unwrap();
    fs::write(pools.join("10.9.9.9"), "nobody\r\neth0").unwrap();
    let report = doctor(
        lab,
        &["--pools", &dir.0.join("pools").display().to_string()],
    );
    finds(
        &report,
        "leaks.host-local",
        "warn",
        "10.9.9.9 (container nobody)",
    );
    let nowhere = dir.0.join("nowhere").display().to_string();
    let report = doctor(
        lab,
        &["--cni-bin-dir", &nowhere, "--cni-conf-dir", &nowhere],
    );
    finds(&report, "cni.plugin", "fail", "is not there");
    finds(&report, "cni.configuration", "warn", "cannot read");
}

/// A link with our mark that nobody knows, and what a lab left that is gone.
fn leftovers(lab: &Lab) {
    let on_node = |script: &str| lab.ok(&["exec", "--node", "n1", "--", "sh", "-ec", script]);
    let aliases = on_node("ip -d link | sed -n 's/^ *alias //p'");
    let alias = aliases
        .lines()
        .find(|line| line.starts_with("plexus "))
        .expect("a marked link");
    let mut words: Vec<&str> = alias.split(' ').collect();
    words[2] = "lost";
    let lost = words.join(" ");
    on_node(&format!(
        "ip link add px-lost type bridge; ip link set px-lost alias '{lost}'"
    ));
    finds(&doctor(lab, &[]), "leaks.links", "warn", "px-lost");
    on_node("ip link del px-lost");
    finds(
        &doctor(lab, &[]),
        "leaks.links",
        "pass",
        "each with a record",
    );

    let gone = format!("px-q{}-n1", std::process::id());
    let netns = |verb: &str| {
        Command::new("ip")
            .args(["netns", verb, &gone])
            .status()
            .unwrap()
    };
    assert!(netns("add").success());
    let report = doctor(lab, &[]);
    assert!(netns("del").success());
    let name = format!("plexus lab down --lab q{}", std::process::id());
    let found = check(&report, "leaks.labs").unwrap();
    // Other tests' labs come and go meanwhile.
    assert!(
        found.0 == "warn" && found.1.contains(&name[22..]),
        "{found:?}"
    );
    note("leaks.labs", "warn");
}

/// A router without a network, and a port that leads to an address which no pod has; an agent that is started
/// again takes both away, as is said.
fn router_and_port_of_nobody(lab: &Lab) {
    // With the first port of a pod come the maps.
    lab.apply(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ported", "namespace": "default"},
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "none",
                "ports": [{"containerPort": 80, "hostPort": 30080}]}]}}"#,
    );
    lab.eventually("the pod that has a port runs", || {
        lab.get(&["pod", "ported"])["status"]["phase"] == "Running"
    });
    let report = doctor(lab, &[]);
    finds(&report, "leaks.routers", "pass", "each with a Network");
    finds(
        &report,
        "leaks.ports",
        "pass",
        "ports of the node lead to pods",
    );

    let lost = Lost::of(lab);
    lost.add_port();
    // The agent looks now and then, and may remove the router before anybody sees it.
    lab.eventually("both are found", || {
        lost.pin_router();
        let report = doctor(lab, &[]);
        says(&report, "leaks.routers", "warn", ROUTER)
            && says(&report, "leaks.ports", "warn", "30999 to 10.99.99.99:80")
    });
    lab.ok(&["kill", "n1"]);
    lab.eventually("the next agent takes both away", || {
        let report = doctor(lab, &[]);
        says(&report, "leaks.routers", "pass", "each with a Network")
            && says(&report, "leaks.ports", "pass", "lead to pods")
    });
    assert!(!lost.router.exists());
}

/// The router of a network that never was.
const ROUTER: &str = "px-0000000000000bad";

/// A router and a port of node n1 that no agent has made, removed when dropped.
struct Lost<'a> {
    lab: &'a Lab,
    router: PathBuf,
}

impl<'a> Lost<'a> {
    fn of(lab: &'a Lab) -> Self {
        let router = PathBuf::from(lab.file(&format!("n1/routers/{ROUTER}")));
        Self { lab, router }
    }

    /// As the agent does it: the port, and the way back for a pod that calls itself.
    fn add_port(&self) {
        let added = self.element("add", "ports4", "tcp . 30999 : 10.99.99.99 . 80");
        assert!(added.status.success(), "{added:?}");
        let added = self.element("add", "ports4-self", "10.99.99.99 . 10.99.99.99");
        assert!(added.status.success(), "{added:?}");
    }

    fn element(&self, verb: &str, map: &str, element: &str) -> Output {
        let braced = format!("{{ {element} }}");
        let exec = ["exec", "--node", "n1", "--"];
        let nft = [
            "nft",
            verb,
            "element",
            "inet",
            "plexus",
            map,
            braced.as_str(),
        ];
        self.lab.run(&[&exec[..], &nft[..]].concat())
    }

    /// Pins a new network namespace where the agent pins routers, unless it is there.
    fn pin_router(&self) {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        if mounts.contains(&self.router.display().to_string()) {
            return;
        }
        fs::create_dir_all(self.router.parent().unwrap()).unwrap();
        fs::write(&self.router, "").unwrap();
        let net = format!("--net={}", self.router.display());
        let pinned = Command::new("unshare").arg(net).arg("true").status();
        assert!(pinned.unwrap().success());
    }
}

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        if self.router.exists() {
            let _ = Command::new("umount").arg(&self.router).output();
            let _ = fs::remove_file(&self.router);
        }
        self.element("delete", "ports4", "tcp . 30999 : 10.99.99.99 . 80");
        self.element("delete", "ports4-self", "10.99.99.99 . 10.99.99.99");
    }
}

/// A configuration that a runtime takes for ours, and a plugin that calls another agent.
fn configurations(lab: &Lab) {
    let first = lab.file("n1/cni/net.d/00-a.conflist");
    let theirs = r#"{"cniVersion": "1.0.0", "name": "a", "plugins": [{"type": "loopback"}]}"#;
    fs::write(&first, theirs).unwrap();
    lab.eventually("the agent and the directory say it", || {
        let report = doctor(lab, &[]);
        says(&report, "agent.warning", "warn", "the runtime uses")
            && says(&report, "cni.first", "fail", "00-a.conflist")
    });
    fs::remove_file(&first).unwrap();
    lab.eventually("it is over", || {
        let report = doctor(lab, &[]);
        check(&report, "agent.warning").is_none() && says(&report, "cni.first", "pass", "uses")
    });
    let socket = lab.file("other.sock");
    let report = doctor(lab, &["--socket", &socket]);
    finds(&report, "cni.socket", "warn", "names");
    finds(&report, "agent.socket", "fail", "no agent runs");
}

/// A socket that others may use, an agent that is dead, DELs that wait for it.
fn sockets(lab: &Lab) {
    let socket = lab.file("n1/agent.sock");
    let mode = |mode: &str| {
        Command::new("chmod")
            .args([mode, &socket])
            .status()
            .unwrap()
    };
    assert!(mode("666").success());
    finds(&doctor(lab, &[]), "agent.socket", "warn", "open to others");
    assert!(mode("600").success());
    lab.ok(&["kill", "n1", "--hold"]);
    let report = doctor(lab, &[]);
    finds(&report, "agent.ready", "fail", "an agent has died");
    finds(&report, "leaks", "warn", "start the agent");
    lab.delete_pod("one", 0);
    lab.eventually("a DEL waits", || {
        let report = doctor(lab, &[]);
        says(&report, "agent.queue", "warn", "wait for the agent")
    });
    lab.ok(&["start", "n1"]);
    lab.eventually("all is well again", || {
        let report = doctor(lab, &[]);
        let passes = |name| check(&report, name).is_some_and(|found| found.0 == "pass");
        ["agent.ready", "agent.queue", "leaks.links"]
            .into_iter()
            .all(passes)
    });
}
