//! What came before a link.

use plexus_core::attach::{AwaitedLink, OutsideCall, Service};
use plexus_types::{IfName, Mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

#[derive(Serialize, Deserialize)]
#[serde(remote = "AwaitedLink", rename_all = "camelCase")]
pub(crate) enum AwaitedLinkRow {
    Name(IfName),
    Mac(Mac),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "OutsideCall", deny_unknown_fields)]
pub(crate) struct OutsideCallRow {
    #[serde(with = "ServiceRow")]
    service: Service,
    request: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Service", rename_all = "camelCase")]
enum ServiceRow {
    Socket(PathBuf),
}
