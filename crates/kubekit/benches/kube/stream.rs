//! A stream of bytes over TCP: one side sends for a while, the other counts.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const CHUNK: usize = 128 * 1024;

/// Takes one connection and prints megabits per second, from the first byte to the last.
pub(crate) fn receive(address: &str) -> Result<()> {
    let listener =
        TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let (mut stream, _) = listener.accept().context("nobody came")?;
    let mut buffer = vec![0; CHUNK];
    let mut total = stream.read(&mut buffer).context("cannot read")?;
    let start = Instant::now();
    loop {
        match stream.read(&mut buffer).context("cannot read")? {
            0 => break,
            count => total += count,
        }
    }
    println!("{}", total as f64 * 8e-6 / start.elapsed().as_secs_f64());
    Ok(())
}

/// Sends for so many seconds; waits a little until somebody listens.
pub(crate) fn send(address: &str, seconds: &str) -> Result<()> {
    let seconds: f64 = seconds
        .parse()
        .with_context(|| format!("{seconds:?} seconds"))?;
    let mut stream = connect(address)?;
    let chunk = vec![7; CHUNK];
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        stream.write_all(&chunk).context("cannot send")?;
    }
    Ok(())
}

fn connect(address: &str) -> Result<TcpStream> {
    let end = Instant::now() + Duration::from_secs(5);
    let to = address
        .parse()
        .with_context(|| format!("{address:?} is no address"))?;
    loop {
        match TcpStream::connect_timeout(&to, Duration::from_secs(1)) {
            Err(error) if Instant::now() >= end => {
                return Err(error).with_context(|| format!("cannot reach {address}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
            Ok(stream) => return Ok(stream),
        }
    }
}
