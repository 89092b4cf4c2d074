//! Configurations of `host-device`.

use super::{native, of_plugin, parse, refused, with};
use crate::cni::{DeviceKey, DeviceQuery, Provider};
use serde_json::{Value, json};

const ID: &str = "0000:3b:00.1";

#[track_caller]
fn query(options: &Value) -> DeviceQuery {
    let conf = parse(&of_plugin("host-device", options)).unwrap();
    let Provider::HostDevice(host_device) = &native(&conf.body.networks()[0]).provider else {
        panic!("{options}");
    };
    // Whoever drives the device decides whether the plugin is executed: it has all its keys.
    let plugin = &host_device.plugin.as_ref().unwrap().plugins[0];
    assert_eq!(plugin["type"], "host-device");
    for (key, value) in options.as_object().unwrap() {
        if key != "runtimeConfig" {
            assert_eq!(plugin[key], *value);
        }
    }
    host_device.device.clone()
}

#[test]
fn a_device_is_named_in_the_order_of_the_plugin() {
    let name = DeviceKey::Name("ens1".parse().unwrap());
    let mac = DeviceKey::Mac("02:00:00:00:00:01".parse().unwrap());
    let path = "/sys/devices/pci0000:3a/0000:3b:00.1";
    let all = json!({"device": "ens1", "hwaddr": "02:00:00:00:00:01", "kernelpath": path, "pciBusID": ID});
    let without = |keys: &[&str]| {
        let mut options = all.clone();
        keys.iter().for_each(|key| options[*key] = json!(""));
        query(&options).key
    };
    assert_eq!(query(&all).on_bus.as_deref(), Some(ID));
    assert_eq!(without(&[]), Some(name));
    assert_eq!(without(&["device"]), Some(mac));
    let path = DeviceKey::KernelPath(path.to_owned());
    assert_eq!(without(&["device", "hwaddr"]), Some(path));
    let id = DeviceKey::OnBus(ID.to_owned());
    assert_eq!(without(&["device", "hwaddr", "kernelpath"]), Some(id));
}

#[test]
fn the_runtime_names_a_device_where_that_is_declared() {
    let declared = json!({"capabilities": {"deviceID": true}});
    assert_eq!(query(&declared), DeviceQuery::default());
    let mut told = declared;
    told["runtimeConfig"] = json!({"deviceID": ID});
    told["pciBusID"] = json!("0000:3b:00.7");
    assert_eq!(query(&told).on_bus.as_deref(), Some(ID));
    told["capabilities"] = json!({});
    assert_eq!(query(&told).on_bus.as_deref(), Some("0000:3b:00.7"));
}

#[test]
fn wrong_options_are_refused() {
    let of = |options: Value| with("host-device", &options);
    refused(&[
        (of(json!({})), 7, "device"),
        (of(json!({"device": "a/b"})), 7, "device"),
        (of(json!({"hwaddr": "zz"})), 7, "hwaddr"),
        (of(json!({"kernelpath": "/proc/self"})), 7, "kernelpath"),
        (
            of(json!({"kernelpath": "/sys/devices/../../etc"})),
            7,
            "kernelpath",
        ),
        (of(json!({"pciBusID": "../x"})), 7, "pciBusID"),
    ]);
}
