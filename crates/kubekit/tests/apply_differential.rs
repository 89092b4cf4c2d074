//! Server-side apply on two servers: the same random sequences of writes give the same objects, owners and
//! refusals. One is a real API server, the other the embedded one; or, to see that the test itself is right,
//! both are the same.
//!
//! | variable | what |
//! |---|---|
//! | `PLEXUS_TEST_KUBECONFIG` | one server, the real one (else that of the lab) |
//! | `PLEXUS_OTHER_KUBECONFIG` | the other, the embedded one (else the same one again, and ConfigMaps only) |
//! | `PLEXUS_TEST_SEQUENCES` | how many per kind of object, default 20 |
//! | `PLEXUS_TEST_SEED` | the first seed, default 1 |
//!
//! A sequence ends at its first difference, which is printed with its seed; a difference that is not listed
//! here fails the test:
//! - a map that somebody owns as such, that may not be null, and in which an apply leaves nothing: the real
//!   server makes it null and then refuses the whole (422, `must be of type object: "null"`), the embedded one
//!   keeps it empty. About one sequence in forty of a kind with a schema ends so.
//!
//! Of Nodes and Pods only what the sequences write is compared. Known to differ, and not written by them: `false`
//! and other zero values of core kinds, which a real server does not store; defaults of core kinds that follow
//! from other fields (a Node's `allocatable` from its `capacity`, `podIP` from `podIPs`). The embedded server checks
//! the types of core kinds and what they require, and nothing further: neither what may not change of a Pod or a Node
//! once it is there, nor of a ConfigMap that is `immutable`, nor words of which there are only some
//! (`restartPolicy`), nor names that are there twice. And who owns `spec` and `status` as such is not compared: core
//! kinds of a real server have both before anybody writes them.
//!
//! Of refusals other than conflicts only code and reason are compared: rules between fields are worded by
//! whoever evaluates them. Nothing but plain kube-rs calls is used. Our controller must not run on either: it writes
//! to Networks too, when it likes.
#![cfg(feature = "e2e")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on ends, and says how it went"
)]

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Error};
use plexus_kubekit::apply_diff::{CORE, SUBJECTS, Sequence, Subject, Write, WriteKind, comparable};
use serde_json::{Value, json};
use std::path::PathBuf;

#[tokio::test]
async fn two_servers_agree() {
    let one = Server::new("PLEXUS_TEST_KUBECONFIG").await;
    let other = Server::new("PLEXUS_OTHER_KUBECONFIG").await;
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        value.map_or(default, |value| value.parse().unwrap())
    };
    let two = std::env::var_os("PLEXUS_OTHER_KUBECONFIG").is_some();
    let all: Vec<Subject> = SUBJECTS.into_iter().chain(CORE).collect();
    let subjects = if two { &all[..] } else { &all[..1] };
    let first = number("PLEXUS_TEST_SEED", 1);
    let (mut writes, mut refused) = (0, 0);
    let (mut listed, mut differences) = (0, Vec::new());
    for seed in first..first + number("PLEXUS_TEST_SEQUENCES", 20) {
        for &subject in subjects {
            let sequence = Sequence::new(seed, subject);
            let (here, there) = (one.target(&sequence).await, other.target(&sequence).await);
            for (step, write) in sequence.writes.iter().enumerate() {
                writes += 1;
                let (left, right) = (here.write(write).await, there.write(write).await);
                refused += usize::from(left.get("code").is_some());
                if agree(&left, &right) {
                    continue;
                }
                if two && emptied(&left, &right) {
                    listed += 1;
                } else {
                    differences.push(format!(
                        "{subject:?}, seed {seed}, step {step}, {} {:?} {}\n  one:   {left}\n  other: {right}",
                        write.manager, write.kind, write.body
                    ));
                }
                break;
            }
            here.remove().await;
            there.remove().await;
        }
    }
    one.remove().await;
    other.remove().await;
    println!(
        "{writes} writes, {refused} of them refused, {listed} listed and {} other differences",
        differences.len()
    );
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(refused > 0 && refused < writes, "conflicts are part of it");
}

/// Both did the same, or refused for the same reason.
fn agree(one: &Value, other: &Value) -> bool {
    let refusal = |answer: &Value| match answer.get("code").and_then(Value::as_u64) {
        Some(409) => answer.clone(),
        Some(_) => json!([answer["code"], answer["reason"]]),
        None => Value::Null,
    };
    match (refusal(one), refusal(other)) {
        (Value::Null, Value::Null) => one == other,
        (one, other) => one == other,
    }
}

/// One refused what was left of a map, the other kept it.
fn emptied(refused: &Value, done: &Value) -> bool {
    let causes = refused["causes"].as_array();
    let null = |cause: &Value| {
        let cause = cause.as_str().unwrap_or_default();
        cause.ends_with(": \"null\"") || cause.contains("some validation rules were not checked")
    };
    refused["code"] == 422
        && done.get("code").is_none()
        && causes.is_some_and(|causes| !causes.is_empty() && causes.iter().all(null))
}

/// A server, and a namespace there.
struct Server {
    client: Client,
    namespace: String,
}

/// One object.
struct TestObject {
    subject: Subject,
    api: Api<DynamicObject>,
    version: &'static str,
    kind: &'static str,
    name: String,
}

impl Server {
    async fn new(variable: &str) -> Self {
        let named = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let file = named(variable)
            .or_else(|| named("PLEXUS_TEST_KUBECONFIG"))
            .or_else(|| named("PLEXUS_KUBE_STATE").map(|state| state.join("kubeconfig")))
            .expect("name kubeconfigs in PLEXUS_TEST_KUBECONFIG and PLEXUS_OTHER_KUBECONFIG");
        let kubeconfig = Kubeconfig::read_from(file).unwrap();
        let config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        let namespace = format!(
            "{}-{}",
            variable.to_ascii_lowercase().replace('_', "-"),
            std::process::id()
        );
        let body = json!({"metadata": {"name": namespace}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let body = serde_json::from_value(body).unwrap();
        namespaces
            .create(&PostParams::default(), &body)
            .await
            .unwrap();
        Self { client, namespace }
    }

    async fn target(&self, sequence: &Sequence) -> TestObject {
        let (group, version, kind, plural) = match sequence.subject {
            Subject::ConfigMap => ("", "v1", "ConfigMap", "configmaps"),
            Subject::Node | Subject::NodeStatus => ("", "v1", "Node", "nodes"),
            Subject::Pod => ("", "v1", "Pod", "pods"),
            _ => ("plexus.dev", "v1alpha1", "Network", "networks"),
        };
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        let of_cluster = kind == "Node";
        let target = TestObject {
            subject: sequence.subject,
            api: match of_cluster {
                true => Api::all_with(self.client.clone(), &resource),
                false => Api::namespaced_with(self.client.clone(), &self.namespace, &resource),
            },
            version: if group.is_empty() {
                "v1"
            } else {
                "plexus.dev/v1alpha1"
            },
            kind,
            name: match of_cluster {
                true => format!("{}-s{}", self.namespace, sequence.seed),
                false => format!("s{}", sequence.seed),
            },
        };
        if let Some(base) = target.subject.base() {
            let base = serde_json::from_value(target.object(&base)).unwrap();
            target
                .api
                .create(&PostParams::default(), &base)
                .await
                .unwrap();
        }
        target
    }

    async fn remove(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let _ = namespaces
            .delete(&self.namespace, &DeleteParams::background())
            .await;
    }
}

impl TestObject {
    /// What came of it: the part of the object that counts, or the refusal.
    async fn write(&self, write: &Write) -> Value {
        let by = PatchParams {
            field_manager: Some(write.manager.to_owned()),
            ..PatchParams::default()
        };
        let answer = match write.kind {
            WriteKind::Apply => self.apply(write, false).await,
            WriteKind::Force => self.apply(write, true).await,
            WriteKind::Merge => self.patch(&by, &Patch::Merge(&write.body)).await,
            WriteKind::Strategic => self.patch(&by, &Patch::Strategic(&write.body)).await,
            WriteKind::Replace => self.replace(write).await,
        };
        match answer {
            Ok(object) => comparable(self.subject, &serde_json::to_value(object).unwrap()),
            Err(Error::Api(status)) => {
                let causes = status.details.map(|details| details.causes);
                let mut fields: Vec<String> = causes
                    .into_iter()
                    .flatten()
                    .map(|cause| format!("{}: {} {}", cause.field, cause.reason, cause.message))
                    .collect();
                fields.sort();
                json!({"code": status.code, "reason": status.reason, "causes": fields})
            }
            Err(other) => panic!("{}: {other}", self.name),
        }
    }

    async fn apply(&self, write: &Write, force: bool) -> Result<DynamicObject, Error> {
        let by = PatchParams {
            force,
            ..PatchParams::apply(write.manager)
        };
        let body = self.object(&write.body);
        self.patch(&by, &Patch::Apply(&body)).await
    }

    async fn patch(&self, by: &PatchParams, patch: &Patch<&Value>) -> Result<DynamicObject, Error> {
        match self.subject.is_status() {
            true => self.api.patch_status(&self.name, by, patch).await,
            false => self.api.patch(&self.name, by, patch).await,
        }
    }

    /// PUT, or POST if there is none yet. A cluster's controllers may write between reading and writing.
    async fn replace(&self, write: &Write) -> Result<DynamicObject, Error> {
        loop {
            match self.replace_once(write).await {
                Err(Error::Api(status)) if status.code == 409 => {}
                done => return done,
            }
        }
    }

    async fn replace_once(&self, write: &Write) -> Result<DynamicObject, Error> {
        let by = PostParams {
            field_manager: Some(write.manager.to_owned()),
            ..PostParams::default()
        };
        let Some(live) = self.api.get_opt(&self.name).await? else {
            let new = serde_json::from_value(self.object(&write.body)).unwrap();
            return self.api.create(&by, &new).await;
        };
        let mut new = serde_json::to_value(live).unwrap();
        for (part, value) in write.body.as_object().into_iter().flatten() {
            if part == "metadata" {
                for name in ["labels", "annotations", "finalizers"] {
                    if self.subject != Subject::Node || name != "annotations" {
                        new["metadata"][name] = value[name].clone();
                    }
                }
            } else if self.subject == Subject::Node {
                // The rest of its spec is others'.
                new["spec"]["unschedulable"] = value["unschedulable"].clone();
            } else {
                new[part] = value.clone();
            }
        }
        let new = serde_json::from_value(new).unwrap();
        match self.subject.is_status() {
            true => self.api.replace_status(&self.name, &by, &new).await,
            false => self.api.replace(&self.name, &by, &new).await,
        }
    }

    fn object(&self, body: &Value) -> Value {
        let mut object = body.clone();
        object["apiVersion"] = self.version.into();
        object["kind"] = self.kind.into();
        object["metadata"]["name"] = self.name.as_str().into();
        object
    }

    /// Finalizers keep nothing.
    async fn remove(&self) {
        let none = json!({"metadata": {"finalizers": null}});
        let by = PatchParams::default();
        let _ = self.api.patch(&self.name, &by, &Patch::Merge(&none)).await;
        let _ = self.api.delete(&self.name, &DeleteParams::default()).await;
    }
}
