//! What a request comes in by: a unix socket, or a TCP connection from this machine.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A stream whose waiting can be bounded, and whose sending can be ended.
pub(crate) trait Connection: Read + Write {
    /// How long a read may wait.
    fn read_within(&self, limit: Duration) -> Result<()>;
    /// How long a write may wait.
    fn write_within(&self, limit: Duration) -> Result<()>;
    /// Nothing more is sent.
    fn end(&self) -> Result<()>;
}

impl Connection for UnixStream {
    fn read_within(&self, limit: Duration) -> Result<()> {
        self.set_read_timeout(Some(limit))
    }

    fn write_within(&self, limit: Duration) -> Result<()> {
        self.set_write_timeout(Some(limit))
    }

    fn end(&self) -> Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Connection for TcpStream {
    fn read_within(&self, limit: Duration) -> Result<()> {
        self.set_read_timeout(Some(limit))
    }

    fn write_within(&self, limit: Duration) -> Result<()> {
        self.set_write_timeout(Some(limit))
    }

    fn end(&self) -> Result<()> {
        self.shutdown(Shutdown::Write)
    }
}
