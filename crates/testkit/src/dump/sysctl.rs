//! The sysctls of the thread's namespace that our work may touch.

use std::path::Path;

const TREES: &[&str] = &["net/ipv4/conf", "net/ipv6/conf"];
const FILES: &[&str] = &["net/ipv4/ip_forward"];

/// `sysctl net/ipv4/conf/eth0/rp_filter=0`, and so on for every interface.
pub(super) fn lines() -> Vec<String> {
    let root = Path::new("/proc/sys");
    let mut lines = Vec::new();
    for tree in TREES {
        for interface in std::fs::read_dir(root.join(tree))
            .into_iter()
            .flatten()
            .flatten()
        {
            for file in std::fs::read_dir(interface.path())
                .into_iter()
                .flatten()
                .flatten()
            {
                push(root, &file.path(), &mut lines);
            }
        }
    }
    for file in FILES {
        push(root, &root.join(file), &mut lines);
    }
    lines
}

/// Some cannot be read (`stable_secret`), and some are gone by now.
fn push(root: &Path, file: &Path, lines: &mut Vec<String>) {
    if let (Ok(value), Ok(key)) = (std::fs::read_to_string(file), file.strip_prefix(root)) {
        lines.push(format!("sysctl {}={}", key.display(), value.trim()));
    }
}
