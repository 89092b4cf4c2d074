//! Objects of a cluster, as values, and what `core` wants to know of them. Owns how they are found
//! and read; an object that cannot be read is said to be so and hides no other.

use ipnet::IpNet;
use plexus_api::objects::{NetworkSpec, NetworkStatus, Phase};
use plexus_core::ipam::blocks_to_try;
use plexus_core::resolve::{NadObject, NetworkObject, Objects, PodFacts, Settings};
use plexus_core::wish::{self, Wish};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first number that a controller gives; stands for any in a rehearsal.
const FIRST_VNI: u32 = 4097;

/// What there is, by kind. Lists are as the server gave them.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Pods.
    pub pods: Vec<Value>,
    /// Networks.
    pub networks: Vec<Value>,
    /// NetworkAttachmentDefinitions.
    pub nads: Vec<Value>,
    /// Blocks.
    pub blocks: Vec<Value>,
    /// BlockRequests.
    pub requests: Vec<Value>,
    /// Nodes.
    pub nodes: Vec<Value>,
    /// PodAttachments.
    pub records: Vec<Value>,
    /// Namespaces.
    pub namespaces: Vec<Value>,
    /// Events about what is asked for.
    pub events: Vec<Value>,
    /// Objects of kinds that later versions serve.
    pub waiting: Vec<Value>,
    /// The controller's Lease.
    pub leases: Vec<Value>,
    /// What the server could not give, and why: conclusions from absence are not drawn then.
    pub unknown: BTreeMap<&'static str, String>,
    /// Seconds since 1970.
    pub now: i64,
}

impl World {
    /// Sorts objects of files into a world without a server.
    pub fn of_files(objects: impl IntoIterator<Item = Value>) -> Self {
        let mut world = Self::default();
        for object in objects {
            let list = match (text(&object, "/apiVersion"), text(&object, "/kind")) {
                ("v1", "Pod") => &mut world.pods,
                ("v1", "Namespace") => &mut world.namespaces,
                ("v1", "Node") => &mut world.nodes,
                ("v1", "Event") => &mut world.events,
                (_, "Network") => &mut world.networks,
                (_, "Block") => &mut world.blocks,
                (_, "BlockRequest") => &mut world.requests,
                (_, "PodAttachments") => &mut world.records,
                (_, "NetworkAttachmentDefinition") => &mut world.nads,
                _ if plexus_api::later::waits(&object).is_some() => &mut world.waiting,
                _ => continue,
            };
            list.push(object);
        }
        world
    }
}

/// The text at a JSON pointer; empty if there is none.
pub fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// The items of a list at a JSON pointer.
pub fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// The number at a JSON pointer.
pub fn number(object: &Value, pointer: &str) -> Option<u64> {
    object.pointer(pointer).and_then(Value::as_u64)
}

/// An object's namespace; what has none written is in `default`.
pub fn namespace(object: &Value) -> &str {
    match text(object, "/metadata/namespace") {
        "" => "default",
        namespace => namespace,
    }
}

/// An object's name.
pub fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// An object's annotations and other texts by key.
pub fn texts(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let each = map.into_iter().flatten();
    each.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The object of that namespace and name.
pub fn find<'v>(objects: &'v [Value], in_namespace: &str, named: &str) -> Option<&'v Value> {
    objects
        .iter()
        .find(|object| namespace(object) == in_namespace && name(object) == named)
}

/// The condition of that type.
pub fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    list(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
}

/// A Network's spec, or why it cannot be read.
pub fn network_spec(network: &Value) -> Result<NetworkSpec, String> {
    let spec = network.get("spec").cloned().unwrap_or_else(|| json!({}));
    serde_json::from_value(spec).map_err(|error| error.to_string())
}

/// A Network's status; what cannot be read of it is absent.
pub fn network_status(network: &Value) -> NetworkStatus {
    let status = network.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

/// What a pod asks for.
pub fn pod_facts(pod: &Value) -> PodFacts {
    PodFacts {
        namespace: namespace(pod).to_owned(),
        name: name(pod).to_owned(),
        annotations: texts(pod, "/metadata/annotations"),
    }
}

/// What holds for every node, as far as users' commands know it.
pub fn settings(cluster_cidrs: Vec<IpNet>) -> Settings {
    Settings {
        cluster_name: "k8s".to_owned(),
        cluster_cidrs,
    }
}

/// A world as a node sees it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'w> {
    world: &'w World,
    node: &'w str,
    offline: bool,
}

impl<'w> Seen<'w> {
    /// As the node's agent sees a cluster.
    pub fn from(world: &'w World, node: &'w str) -> Self {
        let offline = false;
        Self {
            world,
            node,
            offline,
        }
    }

    /// As if everything in files had been applied: networks are active and have a number, the node
    /// has a block of each subnet.
    pub fn rehearsal(world: &'w World, node: &'w str) -> Self {
        let offline = true;
        Self {
            world,
            node,
            offline,
        }
    }

    fn object(&self, network: &Value) -> NetworkObject {
        let status = network_status(network);
        let (spec, unreadable) = match network_spec(network) {
            Ok(spec) => (spec, None),
            Err(error) => {
                let why = format!("Failed: its spec cannot be read: {error}");
                (NetworkSpec::default(), Some(why))
            }
        };
        let offline = self.offline.then_some(FIRST_VNI);
        NetworkObject {
            namespace: namespace(network).to_owned(),
            name: name(network).to_owned(),
            uid: uid(network),
            spec,
            vni: status.vni.or(offline),
            earlier_subnets: status.subnets.clone(),
            made_from: made_from(network),
            unusable: unreadable.or_else(|| {
                (!self.offline)
                    .then(|| unusable(network, &status))
                    .flatten()
            }),
        }
    }

    /// The Network that the controller would make of a NAD of that name.
    fn made_of_nad(&self, in_namespace: &str, named: &str) -> Option<NetworkObject> {
        let nad = find(&self.world.nads, in_namespace, named).filter(|_| self.offline)?;
        let config = nad.pointer("/spec/config").and_then(Value::as_str);
        let reading = wish::read(&texts(nad, "/metadata/annotations"), Ok(config));
        let Wish::Network(spec) = reading.wish else {
            return None;
        };
        Some(NetworkObject {
            namespace: in_namespace.to_owned(),
            name: named.to_owned(),
            uid: uid(nad),
            spec: *spec,
            vni: Some(FIRST_VNI),
            earlier_subnets: Vec::new(),
            made_from: Some(uid(nad)),
            unusable: None,
        })
    }
}

impl Objects for Seen<'_> {
    fn network(&self, namespace: &str, name: &str) -> Option<Arc<NetworkObject>> {
        let written = find(&self.world.networks, namespace, name).map(|one| self.object(one));
        let object = written.or_else(|| self.made_of_nad(namespace, name));
        object.map(Arc::new)
    }

    fn nad(&self, namespace: &str, name: &str) -> Option<Arc<NadObject>> {
        let nad = find(&self.world.nads, namespace, name)?;
        let config = nad.pointer("/spec/config").and_then(Value::as_str);
        Some(Arc::new(NadObject {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid(nad),
            annotations: texts(nad, "/metadata/annotations"),
            config: config.map(str::to_owned),
        }))
    }

    fn namespace(&self, named: &str) -> Option<BTreeMap<String, String>> {
        let mut all = self.world.namespaces.iter();
        let found = all.find(|namespace| name(namespace) == named)?;
        Some(texts(found, "/metadata/labels"))
    }

    fn blocks(&self, network_uid: &str) -> Vec<IpNet> {
        let own = blocks_of(self.world, network_uid)
            .filter(|block| text(block, "/spec/node") == self.node)
            .filter_map(cidr);
        let own: Vec<IpNet> = own.collect();
        if !self.offline || !own.is_empty() {
            return own;
        }
        let all = self.world.networks.iter().map(|one| self.object(one));
        let nads = self.world.nads.iter();
        let made = nads.filter_map(|nad| self.made_of_nad(namespace(nad), name(nad)));
        let network = all.chain(made).find(|object| object.uid == network_uid);
        let subnets = network.map(|object| object.spec.block_subnets());
        let first = subnets.into_iter().flatten().filter_map(|subnet| {
            let blocks = blocks_to_try(&subnet, &[], self.node, None);
            blocks.first().copied()
        });
        first.collect()
    }

    fn given(&self, network_uid: &str) -> Vec<IpNet> {
        let own = blocks_of(self.world, network_uid)
            .filter(|block| text(block, "/spec/node") == self.node);
        own.flat_map(|block| list(block, "/status/given"))
            .filter_map(|gift| text(gift, "/cidr").parse().ok())
            .collect()
    }

    fn on_disk(&self, _: &str) -> Option<String> {
        None
    }
}

/// The blocks of a network, of all nodes.
pub fn blocks_of<'w>(world: &'w World, uid: &str) -> impl Iterator<Item = &'w Value> {
    let uid = uid.to_owned();
    let blocks = world.blocks.iter();
    blocks.filter(move |block| text(block, "/spec/network/uid") == uid)
}

/// The addresses of a block.
pub fn cidr(block: &Value) -> Option<IpNet> {
    text(block, "/spec/cidr").parse().ok()
}

/// An object's UID; one that was never stored is known by its name.
pub fn uid(object: &Value) -> String {
    match text(object, "/metadata/uid") {
        "" => format!("{}.{}", namespace(object), name(object)),
        uid => uid.to_owned(),
    }
}

fn made_from(network: &Value) -> Option<String> {
    let mut owners = list(network, "/metadata/ownerReferences").iter();
    let nad = owners.find(|owner| text(owner, "/kind") == "NetworkAttachmentDefinition")?;
    Some(text(nad, "/uid").to_owned())
}

/// Why no new pod may use a network, in the words that its agents use.
fn unusable(network: &Value, status: &NetworkStatus) -> Option<String> {
    let going = network.pointer("/metadata/deletionTimestamp").is_some();
    let phase = match status.phase {
        _ if going => "Terminating",
        Some(Phase::Active) => return None,
        Some(Phase::Pending) => "Pending",
        Some(Phase::Failed) => "Failed",
        Some(Phase::Terminating) => "Terminating",
        Some(Phase::Initializing) | None => {
            return Some("Initializing: the controller has not looked at it yet".to_owned());
        }
    };
    let mut conditions = status.conditions.iter();
    let why = conditions.find(|condition| condition.kind == "Ready" && condition.status != "True");
    Some(match why {
        Some(condition) if !condition.message.is_empty() => {
            format!("{phase}: {}", condition.message)
        }
        _ => phase.to_owned(),
    })
}
