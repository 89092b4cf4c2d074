//! What is asked for one container: `runtimeConfig`, `args.cni` and CNI_ARGS, in this order of
//! precedence.

use super::{leaves_it_to_the_cluster, port_mappings};
use crate::cni::{Args, POD_ANNOTATIONS, Runtime, Version};
use crate::pod::{ANNOTATIONS, NetworkSelection};
use crate::{Fields, Problems, go_folds};
use plexus_types::Mac;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses by where they were asked for, the MAC that wins, and what is talked with plugins.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuntimeRequest {
    /// The version of the configuration that is asked for.
    pub(crate) version: Version,
    pub(super) runtime_ips: Vec<(IpAddr, Option<u8>)>,
    pub(super) args_ips: Vec<(IpAddr, Option<u8>)>,
    pub(super) env_ips: Vec<(IpAddr, Option<u8>)>,
    /// Those of them that a pod asks for, and not whoever wrote the network.
    pub(super) pod_ips: PodIps,
    pub(super) gateways: Vec<IpAddr>,
    pub(crate) mac: Option<Mac>,
    /// The device that the runtime names, if the network declares that it takes it.
    pub(crate) device_id: Option<String>,
    pub(super) ignore_unknown: bool,
    /// `args` as it came, for plugins that we execute.
    pub(super) args: Option<Value>,
    /// Keys of `args.cni` that we do not know.
    pub(super) unknown: Vec<String>,
    /// Addresses come from the subnets of the network itself, not from an `ipam` section.
    pub(crate) has_subnets: bool,
    /// A Kubernetes pod asks, or whoever writes its annotations: it gets only what the network offers to pods.
    pub(crate) of_pod: bool,
    /// What a runtime's configuration declares for all of its networks: it says `ips` there.
    pub(super) declares_ips: bool,
}

impl RuntimeRequest {
    /// Takes `runtimeConfig` and `args` of the configuration.
    pub(super) fn read(fields: &mut Fields<'_>, version: Version, args: &Args) -> (Self, Runtime) {
        let runtime = runtime(fields);
        let cni_args = fields.object("args", args_section).unwrap_or_default();
        // Podman names its containers by K8S_POD_NAME too: only a pod has a namespace.
        let of_pod = args.pod_namespace.is_some();
        // Whoever delegates a pod's call to us adds the pod's `cni-args` to those of the network.
        let sent = fields.value("args").and_then(|args| args.get("cni"));
        let sent = sent.and_then(Value::as_object);
        let asked = || PodIps::read(&runtime.ips, sent.unwrap_or(&Map::new()), fields);
        let pod_ips = if of_pod { asked() } else { PodIps::default() };
        let request = Self {
            version,
            runtime_ips: runtime.ips.clone(),
            args_ips: cni_args.ips,
            env_ips: args.ips.clone(),
            pod_ips,
            gateways: args.gateways.clone(),
            mac: runtime.mac.or(cni_args.mac).or(args.mac),
            device_id: device_id(&runtime),
            ignore_unknown: args.ignore_unknown,
            args: fields.value("args").cloned(),
            unknown: cni_args.unknown,
            has_subnets: false,
            of_pod,
            declares_ips: false,
        };
        (request, runtime)
    }

    /// What a pod's annotation asks; `args` of the configuration has its `cni-args` in it already.
    pub(crate) fn of(fields: &mut Fields<'_>, selection: &NetworkSelection) -> Self {
        let cni_args = fields.object("args", args_section).unwrap_or_default();
        Self {
            runtime_ips: selection.ips.clone(),
            args_ips: cni_args.ips,
            pod_ips: PodIps::read(&selection.ips, &selection.cni_args, fields),
            mac: selection.mac.or(cni_args.mac),
            device_id: selection.device_id.clone(),
            unknown: cni_args.unknown,
            of_pod: true,
            ..Self::default()
        }
    }

    /// The addresses that win.
    pub(crate) fn ips(&self) -> &[(IpAddr, Option<u8>)] {
        let origins = [&self.runtime_ips, &self.args_ips, &self.env_ips];
        let first = origins.into_iter().find(|ips| !ips.is_empty());
        first.map_or(&[], Vec::as_slice)
    }
}

/// The addresses that a pod asks for, by every way in which a plugin may read them.
#[derive(Debug, Clone, Default)]
pub(super) struct PodIps {
    pub(super) all: Vec<(IpAddr, Option<u8>)>,
    /// Why more of them cannot be read.
    pub(super) problems: Problems,
}

impl PodIps {
    /// Plugins in Go read `ips` of `args.cni` without regard to case: whoever writes `IPS` asks for addresses too.
    /// `fields` are the network's.
    fn read(
        sent: &[(IpAddr, Option<u8>)],
        cni_args: &Map<String, Value>,
        fields: &Fields<'_>,
    ) -> Self {
        let mut ips = Self {
            all: sent.to_vec(),
            problems: Problems::default(),
        };
        let asked = cni_args.iter();
        for (_, value) in asked.filter(|(key, _)| go_folds("ips", key)) {
            let one = Map::from_iter([("ips".to_owned(), value.clone())]);
            let mut read = Fields::new(&one, fields.path_of("args.cni"));
            ips.all.append(&mut read.parsed_list("ips"));
            ips.problems.0.extend(read.finish().0);
        }
        ips
    }
}

fn device_id(runtime: &Runtime) -> Option<String> {
    let mut sent = runtime.raw.iter();
    let (_, value) = sent.find(|(name, _)| go_folds("deviceID", name))?;
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

/// Puts the annotations back into what plugins get: one of them takes them.
pub(super) fn keep_annotations(config: &Map<String, Value>, runtime: &mut Runtime) {
    let sent = config.get("runtimeConfig").and_then(Value::as_object);
    let is_it = |(key, _): &(&String, &Value)| go_folds(POD_ANNOTATIONS, key);
    if let Some((key, value)) = sent.and_then(|sent| sent.iter().find(is_it)) {
        runtime.raw.insert(key.clone(), value.clone());
    }
}

/// Keys come in any case here. Those that we do not read are judged later, when it is known whether
/// a plugin takes them. The annotations can be large: only those that matter are kept.
fn runtime(fields: &mut Fields<'_>) -> Runtime {
    let Some(map) = fields.map_of("runtimeConfig") else {
        return Runtime::default();
    };
    let by_cluster = leaves_it_to_the_cluster(fields.map());
    let mut inner = Fields::any_case(map, fields.path_of("runtimeConfig"));
    let is_rest = |(key, _): &(&String, _)| !go_folds(POD_ANNOTATIONS, key);
    let rest = map.iter().filter(is_rest);
    let runtime = Runtime {
        ips: inner.parsed_list("ips"),
        mac: inner.parsed("mac"),
        port_mappings: match by_cluster {
            true => port_mappings(&mut inner, false),
            false => Vec::new(),
        },
        annotations: annotations(&mut inner),
        raw: rest.map(|(k, v)| (k.clone(), v.clone())).collect(),
    };
    inner.accept_rest();
    fields.absorb(inner.finish());
    runtime
}

/// Their names do have a case.
fn annotations(fields: &mut Fields<'_>) -> Option<BTreeMap<String, String>> {
    let map = fields.map_of(POD_ANNOTATIONS)?;
    let mut inner = Fields::new(map, fields.path_of(POD_ANNOTATIONS));
    let names = ANNOTATIONS.into_iter();
    let kept = names.filter_map(|name| Some((name.to_owned(), inner.text(name)?.to_owned())));
    let kept = kept.collect();
    inner.accept_rest();
    fields.absorb(inner.finish());
    Some(kept)
}

#[derive(Default)]
struct Wishes {
    ips: Vec<(IpAddr, Option<u8>)>,
    mac: Option<Mac>,
    unknown: Vec<String>,
}

/// `cni` is for everyone, `labels` only describes; other keys are addressed to others by name.
fn args_section(fields: &mut Fields<'_>) -> Wishes {
    let cni_args = fields.object("cni", |cni| {
        let keys = cni.map().keys().cloned();
        let wishes = Wishes {
            ips: cni.parsed_list("ips"),
            mac: cni.parsed("mac"),
            unknown: keys
                .filter(|key| !["ips", "mac", "labels"].contains(&key.as_str()))
                .collect(),
        };
        cni.map_of("labels");
        cni.accept_rest();
        wishes
    });
    fields.accept_rest();
    cni_args.unwrap_or_default()
}
