//! The way of one request, as a state machine without I/O: which attachments it means, what must be known of the node
//! and which addresses are needed, and then step by step what is to be done. The agent, `plexus plan` and the golden
//! plans all go this way.
//!
//! ```text
//!   AttachRequest ──new──► [Attachment] ──set_facts, set_addresses──► begin_step ──► Step
//!                                                                         ▲            │ journal, execute, journal
//!                                              answer ◄── no step is left ┤            ▼
//!                                                                         └── prepared, links_made, plugin_done
//! ```
//! First come the preparations of all links ([`Preparation`]), because they bring addresses and parents. Links that
//! stand together are one step, each plugin is one. A link behind a plugin is planned when that plugin's result is
//! known, because the result may bring a default route.

mod default_route;
mod error;
mod names;
mod prepare;
pub mod preview;
mod request;

pub use default_route::{Candidate, Provided, choose_default};
pub use error::{AttachError, DefaultRouteError};
pub use prepare::{AwaitedLink, OutsideCall, Preparation, PreparationResult, Service};
pub use request::{AttachRequest, ReferenceRequest, Sandbox};

use crate::attachment::{Assigned, DefaultRoute, NativeSpec};
use crate::plan::{
    self, Facts, HostPort, Link, LinkKind, NodePlan, ObservedMacs, PlanError, PodPlan, build,
    group, host_ports, node_plan, pod_plan,
};
use crate::resolve::Reference;
use plexus_api::cni::{Chain, Network, NetworkBackend, Outcome};
use plexus_types::{IfName, NetworkName};
use serde_json::{Map, Value};
use std::ops::Range;
use std::path::PathBuf;

/// One interface of one pod on one network.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// Which of the request's references it comes from, from 0.
    pub reference: usize,
    /// Which of the interfaces that this reference makes, from 0.
    pub ordinal: u32,
    /// How the cluster knows the reference; none for an inline configuration.
    pub origin: Option<Reference>,
    /// Its network.
    pub network: NetworkName,
    /// Its name in the pod.
    pub ifname: IfName,
    /// Who makes it, and how far that is.
    pub backend: Backend,
    /// What it answers: planned with its link, or from its plugins.
    pub outcome: Option<Outcome>,
}

/// Who makes an attachment.
#[derive(Debug, Clone, PartialEq)]
pub enum Backend {
    /// We, by netlink.
    Native(Box<NativeWork>),
    /// Plugins that are executed.
    Plugins(PluginRun),
}

/// An attachment that we make.
#[derive(Debug, Clone, PartialEq)]
pub struct NativeWork {
    /// Provider, IPAM and their options.
    pub spec: NativeSpec,
    /// What was looked up on the node.
    pub facts: Facts,
    /// Its addresses.
    pub addresses: Assigned,
    /// Where they are taken from; none: written in the configuration, or there are none.
    pub lease: Option<Lease>,
    /// What must happen before its link is planned: those that are done, and the one that is next.
    pub preparations: Vec<Preparation>,
    /// Its link, once it is planned.
    pub link: Option<Link>,
    /// What its network needs on the node, once the link is planned.
    pub node: NodePlan,
    made: bool,
    /// Nobody will prepare it: its link stays unknown.
    skipped: bool,
}

/// Where addresses are taken from, and must be given back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// A pool of the journal.
    Pool(String),
    /// A directory of host-local.
    HostLocal {
        /// The network's directory.
        directory: PathBuf,
        /// The interface that the files name.
        ifname: IfName,
    },
}

impl PluginRun {
    fn new(chain: &Chain, runtime: &Map<String, Value>) -> Self {
        Self {
            chain: chain.clone(),
            runtime: runtime.clone(),
            begun: 0,
            results: Vec::new(),
            skipped: false,
        }
    }
}

/// Plugins of one attachment, and how far they are.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginRun {
    /// What to execute.
    pub chain: Chain,
    /// What the runtime adds.
    pub runtime: Map<String, Value>,
    /// How many plugins may have begun.
    pub begun: usize,
    /// The results so far, one a plugin.
    pub results: Vec<Outcome>,
    /// Nobody will execute them: their results stay unknown.
    skipped: bool,
}

/// One side effect, or several that are made in one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Something that must happen before the link of an attachment is planned.
    Prepare {
        /// Which attachment.
        attachment: usize,
        /// Which of its preparations.
        preparation: usize,
    },
    /// The links of these attachments.
    Links(Range<usize>),
    /// One plugin of an attachment.
    Plugin {
        /// Which attachment.
        attachment: usize,
        /// Which plugin of its chain.
        plugin: usize,
    },
}

/// A request on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct Attach {
    request: AttachRequest,
    attachments: Vec<Attachment>,
    host_ports: Vec<HostPort>,
}

impl Attach {
    /// The attachments that a request means, in order, with their final names.
    pub fn new(request: AttachRequest) -> Result<Self, AttachError> {
        let attachments = names::attachments(&request)?;
        Ok(Self {
            request,
            attachments,
            host_ports: Vec::new(),
        })
    }

    /// What was asked for.
    pub fn request(&self) -> &AttachRequest {
        &self.request
    }

    /// In order: by reference, then by ordinal.
    pub fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    /// Those that we make, with their positions.
    pub fn natives(&self) -> impl Iterator<Item = (usize, &NativeWork)> {
        let all = self.attachments.iter().enumerate();
        all.filter_map(|(index, one)| Some((index, one.native()?)))
    }

    /// What an attachment's provider needs to know of the node.
    pub fn set_facts(&mut self, attachment: usize, facts: Facts) {
        if let Some(native) = self.native_mut(attachment) {
            native.facts = facts;
        }
    }

    /// Lets the plugin make an attachment whose provider stands in for it, before the first step; nothing happens if
    /// there is none.
    pub fn execute_plugin(&mut self, attachment: usize) -> Result<(), AttachError> {
        let Some(one) = self.attachments.get_mut(attachment) else {
            return Ok(());
        };
        let reference = self.request.references.get(one.reference);
        let network = reference.and_then(|it| it.networks.all().get(one.ordinal as usize));
        let (Some(native), Some(network)) = (one.native(), network) else {
            return Ok(());
        };
        if let Some(chain) = native.spec.native.provider.plugin() {
            let backend = NetworkBackend::Delegate(chain.clone());
            let network = Network {
                backend,
                ..network.clone()
            };
            one.backend = names::backend(
                &network,
                one.reference,
                &one.ifname,
                false,
                &self.request.runtime,
            )?;
        }
        Ok(())
    }

    /// What an attachment's IPAM gave it.
    pub fn set_addresses(&mut self, attachment: usize, addresses: Assigned, lease: Option<Lease>) {
        if let Some(native) = self.native_mut(attachment) {
            native.addresses = addresses;
            native.lease = lease;
        }
    }

    /// Decides on the next step, so that it can be journaled before it is executed. None: all are done. Asked again
    /// before the step is done, it is the same.
    pub fn begin_step(&mut self) -> Result<Option<Step>, AttachError> {
        for (attachment, one) in self.attachments.iter_mut().enumerate() {
            if let Backend::Native(native) = &mut one.backend
                && let Some(preparation) = native.begin_preparation()
            {
                return Ok(Some(Step::Prepare {
                    attachment,
                    preparation,
                }));
            }
        }
        let Some(first) = self.attachments.iter().position(|one| !one.is_done()) else {
            return Ok(None);
        };
        if let Some(Backend::Plugins(run)) = self.backend_mut(first) {
            let plugin = run.results.len();
            run.begun = run.begun.max(plugin + 1);
            return Ok(Some(Step::Plugin {
                attachment: first,
                plugin,
            }));
        }
        let links = self.attachments.iter().skip(first);
        let is_link = |one: &&Attachment| one.native().is_some() && !one.is_done();
        let count = links.take_while(is_link).count();
        let range = first..first + count;
        self.plan_links(range.clone())?;
        Ok(Some(Step::Links(range)))
    }

    /// A step's links are there; `observed` tells what only the kernel knows of each.
    pub fn links_made(&mut self, range: Range<usize>, observed: impl Fn(&Link) -> ObservedMacs) {
        for attachment in self.attachments.get_mut(range).into_iter().flatten() {
            let Backend::Native(native) = &mut attachment.backend else {
                continue;
            };
            native.made = true;
            if let (Some(link), Some(outcome)) = (&native.link, &mut attachment.outcome) {
                complete_macs(outcome, link, observed(link));
            }
        }
    }

    /// The preparation of an attachment that has begun is done.
    pub fn prepared(
        &mut self,
        attachment: usize,
        result: PreparationResult,
    ) -> Result<(), AttachError> {
        match self.native_mut(attachment) {
            Some(native) => Ok(native.prepared(result)?),
            None => Ok(()),
        }
    }

    /// A plugin has answered.
    pub fn plugin_done(&mut self, attachment: usize, outcome: Outcome) {
        if let Some(one) = self.attachments.get_mut(attachment)
            && let Backend::Plugins(run) = &mut one.backend
        {
            run.results.push(outcome.clone());
            one.outcome = Some(outcome);
        }
    }

    /// Nothing is executed for an attachment: what its plugins or preparations would do stays unknown.
    pub fn skip(&mut self, attachment: usize) {
        match self.backend_mut(attachment) {
            Some(Backend::Native(native)) => native.skipped = true,
            Some(Backend::Plugins(run)) => run.skipped = true,
            None => {}
        }
    }

    /// The plan of some attachments; ports of the node lead to the first of all.
    pub fn pod_plan(&self, range: Range<usize>) -> PodPlan {
        let host_ports = match range.contains(&0) {
            true => self.host_ports.clone(),
            false => Vec::new(),
        };
        let part = self.attachments.get(range).unwrap_or_default();
        let links = part.iter().filter_map(|one| one.native()?.link.clone());
        PodPlan {
            host_ports,
            ..pod_plan(&self.request.sandbox.owner(), links.collect())
        }
    }

    /// The link group of all links of this request.
    pub fn group(&self) -> u32 {
        group(&self.request.sandbox.owner())
    }

    /// The ports of the node that lead to the pod.
    pub fn host_ports(&self) -> &[HostPort] {
        &self.host_ports
    }

    /// What the request answers: in plugin mode all interfaces of its reference, else the first, after what the
    /// plugins before us in the chain did. Fails if a default gateway is named that turned out to bring none.
    pub fn answer(&self) -> Result<Outcome, AttachError> {
        let executed = |one: &Attachment| matches!(one.backend, Backend::Plugins(_));
        if self.attachments.iter().any(executed) {
            self.default_routes()?;
        }
        Ok(answer(
            self.request.is_standalone(),
            self.request.previous.clone(),
            self.attachments.iter().map(|one| one.outcome.as_ref()),
        ))
    }

    fn plan_links(&mut self, range: Range<usize>) -> Result<(), AttachError> {
        let defaults = self.default_routes()?;
        let Self {
            request,
            attachments,
            host_ports: ports,
        } = self;
        let owner = request.sandbox.owner();
        let (sandbox, whole) = (&request.sandbox.path, !request.is_standalone());
        for (index, default) in range.clone().zip(defaults.into_iter().skip(range.start)) {
            let Some(attachment) = attachments.get_mut(index) else {
                continue;
            };
            let Backend::Native(native) = &mut attachment.backend else {
                continue;
            };
            let NativeWork {
                spec,
                facts,
                addresses,
                ..
            } = &**native;
            let link = build(spec, addresses, default, &owner, facts);
            let link = link.map_err(|problem| AttachError::Plan {
                ifname: attachment.ifname.clone(),
                source: PlanError {
                    network: spec.network.clone(),
                    problem,
                },
            })?;
            let node = node_plan(spec, addresses, facts);
            let observed = ObservedMacs::default();
            let outcome = plan::outcome(spec, addresses, default, &link, sandbox, observed, whole);
            attachment.outcome = Some(outcome);
            if index == 0 {
                *ports = host_ports(&request.port_mappings, &addresses.ips);
            }
            (native.link, native.node) = (Some(link), node);
        }
        Ok(())
    }

    /// Which default routes are on each attachment. Plugins that have not been executed are not known yet: they
    /// cannot be the first that brings a gateway, and if one of them is named, the others have none.
    fn default_routes(&self) -> Result<Vec<DefaultRoute>, DefaultRouteError> {
        let candidates: Vec<Candidate<'_>> = self.attachments.iter().map(candidate).collect();
        choose_default(&candidates, self.request.default_gw.as_ref())
    }

    fn backend_mut(&mut self, attachment: usize) -> Option<&mut Backend> {
        self.attachments
            .get_mut(attachment)
            .map(|one| &mut one.backend)
    }

    fn native_mut(&mut self, attachment: usize) -> Option<&mut NativeWork> {
        match self.backend_mut(attachment)? {
            Backend::Native(native) => Some(native),
            Backend::Plugins(_) => None,
        }
    }
}

impl Attachment {
    /// If we make it.
    pub fn native(&self) -> Option<&NativeWork> {
        match &self.backend {
            Backend::Native(native) => Some(native),
            Backend::Plugins(_) => None,
        }
    }

    fn is_done(&self) -> bool {
        match &self.backend {
            Backend::Native(native) => native.skipped || native.made,
            Backend::Plugins(run) => run.skipped || run.results.len() >= run.chain.plugins.len(),
        }
    }
}

/// What a request answers, given what each of its attachments does.
pub fn answer<'a>(
    standalone: bool,
    previous: Option<Outcome>,
    outcomes: impl Iterator<Item = Option<&'a Outcome>>,
) -> Outcome {
    let count = if standalone { 1 } else { usize::MAX };
    let ours = outcomes.take(count).flatten().cloned();
    previous
        .into_iter()
        .chain(ours)
        .reduce(Outcome::followed_by)
        .unwrap_or_default()
}

/// Adds what only the kernel knows to an outcome that was made from a plan.
pub fn complete_macs(outcome: &mut Outcome, link: &Link, observed: ObservedMacs) {
    let bridge = match &link.kind {
        LinkKind::Veth(end) => end.bridge.as_ref(),
        _ => None,
    };
    for interface in outcome.interfaces.iter_mut().filter(|i| i.mac.is_none()) {
        let inside = interface.sandbox.is_some();
        let mac = match bridge {
            Some(bridge) if !inside && interface.name == bridge.as_str() => observed.bridge_mac,
            _ if inside => observed.pod_mac,
            _ => None,
        };
        interface.mac = mac.map(|mac| mac.to_string());
    }
}

fn candidate(attachment: &Attachment) -> Candidate<'_> {
    let provided = match (&attachment.backend, &attachment.outcome) {
        (Backend::Native(native), _) if native.skipped => Provided::Unknown,
        (Backend::Native(native), _) => Provided::Native(&native.spec, &native.addresses),
        (Backend::Plugins(run), Some(outcome)) if run.results.len() >= run.chain.plugins.len() => {
            Provided::Plugins(outcome)
        }
        (Backend::Plugins(_), _) => Provided::Unknown,
    };
    Candidate {
        network: &attachment.network,
        ifname: &attachment.ifname,
        provided,
    }
}
