//! What the tests with programs that nobody here wrote have in common: where those programs are,
//! a node that can run them, calls of a plugin, and `cnitool` with a cache of its own.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod podman;

use plexus_testkit::{Agent, CniOutput, NetNs, Node, Pod, Running, SHIM, bin, within};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Longer than any of them takes.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// Where `cnitool` caches results, whatever it is told.
const CACHE: &str = "/var/lib/cni";
/// Where `tuning` keeps what it changed.
const BACKUPS: &str = "/run/cni";

/// The directory with the CNI project's own plugins.
pub(crate) fn plugins() -> PathBuf {
    found("PLEXUS_REF_PLUGINS")
}

/// The `cnitool` program.
pub(crate) fn cnitool() -> PathBuf {
    found("PLEXUS_CNITOOL")
}

/// A node whose agent can delegate to the CNI project's plugins, and whose plugin directory has
/// ours with the address of its agent beside it.
pub(crate) fn node() -> Node {
    let node = Node::new();
    for entry in std::fs::read_dir(plugins()).unwrap().flatten() {
        let link = node.delegate_bin().join(entry.file_name());
        symlink(entry.path(), link).unwrap();
    }
    std::fs::copy(bin(SHIM), node.cni_bin().join(SHIM)).unwrap();
    let socket = node.socket().to_string_lossy().into_owned();
    std::fs::write(node.cni_bin().join("plexus-cni.socket"), socket).unwrap();
    node
}

/// Executes one of the CNI project's plugins for a container, as a runtime does.
pub(crate) fn execute(
    node: &Node,
    plugin: &str,
    verb: &str,
    (container, netns, ifname): (&str, &str, &str),
    args: &str,
    config: &Value,
) -> CniOutput {
    let mut command = Command::new(plugins().join(plugin));
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", container)
        .env("CNI_NETNS", netns)
        .env("CNI_IFNAME", ifname)
        .env("CNI_ARGS", args)
        .env("CNI_PATH", plugins());
    let what = format!("{plugin} {verb}");
    let running = Running::start(node.ns(), &what, command, config.to_string().into_bytes());
    CniOutput::new(&running.wait(COMMAND_TIMEOUT))
}

/// `cnitool` on a node, with the node's conflists and a cache that belongs to the node.
#[derive(Debug)]
pub(crate) struct Cnitool<'n> {
    node: &'n Node,
    env: BTreeMap<String, String>,
}

impl<'n> Cnitool<'n> {
    /// Finds our plugin first, then the CNI project's.
    pub(crate) fn on(node: &'n Node) -> Self {
        let path = format!("{}:{}", node.cni_bin().display(), plugins().display());
        let conf = node.cni_conf().to_string_lossy().into_owned();
        let env = [
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("CNI_PATH", path),
            ("NETCONFPATH", conf),
        ];
        Self {
            node,
            env: env.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    /// Sets a variable: CAP_ARGS, CNI_ARGS, CNI_IFNAME.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Writes the configuration of a network.
    pub(crate) fn network(&self, conflist: &Value) {
        let name = conflist["name"].as_str().unwrap();
        let file = self.node.cni_conf().join(format!("{name}.conflist"));
        std::fs::write(file, format!("{conflist:#}")).unwrap();
    }

    /// Runs a verb. It has no option for the place of its cache, nor has `tuning` for its backups,
    /// so these are mounted over.
    pub(crate) fn run(&self, verb: &str, network: &str, pod: &Pod<'_>) -> CniOutput {
        let (cache, backups) = (
            self.node.file("cnitool-cache"),
            self.node.file("cnitool-run"),
        );
        for dir in [
            &cache,
            &backups,
            &PathBuf::from(CACHE),
            &PathBuf::from(BACKUPS),
        ] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let script = format!(
            "mount --bind \"$1\" {CACHE}; mount --bind \"$2\" {BACKUPS}; shift 2; exec \"$@\""
        );
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-ec", &script, "sh"])
            .args([cache, backups])
            .arg(cnitool())
            .args([verb, network, &pod.netns()])
            .env_clear()
            .envs(&self.env);
        let what = format!("cnitool {verb} {network}");
        CniOutput::new(
            &Running::start(self.node.ns(), &what, command, Vec::new()).wait(COMMAND_TIMEOUT),
        )
    }

    /// The files of its cache.
    pub(crate) fn cached(&self) -> Vec<String> {
        let dir = self.node.file("cnitool-cache/results");
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }
}

/// Connects from one namespace to a listener in another: the address that the listener sees, if
/// a text gets there and back.
pub(crate) fn connect(
    from: &NetNs,
    to: &NetNs,
    listen: SocketAddr,
    dial: SocketAddr,
) -> Option<IpAddr> {
    let (timeout, over) = (Duration::from_secs(4), AtomicBool::new(false));
    // A child that another test has forked and that has not yet executed its program still holds the listener of the
    // connection before this one.
    let mut listener = None;
    within(timeout, || {
        listener = to.enter(|| TcpListener::bind(listen)).ok();
        listener.is_some()
    });
    let listener = listener.expect("the address is free");
    listener.set_nonblocking(true).unwrap();
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let mut accepted = None;
            within(2 * timeout, || {
                accepted = listener.accept().ok();
                accepted.is_some() || over.load(SeqCst)
            });
            let (mut stream, peer) = accepted?;
            stream.set_nonblocking(false).ok()?;
            echo(&mut stream, timeout).then_some(peer.ip())
        });
        let asked = from.enter(|| {
            let mut stream = TcpStream::connect_timeout(&dial, timeout).ok()?;
            stream.write_all(b"hello").ok()?;
            stream.set_read_timeout(Some(timeout)).ok()?;
            let mut text = [0; 5];
            stream.read_exact(&mut text).ok()?;
            (&text == b"hello").then_some(())
        });
        over.store(true, SeqCst);
        answering.join().ok().flatten().filter(|_| asked.is_some())
    })
}

fn echo(stream: &mut TcpStream, timeout: Duration) -> bool {
    let mut text = [0; 5];
    stream.set_read_timeout(Some(timeout)).is_ok()
        && stream.read_exact(&mut text).is_ok()
        && stream.write_all(&text).is_ok()
}

/// The names of the links of a namespace, sorted.
pub(crate) fn links(ns: &NetNs) -> Vec<String> {
    let text = ns.run("ip", &["-j", "link"]);
    let links: Value = serde_json::from_str(&text).unwrap();
    let name = |link: &Value| link["ifname"].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<String> = links.as_array().unwrap().iter().map(name).collect();
    names.sort();
    names
}

/// What the agent's journal has. A question may go unanswered: a read with a time limit is
/// interrupted now and then even where nobody sends signals.
pub(crate) fn attachments(agent: &Agent<'_>) -> Vec<Value> {
    let mut list = None;
    within(COMMAND_TIMEOUT, || {
        list = agent.get("/attachments").map(|answer| answer.json());
        list.is_some()
    });
    let list = list.expect("the agent answers");
    list.as_array().expect("a list").clone()
}

/// The addresses in a result, without prefix length.
pub(crate) fn addresses(result: &Value) -> Vec<IpAddr> {
    let ips = result["ips"].as_array().cloned().unwrap_or_default();
    let bare = |ip: &Value| ip["address"].as_str()?.split('/').next()?.parse().ok();
    ips.iter().filter_map(bare).collect()
}

fn found(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).unwrap_or_else(|| {
        panic!("{variable} is not set: run make test, or eval \"$(cargo xtask env)\" first")
    });
    let path = PathBuf::from(path);
    assert!(
        path.exists(),
        "{variable}: no {}: run make setup",
        path.display()
    );
    path
}
