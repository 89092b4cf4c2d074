//! A cluster that is a JSON document: pods' annotations, networks, NADs, and what a node owns.

use ipnet::IpNet;
use plexus_api::cni::{
    Args, BlockIpam, BlockSubnet, Code, Error, Ipam, Native, NetConf, Network, NetworkBackend,
    Provider, Routed,
};
use plexus_api::objects::{From, MultiNicNetworkSpec};
use plexus_core::allowed_subnets::AllowedSubnets;
use plexus_core::attach::{AttachRequest, Sandbox};
use plexus_core::ipam::{BlockSource, NodeBlocks};
use plexus_core::refusal::{Fault, Refusal};
use plexus_core::resolve::{
    MultiNicObject, NadObject, NamespaceRules, NetworkObject, NodeNic, Objects, PodFacts,
    PodNetworks, Reference, Settings, pod_networks,
};
use plexus_types::chain;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// One pod, and all that there is.
pub(crate) struct Case(pub(crate) Value);

impl Case {
    pub(crate) fn read(text: &[u8]) -> Self {
        Self(serde_json::from_slice(text).unwrap())
    }

    pub(crate) fn pod(&self) -> PodFacts {
        PodFacts {
            namespace: self.0["namespace"].as_str().unwrap_or("default").to_owned(),
            name: "web-0".to_owned(),
            annotations: texts(&self.0["annotations"]),
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            cluster_name: "k8s".to_owned(),
            cluster_cidrs: nets(&json!(["10.244.0.0/16", "fd00:244::/48", "10.96.0.0/12"])),
            allowed_subnets: AllowedSubnets::default(),
            namespaces: self.namespace_rules(),
        }
    }

    /// The keys `unset` (Same) and `isolated` (the exceptions).
    fn namespace_rules(&self) -> NamespaceRules {
        let exceptions = self.0["isolated"].as_array();
        let each = exceptions.into_iter().flatten();
        NamespaceRules {
            unset: match self.0["unset"].as_str() {
                Some("Same") => From::Same,
                _ => From::All,
            },
            isolated: exceptions.is_some(),
            exceptions: each.map(|one| one.as_str().unwrap().to_owned()).collect(),
        }
    }

    /// The request of what the runtime sends.
    pub(crate) fn request(&self, sandbox: Sandbox) -> Result<AttachRequest, Error> {
        let text = json!({
            "cniVersion": "1.1.0", "name": "plexus", "type": "plexus-cni", "networks": "pod",
            "runtimeConfig": self.0.get("runtimeConfig").cloned().unwrap_or(json!({})),
        });
        let conf = NetConf::parse(text.to_string().as_bytes(), &Args::default()).unwrap();
        let networks = self.networks(&conf)?;
        Ok(AttachRequest::of_pod(&conf, networks, sandbox))
    }

    pub(crate) fn networks(&self, conf: &NetConf) -> Result<PodNetworks, Error> {
        let runtime = &conf.runtime;
        pod_networks(&self.pod(), self.first(), runtime, &self.settings(), self)
            .map_err(|error| answered(&error))
    }

    /// The cluster-wide default network.
    pub(crate) fn first(&self) -> (Network, Reference) {
        first(&self.0["podCIDRs"])
    }
}

/// What a runtime is told.
pub(crate) fn answered(error: &impl Refusal) -> Error {
    let code = match (error.config_error(), error.fault()) {
        (Some(config), _) => config.code,
        (None, Fault::Invalid) => Code::InvalidConfig,
        (None, Fault::Unsupported) => Code::UnsupportedField,
        (None, Fault::Pending) => Code::TryAgainLater,
        (None, Fault::Unavailable) => Code::Failed,
    };
    Error::new(code, chain(error), error.remedy())
}

impl Objects for Case {
    fn network(&self, namespace: &str, name: &str) -> Option<Arc<NetworkObject>> {
        let object = find(&self.0["networks"], namespace, name)?;
        Some(Arc::new(NetworkObject {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            spec: serde_json::from_value(object["spec"].clone()).unwrap(),
            vni: object["vni"]
                .as_u64()
                .map(|vni| u32::try_from(vni).unwrap()),
            earlier_subnets: Vec::new(),
            made_from: match &object["madeFrom"] {
                Value::String(uid) => Some(uid.clone()),
                _ => Some(format!("uid-nad-{name}")),
            },
            unusable: object["unusable"].as_str().map(str::to_owned),
            going: false,
            parsed: Default::default(),
        }))
    }

    fn nad(&self, namespace: &str, name: &str) -> Option<Arc<NadObject>> {
        let object = find(&self.0["nads"], namespace, name)?;
        let config = match &object["config"] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            config => Some(config.to_string()),
        };
        Some(Arc::new(NadObject {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: format!("uid-nad-{name}"),
            annotations: texts(&object["annotations"]),
            config,
            unusable: None,
            parsed: Default::default(),
        }))
    }

    fn namespace(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.0["namespaces"].get(name).map(texts)
    }

    fn on_disk(&self, name: &str) -> Option<String> {
        self.0["onDisk"].get(name).map(Value::to_string)
    }

    fn multi_nic(&self, name: &str) -> Option<Arc<MultiNicObject>> {
        let object = self.0["multiNicNetworks"].get(name)?;
        let spec: MultiNicNetworkSpec = serde_json::from_value(object["spec"].clone()).unwrap();
        let nics = object["nics"].as_array().unwrap().iter();
        let nic = |nic: &Value| NodeNic {
            name: nic["name"].as_str().unwrap().to_owned(),
            index: u32::try_from(nic["index"].as_u64().unwrap()).unwrap(),
            blocks: nets(&nic["blocks"]),
            is_up: nic["up"] != false,
        };
        Some(Arc::new(MultiNicObject {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            meaning: Arc::new(spec.meaning()),
            spec: Arc::new(spec),
            nics: nics.map(nic).collect(),
        }))
    }

    fn taken_within(&self, net: &IpNet) -> Option<String> {
        let taken = self.0["taken"].as_object().into_iter().flatten();
        let mut taken = taken.map(|(address, whose)| (address.parse::<IpAddr>().unwrap(), whose));
        let (_, whose) = taken.find(|(address, _)| net.contains(address))?;
        whose.as_str().map(str::to_owned)
    }
}

impl BlockSource for Case {
    fn blocks(&self, network_uid: &str) -> NodeBlocks {
        let name = network_uid.strip_prefix("uid-").unwrap_or_default();
        let nics = self.0["multiNicNetworks"][name]["nics"].as_array();
        let of_nics = nics.into_iter().flatten();
        let of_nics = of_nics.flat_map(|nic| nets(&nic["blocks"]));
        NodeBlocks {
            own: of_nics
                .chain(nets(&self.0["blocks"][network_uid]))
                .collect(),
            donated: Vec::new(),
        }
    }
}

/// The cluster-wide default network as the agent makes it of the node's podCIDRs.
fn first(cidrs: &Value) -> (Network, Reference) {
    let cidrs = match cidrs {
        Value::Null => nets(&json!(["10.244.1.0/24"])),
        cidrs => nets(cidrs),
    };
    let subnets = cidrs.iter().map(|cidr| BlockSubnet {
        cidr: *cidr,
        gateway: cidr.hosts().next(),
        exclude: Vec::new(),
        block_length: None,
    });
    let native = Native {
        provider: Provider::Routed(Routed {
            ip_masq: true,
            not_masq: nets(&json!(["10.244.0.0/16", "fd00:244::/48"])),
            source_check: true,
        }),
        ipam: Some(Ipam::Blocks(BlockIpam {
            uid: "cluster-default".to_owned(),
            subnets: subnets.collect(),
            routes: Vec::new(),
            assigned: false,
        })),
        mac: None,
        ips: Vec::new(),
        mtu: Some(1450),
        dns: Default::default(),
    };
    let network = Network {
        name: "cluster-default".parse().unwrap(),
        interface: None,
        source_routing: false,
        of_object: true,
        backend: NetworkBackend::Native(native),
        runtime: None,
    };
    let reference = Reference {
        index: 0,
        total: 1,
        namespace: String::new(),
        name: "cluster-default".to_owned(),
        uuid: "cluster-default".to_owned(),
        source: String::new(),
        subnets: Vec::new(),
    };
    (network, reference)
}

fn find<'a>(objects: &'a Value, namespace: &str, name: &str) -> Option<&'a Value> {
    objects.get(format!("{namespace}/{name}"))
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    let map = map.as_object().into_iter().flatten();
    map.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
        .collect()
}

fn nets(list: &Value) -> Vec<IpNet> {
    let list = list.as_array().into_iter().flatten();
    list.map(|net| net.as_str().unwrap().parse().unwrap())
        .collect()
}
