//! Chains that are wholly ours: each has exactly the rules that are wanted, in order, known by the
//! comment that each carries. A chain that differs is filled anew; all of it in one transaction.

use super::encode::{Attributes, batch_begin, batch_end, message};
use crate::effect::effect;
use crate::netlink::{Raw, Request, attributes};
use crate::{NetlinkError, Socket};
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE};

/// A base chain.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) name: &'static str,
    /// `filter` or `nat`.
    pub(crate) kind: &'static str,
    pub(crate) hook: Hook,
    pub(crate) priority: i32,
    pub(crate) rules: Vec<DesiredRule>,
}

/// Where in a packet's way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hook {
    Prerouting = 0,
    Input = 1,
    Forward = 2,
    Output = 3,
    Postrouting = 4,
}

/// A rule. What is there is compared by the comment, so that it must tell rules apart.
#[derive(Debug)]
pub(crate) struct DesiredRule {
    pub(crate) comment: String,
    pub(crate) expressions: Vec<(&'static str, Attributes)>,
}

impl DesiredRule {
    pub(crate) fn new(
        comment: impl Into<String>,
        expressions: impl IntoIterator<Item = (&'static str, Attributes)>,
    ) -> Self {
        Self {
            comment: comment.into(),
            expressions: expressions.into_iter().collect(),
        }
    }
}

/// The names of the chains that are not as wanted.
pub(crate) fn differing(
    socket: &mut Socket,
    chains: &[Chain],
) -> Result<Vec<&'static str>, NetlinkError> {
    Ok(differ(&rules(socket)?, chains))
}

/// The same, of rules that were listed.
pub(crate) fn differ(found: &[ListedRule], chains: &[Chain]) -> Vec<&'static str> {
    let differs = |chain: &&Chain| {
        let here = found.iter().filter(|rule| rule.chain == chain.name);
        !here
            .map(|rule| rule.userdata.as_slice())
            .eq(chain.rules.iter().map(userdata))
    };
    chains.iter().filter(differs).map(|c| c.name).collect()
}

/// All rules of our table, in one question; none if it is not there.
pub(crate) fn rules(socket: &mut Socket) -> Result<Vec<ListedRule>, NetlinkError> {
    let table = Attributes::default().text(RULE_TABLE, TABLE);
    let request: Request<Raw> = Request::new(
        message(GETRULE, INET, table),
        0,
        "list the rules of inet plexus",
    );
    let found = socket.dump(request, Vec::new, |found, payload| {
        found.extend(ListedRule::read(payload));
    });
    match found {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        other => other,
    }
}

/// Messages that make a chain what it should be.
pub(crate) fn fill(chain: Chain) -> Vec<Request<Raw>> {
    let name = chain.name;
    let hook = Attributes::default()
        .number(1, chain.hook as u32)
        .number(2, chain.priority as u32);
    let base = Attributes::default()
        .text(1, TABLE)
        .text(3, name)
        .nested(4, hook)
        .number(5, ACCEPT)
        .text(7, chain.kind);
    let emptied = Attributes::default()
        .text(RULE_TABLE, TABLE)
        .text(RULE_CHAIN, name);
    let mut requests = vec![
        Request::new(
            message(NEWCHAIN, INET, base),
            NLM_F_CREATE,
            format!("add chain {name}"),
        ),
        Request::new(
            message(DELRULE, INET, emptied),
            0,
            format!("empty chain {name}"),
        ),
    ];
    requests.extend(chain.rules.into_iter().map(|rule| {
        let what = format!("add the rule {:?} to chain {name}", rule.comment);
        let marked = userdata(&rule);
        let list = Attributes::default().expressions(rule.expressions);
        let rule = Attributes::default()
            .text(RULE_TABLE, TABLE)
            .text(RULE_CHAIN, name)
            .nested(RULE_EXPRESSIONS, list)
            .bytes(RULE_USERDATA, &marked);
        let flags = NLM_F_CREATE | NLM_F_APPEND;
        Request::new(message(NEWRULE, INET, rule), flags, what)
    }));
    requests
}

/// One transaction on our table, which is made if it is not there: the kernel does all of it or nothing.
pub(crate) fn commit(
    socket: &mut Socket,
    changes: impl IntoIterator<Item = Request<Raw>>,
) -> Result<(), NetlinkError> {
    let table = Attributes::default().text(1, TABLE).number(2, 0);
    let mut requests = vec![
        Request::new(batch_begin(), 0, "change nf_tables"),
        Request::new(
            message(NEWTABLE, INET, table),
            NLM_F_CREATE,
            "add table inet plexus",
        ),
    ];
    requests.extend(changes);
    requests.push(Request::new(
        batch_end(),
        0,
        "commit the change of nf_tables",
    ));
    effect!("nft.batch").around(|| socket.transaction(&requests))
}

/// A comment as nft shows it. The kernel takes 256 bytes.
pub(crate) fn comment(text: &str) -> Vec<u8> {
    let text = format!("{text}\0");
    let mut bytes = vec![COMMENT, text.len() as u8];
    bytes.extend(text.bytes());
    bytes
}

pub(crate) const INET: u8 = 1;
pub(crate) const TABLE: &str = "plexus";
pub(crate) const NEWTABLE: u16 = 0;
pub(crate) const NEWCHAIN: u16 = 3;
pub(crate) const NEWRULE: u16 = 6;
pub(crate) const GETRULE: u16 = 7;
pub(crate) const DELRULE: u16 = 8;
pub(crate) const RULE_TABLE: u16 = 1;
pub(crate) const RULE_CHAIN: u16 = 2;
pub(crate) const RULE_HANDLE: u16 = 3;
pub(crate) const RULE_EXPRESSIONS: u16 = 4;
pub(crate) const RULE_USERDATA: u16 = 7;
/// nft shows this kind of user data as the comment, and passes over kinds that it does not know.
pub(crate) const COMMENT: u8 = 0;
pub(crate) const ACCEPT: u32 = 1;

/// A rule of the kernel.
pub(crate) struct ListedRule {
    pub(crate) chain: String,
    pub(crate) userdata: Vec<u8>,
}

impl ListedRule {
    fn read(payload: &[u8]) -> Option<Self> {
        let (mut chain, mut userdata) = (String::new(), Vec::new());
        for (kind, value) in attributes(payload.get(4..)?) {
            match kind {
                RULE_CHAIN => chain = crate::netlink::text(value),
                RULE_USERDATA => userdata = value.to_vec(),
                _ => {}
            }
        }
        Some(Self { chain, userdata })
    }
}

fn userdata(rule: &DesiredRule) -> Vec<u8> {
    comment(&rule.comment)
}
