//! What a command needs to know of one pod: its own objects, and those that its annotations and its record name, each
//! asked for by its name. Of a large cluster nothing else is read, but for the records while the pod is not attached:
//! by them it is known whether addresses are free.

use super::fetch::{AGENTS, EVENTS, LEASE, LEASES, kind, list_of, word};
use super::{ClientError, Need, Session};
use crate::kinds::Kind;
use crate::snapshot::{NodeView, Snapshot, list, name, pod_facts, text, uid};
use plexus_api::objects::NETWORK_LABEL;
use plexus_core::resolve::{
    Examined, MultiNicObject, NadObject, NetworkObject, Objects, ResolveError, examine,
};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Session {
    /// What there is about a pod. If there is no such pod, what [`Session::snapshot`] gives of its namespace: a container
    /// is found by the records there.
    pub fn snapshot_of_pod(
        &self,
        namespace: &str,
        named: &str,
        cluster_name: &str,
        now: i64,
    ) -> Result<Snapshot, ClientError> {
        let by_name = format!("metadata.name={named}");
        let found = kind("pods").and_then(|kind| {
            let found = self.wait(self.listed(&kind, Some(namespace), None, Some(&by_name)));
            found.ok()?.pop()
        });
        let Some(pod) = found else {
            let mut all = self.snapshot(&Need::ALL, Some(namespace), now)?;
            all.cluster_name = Some(cluster_name.to_owned());
            return Ok(all);
        };
        let objects = PodObjects {
            session: self,
            own: namespace,
            snapshot: RefCell::new(Snapshot {
                now,
                cluster_name: Some(cluster_name.to_owned()),
                pods: vec![pod.clone()],
                ..Snapshot::default()
            }),
            asked: RefCell::default(),
            not_in_own: RefCell::default(),
            failed: RefCell::default(),
        };
        objects.around(&pod);
        objects.into_snapshot()
    }
}

/// What was asked for so far.
struct PodObjects<'s> {
    session: &'s Session,
    /// The namespace of the pod.
    own: &'s str,
    snapshot: RefCell<Snapshot>,
    asked: RefCell<BTreeSet<(&'static str, Selection)>>,
    /// The lists that the server does not show in the pod's own namespace.
    not_in_own: RefCell<BTreeSet<&'static str>>,
    /// Why nothing more can be asked.
    failed: RefCell<Option<ClientError>>,
}

/// Which objects of a kind: by namespace, labels and fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Selection {
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
}

impl Selection {
    fn named(namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            fields: Some(format!("metadata.name={name}")),
            ..Self::default()
        }
    }
}

impl PodObjects<'_> {
    /// Asks for everything that is about this pod.
    fn around(&self, pod: &Value) {
        let node = text(pod, "/spec/nodeName");
        self.ask(
            Need::Events,
            Some(EVENTS),
            Selection {
                namespace: Some(self.own.to_owned()),
                fields: Some(format!(
                    "involvedObject.kind=Pod,involvedObject.name={}",
                    name(pod)
                )),
                ..Selection::default()
            },
        );
        let lease = Selection {
            fields: Some(LEASE.to_owned()),
            ..Selection::default()
        };
        self.ask(Need::Leases, Some(LEASES), lease);
        self.node(node);
        let record = Selection::named(Some(self.own), text(pod, "/metadata/uid"));
        self.ask(Need::Records, kind("attachments"), record);
        let settings = self.snapshot.borrow().settings(Vec::new());
        let examined = examine(&pod_facts(pod), &settings, self);
        let attachments = self.attachments();
        for attachment in &attachments {
            match ["/network/namespace", "/network/name"].map(|at| text(attachment, at)) {
                [_, ""] => {}
                // The default network, whichever namespace the controller keeps it in.
                ["", named] => {
                    let which = Selection::named(None, named);
                    self.ask(Need::Networks, kind("networks"), which);
                }
                [namespace, named] => {
                    let _ = self.network(namespace, named);
                    let _ = self.nad(namespace, named);
                }
            }
        }
        self.blocks(&attachments);
        if attachments.is_empty() {
            self.ask(Need::Records, kind("attachments"), Selection::default());
        }
        if !list(pod, "/spec/resourceClaims").is_empty() || is_incomplete(&examined) {
            self.waiting();
        }
    }

    /// Its node with the agent there; all nodes, while none is chosen.
    fn node(&self, node: &str) {
        if node.is_empty() {
            return self.ask(Need::Nodes, kind("nodes"), Selection::default());
        }
        self.ask(Need::Nodes, kind("nodes"), Selection::named(None, node));
        let agents = |fields| Selection {
            labels: Some(AGENTS.to_owned()),
            fields,
            ..Selection::default()
        };
        let pods = self.snapshot.borrow().pods.len();
        let here = agents(Some(format!("spec.nodeName={node}")));
        self.ask(Need::Agents, kind("pods"), here);
        if self.snapshot.borrow().pods.len() == pods {
            // Whether agents run as pods at all.
            self.ask(Need::Agents, kind("pods"), agents(None));
        }
    }

    /// The interfaces that its record has.
    fn attachments(&self) -> Vec<Value> {
        let snapshot = self.snapshot.borrow();
        let records = snapshot.records.iter();
        records
            .flat_map(|record| list(record, "/status/attachments"))
            .cloned()
            .collect()
    }

    /// The blocks of its networks, of all nodes: they may give each other parts.
    fn blocks(&self, attachments: &[Value]) {
        let mut ids: BTreeSet<String> = attachments
            .iter()
            .map(|attachment| text(attachment, "/network/uuid").to_owned())
            .collect();
        for network in &self.snapshot.borrow().networks {
            ids.insert(match text(network, "/spec/uuid") {
                "" => uid(network),
                uuid => uuid.to_owned(),
            });
        }
        ids.remove("");
        if ids.is_empty() {
            return;
        }
        let ids = Vec::from_iter(ids).join(",");
        let labels = Some(format!("{NETWORK_LABEL} in ({ids})"));
        let of_them = Selection {
            labels,
            ..Selection::default()
        };
        self.ask(Need::Blocks, kind("blocks"), of_them);
    }

    fn waiting(&self) {
        let listed = self.session.needed(Need::Waiting, Some(self.own));
        let listed = self.session.wait(listed);
        let mut snapshot = self.snapshot.borrow_mut();
        if let Err(error) = snapshot.take(Need::Waiting, listed) {
            self.failed.borrow_mut().get_or_insert(error);
        }
    }

    /// Asks once. What the server does not have, or does not show, is noted.
    fn ask(&self, need: Need, kind: Option<Kind>, which: Selection) {
        let is_new = self.asked.borrow_mut().insert((word(need), which.clone()));
        let Some(kind) = kind.filter(|_| is_new && self.failed.borrow().is_none()) else {
            return;
        };
        let Selection {
            namespace,
            labels,
            fields,
        } = &which;
        let found = self.session.wait(self.session.listed(
            &kind,
            namespace.as_deref(),
            labels.as_deref(),
            fields.as_deref(),
        ));
        let mut snapshot = self.snapshot.borrow_mut();
        match found {
            Ok(found) => list_of(&mut snapshot, need).extend(found),
            Err(error) if error.is_missing() || error.is_forbidden() => {
                // What all namespaces have together may be hidden, and that of the pod not.
                let in_own = |namespace: &str| namespace == self.own;
                if namespace.as_deref().map_or(!kind.namespaced, in_own) {
                    self.not_in_own.borrow_mut().insert(word(need));
                }
                snapshot.unknown.insert(word(need), error.to_string());
            }
            Err(error) => {
                self.failed.borrow_mut().get_or_insert(error);
            }
        }
    }

    fn into_snapshot(self) -> Result<Snapshot, ClientError> {
        if let Some(error) = self.failed.into_inner() {
            return Err(error);
        }
        let (mut snapshot, hidden) = (self.snapshot.into_inner(), self.not_in_own.into_inner());
        let shown: Vec<&'static str> = snapshot.unknown.keys().copied().collect();
        for list in shown.into_iter().filter(|list| !hidden.contains(list)) {
            snapshot
                .known_in
                .entry(list)
                .or_insert_with(|| self.own.to_owned());
        }
        Ok(snapshot)
    }
}

/// Whether something that the pod names is not there, or cannot be had: it may be of a kind that waits.
fn is_incomplete(examined: &Result<Vec<Examined>, ResolveError>) -> bool {
    examined
        .as_ref()
        .is_ok_and(|all| all.iter().any(|one| one.networks.is_err()))
}

/// What annotations name is asked for when they are read.
impl Objects for PodObjects<'_> {
    fn network(&self, namespace: &str, named: &str) -> Option<Arc<NetworkObject>> {
        let which = Selection::named(Some(namespace), named);
        self.ask(Need::Networks, kind("networks"), which);
        NodeView::from(&self.snapshot.borrow(), "").network(namespace, named)
    }

    fn nad(&self, namespace: &str, named: &str) -> Option<Arc<NadObject>> {
        let which = Selection::named(Some(namespace), named);
        self.ask(Need::Nads, kind("nads"), which);
        NodeView::from(&self.snapshot.borrow(), "").nad(namespace, named)
    }

    fn namespace(&self, named: &str) -> Option<BTreeMap<String, String>> {
        // Who may not list namespaces may see one.
        let mut all = self.snapshot.borrow_mut();
        let is_new = self
            .asked
            .borrow_mut()
            .insert((word(Need::Namespaces), Selection::named(None, named)));
        if is_new && let Some(kind) = kind("namespaces") {
            let found = self.session.wait(self.session.one(&kind, named));
            match found {
                Ok(Some(found)) => all.namespaces.push(found),
                Ok(None) => {}
                Err(error) if error.is_forbidden() => {
                    self.not_in_own.borrow_mut().insert(word(Need::Namespaces));
                    all.unknown
                        .insert(word(Need::Namespaces), error.to_string());
                }
                Err(error) => {
                    self.failed.borrow_mut().get_or_insert(error);
                }
            }
        }
        NodeView::from(&all, "").namespace(named)
    }

    fn on_disk(&self, _: &str) -> Option<String> {
        None
    }

    fn multi_nic(&self, named: &str) -> Option<Arc<MultiNicObject>> {
        let which = Selection::named(None, named);
        self.ask(Need::MultiNics, kind("multinicnetworks"), which);
        let uids: Vec<String> = self.snapshot.borrow().multi_nics.iter().map(uid).collect();
        for uid in uids {
            let blocks = Selection {
                labels: Some(format!("{NETWORK_LABEL}={uid}")),
                ..Selection::default()
            };
            self.ask(Need::Blocks, kind("blocks"), blocks);
        }
        let hosts = Selection::default();
        self.ask(Need::HostInterfaces, kind("hostinterfaces"), hosts);
        NodeView::from(&self.snapshot.borrow(), "").multi_nic(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ChosenServer;
    use crate::client::fetch::tests::{refused, serve, socket};
    use serde_json::json;
    use std::sync::Mutex;

    fn listed(items: Value) -> (u16, Value) {
        (200, json!({"metadata": {}, "items": items}))
    }

    /// What a cluster says of a pod on team-b/blue, and of what else it has nothing may be asked.
    fn answer(path: &str, attached: bool) -> (u16, Value) {
        let has = |part: &str| path.contains(part);
        let blue = json!({"metadata": {"name": "blue", "namespace": "team-b", "uid": "u-blue"},
            "spec": {"subnets": {"a": {"cidr": "10.1.0.0/16"}}, "allowedNamespaces": {"from": "All"}},
            "status": {"phase": "Active", "vni": 4097}});
        match path.split('?').next().unwrap() {
            "/api/v1/namespaces/team-a/pods" if has("metadata.name%3Dweb") => listed(json!([{
                "metadata": {"name": "web", "namespace": "team-a", "uid": "u-web",
                    "annotations": {"plexus.dev/networks": "team-b/blue"}},
                "spec": {"nodeName": "n1"}}])),
            "/api/v1/pods" if has("spec.nodeName%3Dn1") && has("labelSelector") => {
                listed(json!([{"metadata": {"name": "agent", "namespace": "plexus-system"}}]))
            }
            "/api/v1/nodes" if has("metadata.name%3Dn1") => {
                listed(json!([{"metadata": {"name": "n1"}}]))
            }
            "/api/v1/namespaces/team-a/events" if has("involvedObject.name%3Dweb") => {
                listed(json!([]))
            }
            "/apis/coordination.k8s.io/v1/leases" if has("metadata.name") => listed(json!([])),
            "/apis/plexus.dev/v1alpha1/namespaces/team-a/podattachments"
                if has("metadata.name%3Du-web") =>
            {
                let records = match attached {
                    true => json!([{"spec": {"pod": {"uid": "u-web"}}, "status": {"attachments": [
                        {"network": {"name": "cluster-default", "uuid": "u-own"}},
                        {"network": {"namespace": "team-b", "name": "blue", "uuid": "u-blue"}}]}}]),
                    false => json!([]),
                };
                listed(records)
            }
            "/apis/plexus.dev/v1alpha1/podattachments" if !attached => listed(json!([])),
            "/apis/plexus.dev/v1alpha1/namespaces/team-b/networks"
                if has("metadata.name%3Dblue") =>
            {
                listed(json!([blue]))
            }
            "/apis/k8s.cni.cncf.io/v1/namespaces/team-b/network-attachment-definitions"
                if has("metadata.name%3Dblue") =>
            {
                listed(json!([]))
            }
            "/apis/plexus.dev/v1alpha1/networks" if has("metadata.name%3Dcluster-default") => {
                listed(
                    json!([{"metadata": {"name": "cluster-default", "namespace": "plexus-system", "uid": "u-own"}}]),
                )
            }
            "/apis/plexus.dev/v1alpha1/blocks" if has("u-blue") => {
                listed(json!([{"metadata": {"name": "b"}}]))
            }
            "/api/v1/namespaces/team-a" => (200, json!({"metadata": {"name": "team-a"}})),
            path => refused(418, "Teapot", &format!("nobody needs {path}")),
        }
    }

    #[test]
    fn of_a_cluster_only_what_is_about_the_pod_is_asked_for() {
        for attached in [true, false] {
            let socket = socket("about-one-pod");
            let asked: Arc<Mutex<Vec<String>>> = Arc::default();
            let noted = Arc::clone(&asked);
            serve(&socket, move |path| {
                noted.lock().unwrap().push(path.to_owned());
                answer(path, attached)
            });
            let session = Session::open(&ChosenServer::Socket(socket.clone()), None).unwrap();
            let snapshot = session.snapshot_of_pod("team-a", "web", "k8s", 0);
            let _ = std::fs::remove_file(&socket);
            let snapshot = snapshot.unwrap_or_else(|error| panic!("{error}: {asked:#?}"));
            assert_eq!(snapshot.unknown, BTreeMap::new());
            let counts = [
                snapshot.pods.len(),
                snapshot.nodes.len(),
                snapshot.networks.len(),
                snapshot.blocks.len(),
                snapshot.records.len(),
            ];
            let networks = if attached { 2 } else { 1 };
            assert_eq!(counts, [2, 1, networks, 1, usize::from(attached)]);
            let asked = asked.lock().unwrap();
            assert!(asked.len() <= 12, "{asked:#?}");
            let unique: BTreeSet<&String> = asked.iter().collect();
            assert_eq!(unique.len(), asked.len(), "each once: {asked:#?}");
        }
    }

    #[test]
    fn what_is_not_shown_is_noted_and_hides_nothing_else() {
        let socket = socket("about-one-hidden");
        serve(&socket, |path| match path {
            path if path.contains("/namespaces/team-b/networks") => {
                refused(403, "Forbidden", "you may not")
            }
            // What is not there may be meant otherwise, or be of a kind that waits.
            path => match answer(path, true) {
                (418, _) => listed(json!([])),
                known => known,
            },
        });
        let session = Session::open(&ChosenServer::Socket(socket.clone()), None).unwrap();
        let snapshot = session.snapshot_of_pod("team-a", "web", "k8s", 0).unwrap();
        let _ = std::fs::remove_file(&socket);
        assert!(snapshot.hidden("networks", Some("team-b")).is_some());
        assert_eq!(snapshot.hidden("networks", Some("team-a")), None);
        assert_eq!(snapshot.hidden("attachments", Some("team-a")), None);
        assert_eq!(snapshot.blocks.len(), 1, "of the network in the record");
    }
}
