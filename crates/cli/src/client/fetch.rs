//! Lists of objects for a [`Snapshot`]. A kind that the server does not have, or does not show us, is
//! noted there and takes nothing else with it.

use super::{ClientError, Session};
use crate::kinds::{self, Kind};
use crate::snapshot::Snapshot;
use futures::future::join_all;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use plexus_api::later;
use plexus_types::chain;
use serde_json::{Value, json};

/// Objects per request.
const PAGE_SIZE: u32 = 500;
/// Pages per list; a server that never ends is left, with an error.
const MAX_PAGES: usize = 2000;

/// What a command needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Pods of the namespace, or of all.
    Pods,
    /// The agents' own pods.
    Agents,
    /// Networks.
    Networks,
    /// NetworkAttachmentDefinitions.
    Nads,
    /// Blocks.
    Blocks,
    /// BlockRequests.
    Requests,
    /// Nodes.
    Nodes,
    /// PodAttachments.
    Records,
    /// Namespaces.
    Namespaces,
    /// Events of the namespace, or of all.
    Events,
    /// Claims, DeviceClasses, CNIConfigs, MultiNicNetworks.
    Waiting,
    /// DeviceClasses alone, as far as the server gives them.
    Classes,
    /// The controller's Lease.
    Leases,
}

impl Need {
    /// Everything, for diagnoses.
    pub const ALL: [Need; 12] = [
        Need::Pods,
        Need::Agents,
        Need::Networks,
        Need::Nads,
        Need::Blocks,
        Need::Requests,
        Need::Nodes,
        Need::Records,
        Need::Namespaces,
        Need::Events,
        Need::Waiting,
        Need::Leases,
    ];
}

const CLASSES: &str = "deviceclasses";
/// The objects of a kind, or of some.
#[derive(Default)]
pub(super) struct Listed {
    found: Vec<Value>,
    /// Why there may be more that we are not shown; empty: there are no more.
    hidden: String,
    /// The namespace of which all are known even so.
    known_in: Option<String>,
}

impl Listed {
    fn all(found: Vec<Value>) -> Self {
        Self {
            found,
            ..Self::default()
        }
    }
}

/// The labels of our own agents.
pub(super) const AGENTS: &str = "app.kubernetes.io/name=plexus,app.kubernetes.io/component=agent";
/// The name of the controllers' Lease.
pub(super) const LEASE: &str = "metadata.name=plexus-controller";

impl Snapshot {
    /// Takes what a server has said of a list. What it does not have, or does not show, is noted.
    pub(super) fn take(
        &mut self,
        need: Need,
        list: Result<Listed, ClientError>,
    ) -> Result<(), ClientError> {
        match list {
            Ok(Listed {
                found,
                hidden,
                known_in,
            }) => {
                if !hidden.is_empty() {
                    self.unknown.insert(word(need), hidden);
                    self.known_in.extend(known_in.map(|one| (word(need), one)));
                }
                list_of(self, need).extend(found);
            }
            Err(error) if error.is_missing() || error.is_forbidden() => {
                self.unknown.insert(word(need), error.to_string());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Session {
    /// The objects of a kind: in a namespace, or everywhere; with those labels, if some are given.
    pub fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Value>, ClientError> {
        self.wait(self.listed(kind, namespace, labels, None))
    }

    /// What there is. `namespace` bounds pods and Events, which are many, and whatever we may not see
    /// elsewhere; none: everywhere.
    pub fn snapshot(
        &self,
        needs: &[Need],
        namespace: Option<&str>,
        now: i64,
    ) -> Result<Snapshot, ClientError> {
        let mut snapshot = Snapshot {
            now,
            ..Snapshot::default()
        };
        let lists = needs.iter().map(|need| self.needed(*need, namespace));
        for (need, list) in needs.iter().zip(self.wait(join_all(lists))) {
            snapshot.take(*need, list)?;
        }
        Ok(snapshot)
    }

    pub(super) async fn needed(
        &self,
        need: Need,
        namespace_asked: Option<&str>,
    ) -> Result<Listed, ClientError> {
        let (kind, namespace, labels, fields) = match need {
            Need::Pods => (kind("pods"), namespace_asked, None, None),
            Need::Agents => (kind("pods"), None, Some(AGENTS), None),
            Need::Networks => (kind("networks"), None, None, None),
            Need::Nads => (kind("nads"), None, None, None),
            Need::Blocks => (kind("blocks"), None, None, None),
            Need::Requests => (kind("blockrequests"), None, None, None),
            Need::Nodes => (kind("nodes"), None, None, None),
            Need::Records => (kind("attachments"), None, None, None),
            Need::Namespaces => (kind("namespaces"), None, None, None),
            Need::Events => (Some(EVENTS), namespace_asked, None, None),
            Need::Leases => (Some(LEASES), None, None, Some(LEASE)),
            Need::Waiting => return self.waiting(namespace_asked).await,
            Need::Classes => return Ok(self.classes().await),
        };
        let Some(kind) = kind else {
            return Ok(Listed::default());
        };
        if namespace.is_some() || labels.is_some() || fields.is_some() {
            let found = self.listed(&kind, namespace, labels, fields).await?;
            return Ok(Listed::all(found));
        }
        self.list_if_allowed(&kind, namespace_asked).await
    }

    /// All objects of a kind; those of the namespace that is asked about, if we may not see all.
    async fn list_if_allowed(
        &self,
        kind: &Kind,
        namespace_asked: Option<&str>,
    ) -> Result<Listed, ClientError> {
        let (error, namespace_asked) =
            match (self.listed(kind, None, None, None).await, namespace_asked) {
                (Ok(found), _) => return Ok(Listed::all(found)),
                (Err(error), Some(namespace_asked)) if error.is_forbidden() => {
                    (error, namespace_asked)
                }
                (Err(error), _) => return Err(error),
            };
        let found = match kind.kind {
            "Namespace" => {
                let found = self.one(kind, namespace_asked).await;
                found.ok().flatten().map(|one| vec![one])
            }
            _ if kind.namespaced => self
                .listed(kind, Some(namespace_asked), None, None)
                .await
                .ok(),
            _ => None,
        };
        match found {
            Some(found) => Ok(Listed {
                found,
                hidden: format!(
                    "{error}; of {} only namespace {namespace_asked} is known",
                    kind.plural
                ),
                known_in: Some(namespace_asked.to_owned()),
            }),
            None => Err(error),
        }
    }

    /// An object that is in no namespace, if it is there.
    pub(super) async fn one(&self, kind: &Kind, named: &str) -> Result<Option<Value>, ClientError> {
        let found = self.api(kind, None).get_opt(named).await;
        let found = found.map_err(|error| self.failed(format!("get {}", kind.plural), error))?;
        Ok(found.map(|found| whole(found, kind)))
    }

    /// Kinds that a server need not have at all.
    async fn waiting(&self, namespace_asked: Option<&str>) -> Result<Listed, ClientError> {
        let kinds: Vec<Kind> = later::KINDS.iter().filter_map(|k| kind(k.plural)).collect();
        let lists = kinds
            .iter()
            .map(|kind| self.list_if_allowed(kind, namespace_asked));
        let mut all = Listed::default();
        // Claims are known there if those of every kind are.
        let mut claims_are_known = true;
        for (kind, list) in kinds.iter().zip(join_all(lists).await) {
            let hidden = match list {
                Ok(list) => {
                    all.found.extend(list.found);
                    list.hidden
                }
                Err(error) if error.is_missing() => continue,
                Err(error) if error.is_forbidden() => {
                    claims_are_known &= !kind.namespaced;
                    error.to_string()
                }
                Err(error) => return Err(error),
            };
            if all.hidden.is_empty() {
                all.hidden = hidden;
            }
        }
        all.known_in = namespace_asked
            .filter(|_| claims_are_known)
            .map(str::to_owned);
        Ok(all)
    }

    /// A claim can be shown without them, whatever keeps them from us.
    async fn classes(&self) -> Listed {
        let Some(kind) = kind(CLASSES) else {
            return Listed::default();
        };
        match self.listed(&kind, None, None, None).await {
            Ok(found) => Listed::all(found),
            Err(error) => {
                let why = format!(
                    "{}; of the classes that claims name only {} is known to be ours",
                    chain(&error),
                    later::DEVICE_CLASS
                );
                Listed {
                    hidden: why,
                    ..Listed::default()
                }
            }
        }
    }

    pub(super) async fn listed(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Vec<Value>, ClientError> {
        let api = self.api(kind, namespace);
        let mut params = ListParams::default().limit(PAGE_SIZE);
        params.label_selector = labels.map(str::to_owned);
        params.field_selector = fields.map(str::to_owned);
        let what = || format!("list {}", kind.plural);
        let mut all = Vec::new();
        for _ in 0..MAX_PAGES {
            let page = match api.list(&params).await {
                Err(error) if has_expired(&params, &error) => {
                    // The list as it was when it began is forgotten: all of it at once, as it is now.
                    all.clear();
                    (params.limit, params.continue_token) = (None, None);
                    continue;
                }
                page => page.map_err(|error| self.no_kind(what(), kind, error))?,
            };
            for object in page.items {
                all.push(whole(object, kind));
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(all),
            }
        }
        Err(ClientError::Endless {
            what: what(),
            server: self.server.clone(),
            objects: all.len(),
        })
    }

    pub(super) fn api(&self, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        };
        match namespace.filter(|_| kind.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// A list that is not found is a kind that is not known.
    pub(super) fn no_kind(&self, what: String, kind: &Kind, error: kube::Error) -> ClientError {
        match self.failed(&*what, error) {
            ClientError::Refused { code: 404, .. } => ClientError::NoKind {
                what,
                kind: kind.kind.to_owned(),
                api_version: kind.api_version(),
            },
            error => error,
        }
    }
}

/// Whether a server no longer knows the list of which this would be the next page.
fn has_expired(params: &ListParams, error: &kube::Error) -> bool {
    params.continue_token.is_some()
        && matches!(error, kube::Error::Api(status) if status.code == 410)
}

pub(super) fn kind(word: &str) -> Option<Kind> {
    kinds::find(word).ok()
}

pub(super) const EVENTS: Kind = kinds::plain("", "v1", "Event", "events", true);
pub(super) const LEASES: Kind = kinds::plain("coordination.k8s.io", "v1", "Lease", "leases", true);

pub(super) fn list_of(snapshot: &mut Snapshot, need: Need) -> &mut Vec<Value> {
    match need {
        Need::Pods | Need::Agents => &mut snapshot.pods,
        Need::Networks => &mut snapshot.networks,
        Need::Nads => &mut snapshot.nads,
        Need::Blocks => &mut snapshot.blocks,
        Need::Requests => &mut snapshot.requests,
        Need::Nodes => &mut snapshot.nodes,
        Need::Records => &mut snapshot.records,
        Need::Namespaces => &mut snapshot.namespaces,
        Need::Events => &mut snapshot.events,
        Need::Waiting | Need::Classes => &mut snapshot.waiting,
        Need::Leases => &mut snapshot.leases,
    }
}

/// How a list is called in [`Snapshot::unknown`].
pub(super) fn word(need: Need) -> &'static str {
    match need {
        Need::Pods => "pods",
        Need::Agents => "agents",
        Need::Networks => "networks",
        Need::Nads => "nads",
        Need::Blocks => "blocks",
        Need::Requests => "blockrequests",
        Need::Nodes => "nodes",
        Need::Records => "attachments",
        Need::Namespaces => "namespaces",
        Need::Events => "events",
        Need::Waiting => "waiting",
        Need::Classes => CLASSES,
        Need::Leases => "leases",
    }
}

/// Items of a list do not say what they are.
pub(super) fn whole(object: DynamicObject, kind: &Kind) -> Value {
    let mut value = serde_json::to_value(&object).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.insert("apiVersion".to_owned(), json!(kind.api_version()));
        map.insert("kind".to_owned(), json!(kind.kind));
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    value
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
pub(super) mod tests;
