//! The few things that we ask of the API server, each with the object and the place in its error.
//! Writes are patches, creates and deletes that name what they expect; nothing is replaced.

use crate::FIELD_MANAGER;
use crate::cache::{Identity, Name, NetworkView, View};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::{Client, Resource, ResourceExt};
use plexus_api::objects::{Block, BlockRequest, Network, NetworkStatus, PodAttachments};
use serde_json::{Value, json};
use std::time::Duration;

/// A request that did not do what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Somebody else changed the object; the watch brings the news.
    #[error("{object} has changed since it was read")]
    Changed { object: String },
    /// The API server refuses it as it is; asking again alone does not help.
    #[error("the API server refuses to {what} {object}: {why}")]
    Refused {
        what: &'static str,
        object: String,
        why: String,
    },
    /// Anything else.
    #[error("cannot {what} {object}")]
    Request {
        what: &'static str,
        object: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// No answer.
    #[error("cannot {what} {object}: no answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Silence { what: &'static str, object: String },
}

/// How long one request may take. Short enough that a leader that lost its lease writes nothing
/// after its successor began.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// The API server, as the one who acts sees it.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
}

impl Cluster {
    /// Writes a Network's status, if it is still the version that was read.
    pub(crate) async fn set_status(
        &self,
        name: &Name,
        id: &Identity,
        status: &NetworkStatus,
    ) -> Result<NetworkView, Failure> {
        let mut value = json!(status);
        for key in ["phase", "observedGeneration", "vni", "usage", "conditions"] {
            if value.get(key).is_none() {
                value[key] = Value::Null;
            }
        }
        let patch =
            json!({"metadata": {"resourceVersion": id.version, "uid": id.uid}, "status": value});
        let api = self.networks(&name.namespace);
        let (params, patch) = (manager(), Patch::Merge(&patch));
        let sent = api.patch_status(&name.name, &params, &patch);
        self.answer("write the status of", format!("Network {name}"), sent)
            .await
            .map(NetworkView::of)
    }

    /// Writes parts of a Network, if it is still the version that was read.
    pub(crate) async fn patch_network(
        &self,
        name: &Name,
        id: &Identity,
        finalizers: Option<&[String]>,
        spec: Option<Value>,
    ) -> Result<NetworkView, Failure> {
        let mut patch = json!({"metadata": {"resourceVersion": id.version, "uid": id.uid}});
        if let Some(finalizers) = finalizers {
            patch["metadata"]["finalizers"] = json!(finalizers);
        }
        if let Some(spec) = spec {
            patch["spec"] = spec;
        }
        let api = self.networks(&name.namespace);
        let (params, patch) = (manager(), Patch::Merge(&patch));
        let sent = api.patch(&name.name, &params, &patch);
        self.answer("change", format!("Network {name}"), sent)
            .await
            .map(NetworkView::of)
    }

    /// Makes a Network; none if there is one of that name.
    pub(crate) async fn create_network(
        &self,
        name: &Name,
        network: &Network,
    ) -> Result<Option<NetworkView>, Failure> {
        let api: Api<Network> = Api::namespaced(self.client.clone(), &name.namespace);
        let params = post();
        let sent = api.create(&params, network);
        match self.answer("create", format!("Network {name}"), sent).await {
            Ok(network) => Ok(Some(NetworkView::of(DeserializeGuard(Ok(network))))),
            Err(Failure::Changed { .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Deletes a Network, if it is this one.
    pub(crate) async fn delete_network(&self, name: &Name, uid: &str) -> Result<(), Failure> {
        let api = self.networks(&name.namespace);
        self.delete(&api, format!("Network {name}"), &name.name, uid, None)
            .await
    }

    /// Deletes a Block, if it is this version of it: an owner that writes to it is alive.
    pub(crate) async fn delete_block(&self, name: &Name, id: &Identity) -> Result<(), Failure> {
        let api: Api<Block> = Api::all(self.client.clone());
        self.delete(
            &api,
            format!("Block {name}"),
            &name.name,
            &id.uid,
            id.version.clone(),
        )
        .await
    }

    /// Deletes a BlockRequest, if it is this one.
    pub(crate) async fn delete_request(&self, name: &Name, uid: &str) -> Result<(), Failure> {
        let api: Api<BlockRequest> = Api::all(self.client.clone());
        self.delete(&api, format!("BlockRequest {name}"), &name.name, uid, None)
            .await
    }

    /// Takes the agents' finalizer off a record and deletes it.
    pub(crate) async fn remove_record(
        &self,
        name: &Name,
        id: &Identity,
        finalizer: &str,
    ) -> Result<(), Failure> {
        let api: Api<PartialObjectMeta<PodAttachments>> =
            Api::namespaced(self.client.clone(), &name.namespace);
        let object = format!("PodAttachments {name}");
        if !id.deleting {
            self.delete(&api, object.clone(), &name.name, &id.uid, None)
                .await?;
        }
        // Its finalizers are read again: others may have added theirs.
        let found = api.get_opt(&name.name);
        let Some(now) = self.answer("read", object.clone(), found).await? else {
            return Ok(());
        };
        if now.uid().as_deref() != Some(id.uid.as_str())
            || !now.finalizers().iter().any(|one| one == finalizer)
        {
            return Ok(());
        }
        let others: Vec<&String> = now
            .finalizers()
            .iter()
            .filter(|one| *one != finalizer)
            .collect();
        let patch =
            json!({"metadata": {"resourceVersion": now.resource_version(), "finalizers": others}});
        let params = manager();
        let patch = Patch::Merge(&patch);
        let sent = api.patch(&name.name, &params, &patch);
        gone_is_fine(self.answer("release", object, sent).await.map(|_| ()))
    }

    /// Whether there is such an object now, and its UID; asks the API server, not the cache.
    pub(crate) async fn uid_of<K>(
        &self,
        api: Api<PartialObjectMeta<K>>,
        kind: &str,
        name: &str,
    ) -> Result<Option<PartialObjectMeta<K>>, Failure>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug,
    {
        let found = api.get_opt(name);
        self.answer("look for", format!("{kind} {name}"), found)
            .await
    }

    /// A Node, asked for now.
    pub(crate) async fn node(
        &self,
        name: &str,
    ) -> Result<Option<PartialObjectMeta<Node>>, Failure> {
        self.uid_of(Api::all(self.client.clone()), "Node", name)
            .await
    }

    /// The pods that are bound to a Node's name, asked for now. `networked`: only those with a
    /// network of their own.
    pub(crate) async fn pods_on(
        &self,
        node: &str,
        networked: bool,
    ) -> Result<Vec<PartialObjectMeta<Pod>>, Failure> {
        let api: Api<PartialObjectMeta<Pod>> = Api::all(self.client.clone());
        let own = if networked {
            ",spec.hostNetwork=false"
        } else {
            ""
        };
        let params = ListParams::default().fields(&format!("spec.nodeName={node}{own}"));
        let found = api.list(&params);
        Ok(self
            .answer("list the pods of", format!("Node {node}"), found)
            .await?
            .items)
    }

    /// Makes an Event; false if there is one of that name, which says the same.
    pub(crate) async fn create_event(&self, event: &Event) -> Result<bool, Failure> {
        let (api, object) = self.event(event);
        let params = post();
        let sent = api.create(&params, event);
        match self.answer("create", object, sent).await {
            Ok(_) => Ok(true),
            Err(Failure::Changed { .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Says an Event again that was said `count` times, if that is known; how often it was said now, none if it
    /// is gone.
    pub(crate) async fn renew_event(
        &self,
        event: &Event,
        count: Option<i32>,
    ) -> Result<Option<i32>, Failure> {
        let (api, object) = self.event(event);
        let mut patch = json!({"lastTimestamp": event.last_timestamp});
        if let Some(count) = count {
            patch["count"] = count.saturating_add(1).into();
        }
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let (params, patch) = (manager(), Patch::Merge(&patch));
        let sent = api.patch(name, &params, &patch);
        match self.answer("renew", object, sent).await {
            Ok(renewed) => Ok(Some(renewed.count.unwrap_or(1))),
            Err(Failure::Request { source, .. }) if is_missing(&source) => Ok(None),
            // The role of an earlier version may only make them.
            Err(Failure::Request { source, .. }) if is_forbidden(&source) => {
                Ok(Some(count.unwrap_or(1)))
            }
            Err(failure) => Err(failure),
        }
    }

    fn event(&self, event: &Event) -> (Api<Event>, String) {
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let api = Api::namespaced(self.client.clone(), namespace);
        (api, format!("Event {namespace}/{name}"))
    }

    /// Makes a ConfigMap what it should be.
    pub(crate) async fn apply_config_map(
        &self,
        name: &Name,
        map: &ConfigMap,
    ) -> Result<(), Failure> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &name.namespace);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(map);
        let sent = api.patch(&name.name, &params, &patch);
        self.answer("apply", format!("ConfigMap {name}"), sent)
            .await
            .map(|_| ())
    }

    /// A ConfigMap, asked for now.
    pub(crate) async fn config_map(&self, name: &Name) -> Result<Option<ConfigMap>, Failure> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &name.namespace);
        let found = api.get_opt(&name.name);
        self.answer("read", format!("ConfigMap {name}"), found)
            .await
    }

    fn networks(&self, namespace: &str) -> Api<DeserializeGuard<Network>> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) async fn delete<K>(
        &self,
        api: &Api<K>,
        object: String,
        name: &str,
        uid: &str,
        version: Option<String>,
    ) -> Result<(), Failure>
    where
        K: Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: version,
            }),
            ..DeleteParams::default()
        };
        let sent = api.delete(name, &params);
        gone_is_fine(self.answer("delete", object, sent).await.map(|_| ()))
    }

    pub(crate) async fn answer<T>(
        &self,
        what: &'static str,
        object: String,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Failure> {
        match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
            Err(_) => Err(Failure::Silence { what, object }),
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                Err(Failure::Changed { object })
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 422 => Err(Failure::Refused {
                what,
                object,
                why: status.message.clone(),
            }),
            Ok(Err(source)) => Err(Failure::Request {
                what,
                object,
                source: Box::new(source),
            }),
        }
    }
}

fn gone_is_fine(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(Failure::Request { source, .. }) if is_missing(&source) => Ok(()),
        result => result,
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

pub(crate) fn manager() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

pub(crate) fn post() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}
