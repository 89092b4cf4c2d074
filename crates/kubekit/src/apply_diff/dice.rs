//! What is written: bodies that are valid on their own, by chance that a seed repeats.

use super::{CORE, MANAGERS, Subject, Write, WriteKind};
use serde_json::{Map, Value, json};

/// Chance that a seed repeats (xorshift64*).
pub(super) struct Dice(u64);

/// What throws the value of one field.
type Make = fn(&mut Dice) -> Value;

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        number as usize % end
    }

    pub(super) fn in_ten(&mut self, times: usize) -> bool {
        self.below(10) < times
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(super) fn some<T: Copy>(&mut self, from: &[T]) -> Vec<T> {
        from.iter().copied().filter(|_| self.in_ten(5)).collect()
    }

    pub(super) fn write(&mut self, subject: Subject) -> Write {
        let kind = match self.below(10) {
            0..4 => WriteKind::Apply,
            4..7 => WriteKind::Force,
            7..9 => WriteKind::Merge,
            _ => WriteKind::Replace,
        };
        let kind = match kind {
            WriteKind::Apply | WriteKind::Merge if CORE.contains(&subject) && self.in_ten(5) => {
                WriteKind::Strategic
            }
            kind => kind,
        };
        let mut body = match subject {
            Subject::ConfigMap => self.config_map(),
            Subject::Network => self.network(),
            Subject::NetworkStatus => self.network_status(),
            Subject::Node => self.node(),
            Subject::NodeStatus => self.node_status(kind),
            Subject::Pod => self.pod(kind),
        };
        if !subject.is_status() {
            body["metadata"] = self.metadata(subject);
        }
        if kind == WriteKind::Strategic && !subject.is_status() {
            self.direct_metadata(&mut body["metadata"]);
        }
        if matches!(kind, WriteKind::Merge | WriteKind::Strategic) {
            self.forget(&mut body, subject);
        }
        Write {
            manager: self.pick(&MANAGERS),
            kind,
            body,
        }
    }

    /// In a merge patch null takes away: some of the members below the top ones become null. Not of a Pod's spec,
    /// which may not change so much, and not beside directives, which are about the same lists.
    fn forget(&mut self, body: &mut Value, subject: Subject) {
        for (name, part) in body.as_object_mut().into_iter().flatten() {
            let Some(members) = part.as_object_mut() else {
                continue;
            };
            let directed = members.keys().any(|name| name.starts_with('$'));
            if directed || (subject == Subject::Pod && name == "spec") {
                continue;
            }
            for member in members.values_mut() {
                if self.in_ten(2) {
                    *member = Value::Null;
                }
            }
        }
    }

    fn metadata(&mut self, subject: Subject) -> Value {
        let mut metadata = Map::new();
        for name in ["labels", "annotations"] {
            // A cluster's own controllers annotate Nodes.
            let is_theirs = subject == Subject::Node && name == "annotations";
            if self.in_ten(4) && !is_theirs {
                let entries = self.entries(&["a", "b", "c"]);
                metadata.insert(name.to_owned(), entries);
            }
        }
        if self.in_ten(3) {
            let finalizers = self.some(&["diff.example/a", "diff.example/b"]);
            metadata.insert("finalizers".to_owned(), json!(finalizers));
        }
        Value::Object(metadata)
    }

    pub(super) fn entries(&mut self, names: &[&str]) -> Value {
        let names = self.some(names);
        let entry = |name: &str| (name.to_owned(), json!(self.pick(&["1", "2"])));
        Value::Object(names.into_iter().map(entry).collect())
    }

    fn config_map(&mut self) -> Value {
        let mut map = Map::new();
        if self.in_ten(8) {
            map.insert("data".to_owned(), self.entries(&["a", "b", "c", "d"]));
        }
        if self.in_ten(3) {
            let binary = self.some(&["x", "y"]);
            let binary: Map<String, Value> = binary
                .into_iter()
                .map(|name| (name.to_owned(), json!(self.pick(&["MQ==", "Mg=="]))))
                .collect();
            map.insert("binaryData".to_owned(), Value::Object(binary));
        }
        Value::Object(map)
    }

    fn network(&mut self) -> Value {
        let mut spec = Map::new();
        // Nobody makes it real, and it may not change; who leaves it out gets the default, and is refused.
        if self.in_ten(9) {
            spec.insert("provider".to_owned(), json!("diff.example/none"));
        }
        let fields: [(&str, Make); 6] = [
            ("mtu", |dice| json!(dice.pick(&[1400, 1500]))),
            ("snat", |dice| json!(dice.in_ten(5))),
            ("subnets", Self::subnets),
            ("routes", Self::routes),
            ("config", |dice| dice.anything(0)),
            ("allowedNamespaces", Self::allowed_namespaces),
        ];
        for (name, make) in fields {
            if self.in_ten(4) {
                let value = make(self);
                spec.insert(name.to_owned(), value);
            }
        }
        json!({"spec": spec})
    }

    fn subnets(&mut self) -> Value {
        let mut subnets = Map::new();
        for (name, net) in self.some(&[("a", "192.0.2"), ("b", "198.51.100"), ("c", "203.0.113")]) {
            let mut subnet = json!({"cidr": format!("{net}.0/24")});
            if self.in_ten(5) {
                subnet["gateway"] = format!("{net}.{}", self.pick(&[1, 254])).into();
            }
            if self.in_ten(3) {
                let hosts = self.some(&[2, 3, 4]);
                subnet["exclude"] = hosts.iter().map(|host| format!("{net}.{host}")).collect();
            }
            subnets.insert(name.to_owned(), subnet);
        }
        Value::Object(subnets)
    }

    fn routes(&mut self) -> Value {
        let routes = self.some(&["10.1.0.0/16", "10.2.0.0/16"]);
        routes.into_iter().map(|dst| json!({"dst": dst})).collect()
    }

    fn allowed_namespaces(&mut self) -> Value {
        match self.below(3) {
            0 => json!({"from": "All"}),
            1 => json!({"from": "Same"}),
            _ => json!({
                "from": "Selector",
                "selector": {
                    "matchLabels": self.entries(&["a", "b"]),
                    "matchExpressions": [{"key": "c", "operator": "Exists"}],
                },
            }),
        }
    }

    /// For a field that may be anything, at its top a map.
    fn anything(&mut self, depth: usize) -> Value {
        if depth == 0 || (depth < 3 && self.in_ten(4)) {
            let names = self.some(&["x", "y", "z"]);
            let member = |name: &str| (name.to_owned(), self.anything(depth + 1));
            return Value::Object(names.into_iter().map(member).collect());
        }
        match self.below(3) {
            0 => json!(self.some(&[1, 2])),
            1 => json!(self.pick(&["s", "t"])),
            _ => json!(self.below(3)),
        }
    }

    fn network_status(&mut self) -> Value {
        let mut status = Map::new();
        if self.in_ten(5) {
            status.insert("phase".to_owned(), json!(self.pick(&["Pending", "Active"])));
        }
        if self.in_ten(4) {
            status.insert("vni".to_owned(), json!(self.below(3)));
        }
        if self.in_ten(4) {
            let allocated = self.below(3);
            let usage = json!({"blocks": 1, "allocated": allocated, "capacity": 9});
            status.insert("usage".to_owned(), usage);
        }
        if self.in_ten(7) {
            let types = self.some(&["Ready", "InUse", "KernelFeature"]);
            let condition = |kind: &str| {
                json!({
                    "type": kind, "status": self.pick(&["True", "False"]), "reason": "Diff",
                    "message": self.pick(&["x", "y"]), "lastTransitionTime": "2025-11-16T00:00:00Z",
                })
            };
            let conditions: Vec<Value> = types.into_iter().map(condition).collect();
            status.insert("conditions".to_owned(), conditions.into());
        }
        json!({"status": status})
    }
}
