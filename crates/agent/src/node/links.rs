//! What a plan needs to know of the node. Each link is asked for once per call, however many
//! attachments hang off it.

use crate::agent::Agent;
use crate::failure;
use plexus_api::cni::Error;
use plexus_core::attachment::NativeSpec;
use plexus_core::plan::{self, Facts, LinkFacts, ObservedLink, ParentQuery};
use plexus_kernel::{NetlinkError, Socket, observe};
use plexus_types::IfName;
use std::collections::BTreeMap;

/// The node's links that one call has asked for.
pub(crate) struct Links<'a> {
    agent: &'a Agent,
    seen: BTreeMap<IfName, Option<LinkFacts>>,
}

impl<'a> Links<'a> {
    /// None yet.
    pub(crate) fn of(agent: &'a Agent) -> Self {
        Self {
            agent,
            seen: BTreeMap::new(),
        }
    }

    /// The facts of one attachment. Refuses what this kernel cannot do.
    pub(crate) fn facts(&mut self, wanted: &NativeSpec) -> Result<Facts, Error> {
        self.agent
            .require_features(&wanted.native, &wanted.network)?;
        let agent = self.agent;
        let looked = agent.node.with_socket(|socket| {
            let query = plan::facts_query(&wanted.native);
            Ok(Facts {
                parent: match query.parent {
                    Some(ParentQuery::Named(name)) => self.named(socket, name)?,
                    Some(ParentQuery::DefaultRoute) => known(agent.uplink.get(socket)?),
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
            })
        });
        looked.map_err(|error: NetlinkError| {
            failure::failed(
                &error,
                "is the agent allowed to use netlink (CAP_NET_ADMIN)?",
            )
        })
    }

    fn named(
        &mut self,
        socket: &mut Socket,
        name: &IfName,
    ) -> Result<Option<LinkFacts>, NetlinkError> {
        if let Some(facts) = self.seen.get(name) {
            return Ok(facts.clone());
        }
        let facts = known(observe::link_by_name(socket, name.as_str())?);
        self.seen.insert(name.clone(), facts.clone());
        Ok(facts)
    }
}

fn known(link: Option<ObservedLink>) -> Option<LinkFacts> {
    let link = link?;
    let name = IfName::new(&link.name).ok()?;
    Some(LinkFacts {
        name,
        index: link.index,
        mtu: link.mtu,
        kind: link.kind,
    })
}
