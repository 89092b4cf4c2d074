//! The first process of a node, and the script that makes the node's namespaces around it.

use crate::layout::Layout;
use crate::process::{self, Start};
use crate::{underlay, wait};
use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// `$1`: the node's directory, `$2`: its name, `$3`: what to become. Mounts are private while they
/// are made and shared afterwards, as kubelet expects. A new sysfs shows the node's own interfaces;
/// the cgroup trees have to be carried over to it. What the machine itself has in the directories of CNI
/// and CDI is none of the node's business.
const SCRIPT: &str = r#"
set -e
echo "$2" > /proc/sys/kernel/hostname
mkdir -p "$1/cgroup"
mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys
mount --move "$1/cgroup" /sys/fs/cgroup
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/etc-work" /etc
for dir in etc/cni etc/cdi etc/plexus var/lib var/log opt run; do mount --bind "$1/fs/$dir" "/$dir"; done
mkdir -p /run/lock /run/netns
mount --make-rshared /
: > "$1/ready"
exec "$3"
"#;

/// The name under which the holder's id is kept.
pub(super) fn name(node: &str) -> String {
    format!("{node}-holder")
}

/// Makes the namespaces and waits until they are complete.
pub(super) fn start(layout: &Layout, node: &str) -> Result<()> {
    let dir = layout.node(node);
    let ready = dir.join("ready");
    if ready.exists() {
        fs::remove_file(&ready).with_context(|| format!("cannot remove {}", ready.display()))?;
    }
    let mut argv = underlay::inside(layout, node);
    let make = [
        "unshare",
        "--mount",
        "--uts",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ];
    argv.extend(make.map(str::to_owned));
    argv.extend(["sh", "-c", SCRIPT, "sh"].map(str::to_owned));
    argv.extend([
        dir.display().to_string(),
        node.to_owned(),
        layout.pause().display().to_string(),
    ]);
    let name = name(node);
    process::start(layout, &name, Start::Guided, &argv)?;
    wait::until(
        &format!("namespaces of {node}"),
        Duration::from_secs(10),
        || Ok(ready.exists().then_some(())),
    )
    .with_context(|| process::tail(&layout.log(&name)))
}
