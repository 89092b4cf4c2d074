//! What an error number most likely means for a plan: the half of a message that a person needs.

use plexus_core::plan::{Link, LinkKind, Refusal, Stacked};

/// The likely cause when a link could not be made.
pub(crate) fn create(link: &Link, errno: i32) -> String {
    if let LinkKind::Stacked(stacked) = &link.kind
        && let Some(why) =
            refusal(errno).and_then(|refusal| (stacked.kind()?.refusal)(stacked, refusal))
    {
        return format!("{} cannot carry it: {why}", stacked.parent.name);
    }
    match (errno, &link.kind) {
        (libc::EEXIST, LinkKind::Stacked(_)) => {
            format!(
                "an interface called {} exists already in the namespace",
                link.name
            )
        }
        (libc::EEXIST, LinkKind::Veth(end)) => format!(
            "an interface called {} exists already in the namespace, or {} on the node",
            link.name, end.name
        ),
        (libc::ENODEV, LinkKind::Stacked(Stacked { parent, .. })) => {
            format!(
                "its parent {} (index {}) is gone from the node",
                parent.name, parent.index
            )
        }
        (libc::ENODEV, LinkKind::Veth(end)) => match &end.bridge {
            Some(bridge) => format!("its bridge {bridge} is gone from the node"),
            None => "the kernel has no veth".into(),
        },
        (libc::EEXIST, LinkKind::Moved(device)) => format!(
            "an interface called {}, or by another name of {}, exists already in the namespace",
            link.name, device.name
        ),
        (libc::ENODEV, LinkKind::Moved(device)) => format!(
            "{} (index {}) is gone from the node",
            device.name, device.index
        ),
        (libc::EINVAL | libc::EOPNOTSUPP, LinkKind::Moved(device)) => format!(
            "the kernel does not move {} between namespaces, or not with that MAC or MTU",
            device.name
        ),
        (libc::EOPNOTSUPP, kind) => {
            format!(
                "the kernel has no {}: load or build that module",
                kind.name()
            )
        }
        (libc::EADDRINUSE, _) => "its MAC address is in use on the same parent".into(),
        _ => general(errno),
    }
}

fn refusal(errno: i32) -> Option<Refusal> {
    match errno {
        libc::EBUSY => Some(Refusal::Busy),
        libc::EEXIST => Some(Refusal::Exists),
        libc::EINVAL => Some(Refusal::Invalid),
        libc::EOPNOTSUPP => Some(Refusal::Unsupported),
        _ => None,
    }
}

/// The likely cause when the way to a pod's address exists already.
pub(crate) const TAKEN: &str = "that address leads to another interface already: another pod has it, or \
     somebody else's route; remove that, or ask for another address";

/// The likely cause when anything else was refused.
pub(crate) fn general(errno: i32) -> String {
    match errno {
        libc::EPERM | libc::EACCES => "this needs CAP_NET_ADMIN in both namespaces".into(),
        libc::EEXIST => "it exists already".into(),
        libc::ENODEV => "the interface is gone".into(),
        libc::ENETUNREACH | libc::EHOSTUNREACH => "the next hop is not on the link".into(),
        libc::ENETDOWN => "the interface is down, or the link that it is on".into(),
        libc::EADDRINUSE => "another interface on the same parent has it".into(),
        libc::EOPNOTSUPP | libc::EAFNOSUPPORT => "the kernel has no support for it".into(),
        libc::ENOBUFS | libc::ENOMEM => "the kernel is short of memory".into(),
        libc::EINVAL | libc::ERANGE => "the kernel does not accept a value in it".into(),
        libc::ESRCH | libc::ENOENT => "it does not exist".into(),
        _ => "see the cause".into(),
    }
}
