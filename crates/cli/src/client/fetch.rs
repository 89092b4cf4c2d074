//! Lists of objects for a [`World`]. A kind that the server does not have, or does not show us, is
//! noted there and takes nothing else with it.

use super::{ClientError, Session};
use crate::kinds::{self, Kind};
use crate::world::World;
use futures::future::join_all;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use plexus_api::later;
use serde_json::{Value, json};

/// Objects per request.
const PAGE: u32 = 500;
/// Pages per list; a server that never ends is left.
const MOST_PAGES: usize = 400;

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
    /// Claims, CNIConfigs, MultiNicNetworks.
    Waiting,
    /// The controller's Lease.
    Leases,
}

impl Need {
    /// All, for explanations.
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

/// The labels of our own agents.
const AGENTS: &str = "app.kubernetes.io/name=plexus,app.kubernetes.io/component=agent";
/// The name of the controllers' Lease.
const LEASE: &str = "metadata.name=plexus-controller";

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

    /// What there is. `namespace` bounds pods and Events, which are many; none: everywhere.
    pub fn world(
        &self,
        needs: &[Need],
        namespace: Option<&str>,
        now: i64,
    ) -> Result<World, ClientError> {
        let mut world = World {
            now,
            ..World::default()
        };
        let lists = needs.iter().map(|need| self.needed(*need, namespace));
        for (need, list) in needs.iter().zip(self.wait(join_all(lists))) {
            match list {
                Ok((found, hidden)) => {
                    place(&mut world, *need).extend(found);
                    world.unknown.extend(hidden.map(|why| (word(*need), why)));
                }
                Err(error) if error.is_missing() || error.is_forbidden() => {
                    world.unknown.insert(word(*need), error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(world)
    }

    /// The objects, and why there may be others that are not shown.
    async fn needed(
        &self,
        need: Need,
        namespace: Option<&str>,
    ) -> Result<(Vec<Value>, Option<String>), ClientError> {
        let (kind, namespace, labels, fields) = match need {
            Need::Pods => (kind("pods"), namespace, None, None),
            Need::Agents => (kind("pods"), None, Some(AGENTS), None),
            Need::Networks => (kind("networks"), None, None, None),
            Need::Nads => (kind("nads"), None, None, None),
            Need::Blocks => (kind("blocks"), None, None, None),
            Need::Requests => (kind("blockrequests"), None, None, None),
            Need::Nodes => (kind("nodes"), None, None, None),
            Need::Records => (kind("attachments"), None, None, None),
            Need::Namespaces => (kind("namespaces"), None, None, None),
            Need::Events => (Some(EVENTS), namespace, None, None),
            Need::Leases => (Some(LEASES), None, None, Some(LEASE)),
            Need::Waiting => return self.waiting().await,
        };
        match kind {
            Some(kind) => Ok((self.listed(&kind, namespace, labels, fields).await?, None)),
            None => Ok((Vec::new(), None)),
        }
    }

    /// Kinds that a server need not have at all.
    async fn waiting(&self) -> Result<(Vec<Value>, Option<String>), ClientError> {
        let kinds: Vec<Kind> = later::KINDS.iter().filter_map(|k| kind(k.plural)).collect();
        let lists = kinds.iter().map(|kind| self.listed(kind, None, None, None));
        let (mut all, mut hidden) = (Vec::new(), None);
        for list in join_all(lists).await {
            match list {
                Ok(list) => all.extend(list),
                Err(error) if error.is_missing() => {}
                Err(error) if error.is_forbidden() => hidden = Some(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok((all, hidden))
    }

    async fn listed(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Vec<Value>, ClientError> {
        let api = self.api(kind, namespace);
        let mut params = ListParams::default().limit(PAGE);
        params.label_selector = labels.map(str::to_owned);
        params.field_selector = fields.map(str::to_owned);
        let what = || format!("list {}", kind.plural);
        let mut all = Vec::new();
        for _ in 0..MOST_PAGES {
            let page = api.list(&params).await;
            let page = page.map_err(|error| self.no_kind(what(), kind, error))?;
            for object in page.items {
                all.push(whole(object, kind));
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => break,
            }
        }
        Ok(all)
    }

    fn api(&self, kind: &Kind, namespace: Option<&str>) -> Api<DynamicObject> {
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
    fn no_kind(&self, what: String, kind: &Kind, error: kube::Error) -> ClientError {
        match ClientError::of(&*what, &self.server, error) {
            ClientError::Refused { code: 404, .. } => ClientError::NoKind {
                what,
                kind: kind.kind.to_owned(),
                api_version: kind.api_version(),
            },
            error => error,
        }
    }
}

fn kind(word: &str) -> Option<Kind> {
    kinds::find(word).ok()
}

const EVENTS: Kind = kinds::plain("", "v1", "Event", "events", true);
const LEASES: Kind = kinds::plain("coordination.k8s.io", "v1", "Lease", "leases", true);

fn place(world: &mut World, need: Need) -> &mut Vec<Value> {
    match need {
        Need::Pods | Need::Agents => &mut world.pods,
        Need::Networks => &mut world.networks,
        Need::Nads => &mut world.nads,
        Need::Blocks => &mut world.blocks,
        Need::Requests => &mut world.requests,
        Need::Nodes => &mut world.nodes,
        Need::Records => &mut world.records,
        Need::Namespaces => &mut world.namespaces,
        Need::Events => &mut world.events,
        Need::Waiting => &mut world.waiting,
        Need::Leases => &mut world.leases,
    }
}

/// How a list is called in [`World::unknown`].
fn word(need: Need) -> &'static str {
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
        Need::Leases => "leases",
    }
}

/// Items of a list do not say what they are.
fn whole(object: DynamicObject, kind: &Kind) -> Value {
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
