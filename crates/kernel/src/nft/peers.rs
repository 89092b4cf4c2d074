//! The sets `peers4` and `peers6` of `inet plexus`: the nodes of the cluster, between which alone our
//! tunnels lead. Owns the sets and their elements; what looks into them is in [`guard`](super::guard).

use super::chain::commit;
use super::encode::octets;
use super::set::{self, Part};
use crate::netlink::{Raw, Request, ip};
use crate::{NetlinkError, Socket};
use plexus_types::Family;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The name of a family's set.
pub(super) fn name(family: Family) -> &'static str {
    match family {
        Family::V4 => "peers4",
        Family::V6 => "peers6",
    }
}

/// Makes the sets if they are not there.
pub(super) fn create() -> impl Iterator<Item = Request<Raw>> {
    [(1, Family::V4), (2, Family::V6)]
        .into_iter()
        .map(|(id, family)| {
            let what = format!("add set {}", name(family));
            set::create(name(family), &[Part::Address(family)], &[], id, what)
        })
}

/// What is in the sets; none if there is no set.
pub(super) fn list(socket: &mut Socket) -> Result<Option<BTreeSet<IpAddr>>, NetlinkError> {
    let mut all = BTreeSet::new();
    for family in Family::ALL {
        match set::list(socket, name(family), |key, _| ip(key)) {
            Ok(found) => all.extend(found),
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(all))
}

/// Makes the sets exactly this; gives the number of addresses that were changed.
pub(super) fn write(socket: &mut Socket, wanted: &BTreeSet<IpAddr>) -> Result<usize, NetlinkError> {
    let have = list(socket)?;
    if have.is_none() {
        commit(socket, create())?;
    }
    let have = have.unwrap_or_default();
    let (gone, new): (Vec<_>, Vec<_>) = (
        have.difference(wanted).copied().collect(),
        wanted.difference(&have).copied().collect(),
    );
    for (addresses, add) in [(&new, true), (&gone, false)] {
        for family in Family::ALL {
            let of_family = addresses
                .iter()
                .filter(|address| Family::of(**address) == family);
            let keys: Vec<_> = of_family.map(|address| octets(*address)).collect();
            for some in keys.chunks(AT_A_TIME) {
                commit(socket, [elements(family, some, add)])?;
            }
        }
    }
    Ok(gone.len() + new.len())
}

/// As many elements as fit into one message without doubt.
const AT_A_TIME: usize = 512;

fn elements(family: Family, keys: &[Vec<u8>], add: bool) -> Request<Raw> {
    let verb = if add { "add to" } else { "delete from" };
    let what = format!("{verb} {} {} addresses", name(family), keys.len());
    let elements = keys.iter().map(|key| (key.as_slice(), &[][..]));
    set::change(name(family), elements, add, what)
}
