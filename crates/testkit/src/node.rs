//! A node: a network namespace with an uplink, and the directories that an agent needs.

use crate::netns::{PREFIX, keep_requested};
use crate::process::run;
use crate::{Dump, DumpBuilder, FAKE, Journal, NetNs, Pod, delegate, failed, fake_ipam};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The uplink's name on the node.
const UPLINK: &str = "eth1";

/// A node, its outside, and its directory.
#[derive(Debug)]
pub struct Node {
    ns: NetNs,
    outside: NetNs,
    name: String,
    dir: PathBuf,
    mounts: Mutex<Vec<PathBuf>>,
}

impl Node {
    /// A fresh node: `lo` and `eth1` up; `eth1` has 192.0.2.2/24 and 2001:db8::2/64 and default
    /// routes to the outside's 192.0.2.1 and 2001:db8::1. The fake plugins are installed.
    pub fn new() -> Self {
        let name = fresh_name();
        let ns = NetNs::create(&name);
        let outside = NetNs::create(&format!("{name}-out"));
        ns.ip(&format!(
            "link set lo up\n\
             link add eth1 address 02:00:5e:00:00:02 type veth peer name out0 address \
             02:00:5e:00:00:01 netns {name}-out\n\
             address add 192.0.2.2/24 dev eth1\n\
             address add 2001:db8::2/64 dev eth1 nodad\n\
             link set eth1 up\n\
             route add default via 192.0.2.1\n"
        ));
        outside.ip("link set lo up\n\
             address add 192.0.2.1/24 dev out0\n\
             address add 2001:db8::1/64 dev out0 nodad\n\
             link set out0 up\n");
        ns.run(
            "ip",
            &[
                "-6",
                "route",
                "add",
                "default",
                "via",
                "2001:db8::1",
                "dev",
                UPLINK,
            ],
        );
        // A fresh namespace takes this over from the machine, which may forward or not.
        ns.sh("cd /proc/sys/net; echo 0 >ipv4/ip_forward; echo 0 >ipv6/conf/all/forwarding");
        Self::with(ns, outside, name)
    }

    /// The machine itself is the node: only for one that is thrown away after the test. It has no uplink.
    pub fn of_machine() -> Self {
        let name = fresh_name();
        let ns = NetNs::of_machine(&name);
        let outside = NetNs::create(&format!("{name}-out"));
        Self::with(ns, outside, name)
    }

    fn with(ns: NetNs, outside: NetNs, name: String) -> Self {
        let dir = std::env::temp_dir().join(&name);
        let node = Self {
            ns,
            outside,
            name,
            dir,
            mounts: Mutex::new(Vec::new()),
        };
        for dir in [
            node.state_dir(),
            node.cni_bin(),
            node.cni_conf(),
            node.delegate_bin(),
            node.pools(),
            node.fake_dir(),
        ] {
            std::fs::create_dir_all(&dir).expect("makes the node's directories");
        }
        delegate::install(&node.delegate_bin().join(FAKE));
        fake_ipam::install(&node);
        node
    }

    /// Its namespace.
    pub fn ns(&self) -> &NetNs {
        &self.ns
    }

    /// The namespace at the other end of the uplink.
    pub fn outside(&self) -> &NetNs {
        &self.outside
    }

    /// Its name, and the name of its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The agent's socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("agent.sock")
    }

    /// Where the shim leaves DELs while the agent is away.
    pub fn queue(&self) -> PathBuf {
        self.dir.join("agent.sock.queue")
    }

    /// The agent's state directory.
    pub fn state_dir(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// Where the agent would install itself.
    pub fn cni_bin(&self) -> PathBuf {
        self.dir.join("bin")
    }

    /// Where the agent would write its conflist.
    pub fn cni_conf(&self) -> PathBuf {
        self.dir.join("net.d")
    }

    /// Where plugins to delegate to are; has the fake one.
    pub fn delegate_bin(&self) -> PathBuf {
        self.dir.join("delegates")
    }

    /// Changes the plugin to delegate to, as a new file: the old one may be running.
    pub fn edit_delegate(&self, from: &str, to: &str) {
        let plugin = self.delegate_bin().join(crate::FAKE);
        let script = std::fs::read_to_string(&plugin).expect("reads the fake plugin");
        assert!(script.contains(from), "the fake plugin has no {from:?}");
        std::fs::remove_file(&plugin).expect("removes the fake plugin");
        crate::delegate::write(&plugin, &script.replace(from, to));
    }

    /// `dataDir` for host-local.
    pub fn pools(&self) -> PathBuf {
        self.dir.join("pools")
    }

    /// Where the fake plugin keeps its files.
    pub fn fake_dir(&self) -> PathBuf {
        self.dir.join("fake")
    }

    /// The agent's log.
    pub fn log(&self) -> PathBuf {
        self.dir.join("agent.log")
    }

    /// A path in the node's own directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The journal, for looking.
    pub fn journal(&self) -> Journal {
        Journal::at(&self.state_dir().join("journal.db"))
    }

    /// A container without any interface but `lo` (down).
    pub fn pod(&self, container: &str) -> Pod<'_> {
        Pod::new(self, container)
    }

    /// Full dump of the node and of a pod: namespaces, pools, journal.
    pub fn dump(&self, pod: Option<&Pod<'_>>) -> Dump {
        let mut builder = DumpBuilder::new().namespace("node", &self.ns);
        if let Some(pod) = pod {
            builder = builder.namespace("pod", pod.ns());
        }
        builder
            .directory("pools", &self.pools())
            .directory("fake", &self.fake_dir())
            .directory("queue", &self.queue())
            .journal(&self.journal())
            .take()
    }

    /// The dump of the node's namespace and pools only.
    pub fn dump_kernel(&self, pod: Option<&Pod<'_>>) -> Dump {
        let mut builder = DumpBuilder::new().namespace("node", &self.ns);
        if let Some(pod) = pod {
            builder = builder.namespace("pod", pod.ns());
        }
        builder
            .directory("pools", &self.pools())
            .directory("fake", &self.fake_dir())
            .take()
    }

    /// Mounts a small file system over a directory of the node.
    pub fn small_disk(&self, dir: &Path, bytes: u64) {
        let path = dir.to_string_lossy().into_owned();
        run(
            "mount",
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={bytes}"),
                "tmpfs",
                &path,
            ],
        );
        self.mounts
            .lock()
            .expect("not poisoned")
            .push(dir.to_owned());
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            explain(self);
            failed::save(&self.name, &self.dir, &["*.log", "state", "queue", "pools"]);
        }
        if keep_requested() {
            return;
        }
        for mount in self
            .mounts
            .lock()
            .into_iter()
            .flat_map(|mounts| mounts.clone())
        {
            let _ = std::process::Command::new("umount")
                .arg("-l")
                .arg(mount)
                .status();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn fresh_name() -> String {
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    format!("{PREFIX}{}-{number}", std::process::id())
}

/// Says where to look, and what the agent said last.
fn explain(node: &Node) {
    let log = std::fs::read_to_string(node.log()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let last = &lines[lines.len().saturating_sub(25)..];
    if keep_requested() {
        println!("enter the node:  ip netns exec {} bash", node.name);
        println!(
            "its directory:   {}  (agent.log, state/journal.db)",
            node.dir.display()
        );
    } else {
        println!(
            "to keep the node {} and its directory: PLEXUS_TEST_KEEP=1",
            node.name
        );
    }
    println!("the agent said last:\n    {}", last.join("\n    "));
}
