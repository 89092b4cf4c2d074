//! What is asked for one container: `runtimeConfig`, `args.cni` and CNI_ARGS, in this order of
//! precedence.

use crate::Fields;
use crate::cni::{Args, Runtime};
use plexus_types::Mac;
use serde_json::Value;
use std::net::IpAddr;

/// Addresses by where they were asked for, and the MAC that wins.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    pub(super) runtime_ips: Vec<(IpAddr, Option<u8>)>,
    pub(super) args_ips: Vec<(IpAddr, Option<u8>)>,
    pub(super) env_ips: Vec<(IpAddr, Option<u8>)>,
    pub(super) gateways: Vec<IpAddr>,
    pub(super) mac: Option<Mac>,
    pub(super) ignore_unknown: bool,
    /// `args` as it came, for plugins that we execute.
    pub(super) args: Option<Value>,
    /// Keys of `args.cni` that we do not know.
    pub(super) unknown: Vec<String>,
}

impl Asked {
    /// Takes `runtimeConfig` and `args` of the configuration.
    pub(super) fn read(fields: &mut Fields<'_>, args: &Args) -> (Self, Runtime) {
        let runtime = runtime(fields);
        let wishes = fields.object("args", args_section).unwrap_or_default();
        let asked = Self {
            runtime_ips: runtime.ips.clone(),
            args_ips: wishes.ips,
            env_ips: args.ips.clone(),
            gateways: args.gateways.clone(),
            mac: runtime.mac.or(wishes.mac).or(args.mac),
            ignore_unknown: args.ignore_unknown,
            args: fields.value("args").cloned(),
            unknown: wishes.unknown,
        };
        (asked, runtime)
    }

    /// The addresses that win.
    pub(super) fn ips(&self) -> &[(IpAddr, Option<u8>)] {
        let origins = [&self.runtime_ips, &self.args_ips, &self.env_ips];
        origins
            .into_iter()
            .find(|ips| !ips.is_empty())
            .map_or(&[], Vec::as_slice)
    }
}

/// Keys come in any case here. Those that are neither `ips` nor `mac` are judged later, when it is
/// known whether a plugin takes them.
fn runtime(fields: &mut Fields<'_>) -> Runtime {
    let Some(map) = fields.map_of("runtimeConfig") else {
        return Runtime::default();
    };
    let mut inner = Fields::any_case(map, fields.path_of("runtimeConfig"));
    let runtime = Runtime {
        ips: inner.parsed_list("ips"),
        mac: inner.parsed("mac"),
        port_mappings: Vec::new(),
        annotations: None,
        raw: map.clone(),
    };
    inner.accept_rest();
    fields.absorb(inner.finish());
    runtime
}

#[derive(Default)]
struct Wishes {
    ips: Vec<(IpAddr, Option<u8>)>,
    mac: Option<Mac>,
    unknown: Vec<String>,
}

/// `cni` is for everyone, `labels` only describes; other keys are addressed to others by name.
fn args_section(fields: &mut Fields<'_>) -> Wishes {
    let wishes = fields.object("cni", |cni| {
        let ips = cni.parsed_list("ips");
        let mac = cni.parsed("mac");
        cni.map_of("labels");
        cni.accept_rest();
        let unknown = cni
            .map()
            .keys()
            .filter(|key| !["ips", "mac", "labels"].contains(&&***key));
        Wishes {
            ips,
            mac,
            unknown: unknown.cloned().collect(),
        }
    });
    fields.accept_rest();
    wishes.unwrap_or_default()
}
