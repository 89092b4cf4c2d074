//! ADD: all interfaces of a call, or none.
//!
//! ```text
//!   resolve ─► choose addresses ─► journal intent ─► files, node, links, plugins ─► read back
//!      ─► journal done ─► answer          any failure: undo in reverse, forget, one error
//! ```
//! Everything that can be refused is refused before the intent is written.

use crate::call::Call;
use crate::facts::Links;
use crate::failure;
use crate::front::Front;
use crate::ipam::{NotChosen, Reservation};
use crate::journal::{Body, Record, State, Stored};
use crate::provider;
use crate::segment::{Made, Segment};
use crate::verbs::Agent;
use plexus_api::cni::{Body as ConfBody, Code, Error, NetConf, Outcome};
use plexus_core::attachment::{Assigned, Wanted};
use plexus_core::plan::{self, Facts, NodePlan};
use plexus_core::resolve::{Resolved, resolve};
use plexus_kernel::{NetlinkError, Netns, NetnsError, observe};
use plexus_types::{ContainerId, IfName, NetnsCookie, NetworkName};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many blocks one ADD may claim: one a family and network, as a rule.
const MOST_CLAIMS: usize = 32;
/// All blocks that an ADD needs are claimed or asked for within that time: who called it waits for 120 s.
const CLAIMING: Duration = Duration::from_secs(60);

/// One attachment on its way: what was resolved, and what was found out about it.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) resolved: Resolved,
    pub(crate) facts: Facts,
    /// From IPAM; empty for a delegate.
    pub(crate) assigned: Assigned,
}

/// An ADD on its way.
pub(crate) struct Adding<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) conf: &'a NetConf,
    pub(crate) netns: Netns,
    pub(crate) items: Vec<Item>,
    pub(crate) record: Record,
    pub(crate) made: Vec<Made>,
}

impl Agent {
    /// Makes the attachments of a call. Also says whether they are new, as opposed to those of an
    /// earlier, identical call; and their networks, for the log.
    pub(crate) fn attach(&self, call: &Call<'_>) -> Result<(Outcome, bool, String), Error> {
        let conf = call.conf()?;
        let journal = self.journal()?;
        let at = |error| failure::at(call.place(), error);
        let (netns, cookie) = self.open_netns(call).map_err(at)?;
        let (container, ifname) = call.key()?;
        if let Some(stored) = journal
            .find(&container, &ifname)
            .map_err(|e| failure::journal(&e))?
        {
            match self.earlier(call, &stored, &netns, cookie).map_err(at)? {
                Some(outcome) => return Ok((outcome, false, networks(&stored.record))),
                None => self.undo(&stored.record).map_err(at)?,
            }
        }
        self.replace_older_sandboxes(call).map_err(at)?;
        let front = self.front(call, conf).map_err(at)?;
        let mut adding = self
            .prepare(call, conf, front.as_ref(), netns, cookie)
            .map_err(at)?;
        let started = Instant::now();
        let ran = adding.run();
        let provider = provider::of_call(adding.items.iter().map(|item| &item.resolved));
        self.metrics
            .attached(provider, ran.is_ok(), started.elapsed());
        match ran {
            Ok(outcome) => Ok((outcome, true, networks(&adding.record))),
            Err(error) => Err(at(self.undone(&adding.record, error))),
        }
    }

    /// What an earlier ADD for the same container and interface means: its answer if it was the
    /// same call, nothing if it must be undone first, an error if it contradicts.
    fn earlier(
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
        if !record
            .body
            .plan
            .links
            .iter()
            .all(|link| has(link.name.as_str()))
        {
            return Ok(None);
        }
        let answered = stored
            .result
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        match answered {
            Some(outcome)
                if record.body.config == call.config_to_keep()
                    && record.body.args == call.request.args =>
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
        let stored = self
            .journal()?
            .of_pod(uid)
            .map_err(|e| failure::journal(&e))?;
        for old in stored
            .iter()
            .filter(|old| old.record.container != *container)
        {
            let _turn = self.second_turn(&old.record.container)?;
            tracing::info!(pod = uid, old = %old.record.container, new = %container, "replacing an older sandbox of the pod");
            self.detach_record(&old.record.container, &old.record.ifname)?;
        }
        Ok(())
    }

    fn prepare<'a>(
        &'a self,
        call: &'a Call<'_>,
        conf: &'a NetConf,
        front: Option<&'a Front>,
        netns: Netns,
        cookie: NetnsCookie,
    ) -> Result<Adding<'a>, Error> {
        let (container, ifname) = call.key()?;
        let written = conf;
        let conf = front.map_or(conf, |front| &front.conf);
        conf.body.check_names(&ifname)?;
        let resolved = resolve(conf, &ifname)?;
        let mut links = Links::of(self);
        let mut items = Vec::with_capacity(resolved.len());
        for resolved in resolved {
            let facts = match &resolved {
                Resolved::Native(wanted) => links.facts(wanted)?,
                Resolved::Delegate(delegate) => {
                    let can_run = self.runner.can_run(&delegate.network, &delegate.chain);
                    can_run.map_err(|error| error.to_cni())?;
                    Facts::default()
                }
            };
            items.push(Item {
                resolved,
                facts,
                assigned: Assigned::default(),
            });
        }
        let place = plan::Place {
            node: self.here,
            netns: cookie,
            container: &container,
            cni_ifname: &ifname,
        };
        let body = Body {
            pod: call.pod(),
            args: call.request.args.clone(),
            config: call.config_to_keep().into_owned(),
            adopted: false,
            total: items.len(),
            natives: Vec::new(),
            plan: plan::pod_plan(&place, Vec::new()),
            node: Vec::new(),
            delegates: Vec::new(),
            standalone: matches!(written.body, ConfBody::Pod),
            references: front.map_or_else(Vec::new, |front| front.references.clone()),
            api_uid: front.and_then(|front| front.api_uid.clone()),
        };
        let record = Record {
            container,
            ifname,
            network: conf.name.clone(),
            pod_uid: call.args.pod_uid.clone(),
            boot: self.boot.clone(),
            cookie,
            netns: call.request.netns.clone(),
            body,
        };
        Ok(Adding {
            agent: self,
            conf,
            netns,
            items,
            record,
            made: Vec::new(),
        })
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
                tracing::error!(container = %record.container, %undo, "undoing a failed ADD failed, will be tried again");
                let msg = format!("{}; and undoing it failed: {}", error.msg, undo.msg);
                Error { msg, ..error }
            }
        }
    }
}

impl Adding<'_> {
    fn run(&mut self) -> Result<Outcome, Error> {
        let (container, cni_ifname) = (self.record.container.clone(), self.record.ifname.clone());
        let mut reservation = self.choose(&container, &cni_ifname)?;
        self.distribute(&reservation);
        let segments = self.segments();
        if let Some(first) = segments.first() {
            self.plan_segment(first)?;
        }
        // Only in test builds, and only when asked: proves that the crash test would notice.
        let late = plexus_faults::mistake("journal-late");
        if !late {
            self.journal_begin()?;
        }
        reservation.write()?;
        for (number, segment) in segments.iter().enumerate() {
            if number > 0 {
                self.plan_segment(segment)?;
                self.journal_update()?;
            }
            self.run_segment(segment)?;
        }
        if late {
            self.journal_begin()?;
        }
        self.check_default_choice()?;
        let outcome = self.outcome();
        let text = serde_json::to_string(&outcome).unwrap_or_default();
        let journal = self.agent.journal()?;
        journal
            .done(&self.record, &text)
            .map_err(|error| failure::journal(&error))?;
        Ok(outcome)
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
        let natives = self.items.iter().filter_map(|item| match &item.resolved {
            Resolved::Native(wanted) => Some(wanted.clone()),
            Resolved::Delegate(_) => None,
        });
        let mut wanted: Vec<Wanted> = natives.collect();
        let agent = self.agent;
        let until = Instant::now() + CLAIMING;
        for _ in 0..MOST_CLAIMS {
            match agent.addresses.choose(&wanted, container, cni_ifname) {
                Ok(reservation) => {
                    agent.check_open(&wanted)?;
                    return Ok(reservation);
                }
                Err(NotChosen::Refused(error)) => return Err(error),
                Err(NotChosen::NeedsBlock(needs)) => agent.claim_for(&mut wanted, needs, until)?,
            }
        }
        Err(Error::new(
            Code::TryAgainLater,
            format!("{MOST_CLAIMS} blocks were claimed, and there is still no address"),
            "other pods took them meanwhile: try again",
        ))
    }

    fn journal_begin(&self) -> Result<(), Error> {
        self.agent
            .journal()?
            .begin(&self.record)
            .map_err(|error| failure::journal(&error))
    }

    pub(crate) fn journal_update(&self) -> Result<(), Error> {
        self.agent
            .journal()?
            .update(&self.record)
            .map_err(|error| failure::journal(&error))
    }

    fn distribute(&mut self, reservation: &Reservation<'_>) {
        let mut natives = reservation.natives.clone();
        let items = self
            .items
            .iter_mut()
            .filter_map(|item| match &item.resolved {
                Resolved::Native(wanted) => Some((wanted, &mut item.assigned)),
                Resolved::Delegate(_) => None,
            });
        for ((wanted, assigned), native) in items.zip(&mut natives) {
            assigned.clone_from(&native.assigned);
            // What the record tells others is what the answer says.
            native.assigned.dns = plan::dns(&wanted.native, &assigned.dns).clone();
        }
        self.record.body.natives = natives;
    }

    /// Runs of native attachments, which are made together, and delegates, each by itself.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            match (&item.resolved, segments.last_mut()) {
                (Resolved::Native(_), Some(Segment::Native(range))) => range.end = index + 1,
                (Resolved::Native(_), _) => segments.push(Segment::Native(index..index + 1)),
                (Resolved::Delegate(_), _) => segments.push(Segment::Delegate(index)),
            }
        }
        segments
    }

    /// The answer: the attachment (plugin mode) or the first one (standalone), after what the
    /// plugins before us in the chain did.
    pub(crate) fn outcome(&self) -> Outcome {
        let first = self
            .made
            .first()
            .map(|made| made.outcome.clone())
            .unwrap_or_default();
        match &self.conf.prev_result {
            Some(previous) => previous.clone().followed_by(first),
            None => first,
        }
    }

    pub(crate) fn standalone(&self) -> bool {
        matches!(self.conf.body, ConfBody::All { .. })
    }

    /// Adds to what the networks of this call keep on the node.
    pub(crate) fn keep(&mut self, network: &NetworkName, node: NodePlan) {
        if !node.is_empty() {
            self.record.body.node.push((network.clone(), node));
        }
    }
}

fn unseen(error: NetlinkError) -> Error {
    failure::failed(&error, "repeat the ADD")
}

/// The networks of a record as the pod's owner knows them, in order.
fn networks(record: &Record) -> String {
    let body = &record.body;
    let referred = body.references.iter().map(|reference| {
        let parts = [reference.namespace.as_str(), reference.name.as_str()];
        let said = parts.iter().filter(|part| !part.is_empty());
        said.copied().collect::<Vec<_>>().join("/")
    });
    let mut names: Vec<String> = referred.collect();
    if names.is_empty() {
        let natives = body.natives.iter().map(|one| (one.index, &one.network));
        let delegates = body.delegates.iter().map(|one| (one.index, &one.network));
        let mut all: Vec<_> = natives.chain(delegates).collect();
        all.sort();
        names = all.iter().map(|(_, name)| name.to_string()).collect();
    }
    names.join(",")
}
