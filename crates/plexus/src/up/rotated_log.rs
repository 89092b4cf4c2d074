//! The log of `plexus up --detach`: at most two files of a bounded size, the one that is written and the one
//! before it. The process's standard output and error are that file, what a plugin or a panic says too: all
//! of them are led to the new one.

use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::fmt::MakeWriter;

/// What one file may have; a line may end beyond it.
pub(crate) const MAX_BYTES: u64 = 10 << 20;

/// The file that was written before.
pub(crate) fn previous(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Opens the log at its end, or a new one if it is full.
pub(crate) fn open(log: &Path) -> anyhow::Result<File> {
    let failed = || format!("cannot write {}", log.display());
    if std::fs::metadata(log).is_ok_and(|file| file.len() >= MAX_BYTES) {
        std::fs::rename(log, previous(log)).with_context(failed)?;
    }
    append(log).with_context(failed)
}

fn append(log: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(log)
}

/// Where the process's own lines go.
#[derive(Clone)]
pub(crate) struct RotatedLog(Arc<Mutex<State>>);

struct State {
    log: PathBuf,
    written: u64,
    /// Leads what the process writes to this file.
    redirect: fn(&File) -> io::Result<()>,
}

impl RotatedLog {
    /// For a process whose standard output and error are this file already.
    pub(crate) fn of_this_process(log: PathBuf) -> Self {
        Self::new(log, |file| {
            rustix::stdio::dup2_stdout(file)?;
            Ok(rustix::stdio::dup2_stderr(file)?)
        })
    }

    fn new(log: PathBuf, redirect: fn(&File) -> io::Result<()>) -> Self {
        let written = std::fs::metadata(&log).map_or(0, |file| file.len());
        Self(Arc::new(Mutex::new(State {
            log,
            written,
            redirect,
        })))
    }

    /// A line, and after it a new file if this one is full.
    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        io::stderr().write_all(line)?;
        state.written += u64::try_from(line.len()).unwrap_or(u64::MAX);
        if state.written >= MAX_BYTES {
            // If it fails, it is tried again when as much was written again.
            state.written = 0;
            state.rotate()?;
        }
        Ok(())
    }
}

impl State {
    fn rotate(&self) -> io::Result<()> {
        match std::fs::rename(&self.log, previous(&self.log)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        (self.redirect)(&append(&self.log)?)
    }
}

impl Write for RotatedLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_line(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RotatedLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fill(path: &Path, bytes: u64) {
        File::create(path).unwrap().set_len(bytes).unwrap();
    }

    #[test]
    fn two_files_are_kept_and_neither_grows() {
        let dir = std::env::temp_dir().join(format!("px-up-log-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (log, old) = (dir.join("up.log"), dir.join("up.log.1"));
        assert_eq!(previous(&log), old);
        fill(&log, MAX_BYTES - 10);
        let mut file = open(&log).unwrap();
        assert!(!old.exists(), "there is room");
        // Standard error is not this file here: the line goes to the test's own.
        let rotated = RotatedLog::new(log.clone(), |file| {
            file.try_clone()?.write_all(b"led here\n")
        });
        file.write_all(b"12345\n").unwrap();
        rotated.write_line(b"12345\n").unwrap();
        assert!(!old.exists());
        rotated.write_line(b"12345\n").unwrap();
        assert_eq!(fs::metadata(&old).unwrap().len(), MAX_BYTES - 4);
        assert_eq!(fs::read_to_string(&log).unwrap(), "led here\n");
        rotated.write_line(b"12345\n").unwrap();
        assert_eq!(fs::read_to_string(&log).unwrap(), "led here\n");
        // One that was filled by an earlier run.
        fill(&log, MAX_BYTES);
        drop(open(&log).unwrap());
        assert_eq!(fs::metadata(&old).unwrap().len(), MAX_BYTES);
        assert_eq!(fs::metadata(&log).unwrap().len(), 0);
        fs::remove_dir_all(dir).unwrap();
    }
}
