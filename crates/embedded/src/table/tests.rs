//! Rows as people see them.

use super::{Form, Include, event, list, object};
use crate::kinds::{Kind, Kinds};
use serde_json::{Value, json};
use std::sync::Arc;

const NOW: i64 = 1_767_225_600 + 300;
const MADE: &str = "2026-01-01T00:00:00Z";
const ROWS: Form = Form::Table(Include::Metadata);

fn kind(group: &str, version: &str, plural: &str) -> Arc<Kind> {
    let kinds = Kinds::builtin().unwrap();
    Arc::clone(kinds.get(group, version, plural).unwrap())
}

fn core(plural: &str) -> Arc<Kind> {
    kind("", "v1", plural)
}

/// The cells under their headings.
fn rendered(kind: &Kind, of: &Value) -> Vec<(String, Value)> {
    let table = object(kind, ROWS, of, NOW);
    let names = table["columnDefinitions"].as_array().unwrap().iter();
    let names = names.map(|column| column["name"].as_str().unwrap().to_owned());
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(names.len(), cells.len());
    names.zip(cells.iter().cloned()).collect()
}

fn cell(kind: &Kind, of: &Value, name: &str) -> Value {
    let cells = rendered(kind, of);
    let cell = cells.into_iter().find(|(heading, _)| heading == name);
    cell.unwrap().1
}

#[test]
fn the_form_is_the_first_that_we_have() {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let old = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
    for (accept, form) in [
        (None, Form::Whole),
        (Some(""), Form::Whole),
        (Some("*/*"), Form::Whole),
        (
            Some("application/vnd.kubernetes.protobuf,application/json"),
            Form::Whole,
        ),
        (Some("application/json;stream=watch"), Form::Whole),
        (Some(table), ROWS),
        (
            Some("application/json; as=Table ;v=v1; g=meta.k8s.io;q=0.8"),
            ROWS,
        ),
        (Some(&format!("{old},{table},application/json")), ROWS),
        (Some(&format!("application/json,{table}")), Form::Whole),
        (
            Some("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            Form::Metadata,
        ),
        (
            Some("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            Form::Metadata,
        ),
    ] {
        assert_eq!(Form::negotiate(accept, None), Ok(form), "{accept:?}");
    }
    let whole = Form::Table(Include::Object);
    assert_eq!(Form::negotiate(Some(table), Some("Object")), Ok(whole));
    assert_eq!(
        Form::negotiate(Some(table), Some("None")),
        Ok(Form::Table(Include::None))
    );
    Form::negotiate(Some(table), Some("Everything")).unwrap_err();
    Form::negotiate(Some(old), None).unwrap_err();
    Form::negotiate(Some("text/html"), None).unwrap_err();
}

#[test]
fn columns_come_from_the_definition() {
    let config = json!({
        "metadata": {"name": "a", "creationTimestamp": MADE},
        "spec": {"plugins": [{"type": "macvlan"}]},
    });
    let configs = kind("cni.networking.x-k8s.io", "v1alpha1", "cniconfigs");
    let expected = [
        ("Name", json!("a")),
        ("Interface", Value::Null),
        ("Plugins", json!("macvlan")),
        ("Age", json!("5m")),
    ];
    let expected = expected.map(|(name, cell)| (name.to_owned(), cell));
    assert_eq!(rendered(&configs, &config), expected);
    let config = json!({"spec": {"plugins": [{"type": "macvlan"}, {"type": "tuning"}]}});
    assert_eq!(cell(&configs, &config, "Plugins"), "macvlan,tuning");
}

#[test]
fn a_list_is_a_table_with_its_version() {
    let maps = [
        json!({"metadata": {"name": "a"}, "data": {"x": "1"}}),
        json!({"metadata": {"name": "b"}}),
    ];
    let table = list(
        &core("configmaps"),
        ROWS,
        json!({"resourceVersion": "7"}),
        &maps,
        NOW,
    );
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["metadata"]["resourceVersion"], "7");
    assert_eq!(table["rows"][0]["cells"], json!(["a", 1, "<unknown>"]));
    assert_eq!(table["rows"][1]["cells"][1], 0);
    assert_eq!(
        table["rows"][0]["object"],
        json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"},
        })
    );
    let bare = list(
        &core("configmaps"),
        Form::Table(Include::None),
        json!({}),
        &maps,
        NOW,
    );
    assert!(bare["rows"][0].get("object").is_none());
    let whole = list(
        &core("configmaps"),
        Form::Table(Include::Object),
        json!({}),
        &maps,
        NOW,
    );
    assert_eq!(whole["rows"][0]["object"]["data"]["x"], "1");
    assert_eq!(whole["rows"][0]["object"]["kind"], "ConfigMap");
    let alone = list(&core("configmaps"), Form::Metadata, json!({}), &maps, NOW);
    assert_eq!(alone["kind"], "PartialObjectMetadataList");
    assert_eq!(alone["items"][1]["kind"], "PartialObjectMetadata");
    let plain = list(&core("configmaps"), Form::Whole, json!({}), &maps, NOW);
    assert_eq!(
        (&plain["kind"], &plain["items"][0]),
        (&json!("ConfigMapList"), &maps[0])
    );
}

#[test]
fn a_watch_has_the_columns_once_and_no_row_for_a_bookmark() {
    let pod = json!({"metadata": {"name": "a", "resourceVersion": "9"}});
    let first = event(&core("pods"), ROWS, &pod, true, NOW);
    assert!(first["columnDefinitions"].is_array());
    assert_eq!(first["metadata"]["resourceVersion"], "9");
    let next = event(&core("pods"), ROWS, &pod, false, NOW);
    assert!(next["columnDefinitions"].is_null());
    assert_eq!(next["rows"].as_array().unwrap().len(), 1);
    let bookmark = json!({"kind": "Pod", "metadata": {"resourceVersion": "10"}});
    let mark = event(&core("pods"), ROWS, &bookmark, false, NOW);
    assert_eq!(
        (
            mark["rows"].as_array().unwrap().len(),
            &mark["metadata"]["resourceVersion"]
        ),
        (0, &json!("10"))
    );
    let alone = event(&core("pods"), Form::Metadata, &pod, false, NOW);
    assert_eq!(alone["kind"], "PartialObjectMetadata");
}

#[test]
fn a_pod_says_how_it_is() {
    let pods = core("pods");
    let container = |state: Value| json!({"ready": state.get("running").is_some(), "restartCount": 2, "state": state});
    let pod = |status: Value| {
        json!({
            "metadata": {"name": "web", "creationTimestamp": MADE},
            "spec": {"nodeName": "n1", "containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]},
            "status": status,
        })
    };
    let running = container(json!({"running": {}}));
    let up = pod(json!({
        "phase": "Running", "podIP": "10.0.0.1",
        "containerStatuses": [running, container(json!({"terminated": {"reason": "Completed"}}))],
    }));
    for (name, expected) in [
        ("Ready", "1/2"),
        ("Status", "Running"),
        ("Restarts", "4"),
        ("Age", "5m"),
        ("IP", "10.0.0.1"),
        ("Node", "n1"),
        ("Nominated Node", "<none>"),
    ] {
        assert_eq!(cell(&pods, &up, name), expected, "{name}");
    }
    let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
    for (status, expected) in [
        (json!({"phase": "Pending"}), "Pending"),
        (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
        (
            json!({"phase": "Pending", "containerStatuses": [container(waiting.clone())]}),
            "ContainerCreating",
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [container(json!({"terminated": {"exitCode": 3}}))]}),
            "ExitCode:3",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [container(json!({"running": {}}))]}),
            "Init:0/1",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [container(waiting)]}),
            "Init:ContainerCreating",
        ),
    ] {
        assert_eq!(
            cell(&pods, &pod(status.clone()), "Status"),
            expected,
            "{status}"
        );
    }
    let mut going = up.clone();
    going["metadata"]["deletionTimestamp"] = MADE.into();
    assert_eq!(cell(&pods, &going, "Status"), "Terminating");
    let mut again = up;
    again["status"]["containerStatuses"][0]["lastState"] =
        json!({"terminated": {"finishedAt": MADE}});
    assert_eq!(cell(&pods, &again, "Restarts"), "4 (5m ago)");
}

#[test]
fn a_node_says_whether_it_takes_pods() {
    let nodes = core("nodes");
    let node = json!({
        "metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
        "spec": {"unschedulable": true},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            "nodeInfo": {"kubeletVersion": "v1.37.0", "osImage": "Debian"},
        },
    });
    for (name, expected) in [
        ("Status", "Ready,SchedulingDisabled"),
        ("Roles", "edge,worker"),
        ("Version", "v1.37.0"),
        ("Internal-IP", "192.0.2.1"),
        ("External-IP", "<none>"),
        ("OS-Image", "Debian"),
        ("Kernel-Version", "<unknown>"),
    ] {
        assert_eq!(cell(&nodes, &node, name), expected, "{name}");
    }
    assert_eq!(cell(&nodes, &json!({}), "Status"), "Unknown");
    assert_eq!(cell(&nodes, &json!({}), "Roles"), "<none>");
}

#[test]
fn an_event_says_the_same_in_both_groups() {
    let event = json!({
        "metadata": {"name": "a.1"}, "type": "Warning", "reason": "FailedAttach",
        "involvedObject": {"kind": "Pod", "name": "web"}, "message": "no such network\n",
        "reportingComponent": "plexus-agent", "reportingInstance": "n1", "eventTime": MADE,
        "series": {"count": 3, "lastObservedTime": "2026-01-01T00:04:00.000000Z"},
    });
    let core = rendered(&core("events"), &event);
    let cells: Vec<Value> = core.iter().map(|(_, cell)| cell.clone()).collect();
    let expected = json!([
        "60s",
        "Warning",
        "FailedAttach",
        "pod/web",
        "",
        "plexus-agent, n1",
        "no such network",
        "5m",
        3,
        "a.1",
    ]);
    assert_eq!(Value::from(cells), expected);
    let other = crate::events::from_core(&event);
    assert_eq!(
        rendered(&kind("events.k8s.io", "v1", "events"), &other),
        core
    );
}

#[test]
fn the_other_core_kinds_have_their_columns() {
    let named = |more: Value| {
        let mut object = more;
        object["metadata"] = json!({"name": "a", "creationTimestamp": MADE});
        object
    };
    let lease = named(json!({"spec": {"holderIdentity": "me"}}));
    assert_eq!(
        cell(
            &kind("coordination.k8s.io", "v1", "leases"),
            &lease,
            "Holder"
        ),
        "me"
    );
    let namespace = named(json!({"status": {"phase": "Active"}}));
    assert_eq!(cell(&core("namespaces"), &namespace, "Status"), "Active");
    let definitions = kind("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    assert_eq!(cell(&definitions, &named(json!({})), "Created At"), MADE);
    let claims = kind("resource.k8s.io", "v1", "resourceclaims");
    assert_eq!(cell(&claims, &named(json!({})), "State"), "pending");
    let used = named(json!({"status": {"allocation": {}, "reservedFor": [{"name": "web"}]}}));
    assert_eq!(cell(&claims, &used, "State"), "allocated,reserved");
}
