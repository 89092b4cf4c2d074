//! What can be asked with GET: health, readiness, metrics, attachments; and what Contrail's agent
//! answers about a pod ([`contrail`]). From memory and the journal alone; changes nothing.

mod contrail;

use crate::agent::Agent;
use crate::background::progress::{Progress, Stuck};
use crate::cluster::Cluster;
use crate::failure;
use crate::journal::{AttachmentRecord, BackendRecord, State, Stored};
use crate::report::health::health;
use crate::report::metrics::{CONTENT_TYPE, Moment};
use crate::report::view::{View, views};
use crate::serve::http::Response;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::Ordering::SeqCst;

impl Agent {
    pub(crate) fn query(&self, path: &str, query: &str) -> Response {
        match path {
            "/healthz" => health(&self.all_stuck()),
            "/readyz" => self.readiness(),
            "/metrics" => Response {
                content_type: CONTENT_TYPE,
                ..Response::text(200, self.metrics.render(&self.moment()))
            },
            "/attachments" => self.attachments(query),
            _ => self.contrail(path).unwrap_or_else(|| {
                Response::text(
                    404,
                    "no such path; there are /attachments, /healthz, /metrics, /readyz, /vm/, /vm-cfg/\n",
                )
            }),
        }
    }

    fn readiness(&self) -> Response {
        let write_problem = match &self.journal {
            Ok(journal) => journal.write_problem(),
            Err(error) => Some(error.clone()),
        };
        let restoring = || "restoring the node's networks".to_owned();
        let problem = write_problem
            .map(|error| error.to_string())
            .or_else(|| (!self.ready.load(SeqCst)).then(restoring))
            .or_else(|| Some(self.first_delegate().err()?.to_string()));
        let (status, mut text) = match problem {
            Some(problem) => (503, format!("not ready: {problem}\n")),
            None => (200, "ready\n".to_owned()),
        };
        let unreadable = self.journal.as_ref().map(|journal| journal.quarantined());
        for (key, problem) in unreadable.unwrap_or_default() {
            let _ = writeln!(
                text,
                "warning: the journal's rows of {key} cannot be read, and are left alone until a DEL: {problem}"
            );
        }
        let networks = self.journal.as_ref().map(|j| j.quarantined_networks());
        for (name, problem) in networks.unwrap_or_default() {
            let _ = writeln!(
                text,
                "warning: the journal's row of network {name} cannot be read, and is left alone until an ADD: {problem}"
            );
        }
        if let Some(file) = self.conflist.as_ref().and_then(|c| c.preceded_by()) {
            let _ = writeln!(
                text,
                "warning: the runtime uses {file}, which sorts before {}: new pods get no interface from Plexus",
                crate::host::conflist::NAME
            );
        }
        for (feature, reason) in self.features.iter() {
            if let Some(reason) = reason {
                let _ = writeln!(text, "kernel feature {feature} is missing: {reason}");
            }
        }
        Response::text(status, text)
    }

    /// What is known of all background work: of threads, and of the API's side.
    fn progress(&self) -> impl Iterator<Item = &Progress> {
        let cluster = self.cluster.get().map(Cluster::progress);
        self.tasks
            .all()
            .into_iter()
            .chain(cluster.into_iter().flatten())
    }

    fn all_stuck(&self) -> Vec<Stuck> {
        self.progress().filter_map(Progress::stuck).collect()
    }

    fn moment(&self) -> Moment {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let journal = self.options.journal();
        let mut log = journal.as_os_str().to_owned();
        log.push("-wal");
        let (running, waiting) = self.admission.operations();
        Moment {
            adds: self.admission.adds(),
            running,
            waiting,
            pools: self.addresses.usage(),
            journal: (size(&journal), size(Path::new(&log))),
            delegates_running: self.runner.running(),
            delegates: self.runner.runs(),
            ready: self.ready.load(SeqCst),
            tasks: self.progress().map(Progress::counts).collect(),
        }
    }

    fn attachments(&self, query: &str) -> Response {
        let pod = match query.split_once('=') {
            _ if query.is_empty() => None,
            Some(("pod", pod)) if decoded(pod).contains('/') => Some(decoded(pod)),
            _ => {
                let text = format!("{query:?} is not understood: use ?pod=namespace/name\n");
                return Response::text(400, text);
            }
        };
        let journal = self.journal();
        let stored = match journal.and_then(|j| j.all().map_err(|e| failure::journal(&e))) {
            Ok(stored) => stored,
            Err(error) => return Response::text(503, format!("{error}\n")),
        };
        let wanted = |one: &&Stored| pod.is_none() || pod == one.record.details.pod;
        let mut all: Vec<Value> = stored.iter().filter(wanted).flat_map(describe).collect();
        let unreadable = self.journal.as_ref().map(|journal| journal.quarantined());
        for (key, problem) in unreadable.unwrap_or_default() {
            if let (None, Some((container, interface))) = (&pod, key.rsplit_once('/')) {
                all.push(json!({"container": container, "interface": interface,
                    "state": "unreadable", "problem": problem}));
            }
        }
        Response::json(200, format!("{:#}\n", Value::Array(all)))
    }
}

/// `%2F` is a slash; nothing else in a name needs this.
fn decoded(text: &str) -> String {
    text.replace("%2F", "/").replace("%2f", "/")
}

fn describe(stored: &Stored) -> Vec<Value> {
    let record = &stored.record;
    let state = match stored.state {
        State::Intent => "attaching",
        State::Done => "attached",
        State::Deleting => "detaching",
    };
    let last = record.attachments.iter().map(|one| one.reference).max();
    let total = last.map_or(0, |last| last + 1);
    let done = views(stored);
    let one = |attachment: &AttachmentRecord| {
        let (ips, how): (Vec<String>, &str) = match &attachment.backend {
            BackendRecord::Native(native) => {
                let ips = native.addresses.ips.iter();
                (ips.map(|ip| ip.address.to_string()).collect(), "native")
            }
            BackendRecord::Plugins(plugins) => {
                let ips = plugins.results.last().into_iter().flat_map(|r| &r.ips);
                (ips.map(|ip| ip.address.to_string()).collect(), "delegate")
            }
        };
        let mut value = json!({
            "container": record.container, "pod": record.details.pod, "netns": record.netns,
            "index": attachment.reference, "ordinal": attachment.ordinal, "total": total,
            "network": attachment.network, "interface": attachment.ifname,
            "ips": ips, "how": how, "state": state,
        });
        let mut done = done.iter();
        if let Some(view) = done.find(|view| view.ifname == attachment.ifname.as_str()) {
            complete(&mut value, view);
        }
        value
    };
    record.attachments.iter().map(one).collect()
}

/// What is known of an attachment once it is there. Index and total are those among the pod's
/// references, which plugin mode alone does not know.
fn complete(value: &mut Value, view: &View) {
    value["id"] = json!(view.id);
    value["mac"] = json!(view.mac);
    value["gateways"] = json!(view.gateways);
    let reference = &view.reference;
    if !reference.source.is_empty() || !reference.uuid.is_empty() {
        value["index"] = json!(reference.index);
        value["total"] = json!(reference.total);
        value["namespace"] = json!(reference.namespace);
        value["uuid"] = json!(reference.uuid);
    }
}
