//! Validates objects for the embedded API: by the rules of our definitions, and a Pod's `spec.networks`
//! read as the annotation that it stands for. Says what a Kubernetes API server with our definitions
//! would say, no more: the rest is the controller's, in conditions.

use super::rules::Rules;
use plexus_api::pod::PLEXUS_NETWORKS;
use plexus_embedded::kinds::Kind;
use plexus_embedded::status::Cause;
use plexus_embedded::{PatchBase, Validator};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const FIELD: &str = "/spec/networks";
/// Where the annotation is that it stands for.
const ANNOTATION: &str = "/metadata/annotations/plexus.dev~1networks";
const LAST_APPLIED: &str =
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// Validates objects of our kinds.
#[derive(Debug)]
pub(crate) struct KindValidator {
    /// By group and kind.
    rules: BTreeMap<(String, String), Rules>,
}

impl KindValidator {
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

impl Validator for KindValidator {
    fn received(
        &self,
        kind: &Kind,
        before: PatchBase<'_>,
        object: &mut Value,
    ) -> Result<Vec<String>, Vec<Cause>> {
        if !kind.group.is_empty() || kind.kind != "Pod" {
            return Ok(Vec::new());
        }
        if is_outdated(before, object) {
            annotations(object).map(|all| all.remove(PLEXUS_NETWORKS));
        }
        let written = object.pointer(FIELD).cloned();
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

/// Whether the annotation of a Pod is what `spec.networks` said before, and the patch says something else
/// there and nothing of the annotation. A patch that takes the field away takes the annotation along,
/// unless what kubectl has applied names that too: it does not send what is there already.
fn is_outdated(before: PatchBase<'_>, object: &Value) -> bool {
    let annotation = object.pointer(ANNOTATION);
    let stored = before.stored.and_then(|stored| stored.pointer(ANNOTATION));
    if annotation.is_none() || annotation != stored {
        return false;
    }
    let patched = before.patch.and_then(|patch| patch.pointer(FIELD));
    match object.pointer(FIELD).or(patched) {
        Some(Value::Null) => !is_applied(object),
        written => written.is_some(),
    }
}

/// Whether kubectl keeps the annotation as part of what was applied last.
fn is_applied(object: &Value) -> bool {
    let applied = object.pointer(LAST_APPLIED).and_then(Value::as_str);
    let applied = applied.and_then(|text| serde_json::from_str::<Value>(text).ok());
    applied.is_some_and(|applied| applied.pointer(ANNOTATION).is_some())
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.pointer_mut("/metadata/annotations")?.as_object_mut()
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
        let found = KindValidator::new()
            .unwrap()
            .problems(&kind, old.as_ref(), &object(spec));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn mistakes_in_a_network_are_named_with_their_place() {
        for (spec, field_path, expected) in [
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
            (
                json!({"allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {}}}}),
                "spec.allowedNamespaces.selector: ",
                "an empty selector means nobody",
            ),
            (
                json!({"allowedNamespaces": {"from": "Selector", "selector": {"matchExpressions":
                    [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "In"}]}}}),
                "spec.allowedNamespaces.selector.matchExpressions[1]: ",
                "values must be there",
            ),
        ] {
            let found = problems(spec.clone(), None);
            assert_eq!(found.len(), 1, "{spec}: {found:?}");
            assert!(
                found[0].starts_with(field_path) && found[0].contains(expected),
                "{found:?}"
            );
        }
        let fine = json!({
            "provider": "mycorp/fancy", "uuid": "u",
            "subnets": {"a": {"cidr": "10.1.0.0/16", "gateway": "10.1.255.254",
                "exclude": ["10.1.0.0/28", "10.1.7.7"]}, "b": {"cidr": "fd00::/48"}},
            "routes": [{"dst": "192.168.0.0/16", "gw": "10.1.255.254"}],
            "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {},
                "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}},
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
    fn subnet_and_routes_of_a_multi_nic_network_stay() {
        let ipam = |mode: &str| {
            let mode = format!("\"vlanMode\" :\n {mode}");
            format!("{{\"type\": \"multi-nic-ipam\", \"hostBlock\": 6, {mode}}}")
        };
        let object = |subnet: Value, ipam: String| json!({"metadata": {"name": "n"}, "spec": {"subnet": subnet, "ipam": ipam}});
        let validator = KindValidator::new().unwrap();
        let kind = kind("net.cogadvisor.io", "v1", "multinicnetworks");
        let change = |old: &Value, new: &Value| {
            let found = validator.problems(&kind, Some(old), new);
            let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
            texts.join("; ")
        };
        let old = object(json!("192.168.0.0/16"), ipam("\"l3\""));
        for subnet in [
            json!("192.169.0.0/16"),
            json!("192.168.0.0/16,fd00::/48"),
            json!(""),
        ] {
            let text = change(&old, &object(subnet.clone(), ipam("\"l3\"")));
            assert!(
                text.contains("subnet cannot be changed"),
                "{subnet}: {text}"
            );
        }
        for mode in ["\"l2\"", "\"l2\", \"x\": \"l3\"", "null"] {
            let text = change(&old, &object(json!("192.168.0.0/16"), ipam(mode)));
            assert!(text.contains("cannot be changed to l2"), "{mode}: {text}");
        }
        let longer = object(
            json!("192.168.0.0/16"),
            ipam("\"l3s\", \"interfaceBlock\": 2"),
        );
        assert_eq!(change(&old, &longer), "");
        let without = object(json!(""), ipam("\"l2\""));
        assert_eq!(change(&without, &old), "");
    }

    #[test]
    fn of_a_block_only_the_uid_of_its_node_may_change() {
        let kind = kind("plexus.dev", "v1alpha1", "blocks");
        let block = |cidr: &str, node: &str, uid: &str| {
            json!({"metadata": {"name": "b"}, "spec": {"cidr": cidr, "node": node, "nodeUID": uid,
                "network": {"namespace": "default", "name": "blue"}}})
        };
        let validator = KindValidator::new().unwrap();
        let old = block("10.1.0.0/26", "n1", "1");
        let changed = |new: &Value| validator.problems(&kind, Some(&old), new);
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
        let (validator, new) = (KindValidator::new().unwrap(), PatchBase::default());
        let pod = |networks: Value| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                "spec": {"networks": networks}})
        };
        let mut written = pod(json!(["a"]));
        assert_eq!(
            validator.received(&pods, new, &mut written).unwrap().len(),
            1
        );
        assert_eq!(
            written["metadata"]["annotations"]["plexus.dev/networks"],
            "[\"a\"]"
        );
        let wrong = validator
            .received(&pods, new, &mut pod(json!(7)))
            .unwrap_err();
        assert_eq!(wrong[0].field, "spec.networks");
        let mut other = pod(json!(["a"]));
        assert_eq!(validator.received(&maps, new, &mut other), Ok(vec![]));
    }

    /// A server with our kinds and their meaning.
    struct Served {
        dir: std::path::PathBuf,
        server: Option<plexus_embedded::Server>,
    }

    impl Served {
        fn new(name: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("px-{name}-{}", std::process::id()));
            let mut options = plexus_embedded::Options::new(&dir, crate::kinds::all().unwrap());
            options.unix = Some(dir.join("api.sock"));
            options.validator = std::sync::Arc::new(KindValidator::new().unwrap());
            let server = Some(plexus_embedded::Server::start(options).unwrap());
            Self { dir, server }
        }

        /// The head and the body of the answer.
        fn ask(&self, line: &str, media: &str, body: &Value) -> (String, Value) {
            let body = body.to_string();
            let socket = self.dir.join("api.sock");
            let mut wire = std::os::unix::net::UnixStream::connect(socket).unwrap();
            write!(
                wire,
                "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {media}\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            let mut answer = String::new();
            wire.read_to_string(&mut answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            (
                head.to_owned(),
                serde_json::from_str(body).unwrap_or_default(),
            )
        }
    }

    impl Drop for Served {
        fn drop(&mut self) {
            drop(self.server.take());
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    #[test]
    fn networks_under_their_second_name_have_the_same_rules() {
        let served = Served::new("meaning");
        let post = |version: &str, spec: &Value| {
            let object = json!({
                "apiVersion": version.trim_start_matches("/apis/").trim_start_matches("/api/"),
                "kind": "Network", "metadata": {"generateName": "n"}, "spec": spec,
            });
            let line = format!("POST {version}/namespaces/default/networks");
            served.ask(&line, "application/json", &object)
        };
        let spec = json!({"subnets": {"a": {"cidr": "10.1.0.0/16", "gateway": "10.2.0.1"}}});
        for version in ["/apis/plexus.dev/v1alpha1", "/api/v1"] {
            let (head, body) = post(version, &spec);
            assert!(head.starts_with("HTTP/1.1 422"), "{version}: {head}");
            let expected = body["message"].as_str().unwrap();
            assert!(
                expected.contains("gateway must be an address"),
                "{expected}"
            );
            let (head, _) = post(version, &json!({}));
            assert!(head.starts_with("HTTP/1.1 201"), "{version}: {head}");
        }
    }

    /// The patches are those that `kubectl apply` makes of a file that was changed.
    #[test]
    fn networks_of_a_pod_can_be_changed_and_taken_away() {
        const PODS: &str = "/api/v1/namespaces/default/pods";
        let served = Served::new("networks");
        let containers = json!([{"name": "c", "image": "busybox"}]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"networks": ["a"], "containers": containers}});
        let line = format!("POST {PODS}");
        let (head, made) = served.ask(&line, "application/json", &pod);
        assert!(head.starts_with("HTTP/1.1 201"), "{head}: {made}");
        let patched = |media: &str, patch: &Value| {
            let line = format!("PATCH {PODS}/p");
            served.ask(&line, &format!("application/{media}+json"), patch)
        };
        let applied = |manifest: &Value| json!({"kubectl.kubernetes.io/last-applied-configuration": manifest.to_string()});
        let networks = |body: &Value| body.pointer(ANNOTATION).cloned().unwrap_or_default();
        for (media, names, text) in [
            ("strategic-merge-patch", json!(["b"]), "[\"b\"]"),
            ("merge-patch", json!(["b", "c"]), "[\"b\",\"c\"]"),
            ("merge-patch", json!(["b", "c"]), "[\"b\",\"c\"]"),
        ] {
            let (head, body) = patched(media, &json!({"spec": {"networks": names}}));
            assert!(head.starts_with("HTTP/1.1 200"), "{media}: {head}: {body}");
            assert_eq!(networks(&body), text);
        }
        // Both, and they say different things.
        let both = json!({"metadata": {"annotations": {"plexus.dev/networks": "d"}},
            "spec": {"networks": ["e"]}});
        let (head, body) = patched("strategic-merge-patch", &both);
        assert!(head.starts_with("HTTP/1.1 422"), "{head}: {body}");
        // Something else is patched.
        let (_, body) = patched("merge-patch", &json!({"metadata": {"labels": {"x": "y"}}}));
        assert_eq!(networks(&body), "[\"b\",\"c\"]");
        // From the field to the annotation: kubectl sends only that the field is gone.
        let manifest =
            json!({"metadata": {"annotations": {"plexus.dev/networks": "[\"b\",\"c\"]"}}});
        let moved =
            json!({"metadata": {"annotations": applied(&manifest)}, "spec": {"networks": null}});
        let (_, body) = patched("strategic-merge-patch", &moved);
        assert_eq!(networks(&body), "[\"b\",\"c\"]");
        let gone = json!({"metadata": {"annotations": applied(&json!({"metadata": {}}))},
            "spec": {"networks": null}});
        let (head, body) = patched("strategic-merge-patch", &gone);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}: {body}");
        assert_eq!(networks(&body), Value::Null);
    }
}
