//! host-local's own directory, kept exactly as the reference plugin keeps it: a `lock` that is
//! flocked, one file per address, `last_reserved_ip.<set>`. The native and the executed plugin can
//! share a range, and one can be swapped for the other at any time.
//!
//! Which address is next is decided in `core`; here are the files. A lock is waited for, never for
//! ever: whoever holds it may hang. Threads of this process queue for a directory among themselves ([`thread_lock`]):
//! only one of them asks for the lock, which cannot wake those who wait for it within a time limit.

mod thread_lock;

use plexus_faults::effect;
use plexus_types::{ContainerId, IfName, NetworkName};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use thread_lock::ThreadLock;

/// How long a call waits for locks that others hold. A plugin has one for some milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    /// A file operation failed.
    #[error("host-local: cannot {what} {path}")]
    Failed {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Somebody else has the lock and keeps it.
    #[error("host-local: {path} has been locked by another process for {} s", waited.as_secs())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long we waited.
        waited: Duration,
    },
}

impl DirectoryError {
    fn is_missing(&self) -> bool {
        matches!(self, DirectoryError::Failed { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

/// A network's directory, locked against every other plugin that uses it.
#[derive(Debug)]
pub(crate) struct Locked {
    path: PathBuf,
    lock: Arc<LockFile>,
}

/// An open `lock`. Who opens one file twice and locks both waits for himself.
#[derive(Debug)]
struct LockFile {
    // Closed before the thread lock is free: whoever is next finds it unlocked.
    file: File,
    path: PathBuf,
    identity: Identity,
    thread_lock: OnceLock<ThreadLock>,
}

/// Device and inode.
type Identity = (u64, u64);

/// Where a network's addresses are.
pub(crate) fn directory(data_dir: &Path, network: &NetworkName) -> PathBuf {
    data_dir.join(network.as_str())
}

/// Makes the directories if need be and waits for their locks, each once, whatever names it has,
/// and in the order of their identities: the same for everyone.
pub(crate) fn lock_all(
    directories: BTreeSet<PathBuf>,
) -> Result<BTreeMap<PathBuf, Locked>, DirectoryError> {
    let mut locks: BTreeMap<Identity, Arc<LockFile>> = BTreeMap::new();
    let mut locked = BTreeMap::new();
    for path in directories {
        let file = match LockFile::open(&path) {
            Err(error) if error.is_missing() => {
                effect("file.directory<");
                let made = DirBuilder::new().recursive(true).mode(0o755).create(&path);
                effect("file.directory>");
                made.map_err(failed("create the directory", &path))?;
                LockFile::open(&path)
            }
            opened => opened,
        }?;
        let lock = locks.entry(file.identity);
        let lock = Arc::clone(lock.or_insert_with(|| Arc::new(file)));
        locked.insert(path.clone(), Locked { path, lock });
    }
    let until = Instant::now() + LOCK_TIMEOUT;
    for lock in locks.values() {
        lock.wait(until)?;
    }
    Ok(locked)
}

impl LockFile {
    fn open(directory: &Path) -> Result<Self, DirectoryError> {
        let path = directory.join("lock");
        let file = OpenOptions::new()
            .read(true)
            .create(true)
            .append(true)
            .mode(0o750)
            .open(&path)
            .map_err(failed("open", &path))?;
        let metadata = file.metadata().map_err(failed("look at", &path))?;
        Ok(Self {
            file,
            path,
            identity: (metadata.dev(), metadata.ino()),
            thread_lock: OnceLock::new(),
        })
    }

    /// Waits for our other threads, then asks again and again: flock knows no time limit.
    fn wait(&self, until: Instant) -> Result<(), DirectoryError> {
        let busy = || DirectoryError::Busy {
            path: self.path.clone(),
            waited: LOCK_TIMEOUT,
        };
        let thread_lock = ThreadLock::take(self.identity, until).ok_or_else(busy)?;
        let mut pause = Duration::from_micros(100);
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {}
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(busy()),
                Err(errno) => return Err(failed("lock", &self.path)(errno.into())),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        // It is waited for once.
        let _ = self.thread_lock.set(thread_lock);
        Ok(())
    }
}

impl Locked {
    /// Waits for the lock of a directory that exists; none if it does not.
    pub(crate) fn open_existing(path: &Path) -> Result<Option<Self>, DirectoryError> {
        match path.try_exists() {
            Ok(false) => Ok(None),
            _ => {
                let lock = LockFile::open(path)?;
                lock.wait(Instant::now() + LOCK_TIMEOUT)?;
                Ok(Some(Self {
                    path: path.to_owned(),
                    lock: Arc::new(lock),
                }))
            }
        }
    }

    /// Whether it is the same directory by another name.
    pub(crate) fn is_also(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.lock, &other.lock)
    }

    /// Whether no one has the address.
    pub(crate) fn is_free(&self, address: IpAddr) -> Result<bool, DirectoryError> {
        let name = self.path.join(address.to_string());
        name.try_exists()
            .map(|exists| !exists)
            .map_err(failed("look at", &name))
    }

    /// The address that was handed out last from a set of ranges.
    pub(crate) fn last_reserved(&self, set: usize) -> Option<IpAddr> {
        read_small(&self.path.join(format!("last_reserved_ip.{set}")))?
            .trim()
            .parse()
            .ok()
    }

    /// Takes an address.
    pub(crate) fn reserve(
        &self,
        address: IpAddr,
        set: usize,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), DirectoryError> {
        let name = self.path.join(address.to_string());
        effect("file.reserve<");
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&name)
            .and_then(|mut file| file.write_all(content(container, ifname).as_bytes()));
        effect("file.reserve>");
        written.map_err(failed("write", &name))?;
        let name = self.path.join(format!("last_reserved_ip.{set}"));
        effect("file.last<");
        let written = overwrite(&name, address.to_string().as_bytes());
        effect("file.last>");
        written.map_err(failed("write", &name))
    }

    /// Frees these addresses, those of them that are the attachment's.
    pub(crate) fn release(
        &self,
        addresses: &[IpAddr],
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), DirectoryError> {
        for address in addresses {
            let name = self.path.join(address.to_string());
            if read_small(&name).is_some_and(|text| is_of(&text, container, ifname)) {
                remove(&name)?;
            }
        }
        Ok(())
    }

    /// Frees whatever the attachment has here: what is done when no record says which addresses.
    pub(crate) fn release_all(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), DirectoryError> {
        let entries = std::fs::read_dir(&self.path).map_err(failed("list", &self.path))?;
        for entry in entries {
            let name = entry.map_err(failed("list", &self.path))?.path();
            let is_address = name
                .file_name()
                .and_then(|n| n.to_str())
                .is_some_and(|n| n.parse::<IpAddr>().is_ok());
            if is_address && read_small(&name).is_some_and(|text| is_of(&text, container, ifname)) {
                remove(&name)?;
            }
        }
        Ok(())
    }
}

/// What became of a directory that nobody here needs any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    /// It was not there.
    Nothing,
    /// It is gone.
    All,
    /// Somebody has addresses or other files in it.
    InUse,
}

/// Removes a network's directory with its lock and its last addresses, unless something else is in it.
pub(crate) fn remove_unused(directory: &Path) -> Result<Removed, DirectoryError> {
    let Some(locked) = Locked::open_existing(directory)? else {
        return Ok(Removed::Nothing);
    };
    let entries = std::fs::read_dir(directory).map_err(failed("list", directory))?;
    let mut ours = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", directory))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name != "lock" && !name.starts_with("last_reserved_ip.") {
            return Ok(Removed::InUse);
        }
        ours.push(entry.path());
    }
    for file in ours {
        remove(&file)?;
    }
    let removed = std::fs::remove_dir(directory);
    drop(locked);
    match removed {
        Ok(()) => Ok(Removed::All),
        // Somebody was faster.
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(Removed::InUse),
        Err(error) => Err(failed("remove", directory)(error)),
    }
}

/// Whether the attachment has the address. Takes no lock: it changes nothing, and whoever holds
/// the lock says nothing about this file.
pub(crate) fn has(
    directory: &Path,
    address: IpAddr,
    container: &ContainerId,
    ifname: &IfName,
) -> bool {
    let text = read_small(&directory.join(address.to_string()));
    text.is_some_and(|text| is_of(&text, container, ifname))
}

/// Without truncating first: file systems flush a file that was emptied and written again, which
/// takes longer than everything else together. Readers hold the lock.
fn overwrite(name: &Path, text: &[u8]) -> std::io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(name)?;
    file.write_all_at(text, 0)?;
    let length = text.len() as u64;
    if file.metadata()?.len() != length {
        file.set_len(length)?;
    }
    Ok(())
}

/// An interrupted reservation leaves an empty file; its name was journaled, so the replay's
/// release must know it as ours.
fn is_of(text: &str, container: &ContainerId, ifname: &IfName) -> bool {
    let text = text.trim();
    text.is_empty() || text == content(container, ifname) || text == container.as_str()
}

fn content(container: &ContainerId, ifname: &IfName) -> String {
    format!("{container}\r\n{ifname}")
}

fn remove(name: &Path) -> Result<(), DirectoryError> {
    effect("file.release<");
    let removed = std::fs::remove_file(name);
    effect("file.release>");
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", name)(error)),
        _ => Ok(()),
    }
}

/// What every file here has fits one read.
fn read_small(name: &Path) -> Option<String> {
    let mut text = [0; 1024];
    let length = File::open(name).ok()?.read(&mut text).ok()?;
    String::from_utf8(text.get(..length)?.to_vec()).ok()
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Failed { what, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> (PathBuf, ContainerId, IfName) {
        let path = std::env::temp_dir().join(format!("plexus-hl-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        (path, "c1".parse().unwrap(), "net1".parse().unwrap())
    }

    fn open(path: &Path) -> Locked {
        let mut locked = lock_all([path.to_owned()].into()).unwrap();
        locked.remove(path).unwrap()
    }

    #[test]
    fn files_are_those_of_the_reference_plugin() {
        let (path, container, ifname) = fixture("files");
        let locked = open(&path);
        let address = "fd00:1::2".parse().unwrap();
        assert!(locked.is_free(address).unwrap());
        locked.reserve(address, 1, &container, &ifname).unwrap();
        assert_eq!(
            std::fs::read(path.join("fd00:1::2")).unwrap(),
            b"c1\r\nnet1"
        );
        assert_eq!(
            std::fs::read(path.join("last_reserved_ip.1")).unwrap(),
            b"fd00:1::2"
        );
        assert_eq!(locked.last_reserved(1), Some(address));
        assert!(!locked.is_free(address).unwrap());
        assert!(locked.reserve(address, 1, &container, &ifname).is_err());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn release_leaves_others_alone() {
        let (path, container, ifname) = fixture("release");
        let locked = open(&path);
        let (mine, other): (IpAddr, IpAddr) =
            ("10.0.0.2".parse().unwrap(), "10.0.0.3".parse().unwrap());
        locked.reserve(mine, 0, &container, &ifname).unwrap();
        locked
            .reserve(other, 0, &container, &"net2".parse().unwrap())
            .unwrap();
        locked.release(&[mine, other], &container, &ifname).unwrap();
        assert!(locked.is_free(mine).unwrap() && !locked.is_free(other).unwrap());
        locked
            .release_all(&container, &"net2".parse().unwrap())
            .unwrap();
        assert!(locked.is_free(other).unwrap());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_directory_goes_when_nobody_has_an_address_in_it() {
        let (path, container, ifname) = fixture("unused");
        assert_eq!(remove_unused(&path).unwrap(), Removed::Nothing);
        let locked = open(&path);
        let address = "10.0.0.2".parse().unwrap();
        locked.reserve(address, 0, &container, &ifname).unwrap();
        drop(locked);
        assert_eq!(remove_unused(&path).unwrap(), Removed::InUse);
        assert!(
            path.join("last_reserved_ip.0").exists(),
            "all of it or nothing"
        );
        open(&path)
            .release(&[address], &container, &ifname)
            .unwrap();
        assert_eq!(remove_unused(&path).unwrap(), Removed::All);
        assert!(!path.exists());
    }

    #[test]
    fn an_absent_directory_has_nothing_to_release() {
        let (path, ..) = fixture("absent");
        assert!(Locked::open_existing(&path).unwrap().is_none());
        assert!(!path.exists());
    }

    #[test]
    fn a_lock_that_somebody_keeps_is_not_waited_for_in_vain() {
        let (path, ..) = fixture("kept");
        let waits_in_vain = || {
            let lock = LockFile::open(&path).unwrap();
            let waited = lock.wait(Instant::now() + Duration::from_millis(50));
            matches!(waited, Err(DirectoryError::Busy { .. }))
        };
        drop(open(&path));
        let plugin = File::open(path.join("lock")).unwrap();
        flock(&plugin, FlockOperation::LockExclusive).unwrap();
        assert!(waits_in_vain());
        drop(plugin);
        let held = open(&path);
        assert!(waits_in_vain());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Locked::open_existing(&path).unwrap().is_some());
            std::thread::sleep(Duration::from_millis(50));
            assert!(!waiting.is_finished());
            drop(held);
            assert!(waiting.join().unwrap());
        });
        std::fs::remove_dir_all(path).unwrap();
    }
}
