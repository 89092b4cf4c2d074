//! Giving moved devices back to the node: from the pod, from wherever the kernel put them when the pod's namespace died,
//! under their old names and as they were. Needs no memory of how far an earlier attempt came, and can be repeated:
//! our mark goes last. Never deletes a device.
//!
//! ```text
//! pod socket    mark, down, further names that are not its own away, rename, move to the node
//! node socket   rename, MAC, MTU, further names, up or down; the mark away
//! ```

use super::remove::{Work, has_owner_of};
use crate::effect::effect;
use crate::netlink::Refused;
use crate::observe::{link_by_name, links};
use crate::{NetlinkError, Netns, NodeSide, Socket, device, link, scan};
use plexus_core::attachment::{Alias, MovedMark};
use plexus_core::plan::{Device, Link, ObservedLink};
use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// How long a device is waited for that is nowhere: a namespace that dies gives its devices to the machine's first
/// namespace a moment later.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(3);
const ARRIVAL_POLL: Duration = Duration::from_millis(20);
/// How often it is looked for in all namespaces meanwhile.
const LOOK_EVERYWHERE: Duration = Duration::from_millis(300);

impl Work {
    /// Gives back the device of a planned link, wherever it is.
    pub(super) fn give_back(
        &mut self,
        (link, device): (&Link, &Device),
        pod: Option<&Netns>,
        node: &NodeSide,
    ) -> Result<(), NetlinkError> {
        let is_marked = |seen: &ObservedLink| {
            let moved = seen.alias.as_deref().and_then(MovedMark::of);
            has_owner_of(seen, &link.alias) && moved.is_some_and(|moved| moved.name == device.name)
        };
        if let Some(pod) = pod {
            let mut socket = node.socket_in(pod)?;
            let found = links(&mut socket)?;
            let fitting = found.iter().filter(|seen| device.is(seen, is_marked));
            let fitting: Vec<&ObservedLink> = fitting.collect();
            // A pod can write the mark of its device on a link of its own; a moved link keeps its index, if it can.
            let seen = match fitting.as_slice() {
                [seen] => Some(seen),
                several => several.iter().find(|seen| seen.index == device.index),
            };
            if let Some(seen) = seen {
                self.send_home(&mut socket, &found, (seen, &link.alias), device, node)?;
            } else if !fitting.is_empty() {
                let text = format!(
                    "{} stays in the pod: several links there carry its mark",
                    device.name
                );
                self.removed.warnings.push(text);
            }
        }
        let until = Instant::now() + ARRIVAL_TIMEOUT;
        let mut look_at = Instant::now() + LOOK_EVERYWHERE;
        loop {
            let is_on_node = node.with_socket(|socket| {
                let found = links(socket)?;
                let seen = found.into_iter().find(|seen| device.is(seen, is_marked));
                let is_here = seen.is_some();
                if let Some(seen) = seen.filter(|seen| is_to_restore(seen, link, device)) {
                    self.restore(socket, &seen, device)?;
                }
                Ok::<_, NetlinkError>(is_here)
            })?;
            let hardware = device.hardware.as_ref();
            let Some(hardware) = hardware.filter(|_| !is_on_node) else {
                // Without hardware it went with the pod's namespace.
                return Ok(());
            };
            if self.sysfs.is_gone(hardware) {
                return Ok(());
            }
            if Instant::now() >= look_at {
                if self.is_elsewhere((link, device), node)? {
                    return Ok(());
                }
                look_at = Instant::now() + LOOK_EVERYWHERE;
            }
            if Instant::now() >= until {
                let device = format!("{} ({hardware})", device.name);
                return Err(NetlinkError::Lost { device });
            }
            std::thread::sleep(ARRIVAL_POLL);
        }
    }

    /// Gives back what a mark says was moved; for when there is no plan.
    pub(super) fn give_back_marked(
        &mut self,
        socket: &mut Socket,
        found: &[ObservedLink],
        seen: &ObservedLink,
        node: &NodeSide,
    ) -> Result<(), NetlinkError> {
        let mark = seen.alias.as_deref().unwrap_or_default();
        let Some(moved) = MovedMark::of(mark) else {
            return Ok(());
        };
        if seen.hardware.is_none() {
            // A pod can make such a link and write what it likes on it; the node must not get that.
            let text = format!(
                "{} stays in the pod: nothing but its own mark says that it is the node's",
                seen.name
            );
            self.removed.warnings.push(text);
            return Ok(());
        }
        let device = Device::marked(seen, &moved);
        self.send_home(socket, found, (seen, mark), &device, node)?;
        node.with_socket(|socket| {
            self.restore_marked(socket, |link| link.hardware == device.hardware)
        })
    }

    /// Restores the devices on the node that a mark says were moved.
    pub(super) fn restore_marked(
        &mut self,
        socket: &mut Socket,
        is_it: impl Fn(&ObservedLink) -> bool,
    ) -> Result<(), NetlinkError> {
        let found = links(socket)?;
        for seen in found.iter().filter(|seen| is_it(seen)) {
            let mark = seen.alias.as_deref().unwrap_or_default();
            if let Some(moved) = MovedMark::of(mark) {
                self.restore(socket, seen, &Device::marked(seen, &moved))?;
            }
        }
        Ok(())
    }

    /// Looks for a device through all namespaces, and sends it home if its mark says that it is ours. Whether somebody else
    /// has it by now.
    fn is_elsewhere(
        &mut self,
        (link, device): (&Link, &Device),
        node: &NodeSide,
    ) -> Result<bool, NetlinkError> {
        for namespace in scan::namespaces().found {
            let Ok(mut socket) = node.socket_in(&namespace.netns) else {
                continue;
            };
            let found = links(&mut socket).unwrap_or_default();
            let is_it = |seen: &&ObservedLink| device.is(seen, |_| false);
            if let Some(seen) = found.iter().find(is_it) {
                if !has_owner_of(seen, &link.alias) {
                    return Ok(true);
                }
                self.send_home(&mut socket, &found, (seen, &link.alias), device, node)?;
                break;
            }
        }
        Ok(false)
    }

    /// Moves a device out of a pod, or another namespace, to the node.
    fn send_home(
        &mut self,
        socket: &mut Socket,
        found: &[ObservedLink],
        (seen, mark): (&ObservedLink, &str),
        device: &Device,
        node: &NodeSide,
    ) -> Result<(), NetlinkError> {
        let name = device.name.as_str();
        // A name that is taken on the node would keep the device in the pod.
        let taken = node.with_socket(|socket| {
            let names = seen.altnames.iter().map(String::as_str).chain([name]);
            let mut taken = BTreeSet::new();
            for name in names {
                if link_by_any_name(socket, name)?.is_some() {
                    taken.insert(name.to_owned());
                }
            }
            Ok::<_, NetlinkError>(taken)
        })?;
        // A pod may have taken the mark away, and what follows must be found again if we die in between.
        let mut requests = vec![
            link::set_alias(&seen.name, seen.index, mark),
            device::set_down(seen),
        ];
        let own = |altname: &String| device.altnames.contains(altname) && !taken.contains(altname);
        for altname in seen.altnames.iter().filter(|altname| !own(altname)) {
            requests.push(device::delete_altname(&seen.name, seen.index, altname));
        }
        let is_free_in_pod = |name: &str| {
            let has = |other: &ObservedLink| {
                other.name == name || other.altnames.iter().any(|alt| alt == name)
            };
            let mut found = found.iter();
            !found.any(|other| other.index != seen.index && has(other))
        };
        let home = node.netns().as_fd().as_raw_fd();
        if taken.contains(name) {
            requests.push(device::send(seen, home, device::ANY_NAME));
        } else {
            if seen.name != name && is_free_in_pod(name) {
                requests.push(device::rename(seen, name));
            }
            requests.push(device::send(seen, home, name));
        }
        let refused = socket.batch_all(effect!("netlink.device-home"), &requests)?;
        // The last one is what matters; what failed before it, `restore` tries again.
        let moving = requests.last().map(|request| request.what.as_str());
        let mut refused = refused.into_iter();
        match refused.find(|refused| Some(refused.what.as_str()) == moving) {
            Some(refused) => Err(refused.into()),
            None => Ok(()),
        }
    }

    /// Makes a device on the node what it was. What cannot be restored is told, and does not keep the rest from it.
    fn restore(
        &mut self,
        socket: &mut Socket,
        seen: &ObservedLink,
        device: &Device,
    ) -> Result<(), NetlinkError> {
        let name = device.name.as_str();
        let mut requests = Vec::new();
        let mac = device.mac.filter(|mac| seen.mac != Some(*mac));
        if seen.up && (seen.name != name || mac.is_some()) {
            requests.push(device::set_down(seen));
        }
        for altname in &seen.altnames {
            if !device.altnames.contains(altname) {
                requests.push(device::delete_altname(&seen.name, seen.index, altname));
            }
        }
        if seen.name != name {
            requests.push(device::rename(seen, name));
        }
        requests.extend(mac.map(|mac| device::set_mac(seen, mac)));
        if seen.mtu != device.mtu {
            requests.push(link::set_mtu(name, seen.index, device.mtu));
        }
        for altname in &device.altnames {
            if !seen.altnames.contains(altname) {
                requests.push(device::add_altname(name, seen.index, altname));
            }
        }
        requests.push(device::set_state(seen, device));
        let alias = device.alias.as_deref().unwrap_or_default();
        requests.push(link::set_alias(name, seen.index, alias));
        let refused = socket.batch_all(effect!("netlink.device-restore"), &requests)?;
        self.removed.returned += 1;
        let warnings = refused.iter().map(|one| not_restored(seen, device, one));
        self.removed.warnings.extend(warnings);
        Ok(())
    }
}

/// Whether a device that is on the node is not yet as it was. One without a mark under its own name was never moved, or is
/// back; one with somebody else's mark is theirs.
fn is_to_restore(seen: &ObservedLink, link: &Link, device: &Device) -> bool {
    match seen.alias.as_deref() {
        Some(mark) if Alias::same_owner(mark, &link.alias) => true,
        Some(mark) if MovedMark::of(mark).is_some() => false,
        _ => seen.name != device.name.as_str(),
    }
}

fn not_restored(seen: &ObservedLink, device: &Device, refused: &Refused) -> String {
    let why = std::io::Error::from_raw_os_error(refused.errno);
    format!(
        "{} (now {}) is back on the node, but not as it was: cannot {}: {why}",
        device.name, seen.name, refused.what
    )
}

/// By its name or one of its further names, which may be longer.
fn link_by_any_name(socket: &mut Socket, name: &str) -> Result<Option<ObservedLink>, NetlinkError> {
    if name.len() <= 15 {
        return link_by_name(socket, name);
    }
    let found = links(socket)?;
    Ok(found
        .into_iter()
        .find(|link| link.altnames.iter().any(|other| other == name)))
}
