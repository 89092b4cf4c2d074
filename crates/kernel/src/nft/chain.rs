//! Chains that are wholly ours: each has exactly the rules that are wanted, in order, known by the
//! comment that each carries. A chain that differs is filled anew; all of it in one transaction.

use super::NftError;
use super::encode::{ACCEPT, Attributes, BATCH_BEGIN, BATCH_END, Expressions, batch_end, request};
use crate::effect::effect;
use crate::netlink::{Raw, Request, attributes, text};
use crate::{NetlinkError, Socket};
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE};

#[derive(Debug)]
pub(crate) struct Chain {
    name: &'static str,
    kind: &'static str,
    /// With the priority.
    at: (Hook, i32),
    rules: Vec<DesiredRule>,
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
    comment: String,
    expressions: Expressions,
}

impl DesiredRule {
    pub(crate) fn new(comment: impl Into<String>, expressions: Expressions) -> Self {
        Self {
            comment: comment.into(),
            expressions,
        }
    }

    fn add(self, chain: &str) -> Request<Raw> {
        let what = format!("add the rule {:?} to chain {chain}", self.comment);
        add_rule(chain, self.expressions, &comment(&self.comment), what)
    }
}

impl Chain {
    pub(crate) fn filter(name: &'static str, at: (Hook, i32), rules: Vec<DesiredRule>) -> Self {
        Self {
            name,
            kind: "filter",
            at,
            rules,
        }
    }

    pub(crate) fn nat(name: &'static str, at: (Hook, i32), rules: Vec<DesiredRule>) -> Self {
        Self {
            kind: "nat",
            ..Self::filter(name, at, rules)
        }
    }

    /// Whether its rules are not those that were listed.
    pub(super) fn differs(&self, found: &[ListedRule]) -> bool {
        let here = found.iter().filter(|rule| rule.chain == self.name);
        let have = here.map(|rule| rule.userdata.clone());
        !have.eq(self.rules.iter().map(|rule| comment(&rule.comment)))
    }

    /// Makes it if it is not there.
    pub(super) fn create(&self) -> Request<Raw> {
        let (hook, priority) = self.at;
        let hook = Attributes::default().number(1, hook as u32);
        let hook = hook.number(2, priority as u32);
        let chain = Attributes::default()
            .text(1, TABLE)
            .text(3, self.name)
            .nested(4, hook)
            .number(5, ACCEPT)
            .text(7, self.kind);
        let what = format!("add chain {}", self.name);
        request(NEWCHAIN, chain, NLM_F_CREATE, what)
    }

    /// Messages that make it what it should be.
    pub(super) fn fill(self) -> Vec<Request<Raw>> {
        let what = format!("empty chain {}", self.name);
        let mut requests = vec![
            self.create(),
            request(DELRULE, rules_of(self.name), 0, what),
        ];
        requests.extend(self.rules.into_iter().map(|rule| rule.add(self.name)));
        requests
    }
}

/// Those of the chains that are not as wanted.
pub(crate) fn differing(
    socket: &mut Socket,
    chains: impl IntoIterator<Item = Chain>,
) -> Result<Vec<Chain>, NftError> {
    let found = rules(socket, None).map_err(NftError::List)?;
    let chains = chains.into_iter();
    Ok(chains.filter(|chain| chain.differs(&found)).collect())
}

/// Fills the chains, if there are any; says so.
pub(crate) fn fill(socket: &mut Socket, due: Vec<Chain>) -> Result<Vec<String>, NftError> {
    let words = due.iter().map(|chain| format!("fill chain {}", chain.name));
    let words: Vec<String> = words.collect();
    if !due.is_empty() {
        commit(socket, due.into_iter().flat_map(Chain::fill)).map_err(NftError::Change)?;
    }
    Ok(words)
}

/// All rules of our table, or of one chain, in one question; none if it is not there.
pub(crate) fn rules(
    socket: &mut Socket,
    chain: Option<&str>,
) -> Result<Vec<ListedRule>, NetlinkError> {
    let which = match chain {
        Some(chain) => rules_of(chain),
        None => Attributes::default().text(RULE_TABLE, TABLE),
    };
    let question = request(GETRULE, which, 0, "list the rules of inet plexus");
    let found = socket.dump(question, Vec::new, |found, payload| {
        found.extend(ListedRule::read(payload));
    });
    match found {
        Err(error) if error.is_missing() => Ok(Vec::new()),
        other => other,
    }
}

/// Appends a rule to a chain.
pub(super) fn add_rule(
    chain: &str,
    expressions: Expressions,
    userdata: &[u8],
    what: String,
) -> Request<Raw> {
    let rule = rules_of(chain)
        .nested(RULE_EXPRESSIONS, expressions.0)
        .bytes(RULE_USERDATA, userdata);
    request(NEWRULE, rule, NLM_F_CREATE | NLM_F_APPEND, what)
}

/// One transaction on our table, which is made if it is not there: the kernel does all of it or nothing.
pub(crate) fn commit(
    socket: &mut Socket,
    changes: impl IntoIterator<Item = Request<Raw>>,
) -> Result<(), NetlinkError> {
    let table = Attributes::default().text(1, TABLE).number(2, 0);
    let mut requests = vec![
        batch_end(BATCH_BEGIN, "change nf_tables"),
        request(NEWTABLE, table, NLM_F_CREATE, "add table inet plexus"),
    ];
    requests.extend(changes);
    requests.push(batch_end(BATCH_END, "commit the change of nf_tables"));
    effect!("nft.batch").around(|| socket.transaction(&requests))
}

/// Deletes our table with everything in it.
pub(crate) fn delete_table() -> Request<Raw> {
    let table = Attributes::default().text(1, TABLE);
    request(DELTABLE, table, 0, "delete table inet plexus")
}

/// A comment as nft shows it. The kernel takes 256 bytes.
pub(super) fn comment(text: &str) -> Vec<u8> {
    let text = format!("{text}\0");
    let mut bytes = vec![COMMENT, text.len() as u8];
    bytes.extend(text.bytes());
    bytes
}

pub(super) const TABLE: &str = "plexus";
const NEWTABLE: u16 = 0;
const DELTABLE: u16 = 2;
const NEWCHAIN: u16 = 3;
const NEWRULE: u16 = 6;
const GETRULE: u16 = 7;
const DELRULE: u16 = 8;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_HANDLE: u16 = 3;
const RULE_EXPRESSIONS: u16 = 4;
const RULE_USERDATA: u16 = 7;
/// nft shows this kind of user data as the comment, and passes over kinds that it does not know.
pub(super) const COMMENT: u8 = 0;

fn rules_of(chain: &str) -> Attributes {
    let table = Attributes::default().text(RULE_TABLE, TABLE);
    table.text(RULE_CHAIN, chain)
}

/// A rule of the kernel.
#[derive(Default)]
pub(crate) struct ListedRule {
    pub(super) chain: String,
    handle: Vec<u8>,
    pub(super) userdata: Vec<u8>,
}

impl ListedRule {
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let mut rule = Self::default();
        for (kind, value) in attributes(payload.get(4..)?) {
            match kind {
                RULE_CHAIN => rule.chain = text(value),
                RULE_HANDLE => rule.handle = value.to_vec(),
                RULE_USERDATA => rule.userdata = value.to_vec(),
                _ => {}
            }
        }
        Some(rule)
    }

    pub(super) fn delete(&self, what: String) -> Request<Raw> {
        let rule = rules_of(&self.chain).bytes(RULE_HANDLE, &self.handle);
        request(DELRULE, rule, 0, what)
    }
}
