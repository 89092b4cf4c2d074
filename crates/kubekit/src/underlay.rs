//! The wires: a namespace for the control plane with three bridges, a namespace for each node, and
//! three veths from each node to them. Every node reaches every other on all three, IPv4 and IPv6.
//!
//! ```text
//!   <prefix>-cp: br0 (192.168.77.254, fd00:77::fe)  br1  br2     lo: the "outside" addresses
//!                 │                                  │    │
//!   <prefix>-n1: eth0 (192.168.77.1, fd00:77::1)   eth1 eth2     (10.0.1.1, 10.0.2.1, …)
//! ```

use crate::command::{feed, run, succeeds};
use crate::layout::{
    CONTROL_PLANE_V4, CONTROL_PLANE_V6, Layout, OUTSIDE_V4, OUTSIDE_V6, index_of, node_v4, node_v6,
};
use anyhow::{Context, Result};
use std::fs;

/// The control plane's namespace.
pub(crate) fn make(layout: &Layout) -> Result<()> {
    let namespace = layout.namespace("cp");
    run(&["ip", "netns", "add", &namespace])?;
    let mut lines = format!(
        "link set lo up\naddr add {OUTSIDE_V4}/32 dev lo\naddr add {OUTSIDE_V6}/128 dev lo nodad\n"
    );
    for bridge in 0..NICS {
        lines.push_str(&format!(
            "link add br{bridge} type bridge mcast_snooping 0\nlink set br{bridge} up\n"
        ));
    }
    lines.push_str(&format!(
        "addr add {CONTROL_PLANE_V4}/24 dev br0\naddr add {CONTROL_PLANE_V6}/64 dev br0 nodad\n"
    ));
    batch(&namespace, &lines)
}

/// A node's namespace and its wires.
pub(crate) fn plug(layout: &Layout, node: &str) -> Result<()> {
    let index = index_of(node)?;
    let (hub, namespace) = (layout.namespace("cp"), layout.namespace(node));
    run(&["ip", "netns", "add", &namespace])?;
    let mut outer = String::new();
    let mut inner = "link set lo up\n".to_owned();
    let addresses = [
        (
            format!("{}/24", node_v4(index)),
            format!("{}/64", node_v6(index)),
        ),
        (
            format!("10.0.1.{index}/24"),
            format!("fd00:10:1::{index}/64"),
        ),
        (
            format!("10.0.2.{index}/24"),
            format!("fd00:10:2::{index}/64"),
        ),
    ];
    for (nic, (v4, v6)) in addresses.iter().enumerate() {
        outer.push_str(&format!(
            "link add {node}e{nic} type veth peer name eth{nic} netns {namespace}\n\
             link set {node}e{nic} master br{nic} up\n"
        ));
        inner.push_str(&format!(
            "link set eth{nic} up\naddr add {v4} dev eth{nic}\naddr add {v6} dev eth{nic} nodad\n"
        ));
    }
    inner.push_str(&format!(
        "route add default via {CONTROL_PLANE_V4}\nroute add default via {CONTROL_PLANE_V6}\n"
    ));
    batch(&hub, &outer)?;
    sysctl(
        layout,
        node,
        &["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"],
    )?;
    batch(&namespace, &inner)
}

/// Removes a node's namespace, and its wires with it. Nothing to remove is fine.
pub(crate) fn unplug(layout: &Layout, node: &str) -> Result<()> {
    let namespace = layout.namespace(node);
    if !layout.namespace_path(node).exists() {
        return Ok(());
    }
    // The wires at once: whoever still holds the namespace would keep them a little longer.
    for nic in 0..NICS {
        let _ = succeeds(&[
            "ip",
            "-n",
            &layout.namespace("cp"),
            "link",
            "del",
            &format!("{node}e{nic}"),
        ]);
    }
    run(&["ip", "netns", "del", &namespace])?;
    Ok(())
}

/// Names of the lab's namespaces that exist.
pub(crate) fn namespaces(layout: &Layout) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| layout.owns(name))
        .collect()
}

/// The start of a command line that runs in a namespace of the lab.
pub(crate) fn inside(layout: &Layout, node: &str) -> Vec<String> {
    let path = layout.namespace_path(node);
    vec!["nsenter".to_owned(), format!("--net={}", path.display())]
}

const NICS: u8 = 3;

fn sysctl(layout: &Layout, node: &str, settings: &[&str]) -> Result<()> {
    let mut argv = inside(layout, node);
    argv.extend(["sysctl".to_owned(), "-qw".to_owned()]);
    argv.extend(settings.iter().map(|setting| (*setting).to_owned()));
    run(&argv).map(drop)
}

fn batch(namespace: &str, lines: &str) -> Result<()> {
    feed(&["ip", "-n", namespace, "-batch", "-"], lines)
        .map(drop)
        .with_context(|| format!("cannot set up {namespace}"))
}
