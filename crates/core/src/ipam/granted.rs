//! Whose a block inside another node's block is: legal if, and only if, the block around it says that
//! it was given. The way round, from the inside out, is the same for issuing, for routes and for
//! counting; where blocks are kept is the caller's.

use ipnet::IpNet;
use plexus_api::objects::Gift;

/// Whether the block `cidr` of `node` is its own to use. `find` knows the network's blocks by their
/// prefix: owner, and what it gave away.
///
/// Of all blocks around it the smallest decides, and its own right is looked at in the same way. A
/// node's block may always be inside another one of its own. Nothing around it: nobody is robbed.
pub fn is_granted<'a>(
    cidr: IpNet,
    node: &'a str,
    find: impl Fn(&IpNet) -> Option<(&'a str, &'a [Gift])>,
) -> bool {
    let (mut inner, mut owner) = (cidr.trunc(), node);
    let mut outer = inner.supernet();
    while let Some(wider) = outer {
        outer = wider.supernet();
        let Some((holder, given)) = find(&wider) else {
            continue;
        };
        let gave = |gift: &Gift| gift.cidr.trunc() == inner && gift.node == owner;
        if holder != owner && !given.iter().any(gave) {
            return false;
        }
        (inner, owner) = (wider, holder);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Blocks, each with what was given of it: `prefix node part>node …`.
    fn granted(blocks: &[&str], cidr: &str) -> bool {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let mut all = BTreeMap::new();
        for block in blocks {
            let mut words = block.split(' ');
            let (cidr, node) = (words.next().unwrap(), words.next().unwrap());
            let gift = |word: &str| {
                let (part, to) = word.split_once('>').unwrap();
                Gift {
                    cidr: net(part),
                    node: to.to_owned(),
                }
            };
            let given: Vec<Gift> = words.map(gift).collect();
            all.insert(net(cidr), (node.to_owned(), given));
        }
        let node = all[&net(cidr)].0.clone();
        is_granted(net(cidr), &node, |prefix| {
            let (node, given) = all.get(prefix)?;
            Some((node.as_str(), given.as_slice()))
        })
    }

    #[test]
    fn a_block_by_itself_and_one_inside_the_node_s_own_are_granted() {
        assert!(granted(&["10.0.0.0/26 a"], "10.0.0.0/26"));
        assert!(granted(&["10.0.0.0/26 a", "10.0.0.8/29 a"], "10.0.0.8/29"));
        assert!(granted(
            &["10.0.0.0/26 a", "10.0.0.64/29 b"],
            "10.0.0.64/29"
        ));
        assert!(granted(&["::/0 a ::1/128>b", "::1/128 b"], "::1/128"));
    }

    #[test]
    fn only_just_what_was_given_to_just_that_node_is() {
        let with = |gift: &str| {
            let whole = format!("10.0.0.0/26 a{gift}");
            granted(&[&whole, "10.0.0.8/29 b"], "10.0.0.8/29")
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
        assert!(granted(&[a, b, c], "10.0.0.9/32"));
        assert!(!granted(&["10.0.0.0/26 a", b, c], "10.0.0.9/32"));
        // What a gave is not b's to skip: there is no block of b between them.
        assert!(!granted(&[a, c], "10.0.0.9/32"));
        // a has something of what it gave, by way of b.
        let back = ["10.0.0.8/29 b 10.0.0.9/32>a", "10.0.0.9/32 a"];
        assert!(granted(&[a, back[0], back[1]], "10.0.0.9/32"));
        assert!(!granted(&[a, "10.0.0.8/29 b", back[1]], "10.0.0.9/32"));
    }
}
