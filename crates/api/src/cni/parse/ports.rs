//! `portMappings`, as runtimes send them and as annotations write them.

use crate::Fields;
use crate::cni::{PortMapping, Protocol};
use crate::text::quoted;

/// Takes `portMappings`. `strict`: keys that are not known and port 0 of the node are problems, as
/// in an annotation; runtimes send a mapping for every port of a container.
pub(crate) fn port_mappings(fields: &mut Fields<'_>, strict: bool) -> Vec<PortMapping> {
    let read = |fields: &mut Fields<'_>, _| one(fields, strict);
    fields.objects("portMappings", read).unwrap_or_default()
}

fn one(fields: &mut Fields<'_>, strict: bool) -> Option<PortMapping> {
    let host_port = port(fields, "hostPort", !strict);
    let container_port = port(fields, "containerPort", false);
    let host_ip = fields.parsed("hostIP");
    let written = fields.text("protocol").unwrap_or_default();
    let protocol = Protocol::parse(written);
    if protocol.is_none() {
        let text = format!("is {}: write tcp, udp or sctp", quoted(written));
        fields.problem("protocol", text);
    }
    if !strict {
        fields.accept_rest();
    }
    Some(PortMapping {
        host_port: host_port.filter(|port| *port != 0)?,
        container_port: container_port?,
        protocol: protocol?,
        host_ip,
    })
}

fn port(fields: &mut Fields<'_>, key: &'static str, may_be_none: bool) -> Option<u16> {
    let number = fields.number(key);
    match number.map(u16::try_from) {
        None if !fields.has(key) && !may_be_none => {
            fields.missing(key, "write a port from 1 to 65535");
            None
        }
        None => None,
        Some(Ok(port)) if port > 0 || may_be_none => Some(port),
        Some(_) => {
            let number = number.unwrap_or_default();
            fields.problem(key, format!("is {number}: write a port from 1 to 65535"));
            None
        }
    }
}
