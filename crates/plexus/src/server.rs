//! `plexus server`: the embedded API by itself, until it is asked to stop.

use crate::kinds::{self, KindValidator};
use crate::kubernetes::NAMESPACE;
use crate::log::{self, LogFlags};
use anyhow::Context;
use clap::Args;
use plexus_embedded::{Options, Server};
use plexus_kernel::{Netns, Signals};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default address of the API.
pub(crate) const LISTEN: &str = "127.0.0.1:7443";

/// The flags of `plexus server`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Directory of the store, the certificates and the kubeconfig; one server per directory.
    #[arg(long, default_value = "/var/lib/plexus/server")]
    dir: PathBuf,
    /// Where TLS is spoken; port 0 takes a free one. The kubeconfig has what it became.
    #[arg(long, default_value = LISTEN)]
    listen: SocketAddr,
    /// Socket for root and for whoever runs the server.
    #[arg(long, default_value = "/run/plexus/api.sock")]
    unix: PathBuf,
    /// Further names and addresses by which clients call the server.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// Speak TLS in another network namespace too, as /run/netns/NAME=ADDRESS:PORT.
    #[arg(long = "listen-in", value_name = "NETNS=ADDRESS", value_parser = NetnsAddress::parse, hide = true)]
    elsewhere: Vec<NetnsAddress>,
    /// Keep a pod that is deleted on its node until whoever runs pods deletes it without grace.
    #[arg(long, hide = true)]
    pods_wait: bool,
    #[command(flatten)]
    log: LogFlags,
}

/// An address in another network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NetnsAddress {
    netns: PathBuf,
    address: SocketAddr,
}

impl NetnsAddress {
    fn parse(text: &str) -> Result<Self, String> {
        let parts = text
            .split_once('=')
            .filter(|(netns, _)| netns.starts_with('/'));
        let read = parts.and_then(|(netns, address)| {
            Some(Self {
                netns: netns.into(),
                address: address.parse().ok()?,
            })
        });
        read.ok_or_else(|| "write /run/netns/NAME=ADDRESS:PORT".to_owned())
    }

    fn listen(&self) -> anyhow::Result<TcpListener> {
        let Self { netns, address } = self;
        let bound = Netns::open(netns).and_then(|netns| netns.enter(|| TcpListener::bind(address)));
        let failed = || format!("cannot listen on {address} in {}", netns.display());
        bound.with_context(failed)?.with_context(failed)
    }
}

/// Serves until it is asked to stop.
pub(crate) fn run(flags: Flags) -> anyhow::Result<()> {
    // Before there is any thread, so that all of them have it so.
    let signals = Signals::block().context("cannot block signals")?;
    log::start(&flags.log)?;
    let listeners = flags.elsewhere.iter().map(NetnsAddress::listen);
    let listeners = listeners.collect::<anyhow::Result<_>>()?;
    let server = start(ServerOptions {
        dir: flags.dir,
        listen: flags.listen,
        listeners,
        unix: flags.unix,
        names: flags.names,
        pods_wait: flags.pods_wait,
    })?;
    let signal = signals.wait().context("cannot wait for signals")?;
    tracing::info!(signal, "stopping");
    server.stop();
    Ok(())
}

/// Where a server keeps its files and where it listens.
#[derive(Debug)]
pub(crate) struct ServerOptions {
    pub(crate) dir: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) listeners: Vec<TcpListener>,
    pub(crate) unix: PathBuf,
    pub(crate) names: Vec<String>,
    /// Whether somebody runs pods, and ends them.
    pub(crate) pods_wait: bool,
}

/// Starts a server with our kinds.
pub(crate) fn start(server: ServerOptions) -> anyhow::Result<Server> {
    make_parent(&server.unix)?;
    Server::start(options(server)?).context("the embedded API does not start")
}

fn options(server: ServerOptions) -> anyhow::Result<Options> {
    let mut options = Options::new(server.dir, kinds::all()?);
    options.listen = server.listen;
    options.listeners = server.listeners;
    options.unix = Some(server.unix);
    options.names = server.names;
    options.namespaces = vec![NAMESPACE.to_owned()];
    options.validator = Arc::new(KindValidator::new()?);
    options.pods_wait = server.pods_wait;
    Ok(options)
}

/// Makes the directory that a file will be in.
pub(crate) fn make_parent(path: &Path) -> anyhow::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent)
        .with_context(|| format!("cannot make the directory {}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    /// Nobody on this machine deletes a pod a second time, unless there is a lab's keeper.
    #[test]
    fn pods_wait_only_if_asked() {
        for (line, waits) in [(&["server"][..], false), (&["server", "--pods-wait"], true)] {
            let flags = <Line as clap::Parser>::parse_from(line).flags;
            assert_eq!(flags.pods_wait, waits);
            let server = ServerOptions {
                dir: "/nowhere".into(),
                listen: flags.listen,
                listeners: Vec::new(),
                unix: flags.unix,
                names: Vec::new(),
                pods_wait: flags.pods_wait,
            };
            assert_eq!(options(server).unwrap().pods_wait, waits);
        }
    }

    #[test]
    fn another_namespace_is_a_path_and_an_address() {
        let read = NetnsAddress::parse("/run/netns/x=10.0.0.1:6443").unwrap();
        assert_eq!(read.address.port(), 6443);
        assert_eq!(read.netns, Path::new("/run/netns/x"));
        for text in [
            "",
            "x=10.0.0.1:1",
            "/x",
            "/x=10.0.0.1",
            "=10.0.0.1:1",
            "/x=name:1",
        ] {
            assert!(NetnsAddress::parse(text).is_err(), "{text}");
        }
    }
}
