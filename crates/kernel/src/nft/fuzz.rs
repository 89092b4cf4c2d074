//! What the tests with mutated answers read of nftables: rules with their user data, and elements of sets.

use super::chain::ListedRule;
use super::{host_ports, masquerade, set};
use crate::netlink::ip;

/// What was made of an answer, if anything.
pub(crate) fn read(payload: &[u8]) -> Option<String> {
    let rule = ListedRule::read(payload)?;
    let peers = set::elements(payload, |key, _| ip(key)).count();
    assert!(peers <= payload.len() / 4, "{peers} elements");
    let elements = host_ports::read_elements(payload);
    let owner = masquerade::owner(&rule);
    let is_nothing = rule.chain.is_empty() && owner.is_none() && peers + elements == 0;
    (!is_nothing).then(|| format!("{:?} {owner:?} {peers} {elements}", rule.chain))
}
