//! The `ipam` section. Owns what is native, and how each kind is checked.

mod fixed;
pub(super) mod host_local;
mod plexus;
pub(crate) mod span;
#[cfg(test)]
mod tests;

use super::choice;
use super::request::RuntimeRequest;
use crate::Fields;
use crate::cni::Ipam;

/// Reads `ipam` of a native network; none: a link without addresses. `provider` is what a user
/// would write as `type` to have the real plugin instead.
pub(super) fn read(
    fields: &mut Fields<'_>,
    provider: &str,
    request: &RuntimeRequest,
) -> Option<Ipam> {
    let path = fields.path().to_owned();
    fields
        .object("ipam", |ipam| section(ipam, provider, &path, request))
        .flatten()
}

/// `path` is where the network is written.
fn section(
    fields: &mut Fields<'_>,
    provider: &str,
    path: &str,
    request: &RuntimeRequest,
) -> Option<Ipam> {
    match fields.text("type") {
        Some("host-local") => Some(Ipam::HostLocal(host_local::read(fields))),
        Some("static") => Some(Ipam::Static(fixed::read(fields, request))),
        Some("plexus") => Some(Ipam::Plexus(plexus::read(fields))),
        None | Some("") => {
            if fields.map().keys().any(|key| key != "type") && fields.is_sound() {
                fields.missing("type", "write host-local, static or plexus");
                fields.accept_rest();
            }
            None
        }
        Some(other) => {
            fields.unsupported("type", choice::ipam(other, provider, path));
            fields.accept_rest();
            None
        }
    }
}
