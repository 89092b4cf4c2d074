//! What must happen before a link can be planned: an IPAM plugin that gives its addresses, a call to somebody outside
//! the node, a link that appears. Owns their order and what their results mean; executes nothing.
//!
//! ```text
//!   IPAM plugin ─► addresses ─► what the provider asks for next, given all results so far ─► … ─► link
//! ```
//! Each is a step of its own: journaled before and after, and undone in reverse once the link is gone.

use super::{NativeWork, PluginRun};
use crate::ipam::{AllocateError, assigned_executed};
use crate::plan::{LinkFacts, next_preparation};
use plexus_api::cni::Outcome;
use plexus_types::{IfName, Mac};
use serde_json::Value;
use std::path::PathBuf;

/// A preparation, and its result.
#[derive(Debug, Clone, PartialEq)]
pub enum Preparation {
    /// The network's IPAM plugin gives the addresses.
    Ipam(PluginRun),
    /// A link of the node appears.
    Wait {
        /// Which one.
        link: AwaitedLink,
        /// It is there.
        found: Option<LinkFacts>,
    },
    /// Somebody outside the node's kernel does something.
    Call {
        /// What.
        call: OutsideCall,
        /// The answer.
        answer: Option<Value>,
    },
}

/// How a link is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AwaitedLink {
    /// By its name.
    Name(IfName),
    /// By its MAC.
    Mac(Mac),
}

/// A request to somebody outside the node's kernel. It must be idempotent: after a crash it is undone without anyone
/// knowing whether it was received.
#[derive(Debug, Clone, PartialEq)]
pub struct OutsideCall {
    /// Who is asked.
    pub service: Service,
    /// What, in the service's own words.
    pub request: Value,
}

/// Somebody who can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Service {
    /// A program on the node that serves HTTP on this socket: `POST /setup` and `POST /teardown`.
    Socket(PathBuf),
}

/// What a preparation came to.
#[derive(Debug, Clone, PartialEq)]
pub enum PreparationResult {
    /// The IPAM plugin's answer.
    Addresses(Outcome),
    /// The link that has appeared.
    Link(LinkFacts),
    /// The answer from outside.
    Answer(Value),
}

impl Preparation {
    /// Whether it may have had effects that somebody must undo, also after a reboot.
    pub fn outlives_reboot(&self) -> bool {
        match self {
            Preparation::Ipam(run) => run.begun > 0,
            Preparation::Wait { .. } => false,
            Preparation::Call { .. } => true,
        }
    }

    /// Whether its result is known.
    pub fn is_done(&self) -> bool {
        match self {
            Preparation::Ipam(run) => !run.results.is_empty(),
            Preparation::Wait { found, .. } => found.is_some(),
            Preparation::Call { answer, .. } => answer.is_some(),
        }
    }
}

impl NativeWork {
    /// The position of the preparation that is to be executed next, which may have begun then; none: all are done.
    pub(super) fn begin_preparation(&mut self) -> Option<usize> {
        if self.skipped || self.made {
            return None;
        }
        if self.preparations.last().is_none_or(Preparation::is_done) {
            let next = next_preparation(&self.spec, &self.addresses, &self.preparations)?;
            self.preparations.push(next);
        }
        if let Some(Preparation::Ipam(run)) = self.preparations.last_mut() {
            run.begun = 1;
        }
        self.preparations.len().checked_sub(1)
    }

    /// The preparation that has begun last is done.
    pub(super) fn prepared(&mut self, result: PreparationResult) -> Result<(), AllocateError> {
        match (self.preparations.last_mut(), result) {
            (Some(Preparation::Ipam(run)), PreparationResult::Addresses(outcome)) => {
                if let Some(ipam) = self.spec.native.executed_ipam() {
                    self.addresses = assigned_executed(ipam, &outcome)?;
                }
                run.results.push(outcome);
            }
            (Some(Preparation::Wait { found, .. }), PreparationResult::Link(link)) => {
                self.facts.parent = Some(link.clone());
                *found = Some(link);
            }
            (Some(Preparation::Call { answer, .. }), PreparationResult::Answer(value)) => {
                *answer = Some(value);
            }
            // Whoever drives the request answers what it was asked.
            _ => {}
        }
        Ok(())
    }
}
