//! The two forms of a list of networks.

use super::NetworkSelection;
use crate::Problems;

pub(super) fn read(
    annotation: &'static str,
    text: &str,
    _pod_namespace: &str,
    _names: bool,
) -> Result<Vec<NetworkSelection>, Problems> {
    super::bounded(annotation, text)?;
    Ok(Vec::new())
}
