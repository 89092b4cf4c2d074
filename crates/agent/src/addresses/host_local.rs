//! host-local's own directory, kept exactly as the reference plugin keeps it: a `lock` that is
//! flocked, one file per address, `last_reserved_ip.<set>`. The native and the executed plugin can
//! share a range, and one can be swapped for the other at any time.
//!
//! Which address is next is decided in `core`; here are the files. A lock is waited for, never for
//! ever: whoever holds it may hang. Threads of this process queue for a directory among themselves ([`thread_lock`]):
//! only one of them asks for the lock, which cannot wake those who wait for it within a time limit.

mod folder;
mod thread_lock;

use folder::{Folder, read_small};
use plexus_faults::effect;
use plexus_types::{ContainerId, IfName, NetworkName};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use thread_lock::ThreadLock;

/// How long a call waits for locks that others hold. A plugin has one for some milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DirectoryError {
    #[error("host-local: cannot {what} {path}")]
    Failed {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Somebody else has the lock and keeps it.
    #[error("host-local: {path} has been locked by another process for {} s", waited.as_secs())]
    Busy { path: PathBuf, waited: Duration },
}

impl DirectoryError {
    fn is_missing(&self) -> bool {
        matches!(self, DirectoryError::Failed { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

/// A network's directory, locked against every other plugin that uses it.
#[derive(Debug)]
pub(crate) struct Locked {
    lock: Arc<LockFile>,
}

/// The address that was handed out last from a set of ranges, and the file that says so, if there is one.
#[derive(Debug, Default)]
pub(crate) struct LastReserved {
    /// The address.
    pub(crate) address: Option<IpAddr>,
    file: Option<File>,
}

/// An open `lock`. Who opens one file twice and locks both waits for himself.
#[derive(Debug)]
struct LockFile {
    // Closed before the thread lock is free: whoever is next finds it unlocked.
    file: File,
    folder: Folder,
    identity: Identity,
    thread_lock: OnceLock<ThreadLock>,
}

type Identity = (u64, u64);

/// Where a network's files are. An object's directory has a name that no configuration has: the real plugin uses those too.
pub(crate) fn directory(data_dir: &Path, network: &NetworkName, of_object: bool) -> PathBuf {
    match of_object {
        true => data_dir.join(format!("@{network}")),
        false => data_dir.join(network.as_str()),
    }
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
        locked.insert(path, Locked { lock });
    }
    let until = Instant::now() + LOCK_TIMEOUT;
    for lock in locks.values() {
        lock.wait(until)?;
    }
    Ok(locked)
}

impl LockFile {
    fn open(directory: &Path) -> Result<Self, DirectoryError> {
        let folder = Folder::open(directory)?;
        let path = folder.path_of("lock");
        let how = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let file = folder.file("lock", how, 0o750);
        let (file, metadata) = file.map_err(failed("open", &path))?;
        Ok(Self {
            file,
            folder,
            identity: (metadata.dev(), metadata.ino()),
            thread_lock: OnceLock::new(),
        })
    }

    /// Waits for our other threads, then asks again and again: flock knows no time limit.
    fn wait(&self, until: Instant) -> Result<(), DirectoryError> {
        let busy = || DirectoryError::Busy {
            path: self.folder.path_of("lock"),
            waited: LOCK_TIMEOUT,
        };
        let thread_lock = ThreadLock::take(self.identity, until).ok_or_else(busy)?;
        let mut pause = Duration::from_micros(100);
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {}
                Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(busy()),
                Err(errno) => {
                    return Err(failed("lock", &self.folder.path_of("lock"))(errno.into()));
                }
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
        let lock = match LockFile::open(path) {
            Err(error) if error.is_missing() => return Ok(None),
            opened => Arc::new(opened?),
        };
        lock.wait(Instant::now() + LOCK_TIMEOUT)?;
        Ok(Some(Self { lock }))
    }

    /// Whether it is the same directory by another name.
    pub(crate) fn is_also(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.lock, &other.lock)
    }

    pub(crate) fn is_free(&self, address: IpAddr) -> Result<bool, DirectoryError> {
        let (folder, name) = (self.folder(), address.to_string());
        let taken = folder.has(&name);
        Ok(!taken.map_err(failed("look at", &folder.path_of(&name)))?)
    }

    /// The address that was handed out last from a set of ranges.
    pub(crate) fn last_reserved(&self, set: usize) -> LastReserved {
        let opened = self
            .folder()
            .file(&last_reserved_name(set), OFlags::RDWR, 0);
        let Ok((file, _)) = opened else {
            return LastReserved::default();
        };
        let text = read_small(&file);
        LastReserved {
            address: text.and_then(|text| text.trim().parse().ok()),
            file: Some(file),
        }
    }

    /// Takes an address. `last` is what the set's ranges had until now.
    pub(crate) fn reserve(
        &self,
        address: IpAddr,
        (set, last): (usize, LastReserved),
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), DirectoryError> {
        let (folder, name) = (self.folder(), address.to_string());
        effect("file.reserve<");
        let written = folder
            .new_file(&name, 0o600)
            .and_then(|mut file| file.write_all(content(container, ifname).as_bytes()));
        effect("file.reserve>");
        written.map_err(failed("write", &folder.path_of(&name)))?;
        let last_name = last_reserved_name(set);
        effect("file.last<");
        let written = overwrite(folder, &last_name, last, name.as_bytes());
        effect("file.last>");
        written.map_err(failed("write", &folder.path_of(&last_name)))
    }

    /// Frees these addresses, those of them that are the attachment's.
    pub(crate) fn release(
        &self,
        addresses: &[IpAddr],
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), DirectoryError> {
        for address in addresses {
            self.release_name(&address.to_string(), container, ifname)?;
        }
        Ok(())
    }

    /// Frees whatever the attachment has here: what is done when no record says which addresses.
    pub(crate) fn release_all(
        &self,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), DirectoryError> {
        for name in self.folder().names()? {
            if name.parse::<IpAddr>().is_ok() {
                self.release_name(&name, container, ifname)?;
            }
        }
        Ok(())
    }

    fn release_name(
        &self,
        name: &str,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), DirectoryError> {
        let text = self.folder().read_small(name);
        match text.is_some_and(|text| is_of(&text, container, ifname)) {
            true => self.folder().remove(name),
            false => Ok(()),
        }
    }

    fn folder(&self) -> &Folder {
        &self.lock.folder
    }
}

/// What became of a directory that nobody here needs any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    Nothing,
    All,
    /// Somebody has addresses or other files in it.
    InUse,
}

/// Removes a network's directory with its lock and its last addresses, unless something else is in it.
pub(crate) fn remove_unused(directory: &Path) -> Result<Removed, DirectoryError> {
    let Some(locked) = Locked::open_existing(directory)? else {
        return Ok(Removed::Nothing);
    };
    let names = locked.folder().names()?;
    let is_ours = |name: &String| name == "lock" || name.starts_with("last_reserved_ip.");
    if !names.iter().all(is_ours) {
        return Ok(Removed::InUse);
    }
    for name in names {
        locked.folder().remove(&name)?;
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
    let folder = Folder::open(directory).ok();
    let text = folder.and_then(|folder| folder.read_small(&address.to_string()));
    text.is_some_and(|text| is_of(&text, container, ifname))
}

/// Without truncating first: file systems flush a file that was emptied and written again, which
/// takes longer than everything else together. Readers hold the lock.
fn overwrite(folder: &Folder, name: &str, last: LastReserved, text: &[u8]) -> std::io::Result<()> {
    let file = match last.file {
        Some(file) => file,
        None => folder.file(name, OFlags::WRONLY | OFlags::CREATE, 0o600)?.0,
    };
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

fn last_reserved_name(set: usize) -> String {
    format!("last_reserved_ip.{set}")
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

    fn take(
        locked: &Locked,
        address: IpAddr,
        set: usize,
        container: &ContainerId,
        ifname: &IfName,
    ) -> Result<(), DirectoryError> {
        let last = (set, locked.last_reserved(set));
        locked.reserve(address, last, container, ifname)
    }

    #[test]
    fn a_shorter_address_leaves_nothing_of_a_longer_one() {
        let (path, container, ifname) = fixture("shorter");
        let locked = open(&path);
        let last = || locked.last_reserved(0).address;
        assert_eq!(last(), None);
        for address in ["10.0.0.100", "10.0.0.9", "10.0.0.10"] {
            let address = address.parse().unwrap();
            take(&locked, address, 0, &container, &ifname).unwrap();
            assert_eq!(last(), Some(address));
        }
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn files_are_those_of_the_reference_plugin() {
        let (path, container, ifname) = fixture("files");
        let locked = open(&path);
        let address = "fd00:1::2".parse().unwrap();
        assert!(locked.is_free(address).unwrap());
        take(&locked, address, 1, &container, &ifname).unwrap();
        assert_eq!(
            std::fs::read(path.join("fd00:1::2")).unwrap(),
            b"c1\r\nnet1"
        );
        assert_eq!(
            std::fs::read(path.join("last_reserved_ip.1")).unwrap(),
            b"fd00:1::2"
        );
        assert_eq!(locked.last_reserved(1).address, Some(address));
        assert!(!locked.is_free(address).unwrap());
        assert!(take(&locked, address, 1, &container, &ifname).is_err());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn release_leaves_others_alone() {
        let (path, container, ifname) = fixture("release");
        let locked = open(&path);
        let (mine, other): (IpAddr, IpAddr) =
            ("10.0.0.2".parse().unwrap(), "10.0.0.3".parse().unwrap());
        take(&locked, mine, 0, &container, &ifname).unwrap();
        take(&locked, other, 0, &container, &"net2".parse().unwrap()).unwrap();
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
        take(&locked, address, 0, &container, &ifname).unwrap();
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
    fn links_lead_nowhere_and_a_pipe_holds_nobody_up() {
        let (path, container, ifname) = fixture("links");
        let outside = path.join("outside");
        std::fs::create_dir_all(&outside).unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, path.join(name)).unwrap();
        let refused = |result: Result<(), DirectoryError>, name: &str| {
            let error = result.unwrap_err().to_string();
            assert!(
                error.ends_with(path.join(name).to_str().unwrap()),
                "{error}"
            );
        };
        // The directory itself, and its lock.
        link(&outside, "network");
        let locked = lock_all([path.join("network")].into());
        refused(locked.map(drop), "network");
        refused(
            Locked::open_existing(&path.join("network")).map(drop),
            "network",
        );
        refused(remove_unused(&path.join("network")).map(drop), "network");
        link(&outside.join("made"), "lock");
        refused(lock_all([path.clone()].into()).map(drop), "lock");
        std::fs::remove_file(path.join("lock")).unwrap();
        // An address and the last one; what they lead to is neither read, written, made nor freed.
        let locked = open(&path);
        let (one, two) = ("10.0.0.2".parse().unwrap(), "10.0.0.3".parse().unwrap());
        std::fs::write(outside.join("theirs"), content(&container, &ifname)).unwrap();
        link(&outside.join("made"), "10.0.0.2");
        link(&outside.join("theirs"), "10.0.0.3");
        link(&outside.join("theirs"), "last_reserved_ip.0");
        for address in [one, two] {
            assert!(!locked.is_free(address).unwrap());
            assert!(!has(&path, address, &container, &ifname));
        }
        refused(take(&locked, one, 0, &container, &ifname), "10.0.0.2");
        let free = "10.0.0.4".parse().unwrap();
        refused(
            take(&locked, free, 0, &container, &ifname),
            "last_reserved_ip.0",
        );
        locked.release_all(&container, &ifname).unwrap();
        assert!(locked.is_free(free).unwrap() && !locked.is_free(two).unwrap());
        let left = std::fs::read(outside.join("theirs")).unwrap();
        assert_eq!(left, content(&container, &ifname).as_bytes());
        assert!(!outside.join("made").exists());
        // Nobody ever opens the other end.
        let pipe = path.join("10.0.0.5");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, 0o600.into(), 0).unwrap();
        assert!(!has(
            &path,
            "10.0.0.5".parse().unwrap(),
            &container,
            &ifname
        ));
        std::fs::remove_dir_all(path).unwrap();
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
