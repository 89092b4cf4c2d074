//! Every network namespace that can be seen: pinned by a mount, in `/run/netns`, or of a process.
//! Owns the search; opens nothing but namespaces. For finding marked links when the journal is
//! lost.

use crate::Netns;
use plexus_types::NetnsCookie;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One namespace.
#[derive(Debug, Clone)]
pub struct Found {
    /// A path to it; one of perhaps many.
    pub path: PathBuf,
    /// It, held open.
    pub netns: Netns,
    /// Its number.
    pub cookie: NetnsCookie,
}

/// No more than this many namespaces are looked at.
pub const AT_MOST: usize = 16_384;

/// All of them, each once; a pinned path is preferred to a process's. What vanishes meanwhile, or
/// cannot be opened, is left out.
pub fn namespaces() -> Vec<Found> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let paths = pinned().into_iter().chain(named()).chain(of_processes());
    for path in paths {
        if found.len() >= AT_MOST {
            break;
        }
        // A process's link tells the inode without being opened.
        if linked_inode(&path).is_some_and(|inode| seen.contains(&inode)) {
            continue;
        }
        let Ok(netns) = Netns::open(&path) else {
            continue;
        };
        let (Ok((_, inode)), Ok(cookie)) = (netns.inode(), netns.cookie()) else {
            continue;
        };
        if seen.insert(inode) {
            found.push(Found {
                path,
                netns,
                cookie,
            });
        }
    }
    found
}

fn pinned() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().filter_map(nsfs_mount).collect()
}

/// `1195 28 0:4 net:[4026532265] /run/netns/blue rw shared:17 - nsfs nsfs rw`
fn nsfs_mount(line: &str) -> Option<PathBuf> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, path) = (fields.next()?, fields.next()?);
    (after.starts_with("nsfs ") && root.starts_with("net:")).then(|| unescape(path))
}

/// Mount paths have blanks, tabs, line ends and backslashes as three octal digits.
fn unescape(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let octal = more
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &more[3..] } else { more };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

fn named() -> Vec<PathBuf> {
    entries(Path::new("/run/netns")).collect()
}

fn of_processes() -> impl Iterator<Item = PathBuf> {
    let is_process = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    entries(Path::new("/proc"))
        .filter(is_process)
        .map(|process| process.join("ns/net"))
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
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
