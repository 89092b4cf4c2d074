//! Every network namespace that can be seen: pinned by a mount, in `/run/netns`, or of a process.
//! Owns the search; opens nothing but namespaces. For finding marked links when the journal is
//! lost.

use crate::mount::sees_all_processes;
use crate::mountinfo::unescape;
use crate::{Netns, NetnsError};
use plexus_types::NetnsCookie;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One namespace.
#[derive(Debug, Clone)]
pub struct FoundNamespace {
    /// A path to it; one of perhaps many.
    pub path: PathBuf,
    /// It, held open.
    pub netns: Netns,
    /// Its number.
    pub cookie: NetnsCookie,
}

/// No more than this many namespaces are looked at.
pub const AT_MOST: usize = 16_384;

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    /// The namespaces.
    pub found: Vec<FoundNamespace>,
    /// Whether nothing was left out: only then does absence mean anything.
    pub complete: bool,
}

impl Scan {
    /// The namespace with that number.
    pub fn find(&self, cookie: NetnsCookie) -> Option<&FoundNamespace> {
        self.found.iter().find(|found| found.cookie == cookie)
    }
}

/// All of them, each once; a pinned path is preferred to a process's. What vanishes meanwhile is
/// left out; what is there and cannot be opened makes the search incomplete.
pub fn namespaces() -> Scan {
    let mut seen = BTreeSet::new();
    let mut scan = Scan {
        // In a process namespace of its own, `/proc` hides what the rest of the machine runs.
        complete: sees_all_processes(),
        ..Scan::default()
    };
    let (pinned, of_processes) = (pinned(), of_processes());
    scan.complete &= pinned.is_ok() && of_processes.is_ok();
    let certain = pinned.into_iter().chain(of_processes).flatten();
    // The first process may be out of bounds; it is nobody's container.
    let first = Path::new("/proc/1/ns/net");
    let certain = certain.map(|path| {
        let is_certain = path != first;
        (path, is_certain)
    });
    // A file in there may be what is left of a namespace.
    let perhaps = entries(Path::new("/run/netns")).into_iter().flatten();
    let perhaps = perhaps.map(|path| (path, false));
    for (path, is_namespace) in certain.chain(perhaps) {
        if scan.found.len() >= AT_MOST {
            scan.complete = false;
            break;
        }
        // A process's link tells the inode without being opened.
        if linked_inode(&path).is_some_and(|inode| seen.contains(&inode)) {
            continue;
        }
        match look(&path) {
            Ok((inode, found)) if seen.insert(inode) => scan.found.push(found),
            Ok(_) => {}
            Err(error) => scan.complete &= !is_namespace || error.is_gone(),
        }
    }
    scan
}

fn look(path: &Path) -> Result<(u64, FoundNamespace), NetnsError> {
    let netns = Netns::open(path)?;
    let (_, inode) = netns.inode()?;
    let cookie = netns.cookie()?;
    let path = path.to_owned();
    Ok((
        inode,
        FoundNamespace {
            path,
            netns,
            cookie,
        },
    ))
}

fn pinned() -> io::Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mounts.lines().filter_map(nsfs_mount).collect())
}

/// `1195 28 0:4 net:[4026532265] /run/netns/blue rw shared:17 - nsfs nsfs rw`
fn nsfs_mount(line: &str) -> Option<PathBuf> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, path) = (fields.next()?, fields.next()?);
    (after.starts_with("nsfs ") && root.starts_with("net:")).then(|| unescape(path.as_bytes()))
}

fn of_processes() -> io::Result<Vec<PathBuf>> {
    let is_process = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let processes = entries(Path::new("/proc"))?.into_iter().filter(is_process);
    Ok(processes.map(|process| process.join("ns/net")).collect())
}

fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// `net:[4026531840]`
fn linked_inode(path: &Path) -> Option<u64> {
    let target = fs::read_link(path).ok()?;
    target
        .to_str()?
        .strip_prefix("net:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_lines() {
        let line =
            "1195 28 0:4 net:[4026532265] /run/net\\040ns/a\\134b rw shared:17 - nsfs nsfs rw";
        assert_eq!(nsfs_mount(line), Some("/run/net ns/a\\b".into()));
        for line in [
            "",
            "1195 28 0:4 mnt:[4026532265] /x rw - nsfs nsfs rw",
            "1195 28 0:4 / / rw - ext4 /dev/vda rw",
            "1195 28 - nsfs",
        ] {
            assert_eq!(nsfs_mount(line), None, "{line}");
        }
    }
}
