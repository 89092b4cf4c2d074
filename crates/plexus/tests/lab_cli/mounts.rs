//! What `doctor` says of mounts that a container's author got wrong, each mistake made for real in a mount
//! namespace of its own. Nothing of it is seen outside.

use crate::doctor;
use plexus_testkit::{PLEXUS, bin};
use serde_json::Value;
use std::process::Command;

/// The checks that are made to fail here.
pub(crate) const CHECKS: &[&str] = &["mounts.netns", "mounts.routers", "mounts.sysctl"];

/// What is found after a script has set the mounts up. It has a `/run` of its own, which nobody shares, and runs the
/// examination as `"$@"`.
#[track_caller]
fn finds(script: &str, check: &str, verdict: &str, words: &str) {
    let alone = "mount -t tmpfs tmpfs /run && mkdir /run/netns /run/plexus";
    let script = format!("{alone} && {script}");
    let mut command = Command::new("unshare");
    // What lets a program know that it is in a container: processes of its own.
    command.args(["--pid", "--fork", "--mount-proc", "--mount"]);
    command.args(["--propagation", "private", "sh", "-ec", &script]);
    command.arg("sh").arg(bin(PLEXUS)).args(["doctor"]);
    command.args(["--no-api", "-o", "json", "--socket"]);
    let output = command.arg("/run/plexus/agent.sock").output().unwrap();
    let report = serde_json::from_slice::<Value>(&output.stdout);
    let report = report.unwrap_or_else(|error| panic!("{script}: {error}: {output:?}"));
    doctor::finds(&report, check, verdict, words);
}

#[test]
fn mounts_that_are_wrong() {
    mounts_that_do_not_propagate();
    sysctls_that_cannot_be_written();
    doctor::found(CHECKS);
}

fn mounts_that_do_not_propagate() {
    let (netns, routers) = ("mounts.netns", "mounts.routers");
    let private = r#""$@""#;
    finds(private, netns, "fail", "HostToContainer");
    finds(private, routers, "fail", "Bidirectional");
    // As HostToContainer makes it, and as Bidirectional does.
    let slave = r#"mount --make-shared /run; unshare --mount --propagation slave "$@""#;
    finds(slave, netns, "pass", "receives what the host mounts");
    finds(slave, routers, "fail", "die with this container");
    let shared = r#"mount --make-shared /run; "$@""#;
    finds(shared, netns, "pass", "receives what the host mounts");
    finds(shared, routers, "pass", "is shared with the host");
    let without = r#"rmdir /run/netns; "$@""#;
    finds(without, netns, "fail", "/run/netns is not there");
}

fn sysctls_that_cannot_be_written() {
    let read_only = r#"mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; "$@""#;
    finds(read_only, "mounts.sysctl", "fail", "privileged: true");
    finds(r#""$@""#, "mounts.sysctl", "pass", "can be written");
}
