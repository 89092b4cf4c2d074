//! Addresses for one ADD: chosen first, written when the journal has them.
//!
//! ```text
//!   choose ──► Reservation ──(journal.begin)──► write ──► kept until release
//!                  └── dropped: as if it had never been
//! ```
//! `plexus` pools are in memory and in the journal; host-local's directory stays locked from
//! choosing to writing, so that nobody takes the address in between. Which address is next is
//! decided in `core`.

mod claims;
pub(crate) mod host_local;
mod resolv;

use crate::failure;
use crate::journal::{AttachmentRecord, NativeRecord, Record, owner_of};
use host_local::{DirectoryError, LastReserved, Locked};
use ipnet::IpNet;
use plexus_api::cni::{Code, Error};
use plexus_cni::delegate::seen_from_here;
use plexus_core::attach::Lease;
use plexus_core::attachment::{Assigned, NativeSpec};
use plexus_core::ipam::host_local::HostLocalError;
use plexus_core::ipam::{
    self, AddressStore, AllocateError, BlockSource, NodeBlocks, PoolKey, Pools, Unreadable,
};
use plexus_types::{ContainerId, IfName, NetworkName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::DerefMut;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Addresses {
    pools: Mutex<Pools>,
    /// In a container: where the host's files are.
    root: Option<PathBuf>,
}

/// Why there are no addresses.
#[derive(Debug)]
pub(crate) enum NotChosen {
    /// Nothing helps; which of the attachments it is, if it is one.
    Refused(Option<usize>, Error),
    /// This node's blocks are full: another one may help.
    NeedsBlock(NeedsBlock),
}

#[derive(Debug)]
pub(crate) struct NeedsBlock {
    pub(crate) number: usize,
    /// The subnets that a block may be from, in order of preference.
    pub(crate) subnets: Vec<IpNet>,
    /// An address that must be in it.
    pub(crate) containing: Option<IpAddr>,
    /// This node's blocks, which were tried.
    pub(crate) have: Vec<IpNet>,
    pub(crate) error: Error,
}

impl From<Error> for NotChosen {
    fn from(error: Error) -> Self {
        NotChosen::Refused(None, error)
    }
}

/// Addresses that were chosen for the attachments of a call. Given back unless it is kept.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    addresses: &'a Addresses,
    container: &'a ContainerId,
    cni_ifname: &'a IfName,
    /// What each attachment got, with its position, in order.
    pub(crate) chosen: Vec<(usize, Assigned, Option<Lease>)>,
    taken: Vec<(PoolKey, String)>,
    locked: BTreeMap<PathBuf, Locked>,
    to_write: Vec<ToWrite>,
    journaled: bool,
}

/// An address of host-local that the journal must have first.
#[derive(Debug)]
struct ToWrite {
    directory: PathBuf,
    address: IpAddr,
    /// Which set of ranges it is from, and what that had handed out last.
    last: (usize, LastReserved),
    ifname: IfName,
}

impl Addresses {
    /// None given out yet. `root` is where the host's files are, for an agent in a container.
    pub(crate) fn new(root: Option<PathBuf>) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    /// host-local's directory of a network, as we see it; of an object of the API, or of a configuration.
    pub(crate) fn directory(
        &self,
        data_dir: &Path,
        network: &NetworkName,
        of_object: bool,
    ) -> PathBuf {
        let data_dir = host_path(self.root.as_deref(), data_dir);
        host_local::directory(&data_dir, network, of_object)
    }

    /// Chooses addresses for all attachments, or for none. `blocks` says which blocks are this node's now.
    pub(crate) fn choose<'a>(
        &'a self,
        specs: &[NativeSpec],
        blocks: &dyn BlockSource,
        container: &'a ContainerId,
        cni_ifname: &'a IfName,
    ) -> Result<Reservation<'a>, NotChosen> {
        let directories = self.directories(specs);
        let mut reservation = Reservation {
            addresses: self,
            container,
            cni_ifname,
            chosen: Vec::with_capacity(specs.len()),
            taken: Vec::new(),
            locked: lock_directories(&directories)?,
            to_write: Vec::new(),
            journaled: false,
        };
        for (number, (one, directory)) in specs.iter().zip(directories).enumerate() {
            let at = |error| {
                let place = format!("network {}, interface {}", one.network, one.ifname);
                failure::at(place, error)
            };
            let chosen = reservation.choose_one(one, directory, blocks);
            chosen.map_err(|why| match why {
                NotChosen::Refused(_, error) => NotChosen::Refused(Some(number), at(error)),
                NotChosen::NeedsBlock(needs) => NotChosen::NeedsBlock(NeedsBlock {
                    number,
                    error: at(needs.error),
                    ..needs
                }),
            })?;
        }
        Ok(reservation)
    }

    /// host-local's directory of each attachment that has one. Where the host's are, is found out once a call.
    fn directories(&self, specs: &[NativeSpec]) -> Vec<Option<PathBuf>> {
        let mut seen: BTreeMap<&Path, PathBuf> = BTreeMap::new();
        let each = specs.iter().map(|one| {
            let data_dir = &one.native.host_local()?.data_dir;
            let data_dir = seen.entry(data_dir);
            let data_dir = data_dir.or_insert_with_key(|dir| host_path(self.root.as_deref(), dir));
            Some(host_local::directory(data_dir, &one.network, one.of_object))
        });
        each.collect()
    }

    /// What the journal says is taken, at start.
    pub(crate) fn replay(&self, pool: &str, address: IpAddr, owner: &str) -> Result<(), Error> {
        let key = pool_from_text(pool).ok_or_else(|| {
            Error::new(
                Code::Io,
                format!("the journal names a pool {pool:?} that cannot be read"),
                "",
            )
        })?;
        let reserved = self.pools().reserve(&key, address, owner);
        reserved.map_err(|error| failure::refusal(&error))
    }

    /// Frees what an attachment holds in host-local's directories.
    pub(crate) fn release(
        &self,
        native: &NativeRecord,
        container: &ContainerId,
    ) -> Result<(), Error> {
        let released = native.host_local().map_or(Ok(()), |(directory, ifname)| {
            let Some(locked) = Locked::open_existing(directory)? else {
                return Ok(());
            };
            let addresses: Vec<IpAddr> = native.ips().collect();
            locked.release(&addresses, container, ifname)
        });
        released.map_err(|error| {
            let code = match error {
                DirectoryError::Busy { .. } => Code::TryAgainLater,
                _ => Code::Io,
            };
            let text = failure::chain(&error);
            Error::new(code, text, "repeat the DEL when the directory is usable")
        })
    }

    /// Frees what an attachment holds in the pools in memory: after the journal has forgotten it.
    pub(crate) fn forget(&self, record: &Record, attachment: &AttachmentRecord) {
        if let Some(pool) = attachment.native().and_then(NativeRecord::pool) {
            let owner = owner_of(&record.container, &record.ifname, &attachment.ifname);
            self.release_owner(pool, &owner);
        }
    }

    /// Frees what one owner holds in a pool in memory.
    pub(crate) fn release_owner(&self, pool: &str, owner: &str) {
        if let Some(key) = pool_from_text(pool) {
            self.pools().release(&key, owner);
        }
    }

    /// Frees what a call without a record holds in the pools in memory: it was reserved by the marks of links alone.
    pub(crate) fn release_unrecorded(&self, container: &ContainerId, cni_ifname: &IfName) {
        let owners = format!("{container}/{cni_ifname}/");
        let mut pools = self.pools();
        let held = pools.held();
        let held = held.filter(|(_, _, owner)| owner.starts_with(&owners));
        let held: Vec<_> = held
            .map(|(key, _, owner)| (key.clone(), owner.to_owned()))
            .collect();
        for (key, owner) in held {
            pools.release(&key, &owner);
        }
    }

    /// How many addresses each pool has given out, and how many it has.
    pub(crate) fn usage(&self) -> Vec<(String, String, u128, u128)> {
        let pools = self.pools();
        let all = pools.pools().map(|(key, pool)| {
            let (network, subnet) = (key.name().to_string(), pool.subnet().to_string());
            (network, subnet, pool.used(), pool.capacity())
        });
        all.collect()
    }

    /// Nothing more is said of networks that are gone, once nobody here has an address of them. `there` are
    /// the identities of all that are not.
    pub(crate) fn forget_all_but(&self, there: &BTreeSet<String>) {
        let is_gone = |key: &PoolKey| key.network_uid().is_some_and(|uid| !there.contains(uid));
        self.pools().forget(is_gone);
    }

    /// The addresses of each network's blocks that are in use, by the network's identity.
    pub(crate) fn held_of_blocks(&self) -> BTreeMap<String, Vec<IpAddr>> {
        let mut held: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
        for (key, address, _) in self.pools().held() {
            if let Some(uid) = key.network_uid() {
                held.entry(uid.to_owned()).or_default().push(address);
            }
        }
        held
    }

    /// The pools in memory: of `plexus` ranges and of this node's blocks.
    pub(crate) fn pools(&self) -> MutexGuard<'_, Pools> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation<'_> {
    /// Writes host-local's files and unlocks its directories: after the journal has the addresses.
    pub(crate) fn write(&mut self) -> Result<(), Error> {
        self.journaled = true;
        for one in std::mem::take(&mut self.to_write) {
            if let Some(locked) = self.locked.get(&one.directory) {
                locked
                    .reserve(one.address, one.last, self.container, &one.ifname)
                    .map_err(|error| unusable(&error))?;
            }
        }
        self.locked.clear();
        Ok(())
    }

    /// `directory` is host-local's, if the addresses are from there.
    fn choose_one(
        &mut self,
        spec: &NativeSpec,
        directory: Option<PathBuf>,
        blocks: &dyn BlockSource,
    ) -> Result<(), NotChosen> {
        let owner = owner_of(self.container, self.cni_ifname, &spec.ifname);
        let (addresses, locked) = (self.addresses, &self.locked);
        let mut store = NodeStore {
            addresses,
            blocks,
            all: locked,
            directory: directory
                .as_ref()
                .and_then(|path| Some((path, locked.get(path)?))),
            ifname: &spec.ifname,
            last: LastReserved::default(),
            to_write: &mut self.to_write,
        };
        let mut assigned = ipam::choose(spec, &owner, &mut store).map_err(not_chosen)?;
        let host_local = spec.native.host_local();
        if let Some(path) = host_local.and_then(|section| section.resolv_conf.as_ref()) {
            assigned.dns = resolv::read(&host_path(addresses.root.as_deref(), path))?;
        }
        let lease = match (directory, PoolKey::of_spec(spec)) {
            (Some(directory), _) => Some(Lease::HostLocal {
                directory,
                ifname: spec.ifname.clone(),
            }),
            (None, Some(pool)) => {
                let text = pool.to_string();
                self.taken.push((pool, owner));
                Some(Lease::Pool(text))
            }
            (None, None) => None,
        };
        self.chosen.push((self.chosen.len(), assigned, lease));
        Ok(())
    }
}

/// Where this node notes which addresses are taken, for one attachment.
struct NodeStore<'a> {
    addresses: &'a Addresses,
    blocks: &'a dyn BlockSource,
    /// All directories that this call has locked.
    all: &'a BTreeMap<PathBuf, Locked>,
    /// host-local's of this network.
    directory: Option<(&'a PathBuf, &'a Locked)>,
    ifname: &'a IfName,
    last: LastReserved,
    to_write: &'a mut Vec<ToWrite>,
}

impl AddressStore for NodeStore<'_> {
    fn pools(&mut self) -> Box<dyn DerefMut<Target = Pools> + '_> {
        Box::new(self.addresses.pools())
    }

    fn blocks(&self, network_uid: &str) -> NodeBlocks {
        self.blocks.blocks(network_uid)
    }

    fn last_reserved(&mut self, set: usize) -> Option<IpAddr> {
        self.last = self.directory?.1.last_reserved(set);
        self.last.address
    }

    /// Neither taken nor promised to another attachment of the same call.
    fn is_free(&self, address: IpAddr) -> Result<bool, Unreadable> {
        let Some((_, locked)) = self.directory else {
            return Ok(false);
        };
        let promised = self.to_write.iter().any(|one| {
            let other = self.all.get(&one.directory);
            one.address == address && other.is_some_and(|other| other.is_also(locked))
        });
        let unreadable = |error| Unreadable(failure::chain(&error));
        Ok(!promised && locked.is_free(address).map_err(unreadable)?)
    }

    fn reserve(&mut self, set: usize, address: IpAddr) {
        if let Some((directory, _)) = self.directory {
            self.to_write.push(ToWrite {
                directory: directory.clone(),
                address,
                last: (set, std::mem::take(&mut self.last)),
                ifname: self.ifname.clone(),
            });
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.journaled {
            let mut pools = self.addresses.pools();
            for (key, owner) in &self.taken {
                pools.release(key, owner);
            }
        }
    }
}

fn lock_directories(directories: &[Option<PathBuf>]) -> Result<BTreeMap<PathBuf, Locked>, Error> {
    let directories = directories.iter().flatten().cloned().collect();
    host_local::lock_all(directories).map_err(|error| unusable(&error))
}

const DIRECTORY: &str = "check that the ipam's dataDir is on a writable disk with free space";

/// A path of the host as we see it; what is not there yet is made where it would be on the host.
fn host_path(root: Option<&Path>, path: &Path) -> PathBuf {
    let Some(root) = root else {
        return path.to_owned();
    };
    let mut above = path.ancestors();
    let there = above.find_map(|dir| Some((dir, seen_from_here(Some(root), dir).ok()?)));
    match there.and_then(|(dir, seen)| Some(seen.join(path.strip_prefix(dir).ok()?))) {
        Some(seen) => seen,
        None => root.join(path.strip_prefix("/").unwrap_or(path)),
    }
}

fn not_chosen(error: AllocateError) -> NotChosen {
    let refusal = failure::refusal(&error);
    match error {
        AllocateError::NeedsBlock {
            subnets,
            containing,
            have,
            ..
        } => NotChosen::NeedsBlock(NeedsBlock {
            number: 0,
            subnets,
            containing,
            have,
            error: refusal,
        }),
        AllocateError::HostLocal(HostLocalError::Reserve { .. }) => Error {
            code: Code::Io,
            ..refusal
        }
        .into(),
        _ => refusal.into(),
    }
}

fn unusable(error: &DirectoryError) -> Error {
    if matches!(error, DirectoryError::Busy { .. }) {
        return Error::new(
            Code::TryAgainLater,
            failure::chain(error),
            "try again later; if it lasts, end the plugin that holds the lock (`fuser -v` names it)",
        );
    }
    failure::failed(error, DIRECTORY)
}

/// A pool as the journal writes it: `<type>:<data dir> <network>`.
fn pool_from_text(text: &str) -> Option<PoolKey> {
    let (word, network) = text.rsplit_once(' ')?;
    PoolKey::from_word(word, &network.parse().ok()?)
}

#[cfg(test)]
mod tests;
