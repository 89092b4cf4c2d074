//! How a table was: what is, with the changes since then undone.

use super::key::Key;
use super::log::Entry;
use super::object::Stored;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What each object that has changed since was then; `None`: it was not there.
pub(super) type Undone = BTreeMap<Key, Option<Arc<Stored>>>;

/// The oldest of the changes of an object says what it was before all of them.
pub(super) fn undone<'a>(changes: impl DoubleEndedIterator<Item = &'a Arc<Entry>>) -> Undone {
    let mut undone = Undone::new();
    for entry in changes.rev() {
        let _ = undone.insert(entry.object.key.clone(), entry.before.clone());
    }
    undone
}

/// What is, as it was; in order.
pub(super) fn merged<'a>(
    current: impl Iterator<Item = (&'a Key, &'a Arc<Stored>)>,
    undone: Undone,
    holds: impl Fn(&Key) -> bool,
) -> Vec<Arc<Stored>> {
    let mut then: Vec<Arc<Stored>> = current
        .filter(|(key, _)| !undone.contains_key(*key))
        .map(|(_, object)| Arc::clone(object))
        .collect();
    let untouched = then.len();
    let was = undone.into_iter().filter(|(key, _)| holds(key));
    then.extend(was.filter_map(|(_, object)| object));
    if then.len() > untouched {
        then.sort_by(|a, b| a.key.cmp(&b.key));
    }
    then
}
