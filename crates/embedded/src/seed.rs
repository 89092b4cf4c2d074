//! What every server has: namespaces, and the definitions of its own kinds, as it serves them.

use crate::status::Refused;
use crate::verbs::{Api, Subject, create_initial as make, renew};
use crate::{crds, store};
use serde_json::json;
use std::sync::Arc;

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes what is missing, and brings definitions of an earlier server up to date.
///
/// # Errors
/// The store refuses a write.
pub(crate) async fn create_initial(api: &Arc<Api>, more: Vec<String>) -> Result<(), Refused> {
    let (table, kind) = api.namespaces();
    let kind = Arc::clone(kind);
    let definitions = api
        .kinds
        .get("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let definitions = definitions.and_then(|kind| Some((api.store.table(kind)?, Arc::clone(kind))));
    let writer = Arc::clone(api);
    let planted = api.store.write(move |changes| {
        for name in NAMESPACES.into_iter().map(str::to_owned).chain(more) {
            let key = store::Key::new("", &name);
            if changes.get(table, &key).is_none() {
                let object = json!({
                    "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
                });
                let subject = Subject::stored(&kind, table, &key);
                let _ = make(&writer, changes, &subject, object)?;
            }
        }
        let Some((table, kind)) = definitions else {
            return Ok(());
        };
        for definition in crds::served(&writer.kinds) {
            let name = definition["metadata"]["name"]
                .as_str()
                .unwrap_or("")
                .to_owned();
            let key = store::Key::new("", &name);
            let subject = Subject::stored(&kind, table, &key);
            match changes.get(table, &key) {
                Some(live) => renew(&writer, changes, &subject, &live, definition)?,
                None => drop(make(&writer, changes, &subject, definition)?),
            }
        }
        Ok(())
    });
    planted.await
}
