//! Whether this process may do what an agent does.

use super::{Check, Subject};

/// Bits of the capabilities that an agent uses, and what for.
const NEEDED: [(u32, &str, &str); 4] = [
    (12, "CAP_NET_ADMIN", "links, addresses, routes, nftables"),
    (21, "CAP_SYS_ADMIN", "entering namespaces, pinning routers"),
    (19, "CAP_SYS_PTRACE", "seeing other processes' namespaces"),
    (18, "CAP_SYS_CHROOT", "executing plugins in the host's root"),
];

pub(super) fn check() -> Vec<Check> {
    match std::fs::read_to_string("/proc/self/status") {
        Ok(status) => judge(&status),
        Err(error) => vec![Check::fail(
            Subject::Root,
            format!("cannot read /proc/self/status: {error}"),
            "mount /proc: nothing here works without it",
        )],
    }
}

/// By the text of `/proc/self/status`.
pub(super) fn judge(status: &str) -> Vec<Check> {
    let field = |name: &str| {
        let mut lines = status.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().map(str::trim)
    };
    let user = field("Uid:").and_then(|uids| uids.split_whitespace().nth(1));
    if user != Some("0") {
        return vec![Check::fail(
            Subject::Root,
            format!("this is user {}", user.unwrap_or("unknown")),
            "run it as root: what it looks at is root's",
        )];
    }
    let held = field("CapEff:").and_then(|text| u64::from_str_radix(text, 16).ok());
    let held = held.unwrap_or_default();
    let missing: Vec<String> = NEEDED
        .iter()
        .filter(|(bit, _, _)| held & (1 << bit) == 0)
        .map(|(_, name, what)| format!("{name} ({what})"))
        .collect();
    if missing.is_empty() {
        return vec![Check::pass(
            Subject::Root,
            "root, with every capability that is needed",
        )];
    }
    vec![Check::fail(
        Subject::Capabilities,
        format!("root without {}", missing.join(", ")),
        "in a container: privileged: true; as a service: remove CapabilityBoundingSet",
    )]
}
