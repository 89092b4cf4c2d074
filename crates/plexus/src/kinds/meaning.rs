//! What objects mean, for the embedded API: the rules of our definitions, and a Pod's `spec.networks`
//! read as the annotation that it stands for. Says what a Kubernetes API server with our definitions
//! would say, no more: the rest is the controller's, in conditions.

use super::rules::Rules;
use plexus_embedded::Validator;
use plexus_embedded::kinds::Kind;
use plexus_embedded::status::Cause;
use serde_json::Value;
use std::collections::BTreeMap;

/// Knows our kinds.
#[derive(Debug)]
pub(crate) struct Meaning {
    /// By group and kind.
    rules: BTreeMap<(String, String), Rules>,
}

impl Meaning {
    /// Reads the rules of our definitions.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut rules = BTreeMap::new();
        for definition in super::definitions()? {
            let text = |path: &str| {
                let text = definition.pointer(path).and_then(Value::as_str);
                text.unwrap_or_default().to_owned()
            };
            let key = (text("/spec/group"), text("/spec/names/kind"));
            let schema = definition.pointer("/spec/versions/0/schema/openAPIV3Schema");
            if let Some(read) = schema.map(Rules::of).transpose()?.flatten() {
                rules.insert(key, read);
            }
        }
        Ok(Self { rules })
    }
}

impl Validator for Meaning {
    fn received(&self, kind: &Kind, object: &mut Value) -> Result<Vec<String>, Vec<Cause>> {
        if !kind.group.is_empty() || kind.kind != "Pod" {
            return Ok(Vec::new());
        }
        let written = object.pointer("/spec/networks").cloned();
        plexus_api::translate(object).map_err(|why| {
            let value = written.unwrap_or_default();
            vec![Cause::invalid("spec.networks", &value, why)]
        })
    }

    fn problems(&self, kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<Cause> {
        let rules = self.rules.get(&(kind.group.clone(), kind.kind.clone()));
        rules.map_or_else(Vec::new, |rules| rules.broken(old, new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::{Read, Write};

    fn kind(group: &str, version: &str, plural: &str) -> std::sync::Arc<Kind> {
        let kinds = crate::kinds::all().unwrap();
        std::sync::Arc::clone(kinds.get(group, version, plural).unwrap())
    }

    fn problems(spec: Value, old: Option<Value>) -> Vec<String> {
        let kind = kind("plexus.dev", "v1alpha1", "networks");
        let object = |spec: Value| json!({"metadata": {"name": "n"}, "spec": spec});
        let old = old.map(object);
        let found = Meaning::new()
            .unwrap()
            .problems(&kind, old.as_ref(), &object(spec));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mistakes_in_a_network_are_named_with_their_place() {
        for (spec, place, said) in [
            (
                json!({"provider": "nonsense"}),
                "spec: ",
                "provider is not known",
            ),
            (
                json!({"subnets": {"a": {"cidr": "10.1.0.1/16"}}}),
                "spec.subnets[a]: ",
                "without host bits",
            ),
            (
                json!({"subnets": {"a": {"cidr": "10.1.0.0/16", "gateway": "10.2.0.1"}}}),
                "spec.subnets[a]: ",
                "gateway must be",
            ),
            (
                json!({"subnets": {"a": {"cidr": "10.1.0.0/16", "exclude": ["10.1.0.0/28", "x"]}}}),
                "spec.subnets[a]: ",
                "exclude must have",
            ),
            (
                json!({"routes": [{"dst": "10.0.0.0/8"}, {"dst": "fd00::/8", "gw": "10.0.0.1"}]}),
                "spec.routes[1]: ",
                "gw must be",
            ),
            (
                json!({"allowedNamespaces": {"from": "Selector"}}),
                "spec.allowedNamespaces: ",
                "selector must be there",
            ),
        ] {
            let found = problems(spec.clone(), None);
            assert_eq!(found.len(), 1, "{spec}: {found:?}");
            assert!(
                found[0].starts_with(place) && found[0].contains(said),
                "{found:?}"
            );
        }
        let fine = json!({
            "provider": "mycorp/fancy", "uuid": "u",
            "subnets": {"a": {"cidr": "10.1.0.0/16", "gateway": "10.1.255.254",
                "exclude": ["10.1.0.0/28", "10.1.7.7"]}, "b": {"cidr": "fd00::/48"}},
            "routes": [{"dst": "192.168.0.0/16", "gw": "10.1.255.254"}],
            "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {}}},
        });
        assert_eq!(problems(fine, None), [""; 0]);
    }

    #[test]
    fn what_must_not_change_is_compared_with_what_was() {
        let subnet = |cidr: &str| json!({"provider": "overlay", "subnets": {"a": {"cidr": cidr}}});
        let old = subnet("10.1.0.0/16");
        let found = problems(subnet("10.2.0.0/16"), Some(old.clone()));
        assert!(
            found[0].contains("the cidr of a subnet cannot be changed"),
            "{found:?}"
        );
        let found = problems(json!({"provider": "routed"}), Some(old.clone()));
        assert!(found[0].contains("provider cannot be changed"), "{found:?}");
        let found = problems(
            json!({"provider": "overlay", "blockSize": {}}),
            Some(old.clone()),
        );
        assert!(
            found[0].contains("blockSize cannot be changed"),
            "{found:?}"
        );
        assert_eq!(problems(old.clone(), Some(old)), [""; 0]);
    }

    #[test]
    fn of_a_block_only_the_uid_of_its_node_may_change() {
        let kind = kind("plexus.dev", "v1alpha1", "blocks");
        let block = |cidr: &str, node: &str, uid: &str| {
            json!({"metadata": {"name": "b"}, "spec": {"cidr": cidr, "node": node, "nodeUID": uid,
                "network": {"namespace": "default", "name": "blue"}}})
        };
        let meaning = Meaning::new().unwrap();
        let old = block("10.1.0.0/26", "n1", "1");
        let changed = |new: &Value| meaning.problems(&kind, Some(&old), new);
        assert_eq!(changed(&block("10.1.0.0/26", "n1", "2")), []);
        for new in [
            block("10.1.0.64/26", "n1", "1"),
            block("10.1.0.0/26", "n2", "1"),
        ] {
            let found = changed(&new);
            assert!(
                found[0].message.contains("a block cannot be changed"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn an_old_mistake_does_not_stand_in_the_way_of_a_change_elsewhere() {
        let with = |mtu: u32| json!({"mtu": mtu, "subnets": {"a": {"cidr": "10.1.0.1/16"}}});
        assert_eq!(problems(with(1400), Some(with(1300))), [""; 0]);
        assert_eq!(problems(with(1400), None).len(), 1);
    }

    #[test]
    fn networks_of_a_pod_are_read_as_its_annotation() {
        let (pods, maps) = (kind("", "v1", "pods"), kind("", "v1", "configmaps"));
        let meaning = Meaning::new().unwrap();
        let pod = |networks: Value| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                "spec": {"networks": networks}})
        };
        let mut written = pod(json!(["a"]));
        assert_eq!(meaning.received(&pods, &mut written).unwrap().len(), 1);
        assert_eq!(
            written["metadata"]["annotations"]["plexus.dev/networks"],
            "[\"a\"]"
        );
        let wrong = meaning.received(&pods, &mut pod(json!(7))).unwrap_err();
        assert_eq!(wrong[0].field, "spec.networks");
        let mut other = pod(json!(["a"]));
        assert_eq!(meaning.received(&maps, &mut other), Ok(vec![]));
    }

    #[test]
    fn networks_under_their_second_name_have_the_same_rules() {
        let dir = std::env::temp_dir().join(format!("px-meaning-{}", std::process::id()));
        let socket = dir.join("api.sock");
        let mut options = plexus_embedded::Options::new(&dir, crate::kinds::all().unwrap());
        options.unix = Some(socket.clone());
        options.validator = std::sync::Arc::new(Meaning::new().unwrap());
        let server = plexus_embedded::Server::start(options).unwrap();
        let post = |version: &str, spec: &Value| {
            let object = json!({
                "apiVersion": version.trim_start_matches("/apis/").trim_start_matches("/api/"),
                "kind": "Network", "metadata": {"generateName": "n"}, "spec": spec,
            });
            let body = object.to_string();
            let mut wire = std::os::unix::net::UnixStream::connect(&socket).unwrap();
            write!(
                wire,
                "POST {version}/namespaces/default/networks HTTP/1.1\r\nhost: x\r\nconnection: \
                 close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            let mut answer = String::new();
            wire.read_to_string(&mut answer).unwrap();
            answer
        };
        let spec = json!({"subnets": {"a": {"cidr": "10.1.0.0/16", "gateway": "10.2.0.1"}}});
        for version in ["/apis/plexus.dev/v1alpha1", "/api/v1"] {
            let answer = post(version, &spec);
            assert!(answer.starts_with("HTTP/1.1 422"), "{version}: {answer}");
            assert!(answer.contains("gateway must be an address"), "{answer}");
            let answer = post(version, &json!({}));
            assert!(answer.starts_with("HTTP/1.1 201"), "{version}: {answer}");
        }
        server.stop();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
