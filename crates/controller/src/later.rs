//! Kinds that are kept now and served by later versions: their objects are watched, so that each can
//! be told what it waits for. Owns the watches; passes on nothing of an object but who it is and by whom it is served.
//!
//! ```text
//!   group there? ──no──► look again in 20 s
//!        │ yes
//!        ▼
//!   list and watch ──► whose is it? ──► News::Later
//! ```
//! A cluster need not have any of these kinds, and need not let us see them: both are looked for
//! again now and then, at the price of one request.

use crate::cache::{Identity, Name, Update, Waiting, name_of};
use crate::watch::PAGE;
use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use plexus_api::later::{KINDS, LaterKind, Served};
use plexus_client::Watches;
use plexus_types::chain;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

/// How often the controller looks for a kind that the server does not have.
const ABSENT_RETRY_INTERVAL: Duration = Duration::from_secs(20);
/// How often the controller tries a kind that it may not list.
const FORBIDDEN_RETRY_INTERVAL: Duration = Duration::from_secs(600);
/// Pause after any other failure.
const ERROR_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// Those that users write; the others are made from them by whoever serves them.
const WRITTEN: [&str; 4] = [
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceClass",
    "CNIConfig",
];

/// The kinds that are watched.
pub(crate) fn kinds() -> impl Iterator<Item = &'static LaterKind> {
    KINDS.iter().filter(|later| WRITTEN.contains(&later.kind))
}

/// Watches one kind until nobody listens.
pub(crate) async fn follow(
    client: Client,
    kind: &'static LaterKind,
    watches: Watches,
    updates: Sender<Update>,
) {
    while !updates.is_closed() {
        let pause = match is_served(&client, kind).await {
            Ok(true) => watch(&client, kind, &watches, &updates).await,
            Ok(false) => ABSENT_RETRY_INTERVAL,
            Err(error) => {
                tracing::debug!(kind = kind.kind, %error, "cannot be looked for");
                ERROR_RETRY_INTERVAL
            }
        };
        sleep(pause).await;
    }
}

/// Whether the API server has the kind, in the version that we know.
async fn is_served(client: &Client, kind: &LaterKind) -> kube::Result<bool> {
    let group = format!("{}/{}", kind.group, kind.version);
    let request = timeout(REQUEST_TIMEOUT, client.list_api_group_resources(&group));
    match request.await {
        Err(_) => Ok(false),
        Ok(Ok(list)) => Ok(list.resources.iter().any(|one| one.name == kind.plural)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(false),
        Ok(Err(error)) => Err(error),
    }
}

/// Until it fails; how long to wait then.
async fn watch(
    client: &Client,
    kind: &'static LaterKind,
    watches: &Watches,
    updates: &Sender<Update>,
) -> Duration {
    let resource = ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: format!("{}/{}", kind.group, kind.version),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut stream = watches
        .watch(api, ListParams::default().limit(PAGE))
        .boxed();
    let mut begun = false;
    while let Some(item) = stream.next().await {
        let event = match item {
            Ok(event) => event,
            Err(error) if !begun => {
                let refused = error.is_forbidden();
                let error = chain(&error);
                tracing::info!(
                    kind = kind.kind,
                    error,
                    "cannot be watched: its objects are not told that they wait"
                );
                return if refused {
                    FORBIDDEN_RETRY_INTERVAL
                } else {
                    ERROR_RETRY_INTERVAL
                };
            }
            Err(error) => {
                let error = chain(&error);
                tracing::debug!(kind = kind.kind, error, "cannot watch: trying again");
                // It may be gone for good: looked for anew.
                return ERROR_RETRY_INTERVAL;
            }
        };
        begun |= matches!(event, Event::InitDone);
        if updates
            .send(Update::Later(kind, seen(kind, event)))
            .await
            .is_err()
        {
            break;
        }
    }
    ERROR_RETRY_INTERVAL
}

fn seen(kind: &'static LaterKind, event: Event<DynamicObject>) -> Event<Waiting> {
    match event {
        Event::Apply(object) => Event::Apply(waiting(kind, &object)),
        Event::Delete(object) => Event::Delete(waiting(kind, &object)),
        Event::InitApply(object) => Event::InitApply(waiting(kind, &object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

/// What matters of an object.
fn waiting(kind: &'static LaterKind, object: &DynamicObject) -> Waiting {
    let value = serde_json::to_value(object).unwrap_or_default();
    Waiting {
        kind,
        name: name_in_scope(kind, object),
        id: Identity::of(object.meta()),
        served: Served::of(kind, &value),
    }
}

fn name_in_scope(kind: &LaterKind, object: &DynamicObject) -> Name {
    let name = name_of(object);
    match kind.namespaced {
        true => name,
        false => Name::new("", name.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::queue::Key;
    use plexus_api::later;
    use serde_json::json;

    fn object(kind: &LaterKind, spec: serde_json::Value) -> DynamicObject {
        let namespace = kind.namespaced.then_some("team-a");
        serde_json::from_value(json!({
            "metadata": {"name": "x", "namespace": namespace, "uid": "u", "generation": 3},
            "spec": spec,
        }))
        .unwrap()
    }

    fn kind(name: &str) -> &'static LaterKind {
        kinds().find(|kind| kind.kind == name).unwrap()
    }

    #[test]
    fn all_that_users_write_is_watched() {
        assert_eq!(kinds().count(), WRITTEN.len());
    }

    #[test]
    fn whose_an_object_is() {
        let config = kind("CNIConfig");
        let object_view = waiting(config, &object(config, json!({})));
        assert_eq!(object_view.name, Name::new("", "x"));
        assert_eq!(object_view.id.generation, Some(3));
        assert!(object_view.kind.text.contains("DRA driver"));
        assert_eq!(object_view.served, Served::ByUs);
        let claim = kind("ResourceClaim");
        let spec = json!({"devices": {"requests": [{"exactly": {"deviceClassName": "fast"}}]}});
        let by_class = waiting(claim, &object(claim, spec));
        assert_eq!(by_class.name, Name::new("team-a", "x"));
        assert_eq!(
            by_class.served,
            Served::ByClasses(["fast".to_owned()].into())
        );
        let mut going = object(config, json!({}));
        going.metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert!(waiting(config, &going).id.deleting);
    }

    /// What the watches say of the objects makes work for those that are ours, and for no others.
    #[test]
    fn only_what_waits_for_us_is_told() {
        let mut cache = Cache::default();
        let mut work_of = |name: &str, spec: serde_json::Value| {
            let kind = kind(name);
            let event = seen(kind, Event::Apply(object(kind, spec)));
            let work = cache.feed(Update::Later(kind, event)).into_iter();
            let kinds = work.map(|(key, _)| match key {
                Key::Later(kind, name) => format!("{kind} {name}"),
                other => panic!("{other:?}"),
            });
            kinds.collect::<Vec<_>>()
        };
        let selectors = |driver: &str| {
            let expression = format!("device.driver == '{driver}'");
            json!({"selectors": [{"cel": {"expression": expression}}]})
        };
        let devices = |class: &str| json!({"devices": {"requests": [{"exactly": {"deviceClassName": class}}]}});
        assert_eq!(
            work_of("ResourceClaim", devices(later::DEVICE_CLASS)),
            ["ResourceClaim team-a/x"]
        );
        assert!(work_of("ResourceClaim", devices("gpu")).is_empty());
        // Both name a class that comes after them.
        assert!(work_of("ResourceClaim", devices("x")).is_empty());
        let template = json!({"spec": devices("x")});
        assert!(work_of("ResourceClaimTemplate", template).is_empty());
        assert!(work_of("DeviceClass", selectors("gpu.example.com")).is_empty());
        assert_eq!(
            work_of("DeviceClass", selectors(later::DRA_DRIVER)),
            [
                "ResourceClaim team-a/x",
                "ResourceClaimTemplate team-a/x",
                "DeviceClass x"
            ]
        );
    }
}
