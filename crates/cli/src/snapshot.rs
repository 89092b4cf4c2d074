//! Objects of a cluster, as values, and what `core` wants to know of them. Owns how they are found
//! and read; an object that cannot be read is reported and hides no other.

use ipnet::IpNet;
use plexus_api::later::{self, Classes, Served};
use plexus_api::objects::{MultiNicNetworkSpec, NetworkSpec, NetworkStatus};
use plexus_core::allowed_subnets::AllowedSubnets;
use plexus_core::ipam::{BlockSource, NodeBlocks, blocks_to_try};
use plexus_core::nad_meaning::{self, NadMeaning};
use plexus_core::resolve::{
    MultiNicObject, NadObject, NamespaceRules, NetworkObject, NodeNic, Objects, PodFacts, ReadOnce,
    Settings, nad_size, network_size, too_large,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What agents call their cluster unless they are told otherwise.
pub const CLUSTER_NAME: &str = "k8s";
/// The first number that a controller gives; stands for any in a rehearsal.
const FIRST_VNI: u32 = 4097;

/// Who serves an object of a kind that later versions of Plexus serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServedBy {
    /// It waits for us, and why.
    Ours(&'static str),
    /// Nobody can tell, and why.
    Unclear(String),
    /// Another driver's, if there is one.
    Others,
}

/// The objects of a cluster at one moment, by kind. Lists are as the server returned them.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
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
    /// MultiNicNetworks.
    pub multi_nics: Vec<Value>,
    /// HostInterfaces.
    pub host_interfaces: Vec<Value>,
    /// Objects of kinds that later versions serve, also those that are for others.
    pub waiting: Vec<Value>,
    /// The controller's Lease.
    pub leases: Vec<Value>,
    /// What the server could not give, and why: conclusions from absence are not drawn then.
    pub unknown: BTreeMap<&'static str, String>,
    /// Of those, the lists of which one namespace is known all the same.
    pub known_in: BTreeMap<&'static str, String>,
    /// `--cluster-name` of the agents; none: their default.
    pub cluster_name: Option<String>,
    /// Seconds since 1970.
    pub now: i64,
}

impl Snapshot {
    /// Sorts objects of files into a snapshot without a server. Claims and their classes may be elsewhere.
    pub fn of_files(objects: impl IntoIterator<Item = Value>) -> Self {
        let mut snapshot = Self::default();
        let elsewhere = "it is not in these files, and nobody is asked";
        snapshot.unknown.insert("waiting", elsewhere.to_owned());
        for object in objects {
            let list = match (text(&object, "/apiVersion"), text(&object, "/kind")) {
                ("v1", "Pod") => &mut snapshot.pods,
                ("v1", "Namespace") => &mut snapshot.namespaces,
                ("v1", "Node") => &mut snapshot.nodes,
                ("v1", "Event") => &mut snapshot.events,
                (_, "Network") => &mut snapshot.networks,
                (_, "Block") => &mut snapshot.blocks,
                (_, "BlockRequest") => &mut snapshot.requests,
                (_, "PodAttachments") => &mut snapshot.records,
                (_, "NetworkAttachmentDefinition") => &mut snapshot.nads,
                (_, "MultiNicNetwork") => &mut snapshot.multi_nics,
                (_, "HostInterface") => &mut snapshot.host_interfaces,
                _ if later::kind_of(&object).is_some() => &mut snapshot.waiting,
                _ => continue,
            };
            list.push(object);
        }
        snapshot
    }

    /// Why it is not known what a list has in a namespace; or at all, if none is given. None: it is known.
    pub fn hidden(&self, list: &str, in_namespace: Option<&str>) -> Option<&str> {
        let why = self.unknown.get(list)?;
        let known = self.known_in.get(list).map(String::as_str);
        let is_known = in_namespace.is_some() && in_namespace == known;
        (!is_known).then_some(why.as_str())
    }

    /// What holds for every node, as far as users' commands know it.
    pub fn settings(&self, cluster_cidrs: Vec<IpNet>) -> Settings {
        let named = self.cluster_name.clone();
        Settings {
            cluster_name: named.unwrap_or_else(|| CLUSTER_NAME.to_owned()),
            cluster_cidrs,
            // What is not allowed, the controller says in the Network's status.
            allowed_subnets: AllowedSubnets::everything(),
            // Of what agents were told nobody else knows; their Events say it.
            namespaces: NamespaceRules::default(),
        }
    }

    /// Who serves an object of a later kind, by the device classes that are known.
    pub fn served_by(&self, object: &Value) -> ServedBy {
        let ours = later::waits(object, &Classes::of(&self.waiting)).map(ServedBy::Ours);
        let unclear = || self.unclear(object).map(ServedBy::Unclear);
        ours.or_else(unclear).unwrap_or(ServedBy::Others)
    }

    /// Why nobody can tell whose an object is that does not wait for us; none if it is another's.
    fn unclear(&self, object: &Value) -> Option<String> {
        let Served::ByClasses(named) = Served::of(later::kind_of(object)?, object) else {
            return None;
        };
        let classes = self.waiting.iter();
        let classes = classes.filter(|one| text(one, "/kind") == "DeviceClass");
        let known: BTreeSet<&str> = classes.map(name).collect();
        let missing = named.iter().map(String::as_str);
        let missing: Vec<&str> = missing.filter(|class| !known.contains(class)).collect();
        let hidden = ["waiting", "deviceclasses"];
        let why = match hidden.iter().any(|list| self.unknown.contains_key(list)) {
            true => "cannot be seen; whoever may read DeviceClasses can tell whose the claim is",
            false => "is not there: until it is, nobody serves the claim",
        };
        (!missing.is_empty()).then(|| format!("DeviceClass {} {why}", missing.join(", ")))
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

/// A Network's spec as nodes have it: they keep none that is too large.
pub fn kept_spec(network: &Value) -> Result<NetworkSpec, String> {
    let spec = network.get("spec").unwrap_or(&Value::Null);
    match too_large(network_size(spec, owners(network))) {
        Some(why) => Err(why),
        None => network_spec(network),
    }
}

/// A Network's status; what cannot be read of it is absent.
pub fn network_status(network: &Value) -> NetworkStatus {
    let status = network.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

/// A NetworkAttachmentDefinition as `core` has it.
pub fn nad_object(nad: &Value) -> NadObject {
    let config = nad.pointer("/spec/config").and_then(Value::as_str);
    let annotations = texts(nad, "/metadata/annotations");
    let unusable = too_large(nad_size(config, &annotations, owners(nad)));
    NadObject {
        namespace: namespace(nad).to_owned(),
        name: name(nad).to_owned(),
        uid: uid(nad),
        annotations,
        config: config.map(str::to_owned),
        unusable,
        parsed: ReadOnce::default(),
    }
}

/// What a pod asks for.
pub fn pod_facts(pod: &Value) -> PodFacts {
    PodFacts {
        namespace: namespace(pod).to_owned(),
        name: name(pod).to_owned(),
        annotations: texts(pod, "/metadata/annotations"),
    }
}

/// A snapshot as one node sees it.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'w> {
    snapshot: &'w Snapshot,
    node: &'w str,
    offline: bool,
}

impl<'w> NodeView<'w> {
    /// As the node's agent sees a cluster.
    pub fn from(snapshot: &'w Snapshot, node: &'w str) -> Self {
        let offline = false;
        Self {
            snapshot,
            node,
            offline,
        }
    }

    /// As if everything in files had been applied: networks are active and have a number, the node
    /// has a block of each subnet.
    pub fn rehearsal(snapshot: &'w Snapshot, node: &'w str) -> Self {
        let offline = true;
        Self {
            snapshot,
            node,
            offline,
        }
    }

    fn object(&self, network: &Value) -> NetworkObject {
        let status = network_status(network);
        let going = network.pointer("/metadata/deletionTimestamp").is_some();
        let (spec, unreadable) = match kept_spec(network) {
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
            unusable: unreadable
                .or_else(|| (!self.offline).then(|| status.unusable(going)).flatten()),
            going,
            parsed: ReadOnce::default(),
        }
    }

    /// The Network that the controller would make of a NAD of that name.
    fn made_of_nad(&self, in_namespace: &str, named: &str) -> Option<NetworkObject> {
        let nad = find(&self.snapshot.nads, in_namespace, named).filter(|_| self.offline)?;
        let config = nad.pointer("/spec/config").and_then(Value::as_str);
        let reading = nad_meaning::read(&texts(nad, "/metadata/annotations"), Ok(config));
        let NadMeaning::Network(spec) = reading.meaning else {
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
            going: false,
            parsed: ReadOnce::default(),
        })
    }
}

impl Objects for NodeView<'_> {
    fn network(&self, namespace: &str, name: &str) -> Option<Arc<NetworkObject>> {
        let written = find(&self.snapshot.networks, namespace, name).map(|one| self.object(one));
        let object = written.or_else(|| self.made_of_nad(namespace, name));
        object.map(Arc::new)
    }

    fn nad(&self, namespace: &str, name: &str) -> Option<Arc<NadObject>> {
        let found = find(&self.snapshot.nads, namespace, name);
        found.map(|nad| Arc::new(nad_object(nad)))
    }

    fn namespace(&self, named: &str) -> Option<BTreeMap<String, String>> {
        let mut all = self.snapshot.namespaces.iter();
        let found = all.find(|namespace| name(namespace) == named)?;
        Some(texts(found, "/metadata/labels"))
    }

    fn on_disk(&self, _: &str) -> Option<String> {
        None
    }

    fn multi_nic(&self, named: &str) -> Option<Arc<MultiNicObject>> {
        let called =
            |all: &[Value], named: &str| all.iter().find(|one| name(one) == named).cloned();
        let object = called(&self.snapshot.multi_nics, named)?;
        let spec = object.get("spec").cloned().unwrap_or_default();
        let spec: MultiNicNetworkSpec = serde_json::from_value(spec).ok()?;
        let uid = uid(&object);
        let own = blocks_of(self.snapshot, &uid);
        let own = own.filter(|block| text(block, "/spec/node") == self.node);
        let blocks = own.filter_map(|block| {
            let nic = block.pointer("/spec/nic")?.clone();
            Some((serde_json::from_value(nic).ok()?, cidr(block)?))
        });
        let host = called(&self.snapshot.host_interfaces, self.node).unwrap_or_default();
        let is_down = |nic: &str| {
            let mut all = list(&host, "/spec/interfaces").iter();
            all.any(|one| text(one, "/interfaceName") == nic && text(one, "/state") == "down")
        };
        Some(Arc::new(MultiNicObject {
            name: named.to_owned(),
            nics: NodeNic::of_blocks(blocks, |nic| !is_down(nic)),
            uid,
            meaning: Arc::new(spec.meaning()),
            spec: Arc::new(spec),
        }))
    }
}

impl BlockSource for NodeView<'_> {
    fn blocks(&self, network_uid: &str) -> NodeBlocks {
        NodeBlocks {
            own: self.own_blocks(network_uid),
            donated: self.donated_parts(network_uid),
        }
    }
}

impl NodeView<'_> {
    fn own_blocks(&self, network_uid: &str) -> Vec<IpNet> {
        let own = blocks_of(self.snapshot, network_uid)
            .filter(|block| text(block, "/spec/node") == self.node)
            .filter_map(cidr);
        let own: Vec<IpNet> = own.collect();
        if !self.offline || !own.is_empty() {
            return own;
        }
        let all = self.snapshot.networks.iter().map(|one| self.object(one));
        let nads = self.snapshot.nads.iter();
        let made = nads.filter_map(|nad| self.made_of_nad(namespace(nad), name(nad)));
        let network = all.chain(made).find(|object| object.uid == network_uid);
        let subnets = network.map(|object| object.spec.block_subnets());
        let first = subnets.into_iter().flatten().filter_map(|subnet| {
            let blocks = blocks_to_try(&subnet, &[], self.node, None);
            blocks.first().copied()
        });
        first.collect()
    }

    fn donated_parts(&self, network_uid: &str) -> Vec<IpNet> {
        let own = blocks_of(self.snapshot, network_uid)
            .filter(|block| text(block, "/spec/node") == self.node);
        own.flat_map(|block| list(block, "/status/given"))
            .filter_map(|donation| text(donation, "/cidr").parse().ok())
            .collect()
    }
}

/// The blocks of a network, of all nodes.
pub fn blocks_of<'w>(snapshot: &'w Snapshot, uid: &str) -> impl Iterator<Item = &'w Value> {
    let uid = uid.to_owned();
    let blocks = snapshot.blocks.iter();
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
    let [_, _, uid] = owners(network).next()?;
    Some(uid.to_owned())
}

/// The NADs that own an object, each by its API version, name and UID.
fn owners(object: &Value) -> impl Iterator<Item = [&str; 3]> {
    let owners = list(object, "/metadata/ownerReferences").iter();
    let nads = owners.filter(|owner| text(owner, "/kind") == "NetworkAttachmentDefinition");
    nads.map(|nad| ["/apiVersion", "/name", "/uid"].map(|key| text(nad, key)))
}
