//! Mounts as this process sees them. Owns which one a path is on, file systems in memory for a directory, and
//! letting go of what is mounted there; decides nothing.

use crate::mountinfo::{Mount, Table};
use crate::sys;
use crate::thread::on_thread;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use std::fs;
use std::io;
use std::path::Path;

/// The mount that a path is on. The path must exist.
pub fn mount_of(path: &Path) -> io::Result<Mount> {
    let path = path.canonicalize()?;
    let table = Table::own()?;
    let found = table.covering(&path).cloned();
    found.ok_or_else(|| io::Error::other("no mount of this process has the path"))
}

/// Gives a directory a file system in memory: programs in it can be executed, whatever the file system around it allows, and
/// what is mounted in it is seen from everywhere. What is mounted there already stays; says whether it had to be mounted.
pub fn memory_at(directory: &Path) -> io::Result<bool> {
    let directory = directory.canonicalize()?;
    if mount_of(&directory)?.point == directory {
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
    let around = mount_of(&target)?.point;
    on_thread("plexus-mounts", || {
        sys::unshare_mounts()?;
        // News from outside still arrive; ours stay here.
        rustix::mount::mount_change(&around, MountPropagationFlags::DOWNSTREAM)?;
        rustix::mount::mount_bind(source, &target)?;
        Ok(work())
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
    let table = Table::own()?;
    let is_below = |point: &&Path| point.starts_with(&directory) && *point != directory;
    for point in table.points().rev().filter(is_below) {
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        match rustix::mount::unmount(point, flags) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

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
        let table = Table::own().unwrap();
        let left: Vec<&Path> = table
            .points()
            .filter(|point| point.starts_with(&dir))
            .collect();
        assert_eq!(left, [dir.as_path()]);
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
        let travels = mount_of(&dir).unwrap().is_shared();
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
        assert!(mount_of(&dir).unwrap().is_shared());
        unmount_all(&dir).unwrap();
        unmount_all(&dir).unwrap();
        assert!(!runs());
        unmount_all(&around).unwrap();
        fs::remove_dir_all(&around).unwrap();
    }

    #[test]
    fn of_a_real_path() {
        let proc = mount_of(Path::new("/proc/self")).unwrap();
        assert_eq!(proc.file_system, "proc");
        assert!(mount_of(Path::new("/no/such/path")).is_err());
    }
}
