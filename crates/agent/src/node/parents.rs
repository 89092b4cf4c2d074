//! Who is on a link of the node: links of pods share a parent only with those that go with them. Owns the search for the
//! one that is in the way, so that an error names it. The kernel refuses most of what does not go together, and is asked
//! first; where it would change the links that are there instead, they are looked for before.

use crate::agent::Agent;
use crate::failure;
use crate::journal::{AttachmentRecord, Record};
use crate::sync::lock;
use plexus_api::cni::{Code, Error};
use plexus_core::plan::{Link, Stacked};
use plexus_kernel::observe;
use plexus_types::IfName;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

/// For each parent, by its index, a link of the only sort that is journaled there. One that is gone may be named: then
/// the next of another sort looks anew.
#[derive(Debug, Default)]
pub(crate) struct Parents(Mutex<Sorts>);

type Sorts = BTreeMap<u32, Stacked>;

/// Nobody else begins a link that could change others.
pub(crate) type Held<'a> = MutexGuard<'a, Sorts>;

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
        let mut sorts = lock(&self.parents.0);
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
        let (other, owner, why) = holders.find_map(|(other, owner)| {
            let why = stacked.conflict(&other)?;
            Some((other, owner, why))
        })?;
        let parent = &stacked.parent.name;
        let text =
            format!("{stacked} cannot be on {parent}, which carries {other} for {owner}: {why}");
        let next = format!(
            "name another master than {parent}, or make both alike; else remove the other first"
        );
        let error = Error::new(Code::InvalidConfig, text, next);
        Some(failure::at(format!("interface {}", link.name), error))
    }

    /// The links on the parent of `stacked`, and who has them: by the journal, with what this request has begun, and in
    /// the node's namespace.
    fn holders(
        &self,
        record: &Record,
        ifname: &IfName,
        stacked: &Stacked,
    ) -> Vec<(Stacked, String)> {
        let parent = &stacked.parent;
        let stored = self.stored().unwrap_or_default();
        let others = stored.iter().map(|stored| &stored.record);
        let others = others.filter(|other| other.boot == self.boot && other.key() != record.key());
        let others = others.flat_map(|other| other.attachments.iter().map(move |one| (other, one)));
        let own = record.attachments.iter().map(|one| (record, one));
        let own = own.filter(|(_, one)| one.ifname != *ifname);
        let journaled = others.chain(own).filter_map(|(record, attachment)| {
            let link = attachment.link()?.kind.stacked()?;
            (link.parent.index == parent.index)
                .then(|| (link.clone(), owner_text(record, attachment)))
        });
        let links = self.node.with_socket(observe::links).unwrap_or_default();
        let on_parent = links
            .iter()
            .filter(|link| link.parent == Some(parent.index) && !link.is_parent_elsewhere());
        let on_node = on_parent.filter_map(|link| {
            let text = format!("the node's own link {}", link.name);
            Some((Stacked::observed(link, &parent.name)?, text))
        });
        journaled.chain(on_node).collect()
    }
}

fn owner_text(record: &Record, attachment: &AttachmentRecord) -> String {
    let pod = record.details.pod.as_ref();
    let pod = pod.map_or_else(String::new, |pod| format!(" (pod {pod})"));
    format!(
        "interface {} of container {}{pod} on network {}",
        attachment.ifname, record.container, attachment.network
    )
}
