//! What a check must not do to the process: never come back, fill the memory, or end it. The limits are so far away
//! that only a defect meets them, on a slow machine too.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One input takes a fraction of a millisecond.
const HANG: Duration = Duration::from_secs(60);
/// An input is at most a few megabytes.
const MEMORY: u64 = 512 << 20;

/// The input that is being checked, on disk, where it is found if the process ends; a thread that looks how long that
/// takes; and how much memory was used before.
pub(crate) struct Guard {
    file: File,
    path: PathBuf,
    since: Arc<(Mutex<State>, Condvar)>,
    memory: u64,
}

enum State {
    Idle,
    Since(Instant),
    Done,
}

impl Guard {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plexus-fuzz-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).expect("a file for the input that is being checked");
        let since = Arc::new((Mutex::new(State::Idle), Condvar::new()));
        let (watched, place) = (Arc::clone(&since), path.clone());
        std::thread::spawn(move || watch(&watched, &place));
        Self {
            file,
            path,
            since,
            memory: memory(),
        }
    }

    pub(crate) fn begin(&self, input: &[u8]) {
        let written = self.file.write_all_at(input, 0);
        let written = written.and_then(|()| self.file.set_len(input.len() as u64));
        written.expect("writing the input that is checked");
        self.set(State::Since(Instant::now()));
    }

    pub(crate) fn end(&self) {
        self.set(State::Idle);
    }

    /// By how much more memory was in use at once than before the first input, if that is too much.
    pub(crate) fn grown(&self) -> Option<u64> {
        Some(memory().saturating_sub(self.memory)).filter(|grown| *grown > MEMORY)
    }

    fn set(&self, state: State) {
        *self.since.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.set(State::Done);
        self.since.1.notify_all();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A thread cannot be ended from outside, so that the process must.
fn watch(since: &(Mutex<State>, Condvar), path: &Path) {
    let mut state = since.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match &*state {
            State::Done => return,
            State::Since(begun) if begun.elapsed() > HANG => {
                let mut stderr = std::io::stderr();
                let place = path.display();
                let _ = writeln!(
                    stderr,
                    "an input takes more than {HANG:?}: it is in {place}"
                );
                std::process::abort();
            }
            _ => {}
        }
        let waited = since.1.wait_timeout(state, Duration::from_secs(1));
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// The most memory that this process has ever used.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_on_disk_while_it_is_checked() {
        let guard = Guard::new("guard-test");
        guard.begin(b"long enough");
        guard.begin(b"short");
        assert_eq!(std::fs::read(&guard.path).unwrap(), b"short");
        guard.end();
        assert!(guard.memory > 0 && guard.grown().is_none());
        let path = guard.path.clone();
        drop(guard);
        assert!(!path.exists());
    }
}
