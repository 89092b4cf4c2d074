//! A namespace that ends takes everything in it along, and goes when it is empty.

use crate::status::Refused;
use crate::store::{Changes, Key, Table};
use crate::verbs::{Api, Ending, Policy, Subject, end, waits};
use std::sync::Arc;

/// What a namespace waits for: us.
const OURS: &str = "kubernetes";
/// Objects that are ended at a time.
const BATCH: usize = 512;

/// Ends what is in a namespace; if nothing is, the namespace too. Whether more is to be done at once.
pub(super) fn empty(api: &Api, changes: &mut Changes, key: &Key) -> Result<bool, Refused> {
    let (table, _) = api.namespaces();
    let Some(namespace) = changes.get(table, key).filter(|namespace| namespace.dying) else {
        return Ok(false);
    };
    let ending = Ending::by(Policy::Background);
    let tables: Vec<(Table, Arc<crate::kinds::Kind>)> = api
        .store
        .tables()
        .filter(|(_, kind)| kind.namespaced)
        .map(|(table, kind)| (table, Arc::clone(kind)))
        .collect();
    let (mut ended, mut waiting) = (0, 0);
    for (table, kind) in tables {
        for object in changes.in_namespace(table, key.name()) {
            if object.dying {
                waiting += 1;
                continue;
            }
            if ended == BATCH {
                return Ok(true);
            }
            ended += 1;
            let subject = Subject::stored(&kind, table, &object.key);
            let _ = end(api, changes, &subject, &ending)?;
            waiting += usize::from(changes.get(table, &object.key).is_some());
        }
    }
    if waiting > 0 {
        return Ok(false);
    }
    let mut value = namespace.value()?;
    if let Some(finalizers) = value["spec"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != OURS);
    }
    if waits(&value) {
        if value != namespace.value()? {
            let _ = changes.put(table, key, value)?;
        }
        return Ok(false);
    }
    changes.remove_as(table, key, value).map(|_| false)
}
