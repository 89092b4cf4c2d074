//! Addresses in objects: read as strictly as everywhere, and an exclusion may be a bare address.

use crate::text::{FromText, NetOrAddress};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer};
use std::net::IpAddr;

/// A prefix; what `ipnet` alone would take too kindly is refused.
pub(super) fn net<'de, D: Deserializer<'de>>(from: D) -> Result<IpNet, D::Error> {
    IpNet::from_text(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// A prefix, or none.
pub(super) fn maybe_net<'de, D: Deserializer<'de>>(from: D) -> Result<Option<IpNet>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    let text = text.filter(|text| !text.is_empty());
    let net = text.map(|text| IpNet::from_text(&text)).transpose();
    net.map_err(serde::de::Error::custom)
}

/// An address, or none.
pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<IpAddr>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    let text = text.filter(|text| !text.is_empty());
    let address = text.map(|text| IpAddr::from_text(&text)).transpose();
    address.map_err(serde::de::Error::custom)
}

/// Prefixes, and addresses that count as prefixes of one address.
pub(super) fn nets<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IpNet>, D::Error> {
    let list = Option::<Vec<String>>::deserialize(from)?.unwrap_or_default();
    let net = |text: String| NetOrAddress::from_text(&text).map(|NetOrAddress(net)| net);
    let list: Result<_, String> = list.into_iter().map(net).collect();
    list.map_err(serde::de::Error::custom)
}
