//! Being asked to stop. Owns SIGTERM and SIGINT: blocked in every thread, waited for in one, so
//! that no handler ever runs in the middle of anything.

use crate::sys;
use std::io;

/// The signals that ask a process to stop, blocked.
#[derive(Debug)]
pub struct Signals(());

impl Signals {
    /// Blocks them for this thread and all that it will start: call it first.
    pub fn block() -> io::Result<Self> {
        sys::block_stop_signals()?;
        Ok(Self(()))
    }

    /// Waits for one; gives its number.
    pub fn wait(&self) -> io::Result<i32> {
        sys::wait_for_stop_signal()
    }
}
