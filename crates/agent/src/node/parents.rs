//! Who is on a link of the node: links of pods share a parent only with those that go with them. Owns the search for the
//! one that is in the way, so that an error names it. The kernel refuses most of what does not go together, and is asked
//! first; where it would change the links that are there instead, they are looked for before.

use crate::agent::Agent;
use crate::failure;
use crate::journal::{AttachmentRecord, Record};
use plexus_api::cni::{Code, Error};
use plexus_core::plan::{Link, Stacked};
use plexus_kernel::observe;
use plexus_types::IfName;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// For each parent, by its index, a link of the only sort that is journaled there. One that is gone may be named: then
/// the next of another sort looks anew.
#[derive(Debug, Default)]
pub(crate) struct Parents(Mutex<Sorts>);

type Sorts = BTreeMap<u32, Stacked>;

/// Nobody else begins a link that could change others.
pub(crate) type Held<'a> = MutexGuard<'a, Sorts>;

/// A link that is on the same parent.
struct Holder {
    link: Stacked,
    who: String,
}

impl Agent {
    /// Refuses links that would change others on their parent. Nobody else may begin such a link while the answer is
    /// held: until these are journaled.
    pub(crate) fn hold_parents(
        &self,
        record: &Record,
        range: Range<usize>,
    ) -> Result<Option<Held<'_>>, Error> {
        let links = record.attachments.get(range).unwrap_or_default().iter();
        let links = links.filter_map(AttachmentRecord::link);
        let mut links = links
            .filter_map(|link| Some((link, link.kind.stacked()?)))
            .filter(|(_, stacked)| stacked.changes_siblings())
            .peekable();
        if links.peek().is_none() {
            return Ok(None);
        }
        let sorts = self.parents.0.lock();
        let mut sorts = sorts.unwrap_or_else(PoisonError::into_inner);
        for (link, stacked) in links {
            let known = sorts.get(&stacked.parent.index);
            if known.is_some_and(|known| stacked.conflict(known).is_none()) {
                continue;
            }
            if let Some(error) = self.in_the_way(record, link) {
                return Err(error);
            }
            sorts.insert(stacked.parent.index, stacked.clone());
        }
        Ok(Some(sorts))
    }

    /// Names the link that keeps `link` from its parent, if there is one.
    pub(crate) fn in_the_way(&self, record: &Record, link: &Link) -> Option<Error> {
        let stacked = link.kind.stacked()?;
        let mut holders = self.holders(record, &link.name, stacked).into_iter();
        let (holder, why) = holders.find_map(|holder| {
            let why = stacked.conflict(&holder.link)?;
            Some((holder, why))
        })?;
        let parent = &stacked.parent.name;
        let text = format!(
            "{stacked} cannot be on {parent}, which carries {} for {}: {why}",
            holder.link, holder.who
        );
        let next = format!(
            "name another master than {parent}, or make both alike; else remove the other first"
        );
        let error = Error::new(Code::InvalidConfig, text, next);
        Some(failure::at(format!("interface {}", link.name), error))
    }

    /// Who is on the parent of `stacked`: by the journal, with what this request has begun, and in the node's namespace.
    fn holders(&self, record: &Record, ifname: &IfName, stacked: &Stacked) -> Vec<Holder> {
        let mut holders = Vec::new();
        let stored = self.journal().ok().and_then(|journal| journal.all().ok());
        let stored = stored.unwrap_or_default();
        let key = |record: &Record| (record.container.clone(), record.ifname.clone());
        let others = stored.iter().map(|stored| &stored.record);
        let others = others.filter(|other| other.boot == self.boot && key(other) != key(record));
        let others = others.flat_map(|other| other.attachments.iter().map(move |one| (other, one)));
        let own = record.attachments.iter().map(|one| (record, one));
        let own = own.filter(|(_, one)| one.ifname != *ifname);
        for (record, attachment) in others.chain(own) {
            let link = attachment.link().and_then(|link| link.kind.stacked());
            if let Some(link) = link.filter(|link| link.parent.index == stacked.parent.index) {
                let (link, who) = (link.clone(), who(record, attachment));
                holders.push(Holder { link, who });
            }
        }
        let links = self.node.with_socket(observe::links).unwrap_or_default();
        let here = |parent| parent == Some(stacked.parent.index);
        for link in links
            .iter()
            .filter(|link| here(link.parent) && !link.parent_elsewhere)
        {
            if let Some(found) = Stacked::observed(link, &stacked.parent.name) {
                let who = format!("the node's own link {}", link.name);
                holders.push(Holder { link: found, who });
            }
        }
        holders
    }
}

fn who(record: &Record, attachment: &AttachmentRecord) -> String {
    let pod = record.details.pod.as_ref();
    let pod = pod.map_or_else(String::new, |pod| format!(" (pod {pod})"));
    format!(
        "interface {} of container {}{pod} on network {}",
        attachment.ifname, record.container, attachment.network
    )
}
