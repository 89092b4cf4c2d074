//! Contrail's fully qualified names: one dictionary or a list, as JSON or as Python writes them.

use crate::cni::FqName;
use crate::{Fields, Problems};

/// `opencontrail.org/network` of a pod: one interface per dictionary, in order.
pub fn contrail_networks(text: &str) -> Result<Vec<FqName>, Problems> {
    super::bounded(super::CONTRAIL_NETWORK, text)?;
    Ok(Vec::new())
}

/// `{"domain": "default-domain", "project": "team-a", "name": "blue"}`
pub(crate) fn fq_name(_fields: &mut Fields<'_>) -> Option<FqName> {
    None
}
