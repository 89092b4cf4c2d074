//! Masquerading: one rule per network and source, told apart by what they carry as user data (a
//! comment that people see, and the source with a format number that only we read).

use super::chain::{
    self, ACCEPT, COMMENT, DELRULE, GETRULE, Hook, INET, ListedRule, NEWCHAIN, NEWRULE, RULE_CHAIN,
    RULE_EXPRESSIONS, RULE_HANDLE, RULE_TABLE, RULE_USERDATA, TABLE,
};
use super::encode::{Attributes, bitwise, cmp, message, meta_nfproto, payload};
use crate::netlink::{Raw, Request, attributes, ip};
use crate::{NetlinkError, NetnsError, NodeSide, Socket};
use ipnet::IpNet;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE};
use plexus_core::plan::Masquerade;
use plexus_types::{Mac, NetworkName};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::PoisonError;

/// nf_tables refused, or is not there.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The node's namespace cannot be used.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// More than a rule can say.
    #[error(
        "masquerading of {network} has {count} exceptions of one family, and the kernel takes {EXCEPTIONS_AT_MOST}: join neighbouring ranges"
    )]
    TooManyExceptions {
        /// The network.
        network: NetworkName,
        /// How many.
        count: usize,
    },
    /// The rules cannot be read.
    #[error("cannot list the rules of table inet plexus: does the kernel have nf_tables?")]
    List(#[source] NetlinkError),
    /// The rules cannot be changed.
    #[error(
        "cannot change table inet plexus: does the kernel have nf_tables with nat and masquerade (5.2 or newer)?"
    )]
    Change(#[source] NetlinkError),
}

/// Makes sure that each of these has exactly one rule; says what was changed.
pub fn ensure(node: &NodeSide, wanted: &[Masquerade]) -> Result<Vec<String>, NftError> {
    for masquerade in wanted {
        let count = exceptions(masquerade).len();
        if count > EXCEPTIONS_AT_MOST {
            return Err(NftError::TooManyExceptions {
                network: masquerade.network.clone(),
                count,
            });
        }
    }
    node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        let there = changes(&rules(&mut socket)?, wanted).is_empty();
        if there && node.table().masquerades(wanted) {
            return Ok(Vec::new());
        }
        // Two threads that find the same rule missing must not both add it.
        let _alone = node.firewall.lock().unwrap_or_else(PoisonError::into_inner);
        let words = write(&mut socket, wanted)?;
        node.table().masquerade(wanted);
        Ok(words)
    })?
}

/// Changes what differs. For who holds the firewall.
pub(super) fn write(socket: &mut Socket, wanted: &[Masquerade]) -> Result<Vec<String>, NftError> {
    let changes = changes(&rules(socket)?, wanted);
    let words = changes.iter().map(|request| request.what.clone()).collect();
    if !changes.is_empty() {
        commit(socket, changes)?;
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
    node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        Ok(rules(&mut socket)?
            .into_iter()
            .filter_map(|rule| rule.owner())
            .collect())
    })?
}

/// Removes all rules of a network; says how many.
pub fn remove(node: &NodeSide, network: &NetworkName) -> Result<usize, NftError> {
    node.inside(|| {
        let mut socket = Socket::netfilter().map_err(NftError::List)?;
        let _alone = node.firewall.lock().unwrap_or_else(PoisonError::into_inner);
        let of_network = |rule: &Rule| {
            rule.owner()
                .is_some_and(|(name, _)| name == network.as_str())
        };
        let rules = rules(&mut socket)?;
        let deletions: Vec<_> = rules
            .iter()
            .filter(|r| of_network(r))
            .map(Rule::delete)
            .collect();
        let count = deletions.len();
        if count > 0 {
            commit(&mut socket, deletions)?;
        }
        node.table().masquerade_no_more(network);
        Ok(count)
    })?
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
const EXCEPTIONS_AT_MOST: usize = 32;
/// Goes up when the expressions change, so that old rules are told from new ones.
const FORMAT: u8 = 1;

/// One rule of our chain, as the kernel has it.
struct Rule {
    handle: Vec<u8>,
    userdata: Vec<u8>,
}

impl Rule {
    fn read(payload: &[u8]) -> Option<Self> {
        let (mut handle, mut userdata) = (None, Vec::new());
        for (kind, value) in attributes(payload.get(4..)?) {
            match kind {
                RULE_HANDLE => handle = Some(value.to_vec()),
                RULE_USERDATA => userdata = value.to_vec(),
                _ => {}
            }
        }
        Some(Self {
            handle: handle?,
            userdata,
        })
    }

    /// Network and source, if it is a masquerade of ours.
    fn owner(&self) -> Option<(String, IpNet)> {
        let (mut network, mut source) = (None, None);
        let mut rest = &self.userdata[..];
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

    fn delete(&self) -> Request<Raw> {
        let which = Attributes::default()
            .text(RULE_TABLE, TABLE)
            .text(RULE_CHAIN, CHAIN)
            .bytes(RULE_HANDLE, &self.handle);
        let (network, source) = self
            .owner()
            .map_or_else(Default::default, |(n, s)| (n, s.to_string()));
        let what = format!("delete the masquerade of {source} (network {network})");
        Request::new(message(DELRULE, INET, which), 0, what)
    }
}

fn rules(socket: &mut Socket) -> Result<Vec<Rule>, NftError> {
    let ours = Attributes::default()
        .text(RULE_TABLE, TABLE)
        .text(RULE_CHAIN, CHAIN);
    let request: Request<Raw> = Request::new(
        message(GETRULE, INET, ours),
        0,
        "list the rules of inet plexus",
    );
    match socket.dump(request, Vec::new, |rules, payload| {
        rules.extend(Rule::read(payload))
    }) {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        other => other.map_err(NftError::List),
    }
}

/// What must be added and what is there twice.
fn changes(have: &[Rule], wanted: &[Masquerade]) -> Vec<Request<Raw>> {
    let mut changes = Vec::new();
    for masquerade in wanted.iter().collect::<BTreeSet<_>>() {
        let userdata = userdata(masquerade);
        let mut same = have.iter().filter(|rule| rule.userdata == userdata);
        if same.next().is_none() {
            changes.push(add(masquerade));
        }
        changes.extend(same.map(Rule::delete));
        let owner = (masquerade.network.to_string(), masquerade.source.trunc());
        let outdated = have.iter().filter(|rule| rule.userdata != userdata);
        changes.extend(
            outdated
                .filter(|rule| rule.owner().as_ref() == Some(&owner))
                .map(Rule::delete),
        );
    }
    changes
}

fn commit(socket: &mut Socket, changes: Vec<Request<Raw>>) -> Result<(), NftError> {
    send(socket, changes).map_err(NftError::Change)
}

/// One batch: the kernel does all of it or nothing.
fn send(socket: &mut Socket, changes: Vec<Request<Raw>>) -> Result<(), NetlinkError> {
    let hook = Attributes::default()
        .number(1, Hook::Postrouting as u32)
        .number(2, SRCNAT);
    let chain = Attributes::default()
        .text(1, TABLE)
        .text(3, CHAIN)
        .nested(4, hook)
        .number(5, ACCEPT)
        .text(7, "nat");
    let chain = Request::new(
        message(NEWCHAIN, INET, chain),
        NLM_F_CREATE,
        "add chain postrouting",
    );
    chain::commit(socket, std::iter::once(chain).chain(changes))
}

const SRCNAT: u32 = 100;

fn add(masquerade: &Masquerade) -> Request<Raw> {
    let rule = Attributes::default()
        .text(RULE_TABLE, TABLE)
        .text(RULE_CHAIN, CHAIN)
        .nested(RULE_EXPRESSIONS, expressions(masquerade))
        .bytes(RULE_USERDATA, &userdata(masquerade));
    let what = format!(
        "masquerade {} (network {})",
        masquerade.source, masquerade.network
    );
    Request::new(
        message(NEWRULE, INET, rule),
        NLM_F_CREATE | NLM_F_APPEND,
        what,
    )
}

/// `ip saddr SRC ip daddr != SRC ip daddr != 224.0.0.0/4 ip daddr != EXCEPT… masquerade`
fn expressions(masquerade: &Masquerade) -> Attributes {
    let source = masquerade.source;
    let (family, length, from, to) = match source {
        IpNet::V4(_) => (libc::NFPROTO_IPV4, 4, 12, 16),
        IpNet::V6(_) => (libc::NFPROTO_IPV6, 16, 8, 24),
    };
    let multicast = match source {
        IpNet::V4(_) => IpNet::V4(ipnet::Ipv4Net::new_assert([224, 0, 0, 0].into(), 4)),
        IpNet::V6(_) => IpNet::V6(ipnet::Ipv6Net::new_assert(
            0xff00_u128.wrapping_shl(112).into(),
            8,
        )),
    };
    let list = Attributes::default()
        .expression("meta", meta_nfproto())
        .expression("cmp", cmp(true, &[family as u8]));
    let list = matching(list, from, length, true, source);
    let list = matching(list, to, length, false, source);
    let list = matching(list, to, length, false, multicast);
    let list = exceptions(masquerade)
        .into_iter()
        .fold(list, |list, net| matching(list, to, length, false, net));
    list.expression("masq", Attributes::default())
}

/// The exceptions of the source's family, as few as say the same.
fn exceptions(masquerade: &Masquerade) -> Vec<IpNet> {
    let v4 = masquerade.source.addr().is_ipv4();
    let same = masquerade
        .except
        .iter()
        .filter(|net| net.addr().is_ipv4() == v4);
    IpNet::aggregate(&same.map(IpNet::trunc).collect())
}

fn matching(list: Attributes, offset: u32, length: u32, equal: bool, net: IpNet) -> Attributes {
    let (network, mask) = match net {
        IpNet::V4(net) => (
            net.network().octets().to_vec(),
            net.netmask().octets().to_vec(),
        ),
        IpNet::V6(net) => (
            net.network().octets().to_vec(),
            net.netmask().octets().to_vec(),
        ),
    };
    let list = list.expression("payload", payload(offset, length));
    let whole = mask.iter().all(|byte| *byte == 0xff);
    let list = if whole {
        list
    } else {
        list.expression("bitwise", bitwise(&mask))
    };
    list.expression("cmp", cmp(equal, &network))
}

/// A network name has at most 200 bytes: the kernel's 256 are enough.
fn userdata(masquerade: &Masquerade) -> Vec<u8> {
    let source = masquerade.source.trunc();
    let comment = format!("plexus {}\0", masquerade.network);
    let mut source_bytes = vec![FORMAT, source.prefix_len()];
    match source.addr() {
        IpAddr::V4(v4) => source_bytes.extend(v4.octets()),
        IpAddr::V6(v6) => source_bytes.extend(v6.octets()),
    }
    let mut bytes = vec![COMMENT, comment.len() as u8];
    bytes.extend(comment.bytes());
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
