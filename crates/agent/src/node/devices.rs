//! Devices of the node that pods get: which one a network means, whether it may be taken, and who holds it. No two
//! requests take the same one: a request claims its device before it looks further, and until it is done or undone.

use crate::agent::Agent;
use crate::failure;
use crate::journal::Record;
use crate::sync::lock;
use plexus_api::cni::{Code, DeviceKey, DeviceQuery, Error};
use plexus_core::attach::Attach;
use plexus_core::attachment::{Alias, MovedMark};
use plexus_core::plan::{ALIAS_MARK, Device, HostEnd, Link, ObservedLink, Stacked, facts_query};
use plexus_kernel::{NetlinkError, Socket, Sysfs, observe};
use plexus_types::{ContainerId, NetworkName};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// The devices that requests on their way have claimed, by their index on the node, with the containers.
#[derive(Debug, Default)]
pub(crate) struct Devices(Mutex<BTreeMap<u32, String>>);

/// A device that nobody else takes meanwhile.
#[derive(Debug)]
pub(crate) struct DeviceClaim<'a> {
    devices: &'a Devices,
    index: u32,
}

impl Devices {
    /// Claims one; else who has.
    fn claim(&self, index: u32, container: &str) -> Result<DeviceClaim<'_>, String> {
        let mut claimed = lock(&self.0);
        if let Some(other) = claimed.get(&index) {
            return Err(other.clone());
        }
        claimed.insert(index, container.to_owned());
        let devices = self;
        Ok(DeviceClaim { devices, index })
    }
}

impl Drop for DeviceClaim<'_> {
    fn drop(&mut self) {
        lock(&self.devices.0).remove(&self.index);
    }
}

/// A device of the node, as a network describes it.
struct Described<'q> {
    query: &'q DeviceQuery,
    sysfs: Sysfs,
}

impl Described<'_> {
    /// By the name that it has or had, by its MAC, or by where it is in the machine.
    fn fits(&self, device: &Device) -> bool {
        let is_at = |path: Option<PathBuf>| {
            let both = device.hardware.as_ref().zip(path);
            both.is_some_and(|(it, path)| self.sysfs.is_part(it, &path))
        };
        match &self.query.key {
            Some(DeviceKey::Name(name)) => {
                device.name == *name || device.altnames.iter().any(|other| other == name.as_str())
            }
            Some(DeviceKey::Mac(mac)) => device.mac == Some(*mac),
            Some(DeviceKey::KernelPath(path)) => is_at(self.sysfs.at_path(path)),
            Some(DeviceKey::OnBus(id)) => is_at(self.sysfs.on_bus(id)),
            None => false,
        }
    }
}

impl Agent {
    /// Lets plugins make the attachments whose devices have no link, because a program drives them.
    pub(crate) fn leave_to_plugins(&self, attach: &mut Attach) -> Result<(), Error> {
        let sysfs = Sysfs::default();
        let driven = attach.natives().filter_map(|(index, native)| {
            let id = facts_query(&native.spec.native).device?.on_bus.as_ref()?;
            let driver = sysfs.userspace_driver(&sysfs.on_bus(id)?)?;
            let has_plugin = native.spec.native.provider.plugin().is_some();
            Some((index, id.clone(), driver, has_plugin))
        });
        for (index, id, driver, has_plugin) in driven.collect::<Vec<_>>() {
            if !has_plugin {
                return Err(Error::new(
                    Code::InvalidConfig,
                    format!(
                        "device {id} is driven by {driver}: a program uses it, and there is no link to move"
                    ),
                    "write \"type\" in place of \"provider\", so that the real plugin runs, or bind the device to the driver of its vendor",
                ));
            }
            let device = id;
            tracing::info!(
                device,
                driver,
                "a program drives the device: the plugin is executed"
            );
            let executed = attach.execute_plugin(index);
            executed.map_err(|error| failure::refusal(&error))?;
        }
        Ok(())
    }

    /// The device that a network means, claimed for the container; none if it is not there.
    pub(crate) fn device(
        &self,
        query: &DeviceQuery,
        network: &NetworkName,
        container: &ContainerId,
    ) -> Result<Option<(Device, DeviceClaim<'_>)>, Error> {
        let described = Described {
            query,
            sysfs: Sysfs::default(),
        };
        let claimed =
            |socket: &mut Socket| Ok(self.claimed(socket, &described, network, container.as_str()));
        self.node.with_socket(claimed).map_err(unseen)?
    }

    fn claimed(
        &self,
        socket: &mut Socket,
        described: &Described<'_>,
        network: &NetworkName,
        container: &str,
    ) -> Result<Option<(Device, DeviceClaim<'_>)>, Error> {
        let mut links = observe::links(socket).map_err(unseen)?;
        // What is stacked on a device has its MAC.
        links.sort_by_key(|link| link.hardware.is_none());
        let mut devices = links
            .iter()
            .filter_map(|link| Some((link, Device::of(link)?)));
        let Some((link, device)) = devices.find(|(_, device)| described.fits(device)) else {
            return match self.holder(described)? {
                Some(holder) => Err(held(&query_text(described.query), &holder)),
                None => Ok(None),
            };
        };
        self.check_free(socket, network, (link, &links))?;
        match self.devices.claim(link.index, container) {
            Ok(claim) => Ok(Some((device, claim))),
            Err(other) if other == container => Err(refused(
                network,
                link,
                "is asked for twice by the same request",
                "give each network a device of its own",
            )),
            Err(other) => Err(held(device.name.as_str(), &format!("container {other}"))),
        }
    }

    /// Refuses what the node needs itself, and what is not anybody's to give.
    fn check_free(
        &self,
        socket: &mut Socket,
        network: &NetworkName,
        (link, all): (&ObservedLink, &[ObservedLink]),
    ) -> Result<(), Error> {
        let refused = |why: &str, next: &str| Err(refused(network, link, why, next));
        if let Some(mark) = link.alias.as_deref().filter(|mark| is_ours(mark)) {
            let alias = Alias::parse(mark).filter(|_| MovedMark::of(mark).is_some());
            let Some(Alias { container, .. }) = alias else {
                let next = "name a device that Plexus has not made";
                return refused("is part of a network of Plexus", next);
            };
            let holder = format!("container {container}, which is gone: it is on its way back");
            return Err(held(&link.name, &holder));
        }
        if let Some(master) = link.master {
            let master = all.iter().find(|other| other.index == master);
            let master = master.map_or("another link", |master| master.name.as_str());
            let why = format!("is a port of {master}, and could not be given back as such");
            return refused(&why, "take it out of there first");
        }
        if let Some(carried) = self.carried_by(link, all)? {
            let why = format!("carries {carried}, which would lose it");
            let next = "remove what is on it first, or name another device";
            return refused(&why, next);
        }
        let mut uplink = self.uplink.get(socket).map_err(unseen)?;
        while let Some(above) = uplink {
            if above.index == link.index {
                let why = "has the node's default route: the node would be cut off";
                return refused(why, "name another device");
            }
            let below = above.parent.filter(|_| !above.is_parent_elsewhere());
            uplink = all
                .iter()
                .find(|other| Some(other.index) == below && other.index != above.index)
                .cloned();
        }
        let own = self.node_addresses();
        let addresses = observe::addresses_of(socket, link.index).map_err(unseen)?;
        if let Some(own) = addresses.iter().find(|one| own.contains(&one.net.addr())) {
            let net = own.net;
            let why = format!("has the node's address {net}: the node would be cut off");
            return refused(&why, "name another device");
        }
        Ok(())
    }

    /// What is made on a link, on the node or in a pod: it would go on through the link, in another pod's hands.
    fn carried_by(
        &self,
        link: &ObservedLink,
        all: &[ObservedLink],
    ) -> Result<Option<String>, Error> {
        let is_on_it = |other: &&ObservedLink| {
            let is_peer = other.kind == HostEnd::LINK_KIND;
            other.parent == Some(link.index) && !other.is_parent_elsewhere() && !is_peer
        };
        if let Some(other) = all.iter().find(is_on_it) {
            return Ok(Some(format!("the node's link {}", other.name)));
        }
        let is_its = |one: &Stacked| one.parent.index == link.index;
        let holder = self.pod_with(|link| link.kind.stacked().is_some_and(is_its))?;
        Ok(holder.map(|holder| format!("an interface of {holder}")))
    }

    /// The pod that has the device, by the journal.
    fn holder(&self, described: &Described<'_>) -> Result<Option<String>, Error> {
        let is_its = |device: &Device| described.fits(device);
        self.pod_with(|link| link.kind.moved().is_some_and(is_its))
    }

    /// The pod that has such a link, by the journal.
    fn pod_with(&self, is_it: impl Fn(&Link) -> bool) -> Result<Option<String>, Error> {
        let stored = self.stored()?;
        let mut records = stored.iter().map(|stored| &stored.record);
        let record = records.find(|record| record.boot == self.boot && record.links().any(&is_it));
        Ok(record.map(
            |Record {
                 container, details, ..
             }| match &details.pod {
                Some(pod) => format!("pod {pod} (container {container})"),
                None => format!("container {container}"),
            },
        ))
    }
}

/// Also of bridges and host ends.
fn is_ours(alias: &str) -> bool {
    alias.split(' ').next() == Some(ALIAS_MARK)
}

fn query_text(query: &DeviceQuery) -> String {
    let key = query.key.as_ref();
    key.map_or_else(String::new, ToString::to_string)
}

fn refused(network: &NetworkName, link: &ObservedLink, why: &str, next: &str) -> Error {
    let text = format!("network {network}: device {} {why}", link.name);
    Error::new(Code::InvalidConfig, text, next)
}

fn held(device: &str, holder: &str) -> Error {
    let text = format!("{device} is held by {holder}");
    let next =
        "a device is for one pod at a time: wait until that one is gone, or name another device";
    Error::new(Code::TryAgainLater, text, next)
}

fn unseen(error: NetlinkError) -> Error {
    failure::netlink(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_claimed_by_one_at_a_time() {
        let devices = Devices::default();
        let claim = devices.claim(7, "c1").unwrap();
        assert_eq!(devices.claim(7, "c2").unwrap_err(), "c1");
        let other = devices.claim(8, "c2").unwrap();
        drop(claim);
        drop(devices.claim(7, "c2").unwrap());
        drop(other);
        assert!(lock(&devices.0).is_empty());
    }
}
