//! The API server's door to the caller's network namespace: listens on the caller's loopback and
//! connects inside the control plane's namespace. A process of its own, as long as the lab lives.

use crate::layout::{API_PORT, Layout};
use crate::process::{self, Start};
use crate::wait;
use anyhow::{Context, Result, bail};
use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// Starts the relay, and gives the port on which it listens.
pub(crate) fn start(layout: &Layout) -> Result<u16> {
    let program = kubelab()?.display().to_string();
    let state = layout.state().display().to_string();
    let argv = [program, "relay".to_owned(), state];
    process::start(layout, "relay", Start::Direct, &argv)?;
    wait::until("the relay", Duration::from_secs(10), || {
        let text = fs::read_to_string(port_file(layout))?;
        Ok(text.trim().parse().ok())
    })
}

/// The relay itself; returns only with an error.
pub fn serve(layout: &Layout) -> Result<()> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    let port = listener.local_addr().context("no port")?.port();
    let path = layout.namespace_path("cp");
    let namespace = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    // The listener stays where it was made; what is connected from now on is inside.
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .with_context(|| format!("cannot enter {}", path.display()))?;
    let file = port_file(layout);
    fs::write(&file, port.to_string())
        .with_context(|| format!("cannot write {}", file.display()))?;
    loop {
        let (client, _) = listener.accept().context("cannot accept")?;
        std::thread::spawn(move || join(client));
    }
}

/// Carries bytes both ways until one side ends. A server that is down shows as a closed connection.
fn join(client: TcpStream) {
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, API_PORT)) else {
        return;
    };
    let (Ok(from_client), Ok(to_server)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    for stream in [&client, &server] {
        // Only costs time if it fails.
        let _ = stream.set_nodelay(true);
    }
    std::thread::spawn(move || carry(from_client, to_server));
    carry(server, client);
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    // However it ends, this direction is over.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn port_file(layout: &Layout) -> PathBuf {
    layout.state().join("run/relay.port")
}

/// This program, or the one beside the test that we are part of.
fn kubelab() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let beside = own
        .ancestors()
        .skip(1)
        .take(3)
        .map(|dir| dir.join("kubelab"));
    if let Some(found) = beside.into_iter().find(|path| path.is_file()) {
        return Ok(found);
    }
    bail!(
        "no kubelab beside {}: `cargo build -p plexus-kubekit` makes it",
        own.display()
    )
}
