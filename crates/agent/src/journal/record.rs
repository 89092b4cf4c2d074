//! One record: everything that an ADD call decided, so that DEL, CHECK and the next agent need
//! nothing else.

use super::JournalError;
use plexus_api::cni::Outcome;
use plexus_core::attachment::Assigned;
use plexus_core::plan::{NodePlan, PodPlan};
use plexus_core::resolve::Reference;
use plexus_types::{ContainerId, IfName, NetnsCookie, NetworkName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Where a record is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The ADD has begun.
    Intent,
    /// The ADD was completed.
    Done,
    /// A DEL, or the undoing of an ADD, has begun.
    Deleting,
}

impl State {
    const ALL: [State; 3] = [State::Intent, State::Done, State::Deleting];

    /// As the journal writes it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Intent => "intent",
            State::Done => "done",
            State::Deleting => "deleting",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// A record as the journal has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    /// What was decided.
    pub record: Record,
    /// Where it is in its life.
    pub state: State,
    /// The answer that was given, once done: an [`Outcome`] as JSON.
    pub result: Option<String>,
}

/// What one ADD call decided.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    /// CNI_CONTAINERID.
    pub container: ContainerId,
    /// CNI_IFNAME.
    pub ifname: IfName,
    /// `name` of the configuration.
    pub network: NetworkName,
    /// K8S_POD_UID, if the runtime told it.
    pub pod_uid: Option<String>,
    /// The boot in which it was made.
    pub boot: String,
    /// The namespace's cookie.
    pub cookie: NetnsCookie,
    /// CNI_NETNS.
    pub netns: String,
    /// The rest.
    pub body: Body,
}

/// The part of a record that only code reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Body {
    /// `K8S_POD_NAMESPACE/K8S_POD_NAME`, if told.
    pub pod: Option<String>,
    /// CNI_ARGS, for delegates.
    pub args: String,
    /// The configuration as it came: a repeated ADD must bring the same.
    pub config: String,
    /// Made from marks in the kernel after the journal was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// How many attachments the call makes.
    pub total: usize,
    /// Attachments that we make ourselves.
    pub natives: Vec<NativeRecord>,
    /// Their links.
    pub plan: PodPlan,
    /// Which networks keep something on the node.
    pub node: Vec<(NetworkName, NodePlan)>,
    /// Attachments that plugins make.
    pub delegates: Vec<DelegateRecord>,
    /// Where each attachment came from, by its index; empty for an inline configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// The pod's first interface is among them: we, and no delegating plugin, say what it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standalone: bool,
    /// What the cluster calls the pod: the API's UID where the runtime's is another (static pods).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_uid: Option<String>,
}

/// An attachment that we make ourselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NativeRecord {
    /// Which of the container's references.
    pub index: usize,
    /// Its network.
    pub network: NetworkName,
    /// Its interface.
    pub ifname: IfName,
    /// Its addresses, with gateways, routes and DNS.
    pub assigned: Assigned,
    /// The journal's pool that they are from.
    pub pool: Option<String>,
    /// Or host-local's directory.
    pub host_local: Option<HostLocalLease>,
}

/// Addresses in host-local's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostLocalLease {
    /// The network's directory.
    pub directory: PathBuf,
    /// The interface that the files name.
    pub ifname: IfName,
}

/// An attachment that plugins make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DelegateRecord {
    /// Which of the container's references.
    pub index: usize,
    /// Its network.
    pub network: NetworkName,
    /// Its interface.
    pub ifname: IfName,
    /// The version written in the configuration.
    pub version: String,
    /// The plugins' configurations, exactly as they were for ADD.
    pub plugins: Vec<Map<String, Value>>,
    /// What the runtime added, exactly as it was for ADD.
    pub runtime: Map<String, Value>,
    /// How many plugins may have begun: each of them gets its DEL.
    pub begun: usize,
    /// The results so far, one a plugin.
    pub results: Vec<Outcome>,
}

impl NativeRecord {
    /// Its addresses alone.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.assigned.ips.iter().map(|ip| ip.address.addr())
    }
}

impl Record {
    /// Whether something of it is still there after a reboot, and so needs its DEL then.
    pub(crate) fn outlives_reboot(&self) -> bool {
        !self.body.delegates.is_empty()
    }

    /// The addresses that the journal's pools must not give to anyone else, with their owners.
    pub(crate) fn pool_addresses(&self) -> Vec<(&str, IpAddr, String)> {
        let mut all = Vec::new();
        for native in &self.body.natives {
            let Some(pool) = &native.pool else { continue };
            let owner = owner_of(&self.container, &self.ifname, &native.ifname);
            all.extend(
                native
                    .addresses()
                    .map(|address| (pool.as_str(), address, owner.clone())),
            );
        }
        all
    }

    pub(super) fn body_json(&self) -> String {
        serde_json::to_string(&self.body).unwrap_or_default()
    }
}

/// Who an address belongs to: one interface of one call for one container. Two calls may want the
/// same interface name; only one of them gets it, and the other must not free its addresses.
pub(crate) fn owner_of(container: &ContainerId, cni_ifname: &IfName, ifname: &IfName) -> String {
    format!("{container}/{cni_ifname}/{ifname}")
}

/// A row as SQLite has it.
pub(super) struct Raw {
    pub(super) container: String,
    pub(super) ifname: String,
    pub(super) network: String,
    pub(super) pod_uid: Option<String>,
    pub(super) state: String,
    pub(super) boot: String,
    pub(super) cookie: String,
    pub(super) netns: String,
    pub(super) body: String,
    pub(super) result: Option<String>,
}

impl Raw {
    pub(super) fn parse(self, path: &Path) -> Result<Stored, JournalError> {
        let key = format!("{}/{}", self.container, self.ifname);
        self.try_parse()
            .map_err(|problem| JournalError::Unreadable {
                path: path.to_owned(),
                key,
                problem,
            })
    }

    fn try_parse(self) -> Result<Stored, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let record = Record {
            container: self.container.parse().map_err(|e| text(&e))?,
            ifname: self.ifname.parse().map_err(|e| text(&e))?,
            network: self.network.parse().map_err(|e| text(&e))?,
            pod_uid: self.pod_uid,
            boot: self.boot,
            cookie: NetnsCookie(self.cookie.parse().map_err(|e| text(&e))?),
            netns: self.netns,
            body: serde_json::from_str(&self.body).map_err(|e| text(&e))?,
        };
        let state = State::parse(&self.state).ok_or_else(|| {
            format!(
                "state {:?} is not one of intent, done, deleting",
                self.state
            )
        })?;
        Ok(Stored {
            record,
            state,
            result: self.result,
        })
    }
}
