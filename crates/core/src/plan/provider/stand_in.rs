//! `stand-in`, in test builds alone: a call to the program that the test serves, a wait for the link that it names, and
//! a link on that.

use super::{LinkParts, LinkRequest, ProviderPlan, stacked_kind};
use crate::attach::{AwaitedLink, OutsideCall, Preparation, Service};
use crate::attachment::{Assigned, NativeSpec};
use crate::plan::{LinkKind, PlanProblem};
use plexus_api::cni::{Macvlan, StandIn};
use plexus_types::MacvlanMode;
use serde_json::json;

impl ProviderPlan for StandIn {
    fn next_preparation(
        &self,
        spec: &NativeSpec,
        addresses: &Assigned,
        done: &[Preparation],
    ) -> Option<Preparation> {
        match done.last() {
            Some(Preparation::Wait { .. }) => None,
            Some(Preparation::Call { answer, .. }) => {
                let mac = answer.as_ref()?.get("mac")?.as_str()?.parse().ok()?;
                let link = AwaitedLink::Mac(mac);
                Some(Preparation::Wait { link, found: None })
            }
            Some(Preparation::Ipam(_)) | None => {
                let addresses = addresses.ips.iter().map(|ip| ip.address);
                let call = OutsideCall {
                    service: Service::Socket(self.socket.clone()),
                    request: json!({
                        "network": spec.network.as_str(),
                        "addresses": addresses.collect::<Vec<_>>(),
                    }),
                };
                Some(Preparation::Call { call, answer: None })
            }
        }
    }

    fn link(&self, request: &LinkRequest<'_>) -> Result<LinkParts, PlanProblem> {
        match stacked_kind(Macvlan::KIND.name) {
            Some(kind) => request.stacked(
                None,
                kind,
                &[("mode", Some(MacvlanMode::default().number()))],
            ),
            None => Err(PlanProblem::NoMaster),
        }
    }

    fn is_of(_kind: &LinkKind) -> bool {
        false
    }
}
