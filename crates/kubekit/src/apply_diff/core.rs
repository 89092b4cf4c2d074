//! What is written to core kinds whose lists are merged by key: Nodes, their status, Pods; and what a strategic
//! merge patch says beside that.

use super::WriteKind;
use super::dice::Dice;
use serde_json::{Map, Value, json};

/// Lists whose items have an identity, and the member that is it.
const KEYED: [(&str, &str); 2] = [("conditions", "type"), ("addresses", "type")];

impl Dice {
    /// What of a Node's spec may change. Never `false`, which a real server does not store.
    pub(super) fn node(&mut self) -> Value {
        match self.in_ten(5) {
            true => json!({"spec": {"unschedulable": true}}),
            false => json!({}),
        }
    }

    /// Lists by key, and a map of quantities.
    pub(super) fn node_status(&mut self, kind: WriteKind) -> Value {
        let mut status = Map::new();
        if self.in_ten(7) {
            let types = self.some(&["Ready", "DiskFull", "Tired"]);
            let condition = |kind: &str| {
                json!({
                    "type": kind, "status": self.pick(&["True", "False"]), "reason": "Diff",
                    "message": self.pick(&["x", "y"]),
                    "lastHeartbeatTime": "2025-11-16T00:00:00Z",
                    "lastTransitionTime": "2025-11-16T00:00:00Z",
                })
            };
            let conditions: Vec<Value> = types.into_iter().map(condition).collect();
            status.insert("conditions".to_owned(), conditions.into());
        }
        if self.in_ten(5) {
            let types = self.some(&["InternalIP", "ExternalIP", "Hostname"]);
            let address = |kind: &str| json!({"type": kind, "address": self.pick(&["192.0.2.1", "192.0.2.2"])});
            let addresses: Vec<Value> = types.into_iter().map(address).collect();
            status.insert("addresses".to_owned(), addresses.into());
        }
        // Without this one a real server takes it from the capacity.
        if self.in_ten(6) {
            let quantities = self.entries(&["cpu", "diff.example/nic"]);
            status.insert("allocatable".to_owned(), quantities);
        }
        if kind == WriteKind::Strategic {
            self.direct(&mut status);
        }
        json!({"status": status})
    }

    /// Of a Pod only images may change, each by its container's name; a list that is written whole would take
    /// the other container away.
    pub(super) fn pod(&mut self, kind: WriteKind) -> Value {
        if matches!(kind, WriteKind::Merge | WriteKind::Replace) || self.in_ten(3) {
            return json!({});
        }
        let names = self.some(&["a", "b"]);
        let container = |name: &str| json!({"name": name, "image": self.pick(&["x", "y"])});
        let containers: Vec<Value> = names.into_iter().map(container).collect();
        json!({"spec": {"containers": containers}})
    }

    /// Finalizers are a set: a strategic patch adds to it, unless it says what goes.
    pub(super) fn direct_metadata(&mut self, metadata: &mut Value) {
        let Some(metadata) = metadata.as_object_mut().filter(|_| self.in_ten(4)) else {
            return;
        };
        let gone = self.some(&["diff.example/a", "diff.example/b"]);
        let _ = metadata.remove("finalizers");
        metadata.insert(
            "$deleteFromPrimitiveList/finalizers".to_owned(),
            json!(gone),
        );
    }

    /// Some items are to go, some lists are to be replaced, some to be put into an order.
    fn direct(&mut self, status: &mut Map<String, Value>) {
        for (name, key) in KEYED {
            let Some(Value::Array(items)) = status.get_mut(name) else {
                continue;
            };
            for item in items.iter_mut() {
                if self.in_ten(2) {
                    *item = json!({key: item[key], "$patch": "delete"});
                }
            }
            let all_stay = items.iter().all(|item| item.get("$patch").is_none());
            let order: Vec<Value> = items.iter().map(|item| json!({key: item[key]})).collect();
            if all_stay && self.in_ten(2) {
                items.push(json!({"$patch": "replace"}));
            } else if all_stay && !order.is_empty() && self.in_ten(3) {
                status.insert(format!("$setElementOrder/{name}"), order.into());
            }
        }
    }
}
