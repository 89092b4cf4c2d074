//! The kernel's table of mounts: `/proc/<pid>/mountinfo`, as far as propagation is concerned.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The table of this process.
pub(super) const OWN: &str = "/proc/self/mountinfo";

/// All mounts, in the order in which they were made.
#[derive(Debug)]
pub(super) struct Table(Vec<Mount>);

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Where it is.
    pub(super) point: PathBuf,
    /// The group of mounts that what is mounted here appears in.
    pub(super) shared: Option<u64>,
    /// The group whose mounts appear here.
    pub(super) master: Option<u64>,
}

impl Mount {
    /// Whether what is mounted elsewhere in its group appears here.
    pub(super) fn receives(&self) -> bool {
        self.shared.is_some() || self.master.is_some()
    }
}

impl Table {
    /// Reads a table.
    pub(super) fn read(file: &Path) -> io::Result<Self> {
        let bytes = fs::read(file)?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let mounts: Vec<Mount> = lines.filter_map(parse).collect();
        if mounts.is_empty() {
            return Err(io::Error::other("it lists no mount"));
        }
        Ok(Self(mounts))
    }

    /// The mount that a path without links is on. The deepest, and of those at one place the last,
    /// which hides the others.
    pub(super) fn covering(&self, path: &Path) -> Option<&Mount> {
        let over = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        over.max_by_key(|mount| mount.point.components().count())
    }
}

/// `36 35 98:0 /root /point options shared:1 master:2 - type source options`
fn parse(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ').skip(4);
    let point = PathBuf::from(OsString::from_vec(unescaped(words.next()?)));
    let (mut shared, mut master) = (None, None);
    for word in words.skip(1).take_while(|word| *word != b"-") {
        let word = std::str::from_utf8(word).ok()?;
        match word.split_once(':') {
            Some(("shared", group)) => shared = Some(group.parse().ok()?),
            Some(("master", group)) => master = Some(group.parse().ok()?),
            _ => {}
        }
    }
    Some(Mount {
        point,
        shared,
        master,
    })
}

/// Blanks, tabs, line ends and backslashes are written as three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) => {
                out.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        Table(
            text.lines()
                .filter_map(|line| parse(line.as_bytes()))
                .collect(),
        )
    }

    #[test]
    fn the_deepest_and_last_mount_covers() {
        let table = table(
            "1 0 0:1 / / rw - overlay overlay rw\n\
             2 1 0:2 / /run rw,nosuid shared:5 - tmpfs tmpfs rw\n\
             3 1 0:3 /x /run rw master:7 propagate_from:2 - tmpfs tmpfs rw\n\
             4 1 0:4 / /run/with\\040blank rw shared:8 master:9 - tmpfs tmpfs rw\n\
             garbage\n\
             5 1 0:5 / /runner rw shared:x - tmpfs tmpfs rw",
        );
        assert_eq!(table.0.len(), 4);
        let groups = |path: &str| {
            let mount = table.covering(Path::new(path)).unwrap();
            (mount.shared, mount.master)
        };
        assert_eq!(groups("/runner"), (None, None));
        assert_eq!(groups("/run/netns"), (None, Some(7)));
        assert_eq!(groups("/run/with blank/x"), (Some(8), Some(9)));
        assert_eq!(table.covering(Path::new("relative")), None);
    }

    #[test]
    fn ours_can_be_read() {
        let table = Table::read(Path::new(OWN)).unwrap();
        assert!(table.covering(Path::new("/proc/self")).is_some());
        assert!(Table::read(Path::new("/dev/null")).is_err());
    }
}
