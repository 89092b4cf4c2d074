//! One `plexus up` per state directory: a lock with the process's number in it, free when the process
//! ends, however it ends.

use anyhow::{Context, anyhow};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Pid;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a process may wait for the lock: a holder that only reads releases it soon.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The lock.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it; fails if somebody has it, and says who.
    pub(crate) fn take(path: &Path) -> anyhow::Result<Self> {
        crate::server::make_parent(path)?;
        let mut file = open(path)?;
        let until = Instant::now() + LOCK_TIMEOUT;
        while let Some(holder) = held(&mut file)? {
            // Whoever only looks has it for a moment.
            if Instant::now() > until {
                return Err(taken(&holder));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let number = std::process::id().to_string();
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(number.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { _file: file })
    }

    /// Fails if somebody has it, and says who.
    pub(crate) fn check_free(path: &Path) -> anyhow::Result<()> {
        match Self::holder(path)? {
            Some(holder) => Err(taken(&holder.as_raw_nonzero().to_string())),
            None => Ok(()),
        }
    }

    /// Who has it now, if anybody.
    pub(crate) fn holder(path: &Path) -> anyhow::Result<Option<Pid>> {
        if !path.exists() {
            return Ok(None);
        }
        let mut file = open(path)?;
        let Some(holder) = held(&mut file)? else {
            return Ok(None);
        };
        let number = holder.parse().ok().and_then(Pid::from_raw);
        let number = number
            .with_context(|| format!("{} is taken, but does not say by whom", path.display()))?;
        Ok(Some(number))
    }
}

fn taken(holder: &str) -> anyhow::Error {
    anyhow!(
        "plexus up runs already (process {holder}); plexus down stops and removes it, and another \
         one on this machine needs its own --root and a network namespace of its own"
    )
}

fn open(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot open {}: are you root?", path.display()))
}

/// What the holder wrote; otherwise the lock is taken.
fn held(file: &mut File) -> anyhow::Result<Option<String>> {
    match flock(&*file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(None),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            file.rewind()?;
            file.take(20).read_to_string(&mut holder)?;
            Ok(Some(holder))
        }
        Err(error) => Err(error).context("cannot take a lock"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_told_who_is_first() {
        let dir = std::env::temp_dir().join(format!("px-up-lock-{}", std::process::id()));
        let path = dir.join("up.lock");
        assert_eq!(Lock::holder(&path).unwrap(), None);
        let lock = Lock::take(&path).unwrap();
        let me = std::process::id();
        for refused in [Lock::take(&path).err(), Lock::check_free(&path).err()] {
            let error = refused.unwrap().to_string();
            assert!(error.contains(&format!("process {me}")), "{error}");
        }
        let holder = Lock::holder(&path).unwrap().unwrap();
        assert_eq!(holder.as_raw_nonzero().get(), me.cast_signed());
        let looks = open(&path).unwrap();
        drop(lock);
        // Somebody who looks while it is taken is no reason to refuse.
        flock(&looks, FlockOperation::LockExclusive).unwrap();
        let looking = std::thread::spawn(move || {
            std::thread::sleep(POLL_INTERVAL);
            drop(looks);
        });
        drop(Lock::take(&path).unwrap());
        looking.join().unwrap();
        assert_eq!(Lock::holder(&path).unwrap(), None);
        Lock::take(&path).unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
