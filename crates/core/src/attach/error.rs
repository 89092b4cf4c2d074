//! Why a request cannot be served.

use crate::plan::PlanError;
use plexus_api::cni::Error;
use plexus_types::IfName;

/// What is wrong, and with which attachment.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AttachError {
    /// A link cannot be planned.
    #[error("interface {ifname}")]
    Plan {
        /// The link's name in the pod.
        ifname: IfName,
        /// Why.
        #[source]
        source: PlanError,
    },
    /// The attachments contradict each other, or a choice among them fits none.
    #[error(transparent)]
    Refused(#[from] Error),
}
