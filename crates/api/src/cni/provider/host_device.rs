//! `host-device`: a device of the node that is the pod's while the pod lives. Owns its options, which are the reference
//! plugin's. A device that a program drives itself (DPDK) has no link to move: then the plugin is executed, so its
//! configuration is kept.

use super::kind::{Options, ProviderKind, Routing};
use crate::Fields;
use crate::cni::parse::common;
use crate::cni::parse::request::RuntimeRequest;
use crate::cni::{Chain, DeviceKey, DeviceQuery};

/// The CNI capability by which a runtime names the device.
const DEVICE_ID: &str = "deviceID";

/// Options of `host-device`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDevice {
    /// Which device.
    pub device: DeviceQuery,
    /// The plugin, if the configuration is written for it.
    pub plugin: Option<Chain>,
}

impl HostDevice {
    /// What holds of all its networks.
    pub const KIND: ProviderKind = ProviderKind {
        name: "host-device",
        in_config: true,
        is_plugin: true,
        needs: &[],
        routing: Routing::OnLink,
        snat: false,
        host_ports: false,
        capabilities: &["ips", "mac", DEVICE_ID],
        keys: &["device", "hwaddr", "kernelpath", "pciBusID"],
        // The plugin leaves the device's MAC as it is.
        own_keys: &["mac"],
        segment: |_| None,
    };
}

impl Options for HostDevice {
    fn read(fields: &mut Fields<'_>, request: &RuntimeRequest) -> Option<Self> {
        let name = written(fields, "device").then(|| fields.parsed("device"));
        let mac = written(fields, "hwaddr").then(|| fields.parsed("hwaddr"));
        let path = written(fields, "kernelpath").then(|| kernel_path(fields));
        let pci = written(fields, "pciBusID").then(|| on_bus(fields, "pciBusID"));
        let has_key = name.is_some() || mac.is_some() || path.is_some() || pci.is_some();
        let declared = (!has_key || request.device_id.is_some())
            && common::capabilities(fields)
                .iter()
                .any(|one| one == DEVICE_ID);
        if !has_key && !declared {
            let text = "write device, hwaddr, kernelpath or pciBusID, or declare the capability deviceID if the runtime tells it";
            fields.missing("device", text);
        }
        if request.of_pod && request.device_id.is_some() && !declared {
            let text = "is asked for by the pod, but not declared: write it as true there";
            fields.problem("capabilities.deviceID", text);
        }
        let told = request.device_id.as_deref().filter(|_| declared);
        if let Some(told) = told.filter(|told| !is_bus_name(told)) {
            let text = format!(
                "runtimeConfig.deviceID {} is no name on a bus",
                crate::text::quoted(told)
            );
            fields.problem("capabilities.deviceID", text);
        }
        let on_bus = told.map(str::to_owned).or(pci.flatten());
        // In the order of the plugin.
        let key = name
            .map(|name| name.map(DeviceKey::Name))
            .or_else(|| mac.map(|mac| mac.map(DeviceKey::Mac)))
            .or_else(|| path.map(|path| path.map(DeviceKey::KernelPath)))
            .or_else(|| on_bus.clone().map(|id| Some(DeviceKey::OnBus(id))));
        Some(Self {
            device: DeviceQuery {
                key: key.flatten(),
                on_bus,
            },
            plugin: None,
        })
    }

    fn keep_plugin(&mut self, plugin: impl FnOnce() -> Chain) {
        self.plugin = Some(plugin());
    }

    fn plugin(&self) -> Option<&Chain> {
        self.plugin.as_ref()
    }
}

/// An empty text is Go's way to say "absent".
fn written(fields: &mut Fields<'_>, key: &'static str) -> bool {
    fields.text(key) != Some("") && fields.has(key)
}

fn kernel_path(fields: &mut Fields<'_>) -> Option<String> {
    let path = fields.text("kernelpath")?;
    let is_below = path.starts_with("/sys/devices/") && !path.split('/').any(|part| part == "..");
    if !is_below || path.len() > 1024 {
        let text = "must be a path that begins with /sys/devices/, without \"..\"";
        fields.problem("kernelpath", text);
        return None;
    }
    Some(path.trim_end_matches('/').to_owned())
}

fn on_bus(fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let id = fields.text(key)?;
    if !is_bus_name(id) {
        fields.problem(key, "must be an address on a bus, such as 0000:3b:00.1");
        return None;
    }
    Some(id.to_owned())
}

/// A name of one part: it becomes a file's in sysfs.
fn is_bus_name(id: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-');
    (1..=64).contains(&id.len()) && id.bytes().all(legal) && id != "." && id != ".."
}
