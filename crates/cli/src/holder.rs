//! Who has interfaces and is no Pod: a container that a runtime has started on a machine of `plexus up`, or a pod
//! that the API no longer has while its node has not seen it end. Their record is all that is known of them.

use crate::snapshot::{Snapshot, list, name, namespace, text, uid};
use serde_json::Value;

/// As much of a container's id as may stand for it.
const SHORT_ID: usize = 4;

/// What has a record, and no Pod.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'w> {
    /// Its record.
    pub record: &'w Value,
    /// It never was a Pod.
    pub container: bool,
}

impl<'w> Holder<'w> {
    /// The one of that name, or whose record's name (the container's id, the pod's UID) begins like that. An error
    /// if there are several.
    pub fn find(
        snapshot: &'w Snapshot,
        in_namespace: &str,
        named: &str,
    ) -> Result<Option<Self>, String> {
        let here = snapshot.records.iter();
        let here = here.filter(|record| namespace(record) == in_namespace);
        let here: Vec<Self> = here
            .filter_map(|record| Self::of(snapshot, record))
            .collect();
        let by_name = |one: &&Self| text(one.record, "/spec/pod/name") == named;
        let by_id = |one: &&Self| named.len() >= SHORT_ID && one.is_called(named);
        let mut found: Vec<&Self> = here.iter().filter(by_name).collect();
        if found.is_empty() {
            found = here.iter().filter(by_id).collect();
        }
        match found[..] {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            _ => {
                let ids = found.iter().map(|one| name(one.record));
                Err(format!(
                    "{named} is several: {}; name one of them by its id, or by as much of it as no other has",
                    ids.collect::<Vec<_>>().join(", ")
                ))
            }
        }
    }

    /// A record that has no Pod, as far as that can be told.
    fn of(snapshot: &Snapshot, record: &'w Value) -> Option<Self> {
        // Its agent writes down whose it is; a container is nobody's.
        let container = list(record, "/metadata/ownerReferences").is_empty();
        let owner = text(record, "/spec/pod/uid");
        let has_pod = snapshot.pods.iter().any(|pod| uid(pod) == owner);
        let pods_are_seen = !snapshot.unknown.contains_key("pods");
        (container || (pods_are_seen && !has_pod)).then_some(Self { record, container })
    }

    /// Whether its id begins like that. nerdctl puts containerd's namespace before a container's.
    fn is_called(&self, named: &str) -> bool {
        let id = name(self.record);
        let after_namespace = id.rsplit('-').next().filter(|_| self.container);
        id.starts_with(named) || after_namespace.is_some_and(|id| id.starts_with(named))
    }

    /// What it is, and what people call it.
    pub fn title(&self) -> String {
        let kind = match self.container {
            true => "Container",
            false => "Pod",
        };
        let name = text(self.record, "/spec/pod/name");
        format!("{kind} {}/{name}", namespace(self.record))
    }
}
