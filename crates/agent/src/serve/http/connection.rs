//! What a request comes in by: a unix socket, or a TCP connection from this machine.

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{Shutdown, shutdown};
use std::io::{Read, Result, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// A stream whose waiting can be bounded, and whose sending can be ended.
pub(crate) trait Connection: Read + Write + AsFd {
    /// How long a read may wait.
    fn read_within(&self, limit: Duration) -> Result<()> {
        Ok(set_socket_timeout(self, Timeout::Recv, Some(limit))?)
    }

    /// How long a write may wait.
    fn write_within(&self, limit: Duration) -> Result<()> {
        Ok(set_socket_timeout(self, Timeout::Send, Some(limit))?)
    }

    /// Nothing more is sent.
    fn end(&self) -> Result<()> {
        Ok(shutdown(self, Shutdown::Write)?)
    }
}

impl<T: Read + Write + AsFd> Connection for T {}
