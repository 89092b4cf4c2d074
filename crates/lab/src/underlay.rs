//! The lab's wires: which namespaces, bridges and links there are, and what they are called. Makes them by
//! way of `kernel`; everything can be repeated.

use crate::address;
use crate::error::LabError;
use crate::layout::Layout;
use crate::name::{LabName, NodeName};
use crate::nic::Nic;
use plexus_core::plan::Setting;
use plexus_kernel::wires::{self, Bridge, Wire};
use plexus_kernel::{Netns, named, sysctl};
use plexus_types::Mac;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;

/// How many namespaces are made at a time.
const CONCURRENT_NAMESPACES: usize = 4;

/// The fabric's namespace with its bridges.
pub(crate) fn make_fabric(name: &LabName, nics: &[Nic]) -> Result<(), LabError> {
    let namespace = name.fabric();
    named::ensure(&namespace)?;
    let hub = open(&namespace)?;
    hub.enter(allow_ipv6)??;
    let bridges: Vec<Bridge> = (0..nics.len())
        .map(|nic| Bridge {
            name: bridge(nic),
            mac: Mac::derived(&["lab-bridge", name.as_str(), &bridge(nic)]),
            addresses: if nic == 0 {
                address::of_fabric().into()
            } else {
                Vec::new()
            },
        })
        .collect();
    wires::make_hub(&hub, &address::outside(), &bridges)
        .map_err(LabError::wires("set the underlay up"))
}

/// The namespaces of nodes with their wires, several at a time.
pub(crate) fn plug_all(name: &LabName, nodes: &[NodeName], nics: &[Nic]) -> Result<(), LabError> {
    let left = Mutex::new(nodes.iter());
    let next = || left.lock().ok().and_then(|mut left| left.next().copied());
    let work = || -> Result<(), LabError> {
        while let Some(node) = next() {
            plug(name, node, nics)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENT_NAMESPACES.min(nodes.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let joined = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| {
                Err(LabError::Refused("a thread of `lab up` failed".to_owned()))
            })
        });
        // All of them, so that none is at work when the first error is returned.
        let results: Vec<_> = joined.collect();
        results.into_iter().collect()
    })
}

/// A node's namespace with its wires.
pub(crate) fn plug(name: &LabName, node: NodeName, nics: &[Nic]) -> Result<(), LabError> {
    let namespace = name.node(node);
    named::ensure(&namespace)?;
    let inside = open(&namespace)?;
    inside.enter(allow_ipv6)??;
    let gateways: Vec<IpAddr> = address::of_fabric().iter().map(|net| net.addr()).collect();
    let wires = nics.iter().enumerate();
    let wires: Vec<Wire> = wires
        .filter_map(|(number, nic)| wire(name, node, number, nic))
        .collect();
    wires::plug(&open(&name.fabric())?, &inside, &wires, &gateways)
        .map_err(LabError::wires(format!("plug node {node} in")))
}

/// Removes a node's wires at once, and its namespace's name; what is gone already is fine.
pub(crate) fn unplug(name: &LabName, node: NodeName, nics: &[Nic]) -> Result<(), LabError> {
    match open(&name.fabric()) {
        Ok(hub) => wires::unplug(&hub, &outer_ends(node, nics))
            .map_err(LabError::wires(format!("unplug node {node}")))?,
        Err(LabError::Netns(error)) if error.is_gone() => {}
        Err(error) => return Err(error),
    }
    named::remove(&name.node(node))?;
    Ok(())
}

/// Cuts a node's wires, or joins them again.
pub(crate) fn partition(
    name: &LabName,
    node: NodeName,
    nics: &[Nic],
    cut: bool,
) -> Result<(), LabError> {
    let verb = if cut { "cut" } else { "join" };
    wires::set_carrier(&open(&name.fabric())?, &outer_ends(node, nics), !cut)
        .map_err(LabError::wires(format!("{verb} the wires of node {node}")))
}

/// Whether all wires of each node are joined.
pub(crate) fn joined(
    name: &LabName,
    nodes: impl Iterator<Item = NodeName>,
    nics: &[Nic],
) -> Result<BTreeMap<NodeName, bool>, LabError> {
    let hub = open(&name.fabric())?;
    let ends: Vec<(NodeName, String)> = nodes
        .flat_map(|node| {
            let ends = outer_ends(node, nics).into_iter();
            ends.map(move |end| (node, end))
        })
        .collect();
    let names: Vec<String> = ends.iter().map(|(_, end)| end.clone()).collect();
    let up = wires::carriers(&hub, &names).map_err(LabError::wires("look at the wires"))?;
    let mut joined = BTreeMap::new();
    for ((node, _), up) in ends.into_iter().zip(up) {
        *joined.entry(node).or_insert(true) &= up;
    }
    Ok(joined)
}

/// The lab's namespaces that exist.
pub(crate) fn namespaces(layout: &Layout) -> Result<Vec<String>, LabError> {
    let mut names = named::list()?;
    names.retain(|name| layout.name().owns(name));
    Ok(names)
}

pub(crate) fn open(namespace: &str) -> Result<Netns, LabError> {
    Ok(Netns::open(named::path(namespace))?)
}

/// A machine may have switched IPv6 off for namespaces to come; a node has it.
fn allow_ipv6() -> Result<(), LabError> {
    for which in ["all", "default"] {
        let setting = Setting {
            key: format!("net/ipv6/conf/{which}/disable_ipv6"),
            value: "0".to_owned(),
        };
        sysctl::ensure(&setting)?;
    }
    Ok(())
}

fn wire(name: &LabName, node: NodeName, number: usize, nic: &Nic) -> Option<Wire> {
    let nic = nic.of(node)?;
    let inner = nic.name.to_string();
    Some(Wire {
        bridge: bridge(number),
        outer: outer_end(node, number),
        mac: Mac::derived(&["lab-nic", name.as_str(), &node.to_string(), &inner]),
        inner,
        addresses: nic.addresses,
        mtu: nic.mtu,
        up: nic.up,
    })
}

/// Of the wires that the node has.
fn outer_ends(node: NodeName, nics: &[Nic]) -> Vec<String> {
    let all = nics.iter().enumerate();
    let own = all.filter(|(_, nic)| nic.is_of(node));
    own.map(|(number, _)| outer_end(node, number)).collect()
}

fn outer_end(node: NodeName, wire: usize) -> String {
    format!("{node}e{wire}")
}

fn bridge(wire: usize) -> String {
    format!("br{wire}")
}
