//! How containerd calls `plexus-cni`, and how the keeper of a lab does, which claims to do it likewise: both are
//! listened to, and compared.

use super::containerd::Containerd;
use super::eventually;
use plexus_testkit::{Node, PLEXUS, SHIM, Up, bin};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One call as its plugin sees it: the variables of the protocol, and the shape of what is on standard input.
#[derive(Debug, PartialEq)]
struct Call {
    variables: Vec<String>,
    arguments: Vec<String>,
    interface: String,
    configuration: Value,
}

/// Puts a plugin that listens in place of ours; it hands everything on to ours.
fn listen(plugins: &Path, socket: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let script = format!(
        "#!/bin/sh\nenv >'{to}'/$CNI_COMMAND.env\ncat >'{to}'/$CNI_COMMAND.json\n\
         PLEXUS_AGENT_SOCKET='{socket}' exec '{shim}' <'{to}'/$CNI_COMMAND.json\n",
        to = to.display(),
        socket = socket.display(),
        shim = bin(SHIM).display(),
    );
    // Whoever is being executed is not written to.
    let (beside, plugin) = (plugins.join(".listens"), plugins.join("plexus-cni"));
    fs::write(&beside, script).unwrap();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&beside, &plugin).unwrap();
}

/// What was heard of a verb.
fn heard(at: &Path, verb: &str) -> Call {
    let read = |ending: &str| fs::read_to_string(at.join(format!("{verb}.{ending}"))).unwrap();
    let text = read("env");
    let variables: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| name.starts_with("CNI_"))
        .collect();
    assert_eq!(variables["CNI_COMMAND"], verb);
    let arguments = variables["CNI_ARGS"].split(';');
    let keys = arguments.map(|one| match one.split_once('=') {
        Some(("IgnoreUnknown", value)) => format!("IgnoreUnknown={value}"),
        Some((key, _)) => key.to_owned(),
        None => one.to_owned(),
    });
    // containerd has them in no order.
    let mut arguments: Vec<String> = keys.collect();
    arguments.sort();
    Call {
        variables: variables.keys().map(|name| (*name).to_owned()).collect(),
        arguments,
        interface: variables["CNI_IFNAME"].to_owned(),
        configuration: shape(&serde_json::from_str(&read("json")).unwrap()),
    }
}

/// Keys, and what kind of value is there; of a list, that of each entry.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let each = map.iter().map(|(key, value)| (key.clone(), shape(value)));
            each.collect::<Map<_, _>>().into()
        }
        Value::Array(list) => list.iter().map(shape).collect(),
        Value::String(_) => "text".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "truth".into(),
        Value::Null => Value::Null,
    }
}

/// The result of the ADD is the agent's, and says what is different on the two: only that it is there counts.
fn without_result(mut call: Call) -> (Call, bool) {
    let result = call.configuration.as_object_mut().unwrap();
    let had = result.remove("prevResult").is_some();
    (call, had)
}

/// A lab of one node, removed when dropped.
struct Lab {
    name: String,
}

impl Lab {
    fn up() -> Self {
        let name = format!("c{}", std::process::id());
        let lab = Self { name };
        lab.ok(&["up", "--nodes", "1", "--nics", "1"]);
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new("/run/plexus/lab").join(&self.name).join(name)
    }

    fn plexus(&self, words: &[&str]) -> Command {
        let mut command = Command::new(bin(PLEXUS));
        command
            .args(words)
            .env("PLEXUS_LAB", &self.name)
            .env(
                "KUBECONFIG",
                std::env::temp_dir().join(format!("plexus-{}", self.name)),
            )
            .env("PLEXUS_CNI_BIN", bin(SHIM));
        command
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) {
        let output = self.plexus(&["lab"]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.plexus(&["lab", "down"]).output();
    }
}

#[test]
fn a_lab_calls_as_containerd_does() {
    let node = Node::new();
    let up = Up::start(&node);
    let containerd = Containerd::start(&node);
    let theirs = node.file("heard-from-containerd");
    listen(&node.cni_bin(), &node.socket(), &theirs);
    let config = json!({
        "metadata": {"name": "one", "namespace": "default", "uid": "uid-one", "attempt": 1},
        "log_directory": node.file("logs"),
        "annotations": {"example.com/a": "b"},
        "port_mappings": [{"protocol": 0, "container_port": 80, "host_port": 30080}],
        "linux": {"cgroup_parent": format!("/{}", node.name())},
    });
    let file = node.file("sandbox.json");
    fs::write(&file, config.to_string()).unwrap();
    let sandbox = containerd.crictl(&["runp", &file.display().to_string()]);
    let sandbox = containerd.ok(sandbox, "the sandbox");
    // To remove it is a second DEL, without the result: the first one ended it.
    containerd.ok(containerd.crictl(&["stopp", &sandbox]), "stopped");

    let lab = Lab::up();
    let ours = node.file("heard-from-a-lab");
    let (plugins, socket) = (lab.path("n1/cni/bin"), lab.path("n1/agent.sock"));
    listen(&plugins, &socket, &ours);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "one", "namespace": "default", "annotations": {"example.com/a": "b"}},
        "spec": {"nodeName": "n1", "containers": [
            {"name": "c", "image": "none", "ports": [{"containerPort": 80, "hostPort": 30080}]}]},
    });
    fs::write(&file, pod.to_string()).unwrap();
    let apply = ["apply", "-f", &file.display().to_string()];
    assert!(lab.plexus(&apply).status().unwrap().success());
    eventually("the lab has asked for the pod", || {
        ours.join("ADD.json").exists()
    });
    let gone = ["delete", "pod", "one", "--timeout", "60s"];
    assert!(lab.plexus(&gone).status().unwrap().success());
    eventually("and for its end", || ours.join("DEL.json").exists());

    for verb in ["ADD", "DEL"] {
        let (theirs, ours) = (heard(&theirs, verb), heard(&ours, verb));
        assert_eq!(without_result(ours), without_result(theirs), "{verb}");
    }
    drop(up);
}
