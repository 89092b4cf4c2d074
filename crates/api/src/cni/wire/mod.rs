//! Results on the wire: one module per shape, and what they share. [`Outcome`] is converted to and
//! from each explicitly.
//!
//! What is written is what the reference plugins print: an absent list is left out, a route keeps
//! its metric, table and scope in every version. What is read is read kindly: `null` is absent, and
//! keys of other plugins' making are let pass, since a result is not a request.

mod v03_04;
mod v10;
mod v11;

use super::parse::{self, common};
use super::{Code, Dns, Error, Interface, Ip, Outcome, Route, Version};
use crate::Fields;
use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;
use std::net::IpAddr;

impl Outcome {
    /// The JSON that goes to standard output, in the shape of `version`. What that version has no
    /// field for is left out.
    pub fn to_json(&self, version: Version) -> String {
        let text = match version {
            Version::V0_3_0 | Version::V0_3_1 | Version::V0_4_0 => v03_04::write(self, version),
            Version::V1_0_0 => v10::write(self, version),
            Version::V1_1_0 => v11::write(self, version),
        };
        text.unwrap_or_default()
    }

    /// Reads a result by the `cniVersion` that it carries.
    pub fn from_value(result: &Value) -> Result<Self, Error> {
        let not_object = || Error::new(Code::Decode, "the result is not a JSON object", "");
        let map = result.as_object().ok_or_else(not_object)?;
        let version = map.get("cniVersion").and_then(Value::as_str);
        let version = version.unwrap_or_default();
        let version =
            Version::parse(version).ok_or_else(|| parse::incompatible("result", version))?;
        let mut fields = Fields::new(map, "");
        let outcome = Self::read(&mut fields, version);
        fields.finish().unless_any(outcome).map_err(|problems| {
            Error::new(
                Code::Decode,
                format!("the result is not valid: {problems}"),
                "the plugin that printed it has a defect: ask its authors",
            )
        })
    }

    /// Reads a result whose version is known.
    pub(super) fn read(fields: &mut Fields<'_>, version: Version) -> Self {
        let outcome = match version {
            Version::V1_1_0 => read(fields, v11::read_interface),
            _ => read(fields, read_interface),
        };
        let count = outcome.interfaces.len();
        for (i, ip) in outcome.ips.iter().enumerate() {
            if let Some(index) = ip.interface.filter(|index| *index >= count) {
                let text = format!("is {index}, but there are {count} interfaces");
                fields.problem(&format!("ips[{i}].interface"), text);
            }
        }
        fields.accept_rest();
        outcome
    }
}

/// A result: of interfaces and addresses as a version has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a, I: Serialize, A: Serialize> {
    cni_version: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    interfaces: Vec<I>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ips: Vec<A>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<WireRoute>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns: Option<&'a Dns>,
}

impl<'a, I: From<&'a Interface> + Serialize, A: From<&'a Ip> + Serialize> Wire<'a, I, A> {
    /// An empty `dns` is left out.
    fn of(outcome: &'a Outcome, version: Version) -> Self {
        Self {
            cni_version: version.as_str(),
            interfaces: outcome.interfaces.iter().map(I::from).collect(),
            ips: outcome.ips.iter().map(A::from).collect(),
            routes: outcome.routes.iter().map(WireRoute::from).collect(),
            dns: Some(&outcome.dns).filter(|dns| !dns.is_empty()),
        }
    }
}

/// A route, in every version: as the reference plugins print it.
#[derive(Serialize)]
struct WireRoute {
    dst: IpNet,
    #[serde(skip_serializing_if = "Option::is_none")]
    gw: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advmss: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<u8>,
}

impl From<&Route> for WireRoute {
    fn from(route: &Route) -> Self {
        let Route {
            dst,
            gw,
            mtu,
            advmss,
            priority,
            table,
            scope,
        } = *route;
        Self {
            dst,
            gw,
            mtu,
            advmss,
            priority,
            table,
            scope,
        }
    }
}

/// An interface before 1.1.0.
#[derive(Serialize)]
struct PlainInterface<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<&'a str>,
}

impl<'a> From<&'a Interface> for PlainInterface<'a> {
    fn from(interface: &'a Interface) -> Self {
        Self {
            name: &interface.name,
            mac: interface.mac.as_deref(),
            sandbox: interface.sandbox.as_deref(),
        }
    }
}

/// An address since 1.0.0.
#[derive(Serialize)]
struct PlainIp {
    address: IpNet,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<usize>,
}

impl From<&Ip> for PlainIp {
    fn from(ip: &Ip) -> Self {
        Self {
            address: ip.address,
            gateway: ip.gateway,
            interface: ip.interface,
        }
    }
}

/// An interface before 1.1.0.
fn read_interface(fields: &mut Fields<'_>) -> Option<Interface> {
    let Some(name) = fields.text("name") else {
        fields.missing("name", "every interface of a result has one");
        return None;
    };
    fields.accept_rest();
    Some(Interface {
        name: name.to_owned(),
        mac: fields.parsed("mac"),
        sandbox: fields.parsed("sandbox"),
        ..Interface::default()
    })
}

fn read_ip(fields: &mut Fields<'_>) -> Option<Ip> {
    let address = fields.parsed("address");
    fields.require("address", "every address of a result has one");
    let gateway = fields.parsed("gateway");
    let interface = fields.number("interface");
    fields.accept_rest();
    Some(Ip {
        address: address?,
        gateway,
        interface: interface.and_then(|index| usize::try_from(index).ok()),
    })
}

/// Reads a result whose interfaces are read by `interface`.
fn read(
    fields: &mut Fields<'_>,
    interface: impl Fn(&mut Fields<'_>) -> Option<Interface>,
) -> Outcome {
    let interfaces = fields.objects("interfaces", |one, _| interface(one));
    let ips = fields.objects("ips", |ip, _| read_ip(ip));
    let route = |route: &mut Fields<'_>, _| {
        let read = common::route(route);
        route.accept_rest();
        read
    };
    let routes = fields.objects("routes", route);
    let dns = fields.object("dns", |dns| {
        dns.accept_rest();
        common::dns(dns)
    });
    Outcome {
        interfaces: interfaces.unwrap_or_default(),
        ips: ips.unwrap_or_default(),
        routes: routes.unwrap_or_default(),
        dns: dns.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
