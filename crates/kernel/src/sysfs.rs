//! What the machine's buses have: where a device is, and who drives it. Owns the reading of sysfs, of which only
//! `/sys/bus` and `/sys/devices` are looked at: what they say of devices is the same in every network namespace, unlike
//! `/sys/class/net`. Changes nothing.

use plexus_core::nics::NicDevice;
use plexus_core::plan::Hardware;
use std::path::{Path, PathBuf};

/// Drivers that leave a device to a program (DPDK): it has no link.
const USERSPACE_DRIVERS: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];
/// The buses on which networks name devices.
const BUSES: [&str; 2] = ["pci", "auxiliary"];

/// A sysfs.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::at("/sys")
    }
}

impl Sysfs {
    /// The sysfs that is mounted there.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where the device of that name on one of the buses is; none if there is none.
    pub fn on_bus(&self, id: &str) -> Option<PathBuf> {
        let mut paths = BUSES.iter().filter_map(|bus| self.device(bus, id));
        paths.next()
    }

    /// Where the device with that path below `/sys/devices` is.
    pub fn at_path(&self, path: &str) -> Option<PathBuf> {
        let below = path.strip_prefix("/sys/")?;
        self.root.join(below).canonicalize().ok()
    }

    /// Whether a link's hardware is the device at `path`, or what virtio made of it.
    pub fn is_part(&self, hardware: &Hardware, path: &Path) -> bool {
        let Some(own) = self.device(&hardware.bus, &hardware.device) else {
            return false;
        };
        own == path || (hardware.bus == "virtio" && own.parent() == Some(path))
    }

    /// The driver that leaves the device at `path` to a program; none if its driver makes links, or it has none.
    pub fn userspace_driver(&self, path: &Path) -> Option<&'static str> {
        let driver = path.join("driver").canonicalize().ok()?;
        let name = driver.file_name()?.to_str()?;
        USERSPACE_DRIVERS.into_iter().find(|known| *known == name)
    }

    /// Whether hardware is there no more, or has no driver that makes links. What cannot be seen is not gone.
    pub fn is_gone(&self, hardware: &Hardware) -> bool {
        if !self.root.join("bus").join(&hardware.bus).is_dir() {
            return false;
        }
        match self.device(&hardware.bus, &hardware.device) {
            None => true,
            Some(path) => !path.join("driver").exists() || self.userspace_driver(&path).is_some(),
        }
    }

    /// What a NIC's hardware is. Of what virtio or a NIC's firmware has made, the PCI device below it.
    pub fn nic(&self, hardware: &Hardware) -> NicDevice {
        let Some(own) = self.device(&hardware.bus, &hardware.device) else {
            return NicDevice::default();
        };
        let driver = own.join("driver").canonicalize().ok();
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let driver = driver.as_deref().and_then(name);
        let pci = own.ancestors().find(|path| {
            let address = path.file_name().and_then(|name| name.to_str());
            address.is_some_and(is_pci_address)
        });
        let Some(pci) = pci else {
            return NicDevice {
                driver,
                ..NicDevice::default()
            };
        };
        let id = |file| {
            let text = read(&pci.join(file))?;
            Some(text.strip_prefix("0x").unwrap_or(&text).to_owned())
        };
        NicDevice {
            pci_address: name(pci),
            vendor: id("vendor"),
            product: id("device"),
            // -1: the machine does not say.
            numa_node: read(&pci.join("numa_node")).and_then(|text| text.parse().ok()),
            driver,
        }
    }

    fn device(&self, bus: &str, device: &str) -> Option<PathBuf> {
        if [bus, device]
            .iter()
            .any(|part| part.contains('/') || part.starts_with('.'))
        {
            return None;
        }
        let path = self.root.join("bus").join(bus).join("devices").join(device);
        path.canonicalize().ok()
    }
}

/// `0000:3b:00.1`
fn is_pci_address(name: &str) -> bool {
    let hex = |text: &str, length| text.len() == length && is_hex(text);
    let mut parts = name.split([':', '.']);
    let lengths = [4, 2, 2, 1];
    lengths
        .into_iter()
        .all(|length| parts.next().is_some_and(|part| hex(part, length)))
        && parts.next().is_none()
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// One line of the kernel's.
fn read(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const NIC: &str = "0000:3b:00.1";
    const VIRTIO: &str = "0000:00:03.0";

    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("px-sysfs-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            let tree = Self(root);
            for dir in ["bus/pci/devices", "bus/virtio/devices", "bus/pci/drivers"] {
                fs::create_dir_all(tree.0.join(dir)).unwrap();
            }
            tree.add("pci", NIC, &format!("devices/pci0000:3a/{NIC}"));
            tree.add("pci", VIRTIO, &format!("devices/pci0000:00/{VIRTIO}"));
            tree.add(
                "virtio",
                "virtio1",
                &format!("devices/pci0000:00/{VIRTIO}/virtio1"),
            );
            tree
        }

        fn add(&self, bus: &str, device: &str, path: &str) {
            fs::create_dir_all(self.0.join(path)).unwrap();
            let link = self.0.join("bus").join(bus).join("devices").join(device);
            symlink(self.0.join(path), link).unwrap();
        }

        fn drive(&self, device: &str, driver: &str) {
            let dir = self.0.join("bus/pci/drivers").join(driver);
            fs::create_dir_all(&dir).unwrap();
            let link = self.0.join("bus/pci/devices").join(device).join("driver");
            let _ = fs::remove_file(&link);
            symlink(dir, link).unwrap();
        }

        fn sysfs(&self) -> Sysfs {
            Sysfs::at(&self.0)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn hardware(bus: &str, device: &str) -> Hardware {
        Hardware {
            bus: bus.to_owned(),
            device: device.to_owned(),
            mac: None,
        }
    }

    #[test]
    fn a_device_that_a_program_drives_is_noticed() {
        let tree = Tree::new("driver");
        let sysfs = tree.sysfs();
        let path = sysfs.on_bus(NIC).unwrap();
        assert_eq!(sysfs.userspace_driver(&path), None);
        assert!(sysfs.is_gone(&hardware("pci", NIC)));
        for (driver, by_program) in [
            ("mlx5_core", None),
            ("vfio-pci", Some("vfio-pci")),
            ("uio_pci_generic", Some("uio_pci_generic")),
            ("igb_uio", Some("igb_uio")),
            ("igb", None),
        ] {
            tree.drive(NIC, driver);
            assert_eq!(sysfs.userspace_driver(&path), by_program);
            assert_eq!(sysfs.is_gone(&hardware("pci", NIC)), by_program.is_some());
        }
    }

    #[test]
    fn a_link_is_found_by_address_and_by_path() {
        let tree = Tree::new("path");
        let sysfs = tree.sysfs();
        let (nic, virtio) = (hardware("pci", NIC), hardware("virtio", "virtio1"));
        let path = sysfs.on_bus(NIC).unwrap();
        assert!(sysfs.is_part(&nic, &path) && !sysfs.is_part(&virtio, &path));
        let same = sysfs.at_path(&format!("/sys/devices/pci0000:3a/{NIC}"));
        assert_eq!(same, Some(path));
        let path = sysfs.on_bus(VIRTIO).unwrap();
        assert!(sysfs.is_part(&virtio, &path) && !sysfs.is_part(&nic, &path));
        let inner = sysfs.at_path(&format!("/sys/devices/pci0000:00/{VIRTIO}/virtio1"));
        assert!(sysfs.is_part(&virtio, &inner.unwrap()));
    }

    #[test]
    fn what_is_not_there_is_gone_and_what_cannot_be_seen_is_not() {
        let tree = Tree::new("gone");
        let sysfs = tree.sysfs();
        assert_eq!(sysfs.on_bus("0000:ff:00.0"), None);
        assert_eq!(sysfs.on_bus("../../devices"), None);
        assert!(sysfs.is_gone(&hardware("pci", "0000:ff:00.0")));
        assert!(!sysfs.is_gone(&hardware("usb", "1-1")));
        assert!(!Sysfs::at("/nonexistent").is_gone(&hardware("pci", NIC)));
    }

    #[test]
    fn what_a_nic_is_is_read_at_its_pci_device() {
        let tree = Tree::new("nic");
        for (device, files) in [
            (
                NIC,
                [
                    ("vendor", "0x15b3\n"),
                    ("device", "0x1017\n"),
                    ("numa_node", "1\n"),
                ],
            ),
            (
                VIRTIO,
                [
                    ("vendor", "0x1af4\n"),
                    ("device", "0x1041\n"),
                    ("numa_node", "-1\n"),
                ],
            ),
        ] {
            for (file, text) in files {
                fs::write(tree.0.join("bus/pci/devices").join(device).join(file), text).unwrap();
            }
        }
        tree.drive(NIC, "mlx5_core");
        let seen = tree.sysfs().nic(&hardware("pci", NIC));
        let text = |text: &str| Some(text.to_owned());
        let wanted = NicDevice {
            pci_address: text(NIC),
            vendor: text("15b3"),
            product: text("1017"),
            numa_node: Some(1),
            driver: text("mlx5_core"),
        };
        assert_eq!(seen, wanted);
        let seen = tree.sysfs().nic(&hardware("virtio", "virtio1"));
        let wanted = NicDevice {
            pci_address: text(VIRTIO),
            vendor: text("1af4"),
            product: text("1041"),
            ..NicDevice::default()
        };
        assert_eq!(seen, wanted);
        let unknown = tree.sysfs().nic(&hardware("pci", "0000:ff:00.0"));
        assert_eq!(unknown, NicDevice::default());
        for name in [
            "0000:3b:00",
            "0000:3b:00.1.2",
            "000:3b:00.1",
            "0000:3g:00.1",
            "",
        ] {
            assert!(!is_pci_address(name), "{name}");
        }
    }
}
