//! Mounts: sysctls that can be written, and directories whose mounts are seen outside.

use super::{Check, Machine, Subject};
use plexus_kernel::mount::{in_container, mount_of};
use std::fs::OpenOptions;
use std::path::Path;

/// A sysctl that every routed network needs.
const SYSCTL: &str = "/proc/sys/net/ipv4/ip_forward";
/// Where runtimes pin pods' namespaces.
const NETNS: &str = "/run/netns";

pub(super) fn check(machine: &Machine) -> Vec<Check> {
    let socket_dir = machine.socket.parent().unwrap_or(Path::new("/run"));
    let seen = |path: &Path| {
        mount_of(path)
            .ok()
            .map(|found| (found.is_shared(), found.receives()))
    };
    let container = in_container();
    let netns = Path::new(NETNS);
    vec![
        sysctls(Path::new(SYSCTL)),
        pods(container, netns.is_dir().then(|| seen(netns)).flatten()),
        routers(
            container,
            socket_dir,
            socket_dir.is_dir().then(|| seen(socket_dir)).flatten(),
        ),
    ]
}

/// Whether a sysctl can be opened for writing; nothing is written.
pub(super) fn sysctls(path: &Path) -> Check {
    match OpenOptions::new().write(true).open(path) {
        Ok(_) => Check::pass(Subject::Sysctls, "sysctls can be written"),
        Err(error) => Check::fail(
            Subject::Sysctls,
            format!("cannot write {}: {error}", path.display()),
            "in a container: privileged: true, so that /proc/sys is not read-only",
        ),
    }
}

/// Whether pods' namespaces appear here: shared or receiving.
pub(super) fn pods(container: bool, seen: Option<(bool, bool)>) -> Check {
    let name = Subject::PodNamespaces;
    match (container, seen) {
        (false, _) => Check::pass(name, "not in a container: pods' namespaces are seen"),
        (true, Some((shared, receives))) if shared || receives => {
            Check::pass(name, format!("{NETNS} receives what the host mounts"))
        }
        (true, Some(_)) => Check::fail(
            name,
            format!(
                "{NETNS} does not receive what the host mounts: new pods' namespaces are empty files here"
            ),
            "write mountPropagation: HostToContainer at its volumeMount",
        ),
        (true, None) => Check::fail(
            name,
            format!("{NETNS} is not there"),
            "mount it from the host, with mountPropagation: HostToContainer",
        ),
    }
}

/// Whether what is pinned beside the socket outlives a container.
pub(super) fn routers(container: bool, dir: &Path, seen: Option<(bool, bool)>) -> Check {
    let name = Subject::RouterMounts;
    match (container, seen) {
        (false, _) => Check::pass(name, "not in a container: routers stay when the agent ends"),
        (true, Some((true, _))) => {
            Check::pass(name, format!("{} is shared with the host", dir.display()))
        }
        (true, _) => Check::fail(
            name,
            format!(
                "{} is not shared with the host: routers of overlay networks die with this container",
                dir.display()
            ),
            "write mountPropagation: Bidirectional at its volumeMount, with privileged: true",
        ),
    }
}
