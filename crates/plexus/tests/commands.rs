//! The user's commands as programs and shells meet them: exit codes, `-o json|yaml`, completion. With an
//! embedded API of their own, no controller and no agent. `doctor` needs root.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "everything here is part of a test"
)]

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longer than anything healthy takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A directory that is gone afterwards.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plexus-commands-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::create_dir_all(self.0.join(name).parent().unwrap()).unwrap();
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exit code, standard output, standard error.
#[derive(Debug)]
struct CommandOutput {
    code: Option<i32>,
    out: String,
    error: String,
}

fn plexus(words: &[&str]) -> CommandOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plexus"));
    command.args(words).stdin(Stdio::null());
    for variable in ["KUBECONFIG", "PLEXUS_LAB", "PLEXUS_CLUSTER_NAME"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    CommandOutput {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The same value from `-o json` and `-o yaml`, and the exit code of both.
#[track_caller]
fn value(words: &[&str]) -> (Option<i32>, Value) {
    let of = |form: &str| plexus(&[words, &["-o", form]].concat());
    let (json, yaml) = (of("json"), of("yaml"));
    let parsed: Value =
        serde_json::from_str(&json.out).unwrap_or_else(|e| panic!("{e}: {json:#?}"));
    let other: Value =
        serde_yaml_ng::from_str(&yaml.out).unwrap_or_else(|e| panic!("{e}: {yaml:#?}"));
    assert_eq!(parsed.is_array(), other.is_array(), "{words:?}");
    let keys = |value: &Value| {
        value
            .as_object()
            .map(|map| map.keys().cloned().collect::<Vec<_>>())
    };
    assert_eq!(keys(&parsed), keys(&other), "{words:?}");
    assert_eq!(json.code, yaml.code, "{words:?}");
    (json.code, parsed)
}

/// `plexus server`, ended when dropped.
struct Server {
    dir: Dir,
    child: Child,
}

impl Server {
    fn start() -> Self {
        let dir = Dir::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_plexus"));
        let (store, unix) = (dir.path("store"), dir.path("api.sock"));
        command.args([
            "server",
            "--listen",
            "127.0.0.1:0",
            "--dir",
            &store,
            "--unix",
            &unix,
        ]);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + TIMEOUT;
        while UnixStream::connect(&unix).is_err() {
            assert!(Instant::now() < until, "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { dir, child }
    }

    fn with<'a>(&self, words: &[&'a str], socket: &'a str) -> Vec<&'a str> {
        [words, &["--api-socket", socket]].concat()
    }

    fn run(&self, words: &[&str]) -> CommandOutput {
        let socket = self.dir.path("api.sock");
        plexus(&self.with(words, &socket))
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.code, Some(0), "{words:?}: {output:#?}");
        output.out
    }

    #[track_caller]
    fn value(&self, words: &[&str]) -> (Option<i32>, Value) {
        let socket = self.dir.path("api.sock");
        value(&self.with(words, &socket))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const OBJECTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: plexus.dev/v1alpha1
kind: Network
metadata: {name: blue, namespace: team-a}
spec: {subnets: {a: {cidr: 10.1.0.0/16}, b: {cidr: 'fd00:1::/48'}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team-a, annotations: {plexus.dev/networks: blue}}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: east
  namespace: team-a
  annotations:
    opencontrail.org/network: '{\"domain\": \"default-domain\", \"project\": \"east-team-a\", \"name\": \"blue\"}'
spec: {containers: [{name: c, image: i}]}
";

#[test]
fn what_a_server_has_for_programs() {
    let server = Server::start();
    let file = server.dir.file("objects.yaml", OBJECTS);
    server.ok(&["apply", "-f", &file]);

    let (code, described) = server.value(&["describe", "network", "team-a/blue"]);
    assert_eq!(code, Some(0));
    assert_eq!(described[0]["title"], "Network team-a/blue");
    // What is there is said, and what is not makes it fail.
    let (code, described) =
        server.value(&["describe", "pod", "-n", "team-a", "web", "none", "east"]);
    assert_eq!(code, Some(1));
    let titles: Vec<&Value> = described
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["title"])
        .collect();
    assert_eq!(titles, ["Pod team-a/web", "Pod team-a/east"]);
    assert_eq!(described[1]["sections"][0]["title"], "Pod team-a/east");
    let output = server.run(&["describe", "pod", "-n", "team-a", "web", "none"]);
    assert!(output.out.starts_with("Pod team-a/web\n"), "{output:#?}");
    assert!(
        output.error.contains("there is no Pod team-a/none"),
        "{output:#?}"
    );

    let (code, diagnosed) = server.value(&["diagnose", "pod", "team-a/web"]);
    assert_eq!(
        (code, &diagnosed["subject"]),
        (Some(0), &json!("Pod team-a/web"))
    );
    // No controller runs: the network is known, if the name of its project is understood.
    let kinds = |further: &[&str]| {
        let words = [&["diagnose", "pod", "team-a/east"], further].concat();
        let (_, diagnosed) = server.value(&words);
        diagnosed["answers"].to_string()
    };
    assert!(kinds(&[]).contains("network-missing"), "{}", kinds(&[]));
    let named = kinds(&["--cluster-name", "east"]);
    assert!(named.contains("network-initializing"), "{named}");

    let (code, listed) = server.value(&["ipam", "show", "team-a/blue"]);
    assert_eq!(code, Some(0));
    assert_eq!(listed["families"][0]["family"], "IPv4", "{listed:#}");
    assert_eq!(listed["families"][1]["family"], "IPv6", "{listed:#}");
    // No node has a block yet: as full as the family with the fewest addresses.
    let table = server.ok(&["get", "networks", "-A"]);
    assert!(table.contains(" 0/65533 "), "{table}");

    let (code, versions) = server.value(&["version"]);
    assert_eq!(code, Some(0));
    assert!(
        versions["server"].as_str().unwrap().starts_with("v1."),
        "{versions}"
    );
}

#[test]
fn what_is_made_and_refused() {
    let server = Server::start();
    let file = server.dir.file("objects.yaml", OBJECTS);
    server.ok(&["apply", "-f", &file]);
    let subnet = ["--subnet", "10.2.0.0/16"];
    let words = [
        &["create", "network", "team-a/red", "--dry-run=client"],
        &subnet[..],
    ]
    .concat();
    let (code, listed) = value(&words);
    assert_eq!(
        (code, &listed["metadata"]["namespace"]),
        (Some(0), &json!("team-a"))
    );
    let dry = |words: &[&str]| server.ok(&[words, &subnet[..]].concat());
    let made = dry(&["create", "network", "team-a/red", "--dry-run=server"]);
    assert_eq!(made, "network.plexus.dev/red created (server dry run)\n");
    let made = dry(&["create", "network", "team-a/red", "--dry-run=client"]);
    assert_eq!(made, "network.plexus.dev/red created (dry run)\n");
    let made = server.ok(&[
        &["create", "network", "team-a/red", "-o", "json"],
        &subnet[..],
    ]
    .concat());
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["metadata"]["namespace"], "team-a");
    assert_eq!(
        server.ok(&["get", "networks", "-n", "team-a", "red", "-o", "name"]),
        "network.plexus.dev/red\n"
    );

    let taken = ["create", "network", "team-a/red", "--dry-run=server"];
    let output = server.run(&[&taken[..], &subnet[..]].concat());
    assert!(output.error.contains("already exists"), "{output:#?}");
    let more = server
        .dir
        .file("more.yaml", &OBJECTS.replace("name: blue", "name: green"));
    for (mode, suffix, blank) in [
        ("client", "(dry run)", "configured"),
        ("server", "(server dry run)", "unchanged"),
    ] {
        let mode = format!("--dry-run={mode}");
        let told = server.ok(&["apply", "-f", &more, &mode]);
        let green = format!("network.plexus.dev/green in team-a created {suffix}\n");
        let namespace = format!("namespace/team-a {blank} {suffix}\n");
        assert!(told.contains(&green) && told.contains(&namespace), "{told}");
    }
    assert!(!server.ok(&["get", "networks", "-A"]).contains("green"));

    let nameless = server.dir.file(
        "nameless.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: first}\n---\n\
         apiVersion: v1\nkind: Pod\nmetadata: {generateName: job-}\nspec: {containers: [{name: c, image: i}]}\n",
    );
    let output = server.run(&["apply", "-f", &nameless]);
    assert_eq!(output.code, Some(1), "{output:#?}");
    assert!(
        output
            .error
            .contains("nothing was applied: apply needs metadata.name"),
        "{output:#?}"
    );
    assert!(!server.ok(&["get", "namespaces"]).contains("first"));

    let empty = server.dir.file("empty.yaml", "# nothing yet\n");
    for verb in ["apply", "delete"] {
        let output = server.run(&[verb, "-f", &empty]);
        assert_eq!(output.code, Some(1), "{output:#?}");
        assert!(output.error.contains("there is no object"), "{output:#?}");
    }
    let output = server.run(&["get", "networks", "team-a/red", "-n", "default"]);
    assert_eq!(output.code, Some(1), "{output:#?}");
    assert!(output.error.contains("keep one"), "{output:#?}");
}

/// `plexus` of a user whose home this is.
fn at_home(home: &Dir, words: &[&str]) -> CommandOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plexus"));
    command
        .args(words)
        .env("HOME", home.path(""))
        .stdin(Stdio::null());
    // A lab that is named says nothing of servers.
    command.env_remove("KUBECONFIG").env("PLEXUS_LAB", "lab");
    let output = command.output().unwrap();
    CommandOutput {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn the_server_is_that_of_the_current_context() {
    let server = Server::start();
    let home = Dir::new();
    let get = ["get", "namespaces", "-o", "name"];
    let output = at_home(&home, &get);
    assert_eq!(output.code, Some(1), "{output:#?}");
    assert!(output.error.contains("no API server to ask"), "{output:#?}");
    let own = fs::read_to_string(server.dir.path("store/kubeconfig")).unwrap();
    let file = home.file(".kube/config", &own);
    let output = at_home(&home, &get);
    assert_eq!(
        (output.code, output.error.as_str()),
        (Some(0), ""),
        "{output:#?}"
    );
    assert!(output.out.contains("namespace/default"), "{output:#?}");
    // As of a cluster that Plexus has not made.
    let mut config: Value = serde_json::from_str(&own).unwrap();
    config["contexts"][0]["context"]
        .as_object_mut()
        .unwrap()
        .remove("extensions");
    home.file(".kube/config", &config.to_string());
    let output = at_home(&home, &get);
    let said = format!("context plexus of {file}: https://127.0.0.1:");
    assert!(output.error.starts_with(&said), "{output:#?}");
    assert_eq!(
        (output.code, output.error.lines().count()),
        (Some(0), 1),
        "{output:#?}"
    );
    // After the context is gone no other one is taken.
    config["current-context"] = "".into();
    home.file(".kube/config", &config.to_string());
    let deleted = at_home(&home, &["delete", "namespace", "default"]);
    assert_eq!(deleted.code, Some(1), "{deleted:#?}");
    assert!(
        deleted.error.contains("no context is current"),
        "{deleted:#?}"
    );
    let output = at_home(&home, &[&get[..], &["--context", "plexus"]].concat());
    assert_eq!(output.code, Some(0), "{output:#?}");
}

/// Nobody takes the finalizer away.
const HELD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: held, finalizers: [example.org/held]}
spec: {containers: [{name: c, image: i}]}
";

#[test]
fn a_deletion_is_waited_for_or_not() {
    let server = Server::start();
    let file = server.dir.file("held.yaml", HELD);
    server.ok(&["apply", "-f", &file]);
    let told = server.ok(&["delete", "pod", "held", "--wait=false"]);
    let why = "pod/held is being deleted: it waits for example.org/held (its finalizers)\n";
    assert_eq!(told, why);
    let output = server.run(&["delete", "pod", "held", "--wait", "--timeout", "300ms"]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(1), ""),
        "{output:#?}"
    );
    let late = "plexus: pod/held is being deleted, and is not gone after 0.3 s: it waits for";
    assert!(output.error.starts_with(late), "{output:#?}");
}

#[test]
fn what_is_watched_comes_as_it_changes() {
    let server = Server::start();
    let file = server.dir.file("objects.yaml", OBJECTS);
    server.ok(&["apply", "-f", &file]);
    let socket = server.dir.path("api.sock");
    let watch = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plexus"));
        command.args([
            "get",
            "networks",
            "-n",
            "team-a",
            "-w",
            "--api-socket",
            &socket,
        ]);
        let mut child = command.args(more).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (Killed(child), lines.map(Result::unwrap))
    };
    let (table, mut rows) = watch(&[]);
    let (one, mut names) = watch(&["red", "blue", "-o", "name"]);
    // A name that is not there is said at once, as without -w.
    assert_eq!(names.next(), None);
    drop(one);
    let (one, mut names) = watch(&["blue", "-o", "name"]);
    let columns = |line: &str| {
        line.split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(columns(&rows.next().unwrap()), "NAME PROVIDER");
    assert_eq!(columns(&rows.next().unwrap()), "blue overlay");
    assert_eq!(names.next().unwrap(), "network.plexus.dev/blue");
    let red = ["create", "network", "team-a/red", "--subnet", "10.2.0.0/16"];
    server.ok(&[&red[..], &["--provider", "routed"]].concat());
    assert_eq!(columns(&rows.next().unwrap()), "red routed");
    server.ok(&["delete", "network", "team-a/red"]);
    assert_eq!(
        columns(&rows.next().unwrap()),
        "red routed",
        "as it was last"
    );
    server.ok(&["delete", "network", "team-a/blue"]);
    assert_eq!(columns(&rows.next().unwrap()), "blue overlay");
    assert_eq!(
        names.next().unwrap(),
        "network.plexus.dev/blue",
        "and not red"
    );
    drop((table, one));
    let output = server.run(&["get", "networks,pods", "-w"]);
    assert!(output.error.contains("follows one kind"), "{output:#?}");
}

/// A program that goes on until it is killed.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn files_and_their_exit_codes() {
    let dir = Dir::new();
    let good = dir.file("good.yaml", OBJECTS);
    let network = "apiVersion: plexus.dev/v1alpha1\nkind: Network\nmetadata: {name: green}\n";
    let bad = dir.file(
        "bad.yaml",
        &format!("{network}spec: {{subnets: {{a: {{cidr: 10.1.0.7/24}}}}}}\n"),
    );
    let (code, report) = value(&["validate", "-f", &good]);
    assert_eq!(
        (code, &report["valid"]),
        (Some(0), &json!(true)),
        "{report:#}"
    );
    let (code, report) = value(&["validate", "-f", &bad]);
    assert_eq!(
        (code, &report["valid"]),
        (Some(1), &json!(false)),
        "{report:#}"
    );

    let lost = dir.file(
        "lost.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: lost, annotations: {plexus.dev/networks: nosuch}}\n\
         spec: {containers: [{name: c, image: i}]}\n",
    );
    let east = ["--cluster-name", "east"];
    let output = plexus(&[&["plan", "-f", &good], &east[..]].concat());
    assert_eq!(output.code, Some(0), "{output:#?}");
    assert!(
        output.out.contains("ip -n pod address add 10.1."),
        "{output:#?}"
    );
    let output = plexus(&["plan", "-f", &good]);
    assert_eq!(output.code, Some(1), "{output:#?}");
    assert!(output.out.contains("it would not start"), "{output:#?}");
    let output = plexus(&["plan", "-f", &lost]);
    assert_eq!(output.code, Some(1), "{output:#?}");
    assert!(
        output.out.contains("there is no Network default/nosuch"),
        "{output:#?}"
    );

    // Whose a claim is cannot be told from files that do not have its class.
    let claiming = dir.file(
        "claiming.yaml",
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: gpu}\n\
         spec: {devices: {requests: [{name: a, exactly: {deviceClassName: fast}}]}}\n---\n\
         apiVersion: v1\nkind: Pod\nmetadata: {name: trains}\n\
         spec: {resourceClaims: [{name: x, resourceClaimName: gpu}], containers: [{name: c, image: i}]}\n",
    );
    let output = plexus(&["plan", "-f", &claiming]);
    let words = "not known: whether it would wait for ResourceClaim default/gpu: DeviceClass fast cannot be seen";
    assert!(output.out.contains(words), "{output:#?}");
}

/// An agent that is ready and knows of nobody.
fn agent(socket: &str) {
    let listener = UnixListener::bind(socket).unwrap();
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap_or_default();
            let ready = request[..length].starts_with(b"GET /readyz");
            let body = if ready { "ready\n" } else { "[]" };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all((head + body).as_bytes());
        }
    });
}

#[test]
fn a_machine_and_the_exit_codes_of_doctor() {
    let dir = Dir::new();
    let paths = ["agent.sock", "state", "bin", "conf", "pools"].map(|name| dir.path(name));
    let flags = [
        "--socket",
        "--state-dir",
        "--cni-bin-dir",
        "--cni-conf-dir",
        "--pools",
    ];
    let paths = flags
        .iter()
        .zip(&paths)
        .flat_map(|(flag, path)| [*flag, path.as_str()]);
    let words: Vec<&str> = ["doctor", "--no-api"].into_iter().chain(paths).collect();
    // No agent runs.
    let (code, report) = value(&words);
    assert_eq!(
        (code, &report["verdict"]),
        (Some(1), &json!("fail")),
        "{report:#}"
    );
    let of = |further: &[&str]| plexus(&[&words[..], further].concat());
    let quiet = of(&["-q"]);
    assert_eq!(quiet.code, Some(1), "{quiet:#?}");
    assert!(
        quiet.out.contains("agent.socket") && !quiet.out.contains("rights.root"),
        "{quiet:#?}"
    );
    assert!(of(&[]).out.contains("rights.root"), "all is shown");
    // Nothing is wrong but that no agent has kept anything here yet.
    agent(&dir.path("agent.sock"));
    let shim = dir.file("bin/plexus-cni", "#!/bin/sh\n# PLEXUS_AGENT_SOCKET\n");
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, report) = value(&words);
    assert_eq!(
        (code, &report["verdict"]),
        (Some(0), &json!("warn")),
        "{report:#}"
    );
    let strict = of(&["--strict"]);
    assert_eq!(strict.code, Some(1), "{strict:#?}");
}

#[test]
fn shells_complete_commands() {
    for (shell, words) in [("zsh", "#compdef plexus"), ("fish", "complete -c plexus")] {
        let output = plexus(&["completion", shell]);
        assert_eq!(output.code, Some(0), "{output:#?}");
        assert!(output.out.contains(words), "{shell}: {}", output.out);
    }
    let dir = Dir::new();
    let script = plexus(&["completion", "bash"]);
    assert_eq!(script.code, Some(0), "{script:#?}");
    let file = dir.file("plexus.bash", &script.out);
    // As bash calls it for `plexus WORDS… <tab>`.
    let completed = |words: &[&str]| {
        let line = words.join(" ");
        let last = words.last().unwrap_or(&"plexus");
        let count = words.len() + 1;
        let ask = format!(
            "set -u; source {file}; f=$(complete -p plexus | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
             COMP_WORDS=(plexus {line} ''); COMP_CWORD={count}; $f plexus '' {last}\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &ask])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (words, wanted) in [
        (&[][..], &["apply", "diagnose", "doctor", "lab"][..]),
        (
            &["get"],
            &["networks", "pods", "blocks", "--all-namespaces"],
        ),
        (&["describe"], &["pod", "network"]),
        (&["diagnose"], &["nad"]),
        (&["lab"], &["exec", "kill", "heal"]),
        (&["get", "-o"], &["json", "yaml", "wide", "name"]),
    ] {
        let given = completed(words);
        for word in wanted {
            assert!(
                given.lines().any(|line| line == *word),
                "{words:?}: no {word} in {given}"
            );
        }
    }
}
