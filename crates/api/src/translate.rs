//! Objects that are written in a way that no API server of today takes, as what they mean: the
//! `Network` of group `v1`, and `spec.networks` of a Pod. Owns both; says what it did.

use crate::objects::{GROUP, VERSION};
use crate::pod::PLEXUS_NETWORKS;
use serde_json::{Map, Value, json};

/// Rewrites an object in place, if it is one of those; says what was read as what.
pub fn translate(object: &mut Value) -> Result<Vec<String>, String> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        ("v1", kind @ ("Network" | "NetworkList")) => {
            let said = format!("v1 has no {kind}: read as {GROUP}/{VERSION}");
            if let Some(version) = object.get_mut("apiVersion") {
                *version = json!(format!("{GROUP}/{VERSION}"));
            }
            Ok(vec![said])
        }
        ("v1", "Pod") => pod(object).map(|said| said.into_iter().collect()),
        _ => Ok(Vec::new()),
    }
}

/// `spec.networks` becomes the annotation; both together must say the same.
fn pod(object: &mut Value) -> Result<Option<String>, String> {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(None);
    };
    let Some(networks) = spec.get("networks").filter(|list| !list.is_null()) else {
        spec.remove("networks");
        return Ok(None);
    };
    let names = networks.as_array();
    let names = names.and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let names = names.ok_or("must be a list of networks' names")?;
    let annotation = json!(names).to_string();
    spec.remove("networks");
    let metadata = object
        .as_object_mut()
        .and_then(|pod| object_at(pod, "metadata"));
    let metadata = metadata.ok_or("metadata is not an object")?;
    let annotations = object_at(metadata, "annotations").ok_or("annotations are not an object")?;
    match annotations.get(PLEXUS_NETWORKS) {
        Some(written) if *written != json!(annotation) => Err(format!(
            "and the annotation {PLEXUS_NETWORKS} name different networks: keep one of them"
        )),
        _ => {
            annotations.insert(PLEXUS_NETWORKS.to_owned(), json!(annotation));
            Ok(Some(format!(
                "spec.networks is no field of a Pod: read as the annotation {PLEXUS_NETWORKS}"
            )))
        }
    }
}

/// The object at a key, made if it is not there; none if something else is.
pub(crate) fn object_at<'m>(
    map: &'m mut Map<String, Value>,
    key: &str,
) -> Option<&'m mut Map<String, Value>> {
    let value = map.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(mut object: Value) -> (Value, Result<Vec<String>, String>) {
        let said = translate(&mut object);
        (object, said)
    }

    #[test]
    fn the_network_of_group_v1() {
        let (object, said) = translated(json!({"apiVersion": "v1", "kind": "Network"}));
        assert_eq!(object["apiVersion"], "plexus.dev/v1alpha1");
        assert!(said.unwrap()[0].contains("v1 has no Network"));
        let ours = json!({"apiVersion": "plexus.dev/v1alpha1", "kind": "Network"});
        assert_eq!(translated(ours.clone()), (ours, Ok(vec![])));
    }

    #[test]
    fn networks_of_a_pod() {
        let pod = |metadata: Value, networks: Value| {
            translated(
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
                "spec": {"networks": networks, "containers": []}}),
            )
        };
        let (object, said) = pod(json!({}), json!(["a", "b/c"]));
        assert_eq!(said.unwrap().len(), 1);
        assert_eq!(
            object["metadata"]["annotations"]["plexus.dev/networks"],
            "[\"a\",\"b/c\"]"
        );
        assert_eq!(object["spec"], json!({"containers": []}));
        let same = json!({"annotations": {"plexus.dev/networks": "[\"a\"]"}});
        assert!(pod(same.clone(), json!(["a"])).1.is_ok());
        let other = pod(same, json!(["b"])).1.unwrap_err();
        assert!(other.contains("different networks"), "{other}");
        for networks in [json!("a"), json!([1]), json!({})] {
            assert!(pod(json!({}), networks).1.is_err());
        }
        assert!(pod(json!({"annotations": []}), json!(["a"])).1.is_err());
        let (object, said) = pod(json!({}), Value::Null);
        assert_eq!(said, Ok(vec![]));
        assert!(object["spec"].get("networks").is_none());
    }
}
