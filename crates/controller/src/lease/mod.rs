//! One replica leads: it holds a Lease in our namespace and says so again and again. Owns the
//! Lease object; what the leader does is not its business.
//!
//! Every write names the version that was read, so of two replicas that try at once one succeeds.
//! A leader that could not renew within [`judge::DEADLINE`] stops; others begin only after
//! [`judge::DURATION`] without a change. Both are measured by each replica's own monotonic clock.

mod judge;

use crate::FIELD_MANAGER;
use judge::{DURATION, PERIOD, Step};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The lease of all controllers of one installation.
const NAME: &str = "plexus-controller";
/// How long one request may take: several fit between a renewal and its deadline.
const REQUEST: Duration = Duration::from_secs(3);

/// Our part in the election.
pub(crate) struct Election {
    api: Api<Lease>,
    namespace: String,
    me: String,
    seen: Option<Seen>,
}

/// The lease as it was last seen, and since when it has been so.
struct Seen {
    version: Option<String>,
    since: Instant,
}

impl Election {
    /// Among the replicas that use this namespace.
    pub(crate) fn new(client: kube::Client, namespace: &str, me: &str) -> Self {
        Election {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            me: me.to_owned(),
            seen: None,
        }
    }

    /// Returns once we lead, with the moment from which that counts.
    pub(crate) async fn acquire(&mut self) -> Instant {
        loop {
            let before = Instant::now();
            match timeout(REQUEST, self.attempt()).await {
                Ok(Ok(true)) => {
                    tracing::info!(identity = %self.me, "leading");
                    return before;
                }
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "cannot look at the lease: trying again"),
                Err(_) => tracing::warn!("no answer about the lease: trying again"),
            }
            sleep(PERIOD).await;
        }
    }

    /// Renews until that fails; says why we no longer lead.
    pub(crate) async fn hold(&mut self, mut renewed: Instant) -> String {
        let mut why = String::from("not renewed in time");
        while judge::still_leads(renewed.elapsed()) {
            let before = Instant::now();
            match timeout(REQUEST, self.attempt()).await {
                Ok(Ok(true)) => renewed = before,
                Ok(Ok(false)) => {
                    why = String::from("another replica holds it");
                    break;
                }
                Ok(Err(error)) => why = format!("not renewed in time: {error}"),
                Err(_) => why = String::from("not renewed in time: no answer"),
            }
            sleep(PERIOD).await;
        }
        format!("the lease {}/{NAME} is lost: {why}", self.namespace)
    }

    /// Gives the lease back, so that a successor need not wait. Only when nothing acts any more.
    pub(crate) async fn release(&mut self) {
        let give = async {
            let Ok(Some(lease)) = self.api.get_opt(NAME).await else {
                return;
            };
            let spec = lease.spec.unwrap_or_default();
            if spec.holder_identity.as_deref() == Some(self.me.as_str()) {
                let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
                let _ = self.write(lease.metadata.resource_version, spec).await;
            }
        };
        let _ = timeout(REQUEST, give).await;
    }

    /// Looks, and takes or renews the lease if that is our right; whether we hold it now.
    async fn attempt(&mut self) -> kube::Result<bool> {
        let lease = self.api.get_opt(NAME).await?;
        let version = lease
            .as_ref()
            .and_then(|lease| lease.metadata.resource_version.clone());
        let since = match &self.seen {
            Some(seen) if seen.version == version => seen.since,
            _ => Instant::now(),
        };
        self.seen = Some(Seen {
            version: version.clone(),
            since,
        });
        let spec = lease.and_then(|lease| lease.spec);
        let written = match judge::judge(&self.me, spec.as_ref(), since.elapsed()) {
            Step::Wait => return Ok(false),
            Step::Create if version.is_none() => self.create().await,
            Step::Create | Step::Take => self.write(version, self.taken(spec.as_ref())).await,
        };
        match written {
            Ok(()) => Ok(true),
            // Somebody was faster; the next look shows who.
            Err(kube::Error::Api(status)) if status.code == 409 => self.still_ours().await,
            Err(error) => Err(error),
        }
    }

    async fn still_ours(&self) -> kube::Result<bool> {
        let spec = self.api.get_opt(NAME).await?.and_then(|lease| lease.spec);
        Ok(spec.and_then(|spec| spec.holder_identity).as_deref() == Some(self.me.as_str()))
    }

    async fn create(&self) -> kube::Result<()> {
        let now = MicroTime(Timestamp::now());
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(NAME.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.me.clone()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                acquire_time: Some(now.clone()),
                renew_time: Some(now),
                lease_transitions: Some(0),
                ..LeaseSpec::default()
            }),
        };
        self.api.create(&params(), &lease).await.map(|_| ())
    }

    /// The lease in our name; the number of changes of leader counts on.
    fn taken(&self, before: Option<&LeaseSpec>) -> serde_json::Value {
        let now = MicroTime(Timestamp::now());
        let holder = before.and_then(|spec| spec.holder_identity.as_deref());
        let mut spec = json!({
            "holderIdentity": self.me,
            "leaseDurationSeconds": DURATION.as_secs(),
            "renewTime": now,
        });
        if holder != Some(self.me.as_str()) {
            let changes = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
            spec["acquireTime"] = json!(now);
            spec["leaseTransitions"] = json!(changes.saturating_add(1));
        }
        spec
    }

    async fn write(&self, version: Option<String>, spec: serde_json::Value) -> kube::Result<()> {
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec});
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        self.api
            .patch(NAME, &params, &Patch::Merge(patch))
            .await
            .map(|_| ())
    }
}

fn params() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PostParams::default()
    }
}
