//! Being asked to stop. Owns SIGTERM, SIGINT and SIGHUP, which comes when a terminal is closed: blocked in every
//! thread, waited for in one, so that no handler ever runs in the middle of anything. Whoever was started with SIGHUP
//! ignored (`nohup`) goes on ignoring it.

use crate::sys;
use std::io;

/// The signals that ask a process to stop, blocked; with what was blocked before.
#[derive(Debug)]
pub struct Signals(sys::Mask);

impl Signals {
    /// Blocks them for this thread and all that it will start: call it first.
    pub fn block() -> io::Result<Self> {
        sys::block_stop_signals().map(Self)
    }

    /// Lets those reach the calling thread again that whoever started us did not keep away.
    pub fn unblock(self) -> io::Result<()> {
        self.0.restore()
    }

    /// Waits for one; gives its number.
    pub fn wait(&self) -> io::Result<i32> {
        sys::wait_for_stop_signal()
    }
}
