//! Devices of the node that pods get: which one a network means, whether it may be taken, and who holds it. No two
//! requests take the same one: a request claims its device before it looks further, and until it is done or undone.

use crate::agent::Agent;
use crate::failure;
use crate::journal::Record;
use plexus_api::cni::{Code, DeviceKey, DeviceQuery, Error};
use plexus_core::attach::Attach;
use plexus_core::attachment::{Alias, MovedMark};
use plexus_core::plan::{ALIAS_MARK, Device, HostEnd, ObservedLink, facts_query};
use plexus_kernel::{NetlinkError, Socket, Sysfs, observe};
use plexus_types::{ContainerId, NetworkName};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        match self.lock().entry(index) {
            std::collections::btree_map::Entry::Occupied(taken) => Err(taken.get().clone()),
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(container.to_owned());
                Ok(DeviceClaim {
                    devices: self,
                    index,
                })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DeviceClaim<'_> {
    fn drop(&mut self) {
        self.devices.lock().remove(&self.index);
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
        let is_at = |path: Option<std::path::PathBuf>| {
            let hardware = device.hardware.as_ref();
            hardware
                .zip(path)
                .is_some_and(|(it, path)| self.sysfs.is_part(it, &path))
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
            tracing::info!(
                device = id,
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
        let found = self.node.with_socket(|socket| {
            Ok(self.claimed(socket, &described, network, container.as_str()))
        });
        found.map_err(unseen)?
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
        let fitting = links
            .iter()
            .filter_map(|link| Some((link, Device::of(link)?)));
        let found = fitting
            .into_iter()
            .find(|(_, device)| described.fits(device));
        let Some((link, device)) = found else {
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
        if let Some(mark) = link.alias.as_deref().filter(|mark| is_ours(mark)) {
            let alias = Alias::parse(mark).filter(|_| MovedMark::of(mark).is_some());
            let Some(alias) = alias else {
                let next = "name a device that Plexus has not made";
                return Err(refused(
                    network,
                    link,
                    "is part of a network of Plexus",
                    next,
                ));
            };
            let holder = format!(
                "container {}, which is gone: it is on its way back",
                alias.container
            );
            return Err(held(&link.name, &holder));
        }
        if let Some(master) = link.master {
            let master = all.iter().find(|other| other.index == master);
            let master = master.map_or("another link", |master| master.name.as_str());
            let why = format!("is a port of {master}, and could not be given back as such");
            return Err(refused(network, link, &why, "take it out of there first"));
        }
        if let Some(carried) = self.carried_by(link, all)? {
            let why = format!("carries {carried}, which would lose it");
            return Err(refused(
                network,
                link,
                &why,
                "remove what is on it first, or name another device",
            ));
        }
        let mut uplink = self.uplink.get(socket).map_err(unseen)?;
        while let Some(above) = uplink {
            if above.index == link.index {
                let why = "has the node's default route: the node would be cut off";
                return Err(refused(network, link, why, "name another device"));
            }
            let below = above.parent.filter(|_| !above.parent_elsewhere);
            uplink = all
                .iter()
                .find(|other| Some(other.index) == below && other.index != above.index)
                .cloned();
        }
        let own = self.node_addresses();
        let addresses = observe::addresses_of(socket, link.index).map_err(unseen)?;
        if let Some(own) = addresses.iter().find(|one| own.contains(&one.net.addr())) {
            let why = format!(
                "has the node's address {}: the node would be cut off",
                own.net
            );
            return Err(refused(network, link, &why, "name another device"));
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
            other.parent == Some(link.index) && !other.parent_elsewhere && !is_peer
        };
        if let Some(other) = all.iter().find(is_on_it) {
            return Ok(Some(format!("the node's link {}", other.name)));
        }
        let stored = self.journal()?.all().map_err(|e| failure::journal(&e))?;
        let mut records = stored.iter().map(|stored| &stored.record);
        let record = records.find(|record| {
            let mut stacked = record.links().filter_map(|link| link.kind.stacked());
            record.boot == self.boot && stacked.any(|one| one.parent.index == link.index)
        });
        Ok(record.map(|record| format!("an interface of {}", holder_text(record))))
    }

    /// The pod that has the device, by the journal.
    fn holder(&self, described: &Described<'_>) -> Result<Option<String>, Error> {
        let stored = self.journal()?.all().map_err(|e| failure::journal(&e))?;
        let mut records = stored.iter().map(|stored| &stored.record);
        let record = records.find(|record| {
            let mut devices = record.links().filter_map(|link| link.kind.moved());
            record.boot == self.boot && devices.any(|device| described.fits(device))
        });
        Ok(record.map(holder_text))
    }
}

fn holder_text(record: &Record) -> String {
    match &record.details.pod {
        Some(pod) => format!("pod {pod} (container {})", record.container),
        None => format!("container {}", record.container),
    }
}

/// Also of bridges and host ends.
fn is_ours(alias: &str) -> bool {
    alias.split(' ').next() == Some(ALIAS_MARK)
}

fn query_text(query: &DeviceQuery) -> String {
    query
        .key
        .as_ref()
        .map_or_else(String::new, ToString::to_string)
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
    failure::failed(
        &error,
        "is the agent allowed to use netlink (CAP_NET_ADMIN)?",
    )
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
        assert!(devices.lock().is_empty());
    }
}
