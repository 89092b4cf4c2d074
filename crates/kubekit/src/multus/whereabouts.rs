//! whereabouts on a lab's nodes: addresses of a range that all nodes share, kept in the API server.

use super::{account, install_program, up};
use crate::lab::Lab;
use crate::node;
use anyhow::Result;
use serde_json::json;

/// What `ipam.configuration_path` must say: whereabouts reads the rest of its configuration there.
pub const CONFIGURATION: &str = "/etc/cni/net.d/whereabouts.d/whereabouts.conf";

/// Gives every node that is up the program, its configuration and a kubeconfig of an account that may
/// do what it does; the cluster its kinds of objects. May be repeated.
pub fn prepare(lab: &Lab) -> Result<()> {
    lab.api().apply(ACCOUNT)?;
    for (plural, kind) in KINDS {
        lab.api().apply(&definition(plural, kind))?;
    }
    let token = account::token(lab, "whereabouts")?;
    let kubeconfig = account::kubeconfig(lab.layout(), "whereabouts", &token)?;
    let configuration = json!({
        "datastore": "kubernetes",
        "configuration_path": DIRECTORY,
        "kubernetes": {"kubeconfig": KUBECONFIG},
    });
    for name in up(lab)? {
        let program = lab.tools().whereabouts.join("whereabouts");
        install_program(lab.layout(), &name, &program)?;
        let write = |path: &str, text: &str| node::write(lab.layout(), &name, path, text);
        write(KUBECONFIG, &kubeconfig)?;
        write(CONFIGURATION, &configuration.to_string())?;
        write(&format!("{DIRECTORY}/nodename"), &name)?;
    }
    Ok(())
}

const DIRECTORY: &str = "/etc/cni/net.d/whereabouts.d";
const KUBECONFIG: &str = "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig";

const KINDS: [(&str, &str); 3] = [
    ("ippools", "IPPool"),
    ("nodeslicepools", "NodeSlicePool"),
    (
        "overlappingrangeipreservations",
        "OverlappingRangeIPReservation",
    ),
];

/// What its own manifest grants.
const ACCOUNT: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: whereabouts, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: whereabouts}
rules:
- {apiGroups: [whereabouts.cni.cncf.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: ["*"]}
- {apiGroups: [""], resources: [pods, nodes], verbs: [get, list, watch]}
- {apiGroups: [k8s.cni.cncf.io], resources: [network-attachment-definitions], verbs: [get, list, watch]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, get, patch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: whereabouts}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: whereabouts}
subjects: [{kind: ServiceAccount, name: whereabouts, namespace: kube-system}]
"#;

/// Without a schema worth the name: the program itself is not on trial.
fn definition(plural: &str, kind: &str) -> String {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.whereabouts.cni.cncf.io")},
        "spec": {
            "group": "whereabouts.cni.cncf.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": anything}}],
        },
    })
    .to_string()
}
