//! The network of a NetworkAttachmentDefinition.

use super::error::{invalid, missing};
use super::lookup::{Lookup, ResolvedNetwork, by_fq_name, network_name, without_default_route};
use super::{NadObject, NetworkObject, Objects, Settings};
use plexus_api::cni::{Code, Error, FqName, Network};
use plexus_api::nad::{self, Contrail};
use plexus_api::pod::NetworkSelection;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The device plugin's resource that a NAD is tied to.
const RESOURCE: &str = "k8s.v1.cni.cncf.io/resourceName";

/// What the configuration of a NAD is about.
pub(super) enum Means {
    /// A network that the cluster knows, with what users must be told of the configuration.
    Object(Option<FqName>, Vec<String>),
    /// A configuration to attach by, with what users must be told of it.
    Config(Map<String, Value>, Vec<String>),
    /// Nothing: a network that is known by the NAD's name.
    Nothing,
}

impl Lookup<'_> {
    /// The network of a NAD: what its configuration says; with none, the configuration of that name
    /// on the node, else the `Network` of that name.
    pub(super) fn of_nad(
        &self,
        nad: &NadObject,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, Error> {
        match means(nad)? {
            Means::Object(fq_name, warnings) => {
                let found = self.of_nad_object(nad, fq_name.as_ref(), selection)?;
                Ok(ResolvedNetwork {
                    warnings: told(nad, warnings),
                    ..found
                })
            }
            Means::Config(config, warnings) => self.of_config(nad, &config, warnings, selection),
            Means::Nothing => match self.objects.on_disk(&nad.name) {
                Some(text) => {
                    let what = format!("the configuration {} in the CNI directory", nad.name);
                    let (config, warnings) =
                        nad::config(&text).map_err(|problems| invalid(&what, &problems))?;
                    self.of_config(nad, &config, warnings, selection)
                }
                None => self.of_nad_object(nad, None, selection),
            },
        }
    }

    /// The `Network` that a NAD stands for: the fully qualified one, else its namesake.
    pub(super) fn of_nad_object(
        &self,
        nad: &NadObject,
        fq_name: Option<&FqName>,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, Error> {
        let object = object_of(nad, fq_name, self.settings, self.objects)?;
        let found = self.of_object(&object, selection)?;
        Ok(ResolvedNetwork {
            namespace: nad.namespace.clone(),
            name: nad.name.clone(),
            ..found
        })
    }

    fn of_config(
        &self,
        nad: &NadObject,
        config: &Map<String, Value>,
        warnings: Vec<String>,
        selection: &NetworkSelection,
    ) -> Result<ResolvedNetwork, Error> {
        let request = without_default_route(selection);
        let network = Network::from_config(&network_name(&[&nad.name])?, config, &request)?;
        let mut warnings = told(nad, warnings);
        if let (Some(resource), None) = (nad.annotations.get(RESOURCE), &selection.device_id) {
            warnings.push(format!(
                "{}: no device of {resource} is passed on; name one by `deviceID`",
                display_name(nad)
            ));
        }
        Ok(ResolvedNetwork {
            network,
            namespace: nad.namespace.clone(),
            name: nad.name.clone(),
            uuid: nad.uid.clone(),
            warnings,
        })
    }
}

/// The `Network` that a NAD stands for, or why there is none; nothing if it holds a configuration instead.
pub fn nad_network(
    nad: &NadObject,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<Option<Arc<NetworkObject>>, Error> {
    let fq_name = match means(nad)? {
        Means::Object(fq_name, _) => fq_name,
        Means::Nothing if objects.on_disk(&nad.name).is_none() => None,
        Means::Nothing | Means::Config(..) => return Ok(None),
    };
    object_of(nad, fq_name.as_ref(), settings, objects).map(Some)
}

/// The fully qualified one, else the NAD's namesake.
fn object_of(
    nad: &NadObject,
    fq_name: Option<&FqName>,
    settings: &Settings,
    objects: &dyn Objects,
) -> Result<Arc<NetworkObject>, Error> {
    if let Some(fq_name) = fq_name {
        return by_fq_name(fq_name, settings, objects);
    }
    let object = objects.network(&nad.namespace, &nad.name);
    let object = object.ok_or_else(|| no_namesake(nad))?;
    check_made_from(&object, nad)?;
    Ok(object)
}

/// Reads what a NAD is about.
pub(super) fn means(nad: &NadObject) -> Result<Means, Error> {
    let refused = |problems| invalid(&display_name(nad), &problems);
    let text = nad.config.as_deref().filter(|text| !text.trim().is_empty());
    let Some(text) = text else {
        let contrail = Contrail::read(&nad.annotations).map_err(refused)?;
        return Ok(match contrail.network {
            Some(fq_name) => Means::Object(Some(fq_name), Vec::new()),
            None => Means::Nothing,
        });
    };
    let (config, warnings) = nad::config(text).map_err(refused)?;
    if !nad::is_named(&config) {
        return Ok(Means::Config(config, warnings));
    }
    let contrail = Contrail::read(&nad.annotations).map_err(refused)?;
    let written = nad::named(&config).map_err(refused)?;
    Ok(Means::Object(contrail.network.or(written), warnings))
}

fn display_name(nad: &NadObject) -> String {
    format!("NetworkAttachmentDefinition {}/{}", nad.namespace, nad.name)
}

/// Warnings that say whose they are.
fn told(nad: &NadObject, warnings: Vec<String>) -> Vec<String> {
    let display_name = display_name(nad);
    let each = warnings.into_iter();
    each.map(|warning| format!("{display_name}: {warning}"))
        .collect()
}

/// A NAD that describes a network means the one that was made from it, and no other of its name.
fn check_made_from(object: &NetworkObject, nad: &NadObject) -> Result<(), Error> {
    let describes = nad.annotations.contains_key(nad::CIDR);
    if !describes || object.made_from.as_deref() == Some(&nad.uid) {
        return Ok(());
    }
    let what = display_name(nad);
    Err(Error::new(
        Code::InvalidConfig,
        format!(
            "{what} describes a network by {}, but the Network {}/{} was not made from it",
            nad::CIDR,
            object.namespace,
            object.name
        ),
        "rename one of them, or name the Network in plexus.dev/networks",
    ))
}

fn no_namesake(nad: &NadObject) -> Error {
    let NadObject {
        namespace, name, ..
    } = nad;
    let has = nad
        .config
        .as_deref()
        .is_some_and(|text| !text.trim().is_empty());
    if has {
        return missing(
            format!(
                "NetworkAttachmentDefinition {namespace}/{name} leaves everything to the Network {namespace}/{name}, which is not there"
            ),
            "the controller makes it from opencontrail.org/cidr: is it running, has the definition that annotation, and what do its Events say?".to_owned(),
        );
    }
    missing(
        format!(
            "NetworkAttachmentDefinition {namespace}/{name} has no config, the CNI directory of this node has none of that name, and there is no Network {namespace}/{name}"
        ),
        "give the definition a config, or create the Network".to_owned(),
    )
}
