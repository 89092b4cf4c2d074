//! Rights, on a real API server that has of Plexus only its definitions, roles and policies, installed in another
//! namespace than the manifest names: tokens reach as far as they must, tenants make overlays and nothing else, and
//! what nobody means is refused. `PLEXUS_TEST_KUBECONFIG` names the server, which goes with the tests. (Not one of the
//! tests on a cluster: those have Plexus.)
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

mod installed;
mod tokens;

use installed::{Tenant, agents, installed, refused, run};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokens::TestClients;

/// A NAD's configuration that refers to the Network of its name.
const REFERS: &str = r#"{"cniVersion": "1.0.0", "type": "plexus-cni"}"#;

#[test]
fn tokens_reach_no_further_wherever_plexus_is_installed() {
    let home = installed();
    run(async {
        let config = tokens::config().await;
        let admin = Client::try_from(config.clone()).unwrap();
        let agents = agents(&admin, home).await;
        TestClients::new(&config, home, agents).await.check().await;
    });
}

#[test]
fn a_tenant_makes_overlays_and_what_refers_to_them() {
    installed();
    run(async {
        let tenant = Tenant::new("makes", "plexus-tenant").await;
        for (name, spec) in [
            ("bare", json!({})),
            ("blue", json!({"subnets": {"a": {"cidr": "10.1.0.0/20"}}})),
            (
                "full",
                json!({"provider": "overlay", "mtu": 1400, "blockSize": {"ipv4": 28},
                    "subnets": {"a": {"cidr": "192.168.0.0/24", "gateway": "192.168.0.1", "exclude": ["192.168.0.9"]},
                        "b": {"cidr": "fd00:1::/64"}},
                    "routes": [{"dst": "172.16.0.0/12", "gw": "192.168.0.1"}], "snat": false, "sourceCheck": true,
                    "allowedNamespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}}),
            ),
        ] {
            tenant.network(name, spec.clone()).await.expect(name);
        }
        for config in [
            REFERS,
            r#"{"type":"contrail-k8s-cni"}"#,
            "{ \"type\": \"plexus-cni\",\n \"cniVersion\" : \"0.3.1\", \"name\": \"blue\" }\n",
        ] {
            tenant.nad(config, json!({})).await.expect(config);
        }
        let elsewhere = json!({"opencontrail.org/network": "{\"project\": \"team-b\", \"name\": \"blue\"}",
            "example.org/note": "x"});
        tenant.nad(REFERS, elsewhere).await.unwrap();
        // What it made it may change and delete.
        let networks = tenant.networks();
        let more = Patch::Merge(json!({"spec": {"subnets": {"c": {"cidr": "10.2.0.0/24"}}}}));
        let params = PatchParams::default();
        networks.patch("blue", &params, &more).await.unwrap();
        networks
            .delete("blue", &DeleteParams::default())
            .await
            .unwrap();
    });
}

#[test]
fn a_tenant_reaches_no_node_by_a_network() {
    installed();
    run(async {
        let tenant = Tenant::new("network", "plexus-tenant").await;
        let subnet = |cidr: &str| json!({"subnets": {"a": {"cidr": cidr}}});
        let many = |count: usize| {
            let each =
                (0..count).map(|i| (format!("s{i}"), json!({"cidr": format!("10.9.{i}.0/24")})));
            json!({"subnets": each.collect::<serde_json::Map<_, _>>()})
        };
        for (spec, reason) in [
            (
                json!({"provider": "macvlan", "config": {"master": "eth0"}}),
                "spec.provider: macvlan",
            ),
            (
                json!({"provider": "bridge", "config": {"bridge": "br-team-b"}}),
                "spec.provider: bridge",
            ),
            (
                json!({"provider": "routed", "subnets": {"a": {"cidr": "10.1.0.0/24"}}}),
                "spec.provider: routed",
            ),
            (
                json!({"provider": "host-device", "config": {"device": "eth0"}}),
                "spec.provider: host-device",
            ),
            (
                json!({"provider": "delegate", "config": {"plugins": [{"type": "ptp"}]}}),
                "spec.provider: delegate",
            ),
            (
                json!({"provider": "mycorp/any"}),
                "spec.provider: mycorp/any",
            ),
            (
                json!({"config": {"ipam": {"type": "host-local", "dataDir": "/etc", "subnet": "10.1.0.0/24"}}}),
                "spec.config is for network administrators",
            ),
            (
                json!({"uuid": "of-another"}),
                "spec.uuid is for network administrators",
            ),
            (json!({"snat": true}), "spec.snat"),
            (json!({"sourceCheck": false}), "spec.sourceCheck"),
            (subnet("8.8.8.0/24"), "each must be in 10.0.0.0/8"),
            (subnet("2001:db8::/64"), "each must be in 10.0.0.0/8"),
            (subnet("10.0.0.0/19"), "shorter than /20"),
            (subnet("fd00::/48"), "/64 for IPv6"),
            (many(9), "9 are too many: at most 8"),
        ] {
            refused(
                tenant.network("bad", spec.clone()).await,
                &[reason, "plexus-"],
            );
        }
        // No change leads there either.
        tenant.network("good", many(7)).await.unwrap();
        let networks = tenant.networks();
        for (change, reason) in [
            (
                json!({"spec": {"config": {"ipam": {"dataDir": "/etc"}}}}),
                "spec.config",
            ),
            (
                json!({"spec": {"subnets": {"x": {"cidr": "1.1.1.0/24"}}}}),
                "each must be in",
            ),
            (json!({"spec": {"snat": true}}), "spec.snat"),
        ] {
            let change = Patch::Merge(change);
            refused(
                networks
                    .patch("good", &PatchParams::default(), &change)
                    .await,
                &[reason],
            );
        }
        let status = Patch::Merge(json!({"status": {"vni": 4097, "phase": "Active"}}));
        let written = networks
            .patch_status("good", &PatchParams::default(), &status)
            .await;
        refused(written, &["networks/status"]);
    });
}

#[test]
fn a_tenant_takes_over_nothing_that_an_administrator_made() {
    installed();
    run(async {
        let tenant = Tenant::new("theirs", "plexus-tenant").await;
        let spec = json!({"provider": "macvlan", "config": {"master": "eth1"}});
        let mut uplink = tenant.network_object("uplink", spec);
        uplink.metadata.finalizers = Some(vec!["plexus.dev/networks".to_owned()]);
        let post = PostParams::default();
        tenant
            .networks_of_admin()
            .create(&post, &uplink)
            .await
            .unwrap();
        let networks = tenant.networks();
        let params = PatchParams::default();
        let label = Patch::Merge(json!({"metadata": {"labels": {"x": "1"}}}));
        networks.patch("uplink", &params, &label).await.unwrap();
        let other = Patch::Merge(json!({"spec": {"config": {"master": "eth0"}}}));
        refused(
            networks.patch("uplink", &params, &other).await,
            &["spec.provider: macvlan"],
        );
        let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        refused(
            networks.patch("uplink", &params, &bare).await,
            &["a finalizer of plexus.dev"],
        );
        tenant
            .networks_of_admin()
            .patch("uplink", &params, &bare)
            .await
            .unwrap();
    });
}

#[test]
fn a_tenant_reaches_no_node_by_a_definition() {
    installed();
    run(async {
        let tenant = Tenant::new("nad", "plexus-tenant").await;
        let escapes = [
            r#"{"type": "macvlan", "master": "eth0"}"#,
            r#"{"type": "bridge", "bridge": "br-team-b"}"#,
            r#"{"type": "plexus-cni", "provider": "macvlan", "master": "eth0"}"#,
            r#"{"type": "plexus-cni", "ipam": {"type": "host-local", "dataDir": "/etc"}}"#,
            r#"{"type": "plexus-cni", "networks": "pod"}"#,
            r#"{"type": "plexus-cni", "agentSocket": "/run/x.sock"}"#,
            r#"{"type": "plexus-cni", "Type": "macvlan"}"#,
            r#"{"type": "plexus-cni", "type": "macvlan"}"#,
            r#"{"\u0074ype": "macvlan", "type": "plexus-cni"}"#,
            r#"{"type": "macvlan", "name": "\"type\": \"plexus-cni\""}"#,
            r#"{"plugins": [{"type": "plexus-cni"}]}"#,
            r#"{"type": "plexus-cni"} {"type": "macvlan"}"#,
            r#"[{"type": "plexus-cni"}]"#,
            r#"{"type": "../plexus-cni"}"#,
            r#"{"cniVersion": "1.0.0", "name": "blue"}"#,
            "x\n{\"type\": \"plexus-cni\"}",
            "{\"type\": \"plexus-cni\"}\n{\"type\": \"macvlan\"}",
            "",
        ];
        for config in escapes {
            refused(
                tenant.nad(config, json!({})).await,
                &["spec.config must be"],
            );
        }
        let long = REFERS.replace(' ', &" ".repeat(300));
        refused(tenant.nad(&long, json!({})).await, &["spec.config must be"]);
        // The controller would make a Network of it, or a device plugin be asked.
        for key in [
            "opencontrail.org/cidr",
            "opencontrail.org/ip_fabric_snat",
            "opencontrail.org/ip_fabric_forwarding",
            "k8s.v1.cni.cncf.io/resourceName",
        ] {
            let annotations = json!({key: "10.96.0.0/12"});
            refused(
                tenant.nad(REFERS, annotations).await,
                &[key, "network administrators"],
            );
        }
        let made = tenant.nad(REFERS, json!({})).await.unwrap();
        let name = made.metadata.name.unwrap();
        for change in [
            json!({"spec": {"config": escapes[0]}}),
            json!({"spec": {"config": null}}),
            json!({"metadata": {"annotations": {"opencontrail.org/cidr": "10.96.0.0/12"}}}),
        ] {
            let change = Patch::Merge(change);
            let changed = tenant
                .nads()
                .patch(&name, &PatchParams::default(), &change)
                .await;
            refused(changed, &["network administrators"]);
        }
    });
}

#[test]
fn a_tenant_writes_in_no_other_namespace_and_nothing_of_the_nodes() {
    installed();
    run(async {
        let tenant = Tenant::new("own", "plexus-tenant").await;
        let other = Tenant::new("other", "plexus-tenant").await;
        let network = tenant.network_object("n", json!({}));
        let post = PostParams::default();
        let there = tenant.networks_in(&other.namespace);
        refused(
            there.create(&post, &network).await,
            &["cannot create", &other.namespace],
        );
        refused(there.list(&Default::default()).await, &["cannot list"]);
        for (kind, namespace) in [
            ("PodAttachments", Some(tenant.namespace.as_str())),
            ("Block", None),
            ("BlockRequest", None),
        ] {
            let api = tenant.api(kind, namespace);
            let object =
                serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": {}})).unwrap();
            refused(api.create(&post, &object).await, &["cannot create"]);
        }
        let policy: Api<k8s_openapi::api::core::v1::ConfigMap> =
            Api::namespaced(tenant.client.clone(), installed());
        let open = Patch::Merge(json!({"data": {"allowed-subnets": "0.0.0.0/0"}}));
        refused(
            policy
                .patch("plexus-policy", &PatchParams::default(), &open)
                .await,
            &["cannot patch"],
        );
    });
}

#[test]
fn a_tenant_makes_no_more_networks_than_its_quota() {
    installed();
    run(async {
        let tenant = Tenant::new("quota", "plexus-tenant").await;
        tenant.limit_networks(2).await;
        for name in ["one", "two"] {
            tenant.network(name, json!({})).await.unwrap();
        }
        let third = tenant.network("three", json!({})).await;
        refused(third, &["exceeded quota", "count/networks.plexus.dev=2"]);
    });
}

#[test]
fn whoever_administers_networks_is_no_tenant() {
    installed();
    run(async {
        let admin = Tenant::new("admin", "plexus-network-admin").await;
        let spec = json!({"provider": "macvlan", "config": {"master": "eth1"}});
        admin.network("uplink", spec).await.unwrap();
        let config = r#"{"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1"}"#;
        admin
            .nad(config, json!({"opencontrail.org/cidr": "10.77.0.0/24"}))
            .await
            .unwrap();
        // The right is one in a namespace.
        let other = Tenant::new("elsewhere", "plexus-tenant").await;
        let network = admin.network_object("n", json!({}));
        let there = admin.networks_in(&other.namespace);
        refused(
            there.create(&PostParams::default(), &network).await,
            &["cannot create"],
        );
    });
}

#[test]
fn selectors_that_mean_nobody_are_refused() {
    installed();
    run(async {
        let admin = Tenant::new("selector", "plexus-network-admin").await;
        let selects = |selector: Value| json!({"allowedNamespaces": {"from": "Selector", "selector": selector}});
        let requirement = |operator: &str, values: Value| {
            selects(
                json!({"matchExpressions": [{"key": "team", "operator": operator, "values": values}]}),
            )
        };
        for (spec, reason) in [
            (selects(json!({})), "an empty selector means nobody"),
            (
                selects(json!({"matchLabels": {}})),
                "an empty selector means nobody",
            ),
            (requirement("In", json!([])), "values must be there"),
            (requirement("Exists", json!(["a"])), "values must be there"),
            (requirement("Gt", json!(["1"])), "Unsupported value: \"Gt\""),
        ] {
            refused(admin.network("bad", spec.clone()).await, &[reason]);
        }
        let fine = requirement("NotIn", json!(["b"]));
        admin.network("good", fine).await.unwrap();
    });
}
