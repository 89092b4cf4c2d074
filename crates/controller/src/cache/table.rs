//! The cache of one kind, fed by its watch. Says what changed, so that work grows with that.

use super::views::{Name, View};
use kube::runtime::watcher::Event;
use std::collections::{BTreeMap, BTreeSet};

/// All objects of one kind that matter to us.
pub(crate) struct Table<V> {
    rows: BTreeMap<Name, V>,
    /// What was seen of the list that is under way; none if none is.
    listed: Option<BTreeSet<Name>>,
    complete: bool,
}

/// One difference.
pub(crate) struct Change<V> {
    pub(crate) name: Name,
    pub(crate) old: Option<V>,
    pub(crate) new: Option<V>,
}

impl<V> Default for Table<V> {
    fn default() -> Self {
        Table {
            rows: BTreeMap::new(),
            listed: None,
            complete: false,
        }
    }
}

impl<V: View> Table<V> {
    pub(crate) fn get(&self, name: &Name) -> Option<&V> {
        self.rows.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &V)> {
        self.rows.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether a whole list was seen at least once.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Takes what the watch says; gives what is different now.
    pub(crate) fn feed(&mut self, event: Event<(Name, V)>) -> Vec<Change<V>> {
        match event {
            Event::Init => {
                self.listed = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply((name, new)) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(name.clone());
                }
                // Also if it is older than what we have: then the server was restored from a backup, or the watch
                // that follows the list brings the rest.
                self.put(name, new)
            }
            Event::Apply((name, new)) => {
                let is_late = |row: &V| is_older(&new, row);
                match self.rows.get(&name).is_some_and(is_late) {
                    true => Vec::new(),
                    false => self.put(name, new),
                }
            }
            Event::Delete((name, gone)) => match self.rows.get(&name) {
                // A namesake that came after it stays.
                Some(row) if row.id().uid == gone.id().uid => self.take(name),
                _ => Vec::new(),
            },
            Event::InitDone => {
                self.complete = true;
                let listed = self.listed.take().unwrap_or_default();
                let gone: Vec<Name> = self
                    .rows
                    .keys()
                    .filter(|name| !listed.contains(*name))
                    .cloned()
                    .collect();
                gone.into_iter().flat_map(|name| self.take(name)).collect()
            }
        }
    }

    fn put(&mut self, name: Name, new: V) -> Vec<Change<V>> {
        let same = self.rows.get(&name) == Some(&new);
        let old = self.rows.insert(name.clone(), new.clone());
        if same {
            return Vec::new();
        }
        vec![Change {
            name,
            old,
            new: Some(new),
        }]
    }

    fn take(&mut self, name: Name) -> Vec<Change<V>> {
        let old = self.rows.remove(&name);
        vec![Change {
            name,
            old,
            new: None,
        }]
    }
}

/// Whether `new` is an earlier version of the same object: we have put the answer to our own
/// write here already, and the watch is still behind it.
fn is_older<V: View>(new: &V, old: &V) -> bool {
    let number = |v: &V| {
        v.id()
            .version
            .as_ref()
            .and_then(|version| version.parse::<u64>().ok())
    };
    new.id().uid == old.id().uid
        && number(new)
            .zip(number(old))
            .is_some_and(|(new, old)| new < old)
}

#[cfg(test)]
mod tests {
    use super::super::views::{Identity, PolicyView};
    use super::*;

    fn object(name: &str, uid: &str, version: &str) -> (Name, PolicyView) {
        let id = Identity {
            uid: uid.to_owned(),
            version: Some(version.to_owned()),
            ..Identity::default()
        };
        (Name::new("a", name), PolicyView { id })
    }

    fn names(changes: Vec<Change<PolicyView>>) -> Vec<String> {
        let sign = |change: &Change<PolicyView>| match (&change.old, &change.new) {
            (None, Some(_)) => "+",
            (Some(_), None) => "-",
            _ => "~",
        };
        changes
            .iter()
            .map(|change| format!("{}{}", sign(change), change.name))
            .collect()
    }

    #[test]
    fn a_new_list_removes_what_it_does_not_have_only_when_it_is_complete() {
        let mut table = Table::default();
        assert!(names(table.feed(Event::Init)).is_empty());
        assert_eq!(
            names(table.feed(Event::InitApply(object("x", "1", "1")))),
            ["+a/x"]
        );
        assert_eq!(
            names(table.feed(Event::InitApply(object("y", "2", "2")))),
            ["+a/y"]
        );
        assert!(!table.is_complete());
        assert!(names(table.feed(Event::InitDone)).is_empty());
        assert!(table.is_complete());
        table.feed(Event::Init);
        assert!(names(table.feed(Event::InitApply(object("y", "2", "3")))).is_empty());
        assert_eq!(table.len(), 2);
        assert_eq!(names(table.feed(Event::InitDone)), ["-a/x"]);
    }

    #[test]
    fn a_list_counts_though_it_is_older_since_the_server_may_have_been_restored() {
        let mut table = Table::default();
        table.feed(Event::Apply(object("x", "1", "10")));
        table.feed(Event::Init);
        table.feed(Event::InitApply(object("x", "1", "7")));
        table.feed(Event::InitDone);
        let version =
            |table: &Table<PolicyView>| table.get(&Name::new("a", "x")).unwrap().id.version.clone();
        assert_eq!(version(&table).as_deref(), Some("7"));
        // It counts on from there.
        table.feed(Event::Apply(object("x", "1", "8")));
        assert_eq!(version(&table).as_deref(), Some("8"));
    }

    #[test]
    fn an_older_version_and_the_end_of_a_predecessor_change_nothing() {
        let mut table = Table::default();
        table.feed(Event::Apply(object("x", "2", "10")));
        assert!(names(table.feed(Event::Apply(object("x", "2", "9")))).is_empty());
        assert_eq!(
            table
                .get(&Name::new("a", "x"))
                .unwrap()
                .id
                .version
                .as_deref(),
            Some("10")
        );
        assert!(names(table.feed(Event::Delete(object("x", "1", "11")))).is_empty());
        assert_eq!(
            names(table.feed(Event::Delete(object("x", "2", "12")))),
            ["-a/x"]
        );
    }
}
