//! What a pod's record is called: by the pod's UID. A record of that name that another node has made does not keep this
//! one's from being written: it then has the node in its name, which no other node may write.

use super::api::code;
use super::cached::CachedRecord;
use super::state::{State, key};
use super::wire::RecordWire;
use kube::Api;
use serde_json::Value;
use std::sync::Arc;

/// The name that only this node's record can have.
pub(super) fn with_node(uid: &str, node: &str) -> String {
    format!("{uid}-{node}")
}

/// The records that this node has of a pod: one as a rule; two if it could have the plain name only later.
pub(super) fn records_of(
    state: &State,
    namespace: &str,
    uid: &str,
    node: &str,
) -> Vec<Arc<CachedRecord>> {
    let names = [uid.to_owned(), with_node(uid, node)];
    let keys = names.iter().map(|name| key(namespace, name));
    keys.filter_map(|key| state.records.get(&key)).collect()
}

/// Whether a write was refused because the record of that name is another node's, which is told in the answer.
pub(super) async fn taken_by(
    records: &Api<RecordWire>,
    name: &str,
    node: &str,
    error: &kube::Error,
) -> kube::Result<Option<String>> {
    // By the admission policy, or by the rule that nobody changes whose a record is.
    if !matches!(code(error), Some(403 | 422)) {
        return Ok(None);
    }
    let found = records.get_opt(name).await?;
    let owner = found.map(|record| owner(&record.spec));
    Ok(owner.filter(|owner| owner != node))
}

fn owner(spec: &Value) -> String {
    let node = spec.get("node").and_then(Value::as_str);
    node.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_s_record_is_found_by_either_name() {
        let mut state = State::default();
        let mut put = |namespace: &str, name: &str| {
            let record = CachedRecord {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                uid: "u".to_owned(),
                finalizer: None,
                status: 0,
            };
            state.records.put(&key(namespace, name), Arc::new(record));
        };
        put("a", "u-n1");
        put("b", "u");
        put("c", "u-n2");
        let names = |namespace: &str| -> Vec<String> {
            let found = records_of(&state, namespace, "u", "n1");
            found.iter().map(|record| record.name.clone()).collect()
        };
        assert_eq!(names("a"), ["u-n1"]);
        assert_eq!(names("b"), ["u"]);
        assert!(names("c").is_empty());
    }
}
