//! Masquerading: one rule per network and source, told apart by what they carry as user data (a
//! comment that people see, and the source with a format number that only we read).

use super::chain::{self, COMMENT, Chain, Hook, ListedRule, commit};
use super::encode::{End, Expressions, octets};
use super::{NftError, with_tables};
use crate::netlink::{Raw, Request, ip};
use crate::node_side::lock;
use crate::{NetlinkError, NodeSide, Socket};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use plexus_core::plan::Masquerade;
use plexus_types::{Family, Mac, NetworkName};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Makes sure that each of these has exactly one rule; says what was changed.
pub fn ensure(node: &NodeSide, wanted: &[Masquerade]) -> Result<Vec<String>, NftError> {
    for masquerade in wanted {
        let count = exceptions(masquerade).len();
        if count > EXCEPTIONS_AT_MOST {
            let network = masquerade.network.clone();
            return Err(NftError::TooManyExceptions { network, count });
        }
    }
    with_tables(node, |socket| {
        let there = changes(&rules(socket)?, wanted).is_empty();
        if there && node.table().masquerades(wanted) {
            return Ok(Vec::new());
        }
        // Two threads that find the same rule missing must not both add it.
        let _alone = lock(&node.firewall);
        let words = write(socket, wanted)?;
        node.table().masquerade(wanted);
        Ok(words)
    })
}

/// Changes what differs. For who holds the firewall.
pub(super) fn write(socket: &mut Socket, wanted: &[Masquerade]) -> Result<Vec<String>, NftError> {
    let changes = changes(&rules(socket)?, wanted);
    let words = changes.iter().map(|request| request.what.clone()).collect();
    if !changes.is_empty() {
        send(socket, changes).map_err(NftError::Change)?;
    }
    Ok(words)
}

/// Whether it has its rule among these.
pub(super) fn is_there(found: &[ListedRule], masquerade: &Masquerade) -> bool {
    let userdata = userdata(masquerade);
    let mut ours = found.iter().filter(|rule| rule.chain == CHAIN);
    ours.any(|rule| rule.userdata == userdata)
}

/// The networks and sources that have rules now, in order.
pub fn list(node: &NodeSide) -> Result<Vec<(String, IpNet)>, NftError> {
    let found = with_tables(node, rules)?;
    Ok(found.iter().filter_map(owner).collect())
}

/// Removes all rules of a network; says how many.
pub fn remove(node: &NodeSide, network: &NetworkName) -> Result<usize, NftError> {
    with_tables(node, |socket| {
        let _alone = lock(&node.firewall);
        let found = rules(socket)?;
        let of_network =
            |rule: &&ListedRule| owner(rule).is_some_and(|(name, _)| name == network.as_str());
        let deletions: Vec<_> = found.iter().filter(of_network).map(delete).collect();
        let count = deletions.len();
        if count > 0 {
            send(socket, deletions).map_err(NftError::Change)?;
        }
        node.table().masquerade_no_more(network);
        Ok(count)
    })
}

/// Tries to masquerade in the calling thread's namespace.
pub(crate) fn probe() -> Result<(), NetlinkError> {
    let mut socket = Socket::netfilter()?;
    let network = NetworkName::new("probe").ok();
    let source = "192.0.2.0/24".parse().ok();
    let wanted = network.zip(source).map(|(network, source)| Masquerade {
        network,
        source,
        except: Vec::new(),
    });
    send(&mut socket, wanted.iter().map(add).collect())
}

const CHAIN: &str = "postrouting";
const SOURCE: u8 = 80;
const EXCEPT: u8 = 81;
/// A rule of the kernel has at most 128 expressions; an exception takes three.
pub(super) const EXCEPTIONS_AT_MOST: usize = 32;
/// Goes up when the expressions change, so that old rules are told from new ones.
const FORMAT: u8 = 1;

/// Network and source, if it is a masquerade of ours.
pub(super) fn owner(rule: &ListedRule) -> Option<(String, IpNet)> {
    let (mut network, mut source) = (None, None);
    let mut rest = &rule.userdata[..];
    while let [kind, length, more @ ..] = rest {
        let value = more.get(..usize::from(*length))?;
        match *kind {
            COMMENT => {
                let text = std::str::from_utf8(value).ok()?.trim_end_matches('\0');
                network = text.strip_prefix("plexus ").map(str::to_owned);
            }
            SOURCE => source = read_source(value),
            _ => {}
        }
        rest = &more[value.len()..];
    }
    network.zip(source)
}

fn delete(rule: &ListedRule) -> Request<Raw> {
    let (network, source) = owner(rule)
        .map(|(network, source)| (network, source.to_string()))
        .unwrap_or_default();
    rule.delete(format!(
        "delete the masquerade of {source} (network {network})"
    ))
}

fn rules(socket: &mut Socket) -> Result<Vec<ListedRule>, NftError> {
    chain::rules(socket, Some(CHAIN)).map_err(NftError::List)
}

/// What must be added and what is there twice.
fn changes(have: &[ListedRule], wanted: &[Masquerade]) -> Vec<Request<Raw>> {
    let mut changes = Vec::new();
    for masquerade in wanted.iter().collect::<BTreeSet<_>>() {
        let userdata = userdata(masquerade);
        let (same, others): (Vec<_>, Vec<_>) =
            have.iter().partition(|rule| rule.userdata == userdata);
        if same.is_empty() {
            changes.push(add(masquerade));
        }
        changes.extend(same.into_iter().skip(1).map(delete));
        let this = Some((masquerade.network.to_string(), masquerade.source.trunc()));
        let outdated = others.into_iter().filter(|rule| owner(rule) == this);
        changes.extend(outdated.map(delete));
    }
    changes
}

fn send(socket: &mut Socket, changes: Vec<Request<Raw>>) -> Result<(), NetlinkError> {
    const SRCNAT: i32 = 100;
    let chain = Chain::nat(CHAIN, (Hook::Postrouting, SRCNAT), Vec::new());
    commit(socket, std::iter::once(chain.create()).chain(changes))
}

fn add(masquerade: &Masquerade) -> Request<Raw> {
    let (source, network) = (masquerade.source, &masquerade.network);
    let what = format!("masquerade {source} (network {network})");
    chain::add_rule(CHAIN, expressions(masquerade), &userdata(masquerade), what)
}

/// `ip saddr SRC ip daddr != SRC ip daddr != 224.0.0.0/4 ip daddr != EXCEPT… masquerade`
fn expressions(masquerade: &Masquerade) -> Expressions {
    let source = masquerade.source;
    let multicast = match source {
        IpNet::V4(_) => Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 4).into(),
        IpNet::V6(_) => Ipv6Net::new_assert(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8).into(),
    };
    let ours = Expressions::of_family(Family::of(source.addr())).in_net(End::Source, source, true);
    [source, multicast]
        .into_iter()
        .chain(exceptions(masquerade))
        .fold(ours, |ours, net| ours.in_net(End::Destination, net, false))
        .masquerade()
}

/// The exceptions of the source's family, as few as say the same.
fn exceptions(masquerade: &Masquerade) -> Vec<IpNet> {
    let family = |net: &IpNet| Family::of(net.addr());
    let exceptions = masquerade.except.iter();
    let same = exceptions.filter(|net| family(net) == family(&masquerade.source));
    IpNet::aggregate(&same.map(IpNet::trunc).collect())
}

/// A network name has at most 200 bytes: the kernel's 256 are enough.
fn userdata(masquerade: &Masquerade) -> Vec<u8> {
    let source = masquerade.source.trunc();
    let mut source_bytes = vec![FORMAT, source.prefix_len()];
    source_bytes.extend(octets(source.addr()));
    let mut bytes = chain::comment(&format!("plexus {}", masquerade.network));
    bytes.extend([SOURCE, source_bytes.len() as u8]);
    bytes.extend(source_bytes);
    let except = exceptions(masquerade);
    if !except.is_empty() {
        // There is no room for all of them, and they need only be told apart.
        let words: Vec<_> = except.iter().map(IpNet::to_string).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        bytes.extend([EXCEPT, 6]);
        bytes.extend(Mac::derived(&words).bytes());
    }
    bytes
}

fn read_source(value: &[u8]) -> Option<IpNet> {
    match value {
        [_, length, address @ ..] => IpNet::new(ip(address)?, *length).ok(),
        _ => None,
    }
}
