//! The `ipam` section. Owns which kinds we do ourselves, how each is checked, and which plugins are executed instead.

mod executed;
pub(crate) mod fixed;
pub(super) mod host_local;
mod plexus;
pub(crate) mod span;
#[cfg(test)]
mod tests;

use super::choice;
use super::native::Written;
use super::request::RuntimeRequest;
use crate::Fields;
use crate::cni::{Ipam, ProviderKind};

/// Reads `ipam` of a native network; none: a link without addresses. `fields` are those of the network.
pub(super) fn read(
    fields: &mut Fields<'_>,
    kind: &ProviderKind,
    written: Written,
    request: &RuntimeRequest,
) -> Option<Ipam> {
    fixed::check_pod(fields, request);
    let path = fields.path().to_owned();
    let read = |ipam: &mut Fields<'_>| section(ipam, kind, written, &path, request);
    match fields.object("ipam", read)?? {
        Section::Ours(ipam) => Some(ipam),
        Section::Executed => {
            let ipam = executed::read(fields.map(), kind, written, request);
            Some(Ipam::Executed(Box::new(ipam)))
        }
    }
}

/// Who gives the addresses.
enum Section {
    Ours(Ipam),
    Executed,
}

/// `path` is where the network is written.
fn section(
    fields: &mut Fields<'_>,
    kind: &ProviderKind,
    written: Written,
    path: &str,
    request: &RuntimeRequest,
) -> Option<Section> {
    let ipam = match fields.text("type") {
        Some("host-local") => Ipam::HostLocal(host_local::read(fields)),
        Some("static") => Ipam::Static(fixed::read(fields, request)),
        Some("plexus") => Ipam::Plexus(plexus::read(fields)),
        None | Some("") => {
            if fields.map().keys().any(|key| key != "type") && fields.is_sound() {
                fields.missing("type", "write host-local, static or plexus");
                fields.accept_rest();
            }
            return None;
        }
        Some(other) => {
            let may = executed::may_be(fields, other, written);
            if !may && fields.is_sound() {
                fields.unsupported("type", choice::ipam(other, kind.name, path));
            }
            fields.accept_rest();
            return may.then_some(Section::Executed);
        }
    };
    Some(Section::Ours(ipam))
}
