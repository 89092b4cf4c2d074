//! The configurations of running plugins, and the plugins that outlive their agent.
//!
//! A plugin's standard input is a file of the spool directory, locked by the open file that the
//! plugin inherits. So the lock is held exactly as long as the plugin (or a child that kept its
//! standard input) lives, even if the agent is killed: the next agent sees it and waits before it
//! undoes what that plugin may still be doing. No journal entry could say this without a gap.
//!
//! The directory belongs to root and nobody else can write to it; anything else is refused, since
//! plugins do what its files say with root's rights, and their readers are killed.

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process_group};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

const SUFFIX: &str = ".stdin";
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A configuration that a plugin reads; its file goes when this does.
pub(super) struct Spooled {
    dir: OwnedFd,
    name: String,
}

impl Spooled {
    /// Writes a configuration; the file is what the plugin gets as standard input.
    pub(super) fn new(dir: &Path, number: u64, text: &str) -> io::Result<(Self, File)> {
        let dir = match open(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(dir)?;
                open(dir)?
            }
            opened => opened?,
        };
        let name = format!("{}-{number}{SUFFIX}", std::process::id());
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(&dir, &name, flags, Mode::from_raw_mode(0o600))?);
        let spooled = Self { dir, name };
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Written at a position, so that the plugin reads from the beginning.
        file.write_all_at(text.as_bytes(), 0)?;
        Ok((spooled, file))
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // A file that stays is seen as unlocked, and removed, at the next start.
        let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
    }
}

/// Waits until no plugin of an earlier agent runs any more, kills those that take longer than
/// `grace`, and empties the spool. Says how many were still running.
///
/// Call at start, with state directory and socket locked and before anything is undone. Fails if
/// a plugin cannot be killed: then what it does cannot be undone yet either.
pub fn end_strays(spool: &Path, grace: Duration) -> io::Result<usize> {
    let dir = match open(spool) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        opened => opened?,
    };
    let until = Instant::now() + grace;
    let mut strays = 0;
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_bytes().ends_with(SUFFIX.as_bytes()) {
            continue;
        }
        // What is not a plain file was not made by us, and no plugin reads it.
        if let Some(file) = open_file(&dir, name)?
            && !lock(&file, Instant::now())?
        {
            strays += 1;
            if !lock(&file, until)? {
                kill_readers(&file)?;
                if !lock(&file, Instant::now() + KILL_TIMEOUT)? {
                    let text = format!(
                        "a plugin started by an earlier agent holds {name:?} in {spool:?} and cannot be killed"
                    );
                    return Err(io::Error::other(text));
                }
            }
        }
        unlinkat(&dir, name, AtFlags::empty())?;
    }
    Ok(strays)
}

/// Opens the directory without following a link, and checks whose it is.
fn open(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOTDIR | Errno::LOOP => {
            io::Error::other(format!("{dir:?} is not a directory: remove it"))
        }
        errno => errno.into(),
    })?;
    let stat = fstat(&fd)?;
    let mode = stat.st_mode & 0o7777;
    if stat.st_uid != 0 || mode & 0o022 != 0 {
        let text = format!(
            "the directory {dir:?} must belong to root and be writable by nobody else (owner {}, mode {mode:o}): find out who made it, and remove it",
            stat.st_uid
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(fd)
}

/// Makes the directory for root alone; those above it are the socket's, for everybody to see.
fn make(dir: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// A plain file of the spool; none if it is something else.
fn open_file(dir: &OwnedFd, name: &std::ffi::CStr) -> io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Err(Errno::LOOP | Errno::NXIO) => return Ok(None),
        opened => opened?,
    };
    let plain = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
    Ok(plain.then(|| File::from(file)))
}

/// Tries until then; says whether it has the lock.
fn lock(file: &File, until: Instant) -> io::Result<bool> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if Instant::now() >= until => return Ok(false),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(POLL_INTERVAL),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills the process groups whose standard input is that file.
fn kill_readers(file: &File) -> io::Result<()> {
    let wanted = file.metadata()?;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // Processes come and go while we look: one that cannot be seen is not ours to kill.
        let Ok(stdin) = fs::metadata(entry.path().join("fd/0")) else {
            continue;
        };
        if (stdin.dev(), stdin.ino()) != (wanted.dev(), wanted.ino()) {
            continue;
        }
        if let Some(pid) = Pid::from_raw(pid)
            && let Ok(group) = getpgid(Some(pid))
            && group != getpgrp()
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    /// A directory of its own, removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("spool-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_directory_is_made_for_root_alone() {
        let scratch = Scratch::new("made");
        let spool = scratch.0.join("run/spool");
        let (spooled, file) = Spooled::new(&spool, 1, "{}").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&spool), mode(&scratch.0.join("run"))), (0o700, 0o755));
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        drop(spooled);
        assert_eq!(fs::read_dir(&spool).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_others_control_is_refused() {
        let scratch = Scratch::new("others");
        let (open, strangers, real, link) = (
            scratch.0.join("open"),
            scratch.0.join("strangers"),
            scratch.0.join("real"),
            scratch.0.join("link"),
        );
        for dir in [&open, &strangers, &real] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("1-1.stdin"), "{}").unwrap();
        }
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        chown(&strangers, Some(65534), None).unwrap();
        symlink(&real, &link).unwrap();
        for dir in [&open, &strangers, &link] {
            assert!(Spooled::new(dir, 2, "{}").is_err(), "{dir:?}");
            assert!(end_strays(dir, Duration::ZERO).is_err(), "{dir:?}");
            assert!(dir.join("1-1.stdin").exists(), "{dir:?} was touched");
        }
    }

    #[test]
    fn what_is_there_already_is_neither_followed_nor_overwritten() {
        let scratch = Scratch::new("there");
        let (spool, victim) = (scratch.0.join("spool"), scratch.0.join("victim"));
        make(&spool).unwrap();
        fs::write(&victim, "precious").unwrap();
        let name = |number| spool.join(format!("{}-{number}{SUFFIX}", std::process::id()));
        symlink(&victim, name(1)).unwrap();
        fs::hard_link(&victim, name(2)).unwrap();
        for number in [1, 2] {
            assert!(Spooled::new(&spool, number, "{}").is_err(), "{number}");
        }
        // Locked, so that whoever followed the link would wait for its holder and end it.
        let held = File::open(&victim).unwrap();
        fs::remove_file(name(2)).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(end_strays(&spool, Duration::ZERO).unwrap(), 0);
        assert_eq!(fs::read_dir(&spool).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }
}
