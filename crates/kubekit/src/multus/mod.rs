//! Multus on a lab's nodes, thin and thick, with what each needs: programs, an account, a kubeconfig,
//! a daemon. To run Plexus below it, and to measure Plexus against it. Nothing in the lab itself uses it.
//!
//! ```text
//! multus::prepare(&lab)?;                                     // programs, account, kubeconfig
//! multus::start_daemons(&lab, "10-bridge.conflist")?;         // thick only
//! let conf = multus::configuration(Flavour::Thick, &default); // for a CNI call by hand, or
//! multus::put_first(&lab, "n1", &conf)?;                      // as the node's CNI
//! ```

pub mod whereabouts;

mod account;

use crate::kubernetes::crictl;
use crate::lab::Lab;
use crate::layout::{API_PORT, CONTROL_PLANE_V4, Layout};
use crate::process::{self, Process, Start};
use crate::{node, wait};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Where [`put_first`] writes: before any other configuration, Plexus's included.
pub const FIRST: &str = "/etc/cni/net.d/00-first.conf";

/// How Multus works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// A program that does everything at each call.
    Thin,
    /// A small program that asks a daemon.
    Thick,
}

impl Flavour {
    /// The program that a configuration names.
    pub fn plugin(self) -> &'static str {
        match self {
            Self::Thin => "multus",
            Self::Thick => "multus-shim",
        }
    }
}

/// Gives every node that is up the programs, and a kubeconfig of an account that may do what Multus
/// does. May be repeated.
pub fn prepare(lab: &Lab) -> Result<()> {
    lab.api().apply(ACCOUNT)?;
    let token = account::token(lab, "multus")?;
    let authority = account::authority(lab.layout())?;
    let kubeconfig = account::kubeconfig(lab.layout(), "multus", &token)?;
    for name in up(lab)? {
        for program in ["multus", "multus-shim"] {
            install_program(lab.layout(), &name, &lab.tools().multus.join(program))?;
        }
        let write = |path: &str, text: &str| node::write(lab.layout(), &name, path, text);
        write(KUBECONFIG, &kubeconfig)?;
        // Where a pod would find them: the daemon looks nowhere else.
        write(&format!("{SECRETS}/token"), &token)?;
        write(&format!("{SECRETS}/ca.crt"), &authority)?;
    }
    Ok(())
}

/// What Multus reads on standard input: the cluster's network is `default`, a plugin's configuration or
/// a list. Written into it and not named by path: Multus 4.3 forgets the addresses of a list that it
/// was given by path.
pub fn configuration(flavour: Flavour, default: &Value) -> Value {
    let mut configuration = json!({
        "cniVersion": "1.0.0",
        "name": format!("multus-{}", if flavour == Flavour::Thin { "thin" } else { "thick" }),
        "type": flavour.plugin(),
        "logLevel": "error",
        "delegates": [default],
    });
    match flavour {
        Flavour::Thin => configuration["kubeconfig"] = json!(KUBECONFIG),
        Flavour::Thick => configuration["daemonSocketDir"] = json!(RUN),
    }
    configuration
}

/// Starts thick Multus's daemon on every node that is up, unless it runs, and waits until it listens. It insists on
/// writing a configuration of its own from `default` (a file in `/etc/cni/net.d`): that goes where
/// nobody looks.
pub fn start_daemons(lab: &Lab, default: &str) -> Result<()> {
    let layout = lab.layout();
    let program = lab.tools().multus.join("multus-daemon");
    let program = program.display().to_string();
    for name in up(lab)? {
        let process = daemon(&name);
        if Process::recorded(layout, &process).is_some() {
            continue;
        }
        let (config, unused) = (format!("{OWN}/daemon.json"), format!("{OWN}/unused"));
        let text = json!({
            "cniVersion": "1.0.0",
            "logLevel": "error",
            "logToStderr": true,
            "multusConfigFile": "auto",
            "multusMasterCNI": default,
            "multusAutoconfigDir": "/etc/cni/net.d",
            "cniConfigDir": unused,
            "socketDir": RUN,
            "daemonSocketDir": RUN,
        });
        node::write(layout, &name, &config, &text.to_string())?;
        node::write(layout, &name, &format!("{unused}/keep"), "")?;
        let (host, port) = (
            format!("KUBERNETES_SERVICE_HOST={CONTROL_PLANE_V4}"),
            format!("KUBERNETES_SERVICE_PORT={API_PORT}"),
        );
        let own = format!("MULTUS_NODE_NAME={name}");
        let argv = ["env", &host, &port, &own, &program, "-config", &config];
        process::start(layout, &process, Start::Guided, &lab.inside(&name, &argv)?)?;
        // Written after it listens.
        let written = layout
            .node(&name)
            .join(format!("fs{unused}/00-multus.conf"));
        wait::until(&process, Duration::from_secs(30), || {
            Ok(written.exists().then_some(()))
        })
        .with_context(|| process::tail(&layout.log(&process)))?;
    }
    Ok(())
}

/// The daemon's process id on a node, to measure it; none if it does not run.
pub fn daemon_pid(lab: &Lab, node: &str) -> Option<i32> {
    Process::recorded(lab.layout(), &daemon(node)).map(Process::pid)
}

/// Makes a configuration the first of a node, and waits until the runtime has read it. One at a time:
/// the next replaces it.
pub fn put_first(lab: &Lab, name: &str, configuration: &Value) -> Result<()> {
    node::write(lab.layout(), name, FIRST, &configuration.to_string())?;
    let wanted = configuration["name"].as_str().unwrap_or_default();
    wait_loaded(lab, name, &|loaded| loaded == wanted)
        .with_context(|| format!("{name} does not use {wanted}"))
}

/// Removes what [`put_first`] wrote, and waits until the runtime uses another configuration.
pub fn remove_first(lab: &Lab, name: &str) -> Result<()> {
    let before = loaded(lab, name)?;
    crate::command::run(&lab.inside(name, &["rm", FIRST])?)?;
    wait_loaded(lab, name, &|loaded| loaded != before)
}

/// Puts a program among a node's CNI plugins.
pub fn install_program(layout: &Layout, node: &str, program: &Path) -> Result<()> {
    let plugins = layout.node(node).join("fs/opt/cni/bin");
    let name = program.file_name().context("a program without a name")?;
    let (partial, path) = (plugins.join(".partial"), plugins.join(name));
    fs::copy(program, &partial)
        .and_then(|_| fs::rename(&partial, &path))
        .with_context(|| format!("cannot install {} as {}", program.display(), path.display()))
}

const KUBECONFIG: &str = "/etc/cni/net.d/multus.d/multus.kubeconfig";
const RUN: &str = "/run/multus";
/// Not below the other: the daemon empties that when it starts.
const OWN: &str = "/run/multus-daemon";
const SECRETS: &str = "/run/secrets/kubernetes.io/serviceaccount";

/// What Multus's own manifests grant.
const ACCOUNT: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: multus, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: multus}
rules:
- {apiGroups: [k8s.cni.cncf.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [""], resources: [pods, pods/status], verbs: [get, list, watch, update]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: multus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: multus}
subjects: [{kind: ServiceAccount, name: multus, namespace: kube-system}]
"#;

fn daemon(node: &str) -> String {
    format!("{node}-multus-daemon")
}

fn up(lab: &Lab) -> Result<Vec<String>> {
    let nodes = lab.spec()?.nodes.into_iter();
    Ok(nodes
        .filter(|name| node::is_up(lab.layout(), name))
        .collect())
}

/// Waits until the name of the configuration that the runtime uses is right.
fn wait_loaded(lab: &Lab, node: &str, right: &dyn Fn(&str) -> bool) -> Result<()> {
    let timeout = Duration::from_secs(20);
    wait::until("the runtime's configuration", timeout, || {
        Ok(right(&loaded(lab, node)?).then_some(()))
    })
}

/// The name of the configuration that the runtime uses; empty if it has none.
fn loaded(lab: &Lab, node: &str) -> Result<String> {
    let text = crictl(lab, node, &["info"])?.text()?;
    let info: Value = serde_json::from_str(&text).context("crictl printed no JSON")?;
    let networks = info
        .pointer("/cniconfig/Networks")
        .and_then(Value::as_array);
    let first = networks
        .into_iter()
        .flatten()
        .find(|network| network["IFName"] == "eth0");
    let name = first.and_then(|network| network.pointer("/Config/Name")?.as_str());
    Ok(name.unwrap_or_default().to_owned())
}
