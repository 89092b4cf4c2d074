//! A node: network, mount, host name and process-id namespaces of its own, in which a containerd, a
//! kubelet and a kube-proxy run as on a machine. Its `/run`, `/var/lib`, `/var/log` and `/opt` are its
//! own directories, its `/etc` is the machine's with changes of its own. Its first process is called
//! the holder: with it dies every process of the node, pods included.

mod cgroup;
mod config;
mod holder;

use crate::command::{feed, run, succeeds};
use crate::image;
use crate::layout::{Layout, index_of, node_v4, node_v6};
use crate::part::Part;
use crate::process::Process;
use crate::spec::Spec;
use crate::tools::Tools;
use crate::{pki, underlay, wait};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::time::Duration;

pub(crate) use cgroup::{procs as cgroup_processes, remove as remove_cgroups};

/// Everything of a node that needs no API server: wires, namespaces, containerd and its images.
pub(crate) fn boot(layout: &Layout, spec: &Spec, tools: &Tools, node: &str) -> Result<()> {
    populate_root(layout, spec, tools, node)?;
    underlay::plug(layout, node)?;
    cgroup::make(&layout.namespace(node))?;
    holder::start(layout, node)?;
    Part::Containerd(node.to_owned()).start(layout, spec, tools)?;
    wait_containerd(layout, tools, node)?;
    for archive in image::archives(layout)? {
        import(layout, tools, node, &archive)?;
    }
    Ok(())
}

/// kubelet and kube-proxy.
pub(crate) fn join(layout: &Layout, spec: &Spec, tools: &Tools, node: &str) -> Result<()> {
    Part::Kubelet(node.to_owned()).start(layout, spec, tools)?;
    Part::KubeProxy(node.to_owned()).start(layout, spec, tools)
}

/// As if the power had been cut: all processes end at once, the wires and `/run` are gone.
pub(crate) fn power_off(layout: &Layout, node: &str) -> Result<()> {
    if let Some(holder) = Process::recorded(layout, &holder::name(node)) {
        holder.kill()?;
    }
    underlay::unplug(layout, node)?;
    cgroup::remove(|name| name == layout.namespace(node))?;
    clear(&layout.node(node).join("fs/run"))
}

/// Whether the node has its namespaces.
pub(crate) fn is_up(layout: &Layout, node: &str) -> bool {
    Process::recorded(layout, &holder::name(node)).is_some()
}

/// Forgets the node's files.
pub(crate) fn discard(layout: &Layout, node: &str) -> Result<()> {
    clear(&layout.node(node))
}

/// Waits for the node's containerd to answer.
pub(crate) fn wait_containerd(layout: &Layout, tools: &Tools, node: &str) -> Result<()> {
    let ctr = tools.containerd.join("ctr").display().to_string();
    let argv = inside(layout, node, &[&ctr, "version"])?;
    wait::until(
        &format!("containerd of {node}"),
        Duration::from_secs(60),
        || Ok(succeeds(&argv).then_some(())),
    )
}

/// A command line that runs on the node, as its root would.
pub(crate) fn inside(layout: &Layout, node: &str, argv: &[&str]) -> Result<Vec<String>> {
    let holder = Process::recorded(layout, &holder::name(node))
        .with_context(|| format!("node {node} is not up"))?;
    let pid = holder.pid().to_string();
    let guide = ["nsenter", "-t", &pid, "-m", "-n", "-u", "-p", "--"];
    Ok(guide
        .iter()
        .chain(argv)
        .map(|word| (*word).to_owned())
        .collect())
}

/// Writes a file on the node, whole or not at all.
pub(crate) fn write(layout: &Layout, node: &str, path: &str, content: &str) -> Result<()> {
    let script = "mkdir -p \"${1%/*}\" && cat > \"$1.partial\" && mv \"$1.partial\" \"$1\"";
    feed(
        &inside(layout, node, &["sh", "-c", script, "sh", path])?,
        content,
    )
    .map(drop)
}

/// The command line of a part of the node.
pub(crate) fn command(
    part: &Part,
    node: &str,
    layout: &Layout,
    tools: &Tools,
) -> Result<Vec<String>> {
    let dir = layout.node(node);
    let index = index_of(node)?;
    let words = match part {
        Part::Containerd(_) => vec![
            "env".to_owned(),
            format!("PATH={}:{SYSTEM_PATH}", tools.containerd.display()),
            program(&tools.containerd, "containerd"),
            "--config".to_owned(),
            dir.join(config::CONTAINERD).display().to_string(),
        ],
        Part::Kubelet(_) => vec![
            program(&tools.kubernetes, "kubelet"),
            format!("--config={}", dir.join(config::KUBELET).display()),
            format!("--kubeconfig={}", layout.kubeconfig_of(node).display()),
            format!("--hostname-override={node}"),
            format!("--node-ip={},{}", node_v4(index), node_v6(index)),
            "--v=2".to_owned(),
        ],
        Part::KubeProxy(_) => vec![
            "env".to_owned(),
            format!("PATH={SYSTEM_PATH}"),
            program(&tools.kubernetes, "kube-proxy"),
            format!("--config={}", dir.join(config::KUBE_PROXY).display()),
        ],
        other => bail!("{other} is no part of a node"),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    inside(layout, node, &words)
}

const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Directories, configuration, certificates and the reference plugins.
fn populate_root(layout: &Layout, spec: &Spec, tools: &Tools, node: &str) -> Result<()> {
    let dir = layout.node(node);
    let plugins = dir.join("fs/opt/cni/bin");
    let made = || -> std::io::Result<()> {
        fs::create_dir_all(layout.static_pods(node))?;
        for own in [
            "fs/run",
            "fs/var/lib",
            "fs/var/log",
            "fs/etc/cni/net.d",
            "etc-work",
        ] {
            fs::create_dir_all(dir.join(own))?;
        }
        // Places to mount on, in the node's changes of /etc, and what is mounted there.
        for path in ["etc/cni", "etc/cdi", "etc/plexus"] {
            fs::create_dir_all(dir.join(path))?;
            fs::create_dir_all(dir.join("fs").join(path))?;
        }
        fs::create_dir_all(&plugins)?;
        for plugin in fs::read_dir(&tools.cni_plugins)? {
            let plugin = plugin?;
            fs::copy(plugin.path(), plugins.join(plugin.file_name()))?;
        }
        Ok(())
    };
    made().with_context(|| format!("cannot furnish {}", dir.display()))?;
    if !layout.kubeconfig_of(node).exists() {
        pki::make_node(layout, node)?;
    }
    config::write(layout, spec, tools, node)
}

/// Gives the node an image.
pub(crate) fn import(layout: &Layout, tools: &Tools, node: &str, archive: &Path) -> Result<()> {
    let ctr = program(&tools.containerd, "ctr");
    let archive = archive.display().to_string();
    let argv = [
        &ctr, "-n", "k8s.io", "images", "import", "--local", &archive,
    ];
    run(&inside(layout, node, &argv)?).map(drop)
}

fn program(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

/// Removes a directory that may not be there.
fn clear(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}
