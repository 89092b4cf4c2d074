//! 1.0.0: addresses lose their `version`, an empty `dns` is left out.

use super::{PlainInterface, PlainIp, Wire};
use crate::cni::{Outcome, Version};

pub(super) fn write(outcome: &Outcome, version: Version) -> serde_json::Result<String> {
    serde_json::to_string(&Wire::<PlainInterface<'_>, PlainIp>::of(outcome, version))
}
