//! One replica leads: it holds a Lease in our namespace and says so again and again. Owns the
//! Lease object; what the leader does is not its business.
//!
//! Every write names the version that was read, so of two replicas that try at once one succeeds.
//! A leader that could not renew within [`decide::RENEW_DEADLINE`] stops; others begin only after
//! [`decide::LEASE_DURATION`] without a change. Both are measured by each replica's own monotonic clock.

mod decide;

use crate::FIELD_MANAGER;
use decide::{LEASE_DURATION, RETRY_PERIOD, Step};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// The lease of all controllers of one installation.
const LEASE_NAME: &str = "plexus-controller";
/// How long one request may take: several fit between a renewal and its deadline.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

/// Our part in the election.
pub(crate) struct Election {
    api: Api<Lease>,
    namespace: String,
    identity: String,
    observed: Option<ObservedLease>,
}

/// The version of the Lease that this replica read last, and since when it has not changed.
struct ObservedLease {
    version: Option<String>,
    since: Instant,
}

impl Election {
    /// Among the replicas that use this namespace.
    pub(crate) fn new(client: kube::Client, namespace: &str, identity: &str) -> Self {
        Election {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            identity: identity.to_owned(),
            observed: None,
        }
    }

    /// Returns once we lead, with the moment from which that counts.
    pub(crate) async fn acquire(&mut self) -> Instant {
        loop {
            let before = Instant::now();
            match timeout(REQUEST_TIMEOUT, self.attempt()).await {
                Ok(Ok(true)) => {
                    tracing::info!(identity = %self.identity, "leading");
                    return before;
                }
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "cannot look at the lease: trying again"),
                Err(_) => tracing::warn!("no answer about the lease: trying again"),
            }
            sleep(RETRY_PERIOD).await;
        }
    }

    /// Renews until that fails; says why we no longer lead.
    pub(crate) async fn hold(&mut self, mut renewed: Instant) -> String {
        let mut why = String::from("not renewed in time");
        while decide::still_leads(renewed.elapsed()) {
            let before = Instant::now();
            match timeout(REQUEST_TIMEOUT, self.attempt()).await {
                Ok(Ok(true)) => renewed = before,
                Ok(Ok(false)) => {
                    why = String::from("another replica holds it");
                    break;
                }
                Ok(Err(error)) => why = format!("not renewed in time: {error}"),
                Err(_) => why = String::from("not renewed in time: no answer"),
            }
            sleep(RETRY_PERIOD).await;
        }
        format!("the lease {}/{LEASE_NAME} is lost: {why}", self.namespace)
    }

    /// Gives the lease back, so that a successor need not wait. Only when nothing acts any more.
    pub(crate) async fn release(&mut self) {
        let give = async {
            let Ok(Some(lease)) = self.api.get_opt(LEASE_NAME).await else {
                return;
            };
            let spec = lease.spec.unwrap_or_default();
            if spec.holder_identity.as_deref() == Some(self.identity.as_str()) {
                let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
                let _ = self.write(lease.metadata.resource_version, spec).await;
            }
        };
        let _ = timeout(REQUEST_TIMEOUT, give).await;
    }

    /// Looks, and takes or renews the lease if that is our right; whether we hold it now.
    async fn attempt(&mut self) -> kube::Result<bool> {
        let lease = self.api.get_opt(LEASE_NAME).await?;
        let version = lease
            .as_ref()
            .and_then(|lease| lease.metadata.resource_version.clone());
        let since = match &self.observed {
            Some(observed) if observed.version == version => observed.since,
            _ => Instant::now(),
        };
        self.observed = Some(ObservedLease {
            version: version.clone(),
            since,
        });
        let spec = lease.and_then(|lease| lease.spec);
        let written = match decide::next_step(&self.identity, spec.as_ref(), since.elapsed()) {
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
        let spec = self
            .api
            .get_opt(LEASE_NAME)
            .await?
            .and_then(|lease| lease.spec);
        Ok(spec.and_then(|spec| spec.holder_identity).as_deref() == Some(self.identity.as_str()))
    }

    async fn create(&self) -> kube::Result<()> {
        let now = MicroTime(Timestamp::now());
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(LEASE_NAME.to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
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
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_DURATION.as_secs(),
            "renewTime": now,
        });
        if holder != Some(self.identity.as_str()) {
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
            .patch(LEASE_NAME, &params, &Patch::Merge(patch))
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
