//! Many pings at a time: all are sent, those that are not answered are sent again, and everybody listens.
//! A ping that must not arrive has a fixed time; one that must arrive has more time if the machine is slow.

use super::expect::Expected;
use crate::error::LabError;
use crate::underlay;
use plexus_kernel::echo::{Echo, Heard, wait};
use plexus_kernel::{Netns, Socket, observe};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// How long a ping that must not arrive is waited for.
const REPLY_TIMEOUT: Duration = Duration::from_millis(1200);
/// The time for those that must arrive.
const ROUND_TIMEOUT: Duration = Duration::from_secs(6);
const SEND_INTERVAL: Duration = Duration::from_millis(300);
const LISTEN_TIMEOUT: Duration = Duration::from_millis(20);
/// How many pings are sent before we listen: the answers meanwhile must fit into the sockets.
const SEND_BATCH: usize = 200;

/// A ping to be sent.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    /// The namespace that sends.
    pub(super) from: String,
    /// By this link; none: as the routes say.
    pub(super) link: Option<String>,
    /// The namespace that is meant.
    pub(super) to: String,
    pub(super) address: IpAddr,
    /// Which cell of the matrix it is for.
    pub(super) cell: usize,
    /// What must be seen; what must arrive is worth waiting longer for.
    pub(super) expected: Expected,
}

impl Probe {
    /// Whether the other one is reached, by what was heard. What must be apart is not apart if it is heard at
    /// all. An answer alone says nothing: somebody else may have that address.
    fn is_reached(&self, traces: Traces) -> bool {
        traces.request && (traces.answer || self.expected == Expected::No)
    }
}

/// What was heard of a ping.
#[derive(Debug, Clone, Copy, Default)]
struct Traces {
    /// The request, where it was meant to go.
    request: bool,
    /// The answer, where the request came from.
    answer: bool,
}

/// Pings that are under way, and what was heard of each. A ping's number is `first` and its place in the
/// list.
struct Round<'p> {
    probes: &'p [Probe],
    heard: Vec<Traces>,
    first: u64,
}

impl<'p> Round<'p> {
    fn new(probes: &'p [Probe]) -> Self {
        Self {
            probes,
            heard: vec![Traces::default(); probes.len()],
            first: u64::from(std::process::id()) << 32,
        }
    }

    fn number(&self, at: usize) -> u64 {
        self.first | at as u64
    }

    fn receive(&mut self, namespace: &str, heard: Heard) {
        let (Heard::Request(number) | Heard::Reply(number)) = heard;
        let at = number.checked_sub(self.first);
        let at = at.and_then(|at| usize::try_from(at).ok());
        let Some((probe, traces)) =
            at.and_then(|at| self.probes.get(at).zip(self.heard.get_mut(at)))
        else {
            return;
        };
        match heard {
            Heard::Request(_) => traces.request |= *namespace == probe.to,
            Heard::Reply(_) => traces.answer |= *namespace == probe.from,
        }
    }

    /// The pings that have not reached the other one yet.
    fn open(&self) -> impl Iterator<Item = (usize, &'p Probe)> {
        let all = self.probes.iter().zip(&self.heard).enumerate();
        all.filter(|(_, (probe, traces))| !probe.is_reached(**traces))
            .map(|(at, (probe, _))| (at, probe))
    }

    /// Whether there is something to wait for.
    fn is_open(&self, elapsed: Duration) -> bool {
        if elapsed < REPLY_TIMEOUT {
            return self.open().next().is_some();
        }
        let mut open = self.open();
        elapsed < ROUND_TIMEOUT && open.any(|(_, probe)| probe.expected == Expected::Yes)
    }
}

/// The cells whose pings reached the namespace that was meant.
pub(super) fn measure(probes: &[Probe]) -> Result<BTreeSet<usize>, LabError> {
    let mut sockets = Sockets::default();
    let mut senders = Vec::new();
    for probe in probes {
        let v6 = probe.address.is_ipv6();
        // A listener before anybody sends.
        sockets.get(&probe.to, v6, None)?;
        senders.push(sockets.get(&probe.from, v6, probe.link.as_deref())?);
    }
    let mut round = Round::new(probes);
    let (start, mut next) = (Instant::now(), Duration::ZERO);
    loop {
        let elapsed = start.elapsed();
        if !round.is_open(elapsed) {
            break;
        }
        if elapsed >= next {
            next = elapsed + SEND_INTERVAL;
            let open: Vec<(usize, &Probe)> = round.open().collect();
            for some in open.chunks(SEND_BATCH) {
                for (at, probe) in some {
                    // No way there is an answer too.
                    let sender = &sockets.all[senders[*at]].echo;
                    let _ = sender.send(probe.address, round.number(*at));
                }
                sockets.listen(Duration::ZERO, |space, heard| round.receive(space, heard));
            }
        }
        sockets.listen(LISTEN_TIMEOUT, |space, heard| round.receive(space, heard));
    }
    let open: BTreeSet<usize> = round.open().map(|(at, _)| at).collect();
    let reached = probes.iter().enumerate();
    Ok(reached
        .filter(|(at, _)| !open.contains(at))
        .map(|(_, probe)| probe.cell)
        .collect())
}

/// The sockets that are open, each once.
#[derive(Default)]
struct Sockets {
    spaces: BTreeMap<String, Netns>,
    known: BTreeMap<(String, bool, Option<String>), usize>,
    all: Vec<Open>,
}

struct Open {
    namespace: String,
    echo: Echo,
}

impl Sockets {
    fn get(&mut self, namespace: &str, v6: bool, link: Option<&str>) -> Result<usize, LabError> {
        let key = (namespace.to_owned(), v6, link.map(str::to_owned));
        if let Some(index) = self.known.get(&key) {
            return Ok(*index);
        }
        if !self.spaces.contains_key(namespace) {
            let opened = underlay::open(namespace)?;
            self.spaces.insert(namespace.to_owned(), opened);
        }
        let netns = &self.spaces[namespace];
        let index = link.map(|name| index_of(netns, name)).transpose()?;
        let echo = Echo::open(netns, v6, index)?;
        self.all.push(Open {
            namespace: namespace.to_owned(),
            echo,
        });
        self.known.insert(key, self.all.len() - 1);
        Ok(self.all.len() - 1)
    }

    fn listen(&self, limit: Duration, mut receive: impl FnMut(&str, Heard)) {
        let echos: Vec<&Echo> = self.all.iter().map(|open| &open.echo).collect();
        wait(&echos, limit);
        for open in &self.all {
            for heard in open.echo.heard() {
                receive(&open.namespace, heard);
            }
        }
    }
}

fn index_of(netns: &Netns, name: &str) -> Result<u32, LabError> {
    let index = || -> Result<Option<u32>, plexus_kernel::NetlinkError> {
        let mut socket = Socket::open_in(netns)?;
        let found = observe::link_by_name(&mut socket, name)?;
        Ok(found.map(|link| link.index))
    };
    let found = index().map_err(LabError::wires(format!("look for {name} of a pod")))?;
    found.ok_or_else(|| LabError::NoPod(format!("a pod has no interface {name} any more")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_kernel::named;
    use plexus_kernel::wires::{self, Bridge, Wire};
    use plexus_types::Mac;

    /// Namespaces that go, however the test ends.
    struct Spaces(Vec<String>);

    impl Drop for Spaces {
        fn drop(&mut self) {
            for name in &self.0 {
                let _ = named::remove(name);
            }
        }
    }

    #[test]
    fn a_ping_that_is_heard_and_not_answered_is_a_leak() {
        named::prepare().unwrap();
        let name = |what: &str| format!("px-unit-{what}-{}", std::process::id());
        let spaces = Spaces(["hub", "a", "b"].map(name).into());
        for space in &spaces.0 {
            named::ensure(space).unwrap();
        }
        let open = |index: usize| underlay::open(&spaces.0[index]).unwrap();
        let bridge = Bridge {
            name: "br0".to_owned(),
            mac: Mac::derived(&["unit", "br0"]),
            addresses: vec![],
        };
        wires::make_hub(&open(0), &[], &[bridge]).unwrap();
        for (index, address) in [(1, "10.9.0.1/24"), (2, "10.9.0.2/24")] {
            let wire = Wire {
                bridge: "br0".to_owned(),
                outer: format!("w{index}"),
                inner: "eth0".to_owned(),
                mac: Mac::derived(&["unit", address]),
                addresses: vec![address.parse().unwrap()],
                mtu: None,
                up: true,
            };
            wires::plug(&open(0), &open(index), &[wire], &[]).unwrap();
        }
        let probe = |expected, cell| Probe {
            from: spaces.0[1].clone(),
            link: None,
            to: spaces.0[2].clone(),
            address: "10.9.0.2".parse().unwrap(),
            cell,
            expected,
        };
        let probes = [probe(Expected::Yes, 0), probe(Expected::No, 1)];
        assert_eq!(measure(&probes).unwrap(), BTreeSet::from([0, 1]));
        let silent = || std::fs::write("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
        open(2).enter(silent).unwrap().unwrap();
        assert_eq!(measure(&probes).unwrap(), BTreeSet::from([1]));
        let answered = Traces {
            request: false,
            answer: true,
        };
        assert!(!probes[1].is_reached(answered), "somebody else answered");
    }
}
