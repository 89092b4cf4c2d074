//! What the admission policies of `deploy/parts` let the agent of a node write. The agent's identity
//! is borrowed (impersonation), so that no agent and no token is needed. Nothing is stored but Events.

use crate::environment::{Environment, from, until, with_environment};
use k8s_openapi::api::core::v1::Event;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Client, ResourceExt};
use plexus_api::objects::{Block, BlockRequest, BlockSpec, HostInterface, PodAttachments};
use serde::Deserialize;
use serde_json::{Value, json};

const RECORD: &str = "5b0c2b54-0000-4000-8000-00000000000a";
/// A network's UID.
const NET: &str = "5b0c2b54-0000-4000-8000-00000000000b";

#[test]
fn agents_write_their_own_records_under_their_own_names() {
    with_environment("admission", async |environment| {
        let agent = agent_of(&environment, "n1").await;
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let blocks: Api<Block> = Api::all(agent.clone());
        let create = async |object: Value| refusal(blocks.create(&dry, &from(object)).await);
        until("the policies are in force", async || {
            create(block("x", "n1", NET, "10.1.0.64/26"))
                .await
                .contains("its name must be")
        })
        .await;
        for cidr in [
            "10.1.0.64/26",
            "255.0.15.240/28",
            "::/8",
            "fd00:0:0:7::40/122",
            "fd00:1:2:3:4:5:6:40/122",
            "fd00:1::/64",
        ] {
            let name = BlockSpec::name(NET, &cidr.parse().unwrap());
            assert_eq!(create(block(&name, "n1", NET, cidr)).await, "");
            let wrong = block(&name, "n2", NET, cidr);
            assert!(create(wrong).await.contains("plexus.dev/node must be"));
            let wrong = block(&name, "n1", "u2", cidr);
            assert!(create(wrong).await.contains("plexus.dev/network must be"));
            let wrong = block(&format!("{name}0"), "n1", NET, cidr);
            assert!(create(wrong).await.contains("its name must be"));
        }
        let requests: Api<BlockRequest> = Api::all(agent.clone());
        let create = async |object: Value| refusal(requests.create(&dry, &from(object)).await);
        assert_eq!(create(request(&format!("{NET}-n1"), "n1", NET)).await, "");
        for (wrong, why) in [
            (
                request(&format!("{NET}-n2"), "n1", NET),
                &*format!("its name must be {NET}-n1"),
            ),
            (
                request(&format!("{NET}-n2"), "n2", NET),
                "only the records of that node",
            ),
            (
                request(&format!("{NET}-n1"), "n1", "u2"),
                "plexus.dev/network must be",
            ),
        ] {
            let message = create(wrong).await;
            assert!(message.contains(why), "{message}");
        }
        let records: Api<PodAttachments> = Api::namespaced(agent, &environment.namespace);
        let create = async |object: Value| refusal(records.create(&dry, &from(object)).await);
        let labels =
            |node: &str, pod: &str| json!({"plexus.dev/node": node, "plexus.dev/pod": pod});
        assert_eq!(create(record(RECORD, labels("n1", "p"))).await, "");
        let short = json!({"plexus.dev/node": "n1"});
        assert_eq!(create(record(RECORD, short.clone())).await, "");
        for (wrong, why) in [
            (record("other", short), "its name must be"),
            (record(RECORD, labels("n2", "p")), "plexus.dev/node must be"),
            (record(RECORD, json!({})), "plexus.dev/node must be"),
            (record(RECORD, labels("n1", "q")), "plexus.dev/pod must be"),
        ] {
            let message = create(wrong).await;
            assert!(message.contains(why), "{message}");
        }
    });
}

#[test]
fn agents_write_their_own_nics_and_no_block_on_them() {
    with_environment("admission-nics", async |environment| {
        let agent = agent_of(&environment, "n1").await;
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let nics: Api<HostInterface> = Api::all(agent.clone());
        let create = async |object: Value| refusal(nics.create(&dry, &from(object)).await);
        let of = |node: &str, labels: Value| {
            json!({"apiVersion": "net.cogadvisor.io/v1", "kind": "HostInterface",
                "metadata": {"name": node, "labels": labels}, "spec": {"hostName": node}})
        };
        until("the policies are in force", async || {
            create(of("n2", json!({}))).await.contains("of that node")
        })
        .await;
        assert_eq!(create(of("n1", json!({}))).await, "");
        let users: Api<HostInterface> = Api::all(environment.client.clone());
        let kept: HostInterface = from(of("n1", json!({"multi-nic-unmanaged": "true"})));
        users.create(&PostParams::default(), &kept).await.unwrap();
        let change = Patch::Merge(json!({"spec": {"interfaces": [{"interfaceName": "eth9"}]}}));
        let patched = nics.patch("n1", &PatchParams::default(), &change).await;
        assert!(refusal(patched).contains("is a user's"));
        // Not even by taking the label away.
        let taken = Patch::Merge(json!({"metadata": {"labels": null}}));
        let patched = nics.patch("n1", &PatchParams::default(), &taken).await;
        assert!(refusal(patched).contains("is a user's"));

        let kind = ApiResource::erase::<Block>(&());
        let any_blocks: Api<DynamicObject> = Api::all_with(agent.clone(), &kind);
        let blocks: Api<Block> = Api::all(agent);
        let cidr = "192.168.0.0/24";
        let name = BlockSpec::name(NET, &cidr.parse().unwrap());
        let mut on_nic = block(&name, "n1", NET, cidr);
        assert_eq!(
            refusal(blocks.create(&dry, &from(on_nic.clone())).await),
            ""
        );
        // One that says no Network: a MultiNicNetwork has no namespace.
        for network in [
            json!({"namespace": "", "name": "b", "uid": NET}),
            json!({"name": "b", "uid": NET}),
            json!({"namespace": "a", "name": "", "uid": NET}),
        ] {
            let mut nobodys = on_nic.clone();
            nobodys["spec"]["network"] = network.clone();
            let nobodys: DynamicObject = from(nobodys);
            let message = refusal(any_blocks.create(&dry, &nobodys).await);
            assert!(
                message.contains("must say which Network"),
                "{network}: {message}"
            );
        }
        on_nic["spec"]["nic"] = json!({"interface": "eth1", "netAddress": "10.0.1.0/24",
            "interfaceIndex": 0, "hostIndex": 0, "via": "10.0.1.1"});
        let message = refusal(blocks.create(&dry, &from(on_nic)).await);
        assert!(message.contains("are the controller's"), "{message}");
        let _ = Api::<HostInterface>::all(environment.client.clone())
            .delete("n1", &DeleteParams::default())
            .await;
    });
}

#[test]
fn agents_write_their_own_events() {
    with_environment("admission-events", async |environment| {
        let agent = agent_of(&environment, "n1").await;
        let events: Api<Event> = Api::namespaced(agent, &environment.namespace);
        let post = PostParams::default();
        until("the policies are in force", async || {
            let foreign = event(&environment, "f", "kubelet", "n1");
            let dry = PostParams {
                dry_run: true,
                ..PostParams::default()
            };
            refusal(events.create(&dry, &from(foreign)).await).contains("only Events of")
        })
        .await;
        let message = |result| refusal::<Event>(result);
        let own = event(&environment, "own", "plexus-agent", "n1");
        assert_eq!(message(events.create(&post, &from(own)).await), "");
        let elsewhere = event(&environment, "e", "plexus-agent", "n2");
        assert!(message(events.create(&post, &from(elsewhere)).await).contains("\"n1\""));

        for (name, component, host) in
            [("kubelets", "kubelet", "n1"), ("n2s", "plexus-agent", "n2")]
        {
            let _: Event = environment
                .create(event(&environment, name, component, host))
                .await;
        }
        let patch = |name: &'static str, patch: Value| {
            let events = events.clone();
            async move {
                refusal(
                    events
                        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
                        .await,
                )
            }
        };
        let count = json!({"count": 2});
        assert_eq!(patch("own", count.clone()).await, "");
        for name in ["kubelets", "n2s"] {
            assert!(patch(name, count.clone()).await.contains("forbidden"));
        }
        // Nor by making another's its own on the way.
        let taken = event(&environment, "kubelets", "plexus-agent", "n1");
        let message = patch("kubelets", taken).await;
        assert!(message.contains("made itself"), "{message}");
    });
}

/// The agent of a node, with the rights and the limits that the manifest gives it.
async fn agent_of(environment: &Environment, node: &str) -> Client {
    for part in [
        include_str!("../../../../deploy/parts/10-agent-rbac.yaml"),
        include_str!("../../../../deploy/parts/20-admission.yaml"),
    ] {
        for document in serde_yaml_ng::Deserializer::from_str(part) {
            let object = DynamicObject::deserialize(document).unwrap();
            let types = object.types.as_ref().unwrap();
            if types.kind == "ServiceAccount" {
                continue;
            }
            let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).unwrap());
            let client = environment.client.clone();
            let api: Api<DynamicObject> = match object.namespace() {
                Some(namespace) => Api::namespaced_with(client, &namespace, &kind),
                None => Api::all_with(client, &kind),
            };
            let params = PatchParams::apply("plexus-test").force();
            api.patch(&object.name_any(), &params, &Patch::Apply(&object))
                .await
                .unwrap();
        }
    }
    let mut config = environment.config().await;
    for (header, value) in [
        (
            "impersonate-user",
            "system:serviceaccount:plexus-system:plexus-agent",
        ),
        (
            "impersonate-extra-authentication.kubernetes.io%2fnode-name",
            node,
        ),
    ] {
        config
            .headers
            .push((header.parse().unwrap(), value.parse().unwrap()));
    }
    Client::try_from(config).unwrap()
}

fn block(name: &str, node: &str, network: &str, cidr: &str) -> Value {
    json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "Block",
        "metadata": {"name": name, "labels": {"plexus.dev/node": node, "plexus.dev/network": network}},
        "spec": {
            "network": {"namespace": "a", "name": "b", "uid": NET},
            "cidr": cidr, "node": "n1", "nodeUID": "x",
        },
    })
}

fn request(name: &str, node: &str, network: &str) -> Value {
    json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "BlockRequest",
        "metadata": {"name": name, "labels": {"plexus.dev/node": node, "plexus.dev/network": network}},
        "spec": {
            "network": {"namespace": "a", "name": "b", "uid": NET},
            "node": node, "family": "ipv4", "addresses": 8,
        },
    })
}

fn record(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "plexus.dev/v1alpha1", "kind": "PodAttachments",
        "metadata": {"name": name, "labels": labels},
        "spec": {"pod": {"name": "p", "uid": RECORD}, "node": "n1"},
    })
}

fn event(environment: &Environment, name: &str, component: &str, host: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": environment.namespace},
        "involvedObject": {"kind": "Pod", "namespace": environment.namespace, "name": "p"},
        "reason": "Test", "message": "m", "type": "Warning", "count": 1,
        "source": {"component": component, "host": host},
        "reportingComponent": component, "reportingInstance": host,
    })
}

/// Why it was refused; empty if it was not.
fn refusal<T>(result: kube::Result<T>) -> String {
    result
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}
