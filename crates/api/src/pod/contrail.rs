//! Contrail's fully qualified names: one dictionary or a list, as JSON or as Python writes them.

use super::{CONTRAIL_NETWORK, MAX_NETWORKS, name};
use crate::cni::FqName;
use crate::fault::fault;
use crate::text::quoted;
use crate::{Fields, Problems, literal};
use serde_json::{Map, Value};

/// The only domain that there is.
const DOMAIN: &str = "default-domain";

/// `opencontrail.org/network` of a pod: one interface per dictionary, in order. Empty text is none.
pub fn contrail_networks(text: &str) -> Result<Vec<FqName>, Problems> {
    super::bounded(CONTRAIL_NETWORK, text)?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let list = match literal::read(text) {
        Ok(Value::Array(list)) => list,
        Ok(dictionary @ Value::Object(_)) => vec![dictionary],
        Ok(_) => {
            let text = "must be a dictionary with domain, project and name, or a list of such";
            return Err(fault(CONTRAIL_NETWORK, text));
        }
        Err(cause) => return Err(fault(CONTRAIL_NETWORK, cause)),
    };
    if list.len() > MAX_NETWORKS {
        let text = format!("has {} elements: write at most {MAX_NETWORKS}", list.len());
        return Err(fault(CONTRAIL_NETWORK, text));
    }
    let map = Map::from_iter([(CONTRAIL_NETWORK.to_owned(), Value::Array(list))]);
    let mut fields = Fields::new(&map, "");
    let names = fields.objects(CONTRAIL_NETWORK, |fields, _| fq_name(fields));
    let problems = fields.finish();
    match problems.0.is_empty() {
        true => Ok(names.unwrap_or_default()),
        false => Err(problems),
    }
}

/// `{"domain": "default-domain", "project": "team-a", "name": "blue"}`
pub(crate) fn fq_name(fields: &mut Fields<'_>) -> Option<FqName> {
    let domain = fields.text("domain");
    let project = fields.text("project");
    let network = fields.text("name");
    for (key, remedy) in [
        ("domain", "write default-domain"),
        ("project", "write the network's namespace"),
        ("name", "write the network's name"),
    ] {
        if fields.lacks(key) {
            fields.missing(key, remedy);
        }
    }
    if let Some(domain) = domain.filter(|domain| !["", DOMAIN].contains(domain)) {
        let text = format!("is {}: there is one domain, write {DOMAIN}", quoted(domain));
        fields.problem("domain", text);
    }
    for (key, value) in [("project", project), ("name", network)] {
        if let Some(Err(text)) = value.filter(|text| !text.is_empty()).map(name::object) {
            fields.problem(key, text);
        }
    }
    fields.is_sound().then_some(FqName {
        project: project?.to_owned(),
        name: network?.to_owned(),
    })
}
