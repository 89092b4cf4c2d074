//! This node's NICs, told to the cluster: in its HostInterface, whenever they change. Owns the form that the inventory
//! has there and when the object is looked at again; which NICs count is decided in `core`.

use crate::agent::Agent;
use crate::cluster::Published;
use crate::failure;
use plexus_api::objects::{HostNic, NicState as ObjectState};
use plexus_core::nics::{self, Nic, NicState};
use plexus_kernel::Sysfs;
use plexus_types::Family;
use std::time::{Duration, Instant};

/// How often the object is looked at though the NICs have not changed: somebody may have removed or edited it.
const OBJECT_INTERVAL: Duration = Duration::from_secs(600);
/// As many as the object takes: of each NIC that many addresses.
const MAX_NICS: usize = 256;
const MAX_ADDRESSES: usize = 64;

/// What was published last.
#[derive(Debug, Default)]
pub(crate) struct PublishedNics {
    nics: Vec<Nic>,
    interfaces: Vec<HostNic>,
    at: Option<Instant>,
    outcome: Option<Published>,
}

impl Agent {
    /// Every link of this node that may be a NIC.
    pub(crate) fn all_nics(&self) -> Result<Vec<Nic>, String> {
        let all = plexus_kernel::nics::observe(&self.node, &Sysfs::default());
        all.map_err(|error| failure::chain(&error))
    }

    /// Those that count.
    fn counted(&self, all: Vec<Nic>) -> Vec<Nic> {
        let kubernetes = self.options.kubernetes.as_ref();
        let choice = kubernetes.map(|kubernetes| kubernetes.nics.clone());
        nics::published(all, &choice.unwrap_or_default())
    }

    /// Tells the cluster of them, if they are not as they were. Says whether that is done: without a Node there is nobody
    /// yet whose NICs they would be.
    pub(crate) fn publish_nics(&self, last: &mut PublishedNics) -> Result<bool, String> {
        let Some(cluster) = self.cluster.get() else {
            return Ok(true);
        };
        let all = self.all_nics()?;
        let up = all.iter().filter(|nic| nic.state == NicState::Up);
        cluster.set_nics_up(up.map(|nic| nic.name.clone()).collect());
        let nics = self.counted(all);
        let interfaces = host_nics(&nics);
        let fresh = last.at.is_some_and(|at| at.elapsed() < OBJECT_INTERVAL);
        if fresh && interfaces == last.interfaces {
            return Ok(true);
        }
        let Some(node) = cluster.own_node() else {
            return Ok(false);
        };
        let published = cluster.publish_nics(&node.uid, &interfaces);
        let published = published.map_err(|error| {
            format!(
                "this node's NICs are not published: {}",
                failure::chain(&error)
            )
        })?;
        let changes = nics::differences(&last.nics, &nics);
        self.say_published(last, published, &changes);
        *last = PublishedNics {
            nics,
            interfaces,
            at: Some(Instant::now()),
            outcome: Some(published),
        };
        Ok(true)
    }

    fn say_published(&self, last: &PublishedNics, published: Published, changes: &[String]) {
        let object = &self.options.node;
        match published {
            Published::Written => tracing::info!(object, ?changes, "HostInterface written"),
            _ if last.outcome == Some(published) => {}
            Published::Unchanged => {}
            Published::Unmanaged => tracing::info!(
                object,
                "this node's HostInterface has the label multi-nic-unmanaged: it is left as it is"
            ),
            Published::NotDefined => tracing::info!(
                "the API server does not know HostInterfaces: this node's NICs are not published"
            ),
        }
    }
}

/// As the object has them. Of more than it takes, those that have addresses come first.
fn host_nics(nics: &[Nic]) -> Vec<HostNic> {
    let mut nics: Vec<&Nic> = nics.iter().collect();
    if nics.len() > MAX_NICS {
        tracing::warn!(
            count = nics.len(),
            "this node has more NICs than a HostInterface takes: {MAX_NICS} are published"
        );
        let (with, without): (Vec<_>, Vec<_>) = nics
            .into_iter()
            .partition(|nic| nic.global_addresses().next().is_some());
        nics = with.into_iter().chain(without).take(MAX_NICS).collect();
    }
    nics.into_iter().map(host_nic).collect()
}

fn host_nic(nic: &Nic) -> HostNic {
    let mut families = Family::ALL.into_iter();
    let first = families.find_map(|family| nic.address(family));
    let device = nic.device.clone().unwrap_or_default();
    HostNic {
        interface_name: nic.name.clone(),
        net_address: first.map(|net| net.trunc()),
        host_ip: first.map(|net| net.addr()),
        addresses: nic.global_addresses().take(MAX_ADDRESSES).collect(),
        vendor: device.vendor.unwrap_or_default(),
        product: device.product.unwrap_or_default(),
        pci_address: device.pci_address.unwrap_or_default(),
        mac: nic.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        speed: nic.speed,
        mtu: Some(nic.mtu),
        numa_node: device.numa_node,
        state: Some(match nic.state {
            NicState::Up => ObjectState::Up,
            NicState::NoCarrier | NicState::Down => ObjectState::Down,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plexus_core::nics::NicDevice;

    fn nic(number: u32, addresses: &[&str]) -> Nic {
        Nic {
            index: number,
            name: format!("ens{number}"),
            kind: String::new(),
            addresses: addresses.iter().map(|net| net.parse().unwrap()).collect(),
            mac: "02:00:00:00:00:01".parse().ok(),
            permanent_mac: None,
            mtu: 9000,
            state: NicState::NoCarrier,
            speed: Some(100_000),
            device: Some(NicDevice {
                pci_address: Some("0000:3b:00.1".to_owned()),
                vendor: Some("15b3".to_owned()),
                product: Some("1017".to_owned()),
                numa_node: Some(1),
                driver: None,
            }),
            master: None,
            parent: None,
            default_route: false,
            ours: false,
        }
    }

    #[test]
    fn the_object_has_everything_that_is_known() {
        let nets = ["fe80::1/64", "2001:db8::1/64", "10.0.1.1/24"];
        let seen = host_nics(&[nic(1, &nets)]);
        let wanted = serde_json::json!({
            "interfaceName": "ens1", "netAddress": "10.0.1.0/24", "hostIP": "10.0.1.1",
            "addresses": ["2001:db8::1/64", "10.0.1.1/24"], "vendor": "15b3", "product": "1017",
            "pciAddress": "0000:3b:00.1", "mac": "02:00:00:00:00:01", "speed": 100_000,
            "mtu": 9000, "numaNode": 1, "state": "down",
        });
        assert_eq!(serde_json::to_value(&seen[0]).unwrap(), wanted);
    }

    #[test]
    fn of_very_many_those_with_addresses_are_published() {
        let mut all: Vec<Nic> = (0..300).map(|number| nic(number, &[])).collect();
        all.push(nic(301, &["10.0.1.1/24"]));
        let seen = host_nics(&all);
        assert_eq!(seen.len(), MAX_NICS);
        assert_eq!(seen[0].interface_name, "ens301");
    }
}
