//! Mounts as this process sees them. Owns reading `/proc/self/mountinfo`, file systems in memory for a directory, and
//! letting go of what is mounted there; decides nothing. A path goes in; what comes out is how mounts below it travel.

use crate::sys;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// How mounts and unmounts travel between a mount and its copies in other mount namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Propagation {
    /// The mount that the path is on.
    pub mount: PathBuf,
    /// The group of mounts that see what is mounted here, and the other way round.
    pub shared: Option<u64>,
    /// The group whose mounts are seen here.
    pub master: Option<u64>,
    /// Its file system: `tmpfs`.
    pub file_system: String,
}

impl Propagation {
    /// Whether what is mounted here is seen outside (Bidirectional).
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Whether what is mounted outside is seen here (HostToContainer, Bidirectional).
    pub fn receives(&self) -> bool {
        self.shared.is_some() || self.master.is_some()
    }
}

/// How mounts below `path` travel. The path must exist.
pub fn propagation(path: &Path) -> io::Result<Propagation> {
    // Asked for, not concluded from the paths of mounts: others may be hidden below one that came later.
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID)?;
    let id = found.stx_mnt_id.to_string();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mut lines = mounts.lines();
    lines
        .find(|line| line.split(' ').next() == Some(&id))
        .and_then(parse)
        .ok_or_else(|| io::Error::other("no mount of this process has the path"))
}

/// Gives a directory a file system in memory: programs in it can be executed, whatever the file system around it allows, and
/// what is mounted in it is seen from everywhere. What is mounted there already stays; says whether it had to be mounted.
pub fn memory_at(directory: &Path) -> io::Result<bool> {
    let directory = directory.canonicalize()?;
    if propagation(&directory)?.mount == directory {
        return Ok(false);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", &directory, "tmpfs", flags, Some(c"mode=0755"))?;
    rustix::mount::mount_change(&directory, MountPropagationFlags::SHARED)?;
    Ok(true)
}

/// Does `work` where `source` is what is at `target`: on a thread with mounts of its own, which the processes that it
/// starts keep. Nobody else sees that, and what others mount is seen there too.
pub fn with_own<T: Send>(
    source: &Path,
    target: &Path,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    let target = target.canonicalize()?;
    let around = propagation(&target)?.mount;
    let inside = || {
        sys::unshare_mounts()?;
        // News from outside still arrive; ours stay here.
        rustix::mount::mount_change(&around, MountPropagationFlags::DOWNSTREAM)?;
        rustix::mount::mount_bind(source, &target)?;
        Ok(work())
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("plexus-mounts".into());
        let failed = |_| Err(io::Error::other("the thread with mounts of its own failed"));
        thread
            .spawn_scoped(scope, inside)?
            .join()
            .unwrap_or_else(failed)
    })
}

/// Unmounts what is mounted on a directory, with everything below it.
pub fn unmount_all(directory: &Path) -> io::Result<()> {
    unmount_below(directory)?;
    // As often as something is mounted there, within reason.
    for _ in 0..8 {
        match rustix::mount::unmount(directory, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Unmounts everything that is mounted below a directory, not what is mounted on it; the newest first. A
/// directory that is not there has nothing below it.
pub fn unmount_below(directory: &Path) -> io::Result<()> {
    let directory = match directory.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let below = mounts.lines().filter_map(parse).map(|found| found.mount);
    let mut below: Vec<PathBuf> = below
        .filter(|mount| mount.starts_with(&directory) && *mount != directory)
        .collect();
    below.reverse();
    for mount in below {
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        match rustix::mount::unmount(&mount, flags) {
            // Gone with the one that it was on.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether this process seems to be in a container: its mount namespace is not that of the
/// machine's first process, or its process namespace is not the machine's.
pub fn in_container() -> bool {
    if !sees_all_processes() {
        return true;
    }
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    matches!((of("self"), of("1")), (Some(own), Some(first)) if own != first)
}

/// Whether this process is in the machine's own process namespace, so that `/proc` shows every
/// process of the machine.
pub fn sees_all_processes() -> bool {
    /// The kernel gives this number to the first process namespace, always.
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == INITIAL)
}

/// `36 35 98:0 /root /mnt rw,noatime shared:1 master:2 - ext3 /dev/root rw`
fn parse(line: &str) -> Option<Propagation> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(4);
    let mount = unescape(fields.next()?);
    let mut found = Propagation {
        mount,
        file_system: after.split(' ').next()?.to_owned(),
        ..Propagation::default()
    };
    for field in fields.skip(1) {
        match field.split_once(':') {
            Some(("shared", group)) => found.shared = group.parse().ok(),
            Some(("master", group)) => found.master = group.parse().ok(),
            _ => {}
        }
    }
    Some(found)
}

/// Mount paths have blanks, tabs, line ends and backslashes as three octal digits.
pub(crate) fn unescape(text: &str) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn lines() {
        let line = "36 35 98:0 / /mnt\\040x rw,noatime shared:1 master:2 - ext3 /dev/root rw";
        let found = parse(line).unwrap();
        assert_eq!((found.shared, found.master), (Some(1), Some(2)));
        assert_eq!(found.mount, Path::new("/mnt x"));
        assert_eq!(found.file_system, "ext3");
        let private = parse("36 35 98:0 / / rw - tmpfs t rw").unwrap();
        assert!(!private.is_shared() && !private.receives());
        let slave = parse("36 35 98:0 / / rw master:7 - tmpfs t rw").unwrap();
        assert!(!slave.is_shared() && slave.receives());
        for line in ["", "36 35 - ", "1 2 3 4 - ext4", " - "] {
            assert_eq!(parse(line), None, "{line}");
        }
        let odd = parse("1 2 3 / /a rw shared:junk - ext4 x rw").unwrap();
        assert!(!odd.is_shared());
    }

    #[test]
    fn everything_below_and_nothing_else() {
        let dir = std::env::temp_dir().join(format!("px-mounts-{}", std::process::id()));
        let places = [dir.clone(), dir.join("a"), dir.join("a/b")];
        for place in &places {
            fs::create_dir_all(place).unwrap();
            let flags = MountFlags::NOEXEC;
            rustix::mount::mount("tmpfs", place, "tmpfs", flags, None).unwrap();
        }
        unmount_below(&dir).unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let left: Vec<PathBuf> = mounts
            .lines()
            .filter_map(parse)
            .map(|found| found.mount)
            .filter(|mount| mount.starts_with(&dir))
            .collect();
        assert_eq!(left, std::slice::from_ref(&dir));
        rustix::mount::unmount(&dir, UnmountFlags::DETACH).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        unmount_below(&dir).unwrap();
    }

    #[test]
    fn what_is_mounted_for_one_nobody_else_sees() {
        let dir = std::env::temp_dir().join(format!("px-own-{}", std::process::id()));
        let (source, target, news) = (dir.join("source"), dir.join("target"), dir.join("news"));
        for place in [&source, &target, &news] {
            fs::create_dir_all(place).unwrap();
        }
        let (begin, begun) = std::sync::mpsc::channel();
        let shows = |what: &Path| Command::new("ls").arg(what).output().unwrap().stdout;
        let seen = std::thread::scope(|scope| {
            let (target, news) = (&target, &news);
            let outside = scope.spawn(move || {
                begun.recv().unwrap();
                let left = fs::read_dir(target).unwrap().count();
                memory_at(news).unwrap();
                fs::write(news.join("later"), "").unwrap();
                left
            });
            let inside = with_own(&source, target, || {
                fs::write(target.join("file"), "").unwrap();
                begin.send(()).unwrap();
                assert_eq!(outside.join().unwrap(), 0, "nothing is seen outside");
                (shows(target), shows(news))
            });
            inside.unwrap()
        });
        unmount_all(&news).unwrap();
        assert!(fs::exists(source.join("file")).unwrap());
        assert_eq!(seen.0, b"file\n", "children see it");
        // Only where the machine's mounts are shared do they travel at all.
        let travels = propagation(&dir).unwrap().is_shared();
        assert_eq!(seen.1 == b"later\n", travels);
        fs::remove_dir_all(&dir).unwrap();
        assert!(with_own(&source, &target, || ()).is_err());
    }

    #[test]
    fn programs_run_in_memory_whatever_is_around() {
        let around = std::env::temp_dir().join(format!("px-memory-{}", std::process::id()));
        fs::create_dir_all(&around).unwrap();
        rustix::mount::mount("tmpfs", &around, "tmpfs", MountFlags::NOEXEC, None).unwrap();
        let dir = around.join("lab");
        fs::create_dir(&dir).unwrap();
        let runs = || {
            let program = dir.join("true");
            fs::copy("/bin/true", &program).unwrap();
            let ran = std::process::Command::new(&program).status();
            ran.is_ok_and(|status| status.success())
        };
        assert!(!runs());
        assert!(memory_at(&dir).unwrap());
        assert!(!memory_at(&dir).unwrap());
        assert!(runs());
        assert!(propagation(&dir).unwrap().is_shared());
        unmount_all(&dir).unwrap();
        unmount_all(&dir).unwrap();
        assert!(!runs());
        unmount_all(&around).unwrap();
        fs::remove_dir_all(&around).unwrap();
    }

    #[test]
    fn of_a_real_path() {
        let proc = propagation(Path::new("/proc/self")).unwrap();
        assert_eq!(proc.file_system, "proc");
        assert!(propagation(Path::new("/no/such/path")).is_err());
    }
}
