//! ADD: all interfaces of a request, or none. Owns the execution of steps; what they are is decided in
//! [`core`](plexus_core::attach).
//!
//! ```text
//!   request ─► facts, addresses ─► begin_step ─► journal ─► execute ─► journal ─► … ─► journal done ─► answer
//!                                       any failure: undo in reverse, forget, one error
//! ```
//! Everything that can be refused is refused before the intent is written.

use crate::addresses::{NotChosen, Reservation};
use crate::agent::Agent;
use crate::failure;
use crate::journal::{AttachmentRecord, Details, Record, State, Stored};
use crate::node::devices::DeviceClaim;
use crate::node::links::Links;
use crate::node::parents::Held;
use crate::report::provider;
use crate::serve::admission::Slot;
use crate::serve::call::Call;
use crate::span;
use crate::verb::plugins::call_for;
use crate::verb::pod_networks::ListedNetworks;
use plexus_api::cni::{Body, Code, Error, Outcome};
use plexus_core::attach::{
    Attach, AttachError, AttachRequest, Attachment, Backend, Preparation, Sandbox, Step,
};
use plexus_core::attachment::NativeSpec;
use plexus_core::plan::{self, Link, LinkKind};
use plexus_kernel::{NetlinkError, Netns, NetnsError, observe, pod};
use plexus_types::{ContainerId, IfName, NetnsCookie};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many blocks one ADD may claim: one a family and network, as a rule.
const MOST_CLAIMS: usize = 32;
/// All blocks that an ADD needs are claimed or asked for within that time: who called it waits for 120 s.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(60);

/// An ADD on its way.
struct Adding<'a> {
    agent: &'a Agent,
    slot: &'a Slot<'a>,
    attach: Attach,
    netns: Netns,
    record: Record,
    /// Until it is done or undone.
    _devices: Vec<DeviceClaim<'a>>,
}

impl Agent {
    /// Makes the attachments of a call. Also says whether they are new, as opposed to those of an
    /// earlier, identical call; and their networks, for the log.
    pub(crate) fn attach<'a>(
        &'a self,
        call: &Call<'_>,
        slot: &'a Slot<'a>,
    ) -> Result<(Outcome, bool, String), Error> {
        let conf = call.conf()?;
        for warning in &conf.warnings {
            tracing::warn!(warning, "a network's configuration");
        }
        let journal = self.journal()?;
        let at = |error| failure::at(call.context(), error);
        let (netns, cookie) = self.open_netns(call).map_err(at)?;
        let (container, ifname) = call.key()?;
        if let Some(stored) = journal.find(&container, &ifname)? {
            match self.repeated(call, &stored, &netns, cookie).map_err(at)? {
                Some(outcome) => return Ok((outcome, false, networks(&stored.record))),
                None => self.undo(&stored.record).map_err(at)?,
            }
        }
        self.replace_older_sandboxes(call).map_err(at)?;
        let listed = self.list_networks(call, conf).map_err(at)?;
        let mut adding = self
            .prepare(call, slot, listed, netns, cookie)
            .map_err(at)?;
        let started = Instant::now();
        let ran = adding.run();
        let provider = provider::of_record(&adding.record).to_owned();
        self.metrics
            .attached(&provider, ran.is_ok(), started.elapsed());
        match ran {
            Ok(outcome) => Ok((outcome, true, networks(&adding.record))),
            Err(error) => Err(at(self.undone(&adding.record, error))),
        }
    }

    /// What an earlier ADD for the same container and interface means: its answer if it was the
    /// same call, nothing if it must be undone first, an error if it contradicts.
    fn repeated(
        &self,
        call: &Call<'_>,
        stored: &Stored,
        netns: &Netns,
        cookie: NetnsCookie,
    ) -> Result<Option<Outcome>, Error> {
        let record = &stored.record;
        if stored.state != State::Done || record.cookie != cookie || record.boot != self.boot {
            return Ok(None);
        }
        let mut socket = self.node.socket_in(netns).map_err(unseen)?;
        let links = observe::links(&mut socket).map_err(unseen)?;
        let has = |name: &str| links.iter().any(|link| link.name == name);
        if !record.links().all(|link| has(link.name.as_str())) {
            return Ok(None);
        }
        let answered = stored
            .result
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        match answered {
            Some(outcome)
                if record.details.config == call.config_to_keep()
                    && record.details.args == call.request.args =>
            {
                Ok(Some(outcome))
            }
            _ => Err(Error::new(
                Code::InvalidConfig,
                format!(
                    "interface {} exists already, on network {}, made by an ADD with another configuration or other CNI_ARGS",
                    record.ifname, record.network
                ),
                "send DEL for it first, or use another CNI_IFNAME",
            )),
        }
    }

    /// A pod has one sandbox: an ADD for a new one is the evidence that the old one is gone.
    fn replace_older_sandboxes(&self, call: &Call<'_>) -> Result<(), Error> {
        let Some(uid) = &call.args.pod_uid else {
            return Ok(());
        };
        let container = call.container()?;
        let stored = self.journal()?.of_pod(uid)?;
        let records = stored.iter().map(|stored| &stored.record);
        for old in records.filter(|old| old.container != *container) {
            let _lock = self.lock_other_container(&old.container)?;
            let _span = span::of_record("replace", old).entered();
            tracing::info!(
                uid,
                "an ADD for a newer sandbox of the pod replaces this one"
            );
            self.detach_record(&old.container, &old.ifname)?;
        }
        Ok(())
    }

    fn prepare<'a>(
        &'a self,
        call: &Call<'_>,
        slot: &'a Slot<'a>,
        listed: Option<ListedNetworks>,
        netns: Netns,
        cookie: NetnsCookie,
    ) -> Result<Adding<'a>, Error> {
        let (container, ifname) = call.key()?;
        let conf = call.conf()?;
        conf.body.check_names(&ifname)?;
        let sandbox = Sandbox {
            container: container.clone(),
            ifname: ifname.clone(),
            path: call.request.netns.clone(),
            cookie,
            node: self.here,
        };
        let (mut request, api_uid, takes_ports) = match listed {
            Some(listed) => {
                let request = AttachRequest::of_pod(conf, listed.networks, sandbox);
                (request, listed.api_uid, listed.takes_ports)
            }
            // Ports are for the plugins of the chain, not for us.
            None => (AttachRequest::of(conf, sandbox), None, false),
        };
        if !takes_ports {
            request.port_mappings.clear();
        }
        let mut attach = Attach::new(request).map_err(|error| failure::refusal(&error))?;
        let devices = self.look_up_facts(&mut attach)?;
        let details = Details {
            pod: call.pod(),
            args: call.request.args.clone(),
            config: call.config_to_keep().into_owned(),
            adopted: false,
            group: attach.group(),
            host_ports: Vec::new(),
            all_interfaces: attach.request().is_standalone(),
            standalone: matches!(conf.body, Body::Pod),
            api_uid,
        };
        let record = Record {
            container,
            ifname,
            network: conf.name.clone(),
            pod_uid: call.args.pod_uid.clone(),
            boot: self.boot.clone(),
            cookie,
            netns: call.request.netns.clone(),
            details,
            attachments: attach
                .attachments()
                .iter()
                .map(AttachmentRecord::of)
                .collect(),
        };
        Ok(Adding {
            agent: self,
            slot,
            attach,
            netns,
            record,
            _devices: devices,
        })
    }

    /// What the providers need to know of the node, and the devices that nobody else may take meanwhile; plugins must be
    /// there to be executed.
    fn look_up_facts(&self, attach: &mut Attach) -> Result<Vec<DeviceClaim<'_>>, Error> {
        self.leave_to_plugins(attach)?;
        let mut links = Links::of(self, &attach.request().sandbox.container);
        let mut found = Vec::new();
        for (index, attachment) in attach.attachments().iter().enumerate() {
            let failed = |_: &Error| span::failed(std::slice::from_ref(attachment));
            let chain = match &attachment.backend {
                Backend::Native(native) => {
                    let ipam = native.spec.native.executed_ipam();
                    ipam.map(|ipam| &ipam.chain)
                }
                Backend::Plugins(run) => Some(&run.chain),
            };
            if let Some(chain) = chain {
                let can_run = self.runner.can_run(&attachment.network, chain);
                can_run
                    .map_err(|error| error.to_cni())
                    .inspect_err(failed)?;
            }
            if let Some(native) = attachment.native() {
                let facts = links.facts(&native.spec).inspect_err(failed)?;
                found.push((index, facts));
            }
        }
        for (index, facts) in found {
            attach.set_facts(index, facts);
        }
        Ok(links.claims)
    }

    /// The container's namespace; the node's own is nobody's container.
    fn open_netns(&self, call: &Call<'_>) -> Result<(Netns, NetnsCookie), Error> {
        let path: &PathBuf = call.netns().ok_or_else(|| {
            Error::new(
                Code::InvalidEnvironment,
                "CNI_NETNS is not set",
                "the runtime must set it",
            )
        })?;
        let wrong = |error: NetnsError| {
            Error::new(
                Code::InvalidNetns,
                format!("CNI_NETNS: {}", failure::chain(&error)),
                "CNI_NETNS must be the path of the container's network namespace, such as /run/netns/NAME or /proc/PID/ns/net",
            )
        };
        let netns = Netns::open(path).map_err(wrong)?;
        let cookie = self.node.cookie_of(&netns).map_err(wrong)?;
        if cookie == self.here {
            return Err(Error::new(
                Code::InvalidNetns,
                format!(
                    "CNI_NETNS: {} is the node's own network namespace",
                    path.display()
                ),
                "give the path of the container's; containers on the node's network need no CNI",
            ));
        }
        Ok((netns, cookie))
    }

    fn undone(&self, record: &Record, error: Error) -> Error {
        match self.undo(record) {
            Ok(()) => error,
            Err(undo) => {
                tracing::error!(%undo, "undoing a failed ADD failed, will be tried again");
                let msg = format!("{}; and undoing it failed: {}", error.msg, undo.msg);
                Error { msg, ..error }
            }
        }
    }
}

impl Adding<'_> {
    fn run(&mut self) -> Result<Outcome, Error> {
        let (container, cni_ifname) = (self.record.container.clone(), self.record.ifname.clone());
        let agent = self.agent;
        let mut reservation = self.choose(&container, &cni_ifname)?;
        for (index, addresses, lease) in std::mem::take(&mut reservation.chosen) {
            self.attach.set_addresses(index, addresses, lease);
        }
        // All addresses are taken now, also those of links that are planned later.
        self.note(0..self.record.attachments.len());
        let mut step = self.begin_step()?;
        // Only in test builds, and only when asked: proves that the crash test would notice.
        let late = plexus_faults::mistake("journal-late");
        if !late {
            let _held = self.hold_parents(step.as_ref())?;
            self.journal_begin()?;
        }
        reservation.write()?;
        while let Some(begun) = step {
            self.execute(begun)?;
            step = self.begin_step()?;
            if let Some(next) = &step {
                let _held = self.hold_parents(Some(next))?;
                self.journal_update(attachments_of(next))?;
            }
        }
        if late {
            self.journal_begin()?;
        }
        let outcome = self.attach.answer();
        let outcome = outcome.map_err(|error| failure::refusal(&error))?;
        let text = serde_json::to_string(&outcome).unwrap_or_default();
        agent.journal()?.done(&self.record, &text)?;
        Ok(outcome)
    }

    /// Decides on the next step, and brings the record up to date with it.
    fn begin_step(&mut self) -> Result<Option<Step>, Error> {
        let step = self.attach.begin_step().map_err(|error| {
            if let AttachError::Plan { ifname, .. } = &error {
                let mut each = self.attach.attachments().chunks(1);
                each.find(|one| one.iter().any(|one| one.ifname == *ifname))
                    .into_iter()
                    .for_each(span::failed);
            }
            failure::refusal(&error)
        })?;
        if let Some(step) = &step {
            self.note(attachments_of(step));
        }
        Ok(step)
    }

    fn hold_parents(&self, step: Option<&Step>) -> Result<Option<Held<'_>>, Error> {
        let range = step.map_or(0..0, attachments_of);
        self.agent.hold_parents(&self.record, range)
    }

    fn execute(&mut self, step: Step) -> Result<(), Error> {
        let range = attachments_of(&step);
        let span = span::of_step(kind_of(&step), self.attachments(range.clone()));
        let executed = span.in_scope(|| match step {
            Step::Prepare {
                attachment,
                preparation,
            } => self.prepare_link(attachment, preparation),
            Step::Links(range) => self.make_links(range),
            Step::Plugin { attachment, plugin } => self.run_plugin(attachment, plugin),
        });
        executed.inspect_err(|_| span::failed(self.attachments(range)))
    }

    fn attachments(&self, range: Range<usize>) -> &[Attachment] {
        self.attach.attachments().get(range).unwrap_or_default()
    }

    fn prepare_link(&mut self, attachment: usize, preparation: usize) -> Result<(), Error> {
        let one = self.attach.attachments().get(attachment);
        let step = one.and_then(|one| Some((one, one.native()?.preparations.get(preparation)?)));
        let (one, step) = step.ok_or_else(|| missing("preparation", preparation, attachment))?;
        let prepare = || self.agent.prepare_link(&self.record, one, step);
        let result = match step {
            // Executed plugins are bounded by themselves.
            Preparation::Ipam(_) => prepare()?,
            Preparation::Wait { .. } | Preparation::Call { .. } => {
                self.slot.given_back(prepare).map_err(failure::refused)??
            }
        };
        let prepared = self.attach.prepared(attachment, result);
        prepared.map_err(|error| failure::refusal(&error))?;
        self.note(attachment..attachment + 1);
        self.journal_update(attachment..attachment + 1)
    }

    fn make_links(&mut self, range: Range<usize>) -> Result<(), Error> {
        let agent = self.agent;
        let made = self.record.attachments.get(range.clone());
        let needed = made.into_iter().flatten().filter_map(|one| {
            let plan = &one.native()?.node;
            (!plan.is_empty()).then(|| (plan.kept_as(&one.network), plan.clone()))
        });
        agent.ensure_node(&needed.collect::<Vec<_>>())?;
        let part = self.attach.pod_plan(range.clone());
        let applied = pod::apply(&part, &self.netns, &agent.node).map_err(|error| {
            let refused = error.refused_link();
            let refused =
                refused.and_then(|name| part.links.iter().find(|link| link.name == *name));
            let in_the_way = refused.and_then(|link| agent.in_the_way(&self.record, link));
            in_the_way.unwrap_or_else(|| {
                failure::failed(
                    &error,
                    "correct the cause and repeat the ADD; nothing was left behind",
                )
            })
        })?;
        agent.verify(&part, &applied)?;
        self.attach
            .links_made(range, |link| observed_macs(link, &applied));
        Ok(())
    }

    fn run_plugin(&mut self, attachment: usize, plugin: usize) -> Result<(), Error> {
        let outcome = self.add_plugin(attachment, plugin)?;
        self.attach.plugin_done(attachment, outcome);
        self.note(attachment..attachment + 1);
        self.journal_update(attachment..attachment + 1)
    }

    fn add_plugin(&self, attachment: usize, plugin: usize) -> Result<Outcome, Error> {
        let missing = || missing("plugin", plugin, attachment);
        let one = self.attach.attachments().get(attachment);
        let one = one.ok_or_else(missing)?;
        let Backend::Plugins(run) = &one.backend else {
            return Err(missing());
        };
        if let (0, Some(because)) = (plugin, &run.chain.unsupported_key) {
            tracing::warn!(
                key = because,
                "a key is not understood: the plugin is executed, and handed its keys as they are"
            );
        }
        let call = call_for(&self.record, &one.ifname, &self.record.netns);
        let runner = &self.agent.runner;
        let steps = runner.steps(&one.network, &run.chain, call, &run.runtime);
        let added = steps.add_step(plugin, run.results.last());
        added.map_err(|error| error.to_cni())
    }

    /// Brings the record of some attachments up to date.
    fn note(&mut self, range: Range<usize>) {
        let attachments = self.attach.attachments().get(range.clone());
        let records = self.record.attachments.get_mut(range);
        for (record, attachment) in records
            .into_iter()
            .flatten()
            .zip(attachments.into_iter().flatten())
        {
            *record = AttachmentRecord::of(attachment);
        }
        self.record.details.host_ports = self.attach.host_ports().to_vec();
    }

    /// Addresses for all native attachments; blocks are claimed as they are needed.
    fn choose<'a>(
        &self,
        container: &'a ContainerId,
        cni_ifname: &'a IfName,
    ) -> Result<Reservation<'a>, Error>
    where
        Self: 'a,
    {
        let natives = self.attach.natives();
        let (indices, wanted): (Vec<usize>, Vec<NativeSpec>) = natives
            .map(|(index, native)| (index, native.spec.clone()))
            .unzip();
        let agent = self.agent;
        let this = |number: Option<usize>| {
            let index = number.and_then(|number| indices.get(number));
            index.map_or(&[][..], |index| self.attachments(*index..index + 1))
        };
        let (blocks, until) = (agent.block_source(), Instant::now() + CLAIM_TIMEOUT);
        for _ in 0..MOST_CLAIMS {
            let chosen = agent
                .addresses
                .choose(&wanted, blocks, container, cni_ifname);
            match chosen {
                Ok(mut reservation) => {
                    agent.check_open(&wanted)?;
                    for (chosen, index) in reservation.chosen.iter_mut().zip(&indices) {
                        chosen.0 = *index;
                    }
                    return Ok(reservation);
                }
                Err(NotChosen::Refused(number, error)) => {
                    span::failed(this(number));
                    return Err(error);
                }
                Err(NotChosen::NeedsBlock(needs)) => {
                    let this = this(Some(needs.number));
                    span::of_step("claim", this)
                        .in_scope(|| agent.claim_for(&wanted, &needs, until))
                        .inspect_err(|_| span::failed(this))?;
                }
            }
        }
        Err(Error::new(
            Code::TryAgainLater,
            format!("{MOST_CLAIMS} blocks were claimed, and there is still no address"),
            "other pods took them meanwhile: try again",
        ))
    }

    fn journal_begin(&self) -> Result<(), Error> {
        Ok(self.agent.journal()?.begin(&self.record)?)
    }

    fn journal_update(&self, attachments: Range<usize>) -> Result<(), Error> {
        let journal = self.agent.journal()?;
        Ok(journal.update(&self.record, attachments)?)
    }
}

/// What only the kernel knows of a link.
pub(crate) fn observed_macs(link: &Link, applied: &pod::Applied) -> plan::ObservedMacs {
    let bridge = match &link.kind {
        LinkKind::Veth(end) => end.bridge.as_ref(),
        _ => None,
    };
    let bridge = bridge.and_then(|bridge| applied.node.link(bridge));
    plan::ObservedMacs {
        bridge_mac: bridge.and_then(|bridge| bridge.mac),
        pod_mac: applied.pod.link(&link.name).and_then(|link| link.mac),
    }
}

fn missing(what: &str, number: usize, attachment: usize) -> Error {
    let text = format!("there is no {what} {number} of attachment {attachment}");
    Error::new(Code::Failed, text, "report this as a bug")
}

fn attachments_of(step: &Step) -> Range<usize> {
    match step {
        Step::Links(range) => range.clone(),
        Step::Prepare { attachment, .. } | Step::Plugin { attachment, .. } => {
            *attachment..attachment + 1
        }
    }
}

/// What the log calls a step.
fn kind_of(step: &Step) -> &'static str {
    match step {
        Step::Prepare { .. } => "prepare",
        Step::Links(_) => "links",
        Step::Plugin { .. } => "plugin",
    }
}

fn unseen(error: NetlinkError) -> Error {
    failure::failed(&error, "repeat the ADD")
}

/// The networks of a record as the pod's owner knows them, in order.
fn networks(record: &Record) -> String {
    let names = record.attachments.iter().map(|one| match &one.origin {
        Some(origin) => {
            let parts = [origin.namespace.as_str(), origin.name.as_str()];
            let parts = parts.iter().filter(|part| !part.is_empty());
            parts.copied().collect::<Vec<_>>().join("/")
        }
        None => one.network.to_string(),
    });
    names.collect::<Vec<_>>().join(",")
}
