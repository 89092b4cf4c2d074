//! Who owns a block inside another one. It is legal if, and only if, the smallest legal block around it
//! lists it as donated, or if there is none. One that is not legal is as if it were not there: whoever writes it
//! takes nothing from anybody. The rule is the same for issuing, for routes and for counting; the
//! caller stores the blocks.

use ipnet::IpNet;
use plexus_api::objects::DonatedPart;

/// The legal block around a part.
#[derive(Debug, Clone, Copy)]
pub struct EnclosingBlock<'a> {
    /// The block.
    pub cidr: IpNet,
    /// Its owner.
    pub node: &'a str,
    given: &'a [DonatedPart],
}

impl EnclosingBlock<'_> {
    /// Whether just that part of it is `node`'s. What is in a block of the same node always is.
    pub fn gives(&self, part: &IpNet, node: &str) -> bool {
        let gave =
            |donated: &DonatedPart| donated.cidr.trunc() == part.trunc() && donated.node == node;
        self.node == node || self.given.iter().any(gave)
    }
}

/// The smallest legal block around `cidr`. `find` knows the network's blocks by their prefix, owner and
/// what it gave away, and none that is larger than those that nodes claim.
pub fn enclosing_block<'a>(
    cidr: IpNet,
    find: impl Fn(&IpNet) -> Option<(&'a str, &'a [DonatedPart])>,
) -> Option<EnclosingBlock<'a>> {
    let mut legal: Option<EnclosingBlock<'a>> = None;
    for length in 0..cidr.prefix_len() {
        let wider = IpNet::new(cidr.network(), length).map(|wider| wider.trunc());
        let Some((wider, (node, given))) = wider.ok().and_then(|w| Some((w, find(&w)?))) else {
            continue;
        };
        if legal.is_none_or(|outer| outer.gives(&wider, node)) {
            legal = Some(EnclosingBlock {
                cidr: wider,
                node,
                given,
            });
        }
    }
    legal
}

/// Whether the block `cidr` is `node`'s to use.
pub fn is_legal<'a>(
    cidr: IpNet,
    node: &str,
    find: impl Fn(&IpNet) -> Option<(&'a str, &'a [DonatedPart])>,
) -> bool {
    enclosing_block(cidr, find).is_none_or(|enclosing_block| enclosing_block.gives(&cidr, node))
}

/// What `node` has of the block `part` by the word of its owner, or of whoever has it from there. What is around
/// `part` does not count. `blocks` are `part` and those inside it.
pub fn given_within<'a>(
    part: IpNet,
    node: &str,
    blocks: impl IntoIterator<Item = IpNet>,
    find: impl Fn(&IpNet) -> Option<(&'a str, &'a [DonatedPart])>,
) -> Vec<IpNet> {
    let inside = |prefix: &IpNet| find(prefix).filter(|_| part.contains(prefix));
    let mut all = Vec::new();
    for block in blocks {
        let given = inside(&block).map_or(&[][..], |(_, given)| given);
        let given = given.iter().filter(|donated| donated.node == node);
        // Just that block has it to give.
        let by_block = given.map(|donated| donated.cidr.trunc()).filter(|cidr| {
            let enclosing_block = enclosing_block(*cidr, inside);
            enclosing_block.is_some_and(|enclosing_block| enclosing_block.cidr == block)
        });
        all.extend(by_block);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    /// Blocks, each with what was given of it: `prefix node part>node …`.
    fn parsed(blocks: &[&str]) -> BTreeMap<IpNet, (String, Vec<DonatedPart>)> {
        let mut all = BTreeMap::new();
        for block in blocks {
            let mut words = block.split(' ');
            let (cidr, node) = (words.next().unwrap(), words.next().unwrap());
            let donated = |word: &str| {
                let (part, to) = word.split_once('>').unwrap();
                DonatedPart {
                    cidr: net(part),
                    node: to.to_owned(),
                }
            };
            let given: Vec<DonatedPart> = words.map(donated).collect();
            all.insert(net(cidr), (node.to_owned(), given));
        }
        all
    }

    fn is_granted(blocks: &[&str], cidr: &str) -> bool {
        let all = parsed(blocks);
        let node = all[&net(cidr)].0.clone();
        is_legal(net(cidr), &node, |prefix| {
            let (node, given) = all.get(prefix)?;
            Some((node.as_str(), given.as_slice()))
        })
    }

    #[test]
    fn a_block_by_itself_and_one_inside_the_node_s_own_are_granted() {
        assert!(is_granted(&["10.0.0.0/26 a"], "10.0.0.0/26"));
        assert!(is_granted(
            &["10.0.0.0/26 a", "10.0.0.8/29 a"],
            "10.0.0.8/29"
        ));
        assert!(is_granted(
            &["10.0.0.0/26 a", "10.0.0.64/29 b"],
            "10.0.0.64/29"
        ));
        assert!(is_granted(&["::/0 a ::1/128>b", "::1/128 b"], "::1/128"));
    }

    #[test]
    fn only_just_what_was_given_to_just_that_node_is() {
        let with = |donated: &str| {
            let whole = format!("10.0.0.0/26 a{donated}");
            is_granted(&[&whole, "10.0.0.8/29 b"], "10.0.0.8/29")
        };
        assert!(with(" 10.0.0.8/29>b"));
        assert!(with(" 10.0.0.0/29>c 10.0.0.8/29>b"));
        for wrong in ["", " 10.0.0.8/29>c", " 10.0.0.8/28>b", " 10.0.0.8/30>b"] {
            assert!(!with(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_smallest_block_around_it_decides_and_must_be_granted_itself() {
        let (a, b, c) = (
            "10.0.0.0/26 a 10.0.0.8/29>b",
            "10.0.0.8/29 b 10.0.0.9/32>c",
            "10.0.0.9/32 c",
        );
        assert!(is_granted(&[a, b, c], "10.0.0.9/32"));
        assert!(!is_granted(&["10.0.0.0/26 a", b, c], "10.0.0.9/32"));
        // What a gave is not b's to skip: there is no block of b between them.
        assert!(!is_granted(&[a, c], "10.0.0.9/32"));
        // a has something of what it gave, by way of b.
        let back = ["10.0.0.8/29 b 10.0.0.9/32>a", "10.0.0.9/32 a"];
        assert!(is_granted(&[a, back[0], back[1]], "10.0.0.9/32"));
        assert!(!is_granted(&[a, "10.0.0.8/29 b", back[1]], "10.0.0.9/32"));
    }

    #[test]
    fn what_a_node_has_of_a_part_is_what_the_part_s_owner_gave_or_its_heirs() {
        let within = |blocks: &[&str]| {
            let all = parsed(blocks);
            let (part, cidrs) = (net("10.0.0.8/29"), all.keys().copied());
            let given = given_within(part, "a", cidrs, |prefix| {
                let (node, given) = all.get(prefix)?;
                Some((node.as_str(), given.as_slice()))
            });
            given.iter().map(IpNet::to_string).collect::<Vec<_>>()
        };
        // That the block around is a's, and gives nothing, does not matter; whether a has made its block neither.
        let (whole, part) = ("10.0.0.0/26 a", "10.0.0.8/29 b 10.0.0.9/32>a");
        assert_eq!(within(&[whole, part, "10.0.0.9/32 a"]), ["10.0.0.9/32"]);
        assert_eq!(within(&[part]), ["10.0.0.9/32"]);
        assert!(within(&[whole, "10.0.0.8/29 b", "10.0.0.9/32 a"]).is_empty());
        assert!(within(&[whole, "10.0.0.8/29 b 10.0.0.9/32>c"]).is_empty());
        // What is not in the part, or is all of it, is not b's to give.
        let lies = "10.0.0.8/29 b 10.0.0.8/29>a 10.0.0.16/29>a 10.0.0.0/27>a";
        assert!(within(&[whole, lies]).is_empty());
        // By way of c: only if c has it from b.
        let from_c = "10.0.0.12/30 c 10.0.0.12/31>a";
        let given = within(&["10.0.0.8/29 b 10.0.0.12/30>c", from_c]);
        assert_eq!(given, ["10.0.0.12/31"]);
        assert!(within(&["10.0.0.8/29 b", from_c]).is_empty());
    }

    #[test]
    fn what_nobody_gave_takes_no_right_away() {
        let (whole, part) = ("10.0.0.0/26 a 10.0.0.8/29>b", "10.0.0.8/29 b");
        assert!(is_granted(&[whole, "10.0.0.0/28 m", part], "10.0.0.8/29"));
        let lies = "10.0.0.0/28 m 10.0.0.4/30>c";
        assert!(!is_granted(&[whole, lies, "10.0.0.4/30 c"], "10.0.0.4/30"));
    }
}
