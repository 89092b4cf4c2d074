//! The commands for one machine of the README and of its page in the book, as they are written there and at the usual
//! places: in mounts and a network of their own, so that the machine's stay as they are.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test"
)]

mod interop;

use interop::podman::{image, settings};
use plexus_testkit::{Node, PLEXUS, Running, SHIM, bin};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// More than the commands of one text take.
const TIMEOUT: Duration = Duration::from_secs(120);
const PAGE: &str = "docs/src/install-standalone.md";
const PAGE_HEADING: &str = "## Start it, and run a container\n";
const README: &str = "README.md";
const README_HEADING: &str = "**On one machine**";

/// Directories of the machine that the commands write to; each is a copy, or empty, for the test.
const PRIVATE: &str = r#"
set -eu
for place in /etc /opt /var/lib /var/tmp /run /root; do
    mkdir -p "$SCRATCH$place"
done
cp -a /etc/. "$SCRATCH/etc/"
for place in /etc /opt /var/lib /var/tmp /run /root; do
    if [ -d "$place" ]; then mount --bind "$SCRATCH$place" "$place"; fi
done
mkdir -p /root /opt/cni/bin
export HOME=/root
# What is written takes effect a moment later; a person is no faster.
try() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        if "$@"; then return 0; fi
        sleep 1
    done
    echo "failed: $*" >&2
    return 1
}
podman import "$IMAGE" localhost/busybox
trap 'podman rm --force --all --time 0 || true; plexus down --force || true' EXIT
"#;

/// What must be true at the end.
const AFTER: &str = r#"
for place in /root/.kube/config /etc/plexus /var/lib/plexus /run/plexus /opt/cni/bin/plexus-cni; do
    if [ -e "$place" ]; then echo "$place is left" >&2; exit 1; fi
done
if ls /etc/cni/net.d | grep plexus; then echo "a configuration is left" >&2; exit 1; fi
"#;

/// One after the other: Podman's locks are the machine's.
#[test]
fn the_commands_work_as_written() {
    let interfaces = ["10.1.", "10.2.", "eth0", "eth1"];
    let described = [
        "blue",
        "red",
        "Container default/web\n",
        "its runtime, by the network's name (number 1 of 2)",
        "Network default/red, identity ",
        ", block 10.2.",
        "default via 169.254.1.1 onlink",
    ];
    run(PAGE, PAGE_HEADING, &[&interfaces[..], &described].concat());
    run(README, README_HEADING, &interfaces);
}

fn run(file: &str, heading: &str, wanted: &[&str]) {
    let node = Node::new();
    let commands = commands(file, heading);
    let count = |word: &str| commands.iter().filter(|one| one.starts_with(word)).count();
    assert!(count("plexus up") == 1 && count("podman run") == 1 && count("plexus down") == 1);
    let mut script = PRIVATE.to_owned();
    for command in &commands {
        let once = command.contains("<<END");
        let line = if once {
            command.clone()
        } else {
            format!("try {command}")
        };
        script += &format!(
            "echo 'now: {}'\n{line}\n",
            command.lines().next().unwrap().replace('\'', "")
        );
    }
    script += AFTER;
    settings(
        &node,
        Path::new("/opt/cni/bin"),
        Path::new("/etc/cni/net.d"),
    );
    let programs = node.file("programs");
    std::fs::create_dir_all(&programs).unwrap();
    for name in [PLEXUS, SHIM] {
        std::fs::copy(bin(name), programs.join(name)).unwrap();
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "bash", "-c", &script])
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("SCRATCH", node.file("scratch"))
        .env("IMAGE", image(&node))
        .env("CONTAINERS_CONF", node.file("containers.conf"))
        .env("STORAGE_DRIVER", "vfs")
        .env_remove("KUBECONFIG");
    let output = Running::start(node.ns(), file, command, Vec::new()).wait(TIMEOUT);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{file}: {printed}\n{error}");
    for expected in wanted {
        assert!(
            printed.contains(expected),
            "{file}: no {expected:?} in {printed}\n{error}"
        );
    }
}

/// The lines after the prompts of the first block after `heading`, without remarks.
fn commands(file: &str, heading: &str) -> Vec<String> {
    let this = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let text = std::fs::read_to_string(Path::new(&this).join("../..").join(file)).unwrap();
    let section = text.split(heading).nth(1).expect("the section is there");
    let block = section.split("```").nth(1).expect("it has a block");
    let mut found: Vec<String> = Vec::new();
    for line in block.lines().skip(1) {
        match line.strip_prefix("# ") {
            Some(line) => {
                let line = line.split("  # ").next().unwrap_or_default();
                found.push(line.trim_end().to_owned());
            }
            None => {
                let command = found.last_mut().expect("a command first");
                *command = format!("{command}\n{line}");
            }
        }
    }
    found
}
