//! What a plan needs to know of the node. Each link is asked for once per call, however many
//! attachments hang off it.

use crate::agent::Agent;
use crate::failure;
use crate::node::devices::DeviceClaim;
use plexus_api::cni::Error;
use plexus_core::attachment::NativeSpec;
use plexus_core::plan::{self, Facts, LinkFacts, ObservedLink, ParentQuery};
use plexus_kernel::{NetlinkError, Socket, observe};
use plexus_types::{ContainerId, IfName};
use std::collections::BTreeMap;

/// The node's links that one call has asked for.
pub(crate) struct Links<'a> {
    agent: &'a Agent,
    container: ContainerId,
    known: BTreeMap<IfName, Option<LinkFacts>>,
    /// The devices that are its alone.
    pub(crate) claims: Vec<DeviceClaim<'a>>,
}

impl<'a> Links<'a> {
    /// None yet; for a request of that container.
    pub(crate) fn of(agent: &'a Agent, container: &ContainerId) -> Self {
        Self {
            agent,
            container: container.clone(),
            known: BTreeMap::new(),
            claims: Vec::new(),
        }
    }

    /// The facts of one attachment. Refuses what this kernel cannot do.
    pub(crate) fn facts(&mut self, spec: &NativeSpec) -> Result<Facts, Error> {
        self.agent.require_features(&spec.native, &spec.network)?;
        let agent = self.agent;
        let query = plan::facts_query(&spec.native);
        let mut device = None;
        if let Some(query) = query.device
            && let Some((found, claim)) = agent.device(query, &spec.network, &self.container)?
        {
            device = Some(found);
            self.claims.push(claim);
        }
        let looked = agent.node.with_socket(|socket| {
            Ok(Facts {
                parent: match query.parent {
                    Some(ParentQuery::Named(name)) => self.named(socket, name)?,
                    Some(ParentQuery::DefaultRoute) => link_facts(agent.uplink.get(socket)?),
                    None => None,
                },
                bridge: match query.bridge {
                    Some(name) => self.named(socket, name)?,
                    None => None,
                },
                underlay: match query.underlay {
                    true => agent.underlay(socket)?,
                    false => None,
                },
                device,
            })
        });
        looked.map_err(|error: NetlinkError| failure::netlink(&error))
    }

    fn named(
        &mut self,
        socket: &mut Socket,
        name: &IfName,
    ) -> Result<Option<LinkFacts>, NetlinkError> {
        if let Some(facts) = self.known.get(name) {
            return Ok(facts.clone());
        }
        let facts = link_facts(observe::link_by_name(socket, name.as_str())?);
        self.known.insert(name.clone(), facts.clone());
        Ok(facts)
    }
}

/// What a plan is told of a link.
pub(crate) fn link_facts(link: Option<ObservedLink>) -> Option<LinkFacts> {
    let link = link?;
    let name = IfName::new(&link.name).ok()?;
    Some(LinkFacts {
        name,
        index: link.index,
        mtu: link.mtu,
        kind: link.kind,
    })
}
