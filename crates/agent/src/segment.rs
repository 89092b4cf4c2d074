//! The parts of an ADD that are made one after another: native attachments that stand together
//! in one plan and one batch, and delegates, plugin by plugin.

use crate::attach::{Adding, Item};
use crate::delegate;
use crate::failure;
use plexus_api::cni::{Body, Error, Outcome};
use plexus_core::attachment::{DefaultRoute, Wanted};
use plexus_core::plan::{self, Link, PodPlan};
use plexus_core::resolve::{Brings, Candidate, Resolved, choose_default};
use plexus_kernel::pod;
use serde_json::{Map, Value};
use std::ops::Range;

/// A part of an ADD.
#[derive(Debug, Clone)]
pub(crate) enum Segment {
    /// Native attachments that stand together.
    Native(Range<usize>),
    /// One delegate.
    Delegate(usize),
}

/// What came of one attachment.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) outcome: Outcome,
}

impl Adding<'_> {
    /// Decides what the segment will make, so that it can be journaled.
    pub(crate) fn plan_segment(&mut self, segment: &Segment) -> Result<(), Error> {
        match segment {
            Segment::Native(range) => self.plan_natives(range.clone()),
            Segment::Delegate(index) => {
                if let Some(Resolved::Delegate(delegate)) =
                    self.items.get(*index).map(|item| &item.resolved)
                {
                    let record = delegate::record_of(delegate, self.runtime_of(*index));
                    self.record.body.delegates.push(record);
                }
                Ok(())
            }
        }
    }

    /// What a delegate is told of the runtime's wishes.
    pub(crate) fn runtime_of(&self, index: usize) -> &Map<String, Value> {
        let network = self.conf.body.networks().get(index);
        let own = network.and_then(|network| network.runtime.as_ref());
        own.unwrap_or(&self.conf.runtime.raw)
    }

    /// Makes it.
    pub(crate) fn run_segment(&mut self, segment: &Segment) -> Result<(), Error> {
        match segment {
            Segment::Native(range) => self.make_natives(range.clone()),
            Segment::Delegate(index) => self.run_delegate(*index),
        }
    }

    /// A named default gateway that turned out to bring none is an error, once all is known.
    pub(crate) fn check_default_choice(&self) -> Result<(), Error> {
        let delegates = self
            .items
            .iter()
            .any(|i| matches!(i.resolved, Resolved::Delegate(_)));
        if delegates {
            self.default_routes(self.items.len()).map(drop)
        } else {
            Ok(())
        }
    }

    fn plan_natives(&mut self, range: Range<usize>) -> Result<(), Error> {
        let routes = self.default_routes(range.end)?;
        for index in range {
            let (network, link, node) = {
                let Some((item, wanted, default)) = self.native(index, &routes) else {
                    continue;
                };
                let place = plan::Place {
                    node: self.agent.here,
                    netns: self.record.cookie,
                    container: &self.record.container,
                    cni_ifname: &self.record.ifname,
                };
                let link = plan::build(wanted, &item.assigned, default, &place, &item.facts)
                    .map_err(|error| plan_failed(wanted, &error))?;
                let node =
                    plan::node_plan(&wanted.network, &wanted.native, &item.assigned, &item.facts);
                (wanted.network.clone(), link, node)
            };
            self.record.body.plan.links.push(link);
            self.keep(&network, node);
            self.lead_host_ports(index);
        }
        Ok(())
    }

    /// Ports of the node lead to the pod's first interface, as the kubelet asks for.
    fn lead_host_ports(&mut self, index: usize) {
        let mappings = &self.conf.runtime.port_mappings;
        if index == 0
            && !self.record.body.references.is_empty()
            && let Some(first) = self.items.first()
        {
            self.record.body.plan.host_ports = plan::host_ports(mappings, &first.assigned.ips);
        }
    }

    fn make_natives(&mut self, range: Range<usize>) -> Result<(), Error> {
        self.agent.ensure_node(&self.record.body.node)?;
        let links = self.links_of(&range);
        let group = self.record.body.plan.group;
        let part = PodPlan {
            group,
            links,
            host_ports: if range.contains(&0) {
                self.record.body.plan.host_ports.clone()
            } else {
                Vec::new()
            },
        };
        let applied = pod::apply(&part, &self.netns, &self.agent.node).map_err(|error| {
            failure::failed(
                &error,
                "correct the cause and repeat the ADD; nothing was left behind",
            )
        })?;
        self.agent.verify(&part, &applied)?;
        self.note_natives(range, &part.links, &applied)
    }

    /// Works out what each native attachment of the segment answers.
    pub(crate) fn note_natives(
        &mut self,
        range: Range<usize>,
        links: &[Link],
        applied: &pod::Applied,
    ) -> Result<(), Error> {
        let routes = self.default_routes(range.end)?;
        for (index, link) in range.zip(links) {
            let Some((item, wanted, default)) = self.native(index, &routes) else {
                continue;
            };
            let seen = self.agent.seen(wanted, link, applied);
            let whole = !self.standalone();
            let sandbox = &self.record.netns;
            let outcome =
                plan::outcome(wanted, &item.assigned, default, link, sandbox, seen, whole);
            self.made.push(Made { outcome });
        }
        Ok(())
    }

    /// A native attachment, with what was decided about default routes.
    fn native(
        &self,
        index: usize,
        routes: &[DefaultRoute],
    ) -> Option<(&Item, &Wanted, DefaultRoute)> {
        let item = self.items.get(index)?;
        let Resolved::Native(wanted) = &item.resolved else {
            return None;
        };
        Some((item, wanted, *routes.get(index)?))
    }

    pub(crate) fn links_of(&self, range: &Range<usize>) -> Vec<Link> {
        let names: Vec<_> = self
            .items
            .get(range.clone())
            .unwrap_or_default()
            .iter()
            .map(|i| i.resolved.ifname())
            .collect();
        let links = self.record.body.plan.links.iter();
        links
            .filter(|link| names.contains(&&link.name))
            .cloned()
            .collect()
    }

    /// Who has the default route among the first `count` attachments. Those that come later and
    /// are executed are not known yet: they cannot be the first that brings a gateway, and if
    /// the configuration names one of them, the others have none.
    fn default_routes(&self, count: usize) -> Result<Vec<DefaultRoute>, Error> {
        let Body::All { default_gw, .. } = &self.conf.body else {
            return Ok(vec![DefaultRoute::AsConfigured; count]);
        };
        let mut candidates = Vec::with_capacity(count);
        for (index, item) in self.items.iter().enumerate() {
            let brings = match (&item.resolved, self.made.get(index)) {
                (Resolved::Native(wanted), _) => Brings::Native(wanted, &item.assigned),
                (Resolved::Delegate(_), Some(made)) => Brings::Delegate(&made.outcome),
                (Resolved::Delegate(_), None) => Brings::NotYet,
            };
            candidates.push(Candidate {
                network: item.resolved.network(),
                ifname: item.resolved.ifname(),
                brings,
            });
        }
        choose_default(&candidates, Some(default_gw))
    }
}

fn plan_failed(wanted: &Wanted, error: &plan::PlanError) -> Error {
    failure::at(format!("interface {}", wanted.ifname), error.clone().into())
}
