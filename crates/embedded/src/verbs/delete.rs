//! DELETE, of one object or of many: at once, or when all who have asked to be waited for are done.

use super::change::waits;
use super::intent::Intent;
use super::list::Selection;
use super::subject::Subject;
use super::{Api, identity};
use crate::clock;
use crate::http::{Answer, Request, decode};
use crate::status::{Cause, Refused};
use crate::store::{self, Changes, Stored};
use crate::table::{self, Form};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";
/// What Kubernetes calls the options of this verb.
const OPTIONS: &str = "DeleteOptions";
/// How long a pod has to end if nobody says, and at most, in seconds: about ten years.
const POD_GRACE: i64 = 30;
const MAX_GRACE: i64 = 10 * 366 * 86_400;
/// Namespaces that cannot be deleted, besides those that whoever runs the server cannot do without.
const PROTECTED_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// `propagationPolicy`: what becomes of the objects that name this one as owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The collector deletes them after it.
    Background,
    /// It waits until they are deleted.
    Foreground,
    /// They stay, and no longer name it.
    Orphan,
}

/// `DeleteOptions`: how an object is to be deleted, and under which conditions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    policy: Option<Policy>,
    grace: Option<i64>,
    uid: Option<String>,
    version: Option<String>,
    dry_run: bool,
}

impl Ending {
    /// With a policy, and nothing else.
    pub(crate) fn by(policy: Policy) -> Self {
        Self {
            policy: Some(policy),
            ..Self::default()
        }
    }

    fn of(request: &Request) -> Result<Self, Refused> {
        let body = if request.body.is_empty() {
            Value::Null
        } else {
            decode(request.media().as_deref(), &request.body)?.value
        };
        let query = &request.query;
        let dry_run = Intent::of(request, OPTIONS)?.dry_run
            || body["dryRun"].as_array().is_some_and(|all| !all.is_empty());
        let requested = body["propagationPolicy"].as_str();
        let policy = match requested.or_else(|| query.get("propagationPolicy")) {
            None | Some("") => None,
            Some("Background") => Some(Policy::Background),
            Some("Foreground") => Some(Policy::Foreground),
            Some("Orphan") => Some(Policy::Orphan),
            Some(other) => {
                let why = "must be one of Background, Foreground, Orphan";
                return Err(Refused::options(
                    OPTIONS,
                    Cause::invalid("propagationPolicy", &other.into(), why),
                ));
            }
        };
        let orphan = body["orphanDependents"].as_bool();
        let orphan = orphan.map(|orphan| {
            if orphan {
                Policy::Orphan
            } else {
                Policy::Background
            }
        });
        let grace = match &body["gracePeriodSeconds"] {
            Value::Null => query
                .number("gracePeriodSeconds")?
                .and_then(|grace| i64::try_from(grace).ok()),
            value => Some(value.as_i64().filter(|grace| *grace >= 0).ok_or_else(|| {
                let why = "must be greater than or equal to 0";
                Refused::options(OPTIONS, Cause::invalid("gracePeriodSeconds", value, why))
            })?),
        };
        let precondition = |field: &str| {
            let text = body["preconditions"][field].as_str();
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Ok(Self {
            policy: policy.or(orphan),
            grace,
            uid: precondition("uid"),
            version: precondition("resourceVersion"),
            dry_run,
        })
    }

    fn check(&self, subject: &Subject, object: &Value) -> Result<(), Refused> {
        let conflict = |why: String| Refused::conflict(&subject.kind, &subject.name, why);
        let uid = identity::text(object, "uid");
        if let Some(wanted) = self.uid.as_deref().filter(|wanted| *wanted != uid) {
            return Err(conflict(format!(
                "Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
            )));
        }
        let version = identity::text(object, "resourceVersion");
        if let Some(wanted) = self.version.as_deref().filter(|wanted| *wanted != version) {
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the \
                 ResourceVersion in record ({version}). The object might have been modified"
            )));
        }
        Ok(())
    }
}

/// What a deletion came to: the object is gone, or waits for finalizers or its grace period.
#[derive(Debug)]
pub(crate) enum Ended {
    Gone(Arc<Stored>),
    Remains(Arc<Stored>),
}

pub(super) async fn delete(
    api: &Arc<Api>,
    subject: Subject,
    request: &Request,
    form: Form,
) -> Result<Answer, Refused> {
    let ending = Ending::of(request)?;
    let (writer, of) = (Arc::clone(api), subject.clone());
    let ended = api.store.write(move |changes| {
        if ending.dry_run {
            return changes.without_trace(|changes| end(&writer, changes, &of, &ending));
        }
        end(&writer, changes, &of, &ending)
    });
    match ended.await? {
        Ended::Remains(object) => subject.answer(200, &object, form),
        Ended::Gone(object) if subject.kind.core && subject.kind.kind == "Pod" => {
            subject.answer(200, &object, form)
        }
        Ended::Gone(object) => {
            let object = object.value()?;
            let mut details = json!({
                "name": subject.name, "kind": subject.kind.plural,
                "uid": object["metadata"]["uid"],
            });
            if !subject.kind.group.is_empty() {
                details["group"] = subject.kind.group.clone().into();
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": details,
            });
            Ok(Answer::json(200, &status))
        }
    }
}

/// All that are selected, in one namespace.
pub(super) async fn all(
    api: &Arc<Api>,
    subject: Subject,
    request: &Request,
) -> Result<Answer, Refused> {
    let everywhere = subject.kind.namespaced && subject.namespace.is_empty();
    if everywhere || !subject.kind.verbs().contains(&"deletecollection") {
        return Err(Refused::method_not_allowed());
    }
    let ending = Ending::of(request)?;
    let selection = Selection::of(&subject, request)?;
    let (writer, of) = (Arc::clone(api), subject.clone());
    let ended = api.store.write(move |changes| {
        if ending.dry_run {
            return changes
                .without_trace(|changes| end_all(&writer, changes, &of, &selection, &ending));
        }
        end_all(&writer, changes, &of, &selection, &ending)
    });
    let (ended, version) = ended.await?;
    let served: Result<Vec<Value>, Refused> = ended
        .iter()
        .map(|object| Ok(subject.outward(object.value()?)))
        .collect();
    let metadata = json!({"resourceVersion": version.to_string()});
    let list = table::list(
        &subject.kind,
        Form::Whole,
        metadata,
        &served?,
        clock::seconds(),
    );
    Ok(Answer::json(200, &list))
}

fn end_all(
    api: &Api,
    changes: &mut Changes,
    subject: &Subject,
    selection: &Selection,
    ending: &Ending,
) -> Result<(Vec<Arc<Stored>>, u64), Refused> {
    let part = store::ListScope {
        namespace: Some(subject.namespace.as_str()).filter(|namespace| !namespace.is_empty()),
        after: None,
    };
    let (found, version) = api.store.list(subject.table, part);
    let mut ended = Vec::new();
    for object in found {
        // Somebody before us in this turn may have removed or changed it.
        let Some(object) = changes.get(subject.table, &object.key) else {
            continue;
        };
        if !selection.has(subject, &object) {
            continue;
        }
        let mut one = subject.clone();
        one.namespace = object.key.namespace().to_owned();
        one.name = object.key.name().to_owned();
        ended.push(match end(api, changes, &one, ending)? {
            Ended::Gone(object) | Ended::Remains(object) => object,
        });
    }
    Ok((ended, version))
}

/// Ends an object, or marks it as ending.
///
/// # Errors
/// It is not there, another one, or one that stays.
pub(crate) fn end(
    api: &Api,
    changes: &mut Changes,
    subject: &Subject,
    ending: &Ending,
) -> Result<Ended, Refused> {
    let key = subject.key();
    let live = changes.get(subject.table, &key);
    let live = live.ok_or_else(|| subject.not_found())?;
    let before = live.value()?;
    ending.check(subject, &before)?;
    let kind = &subject.stored;
    let is = |name: &str| kind.core && kind.kind == name;
    let name = subject.name.as_str();
    if is("Namespace")
        && (PROTECTED_NAMESPACES.contains(&name) || api.needed.iter().any(|needed| needed == name))
    {
        let why = "this namespace may not be deleted";
        return Err(Refused::forbidden(&subject.kind, &subject.name, why));
    }
    let grace = if api.pods_wait && is("Pod") {
        pod_grace(&before, ending.grace)
    } else {
        0
    };
    let mut after = before.clone();
    set_policy(&mut after, ending.policy);
    let was = &before["metadata"]["deletionGracePeriodSeconds"];
    let shorter = was.as_i64().is_none_or(|was| grace < was);
    if !live.dying || shorter {
        let end = clock::rfc3339(changes.now().saturating_add(grace));
        after["metadata"]["deletionTimestamp"] = end.into();
        after["metadata"]["deletionGracePeriodSeconds"] = grace.into();
    }
    if !live.dying && kind.has_generation {
        let generation = before["metadata"]["generation"].as_i64().unwrap_or(0);
        after["metadata"]["generation"] = (generation + 1).into();
    }
    if is("Namespace") {
        after["status"]["phase"] = "Terminating".into();
    }
    if after == before {
        return Ok(Ended::Remains(live));
    }
    if waits(&after) {
        return changes.put(subject.table, &key, after).map(Ended::Remains);
    }
    changes.remove(subject.table, &key).map(Ended::Gone)
}

/// What becomes of the owned is a finalizer that the collector takes away.
fn set_policy(object: &mut Value, policy: Option<Policy>) {
    let Some(policy) = policy else {
        return;
    };
    identity::retain(object, "finalizers", |finalizer| {
        finalizer != FOREGROUND && finalizer != ORPHAN
    });
    let waits_for = match policy {
        Policy::Background => return,
        Policy::Foreground => FOREGROUND,
        Policy::Orphan => ORPHAN,
    };
    match object["metadata"]["finalizers"].as_array_mut() {
        Some(finalizers) => finalizers.push(waits_for.into()),
        None => object["metadata"]["finalizers"] = vec![waits_for].into(),
    }
}

/// A pod that is on a node and has not ended is given time.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let on_a_node = pod["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty());
    let ended = ["Succeeded", "Failed"].contains(&pod["status"]["phase"].as_str().unwrap_or(""));
    if !on_a_node || ended {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64();
    asked.or(own).unwrap_or(POD_GRACE).clamp(0, MAX_GRACE)
}
