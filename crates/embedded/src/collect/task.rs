//! One thing to look at. Looking twice does no harm: what is to be done is decided by what is there.

use super::{namespaces, owners};
use crate::status::Refused;
use crate::store::{Changes, Key, Stored, Table};
use crate::verbs::Api;
use std::sync::Arc;

/// One thing to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Task {
    /// An object that names owners: are they there?
    Owned(Table, Key),
    /// An owner that may be waiting for those that it owns.
    Owner(u128),
    /// A namespace that ends.
    Namespace(Key),
}

impl Task {
    /// Looks, and does what follows; whether there is more to do at once.
    ///
    /// # Errors
    /// A write is refused.
    pub(super) fn run(&self, api: &Api, changes: &mut Changes) -> Result<bool, Refused> {
        match self {
            Self::Owned(table, key) => owners::owned(api, changes, *table, key).map(|()| false),
            Self::Owner(uid) => owners::owner(api, changes, *uid).map(|()| false),
            Self::Namespace(key) => namespaces::empty(api, changes, key),
        }
    }
}

/// What an object asks for as it is.
pub(super) fn of_object(api: &Api, table: Table, object: &Arc<Stored>) -> Vec<Task> {
    let mut tasks = Vec::new();
    if !object.owners.is_empty() {
        tasks.push(Task::Owned(table, object.key.clone()));
    }
    if object.dying {
        tasks.push(Task::Owner(object.uid));
        if table == api.namespaces().0 {
            tasks.push(Task::Namespace(object.key.clone()));
        }
    }
    tasks
}

/// What the end of one of its objects means to a namespace.
pub(super) fn of_namespace(api: &Api, name: &str) -> Option<Task> {
    let key = Api::namespace_key(name);
    let namespace = api.store.get(api.namespaces().0, &key)?;
    namespace.dying.then_some(Task::Namespace(key))
}
