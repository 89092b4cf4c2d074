//! The spec of a `Network`.

use super::{ParsedNetwork, check_taken, nad};
use crate::cni::parse::native::{self, Written};
use crate::cni::parse::request::RuntimeRequest;
use crate::cni::parse::version_or_newest;
use crate::cni::{BlockIpam, Code, Error, Network, NetworkBackend, ProviderKind, RouteConf};
use crate::objects::{DELEGATE, NetworkSpec, RouteSpec};
use crate::pod::NetworkSelection;
use crate::problem::fault;
use crate::{Fields, Problems};
use ipnet::IpNet;
use plexus_types::NetworkName;
use serde_json::{Map, Value, json};

/// What the cluster knows of a `Network` object beside its spec.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectFacts {
    /// Its UID.
    pub uid: String,
    /// `overlay`: its number, once it has one.
    pub vni: Option<u32>,
    /// `routed`: what is reached without masquerading beside its own subnets.
    pub not_masq: Vec<IpNet>,
}

/// Where the options are found.
const PATH: &str = "spec.config";

/// What is wrong with the options of the provider, whatever the cluster knows.
pub(crate) fn provider_problems(spec: &NetworkSpec) -> Problems {
    let Ok(name) = NetworkName::new("network") else {
        return Problems::default();
    };
    let nothing = NetworkSelection::default();
    read(&name, spec, &ObjectFacts::default(), &nothing)
        .err()
        .unwrap_or_default()
}

/// Checks and reads the spec.
pub(super) fn checked(
    name: &NetworkName,
    spec: &NetworkSpec,
    facts: &ObjectFacts,
    selection: &NetworkSelection,
) -> Result<ParsedNetwork, Error> {
    let mut problems = spec.problems();
    if problems.0.is_empty() {
        check_ready(name, spec, facts)?;
        match read(name, spec, facts, selection) {
            Ok(parsed) => return Ok(parsed),
            Err(found) => problems = found,
        }
    }
    Err(Error::new(
        Code::InvalidConfig,
        format!("Network {name}: {problems}"),
        "correct the object, or what the pod asks of it: nothing was changed",
    ))
}

/// Whether pods can use it now.
fn check_ready(name: &NetworkName, spec: &NetworkSpec, facts: &ObjectFacts) -> Result<(), Error> {
    let provider = spec.provider_name();
    if provider.contains('/') {
        let names = ProviderKind::names(|_| true).join(", ");
        return Err(Error::new(
            Code::TryAgainLater,
            format!(
                "Network {name}: its provider {provider} is external, and none of that name is connected"
            ),
            format!("start the provider, or write {names} or delegate"),
        ));
    }
    let has_vni = spec.provider_kind().is_some_and(ProviderKind::has_vni);
    if has_vni && facts.vni.is_none() {
        return Err(Error::new(
            Code::TryAgainLater,
            format!("Network {name}: it has no number yet"),
            "the controller gives it one: is it running?",
        ));
    }
    Ok(())
}

/// Reads the options of its provider. An external provider's are its own.
fn read(
    name: &NetworkName,
    spec: &NetworkSpec,
    facts: &ObjectFacts,
    selection: &NetworkSelection,
) -> Result<ParsedNetwork, Problems> {
    if spec.provider_name() == DELEGATE {
        return delegate(name, spec, selection);
    }
    let kind = spec.provider_kind().ok_or_else(Problems::default)?;
    let mut config = spec.config.clone();
    if !selection.cni_args.is_empty() {
        config.insert("args".to_owned(), json!({"cni": selection.cni_args}));
    }
    let mut fields = Fields::new(&config, PATH);
    check_beside(&mut fields, spec);
    fields.flag("sourceRouting");
    let mut request = RuntimeRequest::of(&mut fields, selection);
    request.has_subnets = !spec.subnets.is_empty();
    let native = native::read(&mut fields, kind, Written::ForUs, &request);
    let backend = native.map(NetworkBackend::Native);
    if let Some(backend) = &backend {
        check_taken(&mut fields, selection, backend, None);
    }
    let problems = fields.finish().without_repetition();
    let (Some(NetworkBackend::Native(mut native)), true) = (backend, problems.0.is_empty()) else {
        return Err(problems);
    };
    native.provider.with_network(spec, facts);
    native.mtu = native.mtu.or(spec.mtu);
    if !spec.subnets.is_empty() {
        native.ipam = Some(blocks(spec, facts).into());
    }
    Ok(ParsedNetwork {
        network: Network {
            name: name.clone(),
            interface: selection.interface.clone(),
            source_routing: source_routing(spec),
            of_object: true,
            backend: NetworkBackend::Native(native),
            runtime: Some(selection.runtime_config()),
        },
        declared: None,
    })
}

/// What `config` must not say, or not say otherwise, because the spec does.
fn check_beside(fields: &mut Fields<'_>, spec: &NetworkSpec) {
    if spec.config.contains_key("args") {
        fields.problem("args", "is what a pod asks: remove it");
    }
    if fields.has("ipam") && !spec.subnets.is_empty() {
        let text = "and spec.subnets exclude each other: keep one of them";
        fields.problem("ipam", text);
    }
    let mtu = spec.config.get("mtu").and_then(Value::as_u64);
    if let (Some(inner), Some(outer)) = (mtu, spec.mtu)
        && inner != u64::from(outer)
    {
        let text = format!("is {inner}, but spec.mtu is {outer}: keep one");
        fields.problem("mtu", text);
    }
}

/// Plugins to execute: nothing of the spec but `config` reaches them.
fn delegate(
    name: &NetworkName,
    spec: &NetworkSpec,
    selection: &NetworkSelection,
) -> Result<ParsedNetwork, Problems> {
    let version = version_or_newest(&spec.config)
        .map_err(|error| fault(format!("{PATH}.cniVersion"), error.msg))?;
    let mut config: Map<String, Value> = spec.config.clone();
    if config.get("type").is_none() && config.get("plugins").is_none() {
        let text = "is missing: write the list of plugins to execute";
        return Err(fault(format!("{PATH}.plugins"), text));
    }
    config.remove("cniVersion");
    let mut parsed = nad::read(name, &config, version, selection, PATH)?;
    // One that has another name in `config` is called as any configuration may be.
    parsed.network.of_object = parsed.network.name == *name;
    Ok(parsed)
}

fn blocks(spec: &NetworkSpec, facts: &ObjectFacts) -> BlockIpam {
    BlockIpam {
        uid: facts.uid.clone(),
        subnets: spec.block_subnets(),
        routes: spec.routes.iter().map(route).collect(),
        assigned: false,
    }
}

fn route(route: &RouteSpec) -> RouteConf {
    RouteConf {
        dst: route.dst,
        gw: route.gw,
        mtu: None,
        advmss: None,
        priority: None,
        table: None,
        scope: None,
    }
}

fn source_routing(spec: &NetworkSpec) -> bool {
    let value = spec.config.get("sourceRouting");
    value.and_then(Value::as_bool).unwrap_or_default()
}
