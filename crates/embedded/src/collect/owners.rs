//! Owners and owned, by the rules of Kubernetes: an object stays as long as one of its owners does.

use crate::status::Refused;
use crate::store::{Changes, Key, Stored, Table, parse_uid};
use crate::verbs::{Api, Ending, FOREGROUND, ORPHAN, Policy, Subject, end, retain, waits};
use serde_json::Value;
use std::sync::Arc;

/// What an owner reference amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// There, or of a kind that we know nothing of.
    Solid,
    /// There, but it waits for those that it owns to go first.
    Waiting,
    /// Not there.
    Gone,
}

/// Looks at an object that names owners: it goes, or forgets those that are gone.
pub(super) fn owned(
    api: &Api,
    changes: &mut Changes,
    table: Table,
    key: &Key,
) -> Result<(), Refused> {
    let (Some(object), Some(kind)) = (changes.get(table, key), api.store.kind(table)) else {
        return Ok(());
    };
    let mut value = object.value()?;
    let references = value["metadata"]["ownerReferences"].as_array();
    let references = references.cloned().unwrap_or_default();
    let judged: Vec<Owner> = references
        .iter()
        .map(|reference| judge(api, changes, &object, kind.namespaced, reference))
        .collect();
    let count = |wanted: Owner| judged.iter().filter(|owner| **owner == wanted).count();
    let (solid, waiting) = (count(Owner::Solid), count(Owner::Waiting));
    if solid == references.len() {
        return Ok(());
    }
    if solid > 0 {
        let remaining = references.into_iter().zip(&judged);
        let remaining = remaining.filter(|(_, owner)| **owner == Owner::Solid);
        let remaining: Vec<Value> = remaining.map(|(reference, _)| reference).collect();
        value["metadata"]["ownerReferences"] = remaining.into();
        return changes.put(table, key, value).map(drop);
    }
    if object.dying {
        return Ok(());
    }
    let policy = if has_finalizer(&value, ORPHAN) {
        Policy::Orphan
    } else if waiting > 0 && !changes.owned_by(object.uid).is_empty() {
        Policy::Foreground
    } else {
        Policy::Background
    };
    let subject = Subject::stored(kind, table, key);
    end(api, changes, &subject, &Ending::by(policy)).map(drop)
}

/// Looks at an object that may be waiting for those that it owns.
pub(super) fn owner(api: &Api, changes: &mut Changes, uid: u128) -> Result<(), Refused> {
    let Some((table, object)) = changes.by_uid(uid).filter(|(_, object)| object.dying) else {
        return Ok(());
    };
    let value = object.value()?;
    if has_finalizer(&value, ORPHAN) {
        for (table, owned) in changes.owned_by(uid) {
            forget(changes, table, &owned, uid)?;
        }
        return release(changes, table, &object.key, value, ORPHAN);
    }
    if has_finalizer(&value, FOREGROUND) {
        for (table, dependent) in changes.owned_by(uid) {
            owned(api, changes, table, &dependent.key)?;
        }
        let left = changes.owned_by(uid);
        let blocked = left.iter().try_fold(false, |blocked, (_, owned)| {
            Ok::<_, Refused>(blocked || blocks(&owned.value()?, uid))
        })?;
        if !blocked {
            return release(changes, table, &object.key, value, FOREGROUND);
        }
    }
    Ok(())
}

fn judge(
    api: &Api,
    changes: &Changes,
    object: &Arc<Stored>,
    namespaced: bool,
    reference: &Value,
) -> Owner {
    let text = |field: &str| reference[field].as_str().unwrap_or("");
    let (group, version) = text("apiVersion")
        .split_once('/')
        .unwrap_or(("", text("apiVersion")));
    let Some(kind) = api.kinds.by_kind(group, version, text("kind")) else {
        return Owner::Solid;
    };
    // One in a namespace cannot own what is in none: nobody can say which namespace was meant.
    if kind.namespaced && !namespaced {
        return Owner::Solid;
    }
    let found = parse_uid(text("uid")).and_then(|uid| changes.by_uid(uid));
    let Some((table, owner)) = found else {
        return Owner::Gone;
    };
    let same_place = !kind.namespaced || owner.key.namespace() == object.key.namespace();
    let same_table = api.store.table(api.kinds.stored_as(kind)) == Some(table);
    if !same_place || !same_table || owner.key.name() != text("name") {
        return Owner::Gone;
    }
    let waits = owner.dying
        && owner
            .value()
            .is_ok_and(|owner| has_finalizer(&owner, FOREGROUND));
    if waits { Owner::Waiting } else { Owner::Solid }
}

/// Takes an owner from an object.
fn forget(changes: &mut Changes, table: Table, object: &Stored, uid: u128) -> Result<(), Refused> {
    let mut value = object.value()?;
    retain(&mut value, "ownerReferences", |reference| {
        reference["uid"].as_str().and_then(parse_uid) != Some(uid)
    });
    changes.put(table, &object.key, value).map(drop)
}

/// Takes a finalizer of ours from an object; it goes if that was the last.
fn release(
    changes: &mut Changes,
    table: Table,
    key: &Key,
    mut value: Value,
    finalizer: &str,
) -> Result<(), Refused> {
    retain(&mut value, "finalizers", |other| other != finalizer);
    if waits(&value) {
        return changes.put(table, key, value).map(drop);
    }
    changes.remove_as(table, key, value).map(drop)
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|one| one == finalizer))
}

fn blocks(owned: &Value, uid: u128) -> bool {
    let references = owned["metadata"]["ownerReferences"].as_array();
    let of_it = |reference: &&Value| reference["uid"].as_str().and_then(parse_uid) == Some(uid);
    let mut of_it = references.into_iter().flatten().filter(of_it);
    of_it.any(|reference| reference["blockOwnerDeletion"] == true)
}
