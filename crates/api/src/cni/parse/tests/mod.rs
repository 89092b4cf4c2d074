//! The configuration parser, case by case.

mod accepted;
mod cluster;
mod delegation;
mod executed_ipam;
mod host_device;
mod hostile;
mod ipvlan;
mod property;
mod standalone;
mod vlan;

use crate::cni::{Args, Chain, Error, Native, NetConf, Network, NetworkBackend};
use serde_json::{Value, json};

fn parse(conf: &Value) -> Result<NetConf, Error> {
    NetConf::parse(conf.to_string().as_bytes(), &Args::default())
}

/// `extra` over a small valid configuration of `provider`.
fn with(provider: &str, extra: &Value) -> Value {
    over(
        &json!({"cniVersion": "1.1.0", "name": "n", "type": "plexus-cni", "provider": provider}),
        extra,
    )
}

/// `extra` over a small configuration of the reference plugin `plugin`.
fn of_plugin(plugin: &str, extra: &Value) -> Value {
    over(
        &json!({"cniVersion": "1.1.0", "name": "n", "type": plugin}),
        extra,
    )
}

fn over(base: &Value, extra: &Value) -> Value {
    let mut conf = base.clone();
    for (key, value) in extra.as_object().unwrap() {
        conf[key] = value.clone();
    }
    conf
}

fn native(network: &Network) -> &Native {
    match &network.backend {
        NetworkBackend::Native(native) => native,
        NetworkBackend::Delegate(chain) => {
            panic!("executed, because of {:?}", chain.unsupported_key)
        }
    }
}

fn chain(network: &Network) -> &Chain {
    match &network.backend {
        NetworkBackend::Delegate(chain) => chain,
        NetworkBackend::Native(native) => panic!("native: {native:?}"),
    }
}

/// Each configuration is refused with a number and a text.
fn refused(table: &[(Value, u32, &str)]) {
    for (conf, code, cause) in table {
        let error = parse(conf).expect_err(&conf.to_string());
        assert!(
            error.msg.contains(cause),
            "{conf}\nwanted {cause:?}\ngot    {error}"
        );
        assert_eq!(error.code.number(), *code, "{conf}\n{error}");
        assert!(!error.details.is_empty(), "{error}");
        assert!(
            error.msg.len() < 8_000,
            "a message of {} bytes",
            error.msg.len()
        );
    }
}
