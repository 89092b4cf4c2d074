//! The kernel's table of mounts, `/proc/<pid>/mountinfo`: what is mounted where, and how mounts travel. Reads, and
//! finds the mount that a path is on; mounts nothing.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The table of this thread.
const OWN: &str = "/proc/thread-self/mountinfo";

/// All mounts, in the order in which they were made.
#[derive(Debug)]
pub struct Table(Vec<Mount>);

/// One mount, and how mounts and unmounts travel between it and its copies in other mount namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    id: u64,
    /// The mount that it is on.
    parent: u64,
    /// Where it is.
    pub point: PathBuf,
    /// The group of mounts that see what is mounted here, and the other way round.
    pub shared: Option<u64>,
    /// The group whose mounts are seen here.
    pub master: Option<u64>,
    /// Its file system: `tmpfs`.
    pub file_system: String,
}

impl Mount {
    /// Whether what is mounted here is seen outside (Bidirectional).
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether what is mounted outside is seen here (HostToContainer, Bidirectional).
    pub fn receives(&self) -> bool {
        self.shared.is_some() || self.master.is_some()
    }
}

impl Table {
    /// That of this thread.
    pub fn own() -> io::Result<Self> {
        Self::read(Path::new(OWN))
    }

    /// That of a file.
    pub fn read(file: &Path) -> io::Result<Self> {
        let text = fs::read(file)?;
        let lines = text.split(|byte| *byte == b'\n');
        let mounts: Vec<Mount> = lines.filter_map(parse).collect();
        match mounts.is_empty() {
            true => Err(io::Error::other("it lists no mount")),
            false => Ok(Self(mounts)),
        }
    }

    /// The mount that a path without links is on. As the kernel finds it, step by step from the root: what was
    /// mounted earlier at a place further down is hidden.
    pub fn covering(&self, path: &Path) -> Option<&Mount> {
        let is_known = |id: u64| self.0.iter().any(|mount| mount.id == id);
        let mut roots = self.0.iter().filter(|mount| {
            path.starts_with(&mount.point) && (mount.parent == mount.id || !is_known(mount.parent))
        });
        let mut found = roots.next_back()?;
        // A mount is never on one that is on it: no more steps than mounts.
        for _ in &self.0 {
            let on_it = self.0.iter().filter(|mount| {
                mount.parent == found.id && mount.id != found.id && path.starts_with(&mount.point)
            });
            // The first that is met on the way; at one place there is one.
            match on_it.min_by_key(|mount| mount.point.components().count()) {
                Some(next) => found = next,
                None => break,
            }
        }
        Some(found)
    }

    /// Where something is mounted, in the order in which it was.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = &Path> {
        self.0.iter().map(|mount| mount.point.as_path())
    }
}

/// `36 35 98:0 /root /point options shared:1 master:2 - type source options`
fn parse(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|byte| *byte == b' ');
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
    let (id, parent) = (number()?, number()?);
    let mut words = words.skip(2);
    let mut found = Mount {
        id,
        parent,
        point: unescape(words.next()?),
        shared: None,
        master: None,
        file_system: String::new(),
    };
    let mut words = words.skip(1);
    for word in words.by_ref().take_while(|word| *word != b"-") {
        match std::str::from_utf8(word).ok()?.split_once(':') {
            Some(("shared", group)) => found.shared = Some(group.parse().ok()?),
            Some(("master", group)) => found.master = Some(group.parse().ok()?),
            _ => {}
        }
    }
    found.file_system = String::from_utf8_lossy(words.next()?).into_owned();
    Some(found)
}

/// Mount paths have blanks, tabs, line ends and backslashes as three octal digits.
pub(crate) fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, more @ ..] = rest {
        let octal = more
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &more[3..] } else { more };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        let lines = text.lines().map(str::as_bytes);
        Table(lines.filter_map(parse).collect())
    }

    #[test]
    fn lines() {
        let line = b"36 35 98:0 / /mnt\\040x rw,noatime shared:1 master:2 - ext3 /dev/root rw";
        let found = parse(line).unwrap();
        assert_eq!((found.id, found.parent), (36, 35));
        assert_eq!((found.shared, found.master), (Some(1), Some(2)));
        assert_eq!(found.point, Path::new("/mnt x"));
        assert_eq!(found.file_system, "ext3");
        let private = parse(b"36 35 98:0 / / rw - tmpfs t rw").unwrap();
        assert!(!private.is_shared() && !private.receives());
        let slave = parse(b"36 35 98:0 / / rw master:7 - tmpfs t rw").unwrap();
        assert!(!slave.is_shared() && slave.receives());
        for line in [
            &b""[..],
            b"36 35 - ",
            b"1 2 3 4 - ext4",
            b" - ",
            b"x 2 3 / /a rw - ext4 x rw",
            b"1 2 3 / /a rw shared:junk - ext4 x rw",
        ] {
            assert_eq!(parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn what_is_on_top_covers_and_what_is_below_it_is_hidden() {
        let table = table(
            "1 0 0:1 / / rw - overlay overlay rw\n\
             2 1 0:2 / /run/netns rw shared:4 - tmpfs tmpfs rw\n\
             3 1 0:3 / /run rw,nosuid shared:5 - tmpfs tmpfs rw\n\
             4 3 0:4 /x /run rw master:7 propagate_from:2 - tmpfs tmpfs rw\n\
             5 4 0:5 / /run/with\\040blank rw shared:8 master:9 - tmpfs tmpfs rw\n\
             garbage\n\
             6 1 0:6 / /runner rw - tmpfs tmpfs rw",
        );
        assert_eq!(table.points().count(), 6);
        let groups = |path: &str| {
            let mount = table.covering(Path::new(path)).unwrap();
            (mount.shared, mount.master)
        };
        assert_eq!(groups("/runner"), (None, None));
        assert_eq!(groups("/run"), (None, Some(7)));
        assert_eq!(groups("/run/netns"), (None, Some(7)), "2 is hidden by 3");
        assert_eq!(groups("/run/with blank/x"), (Some(8), Some(9)));
        assert_eq!(table.covering(Path::new("relative")), None);
    }

    #[test]
    fn one_that_is_its_own_parent_ends() {
        let odd =
            table("1 1 0:1 / / rw - a a rw\n2 3 0:1 / /a rw - a a rw\n3 2 0:1 / /a rw - a a rw");
        assert_eq!(odd.covering(Path::new("/a")).map(|mount| mount.id), Some(1));
    }

    #[test]
    fn ours_can_be_read() {
        let table = Table::own().unwrap();
        let proc = table.covering(Path::new("/proc/self")).unwrap();
        assert_eq!(proc.file_system, "proc");
        assert!(Table::read(Path::new("/dev/null")).is_err());
    }
}
