//! The differences that are meant: each turns a line of ours into the reference's. What is masked
//! in [`facts`](crate::facts) (names on the node, MACs, indices) differs by nature.

use std::sync::atomic::{AtomicUsize, Ordering};

struct Difference {
    why: &'static str,
    /// The reference's line in place of ours; none if it has no such line.
    theirs: fn(&str) -> Option<String>,
    seen: AtomicUsize,
}

static DIFFERENCES: [Difference; 6] = [
    of(
        "routes carry our protocol number, so that ours can be told from others'",
        |line| {
            line.replace(r#""protocol":"80""#, r#""protocol":"boot""#)
                .into()
        },
    ),
    of(
        "mtu and advmss of a route are applied; the reference only repeats them in its result",
        |line| match (line.find(r#""metrics":[{"#), line.find("}],")) {
            (Some(from), Some(to)) if line.starts_with("pod route") => {
                format!("{}{}", &line[..from], &line[to + 3..]).into()
            }
            _ => line.to_owned().into(),
        },
    ),
    of(
        "links carry a mark, by which they are found and removed together: an alias",
        |line| (!line.contains(r#" ifalias="plexus "#)).then(|| line.to_owned()),
    ),
    of("and a group", |line| {
        line.replace(r#"net1 group="group 1""#, r#"net1 group="default""#)
            .into()
    }),
    of("no router advertisement is accepted in a pod", |line| {
        let ours = "pod sysctl net/ipv6/conf/net1/accept_ra=";
        match line.strip_prefix(ours) {
            Some("0") => format!("{ours}1").into(),
            _ => line.to_owned().into(),
        }
    }),
    of(
        "IPv6 addresses are usable at once: nobody waits for duplicate address detection",
        |line| match line.starts_with("pod address net1 ") || line.contains(" fd00:1::1/64 ") {
            true => line.replace(r#""nodad":true,"#, "").into(),
            false => line.to_owned().into(),
        },
    ),
];

/// Our line as the reference would have it; none if it would not.
pub(crate) fn as_reference(line: &str) -> Option<String> {
    let mut line = line.to_owned();
    for difference in &DIFFERENCES {
        let theirs = (difference.theirs)(&line);
        if theirs.as_ref() != Some(&line) {
            difference.seen.fetch_add(1, Ordering::SeqCst);
        }
        line = theirs?;
    }
    Some(line)
}

/// Those that never occurred.
pub(crate) fn unused() -> Vec<&'static str> {
    let unused = DIFFERENCES
        .iter()
        .filter(|d| d.seen.load(Ordering::SeqCst) == 0);
    unused.map(|difference| difference.why).collect()
}

const fn of(why: &'static str, theirs: fn(&str) -> Option<String>) -> Difference {
    Difference {
        why,
        theirs,
        seen: AtomicUsize::new(0),
    }
}
