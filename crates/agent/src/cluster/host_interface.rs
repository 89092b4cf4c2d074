//! This node's HostInterface: its NICs, as the controller and other nodes see them. Owns when it is made, changed
//! and left alone; which NICs there are is told.

use super::api::{self, code};
use super::report::Published;
use super::shared::Shared;
use super::wire::HostInterfaceWire;
use plexus_api::objects::{HostInterfaceSpec, HostNic, UNMANAGED_LABEL};
use serde_json::{Value, json};
use std::sync::Arc;

/// Makes the object, or corrects it; one that says the same already is not written.
pub(super) async fn publish(
    shared: Arc<Shared>,
    node_uid: String,
    interfaces: Vec<HostNic>,
) -> kube::Result<Published> {
    let name = &shared.options.node;
    let spec = HostInterfaceSpec {
        host_name: name.clone(),
        interfaces,
    };
    let owners = json!([{"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}]);
    let api = api::all::<HostInterfaceWire>(&shared.client);
    let Some(known) = api.get_opt(name).await? else {
        let metadata = json!({"name": name, "ownerReferences": owners});
        let object = api::object::<HostInterfaceWire>(metadata, spec);
        return match api::create::<HostInterfaceWire>(&shared.client, &object).await {
            Ok(_) => Ok(Published::Written),
            Err(error) if code(&error) == Some(404) => Ok(Published::NotDefined),
            Err(error) => Err(error),
        };
    };
    if is_unmanaged(&known) {
        return Ok(Published::Unmanaged);
    }
    let owned = serde_json::to_value(&known.metadata.owner_references).unwrap_or_default();
    let says = serde_json::from_value::<HostInterfaceSpec>(known.spec.clone());
    let same = says.is_ok_and(|says| says == spec);
    if same && has_owner(&owned, &node_uid) {
        return Ok(Published::Unchanged);
    }
    // Whoever takes it over meanwhile must not be overruled.
    let version = known.metadata.resource_version;
    let patch = json!({
        "metadata": {"resourceVersion": version, "ownerReferences": owners},
        "spec": replacing(&known.spec, &spec),
    });
    api::merge(&api, name, patch).await?;
    Ok(Published::Written)
}

/// A user keeps it.
fn is_unmanaged(known: &HostInterfaceWire) -> bool {
    let label = known.metadata.labels.as_ref();
    let label = label.and_then(|labels| labels.get(UNMANAGED_LABEL));
    label.is_some_and(|value| value != "false")
}

fn has_owner(owned: &Value, node_uid: &str) -> bool {
    let mut all = owned.as_array().into_iter().flatten();
    all.any(|owner| owner["uid"] == node_uid)
}

/// A spec as a merge patch that leaves nothing of the old one.
fn replacing(old: &Value, spec: &HostInterfaceSpec) -> Value {
    let mut patch = json!(spec);
    for key in old.as_object().into_iter().flat_map(|old| old.keys()) {
        if patch.get(key).is_none() {
            patch[key] = Value::Null;
        }
    }
    patch
}
