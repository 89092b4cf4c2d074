//! The configurations of running plugins, and the plugins that outlive their agent.
//!
//! A plugin's standard input is a file of the spool directory, locked by the open file that the
//! plugin inherits. So the lock is held exactly as long as the plugin (or a child that kept its
//! standard input) lives, even if the agent is killed: the next agent sees it and waits before it
//! undoes what that plugin may still be doing. No journal entry could say this without a gap.

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process_group};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SUFFIX: &str = ".stdin";
const PAUSE: Duration = Duration::from_millis(10);
const DYING: Duration = Duration::from_secs(5);

/// A configuration that a plugin reads; its file goes when this does.
pub(super) struct Spooled {
    path: PathBuf,
}

impl Spooled {
    /// Writes a configuration; the file is what the plugin gets as standard input.
    pub(super) fn new(dir: &Path, number: u64, text: &str) -> io::Result<(Self, File)> {
        let path = dir.join(format!("{}-{number}{SUFFIX}", std::process::id()));
        let flags =
            OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let opened = match rustix::fs::open(&path, flags, mode) {
            Err(Errno::NOENT) => {
                fs::create_dir_all(dir)?;
                rustix::fs::open(&path, flags, mode)
            }
            opened => opened,
        };
        let file = File::from(opened?);
        let spooled = Self { path };
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // Written at a position, so that the plugin reads from the beginning.
        file.write_all_at(text.as_bytes(), 0)?;
        Ok((spooled, file))
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // A file that stays is seen as unlocked, and removed, at the next start.
        let _ = fs::remove_file(&self.path);
    }
}

/// Waits until no plugin of an earlier agent runs any more, kills those that take longer than
/// `grace`, and empties the spool. Says how many were still running.
///
/// Call at start, with the state directory locked and before anything is undone. Fails if a plugin
/// cannot be killed: then what it does cannot be undone yet either.
pub fn end_strays(spool: &Path, grace: Duration) -> io::Result<usize> {
    let entries = match fs::read_dir(spool) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let until = Instant::now() + grace;
    let mut strays = 0;
    for entry in entries {
        let path = entry?.path();
        if !path
            .as_os_str()
            .as_encoded_bytes()
            .ends_with(SUFFIX.as_bytes())
        {
            continue;
        }
        let file = File::options().read(true).write(true).open(&path)?;
        if !lock(&file, Instant::now())? {
            strays += 1;
            if !lock(&file, until)? {
                kill_readers(&file)?;
                if !lock(&file, Instant::now() + DYING)? {
                    let text = format!(
                        "a plugin started by an earlier agent holds {path:?} and cannot be killed"
                    );
                    return Err(io::Error::other(text));
                }
            }
        }
        fs::remove_file(&path)?;
    }
    Ok(strays)
}

/// Tries until then; says whether it has the lock.
fn lock(file: &File, until: Instant) -> io::Result<bool> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if Instant::now() >= until => return Ok(false),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(PAUSE),
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
