//! The two ways in which ownership changes: somebody applies, or somebody writes otherwise.

use super::Writer;
use super::compare::{Changes, same};
use super::fields::Fields;
use super::managers::{Manager, Managers, Operation, Owned};
use super::remove::EmptyContainer;
use super::step::Step;
use super::{field_set, merged, remove};
use crate::patch::shape::Shape;
use serde_json::Value;

/// What others own, by owner.
pub(super) type Conflicts = Vec<(Manager, Fields)>;

/// The new object without `managedFields`, and its owners.
pub(super) fn applying(
    shape: &Shape,
    live: &Value,
    applied: &Value,
    writer: &Writer<'_>,
    force: bool,
    managers: &Managers,
) -> Result<(Value, Managers), Conflicts> {
    let mut managers = managers.clone();
    let me = writer.id(Operation::Apply);
    let merged = merged::merged(shape, live, applied);
    let last = managers.owned.get(&me).cloned();
    let field_set = Owned {
        fields: field_set::fields(shape, applied).only(|name| writer.writes(name)),
        api_version: writer.api_version.to_owned(),
        time: last.as_ref().and_then(|last| last.time.clone()),
    };
    let _ = managers.owned.insert(me.clone(), field_set);
    let new = match &last {
        Some(last) => pruned(shape, &merged, &managers.all(), &last.fields),
        None => merged,
    };
    let changed = !same(live, &new);
    let new = writer.keep_rest(live, new);
    let changes = Changes::between(shape, live, &new).only(|name| writer.writes(name));
    let conflicts = managers.conflicts(&me, &changes);
    if !force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    managers.release(Some(&me), &changes);
    if let Some(mine) = managers.owned.get_mut(&me) {
        mine.fields = mine.fields.difference(&unowned_fields());
        if changed {
            mine.time = Some(writer.now.to_owned());
        }
        if mine.fields.is_empty() {
            let _ = managers.owned.remove(&me);
        }
    }
    Ok((new, managers))
}

/// `merged` without what a manager said last time and nobody says now, unless something that stays is
/// inside. `owned` is what anybody says now, with the manager itself.
///
/// An example: the object is `{a: {b, c}, d: {e}}`. I said `a.b` and `d.e` last time and say nothing now,
/// somebody else says `a.c`. Then `a.b`, `d.e` and the empty `d` go; `a` stays, because `a.c` is in it.
///
/// A container that somebody owns stays even if it is empty then, or null where the schema takes that (the
/// real server makes it null, which most schemas refuse).
fn pruned(shape: &Shape, merged: &Value, owned: &Fields, last: &Fields) -> Value {
    let with_containers = |value: &Value| field_set::fields(shape, value).with_named(shape);
    let without = |fields: &Fields| remove::without(shape, merged, fields, EmptyContainer::Null);
    let candidates = last.with_named(shape);
    let all = with_containers(merged);
    // What nobody ever said stays, and what somebody says now.
    let unowned = with_containers(&without(&candidates));
    let stays = unowned.union(&owned.with_named(shape));
    // To take the rest away shows which containers are needed by what stays.
    let needed = with_containers(&without(&all.difference(&stays)));
    let gone = candidates.intersection(&all.difference(&needed));
    remove::without(shape, merged, &gone, EmptyContainer::Empty)
}

/// Ownership after a plain write.
pub(super) fn took_over(
    shape: &Shape,
    before: &Value,
    after: &Value,
    writer: &Writer<'_>,
    managers: &mut Managers,
) {
    let changes = Changes::between(shape, before, after).only(|name| writer.writes(name));
    managers.release(None, &changes);
    let fields = changes
        .modified
        .union(&changes.added)
        .difference(&unowned_fields());
    if fields.is_empty() {
        return;
    }
    let owned = managers
        .owned
        .entry(writer.id(Operation::Update))
        .or_insert_with(|| Owned {
            fields: Fields::default(),
            api_version: writer.api_version.to_owned(),
            time: None,
        });
    owned.fields = owned.fields.union(&fields);
    owned.time = Some(writer.now.to_owned());
}

/// What the server sets: nobody owns it.
fn unowned_fields() -> Fields {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let leaf = |fields: &mut Fields, name: &str| {
        fields.add(Step::Field(name.to_owned()), true, Fields::default());
    };
    let mut metadata = Fields::default();
    for name in METADATA {
        leaf(&mut metadata, name);
    }
    let mut unowned_fields = Fields::default();
    unowned_fields.add(Step::Field("metadata".to_owned()), true, metadata);
    leaf(&mut unowned_fields, "apiVersion");
    leaf(&mut unowned_fields, "kind");
    unowned_fields
}
