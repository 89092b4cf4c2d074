//! `plexus create network`: a Network from flags, checked before anyone is asked.

use plexus_api::cni::{Provider, ProviderKind};
use plexus_api::later::Classes;
use plexus_api::manifest::{Level, check, read};
use plexus_api::objects::{GROUP, VERSION};
use serde_json::{Map, Value, json};

/// What the flags say.
#[derive(Debug, Clone, Default)]
pub struct NetworkFlags {
    /// The name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// `--provider`.
    pub provider: Option<String>,
    /// `--subnet [KEY=]CIDR[,gateway=ADDRESS][,exclude=PREFIX]…`
    pub subnets: Vec<String>,
    /// `--block-size`, IPv4 then IPv6.
    pub block_size: (Option<u8>, Option<u8>),
    /// `--mtu`.
    pub mtu: Option<u32>,
    /// `--route DST[=GATEWAY]`
    pub routes: Vec<String>,
    /// `--snat`.
    pub snat: bool,
    /// `--no-source-check`.
    pub no_source_check: bool,
    /// `--allowed-namespaces All|Same|KEY=VALUE[,KEY=VALUE]…`
    pub allowed: Option<String>,
    /// `--uuid`.
    pub uuid: Option<String>,
    /// `--config JSON`.
    pub config: Option<String>,
}

/// The object; or all that is wrong with it.
pub fn network(flags: &NetworkFlags) -> Result<Value, String> {
    let mut spec = Map::new();
    let mut set = |key: &str, value: Value| {
        spec.insert(key.to_owned(), value);
    };
    if let Some(provider) = &flags.provider {
        set("provider", json!(provider));
    }
    let provider = flags.provider.as_deref().unwrap_or(Provider::DEFAULT);
    let issues = ProviderKind::of(provider).is_some_and(ProviderKind::needs_addresses);
    match flags.subnets.is_empty() {
        true if issues => {
            return Err("--subnet is missing: pods have their addresses from it; \
                        write for instance --subnet 10.1.0.0/16"
                .to_owned());
        }
        true => {}
        false => set("subnets", subnets(&flags.subnets)?),
    }
    match flags.block_size {
        (None, None) => {}
        (v4, v6) => {
            let sizes = [("ipv4", v4), ("ipv6", v6)];
            let sizes = sizes
                .into_iter()
                .filter_map(|(k, v)| Some((k.to_owned(), json!(v?))));
            set("blockSize", Value::Object(sizes.collect()));
        }
    }
    if let Some(mtu) = flags.mtu {
        set("mtu", json!(mtu));
    }
    if !flags.routes.is_empty() {
        let routes = flags
            .routes
            .iter()
            .map(|route| match route.split_once('=') {
                Some((dst, gw)) => json!({"dst": dst, "gw": gw}),
                None => json!({"dst": route}),
            });
        set("routes", routes.collect());
    }
    if flags.snat {
        set("snat", json!(true));
    }
    if flags.no_source_check {
        set("sourceCheck", json!(false));
    }
    if let Some(allowed) = &flags.allowed {
        set("allowedNamespaces", namespaces(allowed)?);
    }
    if let Some(uuid) = &flags.uuid {
        set("uuid", json!(uuid));
    }
    if let Some(config) = &flags.config {
        let config: Value = serde_json::from_str(config)
            .map_err(|error| format!("--config is not JSON: {error}"))?;
        set("config", config);
    }
    let object = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Network",
        "metadata": {"name": flags.name, "namespace": flags.namespace}, "spec": spec,
    });
    checked(object)
}

fn checked(object: Value) -> Result<Value, String> {
    let manifest = read(&object.to_string());
    let findings = manifest.objects.iter();
    let findings = findings.flat_map(|written| check(written, &Classes::default()));
    let problems: Vec<String> = findings
        .filter(|finding| finding.level == Level::Problem)
        .map(|finding| format!("{}: {}", finding.path, finding.text))
        .collect();
    match problems.is_empty() {
        true => Ok(object),
        false => Err(problems.join("; ")),
    }
}

fn subnets(list: &[String]) -> Result<Value, String> {
    let mut subnets = Map::new();
    for (number, text) in list.iter().enumerate() {
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        let (key, cidr) = match first.split_once('=') {
            Some((key, cidr)) => (key.to_owned(), cidr),
            None => (format!("s{number}"), first),
        };
        let mut subnet = Map::from_iter([("cidr".to_owned(), json!(cidr))]);
        let mut exclude = Vec::new();
        for part in parts {
            match part.split_once('=') {
                Some(("gateway" | "gw", gateway)) => {
                    subnet.insert("gateway".to_owned(), json!(gateway));
                }
                Some(("exclude", prefix)) => exclude.push(json!(prefix)),
                _ => {
                    return Err(format!(
                        "--subnet {text:?}: {part:?} is not understood: write \
                         [KEY=]CIDR[,gateway=ADDRESS][,exclude=PREFIX]"
                    ));
                }
            }
        }
        if !exclude.is_empty() {
            subnet.insert("exclude".to_owned(), Value::Array(exclude));
        }
        if subnets.insert(key.clone(), Value::Object(subnet)).is_some() {
            return Err(format!("--subnet: the key {key:?} occurs twice"));
        }
    }
    Ok(Value::Object(subnets))
}

fn namespaces(text: &str) -> Result<Value, String> {
    match text {
        "All" | "all" => return Ok(json!({"from": "All"})),
        "Same" | "same" => return Ok(json!({"from": "Same"})),
        _ => {}
    }
    let labels: Option<Map<String, Value>> = text
        .split(',')
        .map(|label| label.split_once('=').map(|(k, v)| (k.to_owned(), json!(v))))
        .collect();
    let labels = labels.ok_or_else(|| {
        format!(
            "--allowed-namespaces {text:?}: write All, Same, or labels of namespaces such as team=a"
        )
    })?;
    Ok(json!({"from": "Selector", "selector": {"matchLabels": labels}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(subnets: &[&str]) -> NetworkFlags {
        NetworkFlags {
            name: "blue".to_owned(),
            namespace: "team-a".to_owned(),
            subnets: subnets.iter().map(|text| (*text).to_owned()).collect(),
            ..NetworkFlags::default()
        }
    }

    #[test]
    fn flags_become_a_network() {
        let made = network(&NetworkFlags {
            provider: Some("routed".to_owned()),
            block_size: (Some(26), None),
            mtu: Some(1400),
            routes: vec![
                "192.168.0.0/16=10.1.0.1".to_owned(),
                "10.9.0.0/16".to_owned(),
            ],
            snat: true,
            no_source_check: true,
            allowed: Some("team=a,stage=x".to_owned()),
            ..flags(&[
                "10.1.0.0/16,gateway=10.1.0.1,exclude=10.1.0.0/28",
                "v6=fd00::/64",
            ])
        })
        .unwrap();
        assert_eq!(
            made["spec"],
            json!({
                "provider": "routed", "blockSize": {"ipv4": 26}, "mtu": 1400, "snat": true,
                "sourceCheck": false,
                "subnets": {"s0": {"cidr": "10.1.0.0/16", "gateway": "10.1.0.1",
                    "exclude": ["10.1.0.0/28"]}, "v6": {"cidr": "fd00::/64"}},
                "routes": [{"dst": "192.168.0.0/16", "gw": "10.1.0.1"}, {"dst": "10.9.0.0/16"}],
                "allowedNamespaces": {"from": "Selector",
                    "selector": {"matchLabels": {"team": "a", "stage": "x"}}},
            })
        );
        assert_eq!(made["metadata"]["namespace"], "team-a");
    }

    #[test]
    fn all_that_is_wrong_is_said_before_anyone_is_asked() {
        for (wrong, expected) in [
            (flags(&[]), "--subnet is missing"),
            (
                flags(&["10.1.0.7/16"]),
                "spec.subnets.s0.cidr: 10.1.0.7/16 has host bits",
            ),
            (
                flags(&["a=10.1.0.0/16", "a=10.2.0.0/16"]),
                "\"a\" occurs twice",
            ),
            (flags(&["10.1.0.0/16,gatway=10.1.0.1"]), "is not understood"),
            (
                NetworkFlags {
                    allowed: Some("x".to_owned()),
                    ..flags(&["10.1.0.0/16"])
                },
                "write All, Same",
            ),
            (
                NetworkFlags {
                    config: Some("{".to_owned()),
                    ..flags(&["10.1.0.0/16"])
                },
                "--config is not JSON",
            ),
            (
                NetworkFlags {
                    name: "Blue".to_owned(),
                    ..flags(&["10.1.0.0/16"])
                },
                "metadata.name: \"Blue\" has upper case: write blue",
            ),
        ] {
            let error = network(&wrong).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
