//! The network of a NetworkAttachmentDefinition.

use super::error::{ResolveError, invalid};
use super::lookup::{
    Lookup, Networks, ResolvedNetwork, by_fq_name, network_name, without_default_route,
};
use super::{NadObject, NetworkObject, Objects, Reference, Settings};
use plexus_api::cni::{FqName, Network, ParsedNetwork};
use plexus_api::nad::{self, Contrail};
use plexus_api::pod::NetworkSelection;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The device plugin's resource that a NAD is tied to.
const RESOURCE: &str = "k8s.v1.cni.cncf.io/resourceName";

/// What a NAD means, whoever asks.
#[derive(Debug)]
pub struct ParsedNad {
    /// The name in its configuration, if that can be read.
    pub(super) name: Option<String>,
    /// What it is about, or what is wrong with it.
    means: Result<Means, ResolveError>,
    /// What users must be told of it.
    warnings: Vec<String>,
}

/// What the configuration of a NAD is about.
#[derive(Debug)]
pub(super) enum Means {
    /// A network that the cluster knows.
    Object(Option<FqName>),
    /// A configuration to attach by; none if no pod can use it so.
    Config(Option<Box<ParsedNetwork>>),
    /// The MultiNicNetwork of that name.
    MultiNic(String),
    /// Nothing: a network that is known by the NAD's name.
    Nothing,
}

impl NadObject {
    pub(super) fn parsed(&self) -> &ParsedNad {
        self.parsed.get(|| parse(self))
    }

    pub(super) fn means(&self) -> Result<&Means, ResolveError> {
        self.parsed().means.as_ref().map_err(Clone::clone)
    }
}

impl Lookup<'_> {
    /// The network of a NAD: what its configuration says; with none, the configuration of that name
    /// on the node, else the `Network` of that name.
    pub(super) fn of_nad(
        &self,
        nad: &NadObject,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, ResolveError> {
        check_device(nad, selection)?;
        let request = || without_default_route(selection);
        let (network, mut warnings) = match nad.means()? {
            Means::Object(fq_name) => {
                let found = self.of_nad_object(nad, fq_name.as_ref(), selection)?;
                return Ok(ResolvedNetwork {
                    warnings: with_origin(nad, &nad.parsed().warnings),
                    ..found
                });
            }
            Means::MultiNic(name) => return self.of_multi_nic(nad, name, selection),
            Means::Config(parsed) => {
                let network = of_config(nad, parsed.as_deref(), &request())?;
                (network, with_origin(nad, &nad.parsed().warnings))
            }
            Means::Nothing => match self.objects.on_disk(&nad.name) {
                Some(text) => {
                    let what = format!("the configuration {} in the CNI directory", nad.name);
                    let (config, warnings) =
                        nad::config(&text).map_err(|problems| invalid(&what, problems))?;
                    let name = network_name(&[&nad.name])?;
                    let network = Network::from_config(&name, &config, &request())
                        .map_err(ResolveError::Config)?;
                    (network, with_origin(nad, &warnings))
                }
                None => return self.of_nad_object(nad, None, selection),
            },
        };
        if let Some(resource) = nad.annotations.get(RESOURCE) {
            let name = display_name(nad);
            warnings.push(format!("{name}: no device of {resource} is passed on"));
        }
        Ok(ResolvedNetwork {
            reference: Reference::of(&nad.namespace, &nad.name, &nad.uid, &network),
            networks: Networks::One(network),
            warnings,
        })
    }

    /// The `Network` that a NAD stands for: the fully qualified one, else its namesake.
    pub(super) fn of_nad_object(
        &self,
        nad: &NadObject,
        fq_name: Option<&FqName>,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, ResolveError> {
        self.check_isolated(&nad.namespace, &nad.name)?;
        check_device(nad, selection)?;
        let object = object_of(nad, fq_name, self.settings, self.objects)?;
        let mut found = self.of_object(&object, selection)?;
        found.reference.namespace.clone_from(&nad.namespace);
        found.reference.name.clone_from(&nad.name);
        Ok(found)
    }
}

/// Devices of a resource are given out by its device plugin: a pod that names one could take another pod's.
fn check_device(nad: &NadObject, selection: &NetworkSelection) -> Result<(), ResolveError> {
    match (nad.annotations.get(RESOURCE), &selection.device_id) {
        (Some(resource), Some(device)) => Err(ResolveError::DeviceOfResource {
            object: path(nad),
            device: device.clone(),
            resource: resource.clone(),
        }),
        _ => Ok(()),
    }
}

/// The network of a configuration with what the pod asks; read again where both must be read together.
fn of_config(
    nad: &NadObject,
    parsed: Option<&ParsedNetwork>,
    request: &NetworkSelection,
) -> Result<Network, ResolveError> {
    if let Some(network) = parsed.and_then(|parsed| parsed.with_request(request)) {
        return Ok(network);
    }
    let text = nad.config.as_deref().unwrap_or_default();
    let (config, _) = nad::config(text).map_err(|all| invalid(&display_name(nad), all))?;
    Network::from_config(&network_name(&[&nad.name])?, &config, request)
        .map_err(ResolveError::Config)
}

/// The `Network` that a NAD stands for, or why there is none; nothing if it holds a configuration instead.
pub fn nad_network(
    nad: &NadObject,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<Option<Arc<NetworkObject>>, ResolveError> {
    let fq_name = match nad.means()? {
        Means::Object(fq_name) => fq_name.as_ref(),
        Means::Nothing if objects.on_disk(&nad.name).is_none() => None,
        Means::Nothing | Means::Config(_) | Means::MultiNic(_) => return Ok(None),
    };
    object_of(nad, fq_name, settings, objects).map(Some)
}

/// The fully qualified one, else the NAD's namesake.
fn object_of(
    nad: &NadObject,
    fq_name: Option<&FqName>,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<Arc<NetworkObject>, ResolveError> {
    if let Some(fq_name) = fq_name {
        return by_fq_name(fq_name, &nad.namespace, settings, objects);
    }
    let object = objects.network(&nad.namespace, &nad.name);
    let object = object.ok_or_else(|| no_namesake(nad))?;
    check_made_from(&object, nad)?;
    Ok(object)
}

/// Reads what a NAD is about.
fn parse(nad: &NadObject) -> ParsedNad {
    if let Some(reason) = &nad.unusable {
        return ParsedNad {
            name: None,
            means: Err(ResolveError::UnusableNad {
                object: path(nad),
                reason: reason.clone(),
            }),
            warnings: Vec::new(),
        };
    }
    let text = nad.config.as_deref().filter(|text| !text.trim().is_empty());
    let Some(text) = text else {
        let contrail = Contrail::read(&nad.annotations);
        let means = contrail.map(|contrail| match contrail.network {
            Some(fq_name) => Means::Object(Some(fq_name)),
            None => Means::Nothing,
        });
        return ParsedNad {
            name: None,
            means: means.map_err(|problems| invalid(&display_name(nad), problems)),
            warnings: Vec::new(),
        };
    };
    match nad::config(text) {
        Ok((config, warnings)) => ParsedNad {
            name: config
                .get("name")
                .and_then(Value::as_str)
                .map(str::to_owned),
            means: means(nad, &config),
            warnings,
        },
        Err(problems) => ParsedNad {
            name: None,
            means: Err(invalid(&display_name(nad), problems)),
            warnings: Vec::new(),
        },
    }
}

fn means(nad: &NadObject, config: &Map<String, Value>) -> Result<Means, ResolveError> {
    if nad::is_multi_nic(config) {
        let name = config.get("name").and_then(Value::as_str);
        return Ok(Means::MultiNic(name.unwrap_or(&nad.name).to_owned()));
    }
    if !nad::is_named(config) {
        let name = network_name(&[&nad.name]).ok();
        let parsed = name.and_then(|name| ParsedNetwork::of_config(&name, config).ok());
        return Ok(Means::Config(parsed.map(Box::new)));
    }
    let refused = |problems| invalid(&display_name(nad), problems);
    let contrail = Contrail::read(&nad.annotations).map_err(refused)?;
    let written = nad::named(config).map_err(refused)?;
    Ok(Means::Object(contrail.network.or(written)))
}

fn path(nad: &NadObject) -> String {
    format!("{}/{}", nad.namespace, nad.name)
}

fn display_name(nad: &NadObject) -> String {
    format!("NetworkAttachmentDefinition {}", path(nad))
}

/// Warnings that say whose they are.
fn with_origin(nad: &NadObject, warnings: &[String]) -> Vec<String> {
    let each = warnings.iter();
    each.map(|warning| format!("{}: {warning}", display_name(nad)))
        .collect()
}

/// A NAD that describes a network means the one that was made from it, and no other of its name.
fn check_made_from(object: &NetworkObject, nad: &NadObject) -> Result<(), ResolveError> {
    let describes = nad.annotations.contains_key(nad::CIDR);
    if !describes || object.made_from.as_deref() == Some(&nad.uid) {
        return Ok(());
    }
    Err(ResolveError::NotMadeFrom(path(nad)))
}

fn no_namesake(nad: &NadObject) -> ResolveError {
    let config = nad.config.as_deref().unwrap_or_default();
    match config.trim().is_empty() {
        true => ResolveError::NoConfig(path(nad)),
        false => ResolveError::NoNamesake(path(nad)),
    }
}
