//! Contrail's fully qualified names: one dictionary or a list, as JSON or as Python writes them.

use super::{CONTRAIL_NETWORK, MAX_NETWORKS, name};
use crate::cni::FqName;
use crate::problem::fault;
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
    let list = match literal::read(text).map_err(|cause| fault(CONTRAIL_NETWORK, cause))? {
        Value::Array(list) => list,
        dictionary @ Value::Object(_) => vec![dictionary],
        _ => {
            let text = "must be a dictionary with domain, project and name, or a list of such";
            return Err(fault(CONTRAIL_NETWORK, text));
        }
    };
    if list.len() > MAX_NETWORKS {
        let text = format!("has {} elements: write at most {MAX_NETWORKS}", list.len());
        return Err(fault(CONTRAIL_NETWORK, text));
    }
    let map = Map::from_iter([(CONTRAIL_NETWORK.to_owned(), Value::Array(list))]);
    let mut fields = Fields::new(&map, "");
    let names = fields.objects(CONTRAIL_NETWORK, |fields, _| fq_name(fields));
    fields.finish().unless_any(names.unwrap_or_default())
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
        fields.require(key, remedy);
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
