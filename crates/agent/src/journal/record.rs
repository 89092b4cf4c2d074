//! The journal's own records: a request, and each of its attachments. They have everything that DEL, CHECK and the
//! next agent need.

use super::JournalError;
use super::row::{
    AssignedRow, AwaitedLinkRow, HostPortRow, LeaseRow, LinkRow, List, Maybe, NodePlanRow,
    OutsideCallRow, ReferenceRow,
};
use plexus_api::cni::{Executable, Outcome};
use plexus_core::attach::{
    Attachment, AwaitedLink, Backend, Lease, OutsideCall, PluginRun, Preparation,
};
use plexus_core::attachment::Assigned;
use plexus_core::plan::{HostPort, Link, NodePlan, PodPlan};
use plexus_core::resolve::Reference;
use plexus_types::{ContainerId, IfName, NetnsCookie, NetworkName};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The version of the rows that this agent writes and reads.
pub(super) const VERSION: i64 = 1;

/// What identifies a record: CNI_CONTAINERID and CNI_IFNAME.
pub(crate) type Key = (ContainerId, IfName);

/// Where a request is in its life.
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

/// A request as the journal has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    /// What was decided.
    pub record: Record,
    /// Where it is in its life.
    pub state: State,
    /// The answer that was given, once done: an [`Outcome`] as JSON.
    pub result: Option<String>,
}

/// What was decided for one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub container: ContainerId,
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
    /// What only code reads.
    pub details: Details,
    /// In order: by reference, then by ordinal.
    pub attachments: Vec<AttachmentRecord>,
}

/// What only code reads of a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Details {
    /// `K8S_POD_NAMESPACE/K8S_POD_NAME`, if told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// CNI_ARGS, for plugins.
    pub args: String,
    /// The configuration as it came: a repeated ADD must bring the same.
    pub config: String,
    /// Made from marks in the kernel after the journal was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// The link group of all its links.
    pub group: u32,
    /// Ports of the node that lead to the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "List::<HostPortRow>")]
    pub host_ports: Vec<HostPort>,
    /// It is for all interfaces of the sandbox: the answer has the first alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_interfaces: bool,
    /// The cluster listed the networks of the pod: we, and no delegating plugin, say what it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub standalone: bool,
    /// What the cluster calls the pod: the API's UID where the runtime's is another (static pods).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_uid: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttachmentRecord {
    /// Which of the request's references it comes from.
    #[serde(skip)]
    pub reference: usize,
    /// Which of that reference's interfaces it is.
    #[serde(skip)]
    pub ordinal: u32,
    pub network: NetworkName,
    pub ifname: IfName,
    /// How the cluster knows the reference; none for an inline configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<ReferenceRow>")]
    pub origin: Option<Reference>,
    /// Who makes it.
    pub backend: BackendRecord,
}

/// Who makes an attachment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum BackendRecord {
    /// We do.
    Native(Box<NativeRecord>),
    /// Plugins do.
    Plugins(PluginsRecord),
}

/// What we make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NativeRecord {
    pub provider: String,
    /// Its addresses, with gateways, routes and DNS.
    #[serde(with = "AssignedRow")]
    pub addresses: Assigned,
    /// Where they are taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<LeaseRow>")]
    pub lease: Option<Lease>,
    /// What had to happen before its link was planned, in order; the last may only have begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preparations: Vec<PreparationRecord>,
    /// Its link, once it is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<LinkRow>")]
    pub link: Option<Link>,
    /// What its network needs on the node.
    #[serde(default, skip_serializing_if = "NodePlan::is_empty")]
    #[serde(with = "NodePlanRow")]
    pub node: NodePlan,
    /// What it answers, but for what only the kernel knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// A step that came before a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum PreparationRecord {
    /// The IPAM plugin was executed.
    Ipam(PluginsRecord),
    /// A link of the node was waited for.
    Wait(#[serde(with = "AwaitedLinkRow")] AwaitedLink),
    /// Somebody outside was asked.
    Call {
        /// Who, and for what.
        #[serde(with = "OutsideCallRow")]
        call: OutsideCall,
        /// The answer, once it came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Value>,
    },
}

/// What plugins make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginsRecord {
    /// The version written in the configuration.
    pub version: String,
    /// The plugins' configurations, exactly as they were for ADD.
    pub plugins: Vec<Map<String, Value>>,
    /// Only the IPAM plugin that the configuration names is executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipam: bool,
    /// What the runtime added, exactly as it was for ADD.
    pub runtime: Map<String, Value>,
    /// How many plugins may have begun: each of them gets its DEL.
    pub begun: usize,
    /// The results so far, one a plugin.
    pub results: Vec<Outcome>,
}

impl AttachmentRecord {
    /// What the journal keeps of an attachment on its way.
    pub(crate) fn of(attachment: &Attachment) -> Self {
        let backend = match &attachment.backend {
            Backend::Native(native) => {
                let configured = &native.spec.native;
                let mut addresses = native.addresses.clone();
                // What the record tells others is what the answer says.
                addresses.dns = plexus_core::plan::dns(configured, &addresses.dns).clone();
                BackendRecord::Native(Box::new(NativeRecord {
                    provider: configured.provider.name().to_owned(),
                    addresses,
                    lease: native.lease.clone(),
                    preparations: native.preparations.iter().filter_map(preparation).collect(),
                    link: native.link.clone(),
                    node: native.node.clone(),
                    outcome: attachment.outcome.clone(),
                }))
            }
            Backend::Plugins(run) => BackendRecord::Plugins(PluginsRecord::of(run)),
        };
        Self {
            reference: attachment.reference,
            ordinal: attachment.ordinal,
            network: attachment.network.clone(),
            ifname: attachment.ifname.clone(),
            origin: attachment.origin.clone(),
            backend,
        }
    }

    /// If we make it.
    pub(crate) fn native(&self) -> Option<&NativeRecord> {
        match &self.backend {
            BackendRecord::Native(native) => Some(native),
            BackendRecord::Plugins(_) => None,
        }
    }

    /// If plugins make it.
    pub(crate) fn plugins(&self) -> Option<&PluginsRecord> {
        match &self.backend {
            BackendRecord::Native(_) => None,
            BackendRecord::Plugins(plugins) => Some(plugins),
        }
    }

    /// Its link, if we make it and it is planned.
    pub(crate) fn link(&self) -> Option<&Link> {
        self.native()?.link.as_ref()
    }

    /// What it answers.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.backend {
            BackendRecord::Native(native) => native.outcome.as_ref(),
            BackendRecord::Plugins(plugins) => plugins.results.last(),
        }
    }

    /// The provider's name, `delegate` for plugins.
    pub(crate) fn provider(&self) -> &str {
        self.native()
            .map_or("delegate", |native| native.provider.as_str())
    }
}

/// What the journal keeps of a preparation; nothing before it begins.
fn preparation(preparation: &Preparation) -> Option<PreparationRecord> {
    match preparation {
        Preparation::Ipam(run) if run.begun == 0 => None,
        Preparation::Ipam(run) => Some(PreparationRecord::Ipam(PluginsRecord::of(run))),
        Preparation::Wait { link, .. } => Some(PreparationRecord::Wait(link.clone())),
        Preparation::Call { call, answer } => Some(PreparationRecord::Call {
            call: call.clone(),
            answer: answer.clone(),
        }),
    }
}

impl PluginsRecord {
    fn of(run: &PluginRun) -> Self {
        Self {
            version: run.chain.version.to_string(),
            plugins: run.chain.plugins.clone(),
            ipam: run.chain.executable == Executable::IpamType,
            runtime: run.runtime.clone(),
            begun: run.begun,
            results: run.results.clone(),
        }
    }
}

impl NativeRecord {
    /// The IPAM plugin that gave its addresses.
    pub(crate) fn executed_ipam(&self) -> Option<&PluginsRecord> {
        self.preparations.iter().find_map(|one| match one {
            PreparationRecord::Ipam(plugins) => Some(plugins),
            PreparationRecord::Wait(_) | PreparationRecord::Call { .. } => None,
        })
    }

    /// Its addresses alone.
    pub(crate) fn ips(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.ips.iter().map(|ip| ip.address.addr())
    }

    /// host-local's directory that its addresses are from, and the interface that the files name.
    pub(crate) fn host_local(&self) -> Option<(&PathBuf, &IfName)> {
        match &self.lease {
            Some(Lease::HostLocal { directory, ifname }) => Some((directory, ifname)),
            _ => None,
        }
    }

    /// The journal's pool that its addresses are from.
    pub(crate) fn pool(&self) -> Option<&str> {
        match &self.lease {
            Some(Lease::Pool(pool)) => Some(pool),
            _ => None,
        }
    }
}

impl Record {
    pub(crate) fn key(&self) -> Key {
        (self.container.clone(), self.ifname.clone())
    }

    /// Whether something of it is still there after a reboot, and so needs its DEL then.
    pub(crate) fn outlives_reboot(&self) -> bool {
        let mut natives = self.natives().flat_map(|(_, native)| &native.preparations);
        let is_outside = |one: &PreparationRecord| !matches!(one, PreparationRecord::Wait(_));
        natives.any(is_outside) || self.begun_plugins().next().is_some()
    }

    /// Attachments whose plugins may have begun, in order; not IPAM plugins below our own links.
    pub(crate) fn begun_plugins(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&AttachmentRecord, &PluginsRecord)> {
        let plugins = self.attachments.iter();
        let plugins = plugins.filter_map(|one| Some((one, one.plugins()?)));
        plugins.filter(|(_, plugins)| plugins.begun > 0)
    }

    /// Attachments that we make with the addresses of an IPAM plugin that was executed, in order.
    pub(crate) fn executed_ipams(
        &self,
    ) -> impl Iterator<Item = (&AttachmentRecord, &PluginsRecord)> {
        let natives = self.natives();
        natives.filter_map(|(one, native)| Some((one, native.executed_ipam()?)))
    }

    /// Attachments that we make, in order.
    pub(crate) fn natives(&self) -> impl Iterator<Item = (&AttachmentRecord, &NativeRecord)> {
        let natives = self.attachments.iter();
        natives.filter_map(|one| Some((one, one.native()?)))
    }

    /// The links that are planned.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Link> {
        self.attachments.iter().filter_map(AttachmentRecord::link)
    }

    /// What the pod has in the kernel by our own hand. Ports of the node lead to the first attachment, and are gone with
    /// it: its address may be another pod's by then.
    pub(crate) fn plan(&self) -> PodPlan {
        let first = self.attachments.first();
        let has_first = first.is_some_and(|one| (one.reference, one.ordinal) == (0, 0));
        PodPlan {
            group: self.details.group,
            links: self.links().cloned().collect(),
            host_ports: match has_first {
                true => self.details.host_ports.clone(),
                false => Vec::new(),
            },
        }
    }

    /// What its networks need on the node, and as whose it is kept.
    pub(crate) fn node_plans(&self) -> impl Iterator<Item = (NetworkName, &NodePlan)> {
        let plans = self
            .natives()
            .map(|(one, native)| (&one.network, &native.node));
        let plans = plans.filter(|(_, plan)| !plan.is_empty());
        plans.map(|(network, plan)| (plan.kept_as(network), plan))
    }

    /// How the cluster knows its references, in order.
    pub(crate) fn origins(&self) -> impl Iterator<Item = &Reference> {
        self.attachments
            .iter()
            .filter_map(|one| one.origin.as_ref())
    }

    /// The addresses that the journal's pools must not give to anyone else, with their owners.
    pub(crate) fn pool_addresses(&self) -> Vec<(&str, IpAddr, String)> {
        let mut all = Vec::new();
        for (attachment, native) in self.natives() {
            let Some(pool) = native.pool() else { continue };
            let owner = owner_of(&self.container, &self.ifname, &attachment.ifname);
            all.extend(native.ips().map(|address| (pool, address, owner.clone())));
        }
        all
    }
}

/// Who an address belongs to: one interface of one call for one container. Two calls may want the
/// same interface name; only one of them gets it, and the other must not free its addresses.
pub(crate) fn owner_of(container: &ContainerId, cni_ifname: &IfName, ifname: &IfName) -> String {
    format!("{container}/{cni_ifname}/{ifname}")
}

/// A request's row as SQLite has it.
pub(super) struct RawRecord {
    pub(super) container: String,
    pub(super) ifname: String,
    pub(super) network: String,
    pub(super) pod_uid: Option<String>,
    pub(super) state: String,
    pub(super) boot: String,
    pub(super) cookie: String,
    pub(super) netns: String,
    pub(super) version: i64,
    pub(super) details: String,
    pub(super) result: Option<String>,
}

/// An attachment's row as SQLite has it.
pub(super) struct RawAttachment {
    pub(super) reference: i64,
    pub(super) ordinal: i64,
    pub(super) version: i64,
    pub(super) body: String,
}

impl RawRecord {
    pub(super) fn parse(
        self,
        attachments: Vec<RawAttachment>,
        path: &Path,
    ) -> Result<Stored, JournalError> {
        let key = format!("{}/{}", self.container, self.ifname);
        self.try_parse(attachments)
            .map_err(|problem| JournalError::Unreadable {
                path: path.to_owned(),
                key,
                problem,
            })
    }

    fn try_parse(self, attachments: Vec<RawAttachment>) -> Result<Stored, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        check_version(self.version)?;
        let record = Record {
            container: self.container.parse().map_err(|e| text(&e))?,
            ifname: self.ifname.parse().map_err(|e| text(&e))?,
            network: self.network.parse().map_err(|e| text(&e))?,
            pod_uid: self.pod_uid,
            boot: self.boot,
            cookie: NetnsCookie(self.cookie.parse().map_err(|e| text(&e))?),
            netns: self.netns,
            details: serde_json::from_str(&self.details).map_err(|e| text(&e))?,
            attachments: attachments
                .into_iter()
                .map(RawAttachment::parse)
                .collect::<Result<_, _>>()?,
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

impl RawAttachment {
    pub(super) fn parse(self) -> Result<AttachmentRecord, String> {
        let number = format!("attachment {}.{}", self.reference, self.ordinal);
        let wrong = |problem: String| format!("{number}: {problem}");
        check_version(self.version).map_err(wrong)?;
        let mut parsed: AttachmentRecord =
            serde_json::from_str(&self.body).map_err(|e| wrong(e.to_string()))?;
        parsed.reference = usize::try_from(self.reference).map_err(|e| wrong(e.to_string()))?;
        parsed.ordinal = u32::try_from(self.ordinal).map_err(|e| wrong(e.to_string()))?;
        Ok(parsed)
    }
}

fn check_version(version: i64) -> Result<(), String> {
    match version {
        VERSION => Ok(()),
        other => Err(format!(
            "it has version {other}, this agent reads {VERSION}"
        )),
    }
}
